"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.decks import held_cards
from app.progress.store.feeds import feed_key, feed_owner, renew_feed
from app.progress.store.figures import study_days
from app.progress.store.pace import pace
from app.progress.store.record import (
    Coming,
    coming,
    coming_later,
    last_sat,
    placing,
    running,
)

__all__ = [
    "Coming",
    "coming",
    "coming_later",
    "feed_key",
    "feed_owner",
    "held_cards",
    "last_sat",
    "pace",
    "placing",
    "renew_feed",
    "running",
    "study_days",
]
