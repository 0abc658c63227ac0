"""Everything that the pages of this room are made of, read in few questions."""

import dataclasses
import datetime as dt
from typing import Annotated

from fastapi import Depends

from app.content.library import Library
from app.db.engine import DbSession
from app.learners.current import CurrentLearner, CurrentLearnerValue
from app.progress import store
from app.progress.mastery.forecast import Forecast, chance_words, forecast
from app.progress.mastery.plan import Deck
from app.progress.mastery.standing import DomainStanding, Record, standings
from app.web.clock import Now, moment
from app.web.shelf import CurrentLibrary

_EMPTY = Record({}, frozenset(), {})


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is known about a learner at one moment."""

    library: Library
    learner: CurrentLearnerValue
    now: dt.datetime
    begun: list[store.CardRow]
    pages: list[store.PageRow]
    record: Record
    domains: tuple[DomainStanding, ...]

    @property
    def day(self) -> dt.date:
        """The study day."""
        return self.learner.study_day(self.now)

    @property
    def deck(self) -> Deck:
        """The cards of the study day."""
        return store.deck_of(
            self.begun, frozenset(self.library.cards), self.day, self.now
        )

    @property
    def is_new(self) -> bool:
        """Whether nothing was done yet."""
        return not (
            self.record.firsts or self.pages or any(c.begun for c in self.begun)
        )

    @property
    def until(self) -> dt.datetime:
        """When pages made of it grow old: a card falls due, or the day turns."""
        ends = [self.learner.next_study_day(self.now)]
        ends += [m for m in (moment(c.due_at) for c in self.begun) if m > self.now]
        return min(ends)

    @property
    def ahead(self) -> Forecast | None:
        """What the exam would bring today; None while the evidence is thin."""
        exams = list(self.library.exams.values())
        return forecast(self.domains, exams[0].questions if exams else 100)

    @property
    def chance(self) -> str:
        """The chance of the learner's own target in words; empty without one."""
        ahead, target = self.ahead, self.learner.target
        if ahead is None or target is None:
            return ""
        return chance_words(ahead.chance(target / 100))


def read_picture(
    library: CurrentLibrary, learner: CurrentLearner, db: DbSession, now: Now
) -> Picture:
    """Three questions to the database, none for one who has no row yet."""
    begun: list[store.CardRow] = []
    read: list[store.PageRow] = []
    record = _EMPTY
    if learner.id:
        begun, read = store.cards(db, learner.id), store.pages(db, learner.id)
        record = store.record_of(store.first_scores(db, learner.id), begun, read)
    domains = standings(library, record)
    return Picture(library, learner, now, begun, read, record, domains)


CurrentPicture = Annotated[Picture, Depends(read_picture)]
