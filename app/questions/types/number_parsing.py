"""Parse numbers as learners type them, and accepted ranges as authors write them."""

import dataclasses
import math
import re
import unicodedata
from typing import NamedTuple

from app.estimator.units import COUNT_SUFFIX, MINUS
from app.markup import quantities
from app.markup.model import NO_TEXT, RichText
from app.markup.problems import AuthoringError, ProblemText
from app.markup.quantities import CURRENCIES, UNIT_SPELLINGS, UNITS, Quantity, UnitMismatchError
from app.questions.question_type import QUOTES, remove_invisible_characters

_DIGIT_BY_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_RAISED_DIGITS = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
# Characters that normalization would turn into a letter, or a detached accent.
_LOOKALIKE_UNIT_SIGNS = str.maketrans("\u00b4\u02da\u00ba", "'°°")
# Every hyphen and dash, and what Japanese keyboards type for one.
_MINUS_SIGNS = (
    "\u058a\u05be\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2500\u2796"
    "\u2e3a\u2e3b\u30fc\ufe58\ufe63\uff0d"
)
_PLAIN_SIGN_BY_SIGN = str.maketrans(
    {
        **dict.fromkeys(_MINUS_SIGNS, "-"),
        **dict.fromkeys("\u2018\u2019\u02bb\u02bc`\u066c", "'"),
        "\u066b": ".",  # Decimal sign of Arabic; the previous character groups digits there.
        "\u066a": "%",
    }
)
# Full stops and commas after an answer, in many scripts.
_FINAL_PUNCTUATION = " .,;\u0589\u060c\u06d4\u0964\u0965\u104a\u104b\u1362\u17d4\u3001\u3002"
_QUOTED_TEXT = re.compile(f"[{QUOTES}](.*)[{QUOTES}]", re.DOTALL)
_SIGNS_OF_ONE = {
    "USD": "US$ $US U.S.$",
    "AUD": "A$ AU$",
    "BDT": "৳",
    "BRL": "R$",
    "CAD": "C$ CA$",
    "CHF": "Fr. Fr SFr.",
    "CNY": "CN¥ RMB 元",
    "CZK": "Kč",
    "EUR": "€",
    "HKD": "HK$",
    "HUF": "Ft",
    "IDR": "Rp",
    "ILS": "₪",
    "INR": "₹",
    "JPY": "JP¥ 円",
    "KRW": "₩",
    "MXN": "MX$",
    "MYR": "RM",
    "NGN": "₦",
    "NZD": "NZ$",
    "PHP": "₱",
    "PLN": "zł",
    "RON": "lei",
    "SGD": "S$",
    "THB": "฿",
    "TRY": "₺",
    "TWD": "NT$",
    "UAH": "₴",
    "VND": "₫",
    "ZAR": "R",
}
_SIGNS_OF_SEVERAL = {
    "$": ("USD", "AUD", "CAD", "HKD", "NZD", "SGD", "TWD", "MXN", "ARS", "CLP", "COP"),
    "£": ("GBP", "EGP"),
    "¥": ("JPY", "CNY"),
    "kr": ("SEK", "NOK", "DKK", "ISK"),
    "kr.": ("SEK", "NOK", "DKK", "ISK"),
    "Rs": ("INR", "PKR"),
    "Rs.": ("INR", "PKR"),
}
_CURRENCY_CODES_BY_SIGN = {code: (code,) for code in CURRENCIES} | _SIGNS_OF_SEVERAL
_CURRENCY_CODES_BY_SIGN |= {
    s: (code,) for code, signs in _SIGNS_OF_ONE.items() for s in signs.split()
}
"""The currencies that each code or sign may mean; the first one is the default."""
_CURRENCY_CODE = f"(?i:{'|'.join(CURRENCIES)})"
_CURRENCY_SIGN = "|".join(
    re.escape(sign) for sign in sorted(_CURRENCY_CODES_BY_SIGN, key=len, reverse=True)
)
_NUMBER_SHAPE = re.compile(
    rf"""^[~≈=\u301c\s]*(?P<sign>[+-]?)\s*
    (?:(?P<money>(?:(?:US|{_CURRENCY_CODE})\s*)?(?:{_CURRENCY_SIGN})|{_CURRENCY_CODE}|%)\s*(?P<inner>[+-]?)\s*)?
    (?P<digits>\d[\d.,'_\s]*\d|\d|[.,]\d+)(?:[.,](?:-{{1,2}}(?!\d))?)?
    (?:\s*[/\u2044]\s*(?P<below>\d{{1,6}}))?
    (?:\s*(?:[eE]|[x×*·]\s*10\s*(?:\^|\*\*))\s*(?P<power>[+-]?\s*\d{{1,3}})
      |\s*(?:\^|\*\*)\s*(?P<exponent>[+-]?\s*\d{{1,3}}))?
    \s*(?P<unit>.*)$""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")  # Keeps 1½ apart from 11/2.
_GROUPED_DIGITS = re.compile(r"^\d{1,3}(?:[\s'_]\d{3})+(?:[.,]\d+)?$")
_UNIT_BY_SPELLING = {
    "percent": "%",
    "dollar": "USD",
    "dollars": "USD",
    "pounds": "GBP",
    "rupees": "INR",
    "second": "s",
    "seconds": "s",
    "sec": "s",
    "millisecond": "ms",
    "milliseconds": "ms",
    "microsecond": "µs",
    "microseconds": "µs",
    "minute": "min",
    "mins": "min",
    "hour": "h",
    "hr": "h",
    "hrs": "h",
    "year": "years",
    "tflops": "TFLOP/s",
    "pflops": "PFLOP/s",
    "gflops": "GFLOP/s",
    "eflops": "EFLOP/s",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "gbps": "Gbit/s",
    "mbps": "Mbit/s",
    "tbps": "Tbit/s",
    "gpus": "GPUs",
    "gpu": "GPU",
    "euro": "EUR",
    "euros": "EUR",
    "francs": "CHF",
    "yen": "JPY",
    "meter": "m",
    "meters": "m",
    "kilometer": "km",
    "kilometers": "km",
    "liter": "L",
    "liters": "L",
    "gram": "g",
    "grams": "g",
    "kilogram": "kg",
    "kilograms": "kg",
    "kmh": "km/h",
    "kph": "km/h",
    "volts": "V",
    "ohms": "Ω",
}
_UNIT_PREFIX_BY_WORD = {
    "kilo": "k",
    "mega": "M",
    "giga": "G",
    "tera": "T",
    "peta": "P",
    "exa": "E",
    "kibi": "Ki",
    "mebi": "Mi",
    "gibi": "Gi",
    "tebi": "Ti",
    "pebi": "Pi",
}
_SHORT_PREFIX = {"k": "k", "m": "M", "g": "G", "t": "T", "p": "P"}  # of bytes and bits
_UNIT_BY_STEM = {"byte": "B", "bit": "bit", "watt": "W"}
# An amount each second. In “GBPS” nobody can tell bytes from bits.
_RATE_SPELLING = re.compile(r"(?P<amount>\S+?)(?:(?<=[Bb])ps|/(?:s|secs?|seconds?))")
_CAPITAL_RATE = re.compile(r"(?P<prefix>[KMGTP]?)B(?:PS|ps)")
_TRANSFER_RATE_UNIT = re.compile(r"[kMG]?T/s|transfers?/s", re.IGNORECASE)
_FACTOR_BY_WORD = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


@dataclasses.dataclass(frozen=True, slots=True)
class TypedNumber:
    """A number as typed: its `value`, and `unit_word`, the word after it."""

    value: float
    unit_word: str


def parse_typed_number(text: str) -> TypedNumber | None:
    """Split typed text into a number and the word after it; None if there is no number.

    A comma or dot before exactly three last digits groups thousands (a dot only when
    there are several); any other single one is the decimal sign. Spaces, apostrophes
    and underscores group. A fraction has a whole number above and below its line. A
    currency may precede the number, and is the word then.

    >>> parse_typed_number("1,120 GB")
    TypedNumber(value=1120.0, unit_word='GB')
    >>> parse_typed_number("1,12 TB")
    TypedNumber(value=1.12, unit_word='TB')
    >>> parse_typed_number("1.12 × 10^12 B").value
    1120000000000.0
    >>> parse_typed_number("3/4 TB")
    TypedNumber(value=0.75, unit_word='TB')
    >>> parse_typed_number("-US$5.80")
    TypedNumber(value=-5.8, unit_word='US$')
    """
    match = _NUMBER_SHAPE.match(_normalize_number_text(text))
    if match is None or (match["sign"] and match["inner"]):
        return None
    digits = _normalize_separators(match["digits"])
    # In “1,024e3” the comma may group digits or, as often written, be a decimal sign.
    is_ambiguous = match["power"] and "," in match["digits"] and "." not in (digits or "")
    if digits is None or is_ambiguous:
        return None
    value = _apply_exponent_or_nan(digits, match["power"], match["exponent"])
    if match["below"]:
        can_divide = match["digits"].isdigit() and float(match["below"])
        value = value / float(match["below"]) if can_divide else math.nan
    if not math.isfinite(value):
        return None
    unit = _join_currency_and_unit(match["money"] or "", match["unit"].strip())
    negative = "-" in (match["sign"], match["inner"])
    return TypedNumber(-value if negative else value, unit)


@dataclasses.dataclass(frozen=True, slots=True)
class TypedUnit:
    name: str
    factor_to_base_unit: float
    fits_expected_unit: bool


def parse_unit(unit_word: str, expected_unit: str) -> TypedUnit | None:
    """Return the unit meant by `unit_word` if one like `expected_unit` is expected, or None.

    Letter case is ignored if only one unit of that kind can be meant; Gb is a
    gigabit. A count may carry k, M, B, T or their words.

    >>> parse_unit("gigabytes", "TB")
    TypedUnit(name='GB', factor_to_base_unit=1000000000.0, fits_expected_unit=True)
    >>> parse_unit("billion parameters", "").factor_to_base_unit
    1000000000.0
    >>> parse_unit("ms", "GB").fits_expected_unit
    False
    """
    unit_word = " ".join(unit_word.replace("μ", "µ").split())
    unit_word = _replace_currency_by_code(re.sub(r" ?/ ?| per ", "/", unit_word), expected_unit)
    if not unit_word:
        return TypedUnit("", 1.0, quantities.base_unit_of(expected_unit) == "")
    if _is_count_unit(expected_unit) and (scale := _find_count_factor(unit_word, expected_unit)):
        return TypedUnit(unit_word, scale, fits_expected_unit=True)
    name = _find_unit_by_symbol_or_word(unit_word) or _match_expected_unit_ignoring_case(
        unit_word, expected_unit
    )
    if name is None:
        return None
    fits = quantities.base_unit_of(name) == quantities.base_unit_of(expected_unit)
    return TypedUnit(name, UNITS[name].base_units_per_unit, fits)


def _normalize_number_text(text: str) -> str:
    text = _BEFORE_FRACTION.sub(" ", text)
    with_exponents = _RAISED_DIGITS.sub(lambda m: "^" + m[0].translate(_DIGIT_BY_SUPERSCRIPT), text)
    normalized = unicodedata.normalize("NFKC", with_exponents.translate(_LOOKALIKE_UNIT_SIGNS))
    visible = remove_invisible_characters(normalized).strip()
    quoted = _QUOTED_TEXT.fullmatch(visible)
    number_text = quoted[1] if quoted else visible
    return number_text.translate(_PLAIN_SIGN_BY_SIGN).strip().rstrip(_FINAL_PUNCTUATION)


def _normalize_separators(typed_number: str) -> str | None:
    """Return the digits with a dot as decimal sign; None if they do not form a number."""
    if re.search(r"[\s'_]", typed_number):
        joined = re.sub(r"[\s'_]", "", typed_number).replace(",", ".")
        return joined if _GROUPED_DIGITS.match(typed_number) else None
    commas, dots = typed_number.count(","), typed_number.count(".")
    if commas and dots:
        return _normalize_comma_and_dot(typed_number)
    sign = "," if commas else "."
    is_grouping = _is_thousands_grouping(typed_number, sign)
    if commas > 1 or dots > 1 or (commas and is_grouping):
        return typed_number.replace(sign, "") if is_grouping else None
    return typed_number.replace(",", ".")


def _normalize_comma_and_dot(typed_number: str) -> str | None:
    """Return digits with both signs as a decimal; the sign that occurs once and last is decimal."""
    decimal_sign = max(".,", key=typed_number.rfind)
    group_sign = "," if decimal_sign == "." else "."
    integer_part, _, decimals = typed_number.rpartition(decimal_sign)
    is_grouping = _is_thousands_grouping(integer_part, group_sign)
    if decimal_sign in integer_part or not is_grouping or not decimals.isdigit():
        return None
    return f"{integer_part.replace(group_sign, '')}.{decimals}"


def _is_thousands_grouping(typed_number: str, separator: str) -> bool:
    first, *rest = typed_number.split(separator)
    fits = 1 <= len(first) <= 3 and first.isdigit() and not first.startswith("0")
    return fits and all(len(part) == 3 and part.isdigit() for part in rest)


def _apply_exponent_or_nan(
    digits: str, exponent_of_ten: str | None, written_power: str | None
) -> float:
    if exponent_of_ten:
        return float(f"{digits}e{exponent_of_ten.replace(' ', '')}")
    try:
        return float(digits) ** int(written_power.replace(" ", "") if written_power else 1)
    except (OverflowError, ZeroDivisionError):
        return math.nan


def _is_count_unit(unit: str) -> bool:
    nouns = {"", "token", "sequence", "parameter", "GPU", "node", "layer"}
    return quantities.base_unit_of(unit) in nouns and unit != "%"


def _find_count_factor(unit_word: str, expected_unit: str) -> float | None:
    """Return the factor of a count: `k`, `B`, `billion parameters`, `GPUs`."""
    first, _, rest = unit_word.partition(" ")
    factor = _FACTOR_BY_WORD.get(first.lower()) or COUNT_SUFFIX.get(first)
    noun = rest if factor else unit_word
    name = _find_unit_by_symbol_or_word(noun) if noun else ""
    if name is None or not _is_count_unit(name):
        return None
    base, expected_base = map(quantities.base_unit_of, (name, expected_unit))
    is_same_kind = base == expected_base or not base or not expected_base
    return (factor or 1.0) if is_same_kind else None


def _find_unit_by_symbol_or_word(word: str) -> str | None:
    """Return the unit written exactly so, or spelled out."""
    if re.fullmatch(r"[kMGTPE]b", word):
        word = word.replace("b", "bit")
    word = UNIT_SPELLINGS.get(word, word)
    if word in UNITS:
        return word
    if rate := _RATE_SPELLING.fullmatch(word):
        unit = f"{_find_unit_by_symbol_or_word(rate['amount'])}/s"
        if unit in UNITS:
            return unit
    lower = word.lower()
    if lower in _UNIT_BY_SPELLING and not _CAPITAL_RATE.fullmatch(word):
        return _UNIT_BY_SPELLING[lower]
    stem = lower.removesuffix("s")
    for name, letter in _UNIT_BY_STEM.items():
        prefixes = {"": ""} | _UNIT_PREFIX_BY_WORD | (_SHORT_PREFIX if letter != "W" else {})
        prefix = stem.removesuffix(name)
        if stem.endswith(name) and prefix in prefixes:
            unit = prefixes[prefix] + letter
            return unit if unit in UNITS else None
    return None


def _match_expected_unit_ignoring_case(unit_word: str, expected_unit: str) -> str | None:
    base = quantities.base_unit_of(expected_unit)
    fits = [u for u, s in UNITS.items() if u.lower() == unit_word.lower() and s.base_unit == base]
    return fits[0] if len({UNITS[u].base_units_per_unit for u in fits}) == 1 else None


def _join_currency_and_unit(currency_before: str, unit_behind: str) -> str:
    """Return the unit of a number with a currency before it and perhaps a unit after it."""
    if not currency_before or not unit_behind:
        return currency_before or unit_behind
    if unit_behind.startswith("/"):
        return f"{currency_before}{unit_behind}"
    is_repeated = set(_possible_currencies(currency_before)) & set(
        _possible_currencies(unit_behind)
    )
    return unit_behind if is_repeated else f"{currency_before} {unit_behind}"


def _possible_currencies(word: str) -> tuple[str, ...]:
    """Return the currencies that a code, a sign, or a code with its sign may mean."""
    name = word.replace(" ", "")
    if name not in _CURRENCY_CODES_BY_SIGN and len(name) > 3:
        return tuple({name[:3].upper()} & {*_possible_currencies(name[3:])})
    return _CURRENCY_CODES_BY_SIGN.get(name) or _CURRENCY_CODES_BY_SIGN.get(name.upper(), ())


def _replace_currency_by_code(word: str, expected_unit: str) -> str:
    """Replace the currency in a unit by its code: that of `expected_unit` if it may be meant."""
    sign, slash, rest = word.partition("/")
    codes = _possible_currencies(sign)
    if not codes:
        return word
    expected_currency = expected_unit.partition("/")[0]
    code = expected_currency if expected_currency in codes else codes[0]
    name = f"{code}{slash}{rest}"
    return name if name in UNITS else f"{code}{slash}{_UNIT_BY_SPELLING.get(rest, rest)}"


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerRange:
    """An accepted or foreseen number: low <= x <= high in base units of `unit`.

    `center` is the authored value; `unit` the unit it is shown in ("GB" or "").
    `significant` > 0 asks for that many significant digits instead of a range.
    """

    center: float
    low: float
    high: float
    unit: str = ""
    significant: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class NumericOption:
    """A range with its feedback; templates until numbers are drawn."""

    key: str
    template: str
    range: AnswerRange | None
    right: bool
    feedback: RichText = NO_TEXT
    credit: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class NumericSpec:
    """A typed number, with tolerance and unit."""

    options: tuple[NumericOption, ...]


_NUMBER_WITH_TOLERANCE = re.compile(
    r"^(?P<number>.+?)\s*(?:(?:±|\+-|\+/-)\s*(?P<tolerance>.+)"
    r"|(?:\.\.\.?|…)\s*(?P<high>.+)|\bsig\s+(?P<digits>\d{1,2}))?$",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"^(?P<number>[-+−]?[\d,_ \u00a0\u202f]*\d(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"\s*(?P<unit>[^\d\s].*)?$"
)
_FRACTION_ANSWER = re.compile(
    r"^(?P<above>[-+−]?\d{1,6})\s*/\s*(?P<below>0*[1-9]\d{0,5})(?P<unit>(?!\d).*)$"
)
_UNIT_BEFORE_NUMBER = re.compile(r"^(?P<unit>[^\d\s.,+−-]{1,12})\s*(?P<number>\d[\d,.]*)$")
# Between two numbers: “to” in several languages, a dash, “or”, a slash.
_RANGE_ANSWER = re.compile(
    r"^(?P<unit>(?:[^\d\s–—-]{1,8}\s+)??)(?P<sign>[–—-]|/|[^\W\d]{1,5})\s*"
    r"(?P<rest>\d.*)$"
)
_OR_WORDS = frozenset({"or", "/", "o", "ou", "oder"})
_REPEATED_UNIT = re.compile(r"^(?P<unit>\S+)(?:\s+(?P=unit))+$")
_NUMBER_WITHOUT_LEADING_ZERO = re.compile(r"^\.\d")
_TOLERANCE_WITHOUT_NUMBER = re.compile(r"^(?P<unit>[^\d\s±]{0,12})\s*±$")
_SECOND_NUMBER = re.compile(r"(?<![\d.,%±])\d[\d,.]*(?: ?[^\W\d_%]+)?$")
_DIGIT_SPACERS = re.compile(r"[,_ \u00a0\u202f]")
_DECIMAL_COMMA = re.compile(r",(?!\d{3}(?!\d))")
_ROUNDING_ERROR_SHARE = 1e-9
_MOST_LETTERS = 200
_TOO_LARGE_HINT = "Write less than 1e300, in a larger unit where there is one."
_MOST_DIGITS = 15  # Digits that a float can represent.


class AnswerRangeError(AuthoringError):
    """An answer is not a valid range."""


def parse_answer_range(text: str, default_tolerance: float | None = None) -> AnswerRange:
    """Parse an authored answer as a range in base units.

    `default_tolerance` is the relative tolerance of an answer that states none; without it a
    number with decimals is rejected (E41). Raises AnswerRangeError with E40, E41 or E42.
    """
    written_range = _parse_possibly_infinite_range(text.strip(), default_tolerance)
    if not all(map(math.isfinite, (written_range.low, written_range.center, written_range.high))):
        raise AnswerRangeError("E40", f"“{text.strip()}” is too large.", _TOO_LARGE_HINT)
    return written_range


def _parse_possibly_infinite_range(text: str, default_tolerance: float | None) -> AnswerRange:
    if len(text) > _MOST_LETTERS:
        hint = "Write a number, its unit and its tolerance: 140 GB ± 3%."
        raise AnswerRangeError("E40", f"“{text[:40]}…” is too long for a number.", hint)
    match = _NUMBER_WITH_TOLERANCE.match(text)
    if match is None:
        raise AnswerRangeError("E40", "The answer is empty.", "Write a number.")
    quantity = number, unit = _parse_number_with_unit(match["number"])
    if match["high"]:
        return _make_range_between(quantity, match["high"])
    if match["digits"]:
        return _range_of_significant_digits(text, match, quantity)
    center = number * UNITS[unit].base_units_per_unit
    if match["tolerance"]:
        half = _convert_tolerance_to_base_unit(match["tolerance"], center, unit)
    elif default_tolerance is not None:
        half = abs(center) * default_tolerance
    elif number != int(number):
        message = f"“{text}” has decimals and no tolerance."
        raise AnswerRangeError("E41", message, f"Write {text} ± 2%.")
    else:
        half = 0.0
    half = max(half, abs(center) * _ROUNDING_ERROR_SHARE)
    return AnswerRange(center, center - half, center + half, unit)


class NumberWithUnit(NamedTuple):
    number: float
    unit: str


def _range_of_significant_digits(
    text: str, match: re.Match[str], quantity: NumberWithUnit
) -> AnswerRange:
    number, unit = quantity
    factor = UNITS[unit].base_units_per_unit
    digits = int(match["digits"])
    if not 1 <= digits <= _MOST_DIGITS:
        hint = f"Write {match['number'].strip()} sig 3."
        raise AnswerRangeError("E40", f"“{text}” asks for {digits} digits.", hint)
    half = _half_unit_of_last_digit(number, digits) * factor
    center = number * factor
    return AnswerRange(center, center - half, center + half, unit, digits)


def _raise_if_tolerance_percent_unusable(percent: float, center: float, unit: str) -> None:
    """Reject a tolerance of 0%, and one of 100% or more, which would accept zero."""
    if not center:
        zero = f"0 {unit}".strip()
        message = f"“{zero} ± {percent:g}%” accepts nothing but 0: a share of 0 is 0."
        raise AnswerRangeError("E41", message, f"Write {zero} ± {f'1 {unit}'.strip()}.")
    if percent >= 100:
        message = f"With ± {percent:g}% zero is accepted as well."
        raise AnswerRangeError("E40", message, "Narrow the tolerance below 100%.")


def _parse_number_with_unit(text: str) -> NumberWithUnit:
    if fraction := _FRACTION_ANSWER.match(text.strip()):
        numerator, unit_name = _parse_number_with_unit(fraction["above"] + fraction["unit"])
        return NumberWithUnit(numerator / int(fraction["below"]), unit_name)
    match = _NUMBER.match(text.strip())
    if match is None:
        hint = _suggest_number_first(text)
        raise AnswerRangeError("E40", f"“{text.strip()}” is not a number.", hint)
    if _DECIMAL_COMMA.search(match["number"]):
        with_point = match["number"].strip().replace(",", ".")
        hint = "Write decimals with a point, such as 7.5; a comma parts thousands."
        if with_point.count(".") == 1:
            hint = f"Write {with_point}; a comma parts thousands: 7,500."
        message = f"The comma in “{match['number']}” parts no thousands."
        raise AnswerRangeError("E40", message, hint)
    digits = _DIGIT_SPACERS.sub("", match["number"]).replace(MINUS, "-")
    number = float(digits)
    if abs(number) > 1e300:
        raise AnswerRangeError("E40", f"“{text.strip()}” is too large.", _TOO_LARGE_HINT)
    word = (match["unit"] or "").strip()
    unit = quantities.recognize_unit(word)
    if unit is None:
        raise _unknown_unit_error(word, match["number"], text.strip())
    return NumberWithUnit(number, unit)


def _unknown_unit_error(word: str, number: str, text: str) -> AnswerRangeError:
    unit = parse_unit(word, "") or _find_unit_ignoring_case(word)
    if unit and unit.name:
        return AnswerRangeError("E42", f"“{word}” is not a unit.", f"Write {unit.name}.")
    explanation = _explain_misspelled_range(word, number.strip(), text)
    if explanation:
        return AnswerRangeError("E40", *explanation)
    if twice := _REPEATED_UNIT.match(word):
        message = f"“{word}” names the unit twice."
        return AnswerRangeError("E42", message, f"Write {number.strip()} {twice['unit']}.")
    number_alone_advice = f"sk for the number alone, {number.strip()}, and write “{word}” into the "
    number_alone_advice += "question."
    is_rate = word.startswith("/") or _TRANSFER_RATE_UNIT.fullmatch(word)
    hint = "" if is_rate else quantities.suggest_closest_unit_or_empty(word)
    if rate := _CAPITAL_RATE.fullmatch(word):
        prefix = rate["prefix"].replace("K", "k")
        hint = f"Write {prefix}B/s for bytes, or {prefix}bit/s for bits."
    if not hint:
        hint = f"{quantities.UNIT_EXAMPLES}; or a{number_alone_advice}"
    if word.startswith("/"):
        hint = f"A{number_alone_advice}"
    return AnswerRangeError("E42", f"“{word}” is not a known unit.", hint)


def _suggest_number_first(text: str) -> str:
    if turned := _UNIT_BEFORE_NUMBER.match(text.strip()):
        return f"Write the number first: {turned['number']} {turned['unit']}."
    if match := _SECOND_NUMBER.search(text.strip()):
        behind = "Behind ± stands how far an answer may be off."
        return f"Begin with the number: {match[0]} ± 3%. {behind}"
    return "Write a number first, then its unit: 140 GB ± 3%."


def _explain_misspelled_range(word: str, number: str, text: str) -> ProblemText | None:
    """Return what to say of a range or tolerance in another spelling; None if it is none."""
    if _NUMBER_WITHOUT_LEADING_ZERO.match(word):
        hint = "Write 1,400,000 or 1400000; a dot stands before decimals."
        return ProblemText(f"“{text}” has more than one dot.", hint)
    if match := _TOLERANCE_WITHOUT_NUMBER.match(word):
        message = f"“{number} {word}” has no tolerance behind its sign."
        amount = f"{number} {match['unit']}".strip()
        return ProblemText(message, f"Write {amount} ± 3%.")
    match = _RANGE_ANSWER.match(word)
    if match and match["sign"] in _OR_WORDS:
        hint = "Write each answer as an option of its own."
        return ProblemText(f"“{text}” is not one number.", hint)
    if match:
        low = f"{number} {match['unit']}".strip()
        hint = f"Write a range with two dots: {low} .. {match['rest']}."
        return ProblemText(f"“{text}” is not one number.", hint)
    return None


def _find_unit_ignoring_case(word: str) -> TypedUnit | None:
    """Return the only unit that differs from a word in capitalization alone."""
    matches = [u for u in UNITS if u.casefold() == word.casefold()]
    factors = {UNITS[u] for u in matches}
    return TypedUnit(matches[0], 1.0, fits_expected_unit=True) if len(factors) == 1 else None


def _make_range_between(low: NumberWithUnit, high: str) -> AnswerRange:
    high_number, unit = _parse_number_with_unit(high)
    low_number, low_unit = low
    unit = unit or low_unit
    factor = UNITS[unit].base_units_per_unit
    low_factor = UNITS[low_unit].base_units_per_unit if low_unit else factor
    low_value, high_value = sorted((low_number * low_factor, high_number * factor))
    kinds = {quantities.format_unit_dimension(name) for name in (low_unit, unit)}
    if low_unit and len(kinds) > 1:
        message = f"{low_number:g} {low_unit} and {high.strip()} do not measure the same."
        raise AnswerRangeError("E42", message, "Write both ends in units of one kind.")
    return AnswerRange((low_value + high_value) / 2, low_value, high_value, unit)


def _convert_tolerance_to_base_unit(text: str, base_center: float, unit: str) -> float:
    number, word = _parse_number_with_unit(text)
    if number < 0:
        hint = "Write how far an answer may be off on both sides: ± 3%."
        raise AnswerRangeError("E40", f"The tolerance “{text.strip()}” is negative.", hint)
    if word == "%":
        _raise_if_tolerance_percent_unusable(number, base_center, unit)
        return abs(base_center) * number / 100
    try:
        in_unit = quantities.convert_quantity(Quantity(number, word or unit), unit)
        return in_unit.value * UNITS[unit].base_units_per_unit
    except UnitMismatchError as error:
        hint = f"Write it in percent{f', or in {unit}' if unit else ''}."
        if word and not unit:
            hint = f"Write the unit behind the number as well: {base_center:g} {word} ± {text.strip()}."
        message = f"The tolerance “{text.strip()}” does not fit: {error}."
        raise AnswerRangeError("E42", message, hint) from None


def _half_unit_of_last_digit(number: float, significant_digits: int) -> float:
    if not number:
        return 0.0
    exponent = int(f"{abs(number):e}".partition("e")[2])
    return float(0.5 * 10.0 ** (exponent - significant_digits + 1))
