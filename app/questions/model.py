"""Question and Variant: an authored question, and the form shown in one attempt."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from app.markup.model import NO_TEXT, ComputedParameters, Level, RichText, SourceLocation, Status
from app.questions import types
from app.questions.types import Answer


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """An authored question; `revision` is the hash of its content.

    `stem`, option texts and `explanation` contain {name} templates while `computed`
    is set; `variants.draw_variant` fills them. `section` is the anchor of its page section
    (empty in quiz.md). `level` is deeper for content beyond the exam; `use` is exam for
    questions that practice leaves out until the learner has seen them in a mock exam.
    `partial` is coverage only in stored revisions from before it was removed.
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
        """Return whether mock exams may draw it.

        Design exercises, deeper questions, and choices between two options are excluded.
        """
        kind = types.type_of(self)
        return kind.in_exams and self.level != "deeper" and kind.enough(self.answer)

    @property
    def reserved(self) -> bool:
        """Return whether practice leaves it out until it was seen in a mock exam."""
        return self.use == "exam" and self.drawable

    def home(self, domains: Mapping[str, str]) -> str:
        """Return the domain that it counts in: that of its first objective, or "".

        A question that serves two domains would otherwise be counted twice.
        `domains` maps an objective to its domain.
        """
        return next((domains[o] for o in self.objectives if o in domains), "")


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """A question as one attempt shows and grades it, with numbers and order drawn.

    `question` is the authored item; `answer` has ranges and texts filled in and
    options in the order displayed. The same (question, seed) gives the same variant.
    `values` are the drawn parameters, e.g. {"batch": 8}; `calculator` is the URL
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
