"""Numbers with units: add, compare, convert, format."""

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from app.estimator import units
from app.estimator.units import COUNT_SUFFIX, MINUS, split_number_and_unit
from app.markup.text import write_hint_for_unknown_word

# Factors to the base unit. Those of the SI and of units accepted for use with it are exact by
# definition: https://www.bipm.org/en/publications/si-brochure (tables 4 and 8),
# https://www.nist.gov/pml/special-publication-811 (appendix B.8).
_FACTORS_BY_BASE_UNIT: tuple[tuple[str, dict[str, float]], ...] = (
    ("s", {"week": 604800.0, "weeks": 604800.0}),
    ("m", {"nm": 1e-9, "µm": 1e-6, "mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3}),
    ("m", {"ft": 0.3048, "mi": 1609.344}),
    ("m*m", {"cm²": 1e-4, "m²": 1.0, "ha": 1e4, "km²": 1e6}),
    ("L", {"µL": 1e-6, "mL": 1e-3, "cL": 1e-2, "dL": 0.1, "L": 1.0, "cm³": 1e-3, "m³": 1e3}),
    ("L/s", {"mL/h": 1e-3 / 3600, "mL/min": 1e-3 / 60, "L/h": 1 / 3600, "L/min": 1 / 60}),
    ("L/s", {"L/s": 1.0}),
    ("kg", {"µg": 1e-9, "mg": 1e-6, "g": 1e-3, "lb": 0.45359237}),
    ("mol", {"µmol": 1e-6, "mmol": 1e-3, "mol": 1.0}),
    ("mol/L", {"µmol/L": 1e-6, "mmol/L": 1e-3, "mol/L": 1.0}),
    ("kg/L", {"µg/L": 1e-9, "mg/L": 1e-6, "mg/dL": 1e-5, "g/dL": 1e-2, "g/L": 1e-3, "kg/L": 1.0}),
    ("m/s", {"mm/s": 1e-3, "m/s": 1.0, "km/h": 1 / 3.6, "mph": 0.44704}),
    ("m/s*s", {"m/s²": 1.0}),
    ("N", {"N": 1.0, "kN": 1e3}),
    ("Pa", {"Pa": 1.0, "hPa": 1e2, "kPa": 1e3, "MPa": 1e6, "mbar": 1e2, "bar": 1e5}),
    ("Pa", {"mmHg": 133.322387415}),
    ("Wh", {"J": 1 / 3600, "kJ": 1e3 / 3600, "MJ": 1e6 / 3600, "GJ": 1e9 / 3600}),
    ("Wh", {"kcal": 4184 / 3600}),
    ("1/s", {"rpm": 1 / 60, "Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}),
    ("A", {"mA": 1e-3, "kA": 1e3}),
    ("V", {"mV": 1e-3, "kV": 1e3}),
    ("Ω", {"Ω": 1.0, "kΩ": 1e3, "MΩ": 1e6}),
    ("Ah", {"Ah": 1.0, "mAh": 1e-3}),
    ("K", {"K": 1.0}),
    ("°F", {"°F": 1.0}),
    ("°", {"°": 1.0}),
)
# ISO 4217, https://www.six-group.com/en/products-services/financial-information/data-standards.html
_CURRENCIES = """
AED ARS AUD BDT BGN BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK
JPY KES KRW MAD MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RSD SAR SEK SGD THB TRY TWD UAH
VND ZAR
"""
CURRENCIES = ("USD", *_CURRENCIES.split())
"""Currency codes."""
_CURRENCY_BY_SIGN = {"€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}


class UnitScale(NamedTuple):
    """The base unit of a unit, and how many of them it is."""

    base_unit: str
    base_units_per_unit: float


UNITS: dict[str, UnitScale] = {
    **{name: UnitScale(*scale) for name, scale in units.UNITS.items()},
    **{
        name: UnitScale(base, f)
        for base, factors in _FACTORS_BY_BASE_UNIT
        for name, f in factors.items()
    },
    **{code: UnitScale(code, 1.0) for code in CURRENCIES},
    **{sign: UnitScale(code, 1.0) for sign, code in _CURRENCY_BY_SIGN.items()},
}
"""Every unit that a question may ask for and an answer may be typed in."""

_SPELLING_OF_POWERS = {"m2": "m²", "cm2": "cm²", "km2": "km²", "m3": "m³", "cm3": "cm³"}
_SPELLING_OF_POWERS |= {"m/s2": "m/s²"}
UNIT_SPELLINGS = {
    **_SPELLING_OF_POWERS,
    **{f"{name[:-1]}^{name[-1]}": unit for name, unit in _SPELLING_OF_POWERS.items()},
    "\uff05": "%",
    "٪": "%",
    "Ohm": "Ω",
    "ohm": "Ω",
    "kOhm": "kΩ",
    # The ordinal sign and the ring, on keyboards without a degree sign.
    **{f"{sign}{scale}": f"°{scale}" for sign in "º˚" for scale in ("C", "F", "")},
    "l": "L",
    "ml": "mL",
    "dl": "dL",
    "l/min": "L/min",
    "mmol/l": "mmol/L",
    "mg/dl": "mg/dL",
    "g/l": "g/L",
}
"""Keyboard spellings of units, and their canonical spelling."""

_COUNTED_UNITS = frozenset({"token", "sequence", "GPU", "node", "layer", "parameter"})
_UNIT_BY_ALIAS = {
    "TFLOPS": "TFLOP/s",
    "PFLOPS": "PFLOP/s",
    "EFLOPS": "EFLOP/s",
    "GFLOPS": "GFLOP/s",
    "second": "s",
    "seconds": "s",
    "minute": "min",
    "hour": "h",
    "dollars": "USD",
}


_MOST_EXACT = 10**15


class UnitMismatchError(ValueError):
    """Two units that cannot be added, compared or converted."""


@dataclasses.dataclass(frozen=True, slots=True)
class Quantity:
    """A number in `unit`: "" for a plain number, None if the unit is unknown."""

    value: float
    unit: str | None = ""


def convert_long_integer_to_float(value: float) -> float:
    """Convert an integer too long to be stored to a float.

    Integers are exact and may have any length, so a few multiplications could exhaust
    the memory. Raises OverflowError beyond 10^308.
    """
    if isinstance(value, int) and abs(value) > _MOST_EXACT:
        return float(value)
    return value


def recognize_unit(word: str) -> str | None:
    """Return the unit meant by `word` as written in a text, or None.

    >>> recognize_unit("TFLOPS")
    'TFLOP/s'
    """
    unit = _UNIT_BY_ALIAS.get(word) or UNIT_SPELLINGS.get(word, word)
    return unit if unit in UNITS else None


_MIN_SPELLING_SIMILARITY = 0.7  # “litros” is not a spelling of “bits”, nor “loaves” of “layers”.
UNIT_EXAMPLES = (
    "Units are %, B, GB, GiB, bit/s, FLOP/s, W, kWh, s, min, h, days, USD, g, kg, mm, m, km, "
    "mL, L, °C and their like"
)
"""Begins a hint for an unknown unit."""


def suggest_closest_unit_or_empty(word: str) -> str:
    """Return a hint for an unknown unit: the closest known one, or ""."""
    return write_hint_for_unknown_word(
        word, (unit for unit in UNITS if unit), _MIN_SPELLING_SIMILARITY
    )


def base_unit_of(unit: str) -> str:
    return UNITS[unit].base_unit if unit in UNITS else unit


def get_factor_to_base_unit(unit: str) -> float:
    return UNITS[unit].base_units_per_unit if unit in UNITS else 1.0


class UnitDimension(NamedTuple):
    """The factor of a unit to its base, and its base units with their powers."""

    base_units_per_unit: float
    power_by_base_unit: Counter[str]


def unit_dimension(unit: str) -> UnitDimension:
    powers: Counter[str] = Counter()
    numerator, _, denominator = base_unit_of(unit).partition("/")
    for sign, part in ((1, numerator), (-1, denominator)):
        for name in part.split("*"):
            if name and name != "1":
                powers[name] += sign
    return UnitDimension(get_factor_to_base_unit(unit), powers)


def format_unit_dimension(unit: str) -> str:
    """Return the base units of a unit as text, e.g. “B/s”; empty for numbers and counts.

    Units of one kind, such as GB and TiB, have the same.
    """
    return _format_unit_powers(unit_dimension(unit).power_by_base_unit)


def _format_unit_powers(powers: Counter[str]) -> str:
    numerator = "*".join(sorted(n for n, p in powers.items() for _ in range(p)))
    denominator = "*".join(sorted(n for n, p in powers.items() for _ in range(-p)))
    if all(name in _COUNTED_UNITS for name in powers):
        return ""
    return f"{numerator or '1'}/{denominator}" if denominator else numerator


def _format_dimension_without_counts(unit: str) -> str:
    return _format_unit_powers(_drop_count_units(unit_dimension(unit).power_by_base_unit))


def _drop_count_units(powers: Counter[str]) -> Counter[str]:
    return Counter({n: p for n, p in powers.items() if p and n not in _COUNTED_UNITS})


def convert_quantity(quantity: Quantity, unit: str) -> Quantity:
    """Convert a quantity to another unit; raises UnitMismatchError.

    A quantity of unknown unit is taken to be in base units.
    """
    factor = unit_dimension(unit).base_units_per_unit
    if quantity.unit is None:
        return Quantity(quantity.value / factor, unit)
    if _format_dimension_without_counts(quantity.unit) != _format_dimension_without_counts(unit):
        raise UnitMismatchError(
            f"{quote_unit(quantity.unit)} cannot be turned into {quote_unit(unit)}"
        )
    return Quantity(
        quantity.value * (unit_dimension(quantity.unit).base_units_per_unit / factor), unit
    )


def quote_unit(unit: str | None) -> str:
    """Return a unit as a sentence names it: in quotes, or “a plain number”."""
    return f"“{unit}”" if unit else "a plain number"


def combine_in_common_unit(
    left: Quantity, right: Quantity, operation: Callable[[float, float], float]
) -> Quantity:
    """Add, subtract or compare two quantities, in the unit of the one that has one."""
    if left.unit is None or right.unit is None:
        return Quantity(operation(left.value, right.value), None)
    if not right.unit or not left.unit:
        return Quantity(operation(left.value, right.value), left.unit or right.unit)
    return Quantity(operation(left.value, convert_quantity(right, left.unit).value), left.unit)


def multiply_quantities(left: Quantity, right: Quantity) -> Quantity:
    """Multiply two quantities; the product is in base units if both have a unit."""
    if left.unit is None or right.unit is None:
        return Quantity(left.value * right.value, None)
    if not left.unit or not right.unit:
        return Quantity(left.value * right.value, left.unit or right.unit)
    return _multiply_in_base_units(left, right, 1)


def divide_quantities(left: Quantity, right: Quantity) -> Quantity:
    """Divide two quantities; raises ZeroDivisionError."""
    if left.unit is None or right.unit is None:
        return Quantity(left.value / right.value, None)
    if not right.unit:
        return Quantity(left.value / right.value, left.unit)
    if left.unit == right.unit:
        return Quantity(left.value / right.value)
    return _multiply_in_base_units(left, right, -1)


def _multiply_in_base_units(left: Quantity, right: Quantity, power_of_right: int) -> Quantity:
    left_factor, powers = unit_dimension(left.unit or "")
    right_factor, right_powers = unit_dimension(right.unit or "")
    for name, power in right_powers.items():
        powers[name] += power_of_right * power
    right_value = right.value * right_factor
    left_value = left.value * left_factor
    value = left_value * right_value if power_of_right > 0 else left_value / right_value
    return Quantity(value, _format_unit_powers(_drop_count_units(powers)))


FORMAT_SPEC_PATTERN = re.compile(r"^(?P<comma>,)?(?:\.(?P<digits>\d{1,2}))?(?P<form>[fgd])?$")


def format_with_spec(value: float, spec: str = "") -> str:
    """Format a number by a placeholder's format: `,` `.2f` `.3g` `d`; never an exponent.

    >>> format_with_spec(1119.6, ".3g")
    '1,120'
    >>> format_with_spec(2048), format_with_spec(2048, ",")
    ('2048', '2,048')
    """
    match = FORMAT_SPEC_PATTERN.match(spec)
    if match is None:
        raise ValueError(f"“{spec}” is not a number format")
    comma, form = match["comma"], match["form"]
    digits = int(match["digits"]) if match["digits"] else None
    if not _is_finite(value):
        text = "infinity" if value > 0 else "-infinity" if value < 0 else "no number"
    elif form == "d" or (spec in {"", ","} and value == int(value)):
        text = f"{round(value):,}" if comma else f"{round(value)}"
    elif form == "f":
        text = f"{value:,.{2 if digits is None else digits}f}"
    else:
        text = _format_significant_digits(value, 6 if digits is None else digits)
    return text.replace("-", MINUS)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _format_significant_digits(value: float, digits: int) -> str:
    if not value:
        return "0"
    rounded = float(f"{value:.{max(digits, 1) - 1}e}")
    places = max(0, max(digits, 1) - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_quantity(text: str) -> Quantity | None:
    """Parse the quantity written in `text` ("3.35 TB/s", "8"); None if it is not one."""
    try:
        number, word = split_number_and_unit(text)
    except (ValueError, OverflowError):
        return None
    unit = recognize_unit(word)
    if unit is None or not math.isfinite(number):
        return None
    value = int(number) if number == int(number) and abs(number) < 1e15 else number
    return Quantity(value, unit)


_PARAMETER_COUNT = re.compile(r"^(\d+(?:\.\d+)?)([kMBT])$")


def parse_parameter_value(text: str) -> Quantity | None:
    """Parse a value of a parameter list: "70B" is a count, "80 GB" has a unit.

    >>> parse_parameter_value("70B")
    Quantity(value=70000000000.0, unit='')
    """
    size = _PARAMETER_COUNT.match(text)
    if size:
        return Quantity(float(size[1]) * COUNT_SUFFIX[size[2]])
    return parse_quantity(text)
