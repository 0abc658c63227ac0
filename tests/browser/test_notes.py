"""Notes in a real browser: one is kept while another is being written."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Server

pytestmark = pytest.mark.browser
PAGE = "/concepts/training-memory/notes"


def test_keeping_one_note_leaves_the_others_as_typed(page: Page, server: Server) -> None:
    page.goto(server.url + PAGE)
    notes = page.locator("section.note")
    notes.nth(1).get_by_role("textbox").fill("Half a thought")
    notes.nth(0).get_by_role("textbox").fill("Sixteen bytes.")
    notes.nth(0).get_by_label("Bookmark").check()
    notes.nth(0).get_by_role("button").click()

    expect(notes.nth(0).get_by_role("status")).to_have_text("Saved")
    expect(notes.nth(0).get_by_role("button")).to_be_focused()
    expect(notes.nth(1).get_by_role("textbox")).to_have_value("Half a thought")
    page.goto(server.url + "/notes")
    expect(page.get_by_text("Sixteen bytes.")).to_be_visible()


def test_it_works_without_javascript(plain_page: Page, server: Server) -> None:
    plain_page.goto(server.url + PAGE)
    first = plain_page.locator("section.note").first
    first.get_by_role("textbox").fill("Sixteen bytes.")
    first.get_by_role("button").click()

    expect(first.get_by_role("textbox")).to_have_value("Sixteen bytes.")


def test_enter_beside_a_note_saves_the_note_and_checks_no_question(
    page: Page, server: Server
) -> None:
    page.goto(server.url + "/concepts/training-memory")
    note = page.locator(".mine").last
    note.locator("summary").click()
    note.get_by_role("textbox").fill("Sixteen bytes.")
    note.get_by_label("Bookmark").focus()
    page.keyboard.press("Enter")

    expect(note.locator(".written")).to_have_text("Sixteen bytes.")
    expect(note.locator("summary")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
