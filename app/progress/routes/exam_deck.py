"""The cards of today with an exam ahead, from counts alone: Today must stay cheap."""

import dataclasses
import datetime as dt

from sqlmodel import Session

from app.progress import store
from app.progress.ahead import in_short, today_of
from app.progress.mastery.plan import Deck
from app.progress.routes.picture import Picture
from app.scheduling import card_seconds
from app.scheduling.exam_plan import Asked, outline


@dataclasses.dataclass(frozen=True, slots=True)
class ExamDeck:
    """The cards of today, and the plan of them in a sentence (empty without one)."""

    deck: Deck
    sentence: str = ""


def exam_deck(picture: Picture, db: Session, reviews: int) -> ExamDeck:
    """The deck of the picture as the plan cuts it; `reviews` are done today.

    Asks one question more in the last days, for those not seen in them yet.
    """
    learner, exam, deck = picture.learner, picture.learner.exam_day, picture.deck
    if exam is None or exam <= picture.day or not learner.id:
        return ExamDeck(deck)
    begun = sum(cards.begun for cards in picture.record.cards.values())
    seconds = card_seconds(learner.minutes_a_day)
    asked = Asked(picture.day.toordinal(), exam.toordinal(), seconds)
    short = outline(begun, deck.new, asked)
    left = None
    if short.final <= asked.day:
        first = dt.date.fromordinal(short.final)
        left = store.last_looks(db, learner.id, first)
    due, new = today_of(short, asked, (deck.due, deck.new, left), reviews)
    return ExamDeck(Deck(due, deck.later, new), in_short(short, asked, left))
