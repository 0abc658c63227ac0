"""The plan until the exam in a sentence, from counts alone: Today must stay cheap."""

import datetime as dt

from sqlmodel import Session

from app.progress import store
from app.progress.ahead import in_short
from app.progress.picture import Picture
from app.scheduling import card_seconds
from app.scheduling.exam_plan import PlanInputs, outline


def until_exam(picture: Picture, db: Session) -> str:
    """What the days until the exam hold; empty without one ahead.

    Asks one question in the last days: how many were not seen in them yet.
    """
    learner, exam = picture.learner, picture.learner.exam_day
    if exam is None or exam <= picture.day or not learner.id:
        return ""
    begun = sum(cards.begun for cards in picture.record.cards.values())
    seconds = card_seconds(learner.minutes_a_day)
    asked = PlanInputs(picture.day.toordinal(), exam.toordinal(), seconds)
    short = outline(begun, picture.unbegun, asked)
    left = None
    if short.final <= asked.day:
        first = dt.date.fromordinal(short.final)
        left = store.last_looks(db, learner.id, first)
    return in_short(short, asked, left)
