"""The placement test: a few questions over the whole blueprint, drawn with a seed."""

import hashlib
from collections.abc import Mapping, Sequence

from app.content.model import Domain
from app.mastery.bank import apportion
from app.questions import kinds
from app.questions.model import Question
from app.quiz.practice import PastAttempts

QUESTIONS = 15
QUESTION_MINUTES = 1.0
"""Choosing one answer takes about a minute; nothing is typed."""


def draw_placement(
    questions: Sequence[Question],
    domains: Sequence[Domain],
    past: Mapping[str, PastAttempts],
    seed: str,
) -> tuple[str, ...]:
    """The ids of a placement test in the order asked, at most QUESTIONS of them.

    Each domain has its share of the blueprint, and no objective comes twice before
    all of its domain came once. Questions that are answered by choosing come first,
    then unseen ones: the test is short, and what was seen says less.
    """
    counts = apportion({d.number: d.weight for d in domains}, QUESTIONS)
    order = sorted(
        (q for q in questions if q.drawable),
        key=lambda q: (not kinds.type_of(q).chosen, q.id in past, _mixed(seed, q.id)),
    )
    there = {o.number: d.number for d in domains for o in d.objectives}
    taken: dict[str, None] = {}
    for domain in domains:
        mine = [q for q in order if q.home(there) == domain.number]
        numbers = [o.number for o in domain.objectives]
        numbers.sort(key=lambda number: _mixed(seed, number))
        taken |= dict.fromkeys(_round(mine, numbers, counts[domain.number]))
    return tuple(taken)


def _round(
    order: Sequence[Question],
    numbers: Sequence[str],
    count: int,
) -> list[str]:
    """`count` questions of these objectives, one of each in turn."""
    piles = [[q.id for q in order if number in q.objectives] for number in numbers]
    found: dict[str, None] = {}
    while len(found) < count and any(piles):
        for pile in piles:
            free = [item for item in pile if item not in found]
            pile[:] = free[1:]
            if free and len(found) < count:
                found[free[0]] = None
    return list(found)


def _mixed(seed: str, word: str) -> str:
    return hashlib.sha256(f"{seed}:{word}".encode()).hexdigest()
