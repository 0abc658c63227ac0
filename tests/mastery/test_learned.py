"""Cards added up again after a review are those added up anew, whatever happened."""

import dataclasses
import datetime as dt
import random
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, delete, update
from sqlmodel import Session, col, select

from app.content.library import Library
from app.database.engine import make_engine
from app.database.tables import CardStateRow, Learner, Review
from app.mastery.store import TopicCardTotals, load_card_totals
from app.spaced_repetition import review_log
from app.spaced_repetition.scheduler import ReviewEvent
from tests.cards.rebuilding import rebuild_days
from tests.conftest import Clock
from tests.progress.past import Past, live

NOON = 1_780_000_000_000
PAST = Past(cards=3, reviews=30, answers=2, days=30)
ACTS = ("grade", "grade", "grade", "undo", "aside", "take up", "take out")


@pytest.fixture
def other(database: str) -> Iterator[Engine]:
    """Another process, which has nothing in mind."""
    engine = make_engine(database)
    yield engine
    engine.dispose()


class Student:
    """Somebody with a past, to whom things happen."""

    def __init__(self, app: FastAPI, library: Library, clock: Clock, past: Past = PAST) -> None:
        live(app.state.engine, library, "ada" * 5, past, clock())
        self.engine: Engine = app.state.engine
        self.library, self.clock = library, clock
        with Session(self.engine) as db:
            self.id = db.exec(select(Learner.id)).one() or 0

    def does(self, act: str, card: str) -> None:
        self.clock.tick(minutes=5)
        now, known = self.clock(), self.library.cards[card]
        with Session(self.engine) as db:
            db.connection(execution_options={"writes": True})
            if act == "grade":
                sent = review_log.GradeSubmission(f"{now.timestamp()}")
                given = ReviewEvent(3, now, now.date())
                review_log.record_review(db, self.id, known, given, sent)
            elif act == "undo":
                last = review_log.last_undoable(db, self.id)
                if last is not None:
                    review_log.undo_review(db, self.id, last[0], (now, now.date()))
            elif act == "take out":
                self.take_out(db, card)
            else:
                review_log.set_suspended(db, self.id, known, now, aside=act == "aside")
            db.commit()

    def take_out(self, db: Session, card: str) -> None:
        """Blank the older grades of a card, as when a file is taken out again."""
        rows = db.exec(select(Review).order_by(col(Review.id))).all()
        undone = {row.voids for row in rows}
        old = [row for row in rows[:-1] if row.card == card and row.rating]
        if all(row.id in undone for row in old):
            return
        for row in old:
            row.rating = 0
            db.add(row)
        db.flush()
        db.connection().execute(delete(CardStateRow).where(col(CardStateRow.card) == card))
        rebuild_days(db, self.id)

    def sums(self, engine: Engine, noon: int = NOON) -> TopicCardTotals:
        with Session(engine) as db:
            return load_card_totals(db, self.id, noon)


@pytest.mark.parametrize("seed", range(8))
def test_the_sums_are_those_of_a_process_that_knows_nothing(
    app: FastAPI, library: Library, clock: Clock, database: str, seed: int
):
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    student = Student(app, library, clock)
    cards = sorted(library.cards)

    for _ in range(12):
        act, card = chance.choice(ACTS), chance.choice(cards)
        for _ in range(chance.choice((1, 1, 2))):
            student.does(act, card)
        anew = make_engine(database)
        assert student.sums(app.state.engine) == student.sums(anew), (act, card)
        anew.dispose()


@pytest.mark.parametrize("graded", [False, True])
def test_one_card_put_aside_for_another_is_seen_without_a_review(
    app: FastAPI, library: Library, clock: Clock, database: str, graded: bool
):
    """As many are put aside as before, and the cards never begun are others."""
    student = Student(app, library, clock, dataclasses.replace(PAST, cards=1))
    begun, *fresh = library.cards
    first = next(c for c in fresh if library.cards[c].topic == "weights")
    other = next(c for c in fresh if library.cards[c].topic != "weights")
    student.does("aside", first)
    student.sums(app.state.engine)

    student.does("take up", first)
    student.does("aside", other)
    if graded:
        student.does("grade", begun)

    anew = make_engine(database)
    after = student.sums(app.state.engine)
    assert after == student.sums(anew)
    anew.dispose()


def test_many_reviews_at_once_are_all_seen(
    app: FastAPI, library: Library, clock: Clock, other: Engine
):
    student = Student(app, library, clock)
    student.sums(app.state.engine)

    for number in range(60):
        student.does("grade", sorted(library.cards)[number % 3])

    assert student.sums(app.state.engine) == student.sums(other)


def test_a_new_day_adds_everything_up_again(
    app: FastAPI, library: Library, clock: Clock, other: Engine
):
    student = Student(app, library, clock)
    student.sums(app.state.engine)
    with Session(app.state.engine) as db:
        db.connection(execution_options={"writes": True})
        db.connection().execute(update(CardStateRow).values(topic="moved"))
        db.commit()

    tomorrow = NOON + int(dt.timedelta(days=1).total_seconds() * 1000)

    assert student.sums(app.state.engine, tomorrow) == student.sums(other, tomorrow)
