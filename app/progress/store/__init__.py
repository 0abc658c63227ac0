"""What a learner has done, read from the logs in few narrow questions."""

from app.progress.store.decks import held_cards
from app.progress.store.feeds import feed_key, find_feed, renew_feed
from app.progress.store.figures import study_days
from app.progress.store.pace import pace
from app.progress.store.record import (
    DueCount,
    coming,
    coming_later,
    last_sat,
    left_runs,
    running,
)
