"""Added cards as the log needs them: how each begins, and what its memory is then."""

import dataclasses
import datetime as dt
import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import and_, bindparam, select
from sqlmodel import Session, SQLModel

from app.content.added import QUESTION, origin, question_card
from app.learners.current import CurrentLearnerValue
from app.learners.store import blank, due_day
from app.scheduling import Standing
from app.web.clock import milliseconds, moment

ADDED = SQLModel.metadata.tables["added_card"]
LEARNER = SQLModel.metadata.tables["learner"]
OWN = SQLModel.metadata.tables["own_card"]
SITTING = SQLModel.metadata.tables["sitting"]
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


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of an added card.

    `own` is deck, front and back of a card of one's own; `sat` says that its question
    is on the paper of a mock exam that is being sat.
    """

    card: str
    seed: int
    since: dt.datetime
    own: tuple[str, str, str] | None
    sat: bool


_KEPT = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.at,
        OWN.c.deck,
        OWN.c.front,
        OWN.c.back,
        SITTING.c.paper,
    )
    .select_from(
        ADDED.outerjoin(
            OWN,
            and_(OWN.c.learner_id == ADDED.c.learner_id, OWN.c.card == ADDED.c.card),
        ).outerjoin(
            SITTING,
            and_(
                SITTING.c.learner_id == ADDED.c.learner_id,
                SITTING.c.closed_at.is_(None),
                SITTING.c.deadline_at > bindparam("now"),
            ),
        )
    )
    .where(
        ADDED.c.learner_id == bindparam("of_learner"),
        ADDED.c.card.in_(bindparam("cards", expanding=True)),
    )
)


def kept(
    db: Session, learner_id: int, cards: Collection[str], now: dt.datetime
) -> dict[str, Kept]:
    """Those of `cards` that the learner ever added, declined or not: one question."""
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": [*cards], "now": milliseconds(now)}
    found: dict[str, Kept] = {}
    for row in db.connection().execute(_KEPT, values):
        own = (row.deck, row.front, row.back) if row.front is not None else None
        sat = row.paper is not None and _asks(row.paper, row.card)
        sat = sat or (row.card in found and found[row.card].sat)
        found[row.card] = Kept(row.card, row.seed or 0, moment(row.at), own, sat)
    return found


def _asks(paper: str, card: str) -> bool:
    """Whether a paper, as it is kept, holds the question of a card."""
    return any(question_card(slot[1]) == card for slot in json.loads(paper))
