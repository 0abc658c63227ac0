"""Every attempt as plain rows, for analysis elsewhere."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from sqlmodel import Session, col, select

from app.db.tables import Attempt, Learner

COLUMNS = [
    "id",
    "learner_id",
    "item",
    "revision",
    "topic",
    "seed",
    "context",
    "sitting_id",
    "raw",
    "parsed",
    "score",
    "first",
    "certainty",
    "hints",
    "milliseconds",
    "study_day",
    "at",
]


def attempts(session: Session, course: str | None = None) -> Iterator[dict[str, Any]]:
    """The attempts of a course, or all, in the order of the log; `at` is in UTC."""
    wanted = select(Attempt).order_by(col(Attempt.id))
    if course is not None:
        mine = col(Learner.id) == col(Attempt.learner_id)
        wanted = wanted.join(Learner, mine).where(Learner.course == course)
    for row in session.exec(wanted).yield_per(1000):
        values = {name: getattr(row, name) for name in COLUMNS}
        moment = dt.datetime.fromtimestamp(row.at / 1000, dt.UTC)
        values["at"] = moment.isoformat(timespec="milliseconds")
        yield values
