"""From a drawn question and a raw response to a verdict; every rule here is pure."""

from collections.abc import Callable
from typing import Any

from app.questions.kinds.design.grade import grade_design
from app.questions.kinds.numeric.grade import grade_numeric
from app.questions.model import (
    Choices,
    Cloze,
    Design,
    Match,
    Numeric,
    Order,
    Short,
    Variant,
)
from app.questions.verdict import Mark, Raw, Unreadable, Verdict
from app.quiz.grading.arranging import grade_match, grade_order
from app.quiz.grading.choosing import grade_choices
from app.quiz.grading.words import grade_cloze, grade_short

__all__ = ["Mark", "Raw", "Unreadable", "Verdict", "grade"]

_RULES: dict[type, Callable[[Any, Raw, str], Verdict | Unreadable]] = {
    Choices: grade_choices,
    Numeric: grade_numeric,
    Short: grade_short,
    Order: grade_order,
    Match: grade_match,
    Cloze: grade_cloze,
    Design: grade_design,
}


def grade(variant: Variant, raw: Raw) -> Verdict | Unreadable:
    """Judge a response as it was sent: form field names to lists of values.

    The same variant and response always give the same verdict, so a stored answer
    can be graded again. Never raises: what cannot be understood is `Unreadable`,
    which says what to write instead and costs no attempt.
    """
    rule = _RULES[type(variant.answer)]
    return rule(variant.answer, raw, variant.question.partial)
