"""A server that cannot write just now: what was given waits in the browser."""

import contextlib
import re
import sqlite3

import pytest
from playwright.sync_api import Page, Route, expect

from tests.amounts import each_of_sample
from tests.browser.conftest import by_hand
from tests.browser.server import Server

pytestmark = pytest.mark.browser
SENTENCE = "The database is busy just now."
# The server, a full disk, the browser's own haste, and a proxy are met alike.
NOT_NOW = [503, 507, 429, 502, 504]


@pytest.fixture
def server(nine: Server) -> Server:
    return nine


def refuse(page: Page, what: str, status: int) -> list[int]:
    """Let the server refuse what is sent to some addresses; lists the refusals.

    Before a page is opened: a page that is open learns of it later than the test, so that a request
    which is sent at once can still be answered by the server.
    """
    refused: list[int] = []

    def answer(route: Route) -> None:
        refused.append(status)
        headers = {"x-request-id": "0badcafe", "retry-after": "7"}
        html = f'<div class="msg bad problems" role="alert"><p>{SENTENCE}</p></div>'
        kind = "text/html; charset=utf-8"
        route.fulfill(status=status, headers=headers, body=html, content_type=kind)

    page.route(what, answer)
    return refused


def ratings(server: Server) -> list[int]:
    with contextlib.closing(sqlite3.connect(server.data / "headroom.db")) as db:
        rows = db.execute(
            "SELECT rating FROM review WHERE learner_id = (SELECT max(id) FROM learner) ORDER BY id"
        )
        return [rating for (rating,) in rows]


@each_of_sample("status", NOT_NOW, 1)
def test_a_grade_waits_and_is_sent_again(server: Server, page: Page, status: int) -> None:
    refused = refuse(page, "**/reviews", status)
    by_hand(page).goto(server.url + "/flashcards")
    page.request.post(f"{server.url}/settings", form={"name": "Somebody new"})
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()

    page.keyboard.press("3")

    expect(page.locator("#outbox")).to_contain_text("1 grade waits in this browser")
    expect(page.locator("#outbox")).to_contain_text(SENTENCE)
    assert len(refused) == 2  # the form, and once more at once
    assert ratings(server) == []
    page.unroute("**/reviews")
    page.get_by_role("button", name="Try now").click()
    expect(page.locator(".ask")).to_be_visible()
    expect(page.locator("#outbox")).not_to_contain_text("waits")
    assert ratings(server) == [3]


@each_of_sample("status", NOT_NOW, 1)
def test_an_answer_of_an_exam_waits_and_is_sent_again(
    server: Server, page: Page, status: int
) -> None:
    refuse(page, "**/answers/*", status)
    by_hand(page).goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")

    page.get_by_text("Flag", exact=False).first.click()
    expect(page.locator("#outbox")).to_contain_text("1 answer waits in this browser")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("/questions/2$"))
    expect(page.get_by_label("1, unanswered, flagged")).to_be_visible()
    expect(page.locator("#outbox")).to_contain_text("1 answer waits in this browser")
    page.unroute("**/answers/*")
    page.get_by_role("button", name="Try now").click()

    expect(page.locator("#outbox")).to_contain_text("1 answer saved.")
    page.goto(page.url.replace("questions/2", "questions/1"))
    expect(page.locator("input[name=flag]")).to_be_checked()


@each_of_sample("status", [503, 507], 1)
def test_any_other_form_keeps_its_inputs_and_is_tried_again(
    server: Server, page: Page, status: int
) -> None:
    refuse(page, "**/undo", status)
    by_hand(page).goto(server.url + "/flashcards")
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()
    page.keyboard.press("3")
    expect(page.locator(".grades")).to_be_hidden()
    expect(page.locator("[data-key=u]")).to_be_visible()

    page.keyboard.press("u")

    expect(page.get_by_role("alert")).to_contain_text("Your inputs are kept.")
    page.unroute("**/undo")
    with page.expect_response("**/undo"):
        page.get_by_role("button", name="Try now").click()
    assert ratings(server) == [3, 0]


def test_what_the_server_never_answers_waits_and_is_sent_again(server: Server, page: Page) -> None:
    by_hand(page).goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")
    limit = page.locator("form[data-later]").get_attribute("hx-request")
    assert limit == '{"timeout": 20000}'
    page.evaluate(
        """document.querySelector("form[data-later]").setAttribute(
             "hx-request", '{"timeout": 200}')"""
    )
    kept = []
    page.route("**/answers/*", lambda route: kept.append(route) if not kept else route.continue_())

    with page.expect_response("**/answers/*"):
        page.get_by_text("Flag", exact=False).first.click()

    expect(page.locator("#outbox")).not_to_contain_text("waits")
    assert len(kept) == 1
    page.reload()
    expect(page.locator("input[name=flag]")).to_be_checked()
