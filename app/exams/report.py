"""What a finished sitting says: score with its interval, by domain and objective."""

import dataclasses
import math
from collections.abc import Iterable, Sequence

from app.content.live.library import Library
from app.mastery.turnout import says_enough
from app.mastery.wilson import NINETEEN_IN_TWENTY, wilson


@dataclasses.dataclass(frozen=True, slots=True)
class GradedItem:
    """One question after the end: `score` 0..1, `answered` false where left open.

    `before` is what the first answer would have scored, where another was given later;
    `old_key` what the answer scored before it was graded again by a mended key.
    `unreadable` is an answer that could not be read, and is worth nothing.
    """

    number: int
    item: str
    domain: str
    objective: str
    score: float
    answered: bool
    seconds: float
    before: float | None = None
    old_key: float | None = None
    unreadable: bool = False

    @property
    def result(self) -> str:
        """What came of it, in words."""
        if self.unreadable:
            return "could not be read"
        if not self.answered:
            return "left open"
        if self.score >= 1:
            return "right"
        return "partly right" if self.score > 0 else "not right"

    @property
    def was_mended(self) -> bool:
        """Whether a key that was mended after the exam changed the points."""
        return self.old_key is not None and self.old_key != self.score

    @property
    def change(self) -> str:
        """How the first answer was changed, in words; empty where it stayed."""
        if self.before is None:
            return ""
        return f"{_word(self.before)} to {_word(self.score)}"


def _word(score: float) -> str:
    return "right" if score >= 1 else "wrong"


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreShare:
    """Points of a part of the paper: `score` of `count` questions."""

    name: str
    score: float
    count: int

    @property
    def lost(self) -> float:
        """Points that were not reached."""
        return self.count - self.score


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreReport:
    """The whole result. `low` and `high` bound what a like paper would have given.

    `missed` were answered wrong or in part, `open` not at all; `weakest` are the
    objectives that lost most points in answers. `changes` are the questions whose
    answer was changed, by what came of it. `mended` counts those whose points a mended
    key changed after the exam, `before` are the points of the paper with its old keys.
    """

    score: float
    count: int
    low: float
    high: float
    answered: int
    domains: tuple[ScoreShare, ...]
    objectives: tuple[ScoreShare, ...]
    missed: tuple[GradedItem, ...]
    open: tuple[GradedItem, ...] = ()
    weakest: tuple[ScoreShare, ...] = ()
    changes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    mended: int = 0
    before: float = 0.0

    @property
    def tells(self) -> bool:
        """Whether enough was answered to tell the points of a like paper."""
        return says_enough(self.answered, self.count)

    @property
    def again(self) -> tuple[GradedItem, ...]:
        """What there is to go over, in the order of the paper."""
        return tuple(sorted((*self.missed, *self.open), key=lambda m: m.number))


CHANGES = ("wrong to right", "right to wrong", "wrong to wrong")


def summarize(marked: Sequence[GradedItem]) -> ScoreReport:
    """Add up a paper; partial credit counts as a part of a point."""
    score = sum(m.score for m in marked)
    low, high = interval(score, len(marked))
    answered = [m for m in marked if m.answered]
    return ScoreReport(
        score=score,
        count=len(marked),
        low=low,
        high=high,
        answered=len(answered),
        domains=_shares((m.domain, m.score) for m in marked),
        objectives=_shares((m.objective, m.score) for m in marked),
        missed=tuple(m for m in answered if m.score < 1),
        open=tuple(m for m in marked if not m.answered),
        weakest=most_lost(_shares((m.objective, m.score) for m in answered)),
        changes=tuple((way, _numbers(marked, way)) for way in CHANGES),
        mended=sum(m.was_mended for m in marked),
        before=sum(m.score if m.old_key is None else m.old_key for m in marked),
    )


def most_lost(shares: Iterable[ScoreShare], most: int = 3) -> tuple[ScoreShare, ...]:
    """The parts that lost most points, `most` of them and only clear ones.

    One answer says nothing of a part. And a part that lost as much as another that
    finds no room is left out as well: to name one of them would be arbitrary.
    """
    many = [s for s in shares if s.lost > 0 and s.count > 1]
    order = sorted(many, key=lambda s: -s.lost)
    beyond = order[most].lost if len(order) > most else 0.0
    return tuple(s for s in order[:most] if s.lost > beyond)


def _numbers(marked: Sequence[GradedItem], change: str) -> tuple[int, ...]:
    """The questions whose answer was changed this way."""
    return tuple(m.number for m in marked if m.change == change)


def interval(score: float, count: int) -> tuple[float, float]:
    """Give the range of points that a paper of the same kind would have given.

    Nineteen ranges in twenty hold them.

    >>> [round(x, 1) for x in interval(37, 50)]
    [30.2, 42.1]
    """
    if count == 0:
        return 0.0, 0.0
    low, high = wilson(score, count, NINETEEN_IN_TWENTY)
    return low * count, high * count


def _shares(parts: Iterable[tuple[str, float]]) -> tuple[ScoreShare, ...]:
    sums: dict[str, tuple[float, int]] = {}
    for name, score in parts:
        total, count = sums.get(name, (0.0, 0))
        sums[name] = (total + score, count + 1)
    return tuple(ScoreShare(name, *sums[name]) for name in sorted(sums, key=_number))


def _number(name: str) -> tuple[float | str, ...]:
    """Sort 2.10 behind 2.9: objectives are numbers with a point, not decimals."""
    try:
        return tuple(float(part) for part in name.split("."))
    except ValueError:
        return (math.inf, name)


def topics_by_objective(library: Library) -> dict[str, str]:
    """The first page on each objective."""
    found: dict[str, str] = {}
    for topic in library.topics.values():
        for objective in topic.objectives:
            found.setdefault(objective, topic.slug)
    return found


def names_of(library: Library) -> dict[str, str]:
    """The short name of each objective by its number."""
    domains = library.syllabus.domains
    return {goal.number: goal.name for domain in domains for goal in domain.objectives}
