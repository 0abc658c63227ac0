"""The figures of Progress: numbers in, words and drawings out."""

from app.progress.figures.certainty import certainty
from app.progress.figures.days import StudyHistory, summary, weeks
from app.progress.figures.due import last_day, upcoming
from app.progress.figures.hours import hours
from app.progress.figures.recall import LEAST, recall_by_week
