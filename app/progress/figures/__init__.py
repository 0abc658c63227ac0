"""The figures of Progress: numbers in, words and drawings out."""

from app.progress.figures.certainty import Certain, Certainty, certainty
from app.progress.figures.days import (
    WEEKS,
    Studied,
    StudyDays,
    Week,
    summary,
    weeks,
)
from app.progress.figures.due import DueDays, last_day, upcoming
from app.progress.figures.hours import Hours, hours
from app.progress.figures.recall import LEAST, Recall, recall_by_week

__all__ = [
    "LEAST",
    "WEEKS",
    "Certain",
    "Certainty",
    "DueDays",
    "Hours",
    "Recall",
    "Studied",
    "StudyDays",
    "Week",
    "certainty",
    "hours",
    "last_day",
    "recall_by_week",
    "summary",
    "upcoming",
    "weeks",
]
