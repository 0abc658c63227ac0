"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.decks import held_cards, last_looks
from app.progress.store.figures import study_days
from app.progress.store.firsts import first_answers
from app.progress.store.learned import Learned, learned
from app.progress.store.reading import PageRow, pages
from app.progress.store.record import (
    Coming,
    coming,
    coming_later,
    record_of,
    running,
)

__all__ = [
    "Coming",
    "Learned",
    "PageRow",
    "coming",
    "coming_later",
    "first_answers",
    "held_cards",
    "last_looks",
    "learned",
    "pages",
    "record_of",
    "running",
    "study_days",
]
