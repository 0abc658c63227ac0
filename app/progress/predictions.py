"""Predicted exam scores, compared with the results of mock exams."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

from app.content.course_facts import has_enough_answers


@dataclasses.dataclass(frozen=True, slots=True)
class ScorePrediction:
    """The forecast shown to a learner on a study day for an exam; `at` in ms."""

    exam: str
    day: dt.date
    at: int
    questions: int
    expected: float
    low: int
    high: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExamResult:
    """The result of a closed sitting: score out of `questions`, of which `answered` were answered."""

    number: int
    exam: str
    started: int
    score: float
    questions: int
    answered: int


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A result and the last prediction before it, None if there was none.

    `scaled_score` is scaled to the number of questions in the prediction, which is larger if the
    question bank was too small for a whole exam.
    """

    result: ExamResult
    predicted: ScorePrediction | None

    @property
    def is_comparable(self) -> bool:
        """Whether it can be compared: there was a prediction, and enough questions were answered."""
        enough = has_enough_answers(self.result.answered, self.result.questions)
        return self.predicted is not None and enough

    @property
    def scaled_score(self) -> float:
        """Right answers, scaled to the number of questions in the prediction."""
        if self.predicted is None or not self.result.questions:
            return self.result.score
        return self.result.score * self.predicted.questions / self.result.questions

    @property
    def is_inside_range(self) -> bool:
        """Whether the result is within the predicted range. Partial points are rounded."""
        if self.predicted is None:
            return False
        return self.predicted.low <= round(self.scaled_score) <= self.predicted.high


def pair_results_with_predictions(
    predictions: Sequence[ScorePrediction], results: Iterable[ExamResult]
) -> tuple[PredictionOutcome, ...]:
    """Return every result, oldest first, with the newest prediction made before it."""
    return tuple(
        PredictionOutcome(result, _last_prediction_before(predictions, result))
        for result in sorted(results, key=lambda r: r.started)
    )


def _last_prediction_before(
    predictions: Iterable[ScorePrediction], result: ExamResult
) -> ScorePrediction | None:
    earlier = [p for p in predictions if p.exam == result.exam and p.at <= result.started]
    return max(earlier, key=lambda p: p.at, default=None)


def describe_share_in_range(outcomes: Iterable[PredictionOutcome]) -> str:
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
