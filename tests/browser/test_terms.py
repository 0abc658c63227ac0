"""A term under a finger opens where it stands; without JavaScript it is a link."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.server import Server

pytestmark = pytest.mark.browser
PAGE = "/concepts/training-memory"
TERM = "a.term[interestfor]"


def test_a_tap_opens_the_term_in_place(browser: Browser, server: Server) -> None:
    context = browser.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800}
    )
    page = context.new_page()
    page.goto(server.url + PAGE)
    term = page.locator(TERM).first
    name = term.get_attribute("interestfor")
    term.tap()

    expect(page.locator(f"#{name}")).to_be_visible()
    assert page.url == server.url + PAGE
    page.locator(f"#{name}").get_by_role("link", name="Glossary").tap()
    page.wait_for_url("**/glossary?cards=1#*")
    context.close()


def test_without_javascript_it_leads_to_its_anchor(plain_page: Page, server: Server) -> None:
    plain_page.goto(server.url + PAGE)
    plain_page.locator(TERM).first.click()

    plain_page.wait_for_url("**/glossary#*")
