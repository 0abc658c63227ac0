"""Axes: round ticks, and a value's place along them."""

import dataclasses
import functools
import math
from collections.abc import Callable

from app.drawings.svg import line, text
from app.estimator import units

_STEPS = (1.0, 2.0, 4.0, 5.0, 10.0)
_DECADE = (1.0, 2.0, 5.0)
_SHORT, _LONG = 1e-4, 1e6
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high` in base units; `factor` turns them into `unit`.

    `unit` is the word shown at the end of the axis, such as GB.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    unit: str
    factor: float
    log: bool = False
    counted: bool = False

    def place(self, value: float) -> float:
        """How far along the axis a value stands, 0 to 100 (clipped)."""
        if self.log:
            value = max(value, self.low)
            span = math.log(self.high / self.low)
            share = math.log(value / self.low) / span
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def words(self, value: float) -> str:
        """A value in the unit of the axis, without the unit."""
        return _words(value / self.factor, _LONG if self.log else 1000 * _LONG)

    def named(self, tick: float) -> str:
        """The words of a tick: the last one of the axis has the unit behind it."""
        words = self.words(tick)
        return f"{words} {self.unit}".strip() if tick == self.ticks[-1] else words

    def round(self, value: float) -> str:
        """A value as it is named beside the axis: whole from a thousand on."""
        shown = value / self.factor
        return f"{shown:,.0f}" if abs(shown) >= 1000 else self.words(value)

    def one_decimal(self, value: float) -> str:
        """A value in the unit of the axis with one decimal, `105.0`; counts without."""
        shown = value / self.factor
        whole = self.counted or abs(shown) >= 1000
        return f"{shown:,.0f}" if whole else f"{shown:,.1f}"


def linear(top: float, unit: str, room: float = 1.02) -> Axis:
    """An axis from zero to a round number above `top`, with three to five steps.

    >>> axis = linear(149.4e9, "B")
    >>> axis.unit, [axis.words(t) for t in axis.ticks]
    ('GB', ['0', '40', '80', '120', '160'])
    """
    top = top if math.isfinite(top) and top > 1e-30 else 1.0
    return _from_zero(top * room, _step, *shown_unit(top, unit))


def unit_axis(top: float, word: str = "", room: float = 1.0) -> Axis:
    """An axis from zero of values that are in their unit `word` already.

    >>> axis = unit_axis(1400, "GB")
    >>> [axis.named(t) for t in axis.ticks]
    ['0', '500', '1,000', '1,500 GB']
    """
    top = top if math.isfinite(top) and top > 1e-30 else 1.0
    return _from_zero(top * room, _step, word, 1.0)


def count_axis(top: float, word: str = "") -> Axis:
    """An axis of things that are counted: from zero in whole steps, at least one.

    >>> [count_axis(most).ticks for most in (27, 2, 0)]
    [(0.0, 10.0, 20.0, 30.0), (0.0, 1.0, 2.0), (0.0, 1.0)]
    """
    axis = _from_zero(max(top, 1.0), _whole_step, word, 1.0)
    return dataclasses.replace(axis, counted=True)


def _from_zero(top: float, step_of: Callable[[float], float], word: str, factor: float) -> Axis:
    step = step_of(top / factor)
    count = math.ceil(top / factor / step - 1e-9)
    ticks = tuple(_clean(i * step) * factor for i in range(count + 1))
    return Axis(0.0, ticks[-1], ticks, word, factor)


def logarithmic(low: float, high: float, unit: str) -> Axis:
    """An axis of powers of ten around two positive values.

    >>> [round(t) for t in logarithmic(3, 400, "").ticks]
    [1, 10, 100, 1000]
    """
    low, high = max(low, 1e-30), max(high, low * 1.0001, 1e-30)
    word, factor = shown_unit(high, unit)
    first = math.floor(math.log10(low / factor) + 1e-9)
    last = max(math.ceil(math.log10(high / factor) - 1e-9), first + 1)
    decades = range(first, last + 1, max(1, (last - first + 5) // 6))
    ticks = tuple(10.0**e for e in decades)
    if len(ticks) <= 3:
        ticks = tuple(m * 10.0**e for e in range(first, last) for m in _DECADE)
        ticks = (*ticks, 10.0**last)
    shown = tuple(tick * factor for tick in ticks)
    return Axis(shown[0], 10.0**last * factor, shown, word, factor, log=True)


def shown_unit(size: float, unit: str) -> tuple[str, float]:
    """The readable multiple of a base unit for values up to `size`: word, factor.

    >>> shown_unit(80e9, "B")
    ('GB', 1000000000.0)
    """
    if unit in units.UNITS and units.UNITS[unit][1] != 1.0:
        return unit, units.UNITS[unit][1]
    word = units.format_value(float(size), unit).partition(units.NBSP)[2]
    known = units.UNITS.get(word)
    return (word, known[1]) if known and known[0] == unit else (word or unit, 1.0)


def _step(top: float) -> float:
    """The step of the shortest axis that reaches `top` in three to five steps."""
    scale = 10.0 ** math.floor(math.log10(top / 5))
    usable = []
    for step in (m * s for s in (scale, scale * 10) for m in _STEPS):
        count = math.ceil(top / step - 1e-9)
        if 3 <= count <= 5:
            usable.append((_clean(count * step), -step))
    return -min(usable)[1]


def _whole_step(top: float) -> float:
    """A step of one where things are few, and whole beyond."""
    return max(1.0, _step(top))


@functools.lru_cache(maxsize=4096)  # ticks are round, and stand under every picture
def _words(value: float, long: float) -> str:
    shown = _clean(value)
    if _SHORT <= abs(shown) < long or not shown:
        return units.format_number(shown)
    mantissa, _, power = f"{shown:.2e}".partition("e")
    raised = str(int(power)).translate(_RAISED)
    digits = f"{float(mantissa):g}"
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"


def _clean(value: float) -> float:
    """Drop the dust of binary fractions."""
    return float(f"{value:.10g}")


@functools.lru_cache(maxsize=512)  # axes end at round numbers: there are few
def scale_below(axis: Axis, top: float) -> tuple[str, ...]:
    """The ticks of an axis along a drawing, its unit behind the last."""
    marks = []
    for tick in axis.ticks:
        at = axis.place(tick)
        last = tick == axis.ticks[-1]
        marks.append(line("ax", at, top, at, top + 6))
        words = axis.named(tick)
        marks.append(text(words, at, top + 21, "e" if last else "m" if at else ""))
    return tuple(marks)
