"""First answers to unseen questions, weighed by item, by order and by age."""

import dataclasses
import datetime as dt
from collections.abc import Iterable

from app.progress.mastery.fading import Cards, kept

ENOUGH = 5  # fewer first answers than this say next to nothing about an objective
# The answers that count: one more moves a share by less than seven points, and what
# was answered before something was learned is let go after as many again.
WINDOW = 15.0
_HINTED = 0.5  # a right answer after a hint shows half of what one without shows


@dataclasses.dataclass(frozen=True, slots=True)
class First:
    """The first answer to a question: its score 0..1, study day, hints taken."""

    score: float
    day: dt.date
    hints: int = 0

    @property
    def value(self) -> float:
        """What it shows of knowledge, 0..1."""
        return self.score * _HINTED if self.hints else self.score


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """The first answers of an objective, or of several, added up.

    `answers` and `score` are plain counts. `weight` is in answers as hard to guess
    as the mean question of the objective; `right` is what of it is still right
    today, `fresh` what was right when answered, `force` the weight that age leaves.
    """

    answers: int = 0
    score: float = 0.0
    weight: float = 0.0
    right: float = 0.0
    fresh: float = 0.0
    force: float = 0.0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.answers + other.answers,
            self.score + other.score,
            self.weight + other.weight,
            self.right + other.right,
            self.fresh + other.fresh,
            self.force + other.force,
        )

    def __sub__(self, other: "Evidence") -> "Evidence":
        return Evidence(
            self.answers - other.answers,
            self.score - other.score,
            self.weight - other.weight,
            self.right - other.right,
            self.fresh - other.fresh,
            self.force - other.force,
        )

    @property
    def enough(self) -> bool:
        """Whether a share may be named at all."""
        return self.answers >= ENOUGH


def gather(
    firsts: Iterable[tuple[First, float]], guess: float, cards: Cards, day: dt.date
) -> Evidence:
    """Add up the first answers of one objective as they stand on study day `day`.

    Each answer comes with the guess rate of its question; `guess` is that of the
    objective. An answer weighs (1 − its rate) ÷ (1 − the objective's), so a computed
    number says more than a true-or-false. The answers of a day are one lot, whatever
    their order; each newer lot displaces as much of the older ones as goes beyond
    WINDOW. By `kept` a right answer of then is partly a guess of today: it is worth
    k + (1 − k)·guess, and its force is k. What was not right stays so.
    """
    total = Evidence()
    lots: dict[dt.date, list[tuple[First, float]]] = {}
    for first, rate in firsts:
        if first.day <= day:
            lots.setdefault(first.day, []).append((first, rate))
    for then in sorted(lots):
        left = kept((day - then).days, cards)
        lot = _lot(lots[then], guess, left)
        limit = max(WINDOW, total.weight, lot.weight)
        total = _displaced(total, 1 - lot.weight / limit) + lot
    return total


def _lot(firsts: Iterable[tuple[First, float]], guess: float, left: float) -> Evidence:
    answers, score, weight, fresh = 0, 0.0, 0.0, 0.0
    for first, rate in firsts:
        mine = (1 - rate) / (1 - guess) if guess < 1 else 0.0
        answers += 1
        score += first.score
        weight += mine
        fresh += mine * first.value
    right = fresh * (left + (1 - left) * guess)
    return Evidence(answers, score, weight, right, fresh, weight * left)


def _displaced(old: Evidence, share: float) -> Evidence:
    return Evidence(
        old.answers,
        old.score,
        old.weight * share,
        old.right * share,
        old.fresh * share,
        old.force * share,
    )
