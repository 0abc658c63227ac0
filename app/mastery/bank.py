"""The question bank counted: one count for every page that names it."""

import dataclasses
from collections.abc import Collection, Mapping

from app.content.live.library import Library
from app.mastery.course import course_by_objective
from app.mastery.evidence import AnswerHistory
from app.questions.model import Question


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionCount:
    """Questions of a kind: all, answered at least once, last answered rightly."""

    total: int
    answered: int
    right: int

    @property
    def missed(self) -> int:
        """How many were last answered wrongly, or only in part."""
        return self.answered - self.right

    @property
    def unseen(self) -> int:
        """How many were never answered."""
        return self.total - self.answered


def of_objective(library: Library, number: str) -> tuple[Question, ...]:
    """The questions that name an objective, exercises in design included."""
    ids = course_by_objective(library).named.get(number, ())
    return tuple(library.questions[item] for item in ids)


def domain_of(library: Library) -> dict[str, str]:
    """The domain that each objective belongs to."""
    return {
        objective.number: domain.number
        for domain in library.syllabus.domains
        for objective in domain.objectives
    }


def of_topic(library: Library, slug: str) -> tuple[Question, ...]:
    """The questions of a page."""
    return tuple(
        library.questions[item]
        for item in library.topics[slug].questions
        if item in library.questions
    )


def reserved_for_exams(library: Library, met: Collection[str]) -> frozenset[str]:
    """The questions kept for mock exams, without those that were `met` in one."""
    return frozenset(q.id for q in library.questions.values() if q.reserved and q.id not in met)


def missed(library: Library, firsts: Mapping[str, AnswerHistory]) -> int:
    """How many questions were answered wrong, or in part, and not right since."""
    known = library.questions
    return sum(first.missed for item, first in firsts.items() if item in known)


def answered_by_topic(library: Library, items: Collection[str]) -> dict[str, int]:
    """How many questions of each page are among the answered `items`."""
    return {
        slug: sum(question.id in items for question in of_topic(library, slug))
        for slug in library.topics
    }


def apportion(weights: Mapping[str, float], questions: int) -> dict[str, int]:
    """Part a number of questions by weight, by largest remainder.

    >>> apportion({"1": 0.38, "2": 0.40, "3": 0.22}, 50)
    {'1': 19, '2': 20, '3': 11}
    """
    whole = sum(weights.values()) or 1.0
    exact = {name: questions * w / whole for name, w in weights.items()}
    counts = {name: int(share) for name, share in exact.items()}
    left = questions - sum(counts.values())
    for name in sorted(exact, key=lambda n: counts[n] - exact[n])[:left]:
        counts[name] += 1
    return counts
