"""Parts against a limit: the stacked bar with its cap, free and over patterns."""

import dataclasses
import functools

from app.drawings.axes import Axis, linear
from app.drawings.svg import Drawing, fits, frame, line, rect, text
from app.estimator.estimate import Component, Segment, StackedBar, Table


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """How a part is drawn: its filling, words upon it, its letter, its key."""

    fill: str
    words: str
    letter: str
    key: str


_MEMORY: dict[Component, Look] = {
    "weights": Look("w", "", "W", "k-w"),
    "gradients": Look("gr", "on-gr", "G", "k-g"),
    "optimizer": Look("o", "", "O", "k-o"),
    "activations": Look("a", "on-a", "A", "k-a"),
    "kv": Look("k", "", "K", "k-k"),
    "overhead": Look("r", "", "R", "k-r"),
    "other": Look("soft", "on-soft", "", "k-x"),
}
# The colours of memory mean parts of memory; other sums are drawn in ink and paper.
_PLAIN = (
    Look("n1", "on-n1", "", "k-n1"),
    Look("soft", "on-soft", "", "k-x"),
    Look("ink", "on-n1", "", "k-n3"),
    Look("bg line", "on-soft", "", "k-n4"),
    Look("fill", "none", "", "k-s"),
)
_TOP = 24
_NARROW_OVER = 30.0
_LEFT_LABEL = 30.0


def draw_bar(
    bar: StackedBar, *, height: int = 44, reach: float = 0.0, ticks: bool = True
) -> Drawing:
    """Draw parts against their limit.

    `reach` lengthens the axis, so that bars of a comparison share one; `ticks`
    False leaves the axis to the bar below.
    """
    used, whole = total(bar), reach_of(bar)
    own = linear(whole, bar.unit)
    axis = linear(reach, bar.unit) if reach > whole else own
    bottom = _TOP + height
    marks = [*(_ticks(axis, bottom) if ticks else ())]
    marks += _parts(bar, axis, height)
    marks += _limit(bar, axis, used, height)
    says = _said(bar, own, used)
    tall = bottom + (26 if ticks else 6)
    return Drawing(
        label=bar.label,
        svg=frame(marks, tall, says),
        says=says,
        table=table_of(bar),
        key=key_of(bar),
        folded=False,
    )


def total(bar: StackedBar) -> float:
    """What the parts come to, in base units."""
    return sum(s.value for s in bar.segments)


def reach_of(bar: StackedBar) -> float:
    """How far a bar reaches along its axis: its parts or its limit."""
    return max(total(bar), bar.capacity or 0.0)


def reading(bar: StackedBar) -> str:
    """The whole bar as a sentence, for those who listen to it.

    >>> bar = StackedBar("Per GPU", (Segment("weights", "Weights", 9e10),), 8e10, "H")
    >>> reading(bar)
    'Per GPU: weights 90.0; 90.0 of 80 GB, 10.0 GB over.'
    """
    return _said(bar, linear(reach_of(bar), bar.unit), total(bar))


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
            f"{axis.one_decimal(abs(left))} {axis.unit} {word}"
        )
    return f"{bar.label}: {parts or 'nothing'}; {whole}."


def table_of(bar: StackedBar) -> Table:
    """The numbers of the bar: each part, its share, the sum, what is left."""
    used = total(bar)
    rows: list[tuple[str | tuple[float, str], ...]] = [
        (s.label, (s.value, bar.unit), (s.value / used if used else 0.0, "%"))
        for s in bar.segments
    ]
    whole = "Needed" if bar.unit == "B" else "Sum"
    rows.append((whole, (used, bar.unit), (1.0 if used else 0.0, "%")))
    if bar.capacity is not None:
        left = bar.capacity - used
        word = _left_word(bar).capitalize() if left >= 0 else "Over"
        limit = bar.capacity_label or "Limit"
        rows.append((limit, (bar.capacity, bar.unit), ""))
        rows.append((word, (abs(left), bar.unit), ""))
    return Table(bar.label, ("Part", bar.label, "Share"), tuple(rows))


def key_of(bar: StackedBar) -> tuple[tuple[str, str], ...]:
    """Which colour is which part, in the order drawn."""
    names: dict[str, str] = {}
    for part, look in zip(bar.segments, looks_of(bar), strict=True):
        if part.value:
            colour = look.key
            before = names.get(colour)
            names[colour] = f"{before}; {part.label}" if before else part.label
    free = bar.capacity is not None and bar.capacity > total(bar)
    left = (("k-f", _left_word(bar).capitalize()),) if free else ()
    return (*names.items(), *left)


def _left_word(bar: StackedBar) -> str:
    """Memory is free, everything else is left."""
    return "free" if bar.unit == "B" else "left"


def looks_of(bar: StackedBar) -> tuple[Look, ...]:
    """The look of each part, in the order of the parts."""
    if bar.unit == "B":
        return tuple(_MEMORY[s.component] for s in bar.segments)
    return tuple(
        dataclasses.replace(_PLAIN[i % len(_PLAIN)], letter=s.label[:1])
        for i, s in enumerate(bar.segments)
    )


@functools.lru_cache(maxsize=512)  # axes end at round numbers: there are few
def _ticks(axis: Axis, bottom: float) -> tuple[str, ...]:
    marks = []
    for tick in axis.ticks:
        at = axis.place(tick)
        last = tick == axis.ticks[-1]
        marks.append(line("ax", at, bottom, at, bottom + 6))
        words = axis.words(tick)
        if last:
            words = f"{words} {axis.unit}".strip()
        anchor = "e" if last else "m" if at else ""
        marks.append(text(words, at, bottom + 21, anchor))
    return tuple(marks)


def _parts(bar: StackedBar, axis: Axis, height: int) -> list[str]:
    marks: list[str] = []
    start = 0.0
    cap = 100.0 if bar.capacity is None else axis.place(bar.capacity)
    for segment, look in zip(bar.segments, looks_of(bar), strict=True):
        at = axis.place(start)
        wide = axis.place(start + segment.value) - at
        start += segment.value
        if wide <= 0:
            continue
        marks.append(rect(f"{look.fill} gap", at, _TOP, wide, height))
        # Stripes lie over what is beyond the limit; words would not be read there.
        seen = min(at + wide, cap) - at
        words = _inside(segment, look, axis, seen)
        if words:
            classes = " ".join(c for c in ("in-bar", look.words, "m") if c)
            down = _TOP + height / 2 + 4.5
            marks.append(text(words, at + seen / 2, down, classes))
    return marks


def _inside(segment: Segment, look: Look, axis: Axis, wide: float) -> str:
    """The name and number of a part where they fit, else its letter, else nothing."""
    if look.words == "none":
        return ""
    long = f"{segment.label} {axis.one_decimal(segment.value)}"
    words = long if fits(long, wide) else look.letter or segment.label
    return words if fits(words, wide) else ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Limit:
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
    limit = _Limit(axis.place(bar.capacity), end, axis.round(bar.capacity), axis.unit)
    cap = line("cap", limit.cap, 10, limit.cap, _TOP + height + 6)
    left = axis.one_decimal(abs(bar.capacity - used))
    if used <= bar.capacity:
        words = f"{left} {_left_word(bar)}"
        beside = _beside(limit.cap, f"of {limit.size} {limit.unit}", words)
        return [*_free(limit, height), cap, beside]
    return [*_over(limit, left, height), cap]


def _free(limit: _Limit, height: int) -> list[str]:
    wide = limit.cap - limit.end
    return [rect("free", limit.end, _TOP + 0.5, wide, height - 1)] if wide > 0 else []


def _over(limit: _Limit, left: str, height: int) -> list[str]:
    wide = limit.end - limit.cap
    marks = [rect("over", limit.cap, _TOP, wide, height)]
    over = f"{left} {limit.unit} over"
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
