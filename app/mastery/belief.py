"""Beta distribution per objective.

A learner who remembers more than the model assumes does so in every objective, and an exam that is
harder than the bank is harder in all its questions. Independent errors would cancel out over many
objectives; this shared error does not. So each learner has one effect δ ~ N(0, SPREAD²), in logits
of the chance of knowing beyond guessing.
"""

import dataclasses
import functools
import math

from app.mastery.evidence import Evidence

# The prior counts as two answers: enough that one right answer is not certainty, little enough that
# ten answers outweigh it.
PRIOR = 2.0
TAIL = 0.05  # on each side of the range, which then covers 90%
_STEPS = 128
_MIDDLES = tuple((n + 0.5) / _STEPS for n in range(_STEPS))
_LOGS = tuple((math.log(x), math.log(1 - x)) for x in _MIDDLES)


@dataclasses.dataclass(frozen=True, slots=True)
class Belief:
    """The chance of a right answer to an unseen question: Beta, as mean and weight.

    `mean` is 0..1; `weight` (α + β) counts answers, including those of the prior.
    """

    mean: float
    weight: float = PRIOR

    @property
    def alpha(self) -> float:
        return self.mean * self.weight

    @property
    def beta(self) -> float:
        return (1 - self.mean) * self.weight

    @property
    def range(self) -> tuple[float, float]:
        """The interval (0..1) that holds the chance with 90% probability.

        >>> Belief(0.5, 2.0).range
        (0.05, 0.95)
        """
        return _quantile_range(round(self.alpha, 2), round(self.beta, 2))


def update_belief(own: Evidence, guess: float, others: Evidence, floor: float) -> Belief:
    """Return the belief in one objective from its evidence and that of its neighbors.

    The prior has the weight PRIOR. Its mean is `guess`, the guess rate, until the objective has a
    right answer. From then on it is the level of the `others`, the objectives of its domain, whose
    own prior is `floor`. Knowledge of one objective says something about the next; without this, a
    bank with two questions per objective would be read as half guessed. An objective without a
    right answer takes nothing from the others, so a wrong answer never raises a belief.

    The mean falls as right answers fade into guesses, but age alone never takes it below guessing.
    The weight shrinks to that of the prior.
    """
    mean = _prior_mean(own.right, own, guess, _prior_level(others.right, others, floor))
    then = _prior_mean(own.fresh, own, guess, _prior_level(others.fresh, others, floor))
    return Belief(max(mean, min(guess, then)), PRIOR + own.force)


def _prior_level(right: float, others: Evidence, floor: float) -> float:
    return (PRIOR * floor + right) / (PRIOR + others.weight)


def _prior_mean(right: float, own: Evidence, guess: float, level: float) -> float:
    begin = guess + min(1.0, own.score) * max(0.0, level - guess)
    return (PRIOR * begin + right) / (PRIOR + own.weight)


@functools.lru_cache(maxsize=4096)
def _quantile_range(alpha: float, beta: float) -> tuple[float, float]:
    """Return the quantiles at both tails, from the density at the midpoints of thin strips."""
    heights = [(alpha - 1) * low + (beta - 1) * high for low, high in _LOGS]
    most = max(heights)
    sums, total = [], 0.0
    for height in heights:
        total += math.exp(height - most)
        sums.append(total)
    return _find_quantile(sums, TAIL), _find_quantile(sums, 1 - TAIL)


def _find_quantile(sums: list[float], share: float) -> float:
    wanted = share * sums[-1]
    before = 0.0
    for n, reached in enumerate(sums):
        if reached >= wanted:
            return round((n + (wanted - before) / (reached - before)) / _STEPS, 4)
        before = reached
    return 1.0


# Standard deviation of the effect in logits. Chosen with `benchmarks.readiness`, on seeds that its
# published runs do not use.
SPREAD = 0.45
# Gauss–Hermite quadrature: five values of δ in standard deviations, exact for polynomials up to
# degree nine, each with its weight.
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
    """Return the belief under each of the NODES; their weighted mean is the original belief.

    A belief that is not above guessing does not move, because there is no knowledge to vary.
    """
    known = (belief.mean - guess) / (1 - guess) if guess < 1 else 0.0
    if not 0 < known < 1:
        return (belief,) * len(NODES)
    odds = math.log(known / (1 - known))
    under = [1 / (1 + math.exp(-odds - spread * place)) for place, _ in NODES]
    # The logistic curve is not linear, so the mean would drift toward one half.
    drift = known - sum(w * k for k, (_, w) in zip(under, NODES, strict=True))
    return tuple(
        Belief(guess + (1 - guess) * min(1.0, max(0.0, k + drift)), belief.weight) for k in under
    )
