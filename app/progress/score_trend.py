"""The expected score over the days, in words and as a line with its range."""

import dataclasses
import datetime as dt
from collections.abc import Sequence

from markupsafe import Markup

from app.progress.predictions import ScorePrediction
from app.study_plan.score import ScoreEstimate
from app.web.formatting import format_short_date
from app.widgets.svg import (
    Box,
    Point,
    build_svg_element,
    draw_band,
    draw_dot,
    draw_in_stretched_box,
    draw_line,
    draw_polyline,
    draw_text,
)

WEEK = dt.timedelta(days=7)
_FROM, _TO = (
    1.0,
    92.0,
)  # percent of the width that the line takes; its last value stands right of it
_TOP = 8.0
_LEAST_SPAN = 8.0  # points between the lowest and the highest line


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreTrend:
    """The scores that were shown, oldest first; the last one is today's."""

    scores: tuple[ScorePrediction, ...]

    def change_since_last_week(self, day: dt.date) -> tuple[int, str, str]:
        """Return by how many points the score rose, since when, and how far it fell since a later list.

        The first text is empty if there is nothing to compare with, the second if it did not fall.
        """
        if len(self.scores) < 2:
            return 0, "", ""
        before = [score for score in self.scores if score.day <= day - WEEK]
        since = before[-1] if before else self.scores[0]
        rise = round(self.scores[-1].expected) - round(since.expected)
        last = self.scores[-2]
        fall = round(last.expected) - round(self.scores[-1].expected)
        fell = f"down {fall} since {last.day:%A}" if fall > 0 and last is not since else ""
        return rise, "in a week" if before else f"since {since.day:%A}", fell


def build_score_trend(
    scores: Sequence[ScorePrediction], exam: str, estimate: ScoreEstimate | None
) -> ScoreTrend:
    """Return the scores shown for an exam of the same length."""
    if estimate is None:
        return ScoreTrend(())
    same = (s for s in scores if s.exam == exam and s.questions == estimate.questions)
    return ScoreTrend(tuple(sorted(same, key=lambda score: score.day)))


def draw_score_trend(trend: ScoreTrend, target: float | None, height: float = 120.0) -> Markup:
    """Draw the scores with their ranges; `target` is in questions. Empty before a second day.

    Below 100 pixels only the line is drawn.
    """
    scores = trend.scores
    if len(scores) < 2:
        return Markup()
    wide = height >= 100
    tops = [score.high if wide else score.expected for score in scores]
    lows = [score.low if wide else score.expected for score in scores]
    high, low = max([*tops, target or 0] if wide else tops), min(lows)
    middle, span = (high + low) / 2, max(high - low, _LEAST_SPAN)
    first, days = scores[0].day, (scores[-1].day - scores[0].day).days

    def down(value: float) -> float:
        return 100 * (0.5 - (value - middle) / span)

    def line(values: Sequence[float]) -> list[Point]:
        return [
            (100 * (score.day - first).days / days, down(value))
            for score, value in zip(scores, values, strict=True)
        ]

    expected = [score.expected for score in scores]
    shapes = [draw_band([*line(tops), *reversed(line(lows))])] if wide else []
    shapes.append(draw_polyline("ln", line(expected)))
    marks = [draw_in_stretched_box(shapes, Box(_FROM, _TOP, _TO - _FROM, height))]
    if wide and target:
        at = _TOP + height * down(target) / 100
        marks.append(draw_line("dash", 0, at, _TO, at))
        marks.append(draw_text(f"your target, {target:.0f}", 0, max(at - 6, 11), "b"))
    last = _TOP + height * down(expected[-1]) / 100
    now = str(round(expected[-1]))
    marks.append(draw_dot("mark edge", _TO, last, 5))
    marks.append(draw_text(now, 100, last + 5, "e b"))
    begin = f"{format_short_date(first)}: {round(expected[0])}"
    marks.append(draw_text(begin, 0, height + _TOP + 22))
    marks.append(draw_text("today", _TO, height + _TOP + 22, "m"))
    says = f"Expected score, from {round(expected[0])} on {format_short_date(first)} to {now} today"
    return build_svg_element(marks, height + _TOP + 28, says)
