"""Numeric questions: a number with tolerance and unit."""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from app.estimator.units import append_unit, format_number
from app.markup import expressions
from app.markup.expressions import PLACEHOLDER_PATTERN, ExpressionError, Value
from app.markup.model import RichText
from app.markup.problems import ParseContext
from app.markup.quantities import (
    UNITS,
    Quantity,
    base_unit_of,
    format_unit_dimension,
    format_with_spec,
    get_factor_to_base_unit,
    parse_quantity,
)
from app.questions.option_parsing import (
    ParsedOption,
    make_option_key,
    read_sole_code_span_or_report,
    render_optional_rich_text,
    report_unticked_repeated_or_unexplained_options,
    sole_code_span_or_none,
)
from app.questions.question_type import (
    MAX_RESPONSE_LENGTH,
    AuthoredItem,
    CardFacesHtml,
    DraftFields,
    GradeResult,
    LabeledResponse,
    QuestionType,
    RenderGap,
    StatisticsOption,
    SubmittedFields,
    UnreadableResponse,
    VariantFault,
    first_field_value_or_empty,
    render_div_blocks,
    render_titled_list,
    score_option,
)
from app.questions.types.number_parsing import (
    AnswerRange,
    AnswerRangeError,
    NumericOption,
    NumericSpec,
    TypedUnit,
    parse_answer_range,
    parse_typed_number,
    parse_unit,
)

_NUMBER_EXAMPLE_HINT = "Write a number such as 1,120 or 1.12e3"
# Tolerances are computed in floating point; a value at the edge must count.
_EDGE_TOLERANCE_SHARE = 1e-9
# A digit that is not part of a unit, such as that of a second number of a range.
_SECOND_NUMBER = re.compile(r"(?<![^\W\d_])\d")


def find_expected_unit(answer: NumericSpec) -> str:
    """Return the unit of the right answer; empty for a plain number."""
    return next((o.range.unit for o in answer.options if o.right and o.range), "")


def format_given_number(number: float, unit: str) -> str:
    r"""Format a number as the learner gave it, with its unit.

    >>> format_given_number(1120.0, "GB").replace("\xa0", " ")
    '1,120 GB'
    """
    return append_unit(format_number(number, 6), unit)


class TypedQuantity(NamedTuple):
    """A typed number: in base units, as typed, and the unit that it is counted in."""

    base_value: float
    number_as_typed: float
    unit: str


def _parse_typed_quantity(
    typed: str, chosen_unit: str, question_unit: str
) -> TypedQuantity | UnreadableResponse:
    example = f"{_NUMBER_EXAMPLE_HINT}{f' in {question_unit}' if question_unit else ''}."
    if not typed:
        return UnreadableResponse("Nothing is typed.", f"{_NUMBER_EXAMPLE_HINT}.")
    if len(typed) > MAX_RESPONSE_LENGTH:
        return UnreadableResponse(f"The answer is longer than {MAX_RESPONSE_LENGTH} characters.")
    written = parse_typed_number(typed)
    if written is None:
        return UnreadableResponse(f"“{typed}” is not a number.", example)
    unit_word = written.unit_word or chosen_unit or question_unit
    unit = parse_unit(unit_word, question_unit)
    if unit is None and _SECOND_NUMBER.search(unit_word):
        return UnreadableResponse(f"“{typed}” is not one number.", example)
    return _convert_to_base_unit(written.value, unit_word, unit, question_unit, example)


def _convert_to_base_unit(
    number: float, unit_word: str, unit: TypedUnit | None, question_unit: str, example: str
) -> TypedQuantity | UnreadableResponse:
    wanted = f"in {question_unit}, or in a unit of the same kind" if question_unit else "alone"
    hint = f"Write the number {wanted}."
    if unit is None:
        return UnreadableResponse(f"“{unit_word}” is not a unit that is known here.", hint)
    if not unit.fits_expected_unit:
        return UnreadableResponse(f"{unit.name} measures something else than is asked.", hint)
    value = number * unit.factor_to_base_unit
    if not math.isfinite(value):
        return UnreadableResponse("The number is too large.", example)
    return TypedQuantity(value, number, unit.name)


def _find_best_matching_option(answer: NumericSpec, value: float) -> NumericOption | None:
    """Return the right option that contains the value, else the foreseen wrong one."""
    for option in sorted(answer.options, key=score_option, reverse=True):
        if option.range is not None and _matches_answer_range(option.range, value):
            return option
    return None


def _matches_answer_range(answer_range: AnswerRange, value: float) -> bool:
    if answer_range.significant:
        factor = get_factor_to_base_unit(answer_range.unit)
        digits = answer_range.significant
        center_key = _make_significant_digits_key(answer_range.center / factor, digits)
        return _make_significant_digits_key(value / factor, digits) == center_key
    slack = _EDGE_TOLERANCE_SHARE * max(abs(answer_range.low), abs(answer_range.high))
    return answer_range.low - slack <= value <= answer_range.high + slack


def _make_significant_digits_key(value: float, digits: int) -> str:
    return f"{value:.{max(1, digits) - 1}e}"


def _explain_other_unit(answer: NumericSpec, number_as_typed: float, other_unit: str) -> str:
    """Return the message for a number that would be right in another unit."""
    for other in _list_other_units_of_same_kind(other_unit):
        option = _find_best_matching_option(
            answer, number_as_typed * get_factor_to_base_unit(other)
        )
        if option is not None and option.right:
            return (
                f"Right amount, wrong unit. {format_given_number(number_as_typed, '')} is the answer in "
                f"{other or 'plain numbers'}, and you gave it in "
                f"{other_unit or 'plain numbers'}."
            )
    return ""


_GROUPED_BY_POINT = re.compile(r"\d{1,3}\.\d{3}(?!\d)")


def _explain_point_as_thousands_separator(answer: NumericSpec, typed: str, value: float) -> str:
    """Return the message for a number that would be right if its point parted thousands."""
    option = _find_best_matching_option(answer, 1000 * value)
    match = _GROUPED_BY_POINT.match(typed.strip())
    if match is None or option is None or not option.right:
        return ""
    return f"A point stands before decimals. For thousands, write {match[0].replace('.', ',')}."


def _list_other_units_of_same_kind(unit: str) -> list[str]:
    if unit not in UNITS:
        return []
    base, factor = UNITS[unit]
    return [
        name for name, u in UNITS.items() if u.base_unit == base and u.base_units_per_unit != factor
    ]


def _format_center(accepted: AnswerRange) -> str:
    return format_given_number(
        accepted.center / get_factor_to_base_unit(accepted.unit), accepted.unit
    )


# of a number: a smaller half of its range is that of an exact answer
_EXACT_HALF_WIDTH_SHARE = 1e-6
_OFFERED_UNITS_BY_BASE_UNIT = {
    "B": ("kB", "MB", "GB", "GiB", "TB", "TiB", "PB"),
    "B/s": ("MB/s", "Gbit/s", "GB/s", "TB/s"),
    "s": ("µs", "ms", "s", "min", "h", "days"),
    "W": ("W", "kW", "MW"),
    "Wh": ("Wh", "kWh", "MWh"),
    "FLOP": ("GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"),
    "FLOP/s": ("TFLOP/s", "PFLOP/s", "EFLOP/s"),
}
_NUMBER_FIRST = re.compile(r"[-+−]?\s?[\d{.$€£¥]")
_TOLERANCE_SUFFIX = re.compile(r"\s*(?:±|\+-|\+/-|\.\.|sig\b).*", re.DOTALL)
_OTHER_UNIT = "kB"


@dataclasses.dataclass(frozen=True, slots=True)
class UnitChoices:
    """The expected unit, and units of its kind to choose from.

    Both are empty for plain numbers; counts have no choice of units.
    """

    expected_unit: str
    selectable_units: tuple[str, ...]


def _format_accepted_range(option: NumericOption) -> str:
    """Return from where to where answers count as an option; empty for an exact one."""
    accepted = option.range
    if (
        accepted is None
        or accepted.significant
        or _relative_half_width(accepted) < _EXACT_HALF_WIDTH_SHARE
    ):
        return ""
    factor = get_factor_to_base_unit(accepted.unit)
    low, high = (format_number(end / factor, 6) for end in (accepted.low, accepted.high))
    return f" (from {low} to {append_unit(high, accepted.unit)})"


def format_tolerance_of_first_right_option(answer: object) -> str:
    """Return the tolerance of the first right option as written (“ ± 3%”).

    Empty for other question types, “ ± 1%” where a range or digits are given instead.
    """
    if not isinstance(answer, NumericSpec):
        return ""
    template = next((o.template for o in answer.options if o.right), "")
    match = _TOLERANCE_SUFFIX.search(template)
    if match is None:
        return ""
    return match[0].rstrip() if re.search(r"±|\+/?-", match[0]) else " ± 1%"


def report_numeric_problems(answer: NumericSpec, line: int, parse_context: ParseContext) -> None:
    """Report problems of a numeric question without parameters (E23, E42, E43)."""
    clash = find_wrong_option_accepted_as_right(answer)
    if clash:
        message = f"The wrong answer {clash.wrong.template} lies within {clash.right.template}."
        hint, answer_as_code = "Narrow the tolerance, or delete it.", f"`{clash.wrong.template}`"
        parse_context.report_at_text("E43", answer_as_code, line, line + 60, message, hint)
    _report_units_of_different_kinds(answer, line, parse_context)
    _report_duplicate_ranges(answer, line, parse_context)


def _report_duplicate_ranges(answer: NumericSpec, line: int, parse_context: ParseContext) -> None:
    """Report options with the same number (E23)."""
    seen: dict[tuple[float, float], str] = {}
    for option in answer.options:
        if option.range is None:
            continue
        one = (option.range.low, option.range.high)
        if one in seen:
            message = f"“{option.template}” is “{seen[one]}”, which stands above."
            hint, answer_as_code = "Change or delete one of them.", f"`{option.template}`"
            parse_context.report_at_text("E23", answer_as_code, line, line + 60, message, hint)
        seen.setdefault(one, option.template)


class OverlappingOptions(NamedTuple):
    right: NumericOption
    wrong: NumericOption


def find_wrong_option_accepted_as_right(answer: NumericSpec) -> OverlappingOptions | None:
    """Return a right and a wrong option if the wrong one would be accepted."""
    wrongs = [o for o in answer.options if not o.right and o.range]
    for right in answer.options:
        if not right.right or not right.range:
            continue
        for wrong in wrongs:
            if wrong.range and _would_be_accepted_as_right(wrong, wrong.range, right.range):
                return OverlappingOptions(right, wrong)
    return None


def _would_be_accepted_as_right(
    wrong_option: NumericOption, wrong_range: AnswerRange, right_range: AnswerRange
) -> bool:
    """Return whether the right range holds the center of a wrong one; with partial credit, all of it."""
    if wrong_option.credit:
        return right_range.low <= wrong_range.low and wrong_range.high <= right_range.high
    return right_range.low <= wrong_range.center <= right_range.high


def _report_units_of_different_kinds(
    answer: NumericSpec, line: int, parse_context: ParseContext
) -> None:
    units = [(o, o.range.unit) for o in answer.options if o.range]
    for option, unit in units[1:]:
        first, as_first = units[0]
        if format_unit_dimension(unit) != format_unit_dimension(as_first):
            message = f"“{option.template}” does not measure what “{first.template}” does."
            hint, answer_as_code = "Use units of one kind.", f"`{option.template}`"
            parse_context.report_at_text("E42", answer_as_code, line, line + 60, message, hint)


def find_negative_or_overlapping_answers(answer: NumericSpec) -> list[VariantFault]:
    """Report a right answer below zero, or within a wrong one, for one combination (E47)."""
    found = []
    for option in answer.options:
        center = option.range.center if option.range else math.nan
        if option.right and (not math.isfinite(center) or center < 0):
            found.append(VariantFault("E47", f"the answer {option.template} is negative."))
    clash = find_wrong_option_accepted_as_right(answer)
    if clash:
        message = f"the wrong answer {clash.wrong.template} lies within {clash.right.template}."
        hint = "Narrow the tolerance or change the values."
        found.append(VariantFault("E47", message, hint))
    return found


def find_overrounded_stem_numbers(
    stem: RichText, values: Mapping[str, Value]
) -> list[VariantFault]:
    """Report a number of the stem that is rounded more than the answer tolerates (W48)."""
    for match in PLACEHOLDER_PATTERN.finditer(stem.plain):
        value = values.get(match[1])
        if not match[2] or not isinstance(value, Quantity) or not value.value:
            continue
        shown = parse_quantity(format_with_spec(value.value, match[2]))
        if shown and abs(shown.value - value.value) > 0.005 * abs(value.value):
            message = f"the stem shows {format_with_spec(shown.value)} for {format_with_spec(value.value)}."
            hint = "Show more digits, or round the parameter."
            return [VariantFault("W48", message, hint)]
    return []


def fill_in_computed_ranges(numeric: NumericSpec, values: Mapping[str, Value]) -> NumericSpec:
    """Evaluate the ranges; raises ExpressionError if one is not a number (E47)."""
    otherwise: float | None = None
    made = []
    for option in numeric.options:
        written = expressions.fill_placeholders(option.template, values)
        try:
            found = parse_answer_range(written, otherwise if not option.right else None)
        except AnswerRangeError as error:
            raise ExpressionError(error.code, str(error), error.hint) from None
        if option.right and otherwise is None:
            otherwise = _relative_half_width(found)
        made.append(dataclasses.replace(option, template=written, range=found))
    return NumericSpec(tuple(made))


def _relative_half_width(accepted: AnswerRange) -> float:
    """Return half of the width as a share: the default tolerance of wrong options."""
    half = (accepted.high - accepted.low) / 2
    return half / abs(accepted.center) if accepted.center else 0.0


class NumericType(QuestionType[NumericSpec]):
    """A typed number; the right number in another unit is recognized."""

    name = "numeric"
    answer_classes = (NumericSpec, NumericOption, AnswerRange)
    template = "questions/numeric.html"
    form_fields = ("answer", "unit")
    options_attribute = "options"
    supports_weighted_options = True
    is_in_scaffolded_topics = True

    def is_implied_by_options(self, options: Sequence[ParsedOption]) -> bool:
        """Recognize the type: each option is a number in code, and one has a tolerance."""
        spans = [sole_code_span_or_none(option) or "" for option in options]
        numbers = all(_NUMBER_FIRST.match(span) for span in spans)
        return numbers and any(_TOLERANCE_SUFFIX.search(span) for span in spans)

    def parse_answer(self, authored: AuthoredItem) -> NumericSpec:
        """Parse accepted and foreseen numbers; problems are reported."""
        numeric_options: list[NumericOption] = []
        taken: set[str] = set()
        otherwise: float | None = None
        parse_context = authored.parse_context
        for option in sorted(authored.parts.options, key=lambda o: not o.ticked):
            template = read_sole_code_span_or_report(option, parse_context)
            if template is None:
                continue
            found = None
            if not authored.has_computed_parameters:
                try:
                    found = parse_answer_range(template, otherwise if not option.ticked else None)
                except AnswerRangeError as error:
                    parse_context.report_at_text(
                        error.code, "`", option.line, option.line, str(error), error.hint
                    )
                    continue
                if option.ticked and otherwise is None:
                    otherwise = _relative_half_width(found)
            why = render_optional_rich_text(option.feedback, authored.context)
            name = make_option_key(authored.comment.id, option, taken)
            right, credit = option.ticked, option.credit
            numeric_options.append(NumericOption(name, template, found, right, why, credit))
        return NumericSpec(tuple(numeric_options))

    def report_answer_problems(self, answer: NumericSpec, authored: AuthoredItem) -> None:
        options, parse_context = authored.parts.options, authored.parse_context
        report_unticked_repeated_or_unexplained_options(
            options, authored.answer_or_item_line, parse_context
        )
        if not authored.has_computed_parameters:
            report_numeric_problems(answer, authored.answer_or_item_line, parse_context)

    def options_for_statistics(self, answer: NumericSpec) -> tuple[StatisticsOption, ...]:
        return tuple(StatisticsOption(o.key, o.template, o.right, o.credit) for o in answer.options)

    def right_answer_texts(self, answer: NumericSpec) -> list[str]:
        """Return the right numbers without their tolerance."""
        return [o.template.split("±")[0] for o in answer.options if o.right]

    def list_templates_outside_rich_texts(self, answer: NumericSpec) -> list[str]:
        """Return the ranges, which are templates but not texts."""
        return [o.template for o in answer.options]

    def option_comparison_microseconds(self, answer: NumericSpec) -> float:
        return 0.2 * len(answer.options) ** 2

    def find_variant_faults(
        self, answer: NumericSpec, stem: RichText, values: Mapping[str, Value]
    ) -> list[VariantFault]:
        """Report overlapping ranges, and numbers that the stem rounds too much."""
        faults = find_negative_or_overlapping_answers(fill_in_computed_ranges(answer, values))
        return faults + find_overrounded_stem_numbers(stem, values)

    def fill_answer_placeholders(
        self, answer: NumericSpec, values: Mapping[str, Value]
    ) -> NumericSpec:
        return fill_in_computed_ranges(super().fill_answer_placeholders(answer, values), values)

    def build_template_data(self, answer: NumericSpec, draft_fields: DraftFields) -> UnitChoices:
        del draft_fields
        unit = find_expected_unit(answer)
        choices = _OFFERED_UNITS_BY_BASE_UNIT.get(base_unit_of(unit), ())
        return UnitChoices(unit, choices if unit in choices or not choices else (unit, *choices))

    def grade(
        self, answer: NumericSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a typed quantity.

        `answer` in the response contains it; `unit` the unit chosen if none is typed. A
        number that would be right in another unit of the same kind is reported as such.
        """
        del credit_rule
        typed = first_field_value_or_empty(raw, "answer")
        unit = find_expected_unit(answer)
        quantity = _parse_typed_quantity(typed, first_field_value_or_empty(raw, "unit"), unit)
        if isinstance(quantity, UnreadableResponse):
            return quantity
        value, number, counted_in = quantity
        option = _find_best_matching_option(answer, value)
        near = ""
        if option is None:
            near = _explain_point_as_thousands_separator(answer, typed, value)
            near = near or _explain_other_unit(answer, number, counted_in)
        return GradeResult(
            score=score_option(option),
            parsed_response={
                "value": value,
                "number": number,
                "unit": counted_in,
                "option": option.key if option else "",
            },
            given_answer=format_given_number(number, counted_in),
            right_answer=next(
                (_format_center(o.range) for o in answer.options if o.right and o.range), ""
            ),
            feedback=option.feedback if option else RichText("", ""),
            near_miss_message=near,
        )

    def render_card_faces_below_stem(
        self, answer: NumericSpec, render_gap: RenderGap
    ) -> CardFacesHtml:
        """Return the expected unit, then the number and the foreseen mistakes."""
        del render_gap
        right = [escape(_format_center(o.range)) for o in answer.options if o.right and o.range]
        unit = find_expected_unit(answer)
        foreseen = [
            f"<b>{escape(_format_center(o.range))}</b> {o.feedback.html}"
            for o in answer.options
            if not o.right and o.range and o.feedback.html
        ]
        back = render_div_blocks([f"<b>{number}</b>" for number in right[:1]])
        return CardFacesHtml(
            f"<p>A number in the unit {escape(unit)}.</p>" if unit else "<p>A number.</p>",
            back + render_titled_list("Wrong answers", foreseen),
        )

    def sample_responses(self, answer: NumericSpec) -> Iterator[LabeledResponse]:
        """Yield each option, the right number in another unit, another number, and none."""
        right: list[str] = []
        for option in sorted(answer.options, key=lambda o: not o.right):
            number = _TOLERANCE_SUFFIX.sub("", option.template).strip()
            if option.right:
                right.append(number)
            yield LabeledResponse(f"{number}{_format_accepted_range(option)}", {"answer": [number]})
        if right:
            number, _, unit = right[0].partition(" ")
            if unit:
                other = _OTHER_UNIT if unit != _OTHER_UNIT else "TB"
                yield LabeledResponse(f"{number} {other}", {"answer": [f"{number} {other}"]})
        yield LabeledResponse("Another number", {"answer": ["987654321"]})
        yield LabeledResponse("What is no number", {"answer": ["many"]})
