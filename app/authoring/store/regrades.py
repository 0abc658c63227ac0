"""Answers to one question that may be graded again, and the rows that say so."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from app.db.counted_scores import ATTEMPT, GRADED, REGRADE, REVISION, SCORE
from app.db.tables import Learner
from app.web.clock import to_milliseconds

_IN_COURSE = select(col(Learner.id)).where(col(Learner.course) == bindparam("course"))
_ANSWERED = (
    select(
        ATTEMPT.c.id,
        ATTEMPT.c.learner_id,
        func.coalesce(ATTEMPT.c.sitting_id, 0),
        ATTEMPT.c.first,
        REVISION,
        ATTEMPT.c.seed,
        ATTEMPT.c.raw,
        SCORE,
        func.coalesce(REGRADE.c.id, 0),
    )
    .select_from(GRADED)
    .where(
        ATTEMPT.c["item"] == bindparam("item"),
        bindparam("revision") != REVISION,
        ATTEMPT.c.learner_id.in_(_IN_COURSE),
    )
    .order_by(ATTEMPT.c.id)
)
_THEIRS = (
    _IN_COURSE.where(
        col(Learner.id).in_(
            select(ATTEMPT.c.learner_id).where(ATTEMPT.c["item"] == bindparam("item"))
        )
    )
    .order_by(col(Learner.id))
    .with_for_update(read=True, key_share=True)
)


@dataclasses.dataclass(frozen=True, slots=True)
class RegradableAttempt:
    """An answer with the score that counts of it and the wording behind the score.

    `sitting` is 0 outside of mock exams, `raw` the JSON that was sent; `regrade` is the
    newest one, 0 for none.
    """

    attempt: int
    learner: int
    sitting: int
    first: bool
    revision: str
    seed: int
    raw: str
    score: float
    regrade: int


@dataclasses.dataclass(frozen=True, slots=True)
class NewScore:
    """The score of an answer by the key of a wording."""

    answer: RegradableAttempt
    revision: str
    score: float


def answered(db: Session, course: str, item: str, revision: str) -> list[RegradableAttempt]:
    """The answers to a question that another wording than `revision` graded."""
    values = {"course": course, "item": item, "revision": revision}
    return [RegradableAttempt(*row) for row in db.connection().execute(_ANSWERED, values)]


def lock_answerers(db: Session, course: str, item: str) -> frozenset[int]:
    """Who answered a question; none of them is erased before this transaction ends."""
    values = {"course": course, "item": item}
    rows = db.connection().execute(_THEIRS, values)
    return frozenset(number for (number,) in rows if number)


def add(db: Session, rows: Sequence[NewScore], now: dt.datetime) -> list[int]:
    """Write regrades; returns the learner of each that nobody else wrote meanwhile."""
    values = [
        {
            "attempt_id": row.answer.attempt,
            "learner_id": row.answer.learner,
            "after": row.answer.regrade,
            "revision": row.revision,
            "score": row.score,
            "at": to_milliseconds(now),
        }
        for row in rows
    ]
    if not values:
        return []
    statement = _insert(db.connection().dialect.name)
    return list(db.connection().execute(statement, values).scalars())


@functools.cache
def _insert(dialect: str) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(REGRADE).on_conflict_do_nothing().returning(REGRADE.c.learner_id)
