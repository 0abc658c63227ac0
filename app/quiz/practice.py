"""Which questions a practice run asks: unseen first, and what the mode wants."""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from app.content.model import Question

Mode = Literal["mixed", "topic", "objective", "weakest", "missed", "retry"]

MODES: tuple[Mode, ...] = (
    "mixed",
    "topic",
    "objective",
    "weakest",
    "missed",
    "retry",
)
_WHOLE = 1 - 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """What a learner did with one question: attempts, last score, moment in ms."""

    tries: int
    last_score: float
    last_at: int

    @property
    def missed(self) -> bool:
        """Whether the last answer was not wholly right."""
        return self.last_score < _WHOLE


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """What to practise: `scope` is a topic's slug or an objective's number."""

    mode: Mode
    scope: str = ""
    count: int = 10


def choose(
    questions: Sequence[Question], past: Mapping[str, Past], wish: Wish, seed: str
) -> tuple[str, ...]:
    """The ids of a run, in the order asked; empty where nothing fits the wish.

    Unseen questions come first, then those whose last answer was not right, the
    longest ago first, then the least practised. Within a group the order follows
    `seed`. `weakest` takes the objective with the lowest share of right answers
    before the others; `missed` takes nothing else than questions last missed.
    """
    pool = [q for q in questions if _in_scope(q, past, wish)]
    rank = _rank(past, seed)
    if wish.mode == "weakest":
        share = shares(questions, past)
        pool.sort(key=lambda q: (_weakness(q, share), rank(q)))
        chosen = pool[: wish.count]
        return tuple(q.id for q in sorted(chosen, key=rank))
    return tuple(q.id for q in sorted(pool, key=rank)[: wish.count])


def shares(questions: Iterable[Question], past: Mapping[str, Past]) -> dict[str, float]:
    """The share of right last answers per objective, drawn towards one half.

    (points + 1) ÷ (questions answered + 2): an objective that was never tried has
    0.5, one with nothing but misses falls below it.
    """
    points: dict[str, float] = {}
    counts: dict[str, int] = {}
    for question in questions:
        seen = past.get(question.id)
        for objective in question.objectives:
            points[objective] = points.get(objective, 0) + (
                seen.last_score if seen else 0
            )
            counts[objective] = counts.get(objective, 0) + (seen is not None)
    return {o: (points[o] + 1) / (counts[o] + 2) for o in points}


def _in_scope(question: Question, past: Mapping[str, Past], wish: Wish) -> bool:
    if wish.mode == "missed":
        seen = past.get(question.id)
        return seen is not None and seen.missed
    if wish.mode == "topic":
        return question.topic == wish.scope
    if wish.mode == "objective":
        return wish.scope in question.objectives
    return True


def _weakness(question: Question, share: Mapping[str, float]) -> float:
    return min((share[o] for o in question.objectives), default=1.0)


def _rank(
    past: Mapping[str, Past], seed: str
) -> Callable[[Question], tuple[int, int, str]]:
    def rank(question: Question) -> tuple[int, int, str]:
        seen = past.get(question.id)
        mixed = hashlib.sha256(f"{seed}:{question.id}".encode()).hexdigest()
        if seen is None:
            return 0, 0, mixed
        if seen.missed:
            return 1, seen.last_at, mixed
        return 2, seen.tries, mixed

    return rank
