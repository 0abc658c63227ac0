"""What an exam of today would bring, once there is something to say it from."""

import dataclasses
import math
from collections.abc import Sequence

from app.progress.mastery.standing import DomainStanding

ANSWERS = 15  # fewer than this, and any number would be made up
_PRIOR_ANSWERS = 2.0
_GUESS = 0.25  # what an untested objective is worth: one of four choices
_Z = 1.645


@dataclasses.dataclass(frozen=True, slots=True)
class Forecast:
    """Right answers expected of `questions`, with the range of nine cases in ten."""

    expected: int
    low: int
    high: int
    questions: int
    answers: int
    spread: float
    mean: float

    def chance(self, target: float) -> float:
        """The probability of reaching `target` (a share 0..1) or more."""
        least = math.ceil(target * self.questions) - 0.5
        if self.spread == 0:
            return float(self.mean >= least)
        return 0.5 * math.erfc((least - self.mean) / (self.spread * math.sqrt(2)))


def forecast(domains: Sequence[DomainStanding], questions: int) -> Forecast | None:
    """The expected score, or None while the evidence is too thin.

    Objectives share the weight of their domain equally. Each is a Beta estimate that
    starts at the guessing rate with the weight of two answers; the range adds the
    luck of the draw to what is not known about the learner.
    """
    answers = sum(d.evidence.answers for d in domains)
    tested = all(d.evidence.answers for d in domains if d.domain.weight)
    if answers < ANSWERS or not tested:
        return None
    mean = variance = 0.0
    for domain in domains:
        for standing in domain.standings:
            share = domain.domain.weight / len(domain.standings)
            p, doubt = _estimate(standing.evidence.answers, standing.evidence.score)
            mean += questions * share * p
            variance += (questions * share) ** 2 * doubt + questions * share * p * (
                1 - p
            )
    spread = math.sqrt(variance)
    return Forecast(
        expected=round(mean),
        low=max(0, round(mean - _Z * spread)),
        high=min(questions, round(mean + _Z * spread)),
        questions=questions,
        answers=answers,
        spread=spread,
        mean=mean,
    )


def _estimate(answers: int, score: float) -> tuple[float, float]:
    """Mean and variance of the share of right answers for one objective."""
    weight = answers + _PRIOR_ANSWERS
    mean = (score + _GUESS * _PRIOR_ANSWERS) / weight
    return mean, mean * (1 - mean) / (weight + 1)


_WORDS = (
    (0.03, "hardly any chance"),
    (0.15, "about one chance in ten"),
    (0.225, "about one chance in five"),
    (0.29, "about one chance in four"),
    (0.42, "about one chance in three"),
    (0.58, "an even chance"),
    (0.71, "about two chances in three"),
    (0.775, "about three chances in four"),
    (0.85, "about four chances in five"),
    (0.97, "about nine chances in ten"),
)


def chance_words(chance: float) -> str:
    """A probability as people say it."""
    for limit, words in _WORDS:
        if chance < limit:
            return words
    return "almost certainly"
