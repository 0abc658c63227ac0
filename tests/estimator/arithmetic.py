"""Reads a printed line of working and says between which values its result lies.

Each printed number stands for all that would be printed so; a line computes when the
shown result lies in what the numbers allow. Units turn into those of the metre,
kilogram and second, or into hours where money and energy are counted by the hour.
"""

import math
import re
from typing import Final

from app.estimator.units import PLURALS, UNITS

Span = tuple[float, float]

_HOURLY: Final = {
    "h": 1.0,
    "days": 24.0,
    "day": 24.0,
    "years": 8766.0,
    "s": 1 / 3600,
    "USD/h": 1.0,
    "USD/kWh": 1e-3,
    "g/kWh": 1e-6,
    "USD/kW/month": 1e-3,
    "tokens/s": 3600.0,
}
_SINGULAR = {plural: unit for unit, plural in PLURALS.items()}
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<power>×10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?"
    r"(?:[\u00a0 ]?(?P<unit>(?<=\d)%|(?<=[\u00a0 ])[A-Za-zµ°$][A-Za-z0-9%/·-]*))?"
    r"|(?P<name>max|min|exp|sqrt)(?=\()"
    r"|(?P<sign>[×÷+−√⌈⌉⌊⌋(),^])"
)


def compute(line: str, unit: str) -> Span:
    """The least and the most that a line of working can come to, in `unit`'s base.

    Raises ValueError where it is no expression.
    """
    hourly = unit.startswith("USD") or unit in {"Wh", "kg"}
    return _Reader(line, hourly=hourly).whole()


def as_typed(line: str, unit: str) -> float:
    """What a pocket calculator shows for a line, in `unit`'s base."""
    hourly = unit.startswith("USD") or unit in {"Wh", "kg"}
    low, high = _Reader(line, hourly=hourly, exact=True).whole()
    return (low + high) / 2


class _Reader:
    def __init__(self, line: str, *, hourly: bool, exact: bool = False) -> None:
        self._line, self._hourly, self._exact = line, hourly, exact
        self._tokens: list[re.Match[str]] = []
        at = 0
        while at < len(line):
            if line[at] in " \u00a0":
                at += 1
                continue
            found = _TOKEN.match(line, at)
            if found is None:
                raise ValueError(f"“{line}” is no expression at “{line[at:]}”")
            self._tokens.append(found)
            at = found.end()
        self._next = 0

    def whole(self) -> Span:
        value = self._sum()
        if self._next < len(self._tokens):
            raise ValueError(f"“{self._line}” goes on after its end")
        return value

    def _sign(self) -> str:
        if self._next >= len(self._tokens):
            return ""
        return self._tokens[self._next]["sign"] or ""

    def _take(self, sign: str) -> bool:
        if self._sign() != sign:
            return False
        self._next += 1
        return True

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise ValueError(f"“{self._line}” lacks a “{sign}”")

    def _sum(self) -> Span:
        low, high = self._product()
        while self._sign() in {"+", "−"}:
            minus = self._take("−")
            if not minus:
                self._need("+")
            a, b = self._product()
            low, high = (low - b, high - a) if minus else (low + a, high + b)
        return low, high

    def _product(self) -> Span:
        value = self._power()
        while self._sign() in {"×", "÷"}:
            times = self._take("×")
            if not times:
                self._need("÷")
            other = self._power()
            if not times:
                if other[0] <= 0 <= other[1]:
                    raise ValueError(f"“{self._line}” divides by nothing")
                other = (1 / other[1], 1 / other[0])
            ends = [a * b for a in value for b in other]
            value = (min(ends), max(ends))
        return value

    def _power(self) -> Span:
        low, high = self._atom()
        if self._take("^"):
            a, b = self._atom()
            ends = [max(x, 0.0) ** y for x in (low, high) for y in (a, b)]
            return min(ends), max(ends)
        return low, high

    def _atom(self) -> Span:
        if self._take("−"):
            low, high = self._atom()
            return -high, -low
        if self._take("√"):
            low, high = self._atom()
            return math.sqrt(max(low, 0.0)), math.sqrt(high)
        for opened, closed, rounded in (
            ("(", ")", None),
            ("⌈", "⌉", math.ceil),
            ("⌊", "⌋", math.floor),
        ):
            if self._take(opened):
                low, high = self._sum()
                self._need(closed)
                if rounded is None:
                    return low, high
                # 3.0000000001 printed as 3 is rounded either way.
                wide = 1e-9 * max(1.0, abs(high))
                return float(rounded(low - wide)), float(rounded(high + wide))
        return self._call() if self._tokens[self._next]["name"] else self._number()

    def _call(self) -> Span:
        name = self._tokens[self._next]["name"]
        self._next += 1
        self._need("(")
        parts = [self._sum()]
        while self._take(","):
            parts.append(self._sum())
        self._need(")")
        if name == "exp":
            return math.exp(parts[0][0]), math.exp(parts[0][1])
        best = max if name == "max" else min
        return best(p[0] for p in parts), best(p[1] for p in parts)

    def _number(self) -> Span:
        if self._next >= len(self._tokens) or not self._tokens[self._next]["number"]:
            raise ValueError(f"“{self._line}” lacks a number")
        token = self._tokens[self._next]
        self._next += 1
        digits = token["number"].replace(",", "")
        value, half = float(digits), 0.0
        if not self._exact:
            half = _half(digits, token["unit"], token["power"])
        factor = self._factor(token["unit"])
        if token["power"]:
            factor *= 10.0 ** int(token["power"][3:].translate(_DIGITS))
        return (value - half) * factor, (value + half) * factor

    def _factor(self, unit: str | None) -> float:
        if not unit:
            return 1.0
        if self._hourly and unit in _HOURLY:
            return _HOURLY[unit]
        if unit in {"A", "V"} or unit in _SINGULAR:
            return 1.0
        if unit == "GPU-hours":
            return 1.0 if self._hourly else 3600.0
        if unit not in UNITS:
            raise ValueError(f"“{self._line}” has the unknown unit “{unit}”")
        return UNITS[unit][1]


def _half(digits: str, unit: str | None, power: str | None) -> float:
    """Half of the last place that is printed; nothing where it is printed in full."""
    whole, _, rest = digits.partition(".")
    places = len(rest)
    if digits == "0" or not (unit or rest or power):
        return 0.0
    if power:
        places = max(places, 2)
    elif unit:
        places = 0 if len(whole) >= 4 else max(places, 1)
    elif float(digits):
        # At least three digits are meant, and zeros at the end are not printed.
        meant = 1 if len(whole) > 2 else 2 - math.floor(math.log10(float(digits)))
        places = max(places, meant)
    return 0.5 * 10.0**-places
