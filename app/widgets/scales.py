"""Axes, ticks, plot area, label placement."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from app.estimator import units
from app.widgets.svg import CHARACTER, Box, Point, draw_line, draw_text

_STEPS = (1.0, 2.0, 4.0, 5.0, 10.0)
_DECADE = (1.0, 2.0, 5.0)
_SHORT, _LONG = 1e-4, 1e6
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high` in base units; `factor` converts them to `unit`.

    `unit` is shown at the end of the axis, such as GB.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    unit: str
    factor: float
    log: bool = False
    counted: bool = False

    def place(self, value: float) -> float:
        """Return the position of a value along the axis, 0 to 100 (clipped)."""
        if self.log:
            value = max(value, self.low)
            span = math.log(self.high / self.low)
            share = math.log(value / self.low) / span
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def words(self, value: float) -> str:
        """Format a value in the unit of the axis, without the unit."""
        return _format_tick(value / self.factor, _LONG if self.log else 1000 * _LONG)

    def named(self, tick: float) -> str:
        """Return the label of a tick; the last one includes the unit."""
        text = self.words(tick)
        return f"{text} {self.unit}".strip() if tick == self.ticks[-1] else text

    def round(self, value: float) -> str:
        """Format a value for a label next to the axis: whole numbers from a thousand on."""
        shown = value / self.factor
        return f"{shown:,.0f}" if abs(shown) >= 1000 else self.words(value)

    def one_decimal(self, value: float) -> str:
        """Format a value in the unit of the axis with one decimal, `105.0`; counts without."""
        shown = value / self.factor
        whole = self.counted or abs(shown) >= 1000
        return f"{shown:,.0f}" if whole else f"{shown:,.1f}"


def linear_axis(top: float, unit: str, room: float = 1.02) -> Axis:
    """Return an axis from zero to a round number above `top`, with three to five steps.

    >>> axis = linear_axis(149.4e9, "B")
    >>> axis.unit, [axis.words(t) for t in axis.ticks]
    ('GB', ['0', '40', '80', '120', '160'])
    """
    top = top if math.isfinite(top) and top > 1e-30 else 1.0
    return _from_zero(top * room, _axis_step, *shown_unit(top, unit))


def unit_axis(top: float, word: str = "", room: float = 1.0) -> Axis:
    """Return an axis from zero for values that are already in the unit `word`.

    >>> axis = unit_axis(1400, "GB")
    >>> [axis.named(t) for t in axis.ticks]
    ['0', '500', '1,000', '1,500 GB']
    """
    top = top if math.isfinite(top) and top > 1e-30 else 1.0
    return _from_zero(top * room, _axis_step, word, 1.0)


def count_axis(top: float, word: str = "") -> Axis:
    """Return an axis of counts: from zero in whole steps, at least one.

    >>> [count_axis(most).ticks for most in (27, 2, 0)]
    [(0.0, 10.0, 20.0, 30.0), (0.0, 1.0, 2.0), (0.0, 1.0)]
    """
    axis = _from_zero(max(top, 1.0), _whole_step, word, 1.0)
    return dataclasses.replace(axis, counted=True)


def _from_zero(top: float, step_of: Callable[[float], float], word: str, factor: float) -> Axis:
    step = step_of(top / factor)
    count = math.ceil(top / factor / step - 1e-9)
    ticks = tuple(_drop_float_error(i * step) * factor for i in range(count + 1))
    return Axis(0.0, ticks[-1], ticks, word, factor)


def logarithmic_axis(low: float, high: float, unit: str) -> Axis:
    """Return an axis of powers of ten around two positive values.

    >>> [round(t) for t in logarithmic_axis(3, 400, "").ticks]
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
    """Return the readable multiple of a base unit for values up to `size`: unit, factor.

    >>> shown_unit(80e9, "B")
    ('GB', 1000000000.0)
    """
    if unit in units.UNITS and units.UNITS[unit][1] != 1.0:
        return unit, units.UNITS[unit][1]
    word = units.format_value(float(size), unit).partition(units.NBSP)[2]
    known = units.UNITS.get(word)
    return (word, known[1]) if known and known[0] == unit else (word or unit, 1.0)


def _axis_step(top: float) -> float:
    """Return the step of the shortest axis that reaches `top` in three to five steps."""
    scale = 10.0 ** math.floor(math.log10(top / 5))
    usable = []
    for step in (m * s for s in (scale, scale * 10) for m in _STEPS):
        count = math.ceil(top / step - 1e-9)
        if 3 <= count <= 5:
            usable.append((_drop_float_error(count * step), -step))
    return -min(usable)[1]


def _whole_step(top: float) -> float:
    """Return a whole-number step: one for small counts."""
    return max(1.0, _axis_step(top))


def _format_tick(value: float, long: float) -> str:
    shown = _drop_float_error(value)
    if _SHORT <= abs(shown) < long or not shown:
        return units.format_number(shown)
    mantissa, _, power = f"{shown:.2e}".partition("e")
    raised = str(int(power)).translate(_RAISED)
    digits = f"{float(mantissa):g}"
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"


def _drop_float_error(value: float) -> float:
    """Round away floating-point error."""
    return float(f"{value:.10g}")


def scale_below(axis: Axis, top: float) -> tuple[str, ...]:
    """Draw the tick labels below a chart, with the unit after the last."""
    marks = []
    for tick in axis.ticks:
        at = axis.place(tick)
        last = tick == axis.ticks[-1]
        marks.append(draw_line("ax", at, top, at, top + 6))
        text = axis.named(tick)
        marks.append(draw_text(text, at, top + 21, "e" if last else "m" if at else ""))
    return tuple(marks)


SHARES = Axis(0.0, 1.0, (0.0, 0.5, 1.0), "%", 0.01)
"""Axis of shares from 0% to 100%."""


def format_in_percent(share: float) -> str:
    """Format a share as a tick label in percent.

    >>> format_in_percent(0.5)
    '50%'
    """
    return f"{share:.0%}"


@dataclasses.dataclass(frozen=True, slots=True)
class PlotArea:
    """A plot area: `axis` runs up the height of `box`."""

    box: Box
    axis: Axis

    def down(self, value: float) -> float:
        """Return the distance of a value from the top of the drawing, in pixels."""
        share = self.axis.place(value) / 100
        return self.box.y + self.box.height * (1 - share)

    def scale(
        self, words: Callable[[float], str], side: Literal["left", "right"] = "right"
    ) -> list[str]:
        """Draw a line for each tick, with its label to the right, or above it on the left.

        In a chart that grows from the left, the lowest tick is labeled below instead.
        """
        right = self.box.x + self.box.width
        marks = []
        for tick in self.axis.ticks:
            at = self.down(tick)
            marks.append(draw_line("ax", 0, at, right, at))
            if side == "right":
                marks.append(draw_text(words(tick), 100, at + 4, "e"))
            else:
                low = tick == self.axis.low
                marks.append(draw_text(words(tick), 0, at + 18 if low else at - 4))
        return marks


# Width of a plot on a phone in pixels. Labels without overlap there have none anywhere.
_WIDTH = 250.0
_LABEL_GAP = 8.0  # Pixels between the middle of a name and a line.
_HIGH = 15.0  # Height of a name in pixels.
_HALF = 4.0  # From the baseline of a name to its middle.
_MARK = 6.0  # Half the size of a mark.
_LINE_NAMES_STEPS, _PARTS = 24, 20
_NEAR, _FAR = (
    4,
    6,
)  # Candidate places next to a line, and how many overlaps outweigh a farther place.
_ABOVE, _BELOW = -6.0, 16.0
_ABOVE_MARK, _BELOW_MARK = -12.0, 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class LabeledLine:
    """A line with its name: its points in percent across and pixels down.

    `mark` is a single point with a name; `apart` are points without a line.
    """

    words: str
    places: Sequence[Point]
    mark: bool = False
    apart: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LineLabel:
    """A placed name; the text ends at the position if `before`, else it begins there."""

    of: LabeledLine
    across: float
    down: float
    before: bool

    @property
    def extent(self) -> tuple[float, float]:
        """Return where the text begins and ends, in percent of a narrow plot."""
        wide = (len(self.of.words) * CHARACTER + 8) / _WIDTH * 100
        if self.before:
            return self.across - wide, self.across
        return self.across, self.across + wide


def place_names(lines: Sequence[LabeledLine], top: float, bottom: float) -> list[LineLabel]:
    """Place each name where it overlaps least; move up names that would still overlap.

    Marks choose first, then lines from the lowest to the highest. `lines` without
    a name get no label but are kept clear. `top` and `bottom` bound the plot, in pixels.
    """
    placed: list[LineLabel] = []
    wanted = [one for one in lines if one.words and one.places]
    wanted.sort(key=lambda one: (not one.mark, -one.places[-1][1]))
    for one in wanted:
        positions = [
            (_count_covered(name, lines) + _FAR * (place >= _NEAR), name)
            for place, name in enumerate(_label_positions(one))
            if _is_inside(name, top, bottom)
            and not any(_boxes_touch(name, other) for other in placed)
        ]
        _, best = min(positions, key=lambda cost: cost[0], default=(0, None))
        placed.append(best or _above_all(next(_label_positions(one)), placed))
    return placed


def _label_positions(one: LabeledLine) -> Iterator[LineLabel]:
    """Yield places above and below the end of a line, its start, its end again; or a mark."""
    across, down = one.places[-1]
    late = across > 50
    if one.mark:
        for before in (late, not late):
            yield LineLabel(one, across, down + _ABOVE_MARK, before)
            yield LineLabel(one, across, down + _BELOW_MARK, before)
        return
    yield LineLabel(one, across, down + _ABOVE, late)
    yield LineLabel(one, across, down + _BELOW, late)
    first, height = one.places[0]
    yield LineLabel(one, first, height + _ABOVE, first > 50)
    yield LineLabel(one, first, height + _BELOW, first > 50)
    yield LineLabel(one, across, down + _ABOVE - _HIGH, late)
    yield LineLabel(one, across, down + _BELOW + _HIGH, late)


def _is_inside(name: LineLabel, top: float, bottom: float) -> bool:
    start, end = name.extent
    wide = start >= -2 and end <= 102
    return wide and top - 2 <= name.down - _HIGH + _HALF and name.down <= bottom - 2


def _boxes_touch(one: LineLabel, other: LineLabel) -> bool:
    (start, end), (other_start, other_end) = one.extent, other.extent
    beside = start >= other_end or other_start >= end
    return not beside and abs(one.down - other.down) < _HIGH


def _count_covered(name: LineLabel, lines: Sequence[LabeledLine]) -> int:
    """Count the parts of a name that overlap a line; a mark counts as all of them."""
    start, end = name.extent
    middle = name.down - _HALF
    parts = {
        int((x - start) / (end - start) * _PARTS)
        for line in lines
        for x, y in _points_between(line, (start, end), middle)
        if abs(y - middle) < _LABEL_GAP
    }
    marks = (place for line in lines if line.mark for place in line.places)
    hit = (start - 2 <= x <= end + 2 and abs(y - middle) < _LABEL_GAP + _MARK for x, y in marks)
    return len(parts) + _PARTS * sum(hit)


def _points_between(line: LabeledLine, extent: Point, middle: float) -> Iterator[Point]:
    """Yield points of a line where it passes between two horizontal positions.

    Segments that stay far above or below `middle` are skipped.
    """
    start, end = extent
    high, low = middle - _LABEL_GAP, middle + _LABEL_GAP
    if line.apart:
        yield from ((x, y) for x, y in line.places if start <= x <= end)
        return
    for (x, y), (next_x, next_y) in zip(line.places, line.places[1:], strict=False):
        if next_x < start or x > end:
            continue
        if max(y, next_y) <= high or min(y, next_y) >= low:
            continue
        for step in range(_LINE_NAMES_STEPS + 1):
            across = x + step / _LINE_NAMES_STEPS * (next_x - x)
            if start <= across <= end:
                yield across, y + step / _LINE_NAMES_STEPS * (next_y - y)


def _above_all(name: LineLabel, placed: Sequence[LineLabel]) -> LineLabel:
    """Move the name up until it overlaps no other."""
    for other in sorted(placed, key=lambda n: -n.down):
        if _boxes_touch(name, other):
            name = dataclasses.replace(name, down=other.down - _HIGH)
    return name
