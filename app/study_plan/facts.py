"""What the plan and the score are computed from: the course, and what one learner did."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from app.content.reading_routes import PageFraction


@dataclasses.dataclass(frozen=True, slots=True)
class ReadingFact:
    """What was read at a moment in ms: the share of the page and of its essential sections, 0 to 1."""

    page: str
    share: float
    day: dt.date
    at: int
    essential_share: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAnswerFact:
    """The first answer to a question: its score 0 to 1, study day, moment in ms."""

    question: str
    score: float
    day: dt.date
    at: int
    context: str = "practice"


@dataclasses.dataclass(frozen=True, slots=True)
class CardFact:
    """A started card. `due` is FSRS's day; `later_reviews` counts days with a review after the first.

    `page` is empty for a card that belongs to no page of the exam.
    """

    card: str
    note: str
    page: str
    stability: float
    first_day: dt.date
    last_day: dt.date
    due: dt.date
    later_reviews: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Paces:
    """A learner's minutes for a review, a new card and a question."""

    review: float = 11.25 / 60
    new_card: float = 1.0
    question: float = 1.2


TaskKind = Literal["review", "mock", "read", "practice", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerFacts:
    """What one learner did until the morning of study day `day`.

    `readings` and `answers` (first answers only) are in the order of time. `missed` maps the
    questions last answered wrong to the study day of that answer. `added` are cards outside of the
    course's decks that are due and were never reviewed, `unavailable` course cards that can't be
    started (suspended ones, for instance). `undone` is that of the list to make.
    """

    day: dt.date
    readings: Sequence[ReadingFact] = ()
    answers: Sequence[FirstAnswerFact] = ()
    missed: Mapping[str, dt.date] = dataclasses.field(default_factory=dict)
    cards: Sequence[CardFact] = ()
    added: Sequence[str] = ()
    unavailable: frozenset[str] = frozenset()
    paces: Paces = Paces()
    undone: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_sat: dt.date | None = None


def sum_readings(readings: Iterable[ReadingFact]) -> Mapping[str, PageFraction]:
    """Return how much of each page was read, by slug; of other pages nothing."""
    parts = collections.defaultdict[str, PageFraction](PageFraction)
    for one in readings:
        before = parts[one.page]
        share, essential = before.share + one.share, before.essential_share + one.essential_share
        parts[one.page] = PageFraction(min(1.0, share), min(1.0, essential))
    return parts
