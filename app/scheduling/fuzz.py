"""A little spread of long intervals, the same for the same card and review.

A balance that looks at how many cards other days hold could not be replayed from the
log of one card: undoing a grade would move others. So the days are leveled by a hash
of card and review, and a card and its reverse get days of different parity, which
never meet.
"""

import datetime as dt
import hashlib
import math

# Half-width of the range: one day, plus these shares of the days in each band.
_BANDS = ((2.5, 7.0, 0.15), (7.0, 20.0, 0.10), (20.0, math.inf, 0.05))

_REVERSE = "~r"


def fuzz_range(days: int, previous: int = 0, maximum: int = 36500) -> tuple[int, int]:
    """The shortest and longest interval that may stand for `days`.

    Half-width 1 + 15 % of days 2.5 to 7 + 10 % of 7 to 20 + 5 % above 20. An interval
    that grows past `previous` never falls back to it.

    >>> fuzz_range(2), fuzz_range(10), fuzz_range(100)
    ((2, 2), (8, 12), (93, 107))
    """
    if days < 2.5:
        return days, days
    width = 1.0 + sum(share * max(0.0, min(days, end) - start) for start, end, share in _BANDS)
    low = max(2, round(days - width))
    if days > previous:
        low = max(low, min(previous + 1, days))
    high = min(round(days + width), maximum)
    return min(low, high), high


def fuzz_interval(
    days: int, previous: int, seed: tuple[str, int], on: dt.date, least: int = 0
) -> int:
    """An interval in the range around `days` that keeps a card from its reverse.

    `seed` is the card and how many reviews came before, `on` the study day. Notes
    take even or odd days by their hash, the reverse (`~r`) the other ones; within
    the range and the parity all days are equally likely. One draw serves all buttons
    of a turn, and none gives fewer than `least` days, so that a better grade never
    comes back sooner.
    """
    card, turn = seed
    low, high = fuzz_range(days, previous)
    if least > low:
        # One day more, where there is a range at all, holds both parities.
        low, high = least, max(high, least + (high > low))
    note = card.removesuffix(_REVERSE)
    side = hashlib.sha256(note.encode()).digest()[0] + (note != card)
    own = [n for n in range(low, high + 1) if (on.toordinal() + n + side) % 2 == 0]
    choice = own or [max(days, least)]
    drawn = int.from_bytes(hashlib.sha256(f"{card}:{turn}".encode()).digest()[:8])
    return choice[drawn * len(choice) >> 64]
