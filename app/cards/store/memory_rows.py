"""The memory of one card as a row: written, changed, forgotten."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlmodel import Session

from app.cards.store.memory import MEMORY
from app.content.model import Flashcard

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
