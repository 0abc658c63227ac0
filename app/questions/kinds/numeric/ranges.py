"""Accepted numbers as authors write them: `140 GB ± 3%`, `8 .. 10 s`, `3.14 sig 3`."""

import math
import re

from app.content.numbers import quantities
from app.content.numbers.quantities import Quantity, UnitMismatchError
from app.content.numbers.units import UNITS
from app.estimator.units import MINUS
from app.questions.kinds.numeric.model import AcceptedRange
from app.questions.kinds.numeric.numbers import TypedUnit, read_unit

_PARTS = re.compile(
    r"^(?P<number>.+?)\s*(?:(?:±|\+-|\+/-)\s*(?P<tolerance>.+)"
    r"|(?:\.\.\.?|…)\s*(?P<high>.+)|\bsig\s+(?P<digits>\d{1,2}))?$",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"^(?P<number>[-+−]?[\d,_ \u00a0\u202f]*\d(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"\s*(?P<unit>[^\d\s].*)?$"
)
_FRACTION = re.compile(
    r"^(?P<above>[-+−]?\d{1,6})\s*/\s*(?P<below>0*[1-9]\d{0,5})(?P<unit>(?!\d).*)$"
)
_TURNED = re.compile(r"^(?P<unit>[^\d\s.,+−-]{1,12})\s*(?P<number>\d[\d,.]*)$")
# What stands between two numbers: “to” in any language, a dash, “or”, a slash.
_SPAN = re.compile(
    r"^(?P<unit>(?:[^\d\s–—-]{1,8}\s+)??)(?P<sign>[–—-]|/|[^\W\d]{1,5})\s*"
    r"(?P<rest>\d.*)$"
)
_OR = frozenset({"or", "/", "o", "ou", "oder"})
_TWICE = re.compile(r"^(?P<unit>\S+)(?:\s+(?P=unit))+$")
_DOTTED = re.compile(r"^\.\d")
_OPEN = re.compile(r"^(?P<unit>[^\d\s±]{0,12})\s*±$")
_LATER = re.compile(r"(?<![\d.,%±])\d[\d,.]*(?: ?[^\W\d_%]+)?$")
_SPACERS = re.compile(r"[,_ \u00a0\u202f]")
_DECIMAL_COMMA = re.compile(r",(?!\d{3}(?!\d))")
_DUST = 1e-9
_MOST_LETTERS = 200
_LARGEST = "Write less than 1e300, in a larger unit where there is one."
_MOST_DIGITS = 15  # that a float can tell apart


class AnswerRangeError(ValueError):
    """Why an answer is no range: the code of the rule, and a hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def read_range(text: str, otherwise: float | None = None) -> AcceptedRange:
    """The range meant by an authored answer, in base units.

    `otherwise` is the relative tolerance of an answer that names none; without it a
    number with decimals is refused (E41). Raises BadRange with E40, E41 or E42.
    """
    found = _read(text.strip(), otherwise)
    if not all(map(math.isfinite, (found.low, found.center, found.high))):
        raise AnswerRangeError("E40", f"“{text.strip()}” is too large.", _LARGEST)
    return found


def _read(text: str, otherwise: float | None) -> AcceptedRange:
    if len(text) > _MOST_LETTERS:
        hint = "Write a number, its unit and its tolerance: 140 GB ± 3%."
        raise AnswerRangeError("E40", f"“{text[:40]}…” is too long for a number.", hint)
    match = _PARTS.match(text)
    if match is None:
        raise AnswerRangeError("E40", "The answer is empty.", "Write a number.")
    number, unit = _quantity(match["number"])
    if match["high"]:
        return _between((number, unit), match["high"])
    if match["digits"]:
        return _significant(text, match, (number, unit))
    center = number * UNITS[unit][1]
    if match["tolerance"]:
        half = _tolerance(match["tolerance"], center, unit)
    elif otherwise is not None:
        half = abs(center) * otherwise
    elif number != int(number):
        message = f"“{text}” has decimals and no tolerance."
        raise AnswerRangeError("E41", message, f"Write {text} ± 2%.")
    else:
        half = 0.0
    half = max(half, abs(center) * _DUST)
    return AcceptedRange(center, center - half, center + half, unit)


def _significant(text: str, match: re.Match[str], found: tuple[float, str]) -> AcceptedRange:
    number, unit = found
    factor = UNITS[unit][1]
    digits = int(match["digits"])
    if not 1 <= digits <= _MOST_DIGITS:
        hint = f"Write {match['number'].strip()} sig 3."
        raise AnswerRangeError("E40", f"“{text}” asks for {digits} digits.", hint)
    half = _half_digit(number, digits) * factor
    center = number * factor
    return AcceptedRange(center, center - half, center + half, unit, digits)


def _check_share(percent: float, center: float, unit: str) -> None:
    """A share of zero is no tolerance, and one of everything accepts zero."""
    if not center:
        zero = f"0 {unit}".strip()
        message = f"“{zero} ± {percent:g}%” accepts nothing but 0: a share of 0 is 0."
        raise AnswerRangeError("E41", message, f"Write {zero} ± {f'1 {unit}'.strip()}.")
    if percent >= 100:
        message = f"With ± {percent:g}% zero is accepted as well."
        raise AnswerRangeError("E40", message, "Narrow the tolerance below 100%.")


def _quantity(text: str) -> tuple[float, str]:
    if fraction := _FRACTION.match(text.strip()):
        above, named = _quantity(fraction["above"] + fraction["unit"])
        return above / int(fraction["below"]), named
    match = _NUMBER.match(text.strip())
    if match is None:
        raise AnswerRangeError("E40", f"“{text.strip()}” is not a number.", _first(text))
    if _DECIMAL_COMMA.search(match["number"]):
        point = match["number"].strip().replace(",", ".")
        hint = "Write decimals with a point, such as 7.5; a comma parts thousands."
        if point.count(".") == 1:
            hint = f"Write {point}; a comma parts thousands: 7,500."
        message = f"The comma in “{match['number']}” parts no thousands."
        raise AnswerRangeError("E40", message, hint)
    digits = _SPACERS.sub("", match["number"]).replace(MINUS, "-")
    number = float(digits)
    if abs(number) > 1e300:
        raise AnswerRangeError("E40", f"“{text.strip()}” is too large.", _LARGEST)
    word = (match["unit"] or "").strip()
    unit = quantities.known_unit(word)
    if unit is None:
        raise _bad_unit(word, match["number"], text.strip())
    return number, unit


def _bad_unit(word: str, number: str, text: str) -> AnswerRangeError:
    """What was meant by words that are no unit."""
    known = read_unit(word, "") or _in_other_case(word)
    if known and known.name:
        return AnswerRangeError("E42", f"“{word}” is not a unit.", f"Write {known.name}.")
    meant = _meant(word, number.strip(), text)
    if meant:
        return AnswerRangeError("E40", *meant)
    if twice := _TWICE.match(word):
        message = f"“{word}” names the unit twice."
        return AnswerRangeError("E42", message, f"Write {number.strip()} {twice['unit']}.")
    alone = f"sk for the number alone, {number.strip()}, and write “{word}” into the "
    alone += "question."
    hint = "" if word.startswith("/") else quantities.unit_meant(word)
    if not hint:
        hint = f"Write a unit that the guide lists under “Units”, or a{alone}"
    if word.startswith("/"):
        hint = f"A{alone}"
    return AnswerRangeError("E42", f"“{word}” is not a known unit.", hint)


def _first(text: str) -> str:
    """What to write where something stands before the number."""
    if turned := _TURNED.match(text.strip()):
        return f"Write the number first: {turned['number']} {turned['unit']}."
    if found := _LATER.search(text.strip()):
        behind = "Behind ± stands how far an answer may be off."
        return f"Begin with the number: {found[0]} ± 3%. {behind}"
    return "Write a number first, then its unit: 140 GB ± 3%."


def _meant(word: str, number: str, text: str) -> tuple[str, str] | None:
    """What words behind a number are where they are more than a unit."""
    if _DOTTED.match(word):
        hint = "Write 1,400,000 or 1400000; a dot stands before decimals."
        return f"“{text}” has more than one dot.", hint
    if found := _OPEN.match(word):
        message = f"“{number} {word}” has no tolerance behind its sign."
        amount = f"{number} {found['unit']}".strip()
        return message, f"Write {amount} ± 3%."
    found = _SPAN.match(word)
    if found and found["sign"] in _OR:
        hint = "Write each answer as an option of its own."
        return f"“{text}” is not one number.", hint
    if found:
        low = f"{number} {found['unit']}".strip()
        hint = f"Write a range with two dots: {low} .. {found['rest']}."
        return f"“{text}” is not one number.", hint
    return None


def _in_other_case(word: str) -> TypedUnit | None:
    """The one unit that differs from a word in capital letters alone."""
    same = [u for u in UNITS if u.casefold() == word.casefold()]
    factors = {UNITS[u] for u in same}
    return TypedUnit(same[0], 1.0, fits=True) if len(factors) == 1 else None


def _between(low: tuple[float, str], high: str) -> AcceptedRange:
    top, unit = _quantity(high)
    bottom, bottom_unit = low
    unit = unit or bottom_unit
    factor = UNITS[unit][1]
    low_factor = UNITS[bottom_unit][1] if bottom_unit else factor
    first, last = sorted((bottom * low_factor, top * factor))
    if bottom_unit and quantities.kind(bottom_unit) != quantities.kind(unit):
        message = f"{bottom:g} {bottom_unit} and {high.strip()} do not measure the same."
        raise AnswerRangeError("E42", message, "Write both ends in units of one kind.")
    return AcceptedRange((first + last) / 2, first, last, unit)


def _tolerance(text: str, center: float, unit: str) -> float:
    number, word = _quantity(text)
    if number < 0:
        hint = "Write how far an answer may be off on both sides: ± 3%."
        raise AnswerRangeError("E40", f"The tolerance “{text.strip()}” is negative.", hint)
    if word == "%":
        _check_share(number, center, unit)
        return abs(center) * number / 100
    try:
        return quantities.convert(Quantity(number, word or unit), unit).value * (UNITS[unit][1])
    except UnitMismatchError as error:
        hint = f"Write it in percent{f', or in {unit}' if unit else ''}."
        message = f"The tolerance “{text.strip()}” does not fit: {error}."
        raise AnswerRangeError("E42", message, hint) from None


def _half_digit(number: float, digits: int) -> float:
    if not number:
        return 0.0
    exponent = int(f"{abs(number):e}".partition("e")[2])
    return float(0.5 * 10.0 ** (exponent - digits + 1))
