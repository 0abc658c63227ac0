"""Beta distribution per objective.

Whoever remembers more than is assumed does so in every objective, and an exam that is
harder than the bank is so in all its questions. Beliefs that err apart from each other
would cancel out over many objectives; this part of the error does not. So the learner
has one effect δ ~ N(0, SPREAD²), in logits of the chance of knowing beyond guessing.
"""

import dataclasses
import functools
import math

from app.mastery.evidence import Evidence

# What is believed before the first answer weighs as much as two answers: enough that
# one right answer is no certainty, little enough that ten outvote it.
PRIOR = 2.0
TAIL = 0.05  # on each side of the range, which so holds nine truths in ten
_STEPS = 128
_MIDDLES = tuple((n + 0.5) / _STEPS for n in range(_STEPS))
_LOGS = tuple((math.log(x), math.log(1 - x)) for x in _MIDDLES)


@dataclasses.dataclass(frozen=True, slots=True)
class Belief:
    """The chance of a right answer to an unseen question: Beta, as mean and weight.

    `mean` is 0..1; `weight` (α + β) counts in answers, those of the prior included.
    """

    mean: float
    weight: float = PRIOR

    @property
    def alpha(self) -> float:
        """The first number of the Beta distribution."""
        return self.mean * self.weight

    @property
    def beta(self) -> float:
        """The second number of the Beta distribution."""
        return (1 - self.mean) * self.weight

    @property
    def range(self) -> tuple[float, float]:
        """Where the chance lies in nine cases of ten, 0..1.

        >>> Belief(0.5, 2.0).range
        (0.05, 0.95)
        """
        return _range(round(self.alpha, 2), round(self.beta, 2))


def update_belief(own: Evidence, guess: float, others: Evidence, floor: float) -> Belief:
    """The belief in one objective from its evidence and that of its neighbors.

    It begins at `guess`, the rate of guessing, with the weight PRIOR. From its first
    right answer on it begins instead at the level of the `others`, the objectives of
    its domain, which themselves begin at their rate of guessing, `floor`: what
    somebody knows of one says something of the next, and without this a paper of two
    questions to each objective would be read as half guessed. An objective in which
    nothing was right yet borrows nothing, so a wrong answer never raises a belief.

    The mean falls as right answers fade into guesses, but time alone never takes it
    below guessing; the weight shrinks to that of the prior.
    """
    mean = _mean(own.right, own, guess, _level(others.right, others, floor))
    then = _mean(own.fresh, own, guess, _level(others.fresh, others, floor))
    return Belief(max(mean, min(guess, then)), PRIOR + own.force)


def _level(right: float, others: Evidence, floor: float) -> float:
    return (PRIOR * floor + right) / (PRIOR + others.weight)


def _mean(right: float, own: Evidence, guess: float, level: float) -> float:
    begin = guess + min(1.0, own.score) * max(0.0, level - guess)
    return (PRIOR * begin + right) / (PRIOR + own.weight)


@functools.lru_cache(maxsize=4096)
def _range(alpha: float, beta: float) -> tuple[float, float]:
    """The quantiles at both tails, from the density in the middles of thin strips."""
    heights = [(alpha - 1) * low + (beta - 1) * high for low, high in _LOGS]
    most = max(heights)
    sums, total = [], 0.0
    for height in heights:
        total += math.exp(height - most)
        sums.append(total)
    return _quantile(sums, TAIL), _quantile(sums, 1 - TAIL)


def _quantile(sums: list[float], share: float) -> float:
    wanted = share * sums[-1]
    before = 0.0
    for n, reached in enumerate(sums):
        if reached >= wanted:
            return round((n + (wanted - before) / (reached - before)) / _STEPS, 4)
        before = reached
    return 1.0


# The standard deviation of the effect in logits. Chosen with `benchmarks.readiness`,
# on seeds that its published runs do not use.
SPREAD = 0.45
# Gauss–Hermite: five values of δ in standard deviations, which stand for the normal
# distribution exactly up to its ninth moment, and how much each of them weighs.
_FAR, _NEAR = math.sqrt(5 + math.sqrt(10)), math.sqrt(5 - math.sqrt(10))
NODES = (
    (-_FAR, (7 - 2 * math.sqrt(10)) / 60),
    (-_NEAR, (7 + 2 * math.sqrt(10)) / 60),
    (0.0, 8 / 15),
    (_NEAR, (7 + 2 * math.sqrt(10)) / 60),
    (_FAR, (7 - 2 * math.sqrt(10)) / 60),
)


@functools.lru_cache(maxsize=4096)
def spread_belief(belief: Belief, guess: float, spread: float = SPREAD) -> tuple[Belief, ...]:
    """The belief under each of the NODES; their weighted mean is the belief's own.

    What is not above guessing is not moved: there is nothing to know more or less of.
    """
    known = (belief.mean - guess) / (1 - guess) if guess < 1 else 0.0
    if not 0 < known < 1:
        return (belief,) * len(NODES)
    odds = math.log(known / (1 - known))
    under = [1 / (1 + math.exp(-odds - spread * place)) for place, _ in NODES]
    # The logistic curve is bent, so the mean would drift toward one half.
    drift = known - sum(w * k for k, (_, w) in zip(under, NODES, strict=True))
    return tuple(
        Belief(guess + (1 - guess) * min(1.0, max(0.0, k + drift)), belief.weight) for k in under
    )
