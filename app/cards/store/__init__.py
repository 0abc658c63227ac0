"""What a learner remembers: the log of grades, the memory made of it, added cards."""

from app.cards.store.acts import ReviewHistoryRow, log_of, record_manual_edit
from app.cards.store.additions import (
    AddedCardRecord,
    CardToAdd,
    add_cards,
    added_cards,
    added_count,
    added_page,
    decline,
    readd_missed_questions,
    studied,
)
from app.cards.store.log import bump_manual_edits, last_undoable
from app.cards.store.memory import MEMORY, STANDING, card_state_from_row
from app.cards.store.pace import card_pace
from app.cards.store.replaying import (
    acted,
    beginnings,
    grade_in,
    remembered,
    replay_card,
    standing_rows,
)
from app.cards.store.study_days import (
    DAYS,
    DayTotals,
    add_to_day,
    change_days,
    forget_empty_days,
)
