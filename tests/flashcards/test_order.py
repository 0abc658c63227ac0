"""Grades count in the order in which they were given, whenever they were written."""

from sqlmodel import select

from app.database.tables import CardStateRow, Learner
from tests.flashcards.conftest import Hands
from tests.spaced_repetition.rebuilding import rebuild


def columns(session) -> dict:
    session.rollback()
    return session.exec(select(CardStateRow)).one().model_dump(exclude={"id"})


def test_a_grade_given_while_the_clock_was_set_back_takes_its_place(
    hands: Hands, session, live_course, clock
) -> None:
    clock.tick(days=3)
    hands.grade(4, "/flashcards?card=weights-1")
    clock.tick(days=-2)
    hands.grade(1, "/flashcards?card=weights-1")
    before = columns(session)

    learner = session.exec(select(Learner)).one()
    rebuild(session, learner.id, live_course.get_current_course().cards)
    session.commit()

    assert columns(session) == before
    assert before["first_day"] < before["last_day"]
