"""Learners in the database."""

from app.learners.store.added import (
    Added,
    Addition,
    add_cards,
    add_missed,
    added_cards,
    added_count,
    added_page,
    blank,
    decline,
    due_day,
    studied,
)
from app.learners.store.days import (
    Work,
    add_to_day,
    rebuild_days,
    work_of_grade,
)
from app.learners.store.gone import gone_cards
from app.learners.store.people import (
    Enrolment,
    Known,
    add_code,
    change_settings,
    count_change,
    enrol,
    find_learner,
    hold,
    use_code,
)

__all__ = [
    "Added",
    "Addition",
    "Enrolment",
    "Known",
    "Work",
    "add_cards",
    "add_code",
    "add_missed",
    "add_to_day",
    "added_cards",
    "added_count",
    "added_page",
    "blank",
    "change_settings",
    "count_change",
    "decline",
    "due_day",
    "enrol",
    "find_learner",
    "gone_cards",
    "hold",
    "rebuild_days",
    "studied",
    "use_code",
    "work_of_grade",
]
