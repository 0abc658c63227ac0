"""Column charts per day, dot strips of errors, score ranges."""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from app.widgets.scales import Axis, PlotArea
from app.widgets.svg import Box, draw_dot, draw_line, draw_rect, draw_text, svg_root

TOP, HEIGHT = 4.0, 120.0
_FOOT = 24.0
_GAP = 0.28


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnLabel:
    """A label below the columns at `place` percent; `anchor` is its text-anchor class."""

    place: float
    words: str
    anchor: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnChart:
    """A column chart; a column is its segments from the bottom up, as (class, value).

    `width` is the share of the drawing's width that the columns take, in percent; the
    axis labels are to their right. `limit` is drawn across them.
    """

    columns: Sequence[Sequence[tuple[str, float]]]
    axis: Axis
    names: Sequence[ColumnLabel]
    width: float
    limit: float | None = None

    @property
    def slot(self) -> float:
        """Return the width of one column in percent."""
        return self.width / len(self.columns)


def draw_columns(drawn: ColumnChart, says: str) -> Markup:
    """Draw the columns; `says` is the text alternative."""
    plane = PlotArea(Box(0, TOP, drawn.width, HEIGHT), drawn.axis)
    marks = plane.scale(drawn.axis.named)
    for number, parts in enumerate(drawn.columns):
        marks += _draw_column(parts, plane, drawn.slot, number)
    if drawn.limit is not None:
        at = plane.down(drawn.limit)
        marks.append(draw_line("cap", 0, at, drawn.width, at))
    foot = TOP + HEIGHT + _FOOT
    marks += [draw_text(n.words, n.place, foot - 6, n.anchor) for n in drawn.names]
    return svg_root(marks, foot, says)


def _draw_column(
    parts: Sequence[tuple[str, float]], plane: PlotArea, slot: float, number: int
) -> list[str]:
    left, wide = slot * (number + _GAP / 2), slot * (1 - _GAP)
    marks, base = [], 0.0
    for look, value in parts:
        if value > 0:
            top, foot = plane.down(base + value), plane.down(base)
            marks.append(draw_rect(look, left, top, wide, foot - top))
            base += value
    return marks


_STRIP = 40
_MAX_ERROR_SHOWN = 0.5
_TICKS = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
_TOP = 26


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorStrip:
    """One kind of case: its name, and (error, fitted) for each case.

    An error is predicted ÷ measured − 1; fitted cases do not count as evidence.
    """

    name: str
    errors: tuple[tuple[float, bool], ...]


def draw_strips(strips: tuple[ErrorStrip, ...]) -> Markup:
    """Draw every error from −50% to +50%; larger errors are drawn at the ends."""
    bottom = _TOP + len(strips) * _STRIP
    marks = [_draw_band(bottom), *_draw_axis(bottom)]
    for row, strip in enumerate(strips):
        top = _TOP + row * _STRIP
        marks.append(draw_line("ax", 0, top, 100, top))
        marks.append(draw_text(strip.name, 0, top + 14))
        marks += [_draw_case(error, top + 27, fitted=f) for error, f in strip.errors]
    marks.append(draw_line("edge", 50, _TOP, 50, bottom))
    return svg_root(marks, bottom + 8, _describe_strips(strips))


def error_position(error: float) -> float:
    """Return the position of an error along the axis, in percent of its width.

    >>> error_position(0.0), error_position(0.5), error_position(-3.0)
    (50.0, 99.0, 1.0)
    """
    shown = min(max(error, -_MAX_ERROR_SHOWN), _MAX_ERROR_SHOWN)
    return 50 + shown / _MAX_ERROR_SHOWN * 49


def _draw_case(error: float, down: float, *, fitted: bool) -> str:
    if abs(error) > _MAX_ERROR_SHOWN:
        return draw_dot("bad-f", error_position(error), down, 4)
    return draw_dot("hole" if fitted else "seen", error_position(error), down, 4)


def _draw_band(bottom: float) -> str:
    """Draw the band of errors within ten percent."""
    start = error_position(-0.1)
    return draw_rect("bg", start, _TOP, error_position(0.1) - start, bottom - _TOP)


def _draw_axis(bottom: float) -> list[str]:
    marks = []
    for tick in _TICKS:
        text = "0" if not tick else f"{'+' if tick > 0 else '−'}{abs(tick):.0%}"
        marks.append(draw_text(text, error_position(tick), 14, _tick_anchor(tick)))
        marks.append(draw_line("ax", error_position(tick), _TOP - 6, error_position(tick), bottom))
    return marks


def _tick_anchor(tick: float) -> str:
    return "e" if tick == _MAX_ERROR_SHOWN else "" if tick == -_MAX_ERROR_SHOWN else "m"


def _describe_strips(strips: tuple[ErrorStrip, ...]) -> str:
    text = "; ".join(
        f"{s.name}, {len(s.errors)} cases, {sum(abs(e) <= 0.1 for e, _ in s.errors)} within 10%"
        for s in strips
    )
    return f"Error of each prediction by kind: {text or 'no cases'}."


_RANGES_TOP, _HEIGHT = 20, 18
_MARK = 1.8


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreRange:
    """A score out of `of`, most likely between `low` and `high`; no `target` if 0."""

    score: float
    low: float
    high: float
    of: float
    target: float = 0.0
    target_words: str = ""


def draw_score(score: ScoreRange, says: str, ticks: tuple[float, ...]) -> Markup:
    """Draw a score range; `ticks` are the labels below, from the left end to the right end."""
    low, high = _score_position(score.low, score), _score_position(score.high, score)
    left = min(max(_score_position(score.score, score) - _MARK / 2, 0.0), 100 - _MARK)
    marks = [
        draw_rect("bg", 0, _RANGES_TOP, 100, _HEIGHT),
        draw_rect("fill", 0, _RANGES_TOP, low, _HEIGHT),
        draw_rect("none", low, _RANGES_TOP, high - low, _HEIGHT),
        draw_line("edge", high, _RANGES_TOP, high, _RANGES_TOP + _HEIGHT),
        draw_rect("mark edge", left, _RANGES_TOP - 3, _MARK, _HEIGHT + 6),
    ]
    if 0 < score.target <= score.of:
        marks += _draw_target(score)
    for tick in ticks:
        anchor = "e" if tick == ticks[-1] else "m" if tick else ""
        marks.append(draw_text(f"{tick:g}", _score_position(tick, score), 59, anchor))
    return svg_root(marks, 64, says)


def _draw_target(score: ScoreRange) -> list[str]:
    at = _score_position(score.target, score)
    anchor, beside = ("e b", -6) if at > 50 else ("b", 6)
    return [
        draw_line("cap", at, 6, at, 43),
        draw_text(score.target_words, at, 13, anchor, dx=beside),
    ]


def _score_position(value: float, score: ScoreRange) -> float:
    return 100 * min(max(value / (score.of or 1), 0.0), 1.0)
