"""What a learner is being examined in: nobody may show it meanwhile."""

import datetime as dt
import json
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlmodel import Session

from app.db.tables import TABLES
from app.web.clock import to_milliseconds

SITTING = TABLES["sitting"]
_PAPERS = select(SITTING.c.paper).where(
    SITTING.c.learner_id == bindparam("of_learner"),
    SITTING.c.closed_at.is_(None),
    SITTING.c.deadline_at > bindparam("now"),
)
_SAT = select(SITTING.c.paper).where(
    SITTING.c.learner_id == bindparam("of_learner"),
    SITTING.c.closed_at.is_not(None) | (SITTING.c.deadline_at <= bindparam("now")),
)


def in_running_exam(db: Session, learner_id: int, now: dt.datetime) -> frozenset[str]:
    """Questions of a mock exam that the learner is sitting."""
    return _asked(db, _PAPERS, learner_id, now)


def in_past_exams(db: Session, learner_id: int, now: dt.datetime) -> frozenset[str]:
    """Questions of the mock exams that the learner has sat, answered or not."""
    return _asked(db, _SAT, learner_id, now)


def _asked(db: Session, papers: Select[Any], learner_id: int, now: dt.datetime) -> frozenset[str]:
    if not learner_id:
        return frozenset()
    values = {"of_learner": learner_id, "now": to_milliseconds(now)}
    found = db.connection().execute(papers, values).scalars()
    return frozenset(slot[1] for paper in found for slot in json.loads(paper))
