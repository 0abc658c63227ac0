"""Predicted exam scores: over the days, and compared with the results of mock exams."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from app.content.course_facts import is_paper_answered_enough_to_compare
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

# percent of the width that the line takes; its last value is written to the right of it
_LINE_START_PERCENT, _LINE_END_PERCENT = 1.0, 92.0
_PLOT_TOP = 8.0
_LEAST_SPAN = 8.0  # points between the lowest and the highest line


@dataclasses.dataclass(frozen=True, slots=True)
class ScorePrediction:
    """The forecast shown to a learner on a study day for an exam; `shown_at_ms` in ms.

    After a mock exam the score of the day is that of `later_estimate`; the prediction stays.
    """

    exam: str
    day: dt.date
    shown_at_ms: int
    question_count: int
    expected_right_answers: float
    low: int
    high: int
    later_estimate: ScoreEstimate | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class SittingResult:
    """The result of a closed sitting.

    Score out of `question_count`, of which `answered_count` were answered.
    """

    sitting_id: int
    exam: str
    started_at_ms: int
    score: float
    question_count: int
    answered_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A result and the last prediction before it, None if there was none.

    `scaled_score` is scaled to the number of questions in the prediction, which is larger if the
    question bank was too small for a whole exam.
    """

    result: SittingResult
    last_prediction_before: ScorePrediction | None

    @property
    def is_comparable(self) -> bool:
        """Whether it can be compared: there was a prediction, and enough questions were answered."""
        enough = is_paper_answered_enough_to_compare(
            self.result.answered_count, self.result.question_count
        )
        return self.last_prediction_before is not None and enough

    @property
    def scaled_score(self) -> float:
        """Right answers, scaled to the number of questions in the prediction."""
        if self.last_prediction_before is None or not self.result.question_count:
            return self.result.score
        return (
            self.result.score
            * self.last_prediction_before.question_count
            / self.result.question_count
        )

    @property
    def is_inside_range(self) -> bool:
        """Whether the result is within the predicted range. Partial points are rounded."""
        if self.last_prediction_before is None:
            return False
        return (
            self.last_prediction_before.low
            <= round(self.scaled_score)
            <= self.last_prediction_before.high
        )


def attach_predictions_to_results(
    results: Iterable[SittingResult], predictions: Sequence[ScorePrediction]
) -> tuple[PredictionOutcome, ...]:
    """Return every result, oldest first, with the newest prediction made before it, if any."""
    return tuple(
        PredictionOutcome(result, _find_last_prediction_before(predictions, result))
        for result in sorted(results, key=lambda r: r.started_at_ms)
    )


def _find_last_prediction_before(
    predictions: Iterable[ScorePrediction], result: SittingResult
) -> ScorePrediction | None:
    earlier = [
        p for p in predictions if p.exam == result.exam and p.shown_at_ms <= result.started_at_ms
    ]
    return max(earlier, key=lambda p: p.shown_at_ms, default=None)


def describe_count_of_results_in_range(outcomes: Iterable[PredictionOutcome]) -> str:
    """Return a sentence with the share of results inside the range; empty if none is comparable.

    The range is meant to cover nine results of ten, so the sentence names that number too.
    """
    comparable = [outcome for outcome in outcomes if outcome.is_comparable]
    if not comparable:
        return ""
    inside_count = sum(outcome.is_inside_range for outcome in comparable)
    sentence = f"{inside_count} of {len(comparable)} results lay inside the range"
    if len(comparable) == 1:
        position = "inside" if inside_count else "outside"
        sentence = f"The one full mock exam to compare so far lay {position} its range"
    return f"{sentence}; nine of ten should lie inside, if the predictions are sound."


class ScoreChange(NamedTuple):
    """By how many points the score differs from that of `first_day_text`; "" for none yet."""

    points: int = 0
    first_day_text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreTrend:
    """The scores that were shown, oldest first; the last one is today's."""

    predictions_oldest_first: tuple[ScorePrediction, ...]

    def change_since_first(self) -> ScoreChange:
        """Return the change since the first score, with which the drawn line begins, too."""
        if len(self.predictions_oldest_first) < 2:
            return ScoreChange()
        first = self.predictions_oldest_first[0]
        points = round(self.predictions_oldest_first[-1].expected_right_answers) - round(
            first.expected_right_answers
        )
        return ScoreChange(points, format_short_date(first.day))


def build_score_trend(
    predictions: Sequence[ScorePrediction], exam: str, estimate: ScoreEstimate | None
) -> ScoreTrend:
    """Return the scores shown last on each day, for an exam as long as that of `estimate`."""
    if estimate is None:
        return ScoreTrend(())
    comparable = (
        s for s in predictions if s.exam == exam and s.question_count == estimate.questions
    )
    scores = sorted(comparable, key=lambda score: score.day)
    return ScoreTrend(
        tuple(
            dataclasses.replace(
                score, expected_right_answers=later.shown, low=later.low, high=later.high
            )
            if (later := score.later_estimate)
            else score
            for score in scores
        )
    )


def draw_score_trend(
    trend: ScoreTrend, target_right_answers: float | None, height: float = 120.0
) -> Markup:
    """Draw the scores with their ranges; `target` is in questions. Empty before a second day.

    Below 100 pixels only the line is drawn.
    """
    scores = trend.predictions_oldest_first
    if len(scores) < 2:
        return Markup()
    has_range = height >= 100
    upper = [score.high if has_range else score.expected_right_answers for score in scores]
    lower = [score.low if has_range else score.expected_right_answers for score in scores]
    high, low = max([*upper, target_right_answers or 0] if has_range else upper), min(lower)
    middle, span = (high + low) / 2, max(high - low, _LEAST_SPAN)
    first, days = scores[0].day, (scores[-1].day - scores[0].day).days

    def y_percent(value: float) -> float:
        return 100 * (0.5 - (value - middle) / span)

    def to_points(values: Sequence[float]) -> list[Point]:
        return [
            (100 * (score.day - first).days / days, y_percent(value))
            for score, value in zip(scores, values, strict=True)
        ]

    expected = [score.expected_right_answers for score in scores]
    shapes = [draw_band([*to_points(upper), *reversed(to_points(lower))])] if has_range else []
    shapes.append(draw_polyline("ln", to_points(expected)))
    marks = [
        draw_in_stretched_box(
            shapes,
            Box(_LINE_START_PERCENT, _PLOT_TOP, _LINE_END_PERCENT - _LINE_START_PERCENT, height),
        )
    ]
    if has_range and target_right_answers:
        target_y = _PLOT_TOP + height * y_percent(target_right_answers) / 100
        marks.append(draw_line("dash", 0, target_y, _LINE_END_PERCENT, target_y))
        marks.append(
            draw_text(f"your target, {target_right_answers:.0f}", 0, max(target_y - 6, 11), "b")
        )
    last_y = _PLOT_TOP + height * y_percent(expected[-1]) / 100
    current_text = str(round(expected[-1]))
    marks.append(draw_dot("mark edge", _LINE_END_PERCENT, last_y, 5))
    marks.append(draw_text(current_text, 100, last_y + 5, "e b"))
    start_label = f"{format_short_date(first)}: {round(expected[0])}"
    marks.append(draw_text(start_label, 0, height + _PLOT_TOP + 22))
    marks.append(draw_text("today", _LINE_END_PERCENT, height + _PLOT_TOP + 22, "m"))
    alt_text = f"Expected score, from {round(expected[0])} on {format_short_date(first)} to {current_text} today"
    return build_svg_element(marks, height + _PLOT_TOP + 28, alt_text)
