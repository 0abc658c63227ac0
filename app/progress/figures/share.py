"""A share with the range that the truth lies in."""

import math

_Z = 1.645  # nine ranges in ten hold the truth


def wilson(right: int, of: int) -> tuple[float, float]:
    """Where the share `right` ÷ `of` lies in nine cases out of ten, 0..1.

    Wilson's interval: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) ÷ (1 + z²/n).

    >>> tuple(round(x, 2) for x in wilson(7, 10))
    (0.44, 0.87)
    """
    if not of:
        return 0.0, 1.0
    share, spread = right / of, _Z**2 / of
    middle = (share + spread / 2) / (1 + spread)
    noise = share * (1 - share) / of + spread / (4 * of)
    half = _Z * math.sqrt(noise) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)
