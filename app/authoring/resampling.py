"""How far a few answers may mislead: intervals by drawing learners again. Pure."""

import functools
import random
import statistics
from collections.abc import Sequence

LEAST = 10  # no index is shown under this many first attempts
SURE = 50  # under this many, an interval is shown beside the index
RESAMPLES = 400


def change(
    before: Sequence[float], after: Sequence[float], seed: int = 0
) -> tuple[float, float, float] | None:
    """Give the difference of two facilities (after − before, in points, 0..100).

    Returns (difference, low, high) with a 95 % bootstrap interval, or None while
    either side has fewer than `LEAST` first attempts. Marks are shares 0..1.
    """
    if min(len(before), len(after)) < LEAST:
        return None
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    differences = sorted(
        statistics.fmean(chance.choices(after, k=len(after)))
        - statistics.fmean(chance.choices(before, k=len(before)))
        for _ in range(RESAMPLES)
    )
    middle = statistics.fmean(after) - statistics.fmean(before)
    low, high = tails(differences)
    return 100 * middle, 100 * low, 100 * high


# Few answers leave few different sets of marks, and resampling each is slow.
@functools.lru_cache(maxsize=4096)
def facility_interval(marks: tuple[float, ...], maximum: float) -> tuple[float, float] | None:
    """Give the 95 % interval of the mean of sorted `marks` in percent of `maximum`."""
    if not LEAST <= len(marks) < SURE:
        return None
    chance = random.Random(0)  # noqa: S311 - repeatable, not secret
    means = sorted(statistics.fmean(chance.choices(marks, k=len(marks))) for _ in range(RESAMPLES))
    low, high = tails(means)
    return 100 * low / maximum, 100 * high / maximum


def tails(values: Sequence[float]) -> tuple[float, float]:
    """Give the ends of the middle 95 % of sorted values."""
    cut = round(len(values) * 0.025)
    return values[cut], values[-1 - cut]
