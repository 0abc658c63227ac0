"""Grade, regrade, question as card.

The desk shows them, and a package for another program carries them along.
"""

import collections
import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from app.markup.expressions import ExpressionError
from app.markup.ids import normalize_text
from app.questions import types
from app.questions.model import Question, Variant
from app.questions.question_type import CardFaces, Gap, block
from app.questions.result import (
    GradeResult,
    PartResult,
    Raw,
    UnreadableResponse,
    single_value,
    written,
)
from app.questions.variants import draw_variant


def grade(variant: Variant, raw: Raw) -> GradeResult | UnreadableResponse:
    """Judge a response as it was sent: form field names to lists of values.

    The same variant and response always give the same verdict, so a stored answer
    can be graded again. Never raises: what cannot be understood is `UnreadableResponse`,
    which says what to write instead and costs no attempt.
    """
    return types.type_of(variant).grade(variant.answer, raw, variant.question.partial)


def grade_blank(variant: Variant) -> GradeResult:
    """The solution of a question that was left open, as a verdict without points."""
    verdict = grade(variant, types.type_of(variant).anything(variant.answer))
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


# What a verdict says beside what it understood: which option of the key was met.
_JUDGED = {"option", "met"}


class RegradeRefusal(enum.StrEnum):
    """Why an answer cannot be graded again: it was an answer to something else."""

    LOST = "its wording cannot be read any more"
    KIND = "the question was of another kind"
    NUMBERS = "it was asked with other numbers"
    PARTS = "other options, steps or gaps stood there"
    WORDS = "it was asked in other words"
    UNREADABLE = "it cannot be read by the key of now"


@dataclasses.dataclass(frozen=True, slots=True)
class VariantPair:
    """One attempt's question as it was seen, and as it is today with the same numbers.

    `alike` says that both read the same.
    """

    seen: Variant
    today: Variant
    alike: bool

    def grade(self, raw: Raw, *, reworded: bool = False) -> float | RegradeRefusal:
        """The score that an answer to the one earns by the key of the other.

        `reworded` says that other words mean the same; nothing says that of the rest.
        """
        if not raw:  # they said that they do not know
            return 0.0
        was, found = grade(self.seen, raw), grade(self.today, raw)
        if isinstance(found, UnreadableResponse):
            return RegradeRefusal.UNREADABLE
        if isinstance(was, GradeResult) and _understood(was) != _understood(found):
            return RegradeRefusal.PARTS
        return found.score if self.alike or reworded else RegradeRefusal.WORDS


def pair_of(asked: Question, now: Question, seed: int) -> VariantPair | RegradeRefusal:
    """Two wordings of a question beside each other, as an attempt of `seed` shows them.

    Only the key may have been mended: whoever saw another kind or other numbers did not
    answer this question. Seeds that draw the same numbers make pairs that grade alike.
    """
    if types.type_of(asked) is not types.type_of(now):
        return RegradeRefusal.KIND
    try:
        seen, today = draw_variant(asked, seed), draw_variant(now, seed)
    except ExpressionError:
        return RegradeRefusal.NUMBERS
    if seen.values != today.values:
        return RegradeRefusal.NUMBERS
    return VariantPair(seen, today, _words(seen) == _words(today))


def is_key_alone(asked: Question, now: Question) -> bool:
    """Whether answers to one wording can be graded by the key of another at all."""
    pair = pair_of(asked, now, 0)
    if isinstance(pair, RegradeRefusal):
        return False
    some = types.type_of(asked).anything(pair.seen.answer)
    return not isinstance(pair.grade(some), RegradeRefusal)


def _understood(verdict: GradeResult) -> Mapping[str, Any]:
    """What was answered, and the parts of the question that it could be about."""
    parsed = {n: v for n, v in verdict.parsed.items() if n not in _JUDGED}
    if "chosen" in parsed:  # in the order displayed, which a mended file may change
        parsed["chosen"] = sorted(parsed["chosen"])
    return {**parsed, "parts": sorted(mark.key for mark in verdict.marks)}


def _words(variant: Variant) -> Mapping[str, int]:
    """All that is read before answering, in whatever order; marks do not count."""
    below = types.type_of(variant).read_before(variant.answer)
    return collections.Counter(normalize_text(f"{variant.stem.html} {below}").split())


def question_faces(variant: Variant, gap: Gap) -> CardFaces:
    """The stem with its options, then the right answer and the explanation."""
    asked, told = types.type_of(variant).faces(variant.answer, gap)
    below = f'<div class="given">{asked}</div>' if asked else ""
    return CardFaces(block(variant.stem) + below, told + _explained(variant))


def _explained(variant: Variant) -> str:
    words = block(variant.explanation)
    if variant.mistake.html:
        words += f"<div><b>Common mistake.</b> {variant.mistake.html}</div>"
    return words
