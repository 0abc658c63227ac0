"""When a card comes back: FSRS over study days, and the rules of a day's queue."""

from app.scheduling.by_hand import (
    ManualEdit,
    ReplayedCard,
    apply_manual_edit,
    due_date_error,
    last_day,
    replay_log,
)
from app.scheduling.card_pace import CardPace
from app.scheduling.days import DayCounts, card_seconds, new_cards_allowed
from app.scheduling.exam import before_exam
from app.scheduling.late_grades import OLDEST, is_too_old, settled
from app.scheduling.leeches import LEECH, is_leech
from app.scheduling.left import CardsLeft
from app.scheduling.memory import (
    CardState,
    ReviewEvent,
    SchedulerPolicy,
    apply_review,
    preview_ratings,
    retrievability,
)
from app.scheduling.waits import interval_label, minutes_words
