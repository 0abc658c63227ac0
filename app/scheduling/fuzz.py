"""A little spread of long intervals, the same for the same card and review."""

import hashlib
import math

# Half-width of the range: one day, plus these shares of the days in each band.
_BANDS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, math.inf, 0.05))


def fuzz_range(days: int, previous: int = 0, maximum: int = 36500) -> tuple[int, int]:
    """The shortest and longest interval that may stand for `days`.

    Half-width 1 + 15 % of days 2.5 to 7 + 10 % of 7 to 20 + 5 % above 20. An interval
    that grows past `previous` never falls back to it.

    >>> fuzz_range(2), fuzz_range(10), fuzz_range(100)
    ((2, 2), (8, 12), (93, 107))
    """
    if days < 2.5:
        return days, days
    width = 1.0 + sum(
        share * max(0.0, min(days, end) - start) for start, end, share in _BANDS
    )
    low = max(2, round(days - width))
    if days > previous:
        low = max(low, min(previous + 1, days))
    high = min(round(days + width), maximum)
    return min(low, high), high


def fuzzed(days: int, previous: int, seed: str, maximum: int) -> int:
    """An interval in the range around `days`, chosen by `seed` alone."""
    low, high = fuzz_range(days, previous, maximum)
    drawn = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])
    return low + drawn % (high - low + 1)
