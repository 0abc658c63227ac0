"""The state of a running paper: each question's row, and the pace."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Literal

from app.exams.paper import PaperItem
from app.exams.store import SavedAnswer, SittingState
from app.questions.verdict import UnreadableResponse

Filter = Literal["all", "incomplete", "flagged"]
Told = Literal["", "replaced", "refused", "stale"]


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewNote:
    """What became of a form where another page had changed the same question.

    `told` is one of Merge.told; the other change was saved `at`, where that is known.
    """

    told: Told = ""
    at: dt.datetime | None = None

    @property
    def when(self) -> str:
        """When the other change was saved, in words."""
        return f"at {self.at:%H:%M} UTC" if self.at else "meanwhile"


NOTHING = ReviewNote()


@dataclasses.dataclass(frozen=True, slots=True)
class PaperRow:
    """One question of the palette and the review screen.

    `unreadable` says why its answer cannot be read; such a question is not answered.
    """

    number: int
    words: str
    answered: bool
    flagged: bool
    unreadable: str = ""

    @property
    def label(self) -> str:
        """The state in words, for a screen reader."""
        return f"{self.number}, {self.state}{', flagged' if self.flagged else ''}"

    @property
    def state(self) -> str:
        """Whether it is answered, in words."""
        if self.unreadable:
            return "can\u2019t be read"
        return "answered" if self.answered else "open"

    def matches(self, show: Filter) -> bool:
        """Whether the row belongs to a filter."""
        if show == "incomplete":
            return not self.answered
        return show == "all" or self.flagged


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPace:
    """Time used and questions answered, as shares 0..1, and the difference in words."""

    time: float
    answers: float
    words: str


def rows(
    slots: Sequence[PaperItem],
    kept: Mapping[int, SavedAnswer],
    words: Mapping[int, str],
    unreadable: Mapping[int, UnreadableResponse],
) -> list[PaperRow]:
    """The rows of a paper in its order."""
    nothing = SavedAnswer(0, {})
    return [
        PaperRow(
            slot.number,
            words.get(slot.number, ""),
            kept.get(slot.number, nothing).answered and slot.number not in unreadable,
            kept.get(slot.number, nothing).flagged,
            unreadable[slot.number].message if slot.number in unreadable else "",
        )
        for slot in slots
    ]


def pace(sat: SittingState, answered: int, now: dt.datetime) -> ExamPace:
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
    return ExamPace(time, answered / count, words)
