"""From a drawn question and a raw response to a verdict."""

from app.questions import kinds
from app.questions.model import Variant
from app.questions.verdict import Raw, Unreadable, Verdict


def grade(variant: Variant, raw: Raw) -> Verdict | Unreadable:
    """Judge a response as it was sent: form field names to lists of values.

    The same variant and response always give the same verdict, so a stored answer
    can be graded again. Never raises: what cannot be understood is `Unreadable`,
    which says what to write instead and costs no attempt.
    """
    return kinds.of(variant).grade(variant.answer, raw, variant.question.partial)


def unanswered(variant: Variant) -> Verdict:
    """The solution of a question that was left open, as a verdict without points."""
    verdict = grade(variant, kinds.of(variant).anything(variant.answer))
    return Verdict(0.0, {}) if isinstance(verdict, Unreadable) else verdict.withheld
