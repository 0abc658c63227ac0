"""The addresses of calendars: at most one for each learner."""

import datetime as dt

from sqlalchemy import delete, insert, select
from sqlmodel import Session, col

from app.db.tables import CalendarFeed
from app.web.clock import milliseconds


def feed_key(db: Session, learner_id: int) -> str:
    """The key in the learner's own address; empty without one."""
    mine = col(CalendarFeed.learner_id) == learner_id
    return db.scalar(select(col(CalendarFeed.key)).where(mine)) or ""


def feed_owner(db: Session, key: str) -> int:
    """The learner whose address holds this key; 0 for nobody's."""
    theirs = col(CalendarFeed.key) == key
    return db.scalar(select(col(CalendarFeed.learner_id)).where(theirs)) or 0


def renew_feed(db: Session, learner_id: int, key: str, now: dt.datetime) -> None:
    """Let `key` lead to the calendar, and no other any more; none where it is empty."""
    mine = col(CalendarFeed.learner_id) == learner_id
    db.execute(delete(CalendarFeed).where(mine))
    if key:
        row = {"learner_id": learner_id, "key": key, "at": milliseconds(now)}
        db.execute(insert(CalendarFeed).values(**row))
