"""How sure Cronbach's alpha is: Feldt's interval, from the F distribution.

Feldt, L. S. (1965), “The approximate sampling distribution of Kuder-Richardson
reliability coefficient twenty”, Psychometrika 30, 357-370: with n learners and k items
(1 − alpha) ÷ (1 − estimate) is distributed as F with n − 1 and (n − 1)(k − 1) degrees
of freedom, exactly for normal marks and nearly so for marks of 0 and 1.
"""

import math

_TAIL = 0.025
_STEPS = 300
_TINY = 1e-300
_CLOSE = 1e-15


def alpha_interval(alpha: float, learners: int, items: int) -> tuple[float, float] | None:
    """Give the 95% interval of an alpha (in percent, at most 100) of so many learners.

    None for fewer than two learners or items.

    >>> low, high = alpha_interval(80.0, 30, 10)
    >>> round(low, 1), round(high, 1)
    (67.3, 89.2)
    """
    if learners < 2 or items < 2:
        return None
    above, below = learners - 1, (learners - 1) * (items - 1)
    error = 1 - alpha / 100
    low = 1 - error * f_quantile(1 - _TAIL, above, below)
    high = 1 - error * f_quantile(_TAIL, above, below)
    return 100 * low, 100 * high


def f_quantile(share: float, above: float, below: float) -> float:
    """Give the value that F stays under with probability `share`, 0 < share < 1.

    `above` and `below` are the degrees of freedom of numerator and denominator. Found
    by halving: F = below · x ÷ (above · (1 − x)), where x has a beta distribution.
    """
    low, high = 0.0, 1.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if beta_share(middle, above / 2, below / 2) < share:
            low = middle
        else:
            high = middle
    return below * high / (above * (1 - high)) if high < 1 else math.inf


def beta_share(x: float, a: float, b: float) -> float:
    """Give the regularized incomplete beta function I_x(a, b), 0 <= x <= 1; a, b > 0.

    By its continued fraction (Abramowitz and Stegun 26.5.8), evaluated from the side
    on which it converges.

    >>> round(beta_share(0.5, 3, 3), 12)
    0.5
    """
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) / a * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of `beta_share`, by Lentz's method, begun at 1."""
    above, below, value = 1.0, 0.0, 1.0
    for step in range(_STEPS):
        half = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + step))
        else:
            term = half * (b - half) * x / ((a + step - 1) * (a + step))
        below = 1 / ((1 + term * below) or _TINY)
        above = (1 + term / above) or _TINY
        value *= above * below
        if step and abs(above * below - 1) < _CLOSE:
            break
    return value - 1
