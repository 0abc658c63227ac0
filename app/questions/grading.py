"""Grade and regrade responses; show a question as a flashcard.

Exports use the card faces, too.
"""

import collections
import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from app.markup.expressions import ExpressionError
from app.markup.text import reduce_to_words
from app.questions import types
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_type import (
    CardFacesHtml,
    GradeResult,
    PartResult,
    RenderGap,
    SubmittedFields,
    UnreadableResponse,
    escape_typed_text,
    first_field_value_or_empty,
    wrap_in_div,
)


def grade_response(variant: Variant, raw: SubmittedFields) -> GradeResult | UnreadableResponse:
    """Grade a response as it was submitted: form field names to lists of values.

    The same variant and response always have the same result, so stored attempts can be
    graded again. Never raises: a response that cannot be parsed is `UnreadableResponse`,
    which has a hint for the learner and does not count as an attempt.
    """
    return types.question_type_of(variant).grade(variant.answer, raw, variant.question.partial)


def build_unanswered_result(variant: Variant) -> GradeResult:
    """Return the solution of an unanswered question, as a result without points."""
    verdict = grade_response(
        variant, types.question_type_of(variant).build_some_valid_response(variant.answer)
    )
    return (
        GradeResult(0.0, {})
        if isinstance(verdict, UnreadableResponse)
        else verdict.solution_as_unanswered
    )


def build_unreadable_result(
    variant: Variant, raw: SubmittedFields, unreadable: UnreadableResponse
) -> GradeResult:
    """Return the solution with an unreadable response; it earns no points."""
    verdict = build_unanswered_result(variant)
    typed = first_field_value_or_empty(raw, "answer")
    return dataclasses.replace(
        verdict,
        part_results=tuple(_add_entered_text_to_part(mark, raw) for mark in verdict.part_results),
        given_answer=f"“{typed}”" if typed else "",
        unreadable_reason=unreadable.message,
    )


def _add_entered_text_to_part(part_result: PartResult, raw: SubmittedFields) -> PartResult:
    entered = [v for name, v in raw.items() if name.endswith(f".{part_result.key}") and v]
    return (
        dataclasses.replace(part_result, given_answer=escape_typed_text(entered[0][0]))
        if entered
        else part_result
    )


# Fields of a result that depend on the key.
_JUDGED_PART_KINDS = {"option", "met"}


class RegradeRefusal(enum.StrEnum):
    """Why a stored attempt cannot be regraded: the question has changed too much."""

    LOST = "its wording cannot be read any more"
    KIND = "the question was of another kind"
    NUMBERS = "it was asked with other numbers"
    PARTS = "other options, steps or gaps stood there"
    WORDS = "it was asked in other words"
    UNREADABLE = "it cannot be read by the key of now"


@dataclasses.dataclass(frozen=True, slots=True)
class VariantPair:
    """An attempt's question as it was seen, and its current version with the same numbers."""

    seen_variant: Variant
    current_variant: Variant
    has_same_wording: bool

    def regrade(
        self, raw: SubmittedFields, *, accept_rewording: bool = False
    ) -> float | RegradeRefusal:
        """Return the score of a response to the seen version by the current key.

        `accept_rewording` says that the new wording has the same meaning. Kind, numbers and parts
        are always compared.
        """
        if not raw:  # The learner chose “I don't know”.
            return 0.0
        seen_result, current_result = (
            grade_response(self.seen_variant, raw),
            grade_response(self.current_variant, raw),
        )
        if isinstance(current_result, UnreadableResponse):
            return RegradeRefusal.UNREADABLE
        if isinstance(seen_result, GradeResult) and _make_response_comparable(
            seen_result
        ) != _make_response_comparable(current_result):
            return RegradeRefusal.PARTS
        return (
            current_result.score
            if self.has_same_wording or accept_rewording
            else RegradeRefusal.WORDS
        )


def pair_seen_and_current_variants(
    seen_question: Question, current_question: Question, seed: int
) -> VariantPair | RegradeRefusal:
    """Return two versions of a question as an attempt with `seed` shows them.

    Only the key may differ: a learner who saw another type or other numbers did not
    answer the current question. Seeds that draw the same numbers give pairs that grade alike.
    """
    if types.question_type_of(seen_question) is not types.question_type_of(current_question):
        return RegradeRefusal.KIND
    try:
        seen, current = draw_variant(seen_question, seed), draw_variant(current_question, seed)
    except ExpressionError:
        return RegradeRefusal.NUMBERS
    if seen.parameter_values != current.parameter_values:
        return RegradeRefusal.NUMBERS
    return VariantPair(seen, current, _count_question_words(seen) == _count_question_words(current))


def is_only_key_changed(seen_question: Question, current_question: Question) -> bool:
    """Return whether only the key differs, so that attempts can be regraded."""
    pair = pair_seen_and_current_variants(seen_question, current_question, 0)
    if isinstance(pair, RegradeRefusal):
        return False
    response = types.question_type_of(seen_question).build_some_valid_response(
        pair.seen_variant.answer
    )
    return not isinstance(pair.regrade(response), RegradeRefusal)


def _make_response_comparable(result: GradeResult) -> Mapping[str, Any]:
    """Return the parsed response, and the parts of the question that it could refer to."""
    parsed = {n: v for n, v in result.parsed_response.items() if n not in _JUDGED_PART_KINDS}
    if (
        "chosen" in parsed
    ):  # Options are listed in displayed order, which an edited file may change.
        parsed["chosen"] = sorted(parsed["chosen"])
    return {**parsed, "parts": sorted(mark.key for mark in result.part_results)}


def _count_question_words(variant: Variant) -> Mapping[str, int]:
    """Count the words that are read before answering; order and markup are ignored."""
    text_below_stem = types.question_type_of(variant).collect_text_or_html_below_stem(
        variant.answer
    )
    return collections.Counter(reduce_to_words(f"{variant.stem.html} {text_below_stem}").split())


def render_question_card_faces(variant: Variant, render_gap: RenderGap) -> CardFacesHtml:
    """Return the stem with its options, then the right answer and the explanation."""
    kind = types.question_type_of(variant)
    options_html, answer_html = kind.render_card_faces_below_stem(variant.answer, render_gap)
    if note := kind.write_several_right_note(variant.stem):
        options_html += f"<p>{note}</p>"
    options_block = f'<div class="given">{options_html}</div>' if options_html else ""
    return CardFacesHtml(
        wrap_in_div(variant.stem) + options_block,
        answer_html + _explanation_and_mistake_html(variant),
    )


def _explanation_and_mistake_html(variant: Variant) -> str:
    html = wrap_in_div(variant.explanation)
    if variant.mistake.html:
        html += f"<div><b>Common mistake.</b> {variant.mistake.html}</div>"
    return html
