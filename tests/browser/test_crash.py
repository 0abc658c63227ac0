"""What was confirmed is there after SIGKILL, whenever it comes."""

import contextlib
import random
import re
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.amounts import FACTOR
from tests.browser.conftest import nine_questions
from tests.browser.server import UNLIMITED, Server

pytestmark = [pytest.mark.browser, pytest.mark.drill]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A small course, and time for a mock exam with many kills."""
    course_folder = nine_questions(tmp_path / "course")
    exam = course_folder / "exams" / "short.toml"
    exam.write_text(exam.read_text().replace("minutes = 6", "minutes = 90"))
    with Server(tmp_path / "data", course_folder, **UNLIMITED) as running:
        yield running


def test_a_confirmed_answer_survives_a_kill_and_an_orderly_stop(
    server: Server, plain_page: Page, tmp_path: Path
) -> None:
    page = plain_page
    page.goto(f"{server.url}/quiz/weights")
    page.locator("main ol a, main li a").first.click()
    page.locator("input[name=answer]").first.check()
    page.get_by_role("button", name=re.compile("^Think so")).click()
    expect(page.locator(".verdict").first).to_be_visible()
    address, verdict = page.url, page.locator(".verdict").first.inner_text()

    server.stop(signal.SIGKILL)
    server.start()

    page.goto(address)
    assert page.locator(".verdict").first.inner_text() == verdict

    assert server.stop() == 0  # which leaves one file with everything in it
    shutil.copy(server.data / "headroom.db", tmp_path / "alone.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "alone.db")) as kept:
        newest = "SELECT learner_id FROM attempt ORDER BY id DESC LIMIT 1"
        learner = "SELECT max(id) FROM learner"
        assert kept.execute(newest).fetchall() == kept.execute(learner).fetchall()
        assert kept.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_mock_exam_survives_kills(server: Server, page: Page) -> None:
    chance = random.Random(20)  # noqa: S311 - the moments are to be repeatable
    page.goto(f"{server.url}/exams/short")
    page.get_by_role("button", name="Start the clock").click()
    expect(page).to_have_url(re.compile("/questions/1$"))
    sitting = page.url.rpartition("/questions/")[0]
    count = page.locator("#palette nav button").count()
    begun = left(page)
    saved: dict[int, str] = {}

    for number in chance.choices(range(1, count + 1), k=3 * FACTOR):
        saved.pop(number, None)  # it is answered anew
        page.goto(f"{sitting}/questions/{number}")
        given = answer(page, chance)
        if chance.random() < 0.7:  # wait for the word that it is saved, or be killed
            said = re.compile(f"^{number}, answered")
            expect(page.get_by_role("button", name=said)).to_be_visible()
            saved[number] = given
        server.stop(signal.SIGKILL)
        server.start()
        page.reload()
        assert left(page) <= begun
        for known, value in list(saved.items())[-2:]:
            page.goto(f"{sitting}/questions/{known}")
            assert entered(page) == value

    page.goto(f"{sitting}/review")
    page.get_by_role("button", name=re.compile("^End the exam")).click()
    expect(page).to_have_url(re.compile("/report"))
    page.get_by_text(re.compile(r"^All \d+.questions")).click()
    table = page.locator("details[open] table")
    for number in saved:
        row = table.locator("tbody tr").nth(number - 1)
        expect(row).not_to_contain_text("unanswered")


def left(page: Page) -> int:
    """Seconds that the server gave at the last load."""
    return int(page.locator("[data-left]").get_attribute("data-left") or "0")


def answer(page: Page, chance: random.Random) -> str:
    """Choose an option, type something or set a place, whatever the question wants."""
    options = page.locator("main .opt input")
    boxes = page.locator("main form input.in")
    if options.count():
        options.nth(chance.randrange(options.count())).check()
    elif boxes.count():
        boxes.first.fill(str(chance.randrange(1, 500)))
        boxes.first.blur()
    else:
        places = page.locator("main form select")
        given = places.evaluate_all("all => all.filter((one) => one.value).length")
        if given != 1:  # the last step stays: with none in place nothing is answered
            last = places.first.locator("option").count() - 1
            places.first.select_option(index=last)
    return entered(page)


def entered(page: Page) -> str:
    """The answer as the form holds it."""
    return page.evaluate(
        "[...new FormData(document.querySelector('main form'))]"
        ".filter(([name]) => !/^(since|shown|flag|strike|go)$/.test(name))"
        ".map(([name, value]) => `${name}=${value}`).sort().join('&')"
    )
