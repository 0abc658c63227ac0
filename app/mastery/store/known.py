"""All that is known about a learner, as the rules of mastery read it."""

import dataclasses
import datetime as dt

from sqlmodel import Session

from app.learners.current import CurrentLearnerValue
from app.mastery.standing import NOTHING, Record
from app.mastery.store.firsts import first_answers
from app.mastery.store.learned import Learned, learned
from app.mastery.store.reading import Pages, pages
from app.web.clock import milliseconds

_HALF_A_DAY = dt.timedelta(hours=12)


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """The record that beliefs are made of, and the cards and pages it came from."""

    record: Record = NOTHING
    cards: Learned = dataclasses.field(default_factory=Learned)
    pages: Pages = ()


def known_of(db: Session, learner: CurrentLearnerValue, now: dt.datetime) -> Known:
    """Three questions to the database, none for one who has no row yet."""
    if not learner.id:
        return Known()
    # Counted from the middle of the study day, so that its hours change nothing.
    noon = milliseconds(learner.next_study_day(now) - _HALF_A_DAY)
    cards, read = learned(db, learner.id, noon), pages(db, learner.id)
    sections = {row.topic: frozenset(row.sections) for row in read}
    record = Record(first_answers(db, learner.id), cards.cards, sections)
    return Known(record, cards, read)
