"""The formulas of FSRS-6 for simulated learners."""

import math

from fsrs.scheduler import DEFAULT_PARAMETERS

from app.learner_defaults import DEFAULT_RETENTION
from app.spaced_repetition.scheduler import LEARNING_STEPS, RELEARNING_STEPS

MemoryState = tuple[float, float]
"""Stability in days and difficulty (1..10)."""

AT_STABILITY = 0.9
"""The retrievability after a number of days equal to the stability, by the definition of FSRS."""

_AGAIN, _HARD, _GOOD, _EASY = 1, 2, 3, 4
_LEAST = 0.001


class FsrsFormulas:
    """The formulas of FSRS-6 in closed form, with their constants precomputed.

    The reference implementation (py-fsrs) updates a whole card at each review, which is too slow
    for thousands of simulated reviews.
    """

    __slots__ = (
        "_decay",
        "_easy_start",
        "_factor",
        "_growth",
        "_relearning",
        "_same_day",
        "_steps",
        "_w",
    )

    def __init__(self, w: tuple[float, ...] = DEFAULT_PARAMETERS) -> None:
        self._w = w
        self._decay = -w[20]
        self._factor = math.pow(AT_STABILITY, 1 / self._decay) - 1
        self._growth = math.exp(w[8])
        self._same_day = math.exp(w[17] * w[18])
        self._easy_start = w[4] - math.exp(w[5] * (_EASY - 1)) + 1
        self._steps = len(LEARNING_STEPS)
        self._relearning = len(RELEARNING_STEPS)

    def recall_probability(self, days: float, stability: float) -> float:
        """Return the probability of recall (0..1) `days` after the last review.

        R = (1 + F·t/S)^(−w20) with F = 0.9^(−1/w20) − 1.
        """
        return math.pow(1 + self._factor * days / stability, self._decay)

    def interval_days(self, stability: float, retention: float = DEFAULT_RETENTION) -> int:
        """Return the whole days until the probability of recall falls to `retention`."""
        days = round(stability / self._factor * (math.pow(retention, 1 / self._decay) - 1))
        return min(max(days, 1), 36500)

    def after_success(self, trace: MemoryState, recall: float, rating: int = _GOOD) -> MemoryState:
        """Return the trace after a passed review, a day or more after the last one."""
        stability = self.stability_after_success(trace, recall, rating)
        return stability, self.next_difficulty(trace[1], rating)

    def after_lapse_before_relearning(self, trace: MemoryState, recall: float) -> MemoryState:
        """Return the trace after “again”, a day or more after the last review, before relearning."""
        return self.stability_after_lapse(trace, recall), self.next_difficulty(trace[1], _AGAIN)

    def after_lapse_and_relearning(self, trace: MemoryState, recall: float) -> MemoryState:
        """Return the trace after “again” and the relearning steps of that day, all passed."""
        trace = self.after_lapse_before_relearning(trace, recall)
        for _ in range(self._relearning):
            trace = self.after_same_day_good(trace)
        return trace

    def after_same_day_good(self, trace: MemoryState) -> MemoryState:
        """Return the trace after another review on the same study day that was good."""
        return self.compute_same_day_stability(trace[0], _GOOD), self.next_difficulty(
            trace[1], _GOOD
        )

    def stability_after_success(
        self, trace: MemoryState, recall: float, rating: int = _GOOD
    ) -> float:
        """Return the stability after a passed review.

        S' = S·(1 + e^w8·(11 − D)·S^(−w9)·(e^(w10·(1 − R)) − 1)·hard·easy).
        """
        w, (stability, difficulty) = self._w, trace
        grown = self._growth * (11 - difficulty) * math.pow(stability, -w[9])
        grown *= math.exp((1 - recall) * w[10]) - 1
        if rating == _HARD:
            grown *= w[15]
        elif rating == _EASY:
            grown *= w[16]
        return max(stability * (1 + grown), _LEAST)

    def stability_after_lapse(self, trace: MemoryState, recall: float) -> float:
        """Return the stability after a lapse.

        S' = min(w11·D^(−w12)·((S + 1)^w13 − 1)·e^(w14·(1 − R)), S ÷ e^(w17·w18)).
        """
        w, (stability, difficulty) = self._w, trace
        left = w[11] * math.pow(difficulty, -w[12]) * (math.pow(stability + 1, w[13]) - 1)
        left *= math.exp((1 - recall) * w[14])
        return max(min(left, stability / self._same_day), _LEAST)

    def compute_same_day_stability(self, stability: float, rating: int = _GOOD) -> float:
        """Return the stability after another review on the same study day.

        S' = S·e^(w17·(G − 3 + w18))·S^(−w19), never less for hard, good and easy.
        """
        w = self._w
        change = math.exp(w[17] * (rating - 3 + w[18])) * math.pow(stability, -w[19])
        if rating != _AGAIN:
            change = max(change, 1.0)
        return max(stability * change, _LEAST)

    def after_first_day(self, rating: int) -> MemoryState:
        """Return the trace of a new card after its first day: `rating`, then the steps passed.

        S0 = w[G − 1], D0 = w4 − e^(w5·(G − 1)) + 1.
        """
        w = self._w
        difficulty = w[4] - math.exp(w[5] * (rating - 1)) + 1
        trace = max(w[rating - 1], _LEAST), min(max(difficulty, 1.0), 10.0)
        left = {_GOOD: self._steps - 1, _EASY: 0}.get(rating, self._steps)
        for _ in range(left):
            trace = self.after_same_day_good(trace)
        return trace

    def next_difficulty(self, difficulty: float, rating: int) -> float:
        """Return the difficulty (1..10) after a review.

        D' = w7·D0(easy) + (1 − w7)·(D − w6·(G − 3)·(10 − D) ÷ 9).
        """
        w = self._w
        moved = difficulty - (10.0 - difficulty) * w[6] * (rating - 3) / 9.0
        moved = w[7] * self._easy_start + (1 - w[7]) * moved
        return min(max(moved, 1.0), 10.0)


USUAL_FORMULAS = FsrsFormulas()
