"""A card that was begun long ago, as its memory is kept."""

import datetime as dt
from typing import Any

from app.clock import to_milliseconds
from app.database.tables import CardStateRow


def known_card(
    learner_id: int, card: str, last: dt.date, due: dt.date, **more: Any
) -> CardStateRow:
    """The memory of a card of the page on weights, answered `last`, asked on `due`."""
    values = {
        "learner_id": learner_id,
        "card": card,
        "note": card,
        "topic": "weights",
        "state": "review",
        "stability": 9.0,
        "difficulty": 5.0,
        "due_day": due.isoformat(),
        "due_at": 0,
        "first_day": "2026-01-01",
        "last_day": last.isoformat(),
        "last_at": to_milliseconds(dt.datetime.combine(last, dt.time(12), dt.UTC)),
        "reviews": 4,
        "turns": 4,
    }
    return CardStateRow(**values | more)
