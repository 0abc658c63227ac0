"""A day of cards: the time that is for them, and how many new ones it holds."""

import dataclasses

from app.scheduling.card_pace import USUAL as CARD_PACE
from app.scheduling.card_pace import CardPace

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


def new_cards_allowed(
    minutes: int, day: DayCounts, more: int = 0, pace: CardPace = CARD_PACE
) -> int:
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
