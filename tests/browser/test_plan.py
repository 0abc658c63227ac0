"""The plan in a browser: set an exam day, see the days, read them in any width."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import set_exam
from tests.browser.server import Server
from tests.browser.test_access import serious

pytestmark = pytest.mark.browser


def test_the_plan_is_accessible_and_as_wide_as_the_screen(server: Server, page: Page) -> None:
    set_exam(page, server, 30)
    page.goto(f"{server.url}/plan")

    expect(page.get_by_role("heading", name="Your plan")).to_be_visible()
    expect(page.get_by_text("The numbers")).to_be_visible()
    page.get_by_text("The numbers").click()
    assert serious(page) == []

    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert serious(page) == []


def test_from_today_the_plan_is_one_click_away(server: Server, page: Page) -> None:
    set_exam(page, server, 30)
    page.goto(f"{server.url}/flashcards?show=1")
    page.get_by_role("button", name=re.compile("^Easy")).click()
    expect(page.locator("#desk svg[aria-label^='1 of']")).to_have_count(1)
    page.goto(server.url)
    page.get_by_role("link", name="The plan").click()

    expect(page.get_by_text(re.compile(r"of \d+.cards are started"))).to_be_visible()
