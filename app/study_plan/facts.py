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
    page_share: float
    day: dt.date
    read_at_ms: int
    essential_share: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAnswerFact:
    """The first answer to a question: its score 0 to 1, study day, moment in ms."""

    question: str
    score: float
    day: dt.date
    answered_at_ms: int
    context: str = "practice"


@dataclasses.dataclass(frozen=True, slots=True)
class CardFact:
    """A started card. `due_day` is FSRS's day; `later_reviews` counts days with a review after the first.

    `page` is empty for a card that belongs to no page of the exam.
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
class MinutesPerActivity:
    """A learner's minutes for a review, a new card and a question."""

    review_minutes: float = 11.25 / 60
    new_card_minutes: float = 1.0
    question_minutes: float = 1.2


TaskKind = Literal["review", "mock", "read", "practice", "new"]


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerFacts:
    """What one learner did until the morning of study day `day`.

    `readings` and `first_answers` (first answers only) are in the order of time. `last_miss_day_by_question` maps the
    questions last answered wrong to the study day of that answer. `due_added_cards` are cards outside of the
    course's decks that are due and were never reviewed, `unavailable_cards` course cards that can't be
    started (suspended ones, for instance). `unfinished_in_a_row_by_kind` is that of the list to make.
    """

    day: dt.date
    readings: Sequence[ReadingFact] = ()
    first_answers: Sequence[FirstAnswerFact] = ()
    last_miss_day_by_question: Mapping[str, dt.date] = dataclasses.field(default_factory=dict)
    started_cards: Sequence[CardFact] = ()
    due_added_cards: Sequence[str] = ()
    unavailable_cards: frozenset[str] = frozenset()
    minutes_per_activity: MinutesPerActivity = MinutesPerActivity()
    unfinished_in_a_row_by_kind: Mapping[str, int] = dataclasses.field(default_factory=dict)
    last_exam_day: dt.date | None = None


def sum_readings_by_page(readings: Iterable[ReadingFact]) -> Mapping[str, PageFraction]:
    """Return how much of each page was read, by slug; of other pages nothing."""
    parts = collections.defaultdict[str, PageFraction](PageFraction)
    for one in readings:
        before = parts[one.page]
        share, essential = (
            before.share + one.page_share,
            before.essential_share + one.essential_share,
        )
        parts[one.page] = PageFraction(min(1.0, share), min(1.0, essential))
    return parts
