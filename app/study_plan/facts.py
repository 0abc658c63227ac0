"""What the plan and the score are computed from: the course, and what one learner did."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from app.content.reading_routes import PageFraction


@dataclasses.dataclass(frozen=True, slots=True)
class ReadingFact:
    """What was read at a moment: the share of the page and of its essential sections, 0 to 1."""

    page: str
    page_share: float
    day: dt.date
    read_at_ms: int
    essential_share: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAnswerFact:
    """The first answer to a question; its score is 0 to 1."""

    question: str
    score: float
    day: dt.date
    answered_at_ms: int
    context: str = "practice"


@dataclasses.dataclass(frozen=True, slots=True)
class CardFact:
    """A started card. `due_day` is FSRS's day; `page` is empty if no page of the exam has it.

    `later_reviews` counts days with a review after the first.
    """

    card: str
    note: str
    page: str
    stability: float
    first_day: dt.date
    last_day: dt.date
    due_day: dt.date
    later_reviews: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Paces:
    """A learner's minutes for a review, a new card and a question."""

    review_minutes: float = 11.25 / 60
    new_card_minutes: float = 1.0
    question_minutes: float = 1.2


TaskKind = Literal["review", "mock", "read", "practice", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerFacts:
    """What one learner did until the morning of study day `day`, in the order of time.

    `due_added_cards` were never reviewed. `unavailable_cards` are course cards that can't be started
    (suspended ones, for instance). `unfinished_by_kind` counts lists in a row before the one to make.
    """

    day: dt.date
    readings: Sequence[ReadingFact] = ()
    first_answers: Sequence[FirstAnswerFact] = ()
    miss_day_by_question: Mapping[str, dt.date] = dataclasses.field(default_factory=dict)
    started_cards: Sequence[CardFact] = ()
    due_added_cards: Sequence[str] = ()
    unavailable_cards: frozenset[str] = frozenset()
    paces: Paces = Paces()
    unfinished_by_kind: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_exam_day: dt.date | None = None


def sum_readings_by_page(readings: Iterable[ReadingFact]) -> Mapping[str, PageFraction]:
    """Return how much of each page was read, by slug; of other pages nothing."""
    parts = collections.defaultdict[str, PageFraction](PageFraction)
    for one in readings:
        before = parts[one.page]
        essential = min(1.0, before.essential_share + one.essential_share)
        parts[one.page] = PageFraction(min(1.0, before.share + one.page_share), essential)
    return parts
