"""Learners in the database."""

import datetime as dt

from sqlmodel import Session, select

from app.db.tables import Learner
from app.web.clock import milliseconds


def find_learner(db: Session, key: str) -> Learner | None:
    """The learner whose cookie holds `key`, or None before the first write."""
    return db.exec(select(Learner).where(Learner.key == key)).first()


def enrol(db: Session, key: str, now: dt.datetime) -> Learner:
    """The learner of `key`, written down at the first thing worth keeping."""
    learner = find_learner(db, key)
    if learner is None:
        learner = Learner(key=key, created_at=milliseconds(now))
        db.add(learner)
        db.flush()
    return learner
