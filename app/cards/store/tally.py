"""What grades add to the sums of their study day, and what undoing takes away."""

import datetime as dt

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.cards.store.study_days import add_to_day, work_of_grade
from app.db.tables import TABLES
from app.scheduling import CardState, ReviewEvent, retrievability

LOG = TABLES["review"]
_UNDONE = select(LOG.c.rating, LOG.c.recall, LOG.c.milliseconds, LOG.c.study_day).where(
    LOG.c.id == bindparam("number")
)


def retrievability_before(before: CardState | None, day: dt.date) -> float | None:
    """The chance that a card is still known; none while it is in its steps."""
    if before is None or before.state != "review":
        return None
    return retrievability(before, day)


def count(
    db: Session,
    learner_id: int,
    before: CardState | None,
    grade: ReviewEvent,
    milliseconds: int | None,
) -> None:
    """Add a grade to its day; `before` is where the card stood."""
    again = _again(before, grade.day)
    chance = retrievability_before(before, grade.day)
    work = work_of_grade(grade.rating, chance, milliseconds, again=again)
    add_to_day(db, learner_id, grade.day.isoformat(), work)


def uncount(db: Session, learner_id: int, number: int, before: CardState | None) -> None:
    """Take an undone grade from its day; `before` is where the card stands again."""
    row = db.connection().execute(_UNDONE, {"number": number}).one()
    rating, chance, took, day = row
    again = _again(before, dt.date.fromisoformat(day))
    work = work_of_grade(rating, chance, took, again=again)
    add_to_day(db, learner_id, day, -work)


def _again(before: CardState | None, day: dt.date) -> bool:
    return before is not None and before.last_day == day
