"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.decks import held_cards
from app.progress.store.figures import study_days
from app.progress.store.record import (
    Coming,
    coming,
    coming_later,
    placing,
    running,
)

__all__ = [
    "Coming",
    "coming",
    "coming_later",
    "held_cards",
    "placing",
    "running",
    "study_days",
]
