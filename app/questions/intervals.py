"""Ranges of a share that was counted."""

import math

NINE_IN_TEN, NINETEEN_IN_TWENTY = 1.645, 1.96
"""Values of z in `wilson_interval` for ranges that hold the true value in 90% and 95% of cases."""


def wilson_interval(right: float, of: int, z: float = NINE_IN_TEN) -> tuple[float, float]:
    """Return the 90% Wilson interval (0..1) of the share `right` ÷ `of`.

    It keeps a width at 0 and 1.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) ÷ (1 + z²/n).

    >>> tuple(round(x, 2) for x in wilson_interval(7, 10))
    (0.44, 0.87)
    """
    if not of:
        return 0.0, 1.0
    share, spread = right / of, z**2 / of
    middle = (share + spread / 2) / (1 + spread)
    noise = share * (1 - share) / of + spread / (4 * of)
    half = z * math.sqrt(noise) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
