"""SQL: convert a card state to a database row and back."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, delete, insert, update
from sqlmodel import Session

from app.clock import from_milliseconds, to_milliseconds
from app.database.tables import TABLES
from app.markup.model import Flashcard
from app.spaced_repetition.scheduler import CardState

# Statements use tables instead of ORM classes, so rows do not become tracked objects.
CARD_STATES = TABLES["memory"]
SUSPENSIONS = TABLES["suspension"]
CARD_STATE_COLUMNS = tuple(CARD_STATES.c[field.name] for field in dataclasses.fields(CardState))


def card_state_from_row(row: Any) -> CardState | None:
    """Return the card state in a row with the CARD_STATE_COLUMNS, None if new."""
    if row.state == "new":
        return None
    return CardState(
        state=row.state,
        step=row.step,
        stability=row.stability,
        difficulty=row.difficulty,
        due_day=dt.date.fromisoformat(row.due_day),
        due_at=from_milliseconds(row.due_at),
        first_day=dt.date.fromisoformat(row.first_day),
        last_day=dt.date.fromisoformat(row.last_day),
        last_at=from_milliseconds(row.last_at),
        reviews=row.reviews,
        lapses=row.lapses,
    )


def build_state_columns(state: CardState) -> dict[str, Any]:
    return {
        "state": state.state,
        "step": state.step,
        "stability": state.stability,
        "difficulty": state.difficulty,
        "due_day": state.due_day.isoformat(),
        "due_at": to_milliseconds(state.due_at),
        "first_day": state.first_day.isoformat(),
        "last_day": state.last_day.isoformat(),
        "last_at": to_milliseconds(state.last_at),
        "reviews": state.reviews,
        "lapses": state.lapses,
        "set_day": "",
    }


def build_columns_of_new_card(due: dt.date | None) -> dict[str, Any]:
    """Return the columns of a card without a review; suspended if `due` is None."""
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


OWN_CARD_ROW = (
    CARD_STATES.c.learner_id == bindparam("of_learner"),
    CARD_STATES.c.card == bindparam("of_card"),
)


def build_card_query_parameters(learner_id: int, card: str) -> dict[str, Any]:
    return {"of_learner": learner_id, "of_card": card}


_UPDATE_CARD_STATE = update(CARD_STATES).where(*OWN_CARD_ROW)
_INSERT_CARD_STATE = insert(CARD_STATES)
_DELETE_CARD_STATE = delete(CARD_STATES).where(*OWN_CARD_ROW)
_DELETE_SUSPENSION = delete(SUSPENSIONS).where(
    SUSPENSIONS.c.learner_id == bindparam("of_learner"),
    SUSPENSIONS.c.card == bindparam("of_card"),
)


def update_card_state_row(
    db: Session, learner_id: int, card: str, values: Mapping[str, Any]
) -> None:
    db.connection().execute(
        _UPDATE_CARD_STATE, {**build_card_query_parameters(learner_id, card), **values}
    )


def save_card_state_row(
    db: Session,
    learner_id: int,
    card: Flashcard | str,
    values: Mapping[str, Any],
    *,
    has_row: bool,
) -> None:
    """Update the row of a card, or insert it. Pass the id alone if the card has left the course."""
    name = card if isinstance(card, str) else card.id
    if has_row:
        update_card_state_row(db, learner_id, name, values)
        return
    own = {"topic": "", "note": name}
    if not isinstance(card, str):
        own = {"topic": card.topic, "note": min(name, card.sibling) if card.sibling else name}
    db.connection().execute(
        _INSERT_CARD_STATE, {"learner_id": learner_id, "card": name, **own, **values}
    )


def delete_card_state_row(db: Session, learner_id: int, card: str) -> None:
    db.connection().execute(_DELETE_CARD_STATE, build_card_query_parameters(learner_id, card))


def delete_suspension(db: Session, learner_id: int, card: str) -> None:
    db.connection().execute(_DELETE_SUSPENSION, build_card_query_parameters(learner_id, card))
