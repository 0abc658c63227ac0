"""Answers to a mock exam that waited in a browser without a network."""

from sqlmodel import Session, select

from app.database.tables import SittingAnswer
from tests.conftest import Clock
from tests.exams.sitting import answer, begin, kept, save, shown

MINUTE = 60_000


def test_an_answer_that_waited_is_saved(htmx, clock: Clock, session: Session) -> None:
    sitting = begin(htmx)
    page = shown(htmx, sitting)
    clock.tick(minutes=3)

    saved = save(htmx, sitting, 1, **{**page, "answer": "x", "age": 2 * MINUTE})

    assert saved.status_code == 200
    assert answer(session) == ["x"]
    assert kept(session).milliseconds == MINUTE  # looked at before it waited


def test_an_older_one_is_not_put_over_a_newer_one_from_another_device(
    htmx, clock: Clock, session: Session
) -> None:
    sitting = begin(htmx)
    page = shown(htmx, sitting)
    clock.tick(minutes=2)
    save(htmx, sitting, 1, **{**shown(htmx, sitting), "answer": "y"})
    clock.tick(minutes=1)

    late = save(htmx, sitting, 1, **{**page, "answer": "x", "age": 2 * MINUTE})

    assert late.status_code == 409
    assert "Question 1: a newer answer was saved at 12:02\N{NO-BREAK SPACE}PM UTC" in late.text
    assert answer(session) == ["y"]


def test_a_newer_one_is_put_over_an_older_one_from_another_device(
    htmx, clock: Clock, session: Session
) -> None:
    sitting = begin(htmx)
    page = shown(htmx, sitting)
    clock.tick(minutes=1)
    save(htmx, sitting, 1, **{**shown(htmx, sitting), "answer": "y"})
    clock.tick(minutes=2)

    late = save(htmx, sitting, 1, **{**page, "answer": "x", "age": MINUTE})

    assert late.status_code == 200
    assert answer(session) == ["x"]


def test_one_that_arrived_although_its_answer_got_lost_is_saved_again(
    htmx, clock: Clock, session: Session
) -> None:
    sitting = begin(htmx)
    sent = {**shown(htmx, sitting), "answer": "x"}
    clock.tick(minutes=1)
    save(htmx, sitting, 1, **sent)
    clock.tick(minutes=1)

    again = save(htmx, sitting, 1, **{**sent, "age": MINUTE + 1})

    assert again.status_code == 200
    assert answer(session) == ["x"]
    assert kept(session).milliseconds == MINUTE


def test_none_was_given_before_the_exam_began(htmx, clock: Clock, session: Session) -> None:
    sitting = begin(htmx)
    page = shown(htmx, sitting)
    begun = int(clock.now.timestamp() * 1000)
    clock.tick(minutes=1)

    save(htmx, sitting, 1, **{**page, "answer": "x", "age": 10**15})

    assert kept(session).at == begun


def test_after_the_end_it_is_refused_however_old_it_is(
    htmx, clock: Clock, session: Session
) -> None:
    sitting = begin(htmx)
    page = shown(htmx, sitting)
    clock.tick(minutes=7)

    late = save(htmx, sitting, 1, **{**page, "answer": "x", "age": 5 * MINUTE})

    assert late.status_code == 409
    assert "the exam has ended" in late.text
    assert session.exec(select(SittingAnswer)).all() == []
