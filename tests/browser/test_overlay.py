"""Search and the forms of a card open over the page; the page stays where it was."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import each_of_sample
from tests.browser.server import Server

pytestmark = pytest.mark.browser
PAGE = "/concepts/training-memory"


def test_a_term_is_looked_up_without_leaving_the_text(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    field.press_sequentially("pue")

    expect(page.locator("#search .hits p").first).to_contain_text("Power usage effectiveness")
    field.press("ArrowDown")
    expect(page.locator("[data-result]").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_be_hidden()
    assert page.url == server.url + PAGE


def test_on_a_phone_the_search_is_closed_by_a_button_that_stays_in_view(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 390, "height": 700})
    page.goto(server.url + PAGE)
    page.locator("[data-search]").click()
    page.get_by_role("searchbox").press_sequentially("memory")
    page.locator("[data-result]").last.scroll_into_view_if_needed()
    close = page.locator("#search").get_by_role("button", name="Close")
    expect(close).to_be_in_viewport()

    close.click()

    expect(page.locator("#search")).to_be_hidden()
    assert page.url == server.url + PAGE


def test_a_card_is_written_from_anywhere_and_the_place_is_kept(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    title = page.title()
    page.keyboard.press("n")
    overlay = page.locator("#overlay")
    expect(overlay.get_by_label("Front")).to_be_focused()
    page.keyboard.type("What is kept for each weight?")
    overlay.get_by_label("Back").fill("16 bytes")
    page.keyboard.press("Control+Enter")

    expect(overlay.get_by_role("status")).to_contain_text("Saved.")
    expect(overlay.get_by_label("Front")).to_be_focused()  # of the next card, as in Anki
    expect(overlay.get_by_label("Front")).to_have_value("")
    expect(overlay.get_by_label("Front")).to_have_accessible_description("Saved.")
    overlay.get_by_label("Back").fill("And 2 of the gradient")
    overlay.get_by_label("Front").fill("What else?")
    page.keyboard.press("Meta+Enter")
    expect(overlay.get_by_label("Front")).to_have_value("")
    page.keyboard.press("Escape")
    expect(overlay).to_be_hidden()
    assert page.url == server.url + PAGE
    assert page.title() == title


def test_a_card_of_the_course_is_corrected_while_it_is_reviewed(page: Page, server: Server) -> None:
    page.goto(server.url + "/flashcards")
    asked = page.locator(".ask").inner_text()
    page.keyboard.press("e")
    overlay = page.locator("#overlay")
    expect(overlay.get_by_label("Front")).to_have_value(re.compile(re.escape(asked[:20])))
    overlay.get_by_label("Back").fill("As I would say it")
    overlay.get_by_label("Front").fill("Asked as I would ask it")
    overlay.get_by_role("button", name="Save").click()

    expect(overlay).to_be_hidden()
    expect(page.locator(".ask")).to_have_text("Asked as I would ask it")


@each_of_sample("query, place", [("", 2), ("?route=short", 0)], 1)
def test_the_way_back_leads_to_the_section_that_was_read(
    page: Page, server: Server, query: str, place: int
) -> None:
    page.goto(server.url + PAGE + query)
    heading = page.locator(".prose > h2[id]").nth(place)
    anchor = heading.get_attribute("id")
    heading.evaluate("e => e.scrollIntoView()")
    page.goto(server.url + "/glossary")

    page.locator("#way-back a").click()
    page.wait_for_url(f"{server.url}{PAGE}{query}#{anchor}")
    expect(page.locator("#way-back a")).to_have_count(0)


def test_after_today_no_way_back_to_an_earlier_page_is_offered(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    page.goto(server.url + "/")
    page.goto(server.url + "/glossary")

    expect(page.locator("#way-back")).to_be_attached()
    expect(page.locator("#way-back a")).to_have_count(0)


def test_a_page_that_does_not_exist_is_no_place_to_come_back_to(page: Page, server: Server) -> None:
    page.goto(server.url + "/concepts/no-such-page")
    page.goto(server.url + "/glossary")

    expect(page.locator("#way-back")).to_be_attached()
    expect(page.locator("#way-back a")).to_have_count(0)


def test_a_card_is_saved_from_a_field_that_was_made_larger(page: Page, server: Server) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(server.url + PAGE)
    page.keyboard.press("n")
    overlay = page.locator("#overlay")
    front = overlay.get_by_label("Front")
    front.fill("What is kept for each weight?")
    overlay.get_by_label("Back").fill("16 bytes")
    box = front.bounding_box()
    assert box
    corner = box["x"] + box["width"] - 5, box["y"] + box["height"] - 5
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0], corner[1] + 60)
    page.mouse.up()
    assert front.get_attribute("style")  # which htmx must not copy, since the policy refuses it

    overlay.get_by_role("button", name="Save").click()

    expect(overlay.get_by_role("status")).to_contain_text("Saved.")
    assert [said for said in complaints if "style" in said] == []
