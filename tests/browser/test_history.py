"""Back to a card that was graded: it is not asked, and not graded, once more."""

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.server import UNLIMITED, Server
from tests.conftest import TINY

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("history") / "data"
    with Server(data, TINY, **UNLIMITED) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


def log(server: Server) -> list[tuple[str, int]]:
    """The reviews of the newest learner: card and rating."""
    with contextlib.closing(sqlite3.connect(server.data / "headroom.db")) as db:
        return list(
            db.execute(
                "SELECT card, rating FROM review"
                " WHERE learner_id = (SELECT max(id) FROM learner) ORDER BY id"
            )
        )


def grade(page: Page, key: str) -> str:
    """Grade the card on the desk by keyboard; returns its front."""
    front = str(page.locator(".ask").inner_text())
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()
    page.keyboard.press(key)
    expect(page.locator(".grades")).to_be_hidden()
    return front


def test_back_leads_to_the_next_card(server: Server, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(server.url + "/flashcards")
    front = grade(page, "3")
    page.goto(server.url + "/glossary")

    page.go_back()

    expect(page.locator(".ask")).not_to_have_text(front)
    grade(page, "1")
    assert [rating for _, rating in log(server)] == [3, 1]
    assert len({card for card, _ in log(server)}) == 2


@pytest.mark.drill
def test_without_javascript_back_grades_nothing_twice(server: Server, browser: Browser) -> None:
    plain = browser.new_context(java_script_enabled=False)
    page = plain.new_page()
    page.goto(server.url + "/flashcards")
    front = page.locator(".ask").inner_text()
    page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name="Good").click()
    expect(page.locator(".ask")).not_to_have_text(front)

    page.go_back()  # to the answer with its grades, or to what it is now
    if page.get_by_text(front).count():
        page.get_by_role("button", name="Again").click()
    expect(page.get_by_role("alert")).to_contain_text("Already graded: Good.")
    page.goto(server.url + "/flashcards")
    page.go_back()
    page.go_back()
    page.go_back()  # to the front
    if page.get_by_text(front).count():
        page.get_by_role("button", name="Show the answer").click()
        expect(page.get_by_role("alert")).to_contain_text("Already graded: Good.")

    assert [rating for _, rating in log(server)] == [3]
    plain.close()


def test_two_tabs_with_one_card_grade_it_once(server: Server, context: BrowserContext) -> None:
    one, two = context.new_page(), context.new_page()
    for page in (one, two):
        page.goto(server.url + "/flashcards")
        page.keyboard.press(" ")
        page.locator(".grades").wait_for()
    one.keyboard.press("3")
    expect(one.locator(".grades")).to_be_hidden()

    two.keyboard.press("1")

    expect(two.get_by_role("alert")).to_contain_text("Already graded: Good.")
    assert [rating for _, rating in log(server)] == [3]


def test_a_card_that_was_graded_is_not_on_the_desk_without_a_network(
    server: Server, context: BrowserContext
) -> None:
    page, kept = context.new_page(), context.new_page()
    page.goto(server.url + "/flashcards")
    kept.goto(server.url + "/flashcards/offline")
    first = str(kept.locator("[data-showing]:visible .ask").inner_text())

    assert grade(page, "3") == first

    expect(kept.locator("[data-showing]:visible .ask")).not_to_have_text(first)
    kept.reload()
    kept.go_back()
    kept.goto(server.url + "/flashcards/offline")
    expect(kept.locator("[data-showing]:visible .ask")).not_to_have_text(first)
