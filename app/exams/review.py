"""The state of a running paper: each question's row, and the pace."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Literal

from app.exams.paper import Slot
from app.exams.store import Kept, Sat

Filter = Literal["all", "incomplete", "flagged"]


@dataclasses.dataclass(frozen=True, slots=True)
class PaperRow:
    """One question of the palette and the review screen."""

    number: int
    words: str
    answered: bool
    flagged: bool

    @property
    def label(self) -> str:
        """The state in words, for a screen reader."""
        state = "answered" if self.answered else "open"
        return f"{self.number}, {state}{', flagged' if self.flagged else ''}"

    def matches(self, show: Filter) -> bool:
        """Whether the row belongs to a filter."""
        if show == "incomplete":
            return not self.answered
        return show == "all" or self.flagged


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """Time used and questions answered, as shares 0..1, and the difference in words."""

    time: float
    answers: float
    words: str


def rows(
    slots: Sequence[Slot], kept: Mapping[int, Kept], words: Mapping[int, str]
) -> list[PaperRow]:
    """The rows of a paper in its order."""
    nothing = Kept(0, {})
    return [
        PaperRow(
            slot.number,
            words.get(slot.number, ""),
            kept.get(slot.number, nothing).answered,
            kept.get(slot.number, nothing).flagged,
        )
        for slot in slots
    ]


def pace(sat: Sat, answered: int, now: dt.datetime) -> Pace:
    """Compare the time used with the questions answered."""
    whole = sat.seconds or 1.0
    time = min(1.0, max(0.0, (now - sat.started_at).total_seconds() / whole))
    count = len(sat.slots) or 1
    ahead = round(answered - time * count)
    if ahead == 0:
        words = "even with the clock"
    else:
        noun = "question" if abs(ahead) == 1 else "questions"
        words = f"{abs(ahead)} {noun} {'ahead' if ahead > 0 else 'behind'}"
    return Pace(time, answered / count, words)
