"""Two courses on one server, and two people who study both, in real browsers."""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import sign_in
from tests.browser.server import UNLIMITED, Server
from tests.conftest import two_courses

pytestmark = [pytest.mark.browser, pytest.mark.drill]
AID, SIZING = "/courses/aid", "/courses/sizing"
PEOPLE = ("Ada", "Ben")
_ANSWERS = 3  # the column of the table of questions, without its heading


@pytest.fixture
def school(tmp_path: Path) -> Iterator[Server]:
    content = two_courses(tmp_path / "courses")
    with Server(tmp_path / "data", content, **UNLIMITED) as running:
        yield running


def choose(page: Page, school: Server) -> None:
    """Come for the first time, choose one course and then the other."""
    page.goto(school.url)
    page.get_by_role("link", name="Erste Hilfe am Unfallort").click()
    page.wait_for_url(f"{school.url}{AID}/")
    page.get_by_role("link", name="Courses").click()
    page.get_by_role("link", name="Capacity Basics").click()
    page.wait_for_url(f"{school.url}{SIZING}/")


def study(page: Page, school: Server, words: str) -> None:
    """Answer a question of one course, and grade a card of the other."""
    page.goto(f"{school.url}{AID}/quiz/reanimation/r-tempo")
    page.get_by_label(words).check()
    page.get_by_role("button", name="Think so").click()
    verdict = page.get_by_text("Right.", exact=True)
    expect(verdict.or_(page.get_by_text("Not right.", exact=True))).to_be_visible()
    page.goto(f"{school.url}{SIZING}/flashcards")
    page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name=re.compile("^Good")).click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def sit(page: Page, school: Server) -> None:
    """Sit the mock exam of the first course, and end it with nothing answered."""
    page.goto(f"{school.url}{AID}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    expect(page).to_have_url(re.compile(rf"{AID}/exams/sittings/\d+/questions/1$"))
    page.goto(f"{page.url.partition('/questions')[0]}/review")
    page.get_by_role("button", name=re.compile("^End the exam")).click()
    expect(page.get_by_text("0 of 4").first).to_be_visible()


def export(page: Page, school: Server) -> dict[str, list[dict[str, object]]]:
    """The rows of one's own data, by table."""
    page.goto(f"{school.url}{SIZING}/settings")
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download my data").click()
    with zipfile.ZipFile(coming.value.path()) as packed:
        return {
            name.removesuffix(".json"): json.loads(packed.read(name))
            for name in packed.namelist()
            if name.endswith(".json")
        }


def erase(page: Page, school: Server) -> None:
    page.goto(f"{school.url}{SIZING}/settings/erasure")
    page.get_by_label("Type “erase”").fill("erase")
    page.get_by_role("button", name="Erase everything").click()
    expect(page).to_have_url(re.compile("/erased"))


def on_the_bench(page: Page, school: Server, course_name: str) -> tuple[str, str]:
    """What it counts in a course: answers to its one answered question, and exams."""
    page.goto(f"{school.url}{course_name}/authoring/questions")
    question = page.get_by_role("row").filter(has_text="r-tempo")
    told = question.get_by_role("cell").nth(_ANSWERS).inner_text()
    sat = page.get_by_role("row").filter(has_text="Kurze Probe")
    return told, sat.get_by_role("cell").first.inner_text()


def test_two_people_study_two_courses(school: Server, browser: Browser, page: Page) -> None:
    contexts = [browser.new_context() for _ in PEOPLE]
    ada, ben = visitors = [context.new_page() for context in contexts]
    for name, visitor in zip(PEOPLE, visitors, strict=True):
        choose(visitor, school)
        visitor.goto(f"{school.url}{AID}/settings")
        visitor.get_by_label("Name", exact=True).fill(name)
        visitor.get_by_role("button", name="Save", exact=True).click()
        study(visitor, school, "60- bis" if name == "Ben" else "100- bis")
    sit(ada, school)

    sign_in(page, school)
    assert on_the_bench(page, school, AID) == ("2", "1")
    page.goto(f"{school.url}{SIZING}/authoring/questions")
    expect(page.get_by_text("Nobody has answered anything yet")).to_be_visible()

    own = export(ben, school)
    assert [row["course"] for row in own["learner"]] == ["aid", "sizing"]
    assert {row["name"] for row in own["learner"]} == {"Ben"}
    assert [row["item"] for row in own["attempt"]] == ["r-tempo"]
    assert len(own["review"]) == 1
    assert own["sitting"] == []

    erase(ben, school)
    assert on_the_bench(page, school, AID) == ("1", "1")
    ada.goto(f"{school.url}{AID}/exams")
    expect(ada.get_by_text("0 of 4").first).to_be_visible()
    ben.goto(f"{school.url}{AID}/settings")
    expect(ben.get_by_label("Name", exact=True)).to_have_value("")
    for context in contexts:
        context.close()
