"""How long a learner takes for a question, as the plan counts it."""

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.accounts.learner_store import load_learner_by_id
from app.content.course import Course
from app.database.tables import Attempt
from app.study_plan.facts import Paces
from app.study_plan.store import load_learner_facts
from tests.conftest import Clock
from tests.progress.test_today import Desk


def test_answers_that_nobody_reads_so_fast_say_nothing_of_the_pace(
    rosa: TestClient, session: Session, clock: Clock, course: Course, subtests: pytest.Subtests
):
    rosa.post("/settings", data={"minutes_a_day": "30"})
    desk = Desk(session, clock)
    desk.answers([f"q{n}" for n in range(30)], 1.0, "weights")
    clock.tick(days=1)
    usual = Paces().question_minutes
    for milliseconds, is_counted in {
        None: False,
        2_000: False,
        6_000: True,
        700_000: False,
    }.items():
        with subtests.test(milliseconds):
            for answer in session.exec(select(Attempt)):
                answer.milliseconds = milliseconds
            session.commit()
            learner = load_learner_by_id(session, desk.id)

            facts = load_learner_facts(session, learner, course, clock.now.date())

            assert (facts.paces.question_minutes < usual) is is_counted
            assert facts.paces.question_minutes >= usual / 4
