"""The time until a card comes back, in words."""

import datetime as dt

from app.scheduling.memory import CardState, ReviewEvent

NBSP = "\u00a0"


def interval_label(standing: CardState, grade: ReviewEvent) -> str:
    """The time until a card comes back, as the grade button shows it."""
    if standing.state != "review":
        return minutes_words(standing.due_at - grade.at)
    return days_label((standing.due_day - grade.day).days)


def days_label(days: int) -> str:
    """A number of days in the largest unit that stays readable.

    >>> [days_label(n).replace(NBSP, " ") for n in (1, 20, 75, 400)]
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
    return days_label(round(minutes / 1440))


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
