"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.record import (
    CardRow,
    PageRow,
    cards,
    deck_of,
    first_scores,
    pages,
    record_of,
    work_by_day,
)

__all__ = [
    "CardRow",
    "PageRow",
    "cards",
    "deck_of",
    "first_scores",
    "pages",
    "record_of",
    "work_by_day",
]
