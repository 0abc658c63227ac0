"""The short mock exam: a paper cut from a mock exam, at its pace and its weights."""

import dataclasses
from collections.abc import Mapping

from app.content.model import ExamBlueprint
from app.mastery.bank import apportion

WHOLE = 30
"""An exam of fewer questions is short enough as it is."""
SHORT = 0.4
"""A short paper has so large a part of the whole one: 20 questions of 50."""


def is_long(exam: ExamBlueprint) -> bool:
    """Whether smaller papers are cut from an exam."""
    return exam.questions >= WHOLE


def short_count(exam: ExamBlueprint) -> int:
    """The questions of a short paper."""
    return round(exam.questions * SHORT)


def short_of(exam: ExamBlueprint) -> ExamBlueprint:
    """The short paper of an exam, its domains weighted as in the whole one."""
    domains = apportion(exam.domains, short_count(exam))
    return cut(exam, "short", "Short mock exam", domains)


def cut(exam: ExamBlueprint, way: str, title: str, domains: Mapping[str, int]) -> ExamBlueprint:
    """A paper of so many questions from each domain, in as long as they take there."""
    count = sum(domains.values())
    return dataclasses.replace(
        exam,
        slug=f"{exam.slug}~{way}",
        title=title,
        questions=count,
        minutes=max(1, round(exam.minutes * count / exam.questions)),
        domains=domains,
    )
