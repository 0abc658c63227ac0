"""What the errors of one learner have in common, laid over the beliefs one by one.

Whoever remembers more than is assumed does so in every objective, and an exam that is
harder than the bank is so in all its questions. Beliefs that err apart from each other
would cancel out over many objectives; this part of the error does not. So the learner
has one effect δ ~ N(0, SPREAD²), in logits of the chance of knowing beyond guessing.
"""

import functools
import math

from app.mastery.belief import Belief

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
