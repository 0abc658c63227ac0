"""Small things written the same way everywhere: days, minutes, counts."""

import datetime as dt

NBSP = "\u00a0"


def day_of(day: dt.date) -> str:
    """A day with its year, e.g. “28 May 2026”."""
    return f"{day.day}{NBSP}{day:%B}{NBSP}{day.year}"


def weekday_of(day: dt.date) -> str:
    """A day of this year as a title, e.g. “Tuesday 9 June”."""
    return f"{day:%A} {day.day}{NBSP}{day:%B}"


def minutes_of(minutes: float) -> str:
    """A length of time, at least one minute, e.g. “14 minutes”."""
    return count_of(max(1, round(minutes)), "minute")


def count_of(number: int, noun: str, nouns: str = "") -> str:
    """A count with its noun, e.g. “1 card”, “1,480 reviews”."""
    word = noun if number == 1 else nouns or f"{noun}s"
    return f"{number:,}{NBSP}{word}"


def percent_of(share: float) -> str:
    """A share between 0 and 1 in whole per cent, e.g. “58%”."""
    return f"{round(share * 100)}%"
