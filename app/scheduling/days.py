"""A day of cards: how many new ones, when a card is a leech, intervals in words."""

import dataclasses
import datetime as dt

from app.scheduling.card_pace import USUAL as CARD_PACE
from app.scheduling.card_pace import CardPace
from app.scheduling.memory import Grade, Standing

LEECH = 8
_WARN_EVERY = 4
_SHARE_OF_CARDS = 0.5
NBSP = "\u00a0"


@dataclasses.dataclass(frozen=True, slots=True)
class Day:
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


def new_left(minutes: int, day: Day, more: int = 0, pace: CardPace = CARD_PACE) -> int:
    """How many new cards may still be begun on a study day.

    Half of the learner's minutes is for cards. Cards due and answered take 10 seconds
    each, a new card takes 60, or as long as the log shows; what the first leave is for
    the second. `more` are asked for on top.

    >>> new_left(30, Day(due=0, answered=0, begun=0))
    15
    >>> new_left(30, Day(due=60, answered=0, begun=0))
    5
    """
    seconds = card_seconds(minutes)
    seconds -= pace.look * (day.due + day.answered - day.begun)
    allowed = max(0, int(seconds // pace.first))
    return max(0, allowed + more - day.begun)


def is_leech(lapses: int) -> bool:
    """Whether this lapse makes the learner hear that the card does not stick.

    At the eighth lapse, and at every fourth after it.
    """
    return lapses >= LEECH and (lapses - LEECH) % _WARN_EVERY == 0


def interval_words(standing: Standing, grade: Grade) -> str:
    """The time until a card comes back, as the grade button shows it."""
    if standing.state != "review":
        return minutes_words(standing.due_at - grade.at)
    return day_words((standing.due_day - grade.day).days)


def day_words(days: int) -> str:
    """A number of days in the largest unit that stays readable.

    >>> [day_words(n).replace(NBSP, " ") for n in (1, 20, 75, 400)]
    ['1 day', '20 days', '2.5 months', '1.1 years']
    """
    if days < 60:
        return f"{days}{NBSP}{'day' if days == 1 else 'days'}"
    if days < 365:
        return f"{_short(days / 30.4)}{NBSP}months"
    years = _short(days / 365.25)
    return f"{years}{NBSP}{'year' if years == '1' else 'years'}"


def minutes_words(wait: dt.timedelta) -> str:
    """A time of minutes or hours, at least one minute."""
    minutes = max(1, round(wait.total_seconds() / 60))
    if minutes < 60:
        return f"{minutes}{NBSP}min"
    if minutes < 24 * 60:
        return f"{_short(minutes / 60)}{NBSP}h"
    return day_words(round(minutes / 1440))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
