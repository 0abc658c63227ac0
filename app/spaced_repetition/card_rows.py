"""SQL: a card state as a row and back."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlmodel import Session

from app.clock import from_milliseconds, to_milliseconds
from app.database.tables import TABLES
from app.markup.model import Flashcard
from app.spaced_repetition.scheduler import CardState

# Statements are of tables instead of classes: no row becomes an object with a history.
MEMORY = TABLES["memory"]
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


def card_state_from_row(row: Any) -> CardState | None:
    """The standing in a row that begins with the columns of STANDING."""
    state, step, stability, difficulty, due_day, due_at, first, last, at = row[:9]
    if state == "new":
        return None
    day = dt.date.fromisoformat
    return CardState(
        state=state,
        step=step,
        stability=stability,
        difficulty=difficulty,
        due_day=day(due_day),
        due_at=from_milliseconds(due_at),
        first_day=day(first),
        last_day=day(last),
        last_at=from_milliseconds(at),
        reviews=row[9],
        lapses=row[10],
    )


def columns(standing: CardState) -> dict[str, Any]:
    """A standing as the columns of its row."""
    return {
        "state": standing.state,
        "step": standing.step,
        "stability": standing.stability,
        "difficulty": standing.difficulty,
        "due_day": standing.due_day.isoformat(),
        "due_at": to_milliseconds(standing.due_at),
        "first_day": standing.first_day.isoformat(),
        "last_day": standing.last_day.isoformat(),
        "last_at": to_milliseconds(standing.last_at),
        "reviews": standing.reviews,
        "lapses": standing.lapses,
        "set_day": "",
    }


def blank(due: dt.date | None) -> dict[str, Any]:
    """The columns of a memory without a review; put aside where `due` is None."""
    return {
        "state": "new",
        "step": None,
        "stability": None,
        "difficulty": None,
        "due_day": due.isoformat() if due else "9999-12-31",
        "due_at": 0,
        "first_day": "",
        "last_day": "",
        "last_at": None,
        "reviews": 0,
        "lapses": 0,
        "turns": 0,
        "suspended": False,
        "set_day": "",
    }


MINE = (
    MEMORY.c.learner_id == bindparam("of_learner"),
    MEMORY.c.card == bindparam("of_card"),
)


def of(learner_id: int, card: str) -> dict[str, Any]:
    """The card of a learner, as the statements take it."""
    return {"of_learner": learner_id, "of_card": card}


_CHANGE = update(MEMORY).where(*MINE)
_ADD = insert(MEMORY)
_FORGET = delete(MEMORY).where(*MINE)


def change(db: Session, learner_id: int, card: str, values: Mapping[str, Any]) -> None:
    """Set columns of a row that is there."""
    db.connection().execute(_CHANGE, {**of(learner_id, card), **values})


def add(db: Session, learner_id: int, card: Flashcard | str, values: Mapping[str, Any]) -> None:
    """Write the row of a card that has none; by its name alone where it is gone."""
    if isinstance(card, str):
        own = {"card": card, "topic": "", "note": card}
    else:
        note = min(card.id, card.sibling) if card.sibling else card.id
        own = {"card": card.id, "topic": card.topic, "note": note}
    db.connection().execute(_ADD, {"learner_id": learner_id, **own, **values})


def forget(db: Session, learner_id: int, card: str) -> None:
    """Delete the row."""
    db.connection().execute(_FORGET, of(learner_id, card))
