"""All that is known about a learner, as the rules of mastery read it."""

import dataclasses
import datetime as dt

from sqlmodel import Session

from app.learners.current import LearnerProfile
from app.mastery.standing import NOTHING, LearnerEvidence
from app.mastery.store.firsts import first_answers
from app.mastery.store.learned import TopicCardTotals, learned
from app.mastery.store.reading import Pages, pages
from app.web.clock import to_milliseconds

_HALF_A_DAY = dt.timedelta(hours=12)


@dataclasses.dataclass(frozen=True, slots=True)
class MasteryData:
    """The record that beliefs are made of, and the cards and pages it came from."""

    record: LearnerEvidence = NOTHING
    cards: TopicCardTotals = dataclasses.field(default_factory=TopicCardTotals)
    pages: Pages = ()


def load_mastery_data(db: Session, learner: LearnerProfile, now: dt.datetime) -> MasteryData:
    """Three questions to the database, none for one who has no row yet."""
    if not learner.id:
        return MasteryData()
    # Counted from the middle of the study day, so that its hours change nothing.
    noon = to_milliseconds(learner.next_study_day(now) - _HALF_A_DAY)
    cards, read = learned(db, learner.id, noon), pages(db, learner.id)
    sections = {row.topic: frozenset(row.sections) for row in read}
    record = LearnerEvidence(first_answers(db, learner.id), cards.cards, sections)
    return MasteryData(record, cards, read)
