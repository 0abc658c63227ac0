"""What grading says: a score, what each part was worth, and why."""

import dataclasses
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal

from app.content.model import NO_TEXT, RichText

Raw = Mapping[str, Sequence[str]]
Result = Literal["right", "partly", "wrong"]

_WHOLE = 1 - 1e-9
LONGEST = 200


@dataclasses.dataclass(frozen=True, slots=True)
class PartResult:
    """One part of the question after the answer: an option, a step, a row, a gap.

    `label` names it (“A”, “2.”, the left cell); `given` is what the learner put
    there and `wanted` what belongs there; for options `chosen` and `wanted_chosen`
    say it. `good` is whether the learner decided rightly about this part.
    """

    key: str
    label: str
    text: RichText
    chosen: bool
    wanted_chosen: bool
    good: bool
    given: RichText = NO_TEXT
    wanted: RichText = NO_TEXT
    feedback: RichText = NO_TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class GradeResult:
    """The judgment of one response.

    `score` is 0..1; `parsed` what was understood, ready for JSON; `said` and
    `wanted` put the answer given and the right one in words; `feedback` belongs to
    the whole answer (a foreseen wrong number). `near` is a sentence for an answer
    that deserves another try with the same numbers before the solution is shown.
    `unreadable` says why an answer that was given in an exam could not be judged.
    """

    score: float
    parsed: Mapping[str, Any]
    marks: tuple[PartResult, ...] = ()
    said: str = ""
    wanted: str = ""
    feedback: RichText = NO_TEXT
    near: str = ""
    unreadable: str = ""

    @property
    def result(self) -> Result:
        """The score as one of three words."""
        if self.score >= _WHOLE:
            return "right"
        return "partly" if self.score > 0 else "wrong"

    @property
    def withheld(self) -> "GradeResult":
        """The same where nobody answered: what belongs to each part, and no points."""
        marks = tuple(
            dataclasses.replace(mark, chosen=False, given=NO_TEXT, good=False)
            for mark in self.marks
        )
        return dataclasses.replace(self, score=0.0, marks=marks, said="", near="")


@dataclasses.dataclass(frozen=True, slots=True)
class UnreadableResponse:
    """A response that cannot be judged; it is refused and costs no attempt."""

    message: str
    hint: str = ""


def single_value(raw: Raw, name: str) -> str:
    """The single value sent under `name`, without surrounding space; else empty."""
    values = raw.get(name) or [""]
    return values[0].strip()


def fraction(part: float, whole: float) -> float:
    """`part` of `whole`, kept within 0..1."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0


def written(words: str) -> RichText:
    """What a learner typed as text that is safe on a page."""
    return RichText(escape(words), words)
