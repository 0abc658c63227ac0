"""Bars and columns: stacks with a capacity mark, rows, pairs, columns per day, strips of dots."""

import dataclasses
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from app.estimator.result import ResultTable, StackedBar, label_in_sentence
from app.estimator.units import NBSP, PLURALS, append_unit, format_number
from app.widgets.svg import (
    Axis,
    LegendEntry,
    SvgChart,
    build_axis_in_given_unit,
    build_count_axis,
    build_linear_axis,
    build_svg_element,
    draw_dot,
    draw_line,
    draw_rect_in_percent,
    draw_text,
    draw_ticks_below,
    text_fits,
)


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentStyle:
    """How a segment is drawn: three CSS classes, and the letter on it if it is narrow."""

    fill_class: str
    text_class: str
    letter: str
    legend_class: str


COMPONENT_STYLES: dict[str, SegmentStyle] = {
    "weights": SegmentStyle("w", "", "W", "k-w"),
    "gradients": SegmentStyle("gr", "on-gr", "G", "k-g"),
    "optimizer": SegmentStyle("o", "", "O", "k-o"),
    "activations": SegmentStyle("a", "on-a", "A", "k-a"),
    "kv": SegmentStyle("k", "", "K", "k-k"),
    "overhead": SegmentStyle("r", "", "R", "k-r"),
    "other": SegmentStyle("soft", "on-soft", "", "k-x"),
}
UNLABELED_STYLE = SegmentStyle("fill", "none", "", "k-s")
"""A segment without a color of its own, and without text on it."""
# The colors of memory components are used for memory only; other sums are gray.
PLAIN_STYLES = (
    SegmentStyle("n1", "on-n1", "", "k-n1"),
    SegmentStyle("soft", "on-soft", "", "k-x"),
    SegmentStyle("ink", "on-n1", "", "k-n3"),
    SegmentStyle("bg line", "on-soft", "", "k-n4"),
    UNLABELED_STYLE,
)
STYLES_BY_LETTER = {style.letter: style for style in COMPONENT_STYLES.values() if style.letter}
"""Styles of the memory components by their letter."""


def choose_segment_styles(bar: StackedBar) -> tuple[SegmentStyle, ...]:
    """Return the style of each segment; no two neighbors share one.

    No two segments share a letter, so that the chart can be read without its colors.
    """
    if bar.unit in {"B", "slice"}:
        styles = list(_component_styles(bar))
    else:
        styles = [
            dataclasses.replace(PLAIN_STYLES[i % len(PLAIN_STYLES)], letter=s.label[:1])
            for i, s in enumerate(bar.segments)
        ]
    for place in range(1, len(styles)):
        if styles[place].fill_class == styles[place - 1].fill_class:
            styles[place] = _paler_style(styles[place])
    return tuple(_with_unique_letters(styles, [s.label for s in bar.segments]))


def _component_styles(bar: StackedBar) -> Iterator[SegmentStyle]:
    """Yield the styles of memory components; several others are lettered a, b, c.

    A single other segment has the first letter of its name.
    """
    several = sum(s.component == "other" for s in bar.segments) > 1
    names = iter(string.ascii_lowercase)
    for segment in bar.segments:
        style = COMPONENT_STYLES[segment.component]
        if segment.component == "other":
            letter = next(names, "") if several else segment.label[:1]
            style = dataclasses.replace(style, letter=letter)
        yield style


def _paler_style(style: SegmentStyle) -> SegmentStyle:
    """Return the style of the second of two segments with the same color."""
    return dataclasses.replace(
        style,
        fill_class=f"{style.fill_class} pale",
        text_class="on-pale",
        legend_class=f"{style.legend_class} k-pale",
    )


def _with_unique_letters(
    styles: Sequence[SegmentStyle], labels: Sequence[str]
) -> Iterator[SegmentStyle]:
    """Yield the styles with unique letters: the second S of a sum becomes St."""
    used: set[str] = set()
    for style, label in zip(styles, labels, strict=True):
        letter = style.letter
        if letter in used:
            starts = (label[:length] for length in range(1, len(label) + 1))
            letter = next((s for s in starts if s not in used), letter)
        used |= {letter} - {""}
        same = letter == style.letter
        yield style if same else dataclasses.replace(style, letter=letter)


@dataclasses.dataclass(frozen=True, slots=True)
class StackSegment:
    """A segment of a bar, in the base unit of its axis, with its formatted number."""

    label: str
    value: float
    style: SegmentStyle
    formatted_value: str


def draw_stack(
    segments: Iterable[StackSegment], axis: Axis, top: float, height: float, limit_percent: float
) -> list[str]:
    """Draw the segments from zero; `limit_percent` is the position of the limit in percent."""
    marks: list[str] = []
    reached, end = 0.0, axis.position_percent(0.0)
    for part in segments:
        reached += part.value
        at, end = end, axis.position_percent(reached)
        wide = end - at
        if wide <= 0:
            continue
        marks.append(draw_rect_in_percent(f"{part.style.fill_class} gap", at, top, wide, height))
        # Text would be unreadable on the stripes that cover the part beyond the limit.
        seen = min(at + wide, limit_percent) - at
        text = _segment_text(part, seen)
        if text:
            classes = " ".join(c for c in ("in-bar", part.style.text_class, "m") if c)
            marks.append(draw_text(text, at + seen / 2, top + height / 2 + 4.5, classes))
    return marks


def _segment_text(segment: StackSegment, width_percent: float) -> str:
    """Return the name and number of a segment if they fit, else its letter, else nothing."""
    if segment.style.text_class == "none":
        return ""
    long = f"{segment.label} {segment.formatted_value}"
    text = long if text_fits(long, width_percent) else segment.style.letter or segment.label
    return text if text_fits(text, width_percent) else ""


_CHART_TOP_PIXELS = 24
_NARROW_OVER = 30.0
_LEFT_LABEL = 30.0


def draw_stacked_bar(
    bar: StackedBar, *, height: int = 44, min_axis_end: float = 0.0, draws_ticks: bool = True
) -> SvgChart:
    """Draw a stacked bar with its limit.

    `min_axis_end` lengthens the axis, so that bars of a comparison share one; `draws_ticks`
    False leaves the axis to the bar below.

    >>> from app.estimator.result import BarSegment
    >>> bar = StackedBar("Per GPU", (BarSegment("weights", "Weights", 9e10),), 8e10, "H")
    >>> draw_stacked_bar(bar).alt_text
    'Per GPU: weights 90.0; 90.0 of 80 GB, 10.0 GB over.'
    """
    used, whole = bar_total(bar), axis_end_of_bar(bar)
    own = _bar_axis(bar, whole)
    axis = _bar_axis(bar, min_axis_end) if min_axis_end > whole else own
    bottom = _CHART_TOP_PIXELS + height
    marks = [*(draw_ticks_below(axis, bottom) if draws_ticks else ())]
    styles = choose_segment_styles(bar)
    parts = [
        StackSegment(segment.label, segment.value, style, axis.format_one_decimal(segment.value))
        for segment, style in zip(bar.segments, styles, strict=True)
    ]
    limit_at = 100.0 if bar.capacity is None else axis.position_percent(bar.capacity)
    marks += draw_stack(parts, axis, _CHART_TOP_PIXELS, height, limit_at)
    marks += _draw_total_against_limit(bar, axis, used, height)
    alt_text = _describe_bar(bar, own, used)
    tall = bottom + (26 if draws_ticks else 6)
    return SvgChart(
        label=bar.label,
        svg=build_svg_element(marks, tall, alt_text),
        alt_text=alt_text,
        table=build_bar_table(bar),
        legend=build_bar_legend(bar, styles),
    )


def _bar_axis(bar: StackedBar, largest: float) -> Axis:
    """Return the axis of a bar; a count has whole-number ticks."""
    if bar.unit == "slice":
        return build_count_axis(largest, PLURALS[bar.unit])
    return build_linear_axis(largest, bar.unit)


def bar_total(bar: StackedBar) -> float:
    """Return the sum of the segments, in base units."""
    return sum(s.value for s in bar.segments)


def axis_end_of_bar(bar: StackedBar) -> float:
    """Return how far a bar reaches along its axis: its sum or its limit."""
    return max(bar_total(bar), bar.capacity or 0.0)


def _describe_bar(bar: StackedBar, axis: Axis, total: float) -> str:
    parts = ", ".join(
        f"{s.label[:1].lower()}{s.label[1:]} {axis.format_one_decimal(s.value)}"
        for s in bar.segments
        if s.value
    )
    whole = f"{axis.format_one_decimal(total)} {axis.unit} in all"
    if bar.capacity is not None:
        left = bar.capacity - total
        word = _remainder_label(bar) if left >= 0 else "over"
        whole = (
            f"{axis.format_one_decimal(total)} of {axis.format_rounded(bar.capacity)} {axis.unit}, "
            f"{_format_axis_value(axis, abs(left))} {word}"
        )
    return f"{bar.label}: {parts or 'nothing'}; {whole}."


def _format_axis_value(axis: Axis, value: float) -> str:
    """Format a value with its unit; for a count the bar names what is counted."""
    text = axis.format_one_decimal(value)
    return text if axis.is_count else f"{text} {axis.unit}"


def build_bar_table(bar: StackedBar) -> ResultTable:
    """Return the bar as a table: each segment, its share, the sum, the rest."""
    used = bar_total(bar)
    rows: list[tuple[str | tuple[float, str], ...]] = [
        (s.label, (s.value, bar.unit), (s.value / used if used else 0.0, "%")) for s in bar.segments
    ]
    whole = "Needed" if bar.unit == "B" else "Sum"
    rows.append((whole, (used, bar.unit), (1.0 if used else 0.0, "%")))
    if bar.capacity is not None:
        left = bar.capacity - used
        word = _remainder_label(bar).capitalize() if left >= 0 else "Over"
        limit = bar.capacity_label or "Limit"
        rows.append((limit, (bar.capacity, bar.unit), ""))
        rows.append((word, (abs(left), bar.unit), ""))
    return ResultTable(bar.label, ("Part", bar.label, "Share"), tuple(rows))


def build_bar_legend(
    bar: StackedBar, styles: Sequence[SegmentStyle] = ()
) -> tuple[LegendEntry, ...]:
    """Return the legend in drawing order; `styles` are the styles, if known."""
    names: dict[str, str] = {}
    for part, style in zip(bar.segments, styles or choose_segment_styles(bar), strict=True):
        if part.value:
            color = style.legend_class
            before = names.get(color)
            text = _legend_label(part.label, style.letter)
            names[color] = f"{before}; {text}" if before else text
    free = bar.capacity is not None and bar.capacity > bar_total(bar)
    entries = [LegendEntry(color, text) for color, text in names.items()]
    if free:
        entries.append(LegendEntry("k-f", _remainder_label(bar).capitalize()))
    return tuple(entries)


def _legend_label(label: str, letter: str) -> str:
    """Add the letter to a segment's name, unless the name begins with it.

    >>> _legend_label("Overhead", "R"), _legend_label("Weights", "W")
    ('Overhead (R)', 'Weights')
    """
    return label if label.startswith(letter) else f"{label} ({letter})"


def _remainder_label(bar: StackedBar) -> str:
    """Return the word for the rest: memory is “free”, anything else is “left”."""
    return "free" if bar.unit == "B" else "left"


def _draw_total_against_limit(bar: StackedBar, axis: Axis, total: float, height: int) -> list[str]:
    end = axis.position_percent(total)
    if bar.capacity is None:
        text = f"{axis.format_one_decimal(total)} {axis.unit}".strip()
        return [_draw_text_above_bar_beside_position(end, "", text)]
    limit_at = axis.position_percent(bar.capacity)
    limit = f"{axis.format_rounded(bar.capacity)} {axis.unit}"
    mark = draw_line("cap", limit_at, 10, limit_at, _CHART_TOP_PIXELS + height + 6)
    if total > bar.capacity:
        over = f"{_format_axis_value(axis, total - bar.capacity)} over"
        return [*_draw_overflow(limit_at, end, limit, over, height), mark]
    free = limit_at - end
    marks = (
        [draw_rect_in_percent("free", end, _CHART_TOP_PIXELS + 0.5, free, height - 1)]
        if free > 0
        else []
    )
    left = f"{axis.format_one_decimal(bar.capacity - total)} {_remainder_label(bar)}"
    return [*marks, mark, _draw_text_above_bar_beside_position(limit_at, f"of {limit}", left)]


def _draw_overflow(
    limit_at: float, total_at: float, limit: str, overflow: str, height: int
) -> list[str]:
    """Draw the part beyond the limit; positions are in percent, `limit` and `overflow` texts."""
    wide = total_at - limit_at
    marks = [draw_rect_in_percent("over", limit_at, _CHART_TOP_PIXELS, wide, height)]
    if wide < _NARROW_OVER:
        return [*marks, _draw_text_above_bar_beside_position(limit_at, limit, overflow)]
    marks.append(draw_line("brk", limit_at, 18, total_at, 18))
    marks.append(draw_line("brk", total_at, 14, total_at, 22))
    if limit_at < _LEFT_LABEL:
        return [*marks, draw_text(f"of {limit}", total_at, 12, "e", bold=overflow)]
    marks.append(draw_text("", (limit_at + total_at) / 2, 12, "m", bold=overflow))
    marks.append(draw_text(limit, limit_at - 1, 15, "e"))
    return marks


def _draw_text_above_bar_beside_position(position: float, text: str, bold: str) -> str:
    """Draw text above the bar, left of a position, or right of it near the left edge."""
    if position < _LEFT_LABEL:
        return draw_text(text, position + 1, 15, bold=bold)
    return draw_text(text, position - 1, 15, "e", bold=bold)


_ROW_HEIGHT_PIXELS, _BAR_HEIGHT_PIXELS, _FOOT_HEIGHT_PIXELS = 72, 34, 34
_AXIS_HEADROOM = 1.04
_LABEL_BY_COMPONENT = {"kv": "KV cache"}


class RowPart(NamedTuple):
    """A segment of a row; named like a memory component, it gets that component's color."""

    name: str
    value: float


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentedRow:
    label: str
    parts: tuple[RowPart, ...]

    @property
    def total(self) -> float:
        return sum(part.value for part in self.parts)


@dataclasses.dataclass(frozen=True, slots=True)
class RowChart:
    """A row chart; all values have one unit. `alt_text_override` replaces the generated text alternative."""

    title: str
    alt_text_override: str
    unit: str
    rows: tuple[SegmentedRow, ...]
    limit: float | None = None
    limit_label: str = "limit"

    @property
    def axis(self) -> Axis:
        most = max([row.total for row in self.rows] + [self.limit or 0.0])
        return build_axis_in_given_unit(most, self.unit, _AXIS_HEADROOM)

    def format_value(self, value: float) -> str:
        return append_unit(format_number(float(f"{value:.6g}")), self.unit)


def draw_row_chart(chart: RowChart) -> Markup:
    """Draw each row with its name and sum above it, and the limit across all rows."""
    axis = chart.axis
    bottom = len(chart.rows) * _ROW_HEIGHT_PIXELS
    marks: list[str] = []
    for place, row in enumerate(chart.rows):
        marks += _draw_row(row, chart, axis, place * _ROW_HEIGHT_PIXELS)
    marks += draw_ticks_below(axis, bottom - 6)
    if chart.limit is not None:
        at = axis.position_percent(chart.limit)
        text = f"{chart.format_value(chart.limit)}, {chart.limit_label}"
        marks.append(draw_text(text, at, bottom + 31, "e" if at > 50 else ""))
    return build_svg_element(
        marks, bottom + _FOOT_HEIGHT_PIXELS, chart.alt_text_override or describe_row_chart(chart)
    )


def build_row_chart_legend(chart: RowChart) -> tuple[LegendEntry, ...]:
    names = dict.fromkeys(part.name for row in chart.rows for part in row.parts)
    return tuple(
        LegendEntry(COMPONENT_STYLES[n].legend_class, format_component_name(n))
        for n in names
        if n in COMPONENT_STYLES
    )


def format_component_name(component: str) -> str:
    """Return the display name of a memory component.

    >>> format_component_name("kv"), format_component_name("weights")
    ('KV cache', 'Weights')
    """
    return _LABEL_BY_COMPONENT.get(component, component.capitalize())


def describe_row_chart(chart: RowChart) -> str:
    sentences = []
    for row in chart.rows:
        parts = ", ".join(
            f"{label_in_sentence(format_component_name(part.name))} {chart.format_value(part.value)}"
            for part in row.parts
        )
        alone = len(row.parts) == 1 and row.parts[0].name == row.label
        label = f"{row.label}: {chart.format_value(row.total)}"
        sentences.append(label if alone else f"{label}, of which {parts}")
    if chart.limit is not None:
        sentences.append(f"the limit is {chart.format_value(chart.limit)}")
    text = "; ".join(sentences).replace(NBSP, " ")
    return f"{chart.title}. {text}." if chart.title else f"{text}."


def _draw_row(row: SegmentedRow, chart: RowChart, axis: Axis, top: float) -> list[str]:
    limit = chart.limit
    over = row.total - limit if limit is not None else 0.0
    text = f"{row.label}: {chart.format_value(row.total)}"
    if over > 0:
        text += f", {chart.format_value(over)} over"
    cap = 100.0 if limit is None else axis.position_percent(limit)
    marks = [draw_text(text, 0, top + 18, "b")]
    segments = [
        StackSegment(
            format_component_name(part.name),
            part.value,
            COMPONENT_STYLES.get(part.name, UNLABELED_STYLE),
            format_number(float(f"{part.value:.3g}")),
        )
        for part in row.parts
    ]
    marks += draw_stack(segments, axis, top + 26, _BAR_HEIGHT_PIXELS, cap)
    if over > 0:
        marks.append(
            draw_rect_in_percent(
                "over", cap, top + 26, axis.position_percent(row.total) - cap, _BAR_HEIGHT_PIXELS
            )
        )
    if limit is not None:
        marks.append(draw_line("cap", cap, top + 22, cap, top + 66))
    return marks


_PAIRS_ROW, _PAIRS_BAR = 48, 16
# Leaves space for the text after the longest bar, also in the narrowest chart.
_MAX_BAR_PERCENT = 74.0  # percent
_MIN_CHART_WIDTH_PIXELS, _LETTER_WIDTH_PIXELS, _LABEL_GAP_PIXELS = 288.0, 6.5, 8  # pixels


@dataclasses.dataclass(frozen=True, slots=True)
class DoubleBar:
    """A bar of length `value`, with text after it.

    `value_under_condition` is how far it reaches under a condition.
    """

    label: str
    value: float
    text: str
    value_under_condition: float = 0.0
    css_class: str = "fill"


def draw_double_bars(bars: Sequence[DoubleBar], alt_text: str) -> Markup:
    """Draw all bars on one scale from zero; `alt_text` is the text alternative."""
    most = max((max(p.value, p.value_under_condition) for p in bars), default=0.0) or 1.0
    letters = max((len(p.text) for p in bars), default=0)
    share = 1 - (_LABEL_GAP_PIXELS + _LETTER_WIDTH_PIXELS * letters) / _MIN_CHART_WIDTH_PIXELS
    widest = min(_MAX_BAR_PERCENT, 100 * share)
    marks: list[str] = []
    for place, pair in enumerate(bars):
        top = place * _PAIRS_ROW
        long, far = (widest * v / most for v in (pair.value, pair.value_under_condition))
        marks.append(draw_text(pair.label, 0, top + 13, "b"))
        if far > long:
            marks.append(draw_rect_in_percent("none", 0, top + 20, far, _PAIRS_BAR))
        marks.append(draw_rect_in_percent(pair.css_class, 0, top + 20, long, _PAIRS_BAR))
        marks.append(draw_text(pair.text, max(long, far), top + 33, dx_pixels=_LABEL_GAP_PIXELS))
    return build_svg_element(marks, len(bars) * _PAIRS_ROW, alt_text)


_STRIP_HEIGHT_PIXELS = 40
_MAX_ERROR_SHOWN = 0.5
_DIFFERENCE_TICKS = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
_STRIP_TOP = 26


class PredictionErrorPoint(NamedTuple):
    """Predicted ÷ measured − 1 of one case; a case that was fitted to does not count."""

    error: float
    is_fitted: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorStrip:
    name: str
    errors: tuple[PredictionErrorPoint, ...]


def draw_error_strips(strips: tuple[ErrorStrip, ...]) -> Markup:
    """Draw every error from −50% to +50%; larger errors are drawn at the ends."""
    bottom = _STRIP_TOP + len(strips) * _STRIP_HEIGHT_PIXELS
    start, end = error_position(-0.1), error_position(0.1)
    marks = [draw_rect_in_percent("bg", start, _STRIP_TOP, end - start, bottom - _STRIP_TOP)]
    for tick in _DIFFERENCE_TICKS:
        at = error_position(tick)
        text = "0" if not tick else f"{'+' if tick > 0 else '−'}{abs(tick):.0%}"
        anchor = (
            "e" if tick == _DIFFERENCE_TICKS[-1] else "" if tick == _DIFFERENCE_TICKS[0] else "m"
        )
        marks.append(draw_text(text, at, 14, anchor))
        marks.append(draw_line("ax", at, _STRIP_TOP - 6, at, bottom))
    for row, strip in enumerate(strips):
        top = _STRIP_TOP + row * _STRIP_HEIGHT_PIXELS
        marks.append(draw_line("ax", 0, top, 100, top))
        marks.append(draw_text(strip.name, 0, top + 14))
        for error, is_fitted in strip.errors:
            outside = abs(error) > _MAX_ERROR_SHOWN
            style = "bad-f" if outside else "hole" if is_fitted else "seen"
            marks.append(draw_dot(style, error_position(error), top + 27, 4))
    marks.append(draw_line("edge", 50, _STRIP_TOP, 50, bottom))
    return build_svg_element(marks, bottom + 8, _describe_strips(strips))


def error_position(error: float) -> float:
    """Return the position of an error along the axis, in percent of its width.

    >>> error_position(0.0), error_position(0.5), error_position(-3.0)
    (50.0, 99.0, 1.0)
    """
    shown = min(max(error, -_MAX_ERROR_SHOWN), _MAX_ERROR_SHOWN)
    return 50 + shown / _MAX_ERROR_SHOWN * 49


def _describe_strips(strips: tuple[ErrorStrip, ...]) -> str:
    text = "; ".join(
        f"{s.name}, {len(s.errors)} cases, {sum(abs(e.error) <= 0.1 for e in s.errors)} within 10%"
        for s in strips
    )
    return f"Error of each prediction by kind: {text or 'no cases'}."


_RANGES_TOP, _RANGES_HEIGHT_PIXELS = 20, 18
_MARK_WIDTH_PERCENT = 1.8


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreRange:
    """A score out of `max_score`, most likely between `low` and `high`; no `target` if 0."""

    score: float
    low: float
    high: float
    max_score: float
    target: float = 0.0
    target_text: str = ""


def draw_score_range(score: ScoreRange, alt_text: str, ticks: tuple[float, ...]) -> Markup:
    """Draw a score range; `ticks` are the labels below, from the left end to the right end."""
    low, high = _percent_of_max_score(score.low, score), _percent_of_max_score(score.high, score)
    left = min(
        max(_percent_of_max_score(score.score, score) - _MARK_WIDTH_PERCENT / 2, 0.0),
        100 - _MARK_WIDTH_PERCENT,
    )
    marks = [
        draw_rect_in_percent("bg", 0, _RANGES_TOP, 100, _RANGES_HEIGHT_PIXELS),
        draw_rect_in_percent("fill", 0, _RANGES_TOP, low, _RANGES_HEIGHT_PIXELS),
        draw_rect_in_percent("none", low, _RANGES_TOP, high - low, _RANGES_HEIGHT_PIXELS),
        draw_line("edge", high, _RANGES_TOP, high, _RANGES_TOP + _RANGES_HEIGHT_PIXELS),
        draw_rect_in_percent(
            "mark edge", left, _RANGES_TOP - 3, _MARK_WIDTH_PERCENT, _RANGES_HEIGHT_PIXELS + 6
        ),
    ]
    if 0 < score.target <= score.max_score:
        marks += _draw_target_score(score)
    for tick in ticks:
        anchor = "e" if tick == ticks[-1] else "m" if tick else ""
        marks.append(draw_text(f"{tick:g}", _percent_of_max_score(tick, score), 59, anchor))
    return build_svg_element(marks, 64, alt_text)


def _draw_target_score(score: ScoreRange) -> list[str]:
    at = _percent_of_max_score(score.target, score)
    anchor, beside = ("e b", -6) if at > 50 else ("b", 6)
    return [
        draw_line("cap", at, 6, at, 43),
        draw_text(score.target_text, at, 10, anchor, dx_pixels=beside),
    ]


def _percent_of_max_score(value: float, score: ScoreRange) -> float:
    return 100 * min(max(value / (score.max_score or 1), 0.0), 1.0)
