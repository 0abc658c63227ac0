"""The memory of one card as a row: read, written, made blank, forgotten."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlmodel import Session, SQLModel

from app.content.model import Card
from app.db.prepared import Prepared
from app.scheduling import Standing
from app.web.clock import milliseconds, moment

# Statements are of tables instead of classes: no row becomes an object with a history.
MEMORY = SQLModel.metadata.tables["memory"]
STANDING = tuple(
    MEMORY.c[name]
    for name in (
        "state",
        "step",
        "stability",
        "difficulty",
        "due_day",
        "due_at",
        "first_day",
        "last_day",
        "last_at",
        "reviews",
        "lapses",
    )
)
MINE = (
    MEMORY.c.learner_id == bindparam("of_learner"),
    MEMORY.c.card == bindparam("of_card"),
)


def standing_of(row: Any) -> Standing | None:
    """The standing in a row that begins with the columns of STANDING."""
    state, step, stability, difficulty, due_day, due_at, first, last, at = row[:9]
    if state == "new":
        return None
    day = dt.date.fromisoformat
    return Standing(
        state=state,
        step=step,
        stability=stability,
        difficulty=difficulty,
        due_day=day(due_day),
        due_at=moment(due_at),
        first_day=day(first),
        last_day=day(last),
        last_at=moment(at),
        reviews=row[9],
        lapses=row[10],
    )


def of(learner_id: int, card: str) -> dict[str, Any]:
    """The card of a learner, as the statements take it."""
    return {"of_learner": learner_id, "of_card": card}


def columns(standing: Standing) -> dict[str, Any]:
    """A standing as the columns of its row."""
    return {
        "state": standing.state,
        "step": standing.step,
        "stability": standing.stability,
        "difficulty": standing.difficulty,
        "due_day": standing.due_day.isoformat(),
        "due_at": milliseconds(standing.due_at),
        "first_day": standing.first_day.isoformat(),
        "last_day": standing.last_day.isoformat(),
        "last_at": milliseconds(standing.last_at),
        "reviews": standing.reviews,
        "lapses": standing.lapses,
    }


_CHANGE = Prepared(update(MEMORY).where(*MINE))
_ADD = Prepared(insert(MEMORY))
_FORGET = Prepared(delete(MEMORY).where(*MINE))


def change(db: Session, learner_id: int, card: str, values: Mapping[str, Any]) -> None:
    """Set columns of a row that is there."""
    _CHANGE.run(db, {**of(learner_id, card), **values})


def add(
    db: Session, learner_id: int, card: Card | str, values: Mapping[str, Any]
) -> None:
    """Write the row of a card that has none; by its name alone where it is gone."""
    if isinstance(card, str):
        own = {"card": card, "topic": "", "note": card}
    else:
        note = min(card.id, card.sibling) if card.sibling else card.id
        own = {"card": card.id, "topic": card.topic, "note": note}
    _ADD.run(db, {"learner_id": learner_id, **own, **values})


def forget(db: Session, learner_id: int, card: str) -> None:
    """Delete the row."""
    _FORGET.run(db, of(learner_id, card))
