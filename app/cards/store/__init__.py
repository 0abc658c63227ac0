"""What a learner remembers: the log of grades, the memory made of it, added cards."""

from app.cards.store.acts import ReviewHistoryRow, act_on, log_of
from app.cards.store.additions import (
    AddedCardRecord,
    CardToAdd,
    add_cards,
    add_missed,
    added_cards,
    added_count,
    added_page,
    decline,
    studied,
)
from app.cards.store.log import count_act, newest
from app.cards.store.memory import MEMORY, STANDING, standing_of
from app.cards.store.pace import card_pace
from app.cards.store.replaying import (
    acted,
    beginnings,
    grade_in,
    remembered,
    replayed,
    standing_rows,
)
from app.cards.store.study_days import (
    DAYS,
    DayTotals,
    add_to_day,
    change_days,
    forget_empty_days,
)
