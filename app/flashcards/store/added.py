"""Added cards as the log needs them: how each begins, and what its memory is then."""

import dataclasses
import datetime as dt
from typing import Any

from sqlalchemy import bindparam, select
from sqlmodel import Session, SQLModel

from app.content.added import QUESTION, origin
from app.learners.current import CurrentLearnerValue
from app.learners.store import blank, due_day
from app.scheduling import Standing
from app.web.clock import moment

ADDED = SQLModel.metadata.tables["added_card"]
LEARNER = SQLModel.metadata.tables["learner"]
_ALL = (
    select(ADDED.c.card, ADDED.c.at, ADDED.c.declined, LEARNER.c.zone)
    .join_from(ADDED, LEARNER, LEARNER.c.id == ADDED.c.learner_id)
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)
_ONE = _ALL.where(ADDED.c.card == bindparam("of_card"))


@dataclasses.dataclass(frozen=True, slots=True)
class Beginning:
    """How an added card begins: the study day it is first asked on.

    `since` is the moment of the (last) reason for it; `again` says that such a reason
    may come again, as a question may be missed again.
    """

    due: dt.date
    since: dt.datetime
    declined: bool
    again: bool


def beginnings(db: Session, learner_id: int) -> dict[str, Beginning]:
    """The beginnings of all cards that a learner ever added."""
    rows = db.connection().execute(_ALL, {"of_learner": learner_id})
    return {row.card: _beginning(row) for row in rows}


def beginning_of(db: Session, learner_id: int, card: str) -> Beginning | None:
    """The beginning of one card; None where it was never added."""
    values = {"of_learner": learner_id, "of_card": card}
    row = db.connection().execute(_ONE, values).first()
    return _beginning(row) if row else None


def brought_forward(standing: Standing, begin: Beginning | None) -> Standing:
    """The standing of a question that was missed again after its last grade."""
    if begin is None or not begin.again or begin.since <= standing.last_at:
        return standing
    return dataclasses.replace(standing, due_day=min(standing.due_day, begin.due))


def blank_row(begin: Beginning | None, turns: int, *, aside: bool) -> dict[str, Any]:
    """The memory of a card without a review: asked from its beginning on, or never."""
    due = begin.due if begin else None
    return {**blank(due), "turns": turns, "suspended": aside}


def _beginning(row: Any) -> Beginning:
    since = moment(row.at)
    day = CurrentLearnerValue("", zone=row.zone).study_day(since)
    missed = origin(row.card)[0] == QUESTION
    return Beginning(due_day(row.card, day), since, row.declined, missed)
