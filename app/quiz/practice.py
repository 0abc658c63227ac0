"""Which questions a practice run asks: unseen first, and what the mode wants."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from app.questions.model import Question

Mode = Literal["mixed", "topic", "objective", "weakest", "missed", "retry", "placement", "flagged"]

MODES: tuple[Mode, ...] = (
    "mixed",
    "topic",
    "objective",
    "weakest",
    "missed",
    "retry",
    "placement",
    "flagged",
)
_WHOLE = 1 - 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class PastAttempts:
    """What a learner did with one question: attempts, last score, moment in ms."""

    tries: int
    last_score: float
    last_at: int

    @property
    def missed(self) -> bool:
        """Whether the last answer was not wholly right."""
        return self.last_score < _WHOLE


@dataclasses.dataclass(frozen=True, slots=True)
class PracticeRequest:
    """What to practice: `scope` is a topic's slug or an objective's number."""

    mode: Mode
    scope: str = ""
    count: int = 10


def select_questions(
    questions: Sequence[Question],
    past: Mapping[str, PastAttempts],
    wish: PracticeRequest,
    seed: str,
    weakest: Sequence[str] = (),
) -> tuple[str, ...]:
    """The ids of a run, in the order asked; empty where nothing fits the wish.

    What lies beyond the exam comes last. Unseen questions come first, then those whose
    last answer was not right, the longest ago first, then the least practiced. Within a
    group the order follows `seed`. In the mode `weakest` objectives come in the order
    given as `weakest`, their numbers; `missed` takes nothing else than questions last
    missed. Of a run on an objective, or on the weakest, up to half are those that were
    missed on it: what is weak about it shows there.
    """
    pool = [q for q in questions if _in_scope(q, past, wish)]
    rank = _rank(past, seed)
    pool.sort(key=rank)
    if wish.mode == "weakest":
        places = {objective: place for place, objective in enumerate(weakest)}
        pool.sort(key=lambda q: (q.level, _weakness(q, places)))
        first = weakest[0] if weakest else ""
        pool = _with_missed(pool, past, first, wish.count // 2)
    elif wish.mode == "objective":
        pool = _with_missed(pool, past, wish.scope, wish.count // 2)
    return tuple(q.id for q in sorted(pool[: wish.count], key=rank))


def _with_missed(
    pool: Sequence[Question], past: Mapping[str, PastAttempts], objective: str, most: int
) -> list[Question]:
    """The pool with up to `most` of those missed on an objective before all others."""
    missed = [
        q
        for q in pool
        if objective in q.objectives and not q.level and q.id in past and past[q.id].missed
    ][:most]
    return [*missed, *(q for q in pool if q not in missed)]


def _in_scope(question: Question, past: Mapping[str, PastAttempts], wish: PracticeRequest) -> bool:
    if wish.mode == "missed":
        seen = past.get(question.id)
        return seen is not None and seen.missed
    if wish.mode == "topic":
        return question.topic == wish.scope
    if wish.mode == "objective":
        return wish.scope in question.objectives
    return True


def _weakness(question: Question, places: Mapping[str, int]) -> int:
    last = len(places)
    return min((places.get(o, last) for o in question.objectives), default=last)


def _rank(
    past: Mapping[str, PastAttempts], seed: str
) -> Callable[[Question], tuple[str, int, int, str]]:
    def rank(question: Question) -> tuple[str, int, int, str]:
        level, seen = question.level, past.get(question.id)
        mixed = hashlib.sha256(f"{seed}:{question.id}".encode()).hexdigest()
        if seen is None:
            return level, 0, 0, mixed
        if seen.missed:
            return level, 1, seen.last_at, mixed
        return level, 2, seen.tries, mixed

    return rank
