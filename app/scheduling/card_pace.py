"""How long a learner takes for cards: what is usual, and what their log has shown."""

import dataclasses

LOOK_SECONDS = 10.0
"""Showing a card, answering in the head, grading; a lapse costs as much once more."""
NEW_SECONDS = 60.0
"""Beginning a card: about three looks on its first day, the first read slowly."""

# What is assumed weighs as much as so many of the learner's own.
_TRUST = 20
_LEAST, _MOST = 0.25, 4.0  # of what is assumed: the log may hold a forgotten screen


@dataclasses.dataclass(frozen=True, slots=True)
class TimeSpent:
    """Seconds added up, and over how many."""

    seconds: float = 0.0
    count: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CardPace:
    """Seconds for a card that is begun, and for a look at one that was."""

    first: float = NEW_SECONDS
    look: float = LOOK_SECONDS

    @property
    def scale(self) -> float:
        """How much longer a look takes than usual."""
        return self.look / LOOK_SECONDS


USUAL = CardPace()


def shrink_mean(spent: TimeSpent, usual: float) -> float:
    """The mean of a log, drawn to what is usual while there is little of it.

    >>> shrink_mean(TimeSpent(), 60.0), shrink_mean(TimeSpent(30 * 980, 980), 60.0)
    (60.0, 30.6)
    """
    mean = (spent.seconds + _TRUST * usual) / (spent.count + _TRUST)
    return min(_MOST * usual, max(_LEAST * usual, mean))


def round_minutes(minutes: float) -> int:
    """Minutes as pages show them, so that what is shown adds up.

    >>> [round_minutes(n) for n in (0, 0.4, 14.6)]
    [0, 1, 15]
    """
    return max(1, round(minutes)) if minutes else 0
