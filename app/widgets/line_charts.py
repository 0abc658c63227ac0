"""Line charts, timelines."""

import dataclasses
import math

from app.estimator.result import Chart, ChartLine, ResultTable, Timeline, TimelineSpan
from app.estimator.units import format_value
from app.widgets.svg import (
    Axis,
    Box,
    LabeledLine,
    LegendEntry,
    Point,
    SvgChart,
    build_linear_axis,
    build_logarithmic_axis,
    build_svg_element,
    draw_band,
    draw_dot,
    draw_in_stretched_box,
    draw_line,
    draw_polyline,
    draw_rect_in_percent,
    draw_text,
    draw_ticks_below,
    place_line_labels,
    text_fits,
)

_PLOT_TOP_PIXELS = 24.0
_PLOT_HEIGHT_PIXELS = 220.0
_PLOT_BOTTOM_PIXELS = _PLOT_TOP_PIXELS + _PLOT_HEIGHT_PIXELS
_PLOT_BOX = Box(0, _PLOT_TOP_PIXELS, 100, _PLOT_HEIGHT_PIXELS)
_MOST_ROWS = 12
_STROKE_CLASSES = ("ln", "ln ln2", "ln ln3", "ln ln4")
_LOW_LABEL_SUFFIX, _HIGH_LABEL_SUFFIX = ", low", ", high"


@dataclasses.dataclass(frozen=True, slots=True)
class _ChartArea:
    """The two axes, and the position of a point: percent across, pixels down."""

    x: Axis
    y: Axis

    def to_percent_and_pixels(self, point: Point) -> Point:
        return self.x.position_percent(point[0]), _PLOT_BOTTOM_PIXELS - self.y.position_percent(
            point[1]
        ) * _PLOT_HEIGHT_PIXELS / 100

    def to_nested_coordinates(self, point: Point) -> Point:
        """Return a point's coordinates in the nested drawing of 100 by 100."""
        return self.x.position_percent(point[0]), 100 - self.y.position_percent(point[1])


def draw_line_chart(chart: Chart) -> SvgChart:
    """Draw lines, limits and marks; two lines “x, low” and “x, high” make a band."""
    lines = [_keep_drawable_points(one, chart) for one in chart.lines]
    points = [p for one in lines for p in one.points]
    if not points:
        return _empty_chart(chart)
    plane = _ChartArea(
        _chart_axis([p[0] for p in points], chart.x_unit, chart.x_log, headroom=1.0),
        _chart_axis([p[1] for p in points], chart.y_unit, chart.y_log, headroom=1.02),
    )
    marks = [
        *_draw_grid(plane, chart),
        *_draw_range_bands(lines, plane),
        *_draw_strokes(lines, plane),
    ]
    marks += [*_draw_dots(lines, plane), *_draw_line_labels(lines, plane)]
    alt_text = describe_line_chart(chart)
    svg = build_svg_element(marks, _PLOT_BOTTOM_PIXELS + 44, alt_text, "g plot")
    return SvgChart(chart.label, svg, alt_text, build_line_chart_table(chart))


def describe_line_chart(chart: Chart) -> str:
    text = "; ".join(_describe_line_ends(one, chart) for one in chart.lines if one.points)
    below = chart.x_label[:1].lower() + chart.x_label[1:]
    axes = f"{chart.y_label} over {below}"
    return f"{chart.label}: {axes}. {text}." if text else f"{chart.label}: no points."


def build_line_chart_table(chart: Chart) -> ResultTable:
    """Return the points of the lines as a table of at most a dozen rows."""
    lines = [one for one in chart.lines if one.points]
    places = sorted({p[0] for one in lines for p in one.points})
    if len(places) > _MOST_ROWS:
        marked = {p[0] for one in lines if one.style == "mark" for p in one.points}
        count = max(2, _MOST_ROWS - len(marked))
        others = [place for place in places if place not in marked] or places
        step = (len(others) - 1) / (count - 1)
        places = sorted({*marked, *(others[round(i * step)] for i in range(count))})
    known = [dict(one.points) for one in lines]
    rows = tuple(
        (
            (place, chart.x_unit),
            *tuple((ys[place], chart.y_unit) if place in ys else "" for ys in known),
        )
        for place in places
    )
    columns = (chart.x_label, *(one.label for one in lines))
    return ResultTable(chart.label, columns, rows)


def _describe_line_ends(line: ChartLine, chart: Chart) -> str:
    points = sorted(line.points)
    ends = [points[0]] if len(points) == 1 else [points[0], points[-1]]
    places = " to ".join(
        f"{format_value(y, chart.y_unit)} at {format_value(x, chart.x_unit)}" for x, y in ends
    )
    return f"{line.label}: {places}"


def _keep_drawable_points(line: ChartLine, chart: Chart) -> ChartLine:
    """Return the points that the axes can show: finite, and positive on a log axis."""
    points = tuple(
        sorted(
            p
            for p in line.points
            if all(map(math.isfinite, p))
            and (p[0] > 0 or not chart.x_log)
            and (p[1] > 0 or not chart.y_log)
        )
    )
    return dataclasses.replace(line, points=points)


def _chart_axis(values: list[float], unit: str, is_logarithmic: bool, *, headroom: float) -> Axis:
    if is_logarithmic:
        return build_logarithmic_axis(min(values), max(values), unit)
    return build_linear_axis(max(values), unit, headroom)


def _draw_grid(area: _ChartArea, chart: Chart) -> list[str]:
    marks = []
    for tick in area.y.ticks:
        down = area.to_percent_and_pixels((area.x.low, tick))[1]
        marks.append(draw_line("ax", 0, down, 100, down))
        marks.append(draw_text(area.y.format_without_unit(tick), 0, down + 4.5, "e", dx_pixels=-8))
    for tick in area.x.ticks:
        across = area.x.position_percent(tick)
        marks.append(draw_line("ax", across, _PLOT_BOTTOM_PIXELS, across, _PLOT_BOTTOM_PIXELS + 6))
        marks.append(
            draw_text(area.x.format_without_unit(tick), across, _PLOT_BOTTOM_PIXELS + 21, "m")
        )
    title = _axis_title(chart.y_label, area.y.unit)
    marks.append(draw_text(title, 0, 12, "", dx_pixels=-44))
    marks.append(
        draw_text(_axis_title(chart.x_label, area.x.unit), 100, _PLOT_BOTTOM_PIXELS + 40, "e")
    )
    return marks


def _axis_title(label: str, unit: str) -> str:
    return f"{label}, {unit}" if unit and unit not in label.split() else label


def _draw_range_bands(lines: list[ChartLine], area: _ChartArea) -> list[str]:
    by_label = {one.label: one for one in lines if one.points}
    shapes = []
    for label, low in by_label.items():
        high = by_label.get(label.removesuffix(_LOW_LABEL_SUFFIX) + _HIGH_LABEL_SUFFIX)
        if label.endswith(_LOW_LABEL_SUFFIX) and high is not None:
            edge = [*low.points, *reversed(high.points)]
            shapes.append(draw_band(map(area.to_nested_coordinates, edge)))
    return [draw_in_stretched_box(shapes, _PLOT_BOX)] if shapes else []


def _draw_strokes(lines: list[ChartLine], area: _ChartArea) -> list[str]:
    shapes = []
    solid = 0
    for one in lines:
        if one.style in {"dots", "mark"} or len(one.points) < 2 or _is_band_edge(one):
            continue
        stroke = "ln lim" if one.style == "dash" else _STROKE_CLASSES[solid % len(_STROKE_CLASSES)]
        solid += one.style == "line"
        shapes.append(draw_polyline(stroke, map(area.to_nested_coordinates, one.points)))
    return [draw_in_stretched_box(shapes, _PLOT_BOX)] if shapes else []


def _is_band_edge(line: ChartLine) -> bool:
    return line.label.endswith((_LOW_LABEL_SUFFIX, _HIGH_LABEL_SUFFIX))


def _draw_dots(lines: list[ChartLine], area: _ChartArea) -> list[str]:
    marks = []
    for one in lines:
        if one.style in {"dots", "mark"} or len(one.points) == 1:
            kind, radius = ("mark edge", 6) if one.style == "mark" else ("fill", 3.5)
            marks += [draw_dot(kind, *area.to_percent_and_pixels(p), radius) for p in one.points]
    return marks


def _draw_line_labels(lines: list[ChartLine], area: _ChartArea) -> list[str]:
    """Draw each line's name next to it, in bold for a mark."""
    named = [
        LabeledLine(
            "" if _is_band_edge(one) else one.label,
            [area.to_percent_and_pixels(p) for p in one.points],
            is_mark=one.style == "mark",
            is_scattered=one.style == "dots",
        )
        for one in lines
    ]
    return [
        draw_text(
            "" if name.line.is_mark else name.line.label,
            name.x_percent,
            name.y_pixels,
            "halo e" if name.ends_at_position else "halo",
            bold=name.line.label if name.line.is_mark else "",
            dx_pixels=-4 if name.ends_at_position else 8,
        )
        for name in place_line_labels(named, _PLOT_TOP_PIXELS, _PLOT_BOTTOM_PIXELS)
    ]


def _empty_chart(chart: Chart) -> SvgChart:
    alt_text = f"{chart.label}: no points."
    svg = build_svg_element([draw_text("no points", 50, 30, "m")], 44, alt_text)
    return SvgChart(chart.label, svg, alt_text, build_line_chart_table(chart))


_LANE_HEIGHT_PIXELS = 46
_LANE_BAR_HEIGHT_PIXELS = 26


def draw_timeline(timeline: Timeline) -> SvgChart:
    """Draw each lane as a row; work hidden behind other work is hatched."""
    lanes = tuple(dict.fromkeys(span.lane for span in timeline.spans))
    axis = build_linear_axis(
        max((s.end for s in timeline.spans), default=0.0), "s", headroom_factor=1.0
    )
    marks = []
    for row, lane in enumerate(lanes):
        top = row * _LANE_HEIGHT_PIXELS
        marks.append(draw_text("", 0, top + 13, bold=lane))
        for span in (s for s in timeline.spans if s.lane == lane):
            marks += _draw_span(
                span, axis, top + 19, is_hidden=is_hidden_by_other_lane(span, timeline)
            )
    bottom = len(lanes) * _LANE_HEIGHT_PIXELS + 2
    marks += draw_ticks_below(axis, bottom - 6)
    alt_text = describe_timeline(timeline)
    hidden = any(is_hidden_by_other_lane(s, timeline) for s in timeline.spans)
    legend = (
        LegendEntry("k-s", "On the critical path"),
        LegendEntry("k-f", "Hidden behind other work"),
    )
    return SvgChart(
        label=timeline.label,
        svg=build_svg_element(marks, bottom + 26, alt_text),
        alt_text=alt_text,
        table=build_timeline_table(timeline),
        legend=legend if hidden else (),
    )


def is_hidden_by_other_lane(span: TimelineSpan, timeline: Timeline) -> bool:
    """Return whether a span costs no time because another lane works at the same time."""
    return not span.is_exposed and any(
        other.lane != span.lane and other.start < span.end and span.start < other.end
        for other in timeline.spans
    )


def describe_timeline(timeline: Timeline) -> str:
    text = "; ".join(
        f"{s.lane}, {s.label}: {format_value(s.end - s.start, 's')}"
        + (", hidden" if is_hidden_by_other_lane(s, timeline) else "")
        for s in timeline.spans
    )
    end = max((s.end for s in timeline.spans), default=0.0)
    return f"{timeline.label}, {format_value(end, 's')} in all: {text or 'nothing'}."


def build_timeline_table(timeline: Timeline) -> ResultTable:
    """Return every span with its start and its length."""
    rows = tuple(
        (
            s.lane,
            s.label,
            (s.start, "s"),
            (s.end - s.start, "s"),
            "hidden" if is_hidden_by_other_lane(s, timeline) else "yes",
        )
        for s in timeline.spans
    )
    columns = ("Lane", "What", "From", "Takes", "Adds to the step")
    return ResultTable(timeline.label, columns, rows)


def _draw_span(span: TimelineSpan, axis: Axis, top: float, *, is_hidden: bool) -> list[str]:
    start = axis.position_percent(span.start)
    wide = axis.position_percent(span.end) - start
    if wide <= 0:
        return []
    marks = [
        draw_rect_in_percent(
            "none" if is_hidden else "soft gap", start, top, wide, _LANE_BAR_HEIGHT_PIXELS
        )
    ]
    if not is_hidden and text_fits(span.label, wide):
        marks.append(draw_text("", start + wide / 2, top + 17.5, "m", bold=span.label))
    return marks
