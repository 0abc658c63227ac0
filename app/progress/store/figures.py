"""What the figures of Progress are made of: sums, made where the rows lie."""

import datetime as dt
from collections.abc import Collection
from typing import Any

from sqlalchemy import bindparam, func, literal, select
from sqlmodel import Session, SQLModel

from app.progress.figures import Studied, StudyDays

# Statements are built once: making one costs more than running it.
_DAY = SQLModel.metadata.tables["study_day"]
_MEMORY = SQLModel.metadata.tables["memory"]
_SUMS = [
    _DAY.c[name]
    for name in (
        "answers",
        "reviews",
        "asked",
        "recalled",
        "expected",
        "milliseconds",
    )
]
_mine = _DAY.c.learner_id == bindparam("learner")
_worked = _DAY.c.answers + _DAY.c.reviews > 0
# Undone grades leave a day without work, which is no day of study.
_RECENT = select(_DAY.c.day, literal(1), *_SUMS).where(
    _mine, _worked, _DAY.c.day >= bindparam("since")
)
_BEFORE = select(func.min(_DAY.c.day), func.count(), *map(func.sum, _SUMS)).where(
    _mine, _worked, _DAY.c.day < bindparam("since")
)
_DAYS = _BEFORE.union_all(_RECENT)

_DUE = (
    select(_MEMORY.c.due_day, func.count())
    .where(
        _MEMORY.c.learner_id == bindparam("learner"),
        _MEMORY.c.due_day <= bindparam("last"),
        _MEMORY.c.suspended.is_(False),
    )
    .group_by(_MEMORY.c.due_day)
)
_DUE_OF_COURSE = _DUE.where(_MEMORY.c.card.not_in(bindparam("gone", expanding=True)))


def study_days(db: Session, learner_id: int, since: dt.date) -> StudyDays:
    """What was done on each day from `since` on, and in sum before."""
    if not learner_id:
        return StudyDays()
    values = {"learner": learner_id, "since": since.isoformat()}
    (first, earlier, *sums), *rows = db.connection().execute(_DAYS, values).all()
    recent = {day: Studied(*rest) for day, _, *rest in rows}
    begun = min(day for day in (first or "9999-12-31", *recent))
    return StudyDays(
        recent=recent,
        before=Studied(*(value or 0 for value in sums)),
        earlier=earlier,
        first=dt.date.fromisoformat(begun) if earlier or recent else None,
    )


def due_by_day(
    db: Session, learner_id: int, last: dt.date, gone: Collection[str] = ()
) -> dict[str, int]:
    """How many cards come back on each day up to `last`, overdue ones included.

    `gone` are cards that the course no longer holds.
    """
    if not learner_id:
        return {}
    values: dict[str, Any] = {"learner": learner_id, "last": last.isoformat()}
    statement = _DUE
    if gone:
        statement, values["gone"] = _DUE_OF_COURSE, list(gone)
    return {row[0]: row[1] for row in db.connection().execute(statement, values)}
