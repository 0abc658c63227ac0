"""The search in a real browser: one key away, live, and gone through by keys."""

import re
import urllib.parse

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server

pytestmark = pytest.mark.browser


def test_the_page_of_the_search_answers_while_one_types(page: Page, server: Server) -> None:
    page.goto(server.url + "/search")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()

    field.press_sequentially("kv cac")

    links = page.locator("[data-result]")
    expect(links.first).to_have_text("KV cache")
    expect(page).to_have_url(re.compile(r"/search\?q=kv%20cac$"))
    page.reload()
    expect(field).to_have_value("kv cac")

    field.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("/")
    expect(field).to_be_focused()
    expect(field).to_have_value("kv cac")
    field.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).not_to_have_url(re.compile("/search"))
    page.go_back()
    expect(field).to_have_value("kv cac")


def test_a_slip_is_mended_without_javascript(plain_page: Page, server: Server) -> None:
    plain_page.goto(server.url + "/search")
    plain_page.get_by_role("searchbox").fill("kv cahce")
    plain_page.get_by_role("button", name="Search").click()

    said = plain_page.get_by_role("main").get_by_role("status")
    expect(said).to_contain_text("Nothing was found for “kv cahce”")
    said.get_by_role("link", name="kv cache").click()
    plain_page.wait_for_url(lambda url: urllib.parse.unquote_plus(url).endswith("?q=kv cache"))


def test_the_header_fits_on_the_smallest_screen(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(server.url + "/search?q=memory")

    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_everything_is_taken_along_and_then_erased(page: Page, server: Server) -> None:
    page.goto(server.url + "/settings")
    page.get_by_label("Name", exact=True).fill("Rosa Meyer")
    page.get_by_role("button", name="Save", exact=True).click()
    with page.expect_download() as taken:
        page.get_by_role("link", name="Download my data").click()
    assert taken.value.suggested_filename.endswith(".zip")

    page.get_by_role("link", name="Erase everything").click()
    page.get_by_role("textbox", name="Type “erase”").fill("erase")
    page.get_by_role("button", name="Erase everything").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Erased")
    page.goto(server.url + "/settings")
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
