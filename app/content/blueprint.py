"""The course by objective, and the papers that can be made from a mock exam."""

import dataclasses
from collections.abc import Collection, Mapping

from app.content.library import Library
from app.markup.model import ExamBlueprint, Topic
from app.questions.model import Question


def questions_of_objective(library: Library, number: str) -> tuple[Question, ...]:
    """Return the questions that name an objective, design exercises included."""
    return tuple(q for q in library.questions.values() if number in q.objectives)


def domain_by_objective(library: Library) -> dict[str, str]:
    """Return the domain number of each objective, by objective number."""
    return {
        objective.number: domain.number
        for domain in library.syllabus.domains
        for objective in domain.objectives
    }


def questions_of_topic(library: Library, slug: str) -> tuple[Question, ...]:
    return tuple(
        library.questions[item]
        for item in library.topics[slug].questions
        if item in library.questions
    )


def reserved_for_exams(library: Library, met: Collection[str]) -> frozenset[str]:
    """Return the questions reserved for mock exams, except those in `met`."""
    return frozenset(q.id for q in library.questions.values() if q.reserved and q.id not in met)


def apportion(weights: Mapping[str, float], questions: int) -> dict[str, int]:
    """Divide a number of questions by weight, with the largest remainder method.

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


def readable_anchors(topic: Topic) -> tuple[str, ...]:
    """Return what can be marked as read on a page: its headed sections, or the whole page."""
    return tuple(s.anchor for s in topic.sections if s.anchor) or ("",)


def main_exam(library: Library) -> ExamBlueprint | None:
    """Return the mock exam closest to the real exam: the one with the most questions."""
    exams = sorted(library.exams.values(), key=lambda exam: (-exam.questions, exam.slug))
    return exams[0] if exams else None


WHOLE = 30
"""Exams with fewer questions get no short version."""
SHORT = 0.4
"""Length of a short paper as a share of the full one: 20 questions of 50."""


def is_long(exam: ExamBlueprint) -> bool:
    """Return whether shorter papers can be made from an exam."""
    return exam.questions >= WHOLE


def short_count(exam: ExamBlueprint) -> int:
    """Return the number of questions of a short paper."""
    return round(exam.questions * SHORT)


def short_exam(exam: ExamBlueprint) -> ExamBlueprint:
    """Return the short version of an exam, with the same domain weights."""
    domains = apportion(exam.domains, short_count(exam))
    return derive_exam(exam, "short", "Short mock exam", domains)


def derive_exam(
    exam: ExamBlueprint, way: str, title: str, domains: Mapping[str, int]
) -> ExamBlueprint:
    """Return an exam with the given questions per domain and a proportional time limit."""
    count = sum(domains.values())
    return dataclasses.replace(
        exam,
        slug=f"{exam.slug}~{way}",
        title=title,
        questions=count,
        minutes=max(1, round(exam.minutes * count / exam.questions)),
        domains=domains,
    )


ANSWERED = 0.9  # a paper with many unanswered questions says little about what the learner knows


def has_enough_answers(answered: int, questions: int) -> bool:
    """Return whether enough of a paper was answered to compare its score with a forecast.

    >>> has_enough_answers(45, 50), has_enough_answers(44, 50), has_enough_answers(0, 0)
    (True, False, False)
    """
    return questions > 0 and answered >= ANSWERED * questions
