"""Everything that the pages of this room are made of, read in few questions."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Depends
from markupsafe import Markup

from app.content.live.library import Library
from app.content.model import ExamBlueprint
from app.db.engine import DbSession
from app.flashcards.store import orphaned_cards
from app.learners.current import CurrentLearner, LearnerProfile
from app.mastery.readiness import MissingEvidence, ScoreForecast, chance_words, forecast
from app.mastery.standing import (
    DomainMastery,
    LearnerEvidence,
    counted,
    standings,
)
from app.mastery.store import PageProgress, load_mastery_data
from app.progress import store
from app.progress.figures.forecast import draw_forecast
from app.web.clock import Now, from_milliseconds, to_milliseconds
from app.web.course import CurrentLibrary

WEEK = dt.timedelta(days=6)


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerSnapshot:
    """Everything that is known about a learner at one moment.

    `coming` are the cards of the days up to a week from now, by ISO date.
    """

    library: Library
    learner: LearnerProfile
    now: dt.datetime
    pages: Sequence[PageProgress]
    coming: Mapping[str, store.DueCount]
    record: LearnerEvidence
    domains: tuple[DomainMastery, ...]
    readiness: ScoreForecast | MissingEvidence

    @property
    def day(self) -> dt.date:
        """The study day."""
        return self.learner.study_day(self.now)

    @property
    def is_new(self) -> bool:
        """Whether nothing was done yet."""
        return not (self.record.firsts or self.pages or self.record.cards or self.coming)

    @property
    def until(self) -> dt.datetime:
        """When pages made of it grow old: a card falls due, or the day turns."""
        ends = [self.learner.next_study_day(self.now)]
        ends += [from_milliseconds(row.next_at) for row in self.coming.values() if row.next_at]
        return min(ends)

    @property
    def ahead(self) -> ScoreForecast | None:
        """What the exam would bring today; None while the evidence is thin."""
        return self.readiness if isinstance(self.readiness, ScoreForecast) else None

    @property
    def ahead_drawn(self) -> Markup:
        """The same as a drawing."""
        target = self.learner.target
        return draw_forecast(self.ahead, target) if self.ahead else Markup()

    @property
    def lacking(self) -> MissingEvidence | None:
        """What is missing for that; None when nothing is."""
        return self.readiness if isinstance(self.readiness, MissingEvidence) else None

    @property
    def chance(self) -> str:
        """The chance of the learner's own target in words; empty without one."""
        ahead, target = self.ahead, self.learner.target
        if ahead is None or target is None:
            return ""
        return chance_words(ahead.chance(target / 100))


def main_exam(library: Library) -> ExamBlueprint | None:
    """The mock that is nearest to the exam itself: the one of the most questions."""
    exams = sorted(library.exams.values(), key=lambda exam: (-exam.questions, exam.slug))
    return exams[0] if exams else None


def snapshot_of(
    library: CurrentLibrary, learner: CurrentLearner, db: DbSession, now: Now
) -> LearnerSnapshot:
    """Four questions to the database, none for one who has no row yet."""
    day = learner.study_day(now)
    coming: Mapping[str, store.DueCount] = {}
    known = load_mastery_data(db, learner, now)
    if learner.id:
        span = (day, day + WEEK, to_milliseconds(now))
        gone = orphaned_cards(db, learner.id, library).gone
        coming = store.coming(db, learner.id, span, gone)
    domains = standings(library, known.record, day)
    answers = counted(library, known.record.firsts)
    return LearnerSnapshot(
        library=library,
        learner=learner,
        now=now,
        pages=known.pages,
        coming=coming,
        record=known.record,
        domains=domains,
        readiness=forecast(domains, main_exam(library), answers),
    )


CurrentSnapshot = Annotated[LearnerSnapshot, Depends(snapshot_of)]
