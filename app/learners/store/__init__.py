"""Learners in the database."""

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
    "add_code",
    "change_settings",
    "count_change",
    "enrol",
    "find_learner",
    "use_code",
]
