"""The memory of one card as a row: its columns, with and without a review."""

import datetime as dt
from typing import Any

from app.db.tables import TABLES
from app.scheduling import CardState
from app.web.clock import from_milliseconds, to_milliseconds

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
