"""A share with the range that the truth lies in: Wilson's interval (1927)."""

import math

NINE_IN_TEN, NINETEEN_IN_TWENTY = 1.645, 1.96
"""How many ranges hold the truth, as the z of `wilson`."""


def wilson(right: float, of: int, z: float = NINE_IN_TEN) -> tuple[float, float]:
    """Where the share `right` ÷ `of` lies, 0..1; it does not collapse at the ends.

    (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) ÷ (1 + z²/n).

    >>> tuple(round(x, 2) for x in wilson(7, 10))
    (0.44, 0.87)
    """
    if not of:
        return 0.0, 1.0
    share, spread = right / of, z**2 / of
    middle = (share + spread / 2) / (1 + spread)
    noise = share * (1 - share) / of + spread / (4 * of)
    half = z * math.sqrt(noise) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
