"""Learners in the database."""

from app.learners.store.days import (
    Work,
    add_to_day,
    rebuild_days,
    work_of_grade,
)
from app.learners.store.people import (
    Enrolment,
    Known,
    add_code,
    change_settings,
    count_change,
    enrol,
    find_learner,
    use_code,
)

__all__ = [
    "Enrolment",
    "Known",
    "Work",
    "add_code",
    "add_to_day",
    "change_settings",
    "count_change",
    "enrol",
    "find_learner",
    "rebuild_days",
    "use_code",
    "work_of_grade",
]
