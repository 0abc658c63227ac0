"""A key that is held down repeats itself, and yet acts once."""

import contextlib
import re
import sqlite3

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import each_of_sample
from tests.browser.server import ROOT, Server

pytestmark = pytest.mark.browser
REPEATS = 6


@pytest.fixture
def server(nine: Server) -> Server:
    return nine


def hold(page: Page, key: str) -> None:
    """Hold a key: what comes after the first is marked as a repeat, as by a keyboard.

    Between the repeats the page gets the time to change under the key.
    """
    for _ in range(REPEATS):
        page.keyboard.down(key)
        page.wait_for_timeout(60)
    page.keyboard.up(key)


def reviews(server: Server) -> list[int]:
    """The ratings in the log of the newest learner; 0 undoes one."""
    with contextlib.closing(sqlite3.connect(server.data / "headroom.db")) as db:
        rows = db.execute(
            "SELECT rating FROM review WHERE learner_id = (SELECT max(id) FROM learner) ORDER BY id"
        )
        return [rating for (rating,) in rows]


def keys_of_templates() -> list[str]:
    """Every key that a template gives to something, and some that it fills in."""
    texts = [path.read_text() for path in (ROOT / "templates").rglob("*.html")]
    found = {key for text in texts for key in re.findall(r'data-key="([^"{]+)"', text)}
    return sorted({*found, "1", "4", "a", "d"})


def test_every_element_with_a_key_is_pressed_once(
    server: Server, page: Page, subtests: pytest.Subtests
) -> None:
    page.goto(server.url + "/settings")
    for key in keys_of_templates():
        with subtests.test(key=key):
            assert pressed(page, key) == 1


def pressed(page: Page, key: str) -> int:
    """How often an element with a key is pressed when the key is held."""
    page.evaluate(
        """(key) => {
          document.querySelector("main > [data-keys='0']")?.remove();  // of the last key
          const near = document.createElement("div");
          near.innerHTML = '<button type="button">Here</button>';
          near.dataset.keys = near.tabIndex = "0";
          near.firstChild.dataset.key = key;
          window.pressed = 0;
          near.firstChild.addEventListener("click", () => window.pressed++);
          document.querySelector("main").prepend(near);
          near.focus();
        }""",
        key,
    )

    name = "Enter" if key == "enter" else key
    for _ in range(REPEATS):
        page.keyboard.down(name)
    page.keyboard.up(name)

    return int(page.evaluate("window.pressed"))


@each_of_sample("key", [" ", "Enter"], 1)
def test_a_held_key_shows_the_answer_and_grades_nothing(
    server: Server, page: Page, key: str
) -> None:
    page.goto(server.url + "/flashcards")
    page.request.post(f"{server.url}/settings", form={"name": "Somebody new"})
    if key == "Enter":
        page.get_by_role("button", name="Show the answer").focus()

    hold(page, key)

    expect(page.locator(".grades")).to_be_visible()
    assert reviews(server) == []


def test_a_held_grade_and_a_held_undo_count_once(server: Server, page: Page) -> None:
    page.goto(server.url + "/flashcards")
    for _ in range(2):
        page.keyboard.press(" ")
        page.locator(".grades").wait_for()
        hold(page, "3")
        expect(page.locator(".grades")).to_be_hidden()
    assert reviews(server) == [3, 3]

    with page.expect_response("**/undo"):
        hold(page, "u")

    assert reviews(server) == [3, 3, 0]


@pytest.mark.drill
def test_a_held_grade_on_the_desk_without_a_network_counts_once(server: Server, page: Page) -> None:
    page.goto(server.url + "/flashcards/offline")
    hold(page, " ")
    expect(page.locator("#grades")).to_be_visible()

    hold(page, "4")

    expect(page.locator("#place")).to_contain_text("1 of")


@pytest.mark.drill
def test_held_keys_in_a_mock_exam_go_one_question_on_and_flag_once(
    server: Server, page: Page
) -> None:
    page.goto(server.url + "/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    page.wait_for_url("**/questions/1")

    hold(page, "j")
    assert page.url.endswith("/questions/2")
    hold(page, "f")
    expect(page.locator("input[name=flag]")).to_be_checked()
    hold(page, "k")
    assert page.url.endswith("/questions/1")


@pytest.mark.drill
def test_enter_held_in_a_field_answers_and_does_not_go_on(server: Server, page: Page) -> None:
    page.goto(server.url + "/quiz")
    page.get_by_role("button", name=re.compile("^Start")).first.click()
    page.wait_for_url("**/quiz/runs/*/*")
    page.evaluate(
        """() => {
          const fields = [...document.querySelectorAll("main form [name]")];
          const field = fields.find(
            ({ name }) => /^(answer|place|blank|pair)/.test(name));
          if (["radio", "checkbox"].includes(field.type)) field.click();
          else if (field.matches("select")) field.selectedIndex = field.length - 1;
          else field.value = "42";
          field.focus();
        }"""
    )
    address = page.url

    hold(page, "Enter")

    expect(page.locator(".verdict")).to_be_visible()
    assert page.url == address


def test_a_held_letter_is_still_typed(server: Server, page: Page) -> None:
    page.goto(server.url + "/settings")
    page.get_by_label("Name", exact=True).focus()

    hold(page, "j")
    hold(page, " ")

    expect(page.get_by_label("Name", exact=True)).to_have_value("j" * REPEATS + " " * REPEATS)


def find_order(page: Page, path: str) -> None:
    """Go to the question of a run or an exam that asks for an order."""
    page.wait_for_url(f"**/{path}/*")
    first = page.url.rpartition("/")[0]
    for number in range(1, 10):
        if 'class="steps' in page.request.get(f"{first}/{number}").text():
            page.goto(f"{first}/{number}")
            break
    page.wait_for_load_state()


@pytest.mark.parametrize("path", ["quiz/runs/*", "exams/sittings/*/questions"])
def test_enter_moves_a_step_again_and_answers_nothing(
    server: Server, page: Page, path: str
) -> None:
    if "quiz" in path:
        page.goto(f"{server.url}/quiz/objectives/2.1")
        page.get_by_role("button", name=re.compile("^Start")).first.click()
    else:
        page.goto(f"{server.url}/exams/short")
        page.get_by_role("button", name="Start the clock").click()
    find_order(page, path)
    steps = page.locator(".steps li > span[lang], .steps li > span:not(.moves)")
    before = steps.all_inner_texts()
    button = page.get_by_role("button", name=f"Move down: {before[0]}")
    button.focus()

    for place in (1, 2):
        page.keyboard.press("Enter")
        expect(steps.nth(place)).to_have_text(before[0])
        expect(button).to_be_focused()
        expect(button).to_be_in_viewport()
        page.wait_for_load_state()

    expect(page.locator(".verdict")).to_have_count(0)
