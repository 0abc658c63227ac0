"""Every attempt as plain rows, for analysis elsewhere."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from sqlmodel import Session, col, select

from app.db.tables import Attempt

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


def attempts(session: Session) -> Iterator[dict[str, Any]]:
    """All attempts in the order in which they were made; `at` is in UTC."""
    for row in session.exec(select(Attempt).order_by(col(Attempt.id))).yield_per(1000):
        values = {name: getattr(row, name) for name in COLUMNS}
        moment = dt.datetime.fromtimestamp(row.at / 1000, dt.UTC)
        values["at"] = moment.isoformat(timespec="milliseconds")
        yield values
