"""What happens when in one step: lanes of spans over time."""

from app.drawings.axes import Axis, linear, scale_below
from app.drawings.svg import SvgChart, fits, rect, svg_root, text
from app.estimator.estimate import ResultTable, Timeline, TimelineSpan
from app.estimator.units import format_value

_LANE = 46
_BAR = 26


def draw_timeline(timeline: Timeline) -> SvgChart:
    """Draw each lane as a row; work hidden behind other work is hatched."""
    lanes = tuple(dict.fromkeys(span.lane for span in timeline.spans))
    axis = linear(max((s.end for s in timeline.spans), default=0.0), "s", room=1.0)
    marks = []
    for row, lane in enumerate(lanes):
        top = row * _LANE
        marks.append(text("", 0, top + 13, bold=lane))
        for span in (s for s in timeline.spans if s.lane == lane):
            marks += _span(span, axis, top + 19, hidden=is_hidden(span, timeline))
    bottom = len(lanes) * _LANE + 2
    marks += scale_below(axis, bottom - 6)
    says = reading(timeline)
    hidden = any(is_hidden(s, timeline) for s in timeline.spans)
    key = (("k-s", "On the critical path"), ("k-f", "Hidden behind other work"))
    return SvgChart(
        label=timeline.label,
        svg=svg_root(marks, bottom + 26, says),
        says=says,
        table=table_of(timeline),
        key=key if hidden else (),
    )


def is_hidden(span: TimelineSpan, timeline: Timeline) -> bool:
    """Whether a span costs no time: work of another lane goes on meanwhile."""
    return not span.exposed and any(
        other.lane != span.lane and other.start < span.end and span.start < other.end
        for other in timeline.spans
    )


def reading(timeline: Timeline) -> str:
    """The timeline as a sentence, lane by lane in the order of its spans."""
    told = "; ".join(
        f"{s.lane}, {s.label}: {format_value(s.end - s.start, 's')}"
        + (", hidden" if is_hidden(s, timeline) else "")
        for s in timeline.spans
    )
    end = max((s.end for s in timeline.spans), default=0.0)
    return f"{timeline.label}, {format_value(end, 's')} in all: {told or 'nothing'}."


def table_of(timeline: Timeline) -> ResultTable:
    """Every span with its beginning and its length."""
    rows = tuple(
        (
            s.lane,
            s.label,
            (s.start, "s"),
            (s.end - s.start, "s"),
            "hidden" if is_hidden(s, timeline) else "yes",
        )
        for s in timeline.spans
    )
    columns = ("Lane", "What", "From", "Takes", "Adds to the step")
    return ResultTable(timeline.label, columns, rows)


def _span(span: TimelineSpan, axis: Axis, top: float, *, hidden: bool) -> list[str]:
    start = axis.place(span.start)
    wide = axis.place(span.end) - start
    if wide <= 0:
        return []
    marks = [rect("none" if hidden else "soft gap", start, top, wide, _BAR)]
    if not hidden and fits(span.label, wide):
        marks.append(text("", start + wide / 2, top + 17.5, "m", bold=span.label))
    return marks
