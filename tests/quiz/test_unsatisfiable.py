"""A computed question whose parameters cannot be satisfied: some, or none of them."""

import dataclasses

import pytest
from sqlmodel import Session, select

from app.database.tables import Attempt, Learner
from app.exams.answer_merge import AnswerState
from app.exams.forms import StartExamForm
from app.exams.sitting import SittingRequest, close_and_grade_sitting, draw_sitting, start_sitting
from app.exams.store import AnswerChange, load_sitting, save_answer
from app.markup.expressions import ExpressionError
from app.markup.model import ExamBlueprint, QuestionParameters
from app.questions import model
from app.questions.model import Question, draw_variant
from tests.conftest import Clock
from tests.quiz.course import COMPUTED, EditableLiveCourse

ADDRESS = "/quiz/kv-cache/computed"


def with_answer(expression: str, count: int = 4) -> Question:
    params = {"n": tuple(float(n) for n in range(count))}
    lets = (("right", expression), ("half", "right / 2"))
    return dataclasses.replace(COMPUTED, computed=QuestionParameters(params, lets))


HOLES = with_answer("12 GB / (n * (n - 2))")
NONE = with_answer("1 GB / (n - n)")


@pytest.fixture
def live_course() -> EditableLiveCourse:
    return EditableLiveCourse(HOLES, dataclasses.replace(NONE, id="never"))


def test_a_combination_without_an_answer_gives_way_to_the_next() -> None:
    drawn = [draw_variant(HOLES, seed).parameter_values["n"] for seed in range(8)]

    assert drawn == [1, 1, 3, 3, 1, 1, 3, 3]
    assert draw_variant(HOLES, 4) == draw_variant(HOLES, 4)


def test_a_question_with_holes_is_asked_and_answered(client, form, session) -> None:
    for _ in range(4):
        sent = form(client.get(ADDRESS).text)
        answered = client.post(sent.action, data={**sent.values, "answer": "1 GB"})
        assert answered.status_code == 303

    assert len(session.exec(select(Attempt)).all()) == 4


def test_a_question_without_any_answer_says_so_and_costs_nothing(client, form, session) -> None:
    sent = form(client.get(ADDRESS).text)

    shown = client.get("/quiz/kv-cache/never")
    posted = client.post("/quiz/kv-cache/never/attempts", data={**sent.values, "answer": "1 GB"})

    for refused in (shown, posted):
        assert refused.status_code == 409
        assert "its numbers have no answer" in refused.text
        assert "division by zero" in refused.text
    assert session.exec(select(Attempt)).all() == []
    assert client.get("/quiz/kv-cache").status_code == 200


def test_too_many_combinations_to_look_at_end_in_a_refusal() -> None:
    with pytest.raises(ExpressionError, match="has no value"):
        draw_variant(with_answer("1 GB / (n - n)", 10**5), 0)
    assert model.count_combinations(HOLES.computed) == 4


def test_a_paper_passes_over_a_question_that_has_no_answer(
    session: Session, live_course: EditableLiveCourse, clock: Clock
) -> None:
    learner = Learner(key="k", created_at=0)
    session.add(learner)
    session.flush()
    blueprint = ExamBlueprint("e", "E", 2, 2, {"2": 2}, HOLES.place)
    wish = StartExamForm("t", 1.0, all_question_types=True)

    course = live_course.get_current_course()
    wanted = SittingRequest(blueprint, tuple(course.questions.values()), wish)
    drawn = draw_sitting(session, course, learner.id, wanted)
    number = start_sitting(session, course, learner.id, drawn, clock.now)

    sat = load_sitting(session, learner.id, number)
    assert [slot.question_id for slot in sat.items] == ["computed"]


def test_a_paper_ends_although_the_numbers_of_a_question_have_no_answer_any_more(
    session: Session, live_course: EditableLiveCourse, clock: Clock
) -> None:
    """The estimator was changed while the exam was sat; its wording is the same."""
    learner = Learner(key="k", created_at=0)
    session.add(learner)
    session.flush()
    blueprint = ExamBlueprint("e", "E", 1, 2, {"2": 1}, HOLES.place)
    wish = StartExamForm("t", 1.0, all_question_types=True)
    course = live_course.get_current_course()
    wanted = SittingRequest(blueprint, tuple(course.questions.values()), wish)
    drawn = draw_sitting(session, course, learner.id, wanted)
    number = start_sitting(session, course, learner.id, drawn, clock.now)
    sat = load_sitting(session, learner.id, number)
    answered = AnswerState({"answer": ["1 GB"]})
    save_answer(session, sat, AnswerChange(1, answered), clock.now)
    live_course.edit("computed", computed=NONE.computed)

    close_and_grade_sitting(session, live_course.get_current_course(), sat, "learner", clock.now)

    (attempt,) = session.exec(select(Attempt)).all()
    assert attempt.score == 0
