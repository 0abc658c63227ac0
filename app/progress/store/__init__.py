"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.figures import certainties, due_by_day, study_days
from app.progress.store.record import (
    CardRow,
    PageRow,
    cards,
    deck_of,
    first_scores,
    pages,
    record_of,
)

__all__ = [
    "CardRow",
    "PageRow",
    "cards",
    "certainties",
    "deck_of",
    "due_by_day",
    "first_scores",
    "pages",
    "record_of",
    "study_days",
]
