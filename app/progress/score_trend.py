"""The expected score over the days, in words and as a line with its range."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

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
)  # percent of the width that the line takes; its last value is written to the right of it
_TOP = 8.0
_LEAST_SPAN = 8.0  # points between the lowest and the highest line


class ScoreChange(NamedTuple):
    """By how many points the score rose (fell, if negative), and since when: empty for no change yet."""

    points: int = 0
    since: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreTrend:
    """The scores that were shown, oldest first; the last one is today's."""

    scores: tuple[ScorePrediction, ...]

    def change_since_last_week(self, day: dt.date) -> ScoreChange:
        """Return the change in a week or since the first score, but a fall since the last one first."""
        if len(self.scores) < 2:
            return ScoreChange()
        today, last = round(self.scores[-1].expected), self.scores[-2]
        older = [score for score in self.scores if score.day <= day - WEEK]
        baseline = older[-1] if older else self.scores[0]
        if last.day > day - WEEK and today < round(last.expected):
            older, baseline = [], last
        since = "in a week" if older else f"since {baseline.day:%A}"
        return ScoreChange(today - round(baseline.expected), since)


def build_score_trend(
    scores: Sequence[ScorePrediction], exam: str, estimate: ScoreEstimate | None
) -> ScoreTrend:
    """Return the scores shown for an exam of the same length."""
    if estimate is None:
        return ScoreTrend(())
    comparable = (s for s in scores if s.exam == exam and s.questions == estimate.questions)
    return ScoreTrend(tuple(sorted(comparable, key=lambda score: score.day)))


def draw_score_trend(
    trend: ScoreTrend, target_questions: float | None, height: float = 120.0
) -> Markup:
    """Draw the scores with their ranges; `target` is in questions. Empty before a second day.

    Below 100 pixels only the line is drawn.
    """
    scores = trend.scores
    if len(scores) < 2:
        return Markup()
    has_range = height >= 100
    upper = [score.high if has_range else score.expected for score in scores]
    lower = [score.low if has_range else score.expected for score in scores]
    high, low = max([*upper, target_questions or 0] if has_range else upper), min(lower)
    middle, span = (high + low) / 2, max(high - low, _LEAST_SPAN)
    first, days = scores[0].day, (scores[-1].day - scores[0].day).days

    def y_percent(value: float) -> float:
        return 100 * (0.5 - (value - middle) / span)

    def to_points(values: Sequence[float]) -> list[Point]:
        return [
            (100 * (score.day - first).days / days, y_percent(value))
            for score, value in zip(scores, values, strict=True)
        ]

    expected = [score.expected for score in scores]
    shapes = [draw_band([*to_points(upper), *reversed(to_points(lower))])] if has_range else []
    shapes.append(draw_polyline("ln", to_points(expected)))
    marks = [draw_in_stretched_box(shapes, Box(_FROM, _TOP, _TO - _FROM, height))]
    if has_range and target_questions:
        target_y = _TOP + height * y_percent(target_questions) / 100
        marks.append(draw_line("dash", 0, target_y, _TO, target_y))
        marks.append(
            draw_text(f"your target, {target_questions:.0f}", 0, max(target_y - 6, 11), "b")
        )
    last_y = _TOP + height * y_percent(expected[-1]) / 100
    current_text = str(round(expected[-1]))
    marks.append(draw_dot("mark edge", _TO, last_y, 5))
    marks.append(draw_text(current_text, 100, last_y + 5, "e b"))
    start_label = f"{format_short_date(first)}: {round(expected[0])}"
    marks.append(draw_text(start_label, 0, height + _TOP + 22))
    marks.append(draw_text("today", _TO, height + _TOP + 22, "m"))
    alt_text = f"Expected score, from {round(expected[0])} on {format_short_date(first)} to {current_text} today"
    return build_svg_element(marks, height + _TOP + 28, alt_text)
