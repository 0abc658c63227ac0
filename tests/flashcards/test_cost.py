"""What a card costs: few questions to the database, however much was learned."""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, insert
from sqlmodel import Session, select

from app.database.tables import CardStateRow, Learner, Review
from app.spaced_repetition import queue as spaced_repetition_queue
from app.spaced_repetition import review_log
from app.spaced_repetition.queue import QueueScope
from tests.databases import ABOUT_SQLITE
from tests.flashcards.conftest import Hands, fields
from tests.flashcards.course import EditableLiveCourse, cards_of
from tests.spaced_repetition.rebuilding import rebuild

MANY = 2000
DAY = dt.date(2026, 6, 9)


@pytest.fixture
def asked(app: FastAPI) -> Iterator[list[str]]:
    """Every statement that the app sends, without the opening of transactions."""
    statements: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        if statement.split()[0] in {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}:
            statements.append(statement)

    event.listen(app.state.engine, "before_cursor_execute", note)
    yield statements
    event.remove(app.state.engine, "before_cursor_execute", note)


def a_grade(client: TestClient, card: str) -> Callable[[], object]:
    """The form of a card that is shown, filled with “good”, to be sent by htmx."""
    address = f"/flashcards/{card}/reviews"
    page = client.get(f"/flashcards?show=1&card={card}").text
    body = {**fields(page, address), "rating": 3}
    return lambda: client.post(address, data=body, headers={"HX-Request": "true"})


def test_a_grade_asks_the_database_eleven_times_at_most(hands, client, asked) -> None:
    hands.grade(3)
    good = a_grade(client, hands.card())
    asked.clear()

    good()

    assert 1 <= len(asked) <= 11, asked  # one of them reads the list of the day


def test_an_answer_shown_asks_twice(hands, client, asked) -> None:
    hands.grade(3)
    asked.clear()

    client.get("/flashcards/weights-1/answer")

    assert len(asked) <= 2, asked


def test_a_grade_toward_an_exam_asks_no_more(hands, client, asked, session) -> None:
    hands.grade(3)
    session.exec(select(Learner)).one().exam_day = "2026-07-03"
    session.commit()
    good = a_grade(client, hands.card())
    asked.clear()

    good()

    assert 1 <= len(asked) <= 11, asked  # one of them reads the list of the day


def veteran(session: Session, count: int) -> int:
    """A learner with `count` cards, a tenth of them due, and ten reviews of each."""
    learner = Learner(key=f"veteran{count}", created_at=0)
    session.add(learner)
    session.flush()
    rows = [
        {
            "learner_id": learner.id,
            "card": f"weights-{n}",
            "note": f"weights-{n}",
            "topic": "weights",
            "state": "review",
            "stability": 20.0 + n % 50,
            "difficulty": 5.0,
            "due_day": (DAY + dt.timedelta(days=n % 10)).isoformat(),
            "due_at": 0,
            "first_day": "2026-01-01",
            "last_day": "2026-05-20",
            "last_at": 1_779_000_000_000 + n,
            "reviews": 10,
            "turns": 10,
        }
        for n in range(1, count + 1)
    ]
    session.execute(insert(CardStateRow), rows)
    log = [
        {
            "learner_id": learner.id,
            "token": f"{learner.id}-{n}-{time_}",
            "card": f"weights-{n}",
            "rating": 3,
            "study_day": "2026-05-20",
            "at": time_,
        }
        for n in range(1, count + 1)
        for time_ in range(10)
    ]
    session.execute(insert(Review), log)
    session.commit()
    assert learner.id
    return learner.id


def whole_tables(session: Session, statements: list[tuple[str, Any]]) -> list[str]:
    """The steps of SQLite's plans that walk through a whole table of learners."""
    connection = session.connection()
    steps = [
        row[3]
        for statement, values in statements
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
    ]
    assert any("USING" in step for step in steps)
    return [s for s in steps if re.match(r"SCAN (memory|review|suspension)", s)]


@pytest.fixture
def explained(session: Session, app: FastAPI) -> Iterator[Callable[[], list[str]]]:
    """Which whole tables were walked through so far."""
    statements: list[tuple[str, Any]] = []

    def note(_connection, _cursor, statement, values, *_rest) -> None:
        if statement.startswith("SELECT"):
            statements.append((statement, values))

    event.listen(app.state.engine, "before_cursor_execute", note)
    yield lambda: whole_tables(session, statements.copy())
    event.remove(app.state.engine, "before_cursor_execute", note)


@ABOUT_SQLITE
def test_the_queue_of_a_veteran_is_found_by_its_indexes(session, explained, asked) -> None:
    """20,000 reviews and 2,000 cards, 200 of them due."""
    learner = veteran(session, MANY)
    course = EditableLiveCourse(*cards_of("weights", MANY + 50)).get_current_course()
    limits = QueueScope(DAY, 1_781_000_000_000)
    asked.clear()

    queue = spaced_repetition_queue.load_review_queue(session, learner, limits)
    left = spaced_repetition_queue.count_unseen_cards_by_topic(session, learner, course, limits)
    last = review_log.find_last_row_if_undoable(session, learner)

    assert (queue.review_count, left) == (MANY // 10, {"weights": 50})
    assert last is not None
    assert len(asked) == 3
    assert explained() == []


def test_the_whole_memory_can_be_made_again_from_a_long_log(session) -> None:
    learner = veteran(session, 200)
    cards = EditableLiveCourse(*cards_of("weights", 200)).get_current_course().cards

    rebuild(session, learner, cards)

    rows = session.exec(select(CardStateRow).where(CardStateRow.learner_id == learner)).all()
    assert len(rows) == 200
    assert {row.reviews for row in rows} == {10}


def test_forty_grades_of_one_card_leave_the_log_whole(hands: Hands, session) -> None:
    for number in range(40):
        hands.grade(number % 4 + 1, "/flashcards?card=weights-1")

    assert len(session.exec(select(Review)).all()) == 40
    (memory,) = session.exec(select(CardStateRow)).all()
    assert (memory.turns, memory.reviews) == (40, 40)
