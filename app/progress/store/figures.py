"""What the figures of Progress are made of: sums, made where the rows lie."""

import datetime as dt

from sqlalchemy import bindparam, func, literal, select
from sqlmodel import Session

from app.cards.store import DayTotals
from app.db.tables import TABLES
from app.progress.figures import StudyHistory

# Statements are built once: making one costs more than running it.
_DAY = TABLES["study_day"]
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


def study_days(db: Session, learner_id: int, since: dt.date) -> StudyHistory:
    """What was done on each day from `since` on, and in sum before."""
    if not learner_id:
        return StudyHistory()
    values = {"learner": learner_id, "since": since.isoformat()}
    (first, earlier, *sums), *rows = db.connection().execute(_DAYS, values).all()
    recent = {day: DayTotals(*rest) for day, _, *rest in rows}
    begun = min(day for day in (first or "9999-12-31", *recent))
    return StudyHistory(
        recent=recent,
        before=DayTotals(*(value or 0 for value in sums)),
        earlier=earlier,
        first=dt.date.fromisoformat(begun) if earlier or recent else None,
    )
