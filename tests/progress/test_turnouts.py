"""What was predicted is kept once a day, and held against the exams that followed."""

import datetime as dt
import json

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.clock import to_milliseconds
from app.content.course import Course
from app.database.tables import Attempt, Learner, ScorePredictionRow, Sitting
from app.progress.predictions import (
    ScorePrediction,
    SittingResult,
    attach_predictions_to_results,
    describe_count_of_results_in_range,
)
from app.progress.progress_page import build_prediction_chart
from app.study_plan.store import RULE
from tests.conftest import Clock
from tests.progress.test_today import Desk

DAY = dt.date(2026, 6, 1)


def predicted(at: int, exam: str = "mock", low: int = 29, high: int = 37) -> ScorePrediction:
    return ScorePrediction(exam, DAY, at, 50, 33.2, low, high)


def result(started: int, score: float, answered: int = 50, questions: int = 50):
    return SittingResult(started, "mock", started, score, questions, answered)


@pytest.mark.parametrize(
    ("score", "inside"), [(28.4, False), (29, True), (37.4, True), (38, False)]
)
def test_a_result_is_inside_the_range_or_not(score: float, inside: bool):
    (turnout,) = attach_predictions_to_results([result(2, score)], [predicted(1)])

    assert turnout.is_inside_range is inside


def test_the_newest_prediction_before_the_start_counts():
    told = [predicted(1, low=10), predicted(5, low=20), predicted(9, low=30)]

    (turnout,) = attach_predictions_to_results([result(7, 25)], told)

    assert turnout.last_prediction_before == told[1]


def test_a_prediction_of_another_exam_or_made_later_is_none():
    (turnout,) = attach_predictions_to_results(
        [result(7, 33)], [predicted(1, "other"), predicted(9)]
    )

    assert turnout.last_prediction_before is None
    assert not turnout.is_comparable


def test_a_paper_that_was_left_open_is_not_compared():
    found = attach_predictions_to_results(
        [result(2, 33, answered=45), result(3, 20, answered=44)], [predicted(1)]
    )

    assert [turnout.is_comparable for turnout in found] == [True, False]
    said = "The one full mock exam to compare so far lay inside its range"
    assert describe_count_of_results_in_range(found).startswith(said)
    rows = build_prediction_chart(found, lambda _at: DAY).rows
    assert [row.verdict for row in rows] == [
        "not compared: 6 unanswered, counted as wrong",
        "inside",
    ]


def test_a_short_paper_is_read_in_the_measure_of_the_prediction():
    (turnout,) = attach_predictions_to_results(
        [result(2, 20, answered=30, questions=30)], [predicted(1)]
    )

    assert turnout.scaled_score == pytest.approx(20 * 50 / 30)
    assert turnout.is_inside_range


def test_the_count_is_said_as_it_is():
    found = attach_predictions_to_results([result(n, 33) for n in range(2, 9)], [predicted(1)])
    missed = attach_predictions_to_results([result(20, 45)], [predicted(1)])

    assert describe_count_of_results_in_range([*found, *missed]).startswith(
        "7 of 8 results lay inside"
    )
    assert describe_count_of_results_in_range([]) == ""


# --- the log --------------------------------------------------------------------------


@pytest.fixture
def desk(rosa: TestClient, session: Session, clock: Clock, course: Course) -> Desk:
    """A learner who has answered every question of the course."""
    rosa.post("/concepts/weights/readings", data={"section": "two-bytes-each"})
    desk = Desk(session, clock)
    for slug, topic in course.topics.items():
        desk.answers(list(topic.questions), 1.0, slug)
    return desk


def log(session: Session) -> list[ScorePredictionRow]:
    session.expire_all()
    return list(session.exec(select(ScorePredictionRow)))


@pytest.mark.usefixtures("desk")
def test_the_first_prediction_of_a_day_is_kept(rosa: TestClient, session: Session):
    rosa.get("/")

    (row,) = log(session)
    assert (row.exam, row.day, row.rule) == ("short", "2026-06-09", RULE)
    assert row.low <= row.expected <= row.high <= row.questions == 5
    assert (row.target, row.chance) == (None, None)


def test_a_second_look_keeps_nothing_more(rosa: TestClient, desk: Desk, session: Session):
    rosa.get("/")
    (first,) = log(session)
    told = first.expected
    desk.answers(["gone"], 0.0, "weights")  # a change, so that the page is made anew

    rosa.get("/")
    rosa.get("/progress")

    (row,) = log(session)
    assert row.expected == told


@pytest.mark.usefixtures("desk")
def test_another_day_keeps_another(rosa: TestClient, session: Session, clock: Clock):
    rosa.get("/")
    clock.tick(days=1)

    rosa.get("/progress")

    assert [row.day for row in log(session)] == ["2026-06-09", "2026-06-10"]


@pytest.mark.usefixtures("desk")
def test_the_chance_of_a_target_is_kept_with_it(rosa: TestClient, session: Session):
    form = {"target": "60", "minutes_a_day": "30", "retention": "90"}
    rosa.post("/settings", data=form)

    rosa.get("/")

    (row,) = log(session)
    assert row.target == 60
    assert row.chance is not None
    assert 0 < row.chance < 1


@pytest.mark.usefixtures("desk")
def test_looking_is_no_change_of_the_learner(rosa: TestClient, session: Session):
    before = session.exec(select(Learner.changes)).one()

    rosa.get("/")

    session.expire_all()
    assert session.exec(select(Learner.changes)).one() == before


def test_before_anything_was_read_or_answered_nothing_is_kept(rosa: TestClient, session: Session):
    rosa.post("/settings", data={"minutes_a_day": "30"})

    rosa.get("/")

    assert log(session) == []


def test_a_finished_exam_stands_beside_its_prediction(
    rosa: TestClient, desk: Desk, session: Session, clock: Clock
):
    rosa.get("/")
    assert "Nothing to compare yet" in rosa.get("/progress").text
    clock.tick(hours=1)
    sit(session, desk, clock, right=4)

    page = rosa.get("/progress").text

    assert "The one full mock exam to compare so far lay inside its range" in page
    assert "4 of 5" in page


def sit(session: Session, desk: Desk, clock: Clock, right: int) -> None:
    """A closed sitting of five questions, all answered."""
    sitting = Sitting(
        learner_id=desk.id,
        token="s",
        exam="short",
        seed=1,
        paper=json.dumps([[n, f"q{n}", "r", 1, "1"] for n in range(5)]),
        started_at=to_milliseconds(clock.now),
        deadline_at=to_milliseconds(clock.now),
        closed_at=to_milliseconds(clock.now),
        closed_by="learner",
    )
    session.add(sitting)
    session.flush()
    session.add_all(
        Attempt(
            learner_id=desk.id,
            token=f"sitting-{n}",
            item=f"q{n}",
            revision="r",
            topic="weights",
            seed=1,
            context="exam",
            sitting_id=sitting.id,
            raw="{}",
            parsed="{}",
            score=float(n < right),
            first=True,
            study_day="2026-06-09",
            at=to_milliseconds(clock.now),
        )
        for n in range(5)
    )
    session.commit()
    desk.card("left-the-course", "2027-01-01")  # notes a change
