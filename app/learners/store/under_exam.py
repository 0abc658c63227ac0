"""What a learner is being examined in: nobody may show it meanwhile."""

import datetime as dt
import json

from sqlalchemy import bindparam, select
from sqlmodel import Session, SQLModel

from app.web.clock import milliseconds

SITTING = SQLModel.metadata.tables["sitting"]
_PAPERS = select(SITTING.c.paper).where(
    SITTING.c.learner_id == bindparam("of_learner"),
    SITTING.c.closed_at.is_(None),
    SITTING.c.deadline_at > bindparam("now"),
)


def in_running_exam(db: Session, learner_id: int, now: dt.datetime) -> frozenset[str]:
    """Questions of a mock exam that the learner is sitting."""
    if not learner_id:
        return frozenset()
    values = {"of_learner": learner_id, "now": milliseconds(now)}
    papers = db.connection().execute(_PAPERS, values).scalars()
    return frozenset(slot[1] for paper in papers for slot in json.loads(paper))
