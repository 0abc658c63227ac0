"""Parse and format numbers with units; GB is 10^9 bytes, GiB is 2^30."""

import functools
import math
import re
from typing import NamedTuple

NBSP = "\u00a0"
MINUS = "\u2212"

_DECIMAL_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")


class UnitConversion(NamedTuple):
    base_unit: str
    factor_to_base_unit: float


_UNIT_CONVERSIONS = {
    "": ("", 1.0),
    "%": ("", 0.01),
    **{p + "B": ("B", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    "KB": ("B", 1e3),
    "bytes": ("B", 1.0),
    "byte": ("B", 1.0),
    "KiB": ("B", 2.0**10),
    "MiB": ("B", 2.0**20),
    "GiB": ("B", 2.0**30),
    "TiB": ("B", 2.0**40),
    "PiB": ("B", 2.0**50),
    "bit": ("B", 0.125),
    "bits": ("B", 0.125),
    **{p + "bit": ("B", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "B/s": ("B/s", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    "GiB/s": ("B/s", 2.0**30),
    **{p + "bit/s": ("B/s", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "b/s": ("B/s", 10.0 ** (3 * i) / 8) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "FLOP": ("FLOP", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "FLOP/s": ("FLOP/s", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "W": ("W", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    **{p + "Wh": ("Wh", 10.0 ** (3 * i)) for i, p in enumerate(_DECIMAL_PREFIXES)},
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "s": ("s", 1.0),
    "min": ("s", 60.0),
    "minutes": ("s", 60.0),
    "h": ("s", 3600.0),
    "hours": ("s", 3600.0),
    "days": ("s", 86400.0),
    "day": ("s", 86400.0),
    "years": ("s", 365.25 * 86400.0),
    "USD": ("USD", 1.0),
    "$": ("USD", 1.0),
    "USD/h": ("USD/h", 1.0),
    "USD/kWh": ("USD/kWh", 1.0),
    "USD/month": ("USD/month", 1.0),
    "USD/Mtoken": ("USD/Mtoken", 1.0),
    "USD/year": ("USD/year", 1.0),
    "USD/GB": ("USD/GB", 1.0),
    "USD/kW/month": ("USD/kW/month", 1.0),
    "kg": ("kg", 1.0),
    "t": ("kg", 1e3),
    "kg/kWh": ("kg/kWh", 1.0),
    "g/kWh": ("kg/kWh", 1e-3),
    "A": ("A", 1.0),
    "V": ("V", 1.0),
    "VA": ("VA", 1.0),
    "kVA": ("VA", 1e3),
    "°C": ("°C", 1.0),
    "BTU/h": ("BTU/h", 1.0),
    "m3/s": ("m3/s", 1.0),
    "m³/s": ("m3/s", 1.0),
    "CFM": ("CFM", 1.0),
    "tokens": ("token", 1.0),
    "token": ("token", 1.0),
    "tokens/s": ("token/s", 1.0),
    "token/s": ("token/s", 1.0),
    "sequences": ("sequence", 1.0),
    "sequence": ("sequence", 1.0),
    "GPUs": ("GPU", 1.0),
    "GPU": ("GPU", 1.0),
    "GPU-hours": ("GPU-h", 1.0),
    "nodes": ("node", 1.0),
    "layers": ("layer", 1.0),
    "slices": ("slice", 1.0),
    "slice": ("slice", 1.0),
    "parameters": ("parameter", 1.0),
    "requests/s": ("request/s", 1.0),
}
UNITS = {name: UnitConversion(*conversion) for name, conversion in _UNIT_CONVERSIONS.items()}
"""Every unit that may be typed or shown."""

# Words that may follow a plain count: 70B parameters, 128k tokens.
COUNT_SUFFIX: dict[str, float] = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "Ki": 2.0**10,
    "M": 1e6,
    "Mi": 2.0**20,
    "B": 1e9,
    "bn": 1e9,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
}

_TYPED_NUMBER = re.compile(
    r"^(?P<number>[+\-\u2212]?(?:\d[\d,_'\u00a0\u202f ]*\d|\d)?(?:\.\d+)?"
    r"(?:[eE][+\-]?\d+)?)\s*(?P<unit>.*)$"
)
_GROUPED_THOUSANDS = re.compile(r"^[^\d,]*\d{1,3}(?:,\d{3})+(?![\d,])")
_GROUPING_CHARACTER = re.compile(r"[,_'\u00a0\u202f ]")


class NumberWithUnit(NamedTuple):
    number: float
    unit: str


def split_number_and_unit(text: str) -> NumberWithUnit:
    """Split a typed quantity into its number and the unit text after it.

    Commas, spaces, underscores and apostrophes inside the number are grouping.
    Raises ValueError if it does not start with a number.

    >>> split_number_and_unit("1,120 GB")
    NumberWithUnit(number=1120.0, unit='GB')
    """
    match = _TYPED_NUMBER.match(text.strip())
    if match is None or not any(c.isdigit() for c in match["number"]):
        raise ValueError(f"“{text}” does not start with a number")
    reject_decimal_comma(match["number"])
    digits = _GROUPING_CHARACTER.sub("", match["number"])
    return NumberWithUnit(float(digits.replace(MINUS, "-")), match["unit"].strip())


def reject_decimal_comma(number: str) -> None:
    """Raise ValueError if commas do not group thousands: 12,5 may mean 12.5.

    >>> reject_decimal_comma("1,120.5")
    """
    if "," in number and not _GROUPED_THOUSANDS.match(number):
        message = f"“{number}” has a comma that parts no thousands"
        raise ValueError(f"{message}: write decimals with a point, such as 12.5")


def convert_unit(value: float, from_unit: str, to_unit: str) -> float:
    """Convert `value` from one unit to another of the same kind.

    Raises ValueError for an unknown unit or for two units of different kinds.

    >>> convert_unit(80.0, "GB", "B")
    80000000000.0
    >>> convert_unit(1.0, "GiB", "MB")
    1073.741824
    """
    if from_unit == to_unit:
        return value
    for name in (from_unit, to_unit):
        if name not in UNITS:
            raise ValueError(f"“{name}” is not a known unit")
    source, target = UNITS[from_unit], UNITS[to_unit]
    if source.base_unit != target.base_unit:
        raise ValueError(f"{from_unit} cannot be turned into {to_unit}")
    return _multiply_exactly(
        _multiply_exactly(value, source.factor_to_base_unit),
        target.factor_to_base_unit,
        inverse=True,
    )


def _multiply_exactly(value: float, factor: float, *, inverse: bool = False) -> float:
    """Multiply or divide `value` by a factor so that 18.1 % is 0.181 and not 0.181…02.

    Small factors are powers of ten that binary fractions miss, but their inverses are
    exact. Typed values have fewer than 15 digits.
    """
    if factor < 1 and (1 / factor) < 1e15:
        factor, inverse = float(round(1 / factor)), not inverse
        if inverse:
            return float(f"{value / factor:.15g}")
    return value / factor if inverse else value * factor


def parse_quantity(text: str, base_unit: str, typed_unit: str = "") -> float:
    """Parse a typed quantity and convert it to its base unit.

    `base_unit` is the base unit, `typed_unit` the unit of a number without one. A count
    may carry k, M, B or T. Of tokens, K is 1,024 and k is 1,000, as in vLLM's --max-model-len.
    Raises ValueError with what is accepted.

    >>> parse_quantity("80", "B", "GB")
    80000000000.0
    >>> parse_quantity("128k", "token"), parse_quantity("128K", "token")
    (128000.0, 131072.0)
    >>> parse_quantity("400 Gbit/s", "B/s")
    50000000000.0
    """
    number, unit_text = split_number_and_unit(text)
    if not unit_text:
        return convert_unit(number, typed_unit, base_unit) if typed_unit else number
    conversion = UNITS.get(unit_text)
    if conversion is not None and conversion.base_unit == base_unit:
        return _multiply_exactly(number, conversion.factor_to_base_unit)
    return number * _factor_of_count_suffix(unit_text, base_unit, typed_unit)


def _factor_of_count_suffix(unit_text: str, unit: str, typed_unit: str) -> float:
    """Return the factor of a suffix such as `B`, `k tokens` or `billion parameters`."""
    suffix, _, noun = unit_text.partition(" ")
    suffix = _SUFFIX_BY_WORD.get(suffix.lower(), suffix)
    fits = not noun or (noun.strip() in UNITS and UNITS[noun.strip()].base_unit == unit)
    if fits and suffix in COUNT_SUFFIX and UNITS.get(unit, UNITS[""]).base_unit in _COUNTED_UNITS:
        return 2.0**10 if suffix == "K" and unit == "token" else COUNT_SUFFIX[suffix]
    example = typed_unit or unit or "a plain number"
    raise ValueError(f"“{unit_text}” is not a unit that fits here; use {example}")


_SUFFIX_BY_WORD = {"thousand": "k", "million": "M", "billion": "B", "trillion": "T"}
_COUNTED_UNITS = frozenset(
    {"", "token", "sequence", "parameter", "GPU", "GPU-h", "node", "layer", "request/s"}
)


def format_number(value: float, significant_digits: int = 3) -> str:
    """Format a number with thousands commas and a true minus sign.

    Whole numbers are written in full; others keep one decimal from 100 on and
    `significant_digits` significant digits below.

    >>> format_number(131072)
    '131,072'
    >>> format_number(-0.04567)
    '−0.0457'
    """
    if not math.isfinite(value):
        return "unknown"
    size = abs(value)
    if value == int(value) and size < 1e15:
        text = f"{int(size):,}"
    elif size >= 1e15 or size < 1e-4:
        text = _format_scientific(size, significant_digits)
    elif size >= 100:
        text = _trim_zeros(f"{size:,.{max(1, _decimals_for_digits(size, significant_digits))}f}")
    else:
        text = _trim_zeros(f"{size:.{_decimals_for_digits(size, significant_digits)}f}")
    return (MINUS if value < 0 else "") + text


def _decimals_for_digits(size: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(size))) if size else 0


def _trim_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


_SUPERSCRIPT_BY_DIGIT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _format_scientific(size: float, digits: int) -> str:
    mantissa, _, exponent = f"{size:.{digits - 1}e}".partition("e")
    power = str(int(exponent)).translate(_SUPERSCRIPT_BY_DIGIT)
    return f"{_trim_zeros(mantissa)}×10{power}"


class DisplayUnit(NamedTuple):
    """A unit as shown, and its factor to the base unit."""

    name: str
    factor: float


# The size from which each unit is used, largest first; memory stays in GB up to 10 TB.
_SHOWN_UNITS: dict[str, tuple[tuple[float, str], ...]] = {
    "B": ((1e16, "PB"), (1e13, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
    "B/s": ((1e16, "PB/s"), (1e13, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s")),
    "FLOP": ((1e18, "EFLOP"), (1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP")),
    "FLOP/s": ((1e19, "EFLOP/s"), (1e16, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s")),
    "W": ((1e7, "MW"), (1e4, "kW")),
    "VA": ((1e4, "kVA"),),
    "Wh": ((1e9, "GWh"), (1e6, "MWh"), (1e3, "kWh")),
    "s": (
        (2 * 365.25 * 86400, "years"),
        (2 * 86400.0, "days"),
        (2 * 3600.0, "h"),
        (120.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "µs"),
        (0.0, "ns"),
    ),
    "kg": ((1e4, "t"),),
    "m3/s": ((0.0, "m³/s"),),
}
_ONE_DECIMAL = frozenset({"B", "B/s", "FLOP/s", "FLOP", "W", "Wh", "s", "kg", "GB", "%"})
PLURALS = {
    "token": "tokens",
    "sequence": "sequences",
    "GPU": "GPUs",
    "GPU-h": "GPU-hours",
    "node": "nodes",
    "layer": "layers",
    "slice": "slices",
    "parameter": "parameters",
    "token/s": "tokens/s",
    "request/s": "requests/s",
}
_WORD_BY_VALUE: dict[str | bool | None, str] = {None: "unknown", True: "yes", False: "no"}
_MONEY_UNITS = frozenset(
    {unit.base_unit for unit in UNITS.values() if unit.base_unit.startswith("USD")}
)
# Units of times and rates: three digits of a large value are all that is known.
_MEASURED_UNITS = frozenset({"s", "token/s", "request/s", "GPU-h", "Wh", "BTU/h", "kg", "m3/s"})
# Units of parts that add up to what is compared with a limit.
_SUMMED_UNITS = frozenset({"B", "W", "VA"})


def round_estimate_to_three_digits(value: float, unit: str) -> float:
    """Round a modeled value to three significant digits from 100 of its display unit on.

    Bytes and watts keep their digits, because their parts add up, and limits are near.

    >>> round_estimate_to_three_digits(34_141.3, "GPU-h"), round_estimate_to_three_digits(37.26, "GPU-h")
    (34100.0, 37.26)
    >>> round_estimate_to_three_digits(145_418.0, "USD"), round_estimate_to_three_digits(149.43e9, "B")
    (145000.0, 149430000000.0)
    """
    factor = _display_unit(abs(value), unit).factor
    size = abs(value) / factor
    if unit in _SUMMED_UNITS or not 100 <= size < 1e15:
        return value
    scale = 10.0 ** (math.floor(math.log10(size)) - 2)
    return float(round(value / factor / scale) * scale * factor)


def matches_displayed_measurement(written_number: float, value: float, unit: str) -> bool:
    """Return whether a written value is a measured amount in the digits that pages show.

    Amounts of money may be written so, too; they are shown in full where they are exact.

    >>> matches_displayed_measurement(5640.0, 5641.3, "token/s"), matches_displayed_measurement(5640.0, 5641.0, "token")
    (True, False)
    """
    close = math.isclose(written_number, round_estimate_to_three_digits(value, unit), rel_tol=1e-9)
    return close and (unit in _MEASURED_UNITS or unit in _MONEY_UNITS)


# A result formats the same numbers several times. `typed` keeps 1, 1.0 and True apart.
@functools.lru_cache(maxsize=8192, typed=True)
def format_value(
    value: float | str | bool | None, unit: str = "", extra_decimals: int | None = None
) -> str:
    """Format a value for display: `1,120 GB`, `42.7 ms`, `yes`.

    `value` is in the base unit. For a base unit a readable multiple is chosen; for
    any other known unit (`GB`, `%`, `h`) the value is shown in that unit. A no-break
    space separates number and unit; a percent sign follows its number directly. Times,
    rates and energy have three significant digits. With `extra_decimals`, a number that is
    used in a calculation has all of its digits, and as many more decimals.

    >>> format_value(149.43e9, "B").replace(NBSP, " "), format_value(0.413, "%")
    ('149.4 GB', '41.3%')
    >>> format_value(34_141.3, "GPU-h").replace(NBSP, " ")
    '34,100 GPU-hours'
    >>> format_value(34_141.3, "GPU-h", 0).replace(NBSP, " ")
    '34,141.3 GPU-hours'
    >>> format_value(149.43e9, "B", 1).replace(NBSP, " ")
    '149.43 GB'
    """
    if value is None or isinstance(value, bool | str):
        return _WORD_BY_VALUE.get(value, str(value))
    if extra_decimals is None:
        extra_decimals = 0
        if unit in _MEASURED_UNITS:
            value = round_estimate_to_three_digits(value, unit)
    if unit == "FLOP" and abs(value) >= 1e21:
        return f"{_format_scientific(value, 3 + extra_decimals)}{NBSP}FLOP"
    if unit in _MONEY_UNITS:
        return f"{_format_money(value, extra_decimals)}{NBSP}{unit}"
    return _format_in_display_unit(value, unit, extra_decimals)


def format_range(low: float, high: float, unit: str = "", value: float | None = None) -> str:
    """Format two bounds in the unit in which `value`, if given, is shown.

    Without it, in the unit of the larger bound, unless the smaller gets too small.

    >>> format_range(26.4, 126.0, "s", 47.6).replace(NBSP, " ")
    '26.4 to 126 s'
    >>> format_range(37.7 * 3600, 2.4 * 86400, "s").replace(NBSP, " ")
    '1.6 to 2.4 days'
    >>> format_range(22_273.5, 43_359.0, "GPU-h").replace(NBSP, " ")
    '22,300 to 43,400 GPU-hours'
    """
    if value and unit in _SHOWN_UNITS and not unit.startswith("FLOP"):
        name, factor = _display_unit(abs(round_estimate_to_three_digits(value, unit)), unit)
        scaled = (bound / factor for bound in (low, high))
        rounded = [x if unit in _SUMMED_UNITS or x < 100 else float(f"{x:.3g}") for x in scaled]
        bounds = dict.fromkeys(_format_up_to_one_decimal(x) for x in rounded)
        return append_unit(" to ".join(bounds), PLURALS.get(name, name))
    low, high = (
        round_estimate_to_three_digits(low, unit),
        round_estimate_to_three_digits(high, unit),
    )
    low_text, high_text = format_value(low, unit), format_value(high, unit)
    number, _, high_unit = high_text.partition(NBSP)
    name, factor = _display_unit(abs(high), unit)
    if low_text.endswith(f"{NBSP}{high_unit}"):
        low_text = low_text.partition(NBSP)[0]
    elif high_unit in {name, PLURALS.get(name)} and (not low or low >= _MIN_SHOWN_VALUE * factor):
        size = low / factor
        low_text = _format_up_to_one_decimal(size) if size >= 1 else format_number(size, 2)
    return high_text if low_text in {number, high_text} else f"{low_text} to {high_text}"


_MIN_SHOWN_VALUE = 0.01  # Smallest value shown in a unit: 0.012 s, but 5 µs.


def _format_in_display_unit(value: float, unit: str, extra_decimals: int) -> str:
    unit_name, factor = _display_unit(abs(value), unit)
    scaled = value if factor == 1.0 else value / factor
    if unit in _ONE_DECIMAL:
        text = _format_up_to_one_decimal(scaled, extra_decimals)
    else:
        text = format_number(scaled, 3 + extra_decimals)
    return append_unit(text, inflect_unit(scaled, unit_name))


def inflect_unit(number: float, unit: str) -> str:
    """Return a unit as it stands beside a number: in the plural unless that is 1.

    >>> inflect_unit(1, "sequence"), inflect_unit(2, "GPU-h"), inflect_unit(2, "ms")
    ('sequence', 'GPU-hours', 'ms')
    """
    return unit if abs(number) == 1 else PLURALS.get(unit, unit)


def format_count(number: float, singular_noun: str) -> str:
    """Format a number with a noun in the singular or plural.

    >>> format_count(1, "replica"), format_count(1200, "replica"), format_count(2, "switch")
    ('1 replica', '1,200 replicas', '2 switches')
    """
    text = format_number(number)
    ending = "es" if singular_noun.endswith("ch") else "s"
    return f"{text} {singular_noun if text == '1' else PLURALS.get(singular_noun, singular_noun + ending)}"


def append_unit(number: str, unit: str) -> str:
    """Join a formatted number and its unit; a percent sign follows its number directly.

    >>> append_unit("42.7", "ms").replace(NBSP, " "), append_unit("41.3", "%")
    ('42.7 ms', '41.3%')
    """
    return f"{number}{'' if unit in {'', '%', '×'} else NBSP}{unit}"


def _display_unit(size: float, unit: str) -> DisplayUnit:
    if size:
        for least, name in _SHOWN_UNITS.get(unit, ()):
            if size >= least:
                return DisplayUnit(name, UNITS[name].factor_to_base_unit)
    return DisplayUnit(unit, UNITS.get(unit, UNITS[""]).factor_to_base_unit)


def _format_up_to_one_decimal(value: float, extra_decimals: int = 0) -> str:
    size = abs(value)
    text = _trim_zeros(f"{size:,.{extra_decimals if size >= 999.95 else 1 + extra_decimals}f}")
    if text == "0" and size:
        return format_number(value, 2 + extra_decimals)
    return (MINUS if value < 0 else "") + text


def _format_money(value: float, extra_decimals: int) -> str:
    size = abs(value)
    decimals = 0 if size >= 1000 else 2 if size >= 0.1 or not size else 4
    rounded, exact = f"{size:,.{decimals}f}", _trim_zeros(f"{size:,.{decimals + extra_decimals}f}")
    return (MINUS if value < 0 else "") + max(rounded, exact, key=len)
