"""Pictures: what is drawn, said and tabled for bars, charts and timelines."""

import dataclasses
import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.result import BarSegment, Chart, ChartLine, StackedBar, Timeline, TimelineSpan
from app.widgets.bar_charts import draw_stacked_bar
from app.widgets.estimate_view import draw_estimate_chart
from app.widgets.line_charts import draw_line_chart, draw_timeline
from app.widgets.svg import build_count_axis, build_linear_axis, build_logarithmic_axis

GB = 1e9
TIGHT = StackedBar(
    "Per GPU",
    (
        BarSegment("weights", "Weights", 8.75 * GB),
        BarSegment("gradients", "Gradients", 8.75 * GB),
        BarSegment("optimizer", "Optimizer", 52.5 * GB),
        BarSegment("activations", "Activations", 5.37 * GB),
        BarSegment("overhead", "Overhead", 4 * GB),
    ),
    80 * GB,
    "H100 SXM 80GB",
)
OVER = dataclasses.replace(
    TIGHT,
    segments=tuple(dataclasses.replace(s, value=2 * s.value) for s in TIGHT.segments),
)
ROOFLINE = Chart(
    "Roofline",
    "Arithmetic intensity",
    "Attainable rate",
    "",
    "FLOP/s",
    (
        ChartLine("H100, BF16", ((1, 3.35e12), (295, 989e12), (10000, 989e12))),
        ChartLine("decode, batch 1", ((1.0, 3.35e12),), "mark"),
    ),
    x_log=True,
    y_log=True,
)


def svg_of(drawing):
    return ET.fromstring(str(drawing.svg))  # noqa: S314 - our own drawing


def rects(drawing, first_class):
    return [r for r in svg_of(drawing).iter("rect") if r.attrib["class"].split()[0] == first_class]


def percent(element, name):
    return float(element.attrib[name].rstrip("%"))


def test_a_bar_keeps_its_proportions_in_percent_and_its_heights_in_pixels():
    drawing = draw_stacked_bar(TIGHT)
    optimizer = rects(drawing, "o")[0]
    assert optimizer.attrib["width"] == "52.5%"
    assert optimizer.attrib["height"] == "44"
    assert "viewBox" not in str(drawing.svg)


def test_parts_below_the_limit_leave_a_hatched_rest_and_a_cap():
    drawing = draw_stacked_bar(TIGHT)
    free = rects(drawing, "free")[0]
    assert percent(free, "x") + percent(free, "width") == pytest.approx(80, abs=0.02)
    assert "0.6 free" in str(drawing.svg)
    assert "of 80 GB" in str(drawing.svg)
    assert not rects(drawing, "over")


def test_parts_beyond_the_limit_are_striped_and_bracketed():
    drawing = draw_stacked_bar(OVER)
    over = rects(drawing, "over")[0]
    assert percent(over, "x") == pytest.approx(40, abs=0.1)
    assert "78.7 GB over" in str(drawing.svg)
    assert not rects(drawing, "free")


def test_the_axis_of_a_bar_starts_at_zero_and_names_its_unit_at_its_end():
    words = [t.text for t in svg_of(draw_stacked_bar(TIGHT)).iter("text") if t.text]
    assert words[:6] == ["0", "20", "40", "60", "80", "100 GB"]


def test_a_wide_part_says_its_number_a_narrow_one_its_letter_a_sliver_nothing():
    words = [t.text for t in svg_of(draw_stacked_bar(TIGHT)).iter("text")]
    assert "Optimizer 52.5" in words
    assert "W" in words
    assert "Overhead 4.0" not in words


def test_a_listener_hears_the_whole_bar_as_one_sentence():
    says = svg_of(draw_stacked_bar(TIGHT)).attrib["aria-label"]
    assert says == (
        "Per GPU: weights 8.8, gradients 8.8, optimizer 52.5, activations 5.4, "
        "overhead 4.0; 79.4 of 80 GB, 0.6 GB free."
    )


def test_the_table_behind_a_bar_sums_to_what_is_needed():
    table = draw_stacked_bar(TIGHT).table
    needed = next(row for row in table.rows if row[0] == "Needed")
    assert needed[1][0] == pytest.approx(79.37 * GB)
    assert table.rows[-1][0] == "Free"


def test_bars_of_a_comparison_can_share_one_axis():
    short = draw_stacked_bar(TIGHT, min_axis_end=192 * GB, draws_ticks=False)
    assert rects(short, "o")[0].attrib["width"] == "26.25%"
    assert "ax" not in {e.attrib.get("class") for e in svg_of(short).iter("line")}


def test_a_bar_without_a_limit_says_its_total():
    drawing = draw_stacked_bar(dataclasses.replace(TIGHT, capacity=None))
    assert "79.4 GB" in str(drawing.svg)
    assert "cap" not in {e.attrib.get("class") for e in svg_of(drawing).iter("line")}


def test_only_memory_has_the_colors_of_memory():
    parts = (BarSegment("weights", "Machines", 7e5), BarSegment("kv", "Staff", 3e5))
    drawing = draw_stacked_bar(StackedBar("A year", parts, None, "", "USD"))
    assert not rects(drawing, "w")
    assert not rects(drawing, "k")
    assert len(rects(drawing, "n1")) == len(rects(drawing, "soft")) == 1
    assert "Machines 700,000" in str(drawing.svg)


def test_an_empty_bar_is_drawn_without_a_fault():
    drawing = draw_stacked_bar(StackedBar("Nothing", (), None, ""))
    assert drawing.alt_text.startswith("Nothing: nothing")


@given(
    st.lists(st.floats(0, 1e18), min_size=0, max_size=6),
    st.none() | st.floats(1, 1e18),
)
def test_any_bar_stays_inside_its_drawing(values, capacity):
    parts = tuple(BarSegment("weights", f"P{i}", v) for i, v in enumerate(values))
    drawing = draw_stacked_bar(StackedBar("Any", parts, capacity, "limit"))
    for box in svg_of(drawing).iter("rect"):
        assert percent(box, "x") >= 0
        assert percent(box, "x") + percent(box, "width") <= 100.02
    assert "nan" not in str(drawing.svg)


@given(st.floats(1e-12, 1e24))
def test_a_linear_axis_has_three_to_five_steps_and_reaches_its_top(top):
    axis = build_linear_axis(top, "B")
    assert 4 <= len(axis.ticks) <= 6
    assert axis.ticks[0] == 0
    assert axis.high >= top


@given(st.floats(1e-9, 1e15), st.floats(1, 1e9))
def test_a_log_axis_holds_both_of_its_ends(low, ratio):
    axis = build_logarithmic_axis(low, low * ratio, "")
    assert axis.low <= low * 1.0000001
    assert axis.high >= low * ratio * 0.9999999
    assert 2 <= len(axis.ticks) <= 8


def test_a_roofline_bends_where_compute_takes_over_and_marks_the_point():
    drawing = draw_line_chart(ROOFLINE)
    root = svg_of(drawing)
    bends = next(iter(root.iter("polyline"))).attrib["points"].split()
    heights = [float(p.split(",")[1]) for p in bends]
    assert heights[0] > heights[1] == heights[2]
    assert [c.attrib["class"] for c in root.iter("circle")] == ["mark edge"]


def test_a_chart_names_its_lines_and_its_axes():
    drawing = draw_line_chart(ROOFLINE)
    for words in ("H100, BF16", "decode, batch 1", "Attainable rate, TFLOP/s"):
        assert words in str(drawing.svg)


def test_names_of_lines_that_end_together_do_not_touch():
    ends = ((0.0, 0.0), (10.0, 5.0))
    lines = tuple(ChartLine(f"line {i}", ends) for i in range(3))
    drawing = draw_line_chart(Chart("Same", "x", "y", "", "", lines))
    heights = sorted(
        float(t.attrib["y"])
        for t in svg_of(drawing).iter("text")
        if "halo" in t.attrib.get("class", "")
    )
    assert all(b - a >= 15 for a, b in itertools.pairwise(heights))


def test_a_name_stands_clear_of_the_other_lines_and_of_marks():
    rising = ChartLine("rising", ((0.0, 0.0), (2.0, 80.0), (5.0, 95.0), (10.0, 100.0)))
    limit = ChartLine("limit", ((0.0, 104.0), (10.0, 104.0)), "dash")
    here = ChartLine("here", ((6.0, 96.0),), "mark")
    drawn = svg_of(draw_line_chart(Chart("Rate", "x", "y", "", "", (rising, limit, here))))
    down = float(next(drawn.iter("circle")).attrib["cy"])
    foot = {
        "".join(t.itertext()): float(t.attrib["y"])
        for t in drawn.iter("text")
        if "halo" in t.attrib.get("class", "")
    }
    assert foot["here"] - 4 - down > 8, "under its mark, since a line is above it"
    assert foot["limit"] < down, "over its line, where nothing is"


def test_a_low_and_a_high_line_make_a_band_and_no_stroke():
    lines = (
        ChartLine("time", ((0, 1.0), (1, 2.0))),
        ChartLine("time, low", ((0, 0.5), (1, 1.5))),
        ChartLine("time, high", ((0, 1.5), (1, 3.0))),
    )
    root = svg_of(draw_line_chart(Chart("With band", "x", "y", "", "s", lines)))
    assert len(list(root.iter("polygon"))) == 1
    assert len(list(root.iter("polyline"))) == 1


def test_points_that_no_axis_can_show_are_left_out():
    lines = (ChartLine("odd", ((0.0, 1.0), (1.0, float("inf")), (2.0, 3.0))),)
    drawing = draw_line_chart(Chart("Odd", "x", "y", "", "", lines, x_log=True, y_log=True))
    assert not re.search(r"nan|inf", str(drawing.svg))


def test_a_chart_without_points_says_so():
    drawing = draw_line_chart(Chart("Empty", "x", "y", "", "", ()))
    assert drawing.alt_text == "Empty: no points."


def test_the_table_behind_a_long_line_has_a_dozen_rows_from_end_to_end():
    points = tuple((float(i), float(i * i)) for i in range(500))
    table = draw_line_chart(Chart("Long", "x", "y", "", "", (ChartLine("sq", points),))).table
    assert len(table.rows) == 12
    assert table.rows[0][0] == (0.0, "")
    assert table.rows[-1][0] == (499.0, "")


def test_a_timeline_has_a_lane_for_each_worker_and_hatches_hidden_work():
    timeline = Timeline(
        "One step",
        (
            TimelineSpan("Compute", "forward", 0.0, 0.4),
            TimelineSpan("Compute", "backward", 0.4, 1.2),
            TimelineSpan("Network", "all-reduce", 0.5, 1.2, is_exposed=False),
        ),
    )
    drawing = draw_timeline(timeline)
    assert len(rects(drawing, "soft")) == 2
    assert len(rects(drawing, "none")) == 1
    assert "all-reduce: 700 ms, hidden" in drawing.alt_text.replace("\u00a0", " ")
    assert drawing.table.rows[1][3] == (pytest.approx(0.8), "s")


def test_no_drawing_carries_a_style_or_unescaped_words():
    bar = StackedBar("<b>", (BarSegment("weights", '"><script>', GB),), GB, "<i>")
    for picture in (bar, ROOFLINE, Timeline("<b>", (TimelineSpan("<", "&", 0, 1),))):
        svg = str(draw_estimate_chart(picture).svg)
        assert "style=" not in svg
        assert "<script>" not in svg
        ET.fromstring(svg)  # noqa: S314 - our own drawing


def test_whole_steps_cover_what_is_counted_and_no_step_more():
    for most in range(500):
        ticks = build_count_axis(most).ticks
        assert ticks[-1] >= most, most
        assert ticks[-2] < max(most, 1), most
        assert 2 <= len(ticks) <= 6, most
        assert all(tick == int(tick) for tick in ticks), most
