"""Question and Variant."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from app.markup.model import NO_TEXT, ComputedParameters, Level, RichText, SourceLocation, Status
from app.questions import types
from app.questions.types import Answer


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """One item of the bank as authored; `revision` is the hash of its content.

    `stem`, option texts and `explanation` hold {name} templates while `computed`
    is set; `variants.draw` fills them. `section` is the anchor of the page section
    it stands in (empty in quiz.md). `level` is deeper for what lies beyond the exam;
    `use` is exam for what practice leaves to mock exams, until it was met in one.
    """

    id: str
    topic: str
    type: str
    stem: RichText
    answer: Answer
    objectives: tuple[str, ...]
    place: SourceLocation
    revision: str
    difficulty: int = 3
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    hints: tuple[RichText, ...] = ()
    explanation: RichText = NO_TEXT
    mistake: RichText = NO_TEXT
    partial: Literal["", "off", "net", "coverage", "each", "lcs"] = ""
    computed: ComputedParameters | None = None
    section: str = ""
    level: Level = ""
    use: Literal["", "exam"] = ""
    status: Status = "live"

    @property
    def drawable(self) -> bool:
        """Whether mock exams may ask it.

        Designs, what lies beyond, and choices between two stay out.
        """
        kind = types.type_of(self)
        return kind.in_exams and self.level != "deeper" and kind.enough(self.answer)

    @property
    def reserved(self) -> bool:
        """Whether it is kept for mock exams, until it was met in one."""
        return self.use == "exam" and self.drawable

    def home(self, domains: Mapping[str, str]) -> str:
        """The one domain that it counts in: that of its first objective there.

        One that serves two domains would otherwise be counted twice. Empty for none.
        `domains` maps an objective to its domain.
        """
        return next((domains[o] for o in self.objectives if o in domains), "")


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """A question as one attempt shows and grades it: numbers drawn, order fixed.

    `question` is the authored item; `answer` has ranges and texts filled in and
    options in the order displayed. The same (question, seed) gives the same variant.
    `values` are the drawn parameters, e.g. {"batch": 8}; `calculator` is the address
    of the calculator with these numbers ("/calculators/kv-cache?..."), or empty.
    """

    question: Question
    seed: int
    stem: RichText
    answer: Answer
    hints: tuple[RichText, ...]
    explanation: RichText
    mistake: RichText
    values: Mapping[str, str | int | float]
    calculator: str = ""
