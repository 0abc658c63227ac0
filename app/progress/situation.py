"""What a plan of today is made from, and what it consists of."""

import dataclasses
from collections.abc import Sequence
from typing import Literal

from app.content.live.library import Library
from app.mastery.standing import DomainMastery, LearnerEvidence
from app.progress.pace import USUAL, StudyPace
from app.scheduling import CardsLeft
from app.scheduling.card_pace import round_minutes

Kind = Literal["exam", "place", "review", "learn", "mock", "read", "continue", "practice", "run"]


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPlacementTest:
    """A placement test that was begun: its run, and how many questions are open."""

    run: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPracticeRun:
    """A practice run that was left: how many of its questions are open, of how many."""

    run: int
    left: int
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenSitting:
    """A mock exam whose clock runs, and the minutes on it."""

    number: int
    title: str
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class MockExamOption:
    """A mock exam that can be sat, under its name in addresses."""

    title: str
    minutes: int
    exam: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TodayInputs:
    """All that a plan is made from.

    `left` are the cards on the desk, `minutes` those left of today, of which the plan
    of days wants `reading` for pages; `mock` is the mock exam that it has today,
    `pace` how long a question takes. Where time `is_short`, not all pages fit in
    before the exam.
    """

    library: Library
    record: LearnerEvidence
    domains: Sequence[DomainMastery]
    left: CardsLeft
    last_topic: str = ""
    minutes: float = 30.0
    reading: float = 0.0
    running: OpenSitting | None = None
    placing: OpenPlacementTest | None = None
    left_run: OpenPracticeRun | None = None
    mock: MockExamOption | None = None
    pace: StudyPace = USUAL
    is_short: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class StudyStep:
    """One thing to do, why, and how long it takes in minutes.

    A page is that of `topic`; of questions there are so many, on `objective`. Of new
    cards, where none is due, there are `fresh`.
    """

    kind: Kind
    title: str
    address: str
    reason: str
    minutes: float
    topic: str = ""
    questions: int = 0
    objective: str = ""
    fresh: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class TodayPlan:
    """The steps that fit into today, the next one first; `beyond` do not fit."""

    steps: tuple[StudyStep, ...]
    beyond: tuple[StudyStep, ...]

    @property
    def minutes(self) -> int:
        """How long the steps take: the sum of what is shown beside them."""
        return sum(round_minutes(step.minutes) for step in self.steps)
