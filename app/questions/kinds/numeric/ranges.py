"""Accepted numbers as authors write them: `140 GB ± 3%`, `8 .. 10 s`, `3.14 sig 3`."""

import math
import re

from app.content.identity import did_you_mean
from app.content.numbers import quantities
from app.content.numbers.quantities import Quantity, UnitMismatch
from app.content.numbers.units import UNITS
from app.estimator.units import MINUS
from app.questions.kinds.numeric.model import Range

_PARTS = re.compile(
    r"^(?P<number>.+?)\s*(?:(?:±|\+-|\+/-)\s*(?P<tolerance>.+)"
    r"|\.\.\s*(?P<high>.+)|\bsig\s+(?P<digits>\d{1,2}))?$",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"^(?P<number>[-+−]?[\d,_ \u00a0\u202f]*\d(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"\s*(?P<unit>[^\d\s].*)?$"
)
_TURNED = re.compile(r"^(?P<unit>[^\d\s.,+−-]{1,12})\s*(?P<number>\d[\d,.]*)$")
_SPACERS = re.compile(r"[,_ \u00a0\u202f]")
_DECIMAL_COMMA = re.compile(r",(?!\d{3}(?!\d))")
_DUST = 1e-9
_MOST_LETTERS = 200


class BadRange(ValueError):  # noqa: N818 - reads as what it is at the raise
    """Why an answer is no range: the code of the rule, and a hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def read_range(text: str, otherwise: float | None = None) -> Range:
    """The range meant by an authored answer, in base units.

    `otherwise` is the relative tolerance of an answer that names none; without it a
    number with decimals is refused (E41). Raises BadRange with E40, E41 or E42.
    """
    found = _read(text.strip(), otherwise)
    if not all(map(math.isfinite, (found.low, found.center, found.high))):
        raise BadRange("E40", f"“{text.strip()}” is too large.")
    return found


def _read(text: str, otherwise: float | None) -> Range:
    if len(text) > _MOST_LETTERS:
        hint = "Write a number, its unit and its tolerance: 140 GB ± 3%."
        raise BadRange("E40", f"“{text[:40]}…” is too long for a number.", hint)
    match = _PARTS.match(text)
    if match is None:
        raise BadRange("E40", "The answer is empty.", "Write a number.")
    number, unit = _quantity(match["number"])
    if match["high"]:
        return _between((number, unit), match["high"])
    factor = UNITS[unit][1]
    center = number * factor
    if match["digits"]:
        digits = max(1, int(match["digits"]))
        half = _half_digit(number, digits) * factor
        return Range(center, center - half, center + half, unit, digits)
    if match["tolerance"]:
        half = _tolerance(match["tolerance"], center, unit)
    elif otherwise is not None:
        half = abs(center) * otherwise
    elif number != int(number):
        message = f"“{text}” has decimals and no tolerance."
        raise BadRange("E41", message, f"Write {text} ± 2%.")
    else:
        half = 0.0
    half = max(half, abs(center) * _DUST)
    return Range(center, center - half, center + half, unit)


def _quantity(text: str) -> tuple[float, str]:
    match = _NUMBER.match(text.strip())
    if match is None:
        hint = "Write a number first, then its unit: 140 GB ± 3%."
        turned = _TURNED.match(text.strip())
        if turned:
            hint = f"Write the number first: {turned['number']} {turned['unit']}."
        raise BadRange("E40", f"“{text.strip()}” is not a number.", hint)
    if _DECIMAL_COMMA.search(match["number"]):
        hint = "Write 7.5; a comma parts thousands: 7,500."
        message = f"The comma in “{match['number']}” parts no thousands."
        raise BadRange("E40", message, hint)
    digits = _SPACERS.sub("", match["number"]).replace(MINUS, "-")
    number = float(digits)
    if abs(number) > 1e300:
        raise BadRange("E40", f"“{text.strip()}” is too large.")
    word = (match["unit"] or "").strip()
    unit = quantities.known_unit(word)
    if unit is None:
        hint = did_you_mean(word, (u for u in UNITS if u))
        hint = hint or "Ask for the number alone, and name its unit in the question."
        raise BadRange("E42", f"“{word}” is not a known unit.", hint)
    return number, unit


def _between(low: tuple[float, str], high: str) -> Range:
    top, unit = _quantity(high)
    bottom, bottom_unit = low
    unit = unit or bottom_unit
    factor = UNITS[unit][1]
    low_factor = UNITS[bottom_unit][1] if bottom_unit else factor
    first, last = sorted((bottom * low_factor, top * factor))
    if bottom_unit and quantities.kind(bottom_unit) != quantities.kind(unit):
        message = (
            f"{bottom:g} {bottom_unit} and {high.strip()} do not measure the same."
        )
        raise BadRange("E42", message, "Write both ends in units of one kind.")
    return Range((first + last) / 2, first, last, unit)


def _tolerance(text: str, center: float, unit: str) -> float:
    number, word = _quantity(text)
    if number < 0:
        hint = "Write how far an answer may be off on both sides: ± 3%."
        raise BadRange("E40", f"The tolerance “{text.strip()}” is negative.", hint)
    if word == "%":
        return abs(center) * number / 100
    try:
        return (
            quantities.convert(Quantity(number, word or unit), unit).value
            * (UNITS[unit][1])
        )
    except UnitMismatch as error:
        hint = f"Write it in percent{f', or in {unit}' if unit else ''}."
        message = f"The tolerance “{text.strip()}” does not fit: {error}."
        raise BadRange("E42", message, hint) from None


def _half_digit(number: float, digits: int) -> float:
    if not number:
        return 0.0
    exponent = int(f"{abs(number):e}".partition("e")[2])
    return float(0.5 * 10.0 ** (exponent - digits + 1))
