"""Grading of numbers: the value, and whether only its unit is wrong."""

import math
import re

from app.content.model import RichText
from app.content.numbers.units import UNITS
from app.estimator.units import format_number, with_unit
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer, NumericOption
from app.questions.kinds.numeric.numbers import TypedNumber, read_number, read_unit
from app.questions.options import worth_of
from app.questions.verdict import LONGEST, GradeResult, Raw, UnreadableResponse, single_value

_EXAMPLES = "Write a number such as 1,120 or 1.12e3"
# Tolerances are computed in floating point; an answer on their edge counts.
_EDGE = 1e-9
# A digit that belongs to no unit, such as the second number of a range.
_ANOTHER = re.compile(r"(?<![^\W\d_])\d")


def grade_numeric(
    answer: NumericAnswer, raw: Raw, _partial: str
) -> GradeResult | UnreadableResponse:
    """Judge a typed quantity.

    `answer` in the response holds it; `unit` the unit meant where none is typed. A
    number that is right in another unit of the same kind is told apart from a wrong
    number.
    """
    typed = single_value(raw, "answer")
    unit = unit_of(answer)
    read = _read(typed, single_value(raw, "unit"), unit)
    if isinstance(read, UnreadableResponse):
        return read
    value, number, counted_in = read
    option = _found(answer, value)
    near = "" if option else _near(answer, number, counted_in)
    return GradeResult(
        score=worth_of(option),
        parsed={
            "value": value,
            "number": number,
            "unit": counted_in,
            "option": option.key if option else "",
        },
        said=shown(number, counted_in),
        wanted=_wanted(answer),
        feedback=option.feedback if option else RichText("", ""),
        near=near,
    )


def unit_of(answer: NumericAnswer) -> str:
    """The unit in which the right answer is shown; empty for a plain number."""
    return next((o.range.unit for o in answer.options if o.right and o.range), "")


def shown(number: float, unit: str) -> str:
    """A number as the learner gave it, with its unit.

    >>> shown(1120.0, "GB").replace(NBSP, " ")
    '1,120 GB'
    """
    text = format_number(number, 6)
    return with_unit(text, unit)


def _read(typed: str, chosen: str, unit: str) -> tuple[float, float, str] | UnreadableResponse:
    """The value in base units, the number as typed, and the unit it counts."""
    if not typed:
        return UnreadableResponse("Nothing is typed.", f"{_EXAMPLES}.")
    if len(typed) > LONGEST:
        return UnreadableResponse(f"The answer is longer than {LONGEST} characters.")
    written = read_number(typed)
    if written is None:
        return UnreadableResponse(f"“{typed}” is not a number.", f"{_EXAMPLES}{_in(unit)}.")
    word = written.unit or chosen or unit
    return _counted(typed, written, word, unit)


def _counted(
    typed: str, written: TypedNumber, word: str, unit: str
) -> tuple[float, float, str] | UnreadableResponse:
    found = read_unit(word, unit)
    wanted = f"in {unit}, or in a unit of the same kind" if unit else "alone"
    hint = f"Write the number {wanted}."
    if found is None and _ANOTHER.search(word):
        return UnreadableResponse(f"“{typed}” is not one number.", f"{_EXAMPLES}{_in(unit)}.")
    if found is None:
        return UnreadableResponse(f"“{word}” is not a unit that is known here.", hint)
    if not found.fits:
        return UnreadableResponse(f"{found.name} measures something else than is asked.", hint)
    value = written.value * found.factor
    if not math.isfinite(value):
        return UnreadableResponse("The number is too large.", f"{_EXAMPLES}{_in(unit)}.")
    return value, written.value, found.name


def _in(unit: str) -> str:
    return f" in {unit}" if unit else ""


def _found(answer: NumericAnswer, value: float) -> NumericOption | None:
    """The right option the value lies in, else the foreseen wrong one."""
    for option in sorted(answer.options, key=worth_of, reverse=True):
        if option.range is not None and _inside(option.range, value):
            return option
    return None


def _inside(wanted: AcceptedRange, value: float) -> bool:
    if wanted.significant:
        factor = _factor(wanted.unit)
        digits = wanted.significant
        center = _rounded(wanted.center / factor, digits)
        return _rounded(value / factor, digits) == center
    slack = _EDGE * max(abs(wanted.low), abs(wanted.high))
    return wanted.low - slack <= value <= wanted.high + slack


def _rounded(value: float, digits: int) -> str:
    return f"{value:.{max(1, digits) - 1}e}"


def _near(answer: NumericAnswer, number: float, unit: str) -> str:
    """The sentence for a number that would be right in another unit."""
    for other in _others(unit):
        option = _found(answer, number * _factor(other))
        if option is not None and option.right:
            return (
                f"Right amount, wrong unit. {shown(number, '')} is the answer in "
                f"{other or 'plain numbers'}, and you gave it in "
                f"{unit or 'plain numbers'}."
            )
    return ""


def _others(unit: str) -> list[str]:
    if unit not in UNITS:
        return []
    base, factor = UNITS[unit]
    return [u for u, (b, f) in UNITS.items() if b == base and f != factor]


def _factor(unit: str) -> float:
    return UNITS.get(unit, (unit, 1.0))[1]


def _wanted(answer: NumericAnswer) -> str:
    for option in answer.options:
        if option.right and option.range is not None:
            found = option.range
            return shown(found.center / _factor(found.unit), found.unit)
    return ""
