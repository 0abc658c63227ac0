"""From a drawn question and a raw response to a verdict."""

import dataclasses

from app.questions import kinds
from app.questions.model import Variant
from app.questions.verdict import (
    GradeResult,
    PartResult,
    Raw,
    UnreadableResponse,
    single_value,
    written,
)


def grade(variant: Variant, raw: Raw) -> GradeResult | UnreadableResponse:
    """Judge a response as it was sent: form field names to lists of values.

    The same variant and response always give the same verdict, so a stored answer
    can be graded again. Never raises: what cannot be understood is `UnreadableResponse`,
    which says what to write instead and costs no attempt.
    """
    return kinds.type_of(variant).grade(variant.answer, raw, variant.question.partial)


def grade_blank(variant: Variant) -> GradeResult:
    """The solution of a question that was left open, as a verdict without points."""
    verdict = grade(variant, kinds.type_of(variant).anything(variant.answer))
    return GradeResult(0.0, {}) if isinstance(verdict, UnreadableResponse) else verdict.withheld


def unread(variant: Variant, raw: Raw, why: UnreadableResponse) -> GradeResult:
    """The solution beside an answer that could not be read, which earns no points."""
    verdict = grade_blank(variant)
    typed = single_value(raw, "answer")
    return dataclasses.replace(
        verdict,
        marks=tuple(_as_entered(mark, raw) for mark in verdict.marks),
        said=f"“{typed}”" if typed else "",
        unreadable=why.message,
    )


def _as_entered(mark: PartResult, raw: Raw) -> PartResult:
    """A part of the solution with what was entered there."""
    entered = [v for name, v in raw.items() if name.endswith(f".{mark.key}") and v]
    return dataclasses.replace(mark, given=written(entered[0][0])) if entered else mark
