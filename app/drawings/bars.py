"""Parts against a limit: the stacked bar with its cap, free and over patterns."""

import dataclasses
from collections.abc import Sequence

from app.drawings.axes import Axis, count_axis, linear, scale_below
from app.drawings.components import SegmentStyle, looks_of
from app.drawings.stacks import StackSegment, stack
from app.drawings.svg import SvgChart, line, rect, svg_root, text
from app.estimator.estimate import ResultTable, StackedBar
from app.estimator.units import PLURALS

_TOP = 24
_NARROW_OVER = 30.0
_LEFT_LABEL = 30.0


def draw_bar(
    bar: StackedBar, *, height: int = 44, reach: float = 0.0, ticks: bool = True
) -> SvgChart:
    """Draw parts against their limit.

    `reach` lengthens the axis, so that bars of a comparison share one; `ticks`
    False leaves the axis to the bar below.

    >>> bar = StackedBar("Per GPU", (Segment("weights", "Weights", 9e10),), 8e10, "H")
    >>> draw_bar(bar).says
    'Per GPU: weights 90.0; 90.0 of 80 GB, 10.0 GB over.'
    """
    used, whole = total(bar), reach_of(bar)
    own = _axis(bar, whole)
    axis = _axis(bar, reach) if reach > whole else own
    bottom = _TOP + height
    marks = [*(scale_below(axis, bottom) if ticks else ())]
    looks = looks_of(bar)
    marks += _parts(bar, looks, axis, height)
    marks += _limit(bar, axis, used, height)
    says = _said(bar, own, used)
    tall = bottom + (26 if ticks else 6)
    return SvgChart(
        label=bar.label,
        svg=svg_root(marks, tall, says),
        says=says,
        table=table_of(bar),
        key=key_of(bar, looks),
    )


def _axis(bar: StackedBar, top: float) -> Axis:
    """The axis of the amounts; whole things are counted."""
    if bar.unit == "slice":
        return count_axis(top, PLURALS[bar.unit])
    return linear(top, bar.unit)


def total(bar: StackedBar) -> float:
    """What the parts come to, in base units."""
    return sum(s.value for s in bar.segments)


def reach_of(bar: StackedBar) -> float:
    """How far a bar reaches along its axis: its parts or its limit."""
    return max(total(bar), bar.capacity or 0.0)


def _said(bar: StackedBar, axis: Axis, used: float) -> str:
    parts = ", ".join(
        f"{s.label[:1].lower()}{s.label[1:]} {axis.one_decimal(s.value)}"
        for s in bar.segments
        if s.value
    )
    whole = f"{axis.one_decimal(used)} {axis.unit} in all"
    if bar.capacity is not None:
        left = bar.capacity - used
        word = _left_word(bar) if left >= 0 else "over"
        whole = (
            f"{axis.one_decimal(used)} of {axis.round(bar.capacity)} {axis.unit}, "
            f"{_amount(axis, abs(left))} {word}"
        )
    return f"{bar.label}: {parts or 'nothing'}; {whole}."


def _amount(axis: Axis, value: float) -> str:
    """A value with its unit; of a count its bar tells what is counted."""
    words = axis.one_decimal(value)
    return words if axis.counted else f"{words} {axis.unit}"


def table_of(bar: StackedBar) -> ResultTable:
    """The numbers of the bar: each part, its share, the sum, what is left."""
    used = total(bar)
    rows: list[tuple[str | tuple[float, str], ...]] = [
        (s.label, (s.value, bar.unit), (s.value / used if used else 0.0, "%")) for s in bar.segments
    ]
    whole = "Needed" if bar.unit == "B" else "Sum"
    rows.append((whole, (used, bar.unit), (1.0 if used else 0.0, "%")))
    if bar.capacity is not None:
        left = bar.capacity - used
        word = _left_word(bar).capitalize() if left >= 0 else "Over"
        limit = bar.capacity_label or "Limit"
        rows.append((limit, (bar.capacity, bar.unit), ""))
        rows.append((word, (abs(left), bar.unit), ""))
    return ResultTable(bar.label, ("Part", bar.label, "Share"), tuple(rows))


def key_of(bar: StackedBar, looks: Sequence[SegmentStyle] = ()) -> tuple[tuple[str, str], ...]:
    """Which color is which part, in the order drawn; `looks` where they are known."""
    names: dict[str, str] = {}
    for part, look in zip(bar.segments, looks or looks_of(bar), strict=True):
        if part.value:
            color = look.key
            before = names.get(color)
            words = _named(part.label, look.letter)
            names[color] = f"{before}; {words}" if before else words
    free = bar.capacity is not None and bar.capacity > total(bar)
    left = (("k-f", _left_word(bar).capitalize()),) if free else ()
    return (*names.items(), *left)


def _named(label: str, letter: str) -> str:
    """A part with its letter, where that is not how its name begins.

    >>> _named("Overhead", "R"), _named("Weights", "W")
    ('Overhead (R)', 'Weights')
    """
    return label if label.startswith(letter) else f"{label} ({letter})"


def _left_word(bar: StackedBar) -> str:
    """Memory is free, everything else is left."""
    return "free" if bar.unit == "B" else "left"


def _parts(bar: StackedBar, looks: Sequence[SegmentStyle], axis: Axis, height: int) -> list[str]:
    cap = 100.0 if bar.capacity is None else axis.place(bar.capacity)
    parts = [
        StackSegment(segment.label, segment.value, look, axis.one_decimal(segment.value))
        for segment, look in zip(bar.segments, looks, strict=True)
    ]
    return stack(parts, axis, _TOP, height, cap)


@dataclasses.dataclass(frozen=True, slots=True)
class _CapacityMark:
    """Where the cap stands and where the parts end, in percent."""

    cap: float
    end: float
    size: str
    unit: str


def _limit(bar: StackedBar, axis: Axis, used: float, height: int) -> list[str]:
    end = axis.place(used)
    if bar.capacity is None:
        words = f"{axis.one_decimal(used)} {axis.unit}".strip()
        return [_beside(end, "", words)]
    limit = _CapacityMark(axis.place(bar.capacity), end, axis.round(bar.capacity), axis.unit)
    cap = line("cap", limit.cap, 10, limit.cap, _TOP + height + 6)
    left = axis.one_decimal(abs(bar.capacity - used))
    if used <= bar.capacity:
        words = f"{left} {_left_word(bar)}"
        beside = _beside(limit.cap, f"of {limit.size} {limit.unit}", words)
        return [*_free(limit, height), cap, beside]
    over = f"{_amount(axis, used - bar.capacity)} over"
    return [*_over(limit, over, height), cap]


def _free(limit: _CapacityMark, height: int) -> list[str]:
    wide = limit.cap - limit.end
    return [rect("free", limit.end, _TOP + 0.5, wide, height - 1)] if wide > 0 else []


def _over(limit: _CapacityMark, over: str, height: int) -> list[str]:
    wide = limit.end - limit.cap
    marks = [rect("over", limit.cap, _TOP, wide, height)]
    if wide < _NARROW_OVER:
        return [*marks, _beside(limit.cap, f"{limit.size} {limit.unit}", over)]
    marks.append(line("brk", limit.cap, 18, limit.end, 18))
    marks.append(line("brk", limit.end, 14, limit.end, 22))
    if limit.cap < _LEFT_LABEL:
        size = f"of {limit.size} {limit.unit}"
        return [*marks, text(size, limit.end, 12, "e", bold=over)]
    marks.append(text("", (limit.cap + limit.end) / 2, 12, "m", bold=over))
    marks.append(text(f"{limit.size} {limit.unit}", limit.cap - 1, 15, "e"))
    return marks


def _beside(at: float, words: str, bold: str) -> str:
    """Words above the bar, left of a place, or right of it near the left edge."""
    if at < _LEFT_LABEL:
        return text(words, at + 1, 15, bold=bold)
    return text(words, at - 1, 15, "e", bold=bold)
