"""What the log of a card and its beginning amount to: its memory, made again."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.cards.names import QUESTION, parse_card_id
from app.cards.store.additions import ADDED, due_day
from app.cards.store.memory import blank, columns
from app.db.tables import TABLES
from app.scheduling import ManualEdit, ReplayedCard, ReviewEvent, replay_log
from app.scheduling.study_day import study_day_of
from app.web.clock import from_milliseconds

LEARNER = TABLES["learner"]
_ALL = (
    select(ADDED.c.card, ADDED.c.at, ADDED.c.declined, LEARNER.c.zone)
    .join_from(ADDED, LEARNER, LEARNER.c.id == ADDED.c.learner_id)
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)
_ONE = _ALL.where(ADDED.c.card == bindparam("of_card"))


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardStart:
    """How an added card begins: the study day it is first asked on.

    `since` is the moment of the first reason for it after its last answer; `again` says
    that such a reason may come again, as a question may be missed again.
    """

    due: dt.date
    since: dt.datetime
    declined: bool
    again: bool


def beginnings(
    db: Session, learner_id: int, cards: Collection[str] | None = None
) -> dict[str, AddedCardStart]:
    """The beginnings of all cards that a learner ever added, or of some of them."""
    wanted = _ALL if cards is None else _ALL.where(ADDED.c.card.in_(cards))
    rows = db.connection().execute(wanted, {"of_learner": learner_id})
    return {row.card: _beginning(row) for row in rows}


def beginning_of(db: Session, learner_id: int, card: str) -> AddedCardStart | None:
    """The beginning of one card; None where it was never added."""
    values = {"of_learner": learner_id, "of_card": card}
    row = db.connection().execute(_ONE, values).first()
    return _beginning(row) if row else None


def standing_rows(log: Iterable[Any]) -> list[Any]:
    """The rows of the log about one card with a grade or act that was not undone."""
    rows = list(log)
    undone = {row.voids for row in rows if row.voids}
    return [
        row for row in rows if (row.rating or (row.act and not row.voids)) and row.id not in undone
    ]


def grade_in(row: Any) -> ReviewEvent:
    """The grade in a row of the log."""
    return ReviewEvent(
        rating=row.rating,
        at=from_milliseconds(row.at),
        day=dt.date.fromisoformat(row.study_day),
        retention=row.retention,
    )


def acted(row: Any) -> ManualEdit:
    """The act in a row of the log."""
    until = dt.date.fromisoformat(row.until_day) if row.until_day else None
    return ManualEdit(row.act, until)


def replay_card(card: str, log: Iterable[Any], begin: AddedCardStart | None = None) -> ReplayedCard:
    """Where a card stands by the rows of its log, in the order of time.

    A question that was missed again after its last row is asked sooner.
    """
    rows = standing_rows(log)
    now = replay_log((grade_in(r) if r.rating else acted(r) for r in rows), card)
    if begin is None or not begin.again or not rows:
        return now
    if begin.since <= from_milliseconds(rows[-1].at):
        return now
    if now.standing is None:
        return ReplayedCard()
    due = min(now.standing.due_day, begin.due)
    return ReplayedCard(dataclasses.replace(now.standing, due_day=due))


def remembered(
    now: ReplayedCard, turns: int, begin: AddedCardStart | None, *, aside: bool
) -> dict[str, Any] | None:
    """The columns of a memory made again; None where there is nothing to remember.

    `turns` counts the rows of the log; `aside` says that the card was put aside, and
    one that was declined is as well.
    """
    aside = aside or (begin is not None and begin.declined)
    held: dict[str, Any] = {"turns": turns, "suspended": aside}
    if now.until is not None:
        held["set_day"] = now.until.isoformat()
    if now.standing is not None:
        return {**columns(now.standing), **held}
    due = now.until or (begin.due if begin else None)
    if due is None and not aside:
        return None
    return {**blank(due), **held}


def _beginning(row: Any) -> AddedCardStart:
    since = from_milliseconds(row.at)
    day = study_day_of(since, row.zone)
    missed = parse_card_id(row.card)[0] == QUESTION
    return AddedCardStart(due_day(row.card, day), since, row.declined, missed)
