"""Every attempt as plain rows, for analysis elsewhere.

`score` and `revision` are what was written with the answer, `current_score` and
`current_revision` what counts since it was graded again.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlmodel import Session, col

from app.db.counted_scores import ATTEMPT, GRADED, REVISION, SCORE
from app.db.tables import Learner

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
    "current_score",
    "current_revision",
]
_COLUMNS = [
    *(ATTEMPT.c[name] for name in COLUMNS if name in ATTEMPT.c),
    SCORE.label("current_score"),
    REVISION.label("current_revision"),
]


def attempts(session: Session, course: str | None = None) -> Iterator[dict[str, Any]]:
    """The attempts of a course, or all, in the order of the log; `at` is in UTC."""
    wanted = select(*_COLUMNS).select_from(GRADED).order_by(ATTEMPT.c.id)
    if course is not None:
        mine = select(col(Learner.id)).where(col(Learner.course) == course)
        wanted = wanted.where(ATTEMPT.c.learner_id.in_(mine))
    rows = session.execute(wanted.execution_options(yield_per=1000))
    for row in rows.mappings():
        moment = dt.datetime.fromtimestamp(row["at"] / 1000, dt.UTC)
        yield {**row, "at": moment.isoformat(timespec="milliseconds")}
