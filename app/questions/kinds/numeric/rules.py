"""Rules for numbers: units of one kind, and no wrong answer within a right one."""

import math
from collections.abc import Mapping

from app.content.model import RichText
from app.content.numbers.expressions import Value
from app.content.numbers.quantities import Quantity, kind, parse_quantity, show
from app.content.numbers.templates import PLACEHOLDER
from app.content.source_file import SourceFile
from app.questions.kind import VariantFault
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer, NumericOption

Option = NumericOption


def check_numeric(answer: NumericAnswer, line: int, sheet: SourceFile) -> None:
    """E23, E42, E43 for a numeric question without parameters."""
    clash = clashing(answer)
    if clash:
        place = sheet.find(f"`{clash[1].template}`", line, line + 60)
        sheet.report("E43", *place, _said(clash), "Narrow the tolerance, or delete it.")
    _check_units(answer, line, sheet)
    _check_twice(answer, line, sheet)


def _check_twice(answer: NumericAnswer, line: int, sheet: SourceFile) -> None:
    """E23: a number is foreseen once."""
    seen: dict[tuple[float, float], str] = {}
    for option in answer.options:
        if option.range is None:
            continue
        one = (option.range.low, option.range.high)
        if one in seen:
            place = sheet.find(f"`{option.template}`", line, line + 60)
            message = f"“{option.template}” is “{seen[one]}”, which stands above."
            sheet.report("E23", *place, message, "Change or delete one of them.")
        seen.setdefault(one, option.template)


def _said(clash: tuple[Option, Option]) -> str:
    right, wrong = clash
    return f"The wrong answer {wrong.template} lies within {right.template}."


def clashing(answer: NumericAnswer) -> tuple[Option, Option] | None:
    """A right and a wrong option of which the wrong one would be accepted."""
    wrongs = [o for o in answer.options if not o.right and o.range]
    for right in answer.options:
        if not right.right or not right.range:
            continue
        for wrong in wrongs:
            if wrong.range and _hidden(wrong, wrong.range, right.range):
                return right, wrong
    return None


def _hidden(option: Option, own: AcceptedRange, right: AcceptedRange) -> bool:
    """Whether a right range takes what is meant by a wrong one.

    One that is worth a part of the mark may lie around the right one.
    """
    if option.credit:
        return right.low <= own.low and own.high <= right.high
    return right.low <= own.center <= right.high


def _check_units(answer: NumericAnswer, line: int, sheet: SourceFile) -> None:
    units = [(o, o.range.unit) for o in answer.options if o.range]
    for option, unit in units[1:]:
        first, as_first = units[0]
        if kind(unit) != kind(as_first):
            place = sheet.find(f"`{option.template}`", line, line + 60)
            message = f"“{option.template}” does not measure what “{first.template}” does."
            sheet.report("E42", *place, message, "Use units of one kind.")


def numeric_faults(answer: NumericAnswer) -> list[VariantFault]:
    """E47 for one combination: a right answer below zero, or within a wrong one."""
    found = []
    for option in answer.options:
        center = option.range.center if option.range else math.nan
        if option.right and (not math.isfinite(center) or center < 0):
            found.append(VariantFault("E47", f"the answer {option.template} is negative."))
    clash = clashing(answer)
    if clash:
        right, wrong = clash
        message = f"the wrong answer {wrong.template} lies within {right.template}."
        hint = "Narrow the tolerance or change the values."
        found.append(VariantFault("E47", message, hint))
    return found


def display_faults(stem: RichText, values: Mapping[str, Value]) -> list[VariantFault]:
    """W48: a number of the stem that is rounded more than the answer allows."""
    for match in PLACEHOLDER.finditer(stem.plain):
        value = values.get(match[1])
        if not match[2] or not isinstance(value, Quantity) or not value.value:
            continue
        shown = parse_quantity(show(value.value, match[2]))
        if shown and abs(shown.value - value.value) > 0.005 * abs(value.value):
            message = f"the stem shows {show(shown.value)} for {show(value.value)}."
            hint = "Show more digits, or round the parameter."
            return [VariantFault("W48", message, hint)]
    return []
