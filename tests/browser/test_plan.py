"""Today, plan, progress and course in a browser: accessible, and as wide as the screen."""

import datetime as dt

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import set_exam
from tests.browser.server import Server
from tests.browser.test_access import serious
from tests.browser.test_loop import TOPIC

pytestmark = pytest.mark.browser


def test_the_four_pages_are_accessible_and_as_wide_as_the_screen(
    server: Server, page: Page
) -> None:
    set_exam(page, server, 30)
    page.goto(f"{server.url}/concepts/weights")
    page.get_by_role("button", name="Mark as read").first.click()

    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for address in ("/", "/plan", "/progress", "/course"):
            page.goto(server.url + address)
            for fold in page.locator("main details").all():
                fold.evaluate("fold => fold.open = true")
            assert serious(page) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") == width, address


def test_a_mock_exam_is_moved_on_the_plan(server: Server, page: Page) -> None:
    set_exam(page, server, 30)
    page.goto(f"{server.url}/plan")
    first = page.locator("input[name=new]").first
    old = dt.date.fromisoformat(first.input_value())
    new = old + dt.timedelta(days=1)

    first.fill(new.isoformat())
    page.get_by_role("button", name="Move").first.click()

    expect(page.locator("input[name=new]").first).to_have_value(new.isoformat())


def test_a_list_that_was_made_is_one_click_from_its_plan(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/concepts/{TOPIC}")
    page.locator("form[action$='/readings'] button").first.click()
    page.goto(server.url)
    expect(page.locator("ol.led > li").first).to_be_visible()

    page.get_by_role("link", name="Your plan").click()

    expect(page.get_by_role("heading", name="Today")).to_be_visible()
