"""An answer that lacks a part is shown as incomplete while there is time, and graded as it is."""

import dataclasses

import pytest
from fastapi.testclient import TestClient

from app.markup.model import ExamBlueprint, SourceLocation
from tests.exams.sitting import begin, finish, save
from tests.exams.test_unreadable import words
from tests.quiz.bank import MATCH, MULTIPLE, text, with_rule
from tests.quiz.course import EditableLiveCourse

EXAM = ExamBlueprint("short", "Short", 1, 5, {"2": 1}, SourceLocation("exams/short.toml", 1))
CHOOSE = dataclasses.replace(with_rule(MULTIPLE, "net"), stem=text("Which are fast? (Choose two.)"))
CASES = {
    "choices": (CHOOSE, {"answer": ["bcdf"]}, {"answer": ["bcdf", "ghjk"]}, "1 of 2 chosen"),
    "too many": (
        CHOOSE,
        {"answer": ["bcdf", "ghjk", "qrst"]},
        {"answer": ["bcdf", "ghjk"]},
        "3 of 2 chosen",
    ),
    "rows": (
        MATCH,
        {"pair.lbcd": "rfgh"},
        {"pair.lbcd": "rfgh", "pair.lfgh": "rbcd"},
        "1 of 2 rows matched",
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def live_course(case: str) -> EditableLiveCourse:
    held = EditableLiveCourse(dataclasses.replace(CASES[case][0], id="asked"))
    held.held = dataclasses.replace(held.held, exams={"short": EXAM})
    return held


def test_an_incomplete_answer_is_listed_with_the_open_ones(rosa: TestClient, case: str) -> None:
    _, part, whole, said = CASES[case]
    sitting = begin(rosa)
    save(rosa, sitting, 1, **part)

    page = rosa.get(f"{sitting}/questions/1").text
    review = words(rosa.get(f"{sitting}/review?show=incomplete").text)

    assert f'aria-label="1, incomplete ({said})"' in page
    assert "answered 0 unanswered 0 incomplete 1" in " ".join(words(page).split())
    assert "0 of 1 answered, 1 incomplete" in review
    assert f"incomplete: {said}" in review
    assert "End the exam with 1 incomplete" in review

    save(rosa, sitting, 1, **whole)
    assert "1 of 1 answered" in words(rosa.get(f"{sitting}/review").text)


def test_an_incomplete_answer_still_earns_its_part(rosa: TestClient, case: str) -> None:
    sitting = begin(rosa)
    save(rosa, sitting, 1, **CASES[case][1])
    finish(rosa, sitting)

    assert "partly right" in rosa.get(f"{sitting}/report").text
