"""Seconds per review; new cards a day allows."""

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


_SHARE_OF_CARDS = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class DayCounts:
    """What a study day holds so far: cards still due, answered, begun today.

    A card begun today is not counted among those due while it is in its steps: they
    are part of the time that a new card takes.
    """

    due: int
    answered: int
    begun: int


def card_seconds(minutes: int) -> float:
    """The part of a learner's daily minutes that is for cards, in seconds.

    >>> card_seconds(30)
    900.0
    """
    return minutes * 60 * _SHARE_OF_CARDS


def new_cards_allowed(minutes: int, day: DayCounts, more: int = 0, pace: CardPace = USUAL) -> int:
    """How many new cards may still be begun on a study day.

    Half of the learner's minutes is for cards. Cards due and answered take 10 seconds
    each, a new card takes 60, or as long as the log shows; what the first leave is for
    the second. `more` are asked for on top.

    >>> new_cards_allowed(30, DayCounts(due=0, answered=0, begun=0))
    15
    >>> new_cards_allowed(30, DayCounts(due=60, answered=0, begun=0))
    5
    """
    seconds = card_seconds(minutes)
    seconds -= pace.look * (day.due + day.answered - day.begun)
    allowed = max(0, int(seconds // pace.first))
    return max(0, allowed + more - day.begun)
