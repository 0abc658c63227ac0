"""An answer that cannot be read is told while there is time, and kept as entered."""

# ruff: noqa: RUF001 - the apostrophes of the pages

import dataclasses
import html
import json
import re

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import Attempt
from app.markup.model import ExamBlueprint, SourceLocation
from tests.amounts import sample
from tests.exams.sitting import begin, finish, kept, save, shown
from tests.quiz.bank import CLOZE, ORDER, SHORT, number, numeric
from tests.quiz.course import EditableLiveCourse

EXAM = ExamBlueprint("short", "Short", 1, 5, {"2": 1}, SourceLocation("exams/short.toml", 1))
PRICE = numeric(number(5.80, "USD"))
LONG = "x" * 201
DOUBLE = {"place.zzzz": "1", "place.yyyy": "1", "place.xxxx": "2"}
CASES = {
    "price": (PRICE, {"answer": "5..80"}, "“5..80” is not a number."),
    "range": (PRICE, {"answer": "5–6 USD"}, "“5–6 USD” is not one number."),
    "unit": (PRICE, {"answer": "5 apples"}, "“apples” is not a unit"),
    "short": (SHORT, {"answer": LONG}, "is longer than 200 characters"),
    "cloze": (CLOZE, {"blank.bcdf": LONG, "blank.ghjk": ""}, "is longer than 200"),
    "order": (ORDER, {**DOUBLE, "settled": "yes"}, "both stand at place 1."),
}
pytestmark = pytest.mark.drawn


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Two cases for each test, for each others; `make drills`: all."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", sample(CASES, 2, metafunc.function.__name__))


@pytest.fixture
def live_course(case: str) -> EditableLiveCourse:
    held = EditableLiveCourse(dataclasses.replace(CASES[case][0], id="asked"))
    held.held = dataclasses.replace(held.held, exams={"short": EXAM})
    return held


@pytest.fixture
def sent(case: str) -> dict[str, str]:
    return CASES[case][1]


@pytest.fixture
def why(case: str) -> str:
    return CASES[case][2]


def words(page: str) -> str:
    """What stands on a page, in words."""
    main = page.partition("<main")[2] or page
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_it_is_told_at_once_and_kept_as_it_was_entered(
    htmx: TestClient, sent: dict[str, str], why: str, session: Session
) -> None:
    sitting = begin(htmx)

    told = save(htmx, sitting, 1, **{**shown(htmx, sitting), **sent})

    assert told.status_code == 200
    assert "This can’t be read: " in words(told.text)
    assert why in words(told.text)
    raw = json.loads(kept(session).raw)
    assert {n: v[0] for n, v in raw.items() if n in sent} == {
        n: v for n, v in sent.items() if v and n != "settled"
    }


def test_without_javascript_the_question_comes_back_once(
    rosa: TestClient, sent: dict[str, str], why: str
) -> None:
    sitting = begin(rosa)

    first = save(rosa, sitting, 1, **{**shown(rosa, sitting), **sent, "go": "next"})
    page = rosa.get(first.headers["location"])
    again = save(rosa, sitting, 1, **{**shown(rosa, sitting), "go": "next"})

    assert first.headers["location"] == f"{sitting}/questions/1"
    assert why in words(page.text)
    assert again.headers["location"] == f"{sitting}/review"


def test_the_review_and_the_palette_say_so(
    rosa: TestClient, sent: dict[str, str], why: str
) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, **{**shown(rosa, sitting), **sent})

    review = rosa.get(f"{sitting}/review")
    open_ones = rosa.get(f"{sitting}/review?show=incomplete")
    page = rosa.get(f"{sitting}/questions/1")

    assert "0 of 1 answered, 1 can’t be read" in words(review.text)
    assert "End the exam with 1 that can’t be read" in words(review.text)
    assert why in words(open_ones.text)
    assert 'aria-label="1, can’t be read"' in page.text
    assert "answered 0 unanswered 0 can’t be read 1" in " ".join(
        words(page.text).replace("\xa0", "").split()
    )


def test_the_result_has_what_was_entered(
    rosa: TestClient, sent: dict[str, str], why: str, session: Session
) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, **{**shown(rosa, sitting), **sent})
    finish(rosa, sitting)

    report = words(rosa.get(f"{sitting}/report").text)
    solution = words(rosa.get(f"{sitting}/questions/1").text)

    assert "could not be read" in report
    assert "answered" not in f"{report} {solution}".casefold()
    assert "Your answer could not be read, so it earned no points: " in solution
    assert why in solution
    for name, value in sent.items():
        assert name.startswith(("place", "settled")) or value in solution
    session.rollback()
    assert session.exec(select(Attempt)).one().score == 0


def test_what_is_mended_in_time_counts(rosa: TestClient, case: str, sent: dict[str, str]) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, **{**shown(rosa, sitting), **sent})
    right = {
        "short": {"answer": "all-reduce"},
        "cloze": {"blank.bcdf": "RoCE", "blank.ghjk": "lossless"},
        "order": {f"place.{k * 4}": str(n) for n, k in enumerate("zyxw", 1)},
    }.get(case, {"answer": "$5.80"})
    if case == "order":
        right |= {"place.vvvv": ""}

    save(rosa, sitting, 1, **{**shown(rosa, sitting), **right})
    page = rosa.get(f"{sitting}/questions/1").text
    finish(rosa, sitting)

    assert "1, answered" in page
    assert "can’t be read" not in page
    assert "<b>1</b> of 1" in rosa.get(f"{sitting}/report").text
