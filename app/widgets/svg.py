"""The parts of SVG charts: elements, axes, ticks, labels, icons, meters, standalone files."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Literal, NamedTuple, Protocol

from markupsafe import Markup

from app.estimator import units
from app.estimator.result import ResultTable

# Half the width of a character of 13px text, and the narrowest drawing that
# shows text inside its bars (narrower ones hide it), in px.
HALF_CHARACTER_WIDTH_PIXELS = 6.6
MIN_LABELED_WIDTH_PIXELS = 500.0

_ARIA_HIDDEN = 'aria-hidden="true"'
Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle: x and width in percent, y and height in pixels."""

    x: float
    y: float
    width: float
    height: float


class LegendEntry(NamedTuple):
    css_class: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class SvgChart:
    """A finished chart; its text alternative is one sentence."""

    label: str
    svg: Markup
    alt_text: str
    table: ResultTable
    legend: tuple[LegendEntry, ...] = ()


def build_svg_element(
    content: Iterable[str], height: float, alt_text: str, classes: str = "g", width: float = 0.0
) -> Markup:
    """Return the `<svg>` element: no viewBox, so text keeps its size at any width.

    An empty `alt_text` hides it from screen readers: the text next to it says the same.
    `width` is in pixels, 0 for the full width.
    """
    role = f'role="img" aria-label="{escape(str(alt_text))}"' if alt_text else _ARIA_HIDDEN
    wide = f' width="{format_coordinate(width)}"' if width else ""
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<svg class="{classes}" {role}{wide} height="{format_coordinate(height)}">{"".join(content)}</svg>'
    )


def draw_rect_in_percent(
    classes: str, x_percent: float, y_pixels: float, width_percent: float, height_pixels: float
) -> str:
    """Return a rectangle, across in percent of the drawing, down in pixels."""
    return (
        f'<rect class="{classes}" x="{format_coordinate(x_percent)}%"'
        f' y="{format_coordinate(y_pixels)}" width="{format_coordinate(width_percent)}%"'
        f' height="{format_coordinate(height_pixels)}"/>'
    )


def draw_rect_in_pixels(classes: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{classes}" x="{format_coordinate(x)}" y="{format_coordinate(y)}"'
        f' width="{format_coordinate(width)}" height="{format_coordinate(height)}"/>'
    )


def draw_text_in_pixels(text: str, x: float, y: float) -> str:
    return f'<text x="{format_coordinate(x)}" y="{format_coordinate(y)}">{escape(text)}</text>'


def draw_circled_letter(letter: str, x: float, y: float) -> str:
    """Return a letter in a circle around a point, in pixels."""
    return (
        f'<circle class="tag" cx="{format_coordinate(x)}" cy="{format_coordinate(y)}" r="10"/>'
        f'<text class="on-tag" x="{format_coordinate(x)}" y="{format_coordinate(y + 4.5)}"'
        f' text-anchor="middle" fill="currentColor" stroke="none">'
        f"{escape(letter)}</text>"
    )


def draw_line(
    classes: str, x1_percent: float, y1_pixels: float, x2_percent: float, y2_pixels: float
) -> str:
    return (
        f'<line class="{classes}" x1="{format_coordinate(x1_percent)}%"'
        f' x2="{format_coordinate(x2_percent)}%"'
        f' y1="{format_coordinate(y1_pixels)}" y2="{format_coordinate(y2_pixels)}"/>'
    )


def draw_text(
    text: str,
    x_percent: float,
    y_pixels: float,
    classes: str = "",
    *,
    bold: str = "",
    dx_pixels: int = 0,
) -> str:
    """Return text; `bold` is written in front of it."""
    strong = f'<tspan class="b">{escape(bold)}</tspan>' if bold else ""
    gap = " " if bold and text else ""
    kind = f' class="{classes}"' if classes else ""
    shift = f' dx="{dx_pixels}"' if dx_pixels else ""
    return (
        f'<text{kind} x="{format_coordinate(x_percent)}%" y="{format_coordinate(y_pixels)}"{shift}>'
        f"{strong}{gap}{escape(text)}</text>"
    )


def draw_dot(classes: str, x_percent: float, y_pixels: float, radius_pixels: float) -> str:
    return (
        f'<circle class="{classes}" cx="{format_coordinate(x_percent)}%"'
        f' cy="{format_coordinate(y_pixels)}" r="{format_coordinate(radius_pixels)}"/>'
    )


def draw_polyline(classes: str, points: Iterable[Point]) -> str:
    """Return a line through points of a nested drawing, 0 to 100 both ways."""
    return f'<polyline class="{classes}" points="{_points_text(points)}"/>'


def draw_band(points: Iterable[Point]) -> str:
    """Return a filled area between points of a nested drawing."""
    return f'<polygon class="band" points="{_points_text(points)}"/>'


def draw_in_stretched_box(shapes: Iterable[str], box: Box) -> str:
    """Return a drawing of 100 by 100, stretched over a box; lines keep their width."""
    return (
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible"'
        f' x="{format_coordinate(box.x)}%" y="{format_coordinate(box.y)}" width="{format_coordinate(box.width)}%"'
        f' height="{format_coordinate(box.height)}">{"".join(shapes)}</svg>'
    )


def draw_short_horizontal_line(classes: str, x_percent: float, y_pixels: float) -> str:
    """Return a horizontal line of 10 pixels, centered at a point."""
    return (
        f'<svg x="{format_coordinate(x_percent)}%" y="{format_coordinate(y_pixels)}"'
        ' width="1" height="1" overflow="visible">'
        f'<line class="{classes}" x1="-5" x2="5" y1="0" y2="0"/></svg>'
    )


def _points_text(points: Iterable[Point]) -> str:
    return " ".join(f"{format_coordinate(x)},{format_coordinate(y)}" for x, y in points)


def format_coordinate(value: float) -> str:
    """Format a coordinate with at most two decimals.

    >>> format_coordinate(8.75), format_coordinate(40.0), format_coordinate(1 / 3)
    ('8.75', '40', '0.33')
    """
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def text_fits(text: str, width_percent: float) -> bool:
    """Return whether text fits into a box of this width in percent of a drawing."""
    return (
        len(text) * HALF_CHARACTER_WIDTH_PIXELS + 10
        <= width_percent / 100 * MIN_LABELED_WIDTH_PIXELS
    )


class VerdictIcon(NamedTuple):
    """The CSS class and the icon of a verdict; both may be empty.

    `label` names the result of a graded answer; an estimate has a sentence instead.
    """

    css_class: str
    icon: str
    label: str = ""


VERDICT_ICONS = {
    # Verdicts of an estimate.
    "fits": VerdictIcon("good", "i-check"),
    "tight": VerdictIcon("warn", "i-tight"),
    "no": VerdictIcon("bad", "i-cross"),
    "info": VerdictIcon("", ""),
    # Verdicts of an answer.
    "right": VerdictIcon("good", "i-check", "right"),
    "partly": VerdictIcon("warn", "i-tight", "partly right"),
    "wrong": VerdictIcon("bad", "i-cross", "not right"),
    "unknown": VerdictIcon("quiet", "i-minus", "not known"),
    "near": VerdictIcon("warn", "i-tight"),
    "refused": VerdictIcon("warn", "i-alert"),
}

_FILE_WIDTH, _FILE_LEFT, _FILE_RIGHT, _FILE_TOP = 820, 60, 24, 10
_COLOR_TOKEN = re.compile(r"--([\w-]+):\s*(?:light-dark\()?\s*(#[0-9a-f]+)")
_CSS_VARIABLE_USE = re.compile(r"var\(--([\w-]+)\)")
_CHART_CSS_RULE = re.compile(r"^\.(?:g[ .]|defs)[^{]*\{[^}]*\}.*$", re.MULTILINE)
_HEIGHT_ATTRIBUTE = re.compile(r' height="([\d.]+)"')
_FILL_PATTERNS = (
    '<defs class="defs"><pattern id="fill-free" width="6" height="6"'
    ' patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0v6" stroke-width="1"/></pattern>'
    '<pattern id="fill-over" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(-45)"><path class="pap" d="M0 0v7"/></pattern></defs>'
)


def build_standalone_svg(drawing: SvgChart, tokens_css: str, rules_css: str) -> str:
    """Return the drawing with its styles inlined; `tokens_css` and `rules_css` are the style sheets."""
    height = float((_HEIGHT_ATTRIBUTE.search(drawing.svg) or ["", "200"])[1])
    inner = drawing.svg.replace(
        Markup("<svg "),
        Markup(  # noqa: S704 - numbers only, no user text
            f'<svg x="{_FILE_LEFT}" y="{_FILE_TOP}" width="{_FILE_WIDTH - _FILE_LEFT - _FILE_RIGHT}" '
        ),
        1,
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_FILE_WIDTH}"'
        f' height="{format_coordinate(height + 2 * _FILE_TOP)}" class="g">'
        f"<style>{replace_css_color_variables(tokens_css, rules_css)}</style>{_FILL_PATTERNS}"
        f'<rect width="100%" height="100%" fill="#fff"/>{inner}</svg>\n'
    )


def replace_css_color_variables(tokens_css: str, rules_css: str) -> str:
    """Return the chart rules with every color written out, in the light theme.

    >>> replace_css_color_variables("--ink: light-dark(#111, #eee)", ".g .e { fill: var(--ink) }")
    '.g .e { fill: #111 } .g { font: 400 13px "Source Sans 3", sans-serif }'
    """
    colors = dict(_COLOR_TOKEN.findall(tokens_css))
    rules_text = " ".join(rule[0] for rule in _CHART_CSS_RULE.finditer(rules_css))
    written = _CSS_VARIABLE_USE.sub(lambda use: colors.get(use[1], "sans-serif"), rules_text)
    return f'{written} .g {{ font: 400 13px "Source Sans 3", sans-serif }}'


def draw_share_meter(share: float, alt_text: str = "", height: float = 6) -> Markup:
    """Draw a bar filled from the left; `alt_text` is its text alternative, or empty."""
    filled = draw_rect_in_percent(
        "fill" if height > 6 else "ink", 0, 0, _clamped_percent(share), height
    )
    return build_svg_element(
        [draw_rect_in_percent("bg", 0, 0, 100, height), filled], height, alt_text
    )


def draw_named_share_meters(share_by_name: Mapping[str, float], alt_text: str) -> Markup:
    """Draw bars one below the other, each with its name before it."""
    marks: list[str] = []
    for row, (name, share) in enumerate(share_by_name.items()):
        top = row * _LEGEND_ROW_HEIGHT
        marks.append(draw_text(name, 0, top + 10))
        marks.append(draw_rect_in_percent("bg", _METERS_LEFT, top, 100 - _METERS_LEFT, 12))
        marks.append(
            draw_rect_in_percent(
                "fill", _METERS_LEFT, top, _clamped_percent(share) * (1 - _METERS_LEFT / 100), 12
            )
        )
    return build_svg_element(marks, len(share_by_name) * _LEGEND_ROW_HEIGHT - 6, alt_text)


class OptionBar(Protocol):
    """An option of a question, and the share (0..1) of learners that chose it."""

    @property
    def letter(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def share(self) -> float: ...


def draw_option_shares(options: Sequence[OptionBar], alt_text: str) -> Markup:
    """Draw the share of each option side by side, the right one in ink."""
    wide = 100 / max(1, len(options))
    marks: list[str] = []
    for place, option in enumerate(options):
        x, look = place * wide, "ink" if option.right else "soft"
        marks.append(draw_rect_in_percent(look, x, 0, option.share * wide * 0.88, 12))
        text = f"{option.letter} {option.share * 100:.0f}"
        marks.append(draw_text(text, x, 27, "b" if option.right else ""))
    return build_svg_element(marks, 32, alt_text)


_LEGEND_ROW_HEIGHT = 20
_METERS_LEFT = 22


def _clamped_percent(share: float) -> float:
    return 100 * min(max(share, 0.0), 1.0)


_AXIS_STEPS = (1.0, 2.0, 4.0, 5.0, 10.0)
_DECADE_TICKS = (1.0, 2.0, 5.0)
_MIN_PLAIN_NUMBER, _MAX_PLAIN_NUMBER = 1e-4, 1e6
_SUPERSCRIPT_BY_DIGIT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high` in base units; `base_units_per_unit` converts them to `unit`.

    `unit` is shown at the end of the axis, such as GB.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    unit: str
    base_units_per_unit: float
    is_logarithmic: bool = False
    is_count: bool = False

    def position_percent(self, value: float) -> float:
        """Return the position of a value along the axis, 0 to 100 (clipped)."""
        if self.is_logarithmic:
            value = max(value, self.low)
            span = math.log(self.high / self.low)
            share = math.log(value / self.low) / span
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)

    def format_without_unit(self, value: float) -> str:
        """Format a value in the unit of the axis, without the unit."""
        return _format_tick(
            value / self.base_units_per_unit,
            _MAX_PLAIN_NUMBER if self.is_logarithmic else 1000 * _MAX_PLAIN_NUMBER,
        )

    def tick_label(self, tick: float) -> str:
        """Return the label of a tick; the last one includes the unit."""
        text = self.format_without_unit(tick)
        return f"{text} {self.unit}".strip() if tick == self.ticks[-1] else text

    def format_rounded(self, value: float) -> str:
        """Format a value for a label next to the axis: whole numbers from a thousand on."""
        shown = value / self.base_units_per_unit
        return f"{shown:,.0f}" if abs(shown) >= 1000 else self.format_without_unit(value)

    def format_one_decimal(self, value: float) -> str:
        """Format a value in the unit of the axis with one decimal, `105.0`; counts without."""
        shown = value / self.base_units_per_unit
        whole = self.is_count or abs(shown) >= 1000
        return f"{shown:,.0f}" if whole else f"{shown:,.1f}"


def build_linear_axis(max_value: float, unit: str, headroom_factor: float = 1.02) -> Axis:
    """Return an axis from zero to a round number above `max_value`, with three to five steps.

    >>> axis = build_linear_axis(149.4e9, "B")
    >>> axis.unit, [axis.tick_label(t) for t in axis.ticks]
    ('GB', ['0', '40', '80', '120', '160 GB'])
    """
    max_value = max_value if math.isfinite(max_value) and max_value > 1e-30 else 1.0
    return _axis_from_zero(max_value * headroom_factor, *choose_readable_unit(max_value, unit))


def build_axis_in_given_unit(
    max_value: float, unit: str = "", headroom_factor: float = 1.0
) -> Axis:
    """Return an axis from zero for values that are already in the unit `unit`.

    >>> axis = build_axis_in_given_unit(1400, "GB")
    >>> [axis.tick_label(t) for t in axis.ticks]
    ['0', '500', '1,000', '1,500 GB']
    """
    max_value = max_value if math.isfinite(max_value) and max_value > 1e-30 else 1.0
    return _axis_from_zero(max_value * headroom_factor, unit)


def build_count_axis(max_value: float, unit: str = "") -> Axis:
    """Return an axis of counts: from zero in whole steps, at least one.

    >>> [build_count_axis(most).ticks for most in (27, 2, 0)]
    [(0.0, 10.0, 20.0, 30.0), (0.0, 1.0, 2.0), (0.0, 1.0)]
    """
    axis = _axis_from_zero(max(max_value, 1.0), unit, min_step=1.0)
    return dataclasses.replace(axis, is_count=True)


def _axis_from_zero(
    largest: float, unit: str, base_units_per_unit: float = 1.0, min_step: float = 0.0
) -> Axis:
    step = max(min_step, _axis_step(largest / base_units_per_unit))
    count = math.ceil(largest / base_units_per_unit / step - 1e-9)
    ticks = tuple(_drop_float_error(i * step) * base_units_per_unit for i in range(count + 1))
    return Axis(0.0, ticks[-1], ticks, unit, base_units_per_unit)


def build_logarithmic_axis(low: float, high: float, unit: str) -> Axis:
    """Return an axis of powers of ten around two positive values.

    Times are in the unit of those in its middle, so that a few minutes leave seconds in seconds.

    >>> [round(t) for t in build_logarithmic_axis(3, 400, "").ticks]
    [1, 10, 100, 1000]
    """
    low, high = max(low, 1e-30), max(high, low * 1.0001, 1e-30)
    word, factor = choose_readable_unit(math.sqrt(low * high) if unit == "s" else high, unit)
    first = math.floor(math.log10(low / factor) + 1e-9)
    last = max(math.ceil(math.log10(high / factor) - 1e-9), first + 1)
    decades = range(first, last + 1, max(1, (last - first + 5) // 6))
    ticks = tuple(10.0**e for e in decades)
    if len(ticks) <= 3:
        ticks = tuple(m * 10.0**e for e in range(first, last) for m in _DECADE_TICKS)
        ticks = (*ticks, 10.0**last)
    shown = tuple(tick * factor for tick in ticks)
    return Axis(shown[0], 10.0**last * factor, shown, word, factor, is_logarithmic=True)


def choose_readable_unit(largest: float, unit: str) -> units.DisplayUnit:
    """Return the readable multiple of a base unit for values up to `largest`.

    >>> choose_readable_unit(80e9, "B")
    DisplayUnit(name='GB', factor=1000000000.0)
    """
    if unit in units.UNITS and units.UNITS[unit][1] != 1.0:
        return units.DisplayUnit(unit, units.UNITS[unit][1])
    word = units.format_value(float(largest), unit).partition(units.NBSP)[2]
    known = units.UNITS.get(word)
    if known and known[0] == unit:
        return units.DisplayUnit(word, known[1])
    return units.DisplayUnit(word or unit, 1.0)


def _axis_step(top: float) -> float:
    """Return the step of the shortest axis that reaches `top` in three to five steps."""
    scale = 10.0 ** math.floor(math.log10(top / 5))
    usable = []
    for step in (m * s for s in (scale, scale * 10) for m in _AXIS_STEPS):
        count = math.ceil(top / step - 1e-9)
        if 3 <= count <= 5:
            usable.append((_drop_float_error(count * step), -step))
    return -min(usable)[1]


def _format_tick(value: float, scientific_from: float) -> str:
    shown = _drop_float_error(value)
    if _MIN_PLAIN_NUMBER <= abs(shown) < scientific_from or not shown:
        return units.format_number(shown)
    mantissa, _, power = f"{shown:.2e}".partition("e")
    raised = str(int(power)).translate(_SUPERSCRIPT_BY_DIGIT)
    digits = f"{float(mantissa):g}"
    return f"10{raised}" if digits == "1" else f"{digits}×10{raised}"


def _drop_float_error(value: float) -> float:
    return float(f"{value:.10g}")


def draw_ticks_below(axis: Axis, y: float) -> tuple[str, ...]:
    """Draw the tick labels below a chart, with the unit after the last."""
    marks = []
    for tick in axis.ticks:
        at = axis.position_percent(tick)
        last = tick == axis.ticks[-1]
        marks.append(draw_line("ax", at, y, at, y + 6))
        text = axis.tick_label(tick)
        marks.append(draw_text(text, at, y + 21, "e" if last else "m" if at else ""))
    return tuple(marks)


SHARE_AXIS = Axis(0.0, 1.0, (0.0, 0.5, 1.0), "%", 0.01)
"""Axis of shares from 0% to 100%."""


@dataclasses.dataclass(frozen=True, slots=True)
class PlotArea:
    """A plot area: `y_axis` runs up the height of `box`."""

    box: Box
    y_axis: Axis

    def y_pixels(self, value: float) -> float:
        """Return the distance of a value from the top of the drawing, in pixels."""
        share = self.y_axis.position_percent(value) / 100
        return self.box.y + self.box.height * (1 - share)

    def draw_gridlines_with_labels(
        self, format_tick: Callable[[float], str], side: Literal["left", "right"] = "right"
    ) -> list[str]:
        """Draw a line for each tick, with its label to the right, or above it on the left.

        In a chart that grows from the left, the lowest tick is labeled below instead.
        """
        right = self.box.x + self.box.width
        marks = []
        for tick in self.y_axis.ticks:
            at = self.y_pixels(tick)
            marks.append(draw_line("ax", 0, at, right, at))
            if side == "right":
                marks.append(draw_text(format_tick(tick), 100, at + 4, "e"))
            else:
                low = tick == self.y_axis.low
                marks.append(draw_text(format_tick(tick), 0, at + 18 if low else at - 4))
        return marks


# Width of a plot on a phone in pixels. Labels without overlap there have none anywhere.
_PLOT_WIDTH = 250.0
_LABEL_GAP = 8.0  # Pixels between the middle of a name and a line.
_NAME_HEIGHT_PIXELS = 15.0  # Height of a name in pixels.
_NAME_BASELINE_TO_MIDDLE_PIXELS = 4.0  # From the baseline of a name to its middle.
_MARK_HALF_SIZE_PIXELS = 6.0  # Half the size of a mark.
_LINE_NAMES_STEPS, _LABEL_PART_COUNT = 24, 20
# Candidate places next to a line, and how many overlaps outweigh a farther place.
_NEAR_PLACE_COUNT, _OVERLAPS_PER_FAR_PLACE = 4, 6
_LABEL_ABOVE, _LABEL_BELOW = -6.0, 16.0
_ABOVE_MARK, _BELOW_MARK = -12.0, 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class LabeledLine:
    """A line with its name: its points in percent across and pixels down.

    One with `is_mark` is a single point; with `is_scattered` it is points without a line.
    """

    label: str
    points: Sequence[Point]
    is_mark: bool = False
    is_scattered: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LineLabel:
    """A placed name; the text begins or ends at the position."""

    line: LabeledLine
    x_percent: float
    y_pixels: float
    ends_at_position: bool

    @property
    def horizontal_extent_percent(self) -> tuple[float, float]:
        """Return where the text begins and ends, in percent of a narrow plot."""
        wide = (len(self.line.label) * HALF_CHARACTER_WIDTH_PIXELS + 8) / _PLOT_WIDTH * 100
        if self.ends_at_position:
            return self.x_percent - wide, self.x_percent
        return self.x_percent, self.x_percent + wide


def place_line_labels(lines: Sequence[LabeledLine], top: float, bottom: float) -> list[LineLabel]:
    """Place each name where it overlaps least; move up names that would still overlap.

    Marks choose first, then lines from the lowest to the highest. `lines` without
    a name get no label but are kept clear. `top` and `bottom` bound the plot, in pixels.
    """
    placed: list[LineLabel] = []
    wanted = [one for one in lines if one.label and one.points]
    wanted.sort(key=lambda one: (not one.is_mark, -one.points[-1][1]))
    for one in wanted:
        positions = [
            (
                _count_label_parts_over_lines(name, lines)
                + _OVERLAPS_PER_FAR_PLACE * (place >= _NEAR_PLACE_COUNT),
                name,
            )
            for place, name in enumerate(_candidate_label_positions(one))
            if _is_inside(name, top, bottom)
            and not any(_labels_overlap(name, other) for other in placed)
        ]
        _, best = min(positions, key=lambda cost: cost[0], default=(0, None))
        placed.append(best or _move_above_others(next(_candidate_label_positions(one)), placed))
    return placed


def _candidate_label_positions(line: LabeledLine) -> Iterator[LineLabel]:
    """Yield places above and below the end of a line, its start, its end again; or a mark."""
    across, down = line.points[-1]
    late = across > 50
    if line.is_mark:
        for before in (late, not late):
            yield LineLabel(line, across, down + _ABOVE_MARK, before)
            yield LineLabel(line, across, down + _BELOW_MARK, before)
        return
    yield LineLabel(line, across, down + _LABEL_ABOVE, late)
    yield LineLabel(line, across, down + _LABEL_BELOW, late)
    first, height = line.points[0]
    yield LineLabel(line, first, height + _LABEL_ABOVE, first > 50)
    yield LineLabel(line, first, height + _LABEL_BELOW, first > 50)
    yield LineLabel(line, across, down + _LABEL_ABOVE - _NAME_HEIGHT_PIXELS, late)
    yield LineLabel(line, across, down + _LABEL_BELOW + _NAME_HEIGHT_PIXELS, late)


def _is_inside(label: LineLabel, top: float, bottom: float) -> bool:
    start, end = label.horizontal_extent_percent
    wide = start >= -2 and end <= 102
    return (
        wide
        and top - 2 <= label.y_pixels - _NAME_HEIGHT_PIXELS + _NAME_BASELINE_TO_MIDDLE_PIXELS
        and label.y_pixels <= bottom - 2
    )


def _labels_overlap(one: LineLabel, other: LineLabel) -> bool:
    (start, end), (other_start, other_end) = (
        one.horizontal_extent_percent,
        other.horizontal_extent_percent,
    )
    beside = start >= other_end or other_start >= end
    return not beside and abs(one.y_pixels - other.y_pixels) < _NAME_HEIGHT_PIXELS


def _count_label_parts_over_lines(label: LineLabel, lines: Sequence[LabeledLine]) -> int:
    """Count the parts of a name that overlap a line; a mark counts as all of them."""
    start, end = label.horizontal_extent_percent
    middle = label.y_pixels - _NAME_BASELINE_TO_MIDDLE_PIXELS
    parts = {
        int((x - start) / (end - start) * _LABEL_PART_COUNT)
        for line in lines
        for x, y in _yield_line_points_near_label(line, (start, end), middle)
        if abs(y - middle) < _LABEL_GAP
    }
    marks = (place for line in lines if line.is_mark for place in line.points)
    hit = (
        start - 2 <= x <= end + 2 and abs(y - middle) < _LABEL_GAP + _MARK_HALF_SIZE_PIXELS
        for x, y in marks
    )
    return len(parts) + _LABEL_PART_COUNT * sum(hit)


def _yield_line_points_near_label(
    line: LabeledLine, extent: Point, middle: float
) -> Iterator[Point]:
    """Yield points of a line where it passes between two horizontal positions.

    Segments that stay far above or below `middle` are skipped.
    """
    start, end = extent
    high, low = middle - _LABEL_GAP, middle + _LABEL_GAP
    if line.is_scattered:
        yield from ((x, y) for x, y in line.points if start <= x <= end)
        return
    for (x, y), (next_x, next_y) in zip(line.points, line.points[1:], strict=False):
        if next_x < start or x > end:
            continue
        if max(y, next_y) <= high or min(y, next_y) >= low:
            continue
        for step in range(_LINE_NAMES_STEPS + 1):
            across = x + step / _LINE_NAMES_STEPS * (next_x - x)
            if start <= across <= end:
                yield across, y + step / _LINE_NAMES_STEPS * (next_y - y)


def _move_above_others(label: LineLabel, placed: Sequence[LineLabel]) -> LineLabel:
    """Move the name up until it overlaps no other."""
    for other in sorted(placed, key=lambda n: -n.y_pixels):
        if _labels_overlap(label, other):
            label = dataclasses.replace(label, y_pixels=other.y_pixels - _NAME_HEIGHT_PIXELS)
    return label
