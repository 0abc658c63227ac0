"""A missed question in a real browser: it comes back, it is left out, it is asked."""

import re

import pytest
from playwright.sync_api import Page, expect

from app.content.course import Course
from app.questions.types.choice import ChoiceSpec
from tests.browser.server import Server

pytestmark = pytest.mark.browser
BACK = "Added to your cards."
OUT = "Not in your cards."


@pytest.fixture(scope="module")
def wrong(shipped: Course) -> tuple[str, str, str]:
    """Topic, id and a wrong option of a question that has one right answer."""
    for question in shipped.questions.values():
        answer = question.answer
        if isinstance(answer, ChoiceSpec) and answer.kind == "single":
            key = next(o.key for o in answer.options if not o.right)
            return question.topic, question.id, key
    raise AssertionError("the course has no such question")


def miss(page: Page, server: Server, wrong: tuple[str, str, str]) -> None:
    topic, item, key = wrong
    page.goto(f"{server.url}/quiz/{topic}/{item}")
    page.locator(f"input[value='{key}']").check()
    page.get_by_role("button", name=re.compile("^Think so")).click()
    expect(page.get_by_text(BACK)).to_be_visible()


def test_a_missed_question_is_left_out_and_brought_back_in_place(
    page: Page, server: Server, wrong: tuple[str, str, str]
) -> None:
    miss(page, server, wrong)
    address = page.url

    page.get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_text(OUT)).to_be_visible()
    expect(page.get_by_role("button", name="Add it")).to_be_focused()
    expect(page.locator(".verdict")).to_contain_text("Not right.")

    page.get_by_role("button", name="Add it").press("Enter")
    expect(page.get_by_text(BACK)).to_be_visible()
    expect(page.get_by_role("button", name="Remove")).to_be_focused()
    assert page.url == address


def test_it_is_left_out_without_javascript(
    plain_page: Page, server: Server, wrong: tuple[str, str, str]
) -> None:
    page = plain_page
    miss(page, server, wrong)

    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text(OUT)).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("Not right.")

    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_text(BACK)).to_be_visible()


def test_its_card_is_graded_and_leads_to_the_question(
    page: Page, server: Server, wrong: tuple[str, str, str]
) -> None:
    miss(page, server, wrong)
    page.goto(f"{server.url}/flashcards/deck")
    own = page.locator("#own")
    expect(own).to_contain_text("question, new (a few a day)")

    own.locator("li a").first.click()
    expect(page.locator("#turn")).to_contain_text("A question you missed today.")
    page.wait_for_load_state("domcontentloaded")  # the keys are read from then on
    page.keyboard.press(" ")
    page.locator(".grades").wait_for()
    link = page.get_by_role("link", name="Answer it as a question")
    expect(link).to_have_attribute("href", re.compile(wrong[1]))
    page.keyboard.press("4")
    expect(page.locator("#desk svg[aria-label^='1 of']")).to_have_count(1)

    page.goto(f"{server.url}/flashcards/deck")
    expect(own).to_contain_text("question, due")
    own.get_by_role("button", name=re.compile("^Remove")).click()
    expect(own).to_contain_text("question, removed")


def test_a_term_becomes_a_card_where_it_stands(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/glossary?cards=1")
    term = page.locator(".terms > div").nth(2)

    term.get_by_role("button", name=re.compile("^Make it a card")).press("Enter")

    expect(term).to_contain_text("In your cards")
    expect(term.get_by_role("button", name=re.compile("^Remove"))).to_be_focused()
