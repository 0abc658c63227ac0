"""The begun cards of a learner as plans see them: one narrow read."""

import datetime as dt
from typing import Any

from sqlalchemy import bindparam, select
from sqlmodel import Session

from app.cards.names import is_added_card
from app.content.live.library import Library
from app.db.tables import TABLES
from app.progress.ahead import DeckCounts
from app.scheduling.curve import fsrs_formulas
from app.scheduling.exam import StartedCard, never_graded

_MEMORY = TABLES["memory"]
_ROWS = select(
    *(
        _MEMORY.c[name]
        for name in (
            "card",
            "note",
            "stability",
            "difficulty",
            "due_day",
            "first_day",
            "last_day",
            "suspended",
        )
    )
).where(_MEMORY.c.learner_id == bindparam("learner"))


def held_cards(db: Session, learner_id: int, library: Library, day: dt.date) -> DeckCounts:
    """Every card as it stands now."""
    if not learner_id:
        return DeckCounts(unseen=len(library.cards))
    found = db.connection().execute(_ROWS, {"learner": learner_id})
    rows = [row for row in found if is_added_card(row.card) or row.card in library.cards]
    live = [row for row in rows if not row.suspended]
    today = day.isoformat()
    added = [row for row in live if not row.last_day]
    now, curve = day.toordinal(), fsrs_formulas()
    return DeckCounts(
        begun=(
            *(_begun(row) for row in live if row.last_day and row.stability),
            *(never_graded(row.card, row.note, _ordinal(row.due_day), now, curve) for row in added),
        ),
        added=len(added),
        unseen=len(library.cards) - sum(not is_added_card(row.card) for row in rows),
        answered=sum(row.last_day == today for row in live),
        fresh=sum(row.first_day == today and not is_added_card(row.card) for row in live),
    )


def _begun(row: Any) -> StartedCard:
    last, due = _ordinal(row.last_day), _ordinal(row.due_day)
    return StartedCard(row.card, row.stability, row.difficulty, last, due, row.note)


def _ordinal(day: str) -> int:
    return dt.date.fromisoformat(day).toordinal()
