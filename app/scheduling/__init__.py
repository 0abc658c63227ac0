"""When a card comes back: FSRS over study days, and the rules of a day's queue."""

from app.scheduling.by_hand import (
    Act,
    Replayed,
    after_act,
    last_day,
    refusal,
    replay_all,
)
from app.scheduling.card_pace import CardPace
from app.scheduling.days import (
    LEECH,
    Day,
    card_seconds,
    interval_words,
    is_leech,
    minutes_words,
    new_left,
)
from app.scheduling.exam import before_exam
from app.scheduling.late_grades import OLDEST, is_too_old, settled
from app.scheduling.left import Left
from app.scheduling.memory import (
    Grade,
    Policy,
    Standing,
    after,
    previews,
    recall,
)
