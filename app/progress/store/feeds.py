"""The addresses of calendars: at most one for each learner."""

import dataclasses
import datetime as dt

from sqlalchemy import delete, func, insert, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.db.tables import CalendarFeed, Learner
from app.web.clock import to_milliseconds


def feed_key(db: Session, learner_id: int) -> str:
    """The key in the learner's own address; empty without one."""
    mine = col(CalendarFeed.learner_id) == learner_id
    return db.scalar(select(col(CalendarFeed.key)).where(mine)) or ""


@dataclasses.dataclass(frozen=True, slots=True)
class Feed:
    """Whose calendar it is; `changes` grows with whatever that person writes."""

    learner_id: int
    changes: int


def find_feed(db: Session, key: str) -> Feed | None:
    """The calendar at the address that holds this key; None where there is none."""
    writer = aliased(Learner)
    changes = select(func.sum(col(writer.changes))).where(col(writer.person) == col(Learner.person))
    wanted = (
        select(col(Learner.id), changes.scalar_subquery())
        .join_from(CalendarFeed, Learner, col(Learner.id) == CalendarFeed.learner_id)
        .where(col(CalendarFeed.key) == key)
    )
    row = db.execute(wanted).first()
    return Feed(row[0], row[1]) if row else None


def renew_feed(db: Session, learner_id: int, key: str, now: dt.datetime) -> None:
    """Let `key` lead to the calendar, and no other any more; none where it is empty."""
    mine = col(CalendarFeed.learner_id) == learner_id
    db.execute(delete(CalendarFeed).where(mine))
    if key:
        row = {"learner_id": learner_id, "key": key, "at": to_milliseconds(now)}
        db.execute(insert(CalendarFeed).values(**row))
