"""Seconds per review, and new cards that a day allows."""

import dataclasses

LOOK_SECONDS = 10.0
"""Seconds to read a card, recall the answer and rate it; a lapse takes as long again."""
NEW_SECONDS = 60.0
"""Seconds for a new card: about three reviews on its first day, the first one slower."""

# The assumed time counts as much as this many of the learner's own reviews.
_TRUST = 20
_LEAST, _MOST = 0.25, 4.0  # times the assumed seconds; the log may contain a page left open


@dataclasses.dataclass(frozen=True, slots=True)
class TimeSpent:
    """A sum of seconds, and the number of reviews in it."""

    seconds: float = 0.0
    count: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class CardPace:
    """Seconds for a new card's first day, and for a later review."""

    first: float = NEW_SECONDS
    look: float = LOOK_SECONDS

    @property
    def scale(self) -> float:
        """The learner's seconds per review divided by the usual ones."""
        return self.look / LOOK_SECONDS


USUAL = CardPace()


def shrink_mean(spent: TimeSpent, usual: float) -> float:
    """Return the mean of a log, pulled toward the usual value while the log is short.

    >>> shrink_mean(TimeSpent(), 60.0), shrink_mean(TimeSpent(30 * 980, 980), 60.0)
    (60.0, 30.6)
    """
    mean = (spent.seconds + _TRUST * usual) / (spent.count + _TRUST)
    return min(_MOST * usual, max(_LEAST * usual, mean))


_SHARE_OF_CARDS = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class DayCounts:
    """Counts of a study day so far: cards still due, reviewed, and begun today.

    A card begun today does not count as due while it is in its steps. Those are part of the time
    that a new card takes.
    """

    due: int
    answered: int
    begun: int


def card_seconds(minutes: int) -> float:
    """Return the part of a learner's daily minutes that is for cards, in seconds.

    >>> card_seconds(30)
    900.0
    """
    return minutes * 60 * _SHARE_OF_CARDS


def new_cards_allowed(minutes: int, day: DayCounts, more: int = 0, pace: CardPace = USUAL) -> int:
    """Return how many more new cards may be started on a study day.

    Half of the learner's minutes is for cards. Cards due and reviewed take 10 seconds each and a
    new card takes 60, or what the log shows. New cards get the time that reviews leave. `more` are
    added on top.

    >>> new_cards_allowed(30, DayCounts(due=0, answered=0, begun=0))
    15
    >>> new_cards_allowed(30, DayCounts(due=60, answered=0, begun=0))
    5
    """
    seconds = card_seconds(minutes)
    seconds -= pace.look * (day.due + day.answered - day.begun)
    allowed = max(0, int(seconds // pace.first))
    return max(0, allowed + more - day.begun)
