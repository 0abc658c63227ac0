"""How predictions turned out: each finished mock exam beside what was said before."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence

# A paper with many questions left open says little about what would have been known.
ANSWERED = 0.9


def says_enough(answered: int, questions: int) -> bool:
    """Whether so many answers of a paper tell what one would score on another.

    >>> says_enough(45, 50), says_enough(44, 50), says_enough(0, 0)
    (True, False, False)
    """
    return questions > 0 and answered >= ANSWERED * questions


@dataclasses.dataclass(frozen=True, slots=True)
class ScorePrediction:
    """What a learner was told on a study day about an exam; `at` in ms."""

    exam: str
    day: dt.date
    at: int
    questions: int
    expected: float
    low: int
    high: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExamResult:
    """A closed sitting: its points of `questions`, of which `answered` were."""

    number: int
    exam: str
    started: int
    score: float
    questions: int
    answered: int


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A result beside the last prediction before it, None where there was none.

    `score` is scaled to the questions of the prediction where the bank was too small
    to fill the paper.
    """

    result: ExamResult
    predicted: ScorePrediction | None

    @property
    def counts(self) -> bool:
        """Whether it tells anything about the prediction."""
        enough = says_enough(self.result.answered, self.result.questions)
        return self.predicted is not None and enough

    @property
    def score(self) -> float:
        """Right answers in the measure of the prediction."""
        if self.predicted is None or not self.result.questions:
            return self.result.score
        return self.result.score * self.predicted.questions / self.result.questions

    @property
    def inside(self) -> bool:
        """Whether the result lies in the range; parts of a point are rounded."""
        if self.predicted is None:
            return False
        return self.predicted.low <= round(self.score) <= self.predicted.high


def turnouts(
    predictions: Sequence[ScorePrediction], results: Iterable[ExamResult]
) -> tuple[PredictionOutcome, ...]:
    """Every result in order of time, with the newest prediction made before it."""
    return tuple(
        PredictionOutcome(result, _before(predictions, result))
        for result in sorted(results, key=lambda r: r.started)
    )


def _before(predictions: Iterable[ScorePrediction], result: ExamResult) -> ScorePrediction | None:
    made = [p for p in predictions if p.exam == result.exam and p.at <= result.started]
    return max(made, key=lambda p: p.at, default=None)


def inside_words(found: Iterable[PredictionOutcome]) -> str:
    """The count in a sentence; empty before the first result that counts.

    The range means to hold nine results of ten, so that number is said beside it.
    """
    counted = [turnout for turnout in found if turnout.counts]
    if not counted:
        return ""
    inside = sum(turnout.inside for turnout in counted)
    said = f"{inside} of {len(counted)} results lay inside the range"
    if len(counted) == 1:
        where = "inside" if inside else "outside"
        said = f"The one full mock exam to compare so far lay {where} its range"
    return f"{said}; nine of ten should lie inside, if the predictions are sound."
