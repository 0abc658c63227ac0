"""A part of a drawing in a mock exam: shown, saved, judged at the end."""

import dataclasses

import pytest
from sqlmodel import select

from app.database.tables import Attempt
from app.markup.model import ExamBlueprint, SourceLocation
from app.questions.types.place import PlaceRegion
from tests.exams.sitting import answer, begin, finish, save
from tests.quiz.bank import text
from tests.quiz.course import EditableLiveCourse
from tests.quiz.test_place import PLACE

LINE = PlaceRegion("lmnp", text("The line"), False, text("No."), region="line")
# A mock exam asks for a part among three at least.
OF_THREE = dataclasses.replace(
    PLACE,
    answer=dataclasses.replace(PLACE.answer, regions=(*PLACE.answer.regions, LINE)),
)
SHORT = ExamBlueprint("short", "Short", 1, 5, {"2": 1}, SourceLocation("exams/short.toml", 1))


@pytest.fixture
def live_course() -> EditableLiveCourse:
    held = EditableLiveCourse(OF_THREE)
    held.held = dataclasses.replace(held.held, exams={"short": SHORT})
    return held


def test_a_part_is_chosen_saved_and_judged(rosa, session) -> None:
    sitting = begin(rosa)
    page = rosa.get(f"{sitting}/questions/1").text
    assert 'for="q-place-bcdf"' in page
    assert "It waits." not in page

    save(rosa, sitting, 1, answer="ghjk")
    assert answer(session) == ["ghjk"]
    assert 'value="ghjk"' in rosa.get(f"{sitting}/questions/1").text
    finish(rosa, sitting)

    session.rollback()
    attempts = session.exec(select(Attempt)).all()
    assert [(a.item, a.score) for a in attempts] == [("place", 0.0)]
    solution = rosa.get(f"{sitting}/questions/1").text
    assert "Not right." in solution
    assert "your answer" in solution


def test_a_question_left_open_shows_its_solution(rosa) -> None:
    sitting = begin(rosa)
    finish(rosa, sitting)

    solution = rosa.get(f"{sitting}/questions/1").text

    assert "your answer" not in solution
