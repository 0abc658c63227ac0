"""What is set to a card by hand, written as a row of its own into the log."""

import datetime as dt
import functools
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.cards.store.log import (
    IN_TIME,
    LOG,
    bump_manual_edits,
    load_card,
    rebuild_card_state,
    token_of,
)
from app.content.model import Flashcard
from app.db.insert_once import insert_if_absent
from app.db.quotas import CARD_LOG
from app.db.tables import Review
from app.scheduling import ManualEdit
from app.web.clock import to_milliseconds


def record_manual_edit(
    db: Session,
    learner_id: int,
    card: Flashcard,
    act: ManualEdit,
    when: tuple[dt.datetime, dt.date, str],
) -> int | None:
    """Write an act down once; None when this form was sent before.

    `when` are the moment, the study day and the token of the form. Raises Conflict
    where the log of the card is full.
    """
    now, day, token = when
    number = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": token_of(learner_id, card.id, act.kind, token),
            "card": card.id,
            "rating": 0,
            "study_day": day.isoformat(),
            "at": to_milliseconds(now),
            "act": act.kind,
            "until_day": act.until.isoformat() if act.until else None,
        },
    )
    if number is not None:
        CARD_LOG.check(load_card(db, learner_id, card.id).turns + 1)
        rebuild_card_state(db, learner_id, card)
        bump_manual_edits(db, learner_id)
    return number


class ReviewHistoryRow(NamedTuple):
    """A grade or act: its moment in ms, its words, and whether it was undone."""

    at: int
    rating: int
    act: str
    until_day: str | None
    undone: bool


def log_of(db: Session, learner_id: int, card: str) -> list[ReviewHistoryRow]:
    """The newest hundred grades of a card and acts on it."""
    values = {"of_learner": learner_id, "of_card": card}
    return [ReviewHistoryRow(*row) for row in db.connection().execute(_log(), values)]


@functools.cache
def _log() -> Any:
    undoing = LOG.alias()
    undone = select(undoing.c.id).where(undoing.c.voids == LOG.c.id).exists()
    return (
        select(
            LOG.c.at,
            LOG.c.rating,
            LOG.c.act,
            LOG.c.until_day,
            undone.label("undone"),
        )
        .where(
            LOG.c.learner_id == bindparam("of_learner"),
            LOG.c.card == bindparam("of_card"),
            LOG.c.voids.is_(None),
            (LOG.c.rating > 0) | (LOG.c.act != ""),
        )
        .order_by(*(column.desc() for column in IN_TIME))
        .limit(100)
    )
