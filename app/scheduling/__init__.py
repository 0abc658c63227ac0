"""When a card comes back: FSRS over study days, and the rules of a day's queue."""

from app.scheduling.by_hand import (
    ManualEdit,
    ReplayedCard,
    after_act,
    last_day,
    refusal,
    replay_all,
)
from app.scheduling.card_pace import CardPace
from app.scheduling.days import DayCounts, card_seconds, new_left
from app.scheduling.exam import before_exam
from app.scheduling.late_grades import OLDEST, is_too_old, settled
from app.scheduling.leeches import LEECH, is_leech
from app.scheduling.left import CardsLeft
from app.scheduling.memory import (
    CardState,
    ReviewEvent,
    SchedulerPolicy,
    after,
    previews,
    recall,
)
from app.scheduling.waits import interval_words, minutes_words
