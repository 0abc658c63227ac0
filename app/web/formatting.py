"""Formats dates, durations, counts and percentages as text."""

import datetime as dt

from app.clock import round_minutes

NBSP = "\u00a0"

_YEAR_SHOWN_FROM_DAYS = 300  # days, from which a date says its year


def format_date_with_year(day: dt.date) -> str:
    """Return a date with its year, e.g. “May 28, 2026”."""
    return f"{day:%B}{NBSP}{day.day}, {day.year}"


def format_date_with_weekday(day: dt.date, today: dt.date | None = None) -> str:
    """Return a date with its weekday, e.g. “Tuesday, June 9”; with its year if `today` is far."""
    is_far = today is not None and abs((day - today).days) > _YEAR_SHOWN_FROM_DAYS
    return f"{day:%A}, {format_date_with_year(day) if is_far else format_date_without_year(day)}"


def format_date_without_year(day: dt.date) -> str:
    """Return a date of this year, e.g. “June 9”."""
    return f"{day:%B}{NBSP}{day.day}"


def format_short_date(day: dt.date) -> str:
    """Return a short date for an axis, e.g. “Jun 9”."""
    return f"{day:%b}{NBSP}{day.day}"


def format_time_of_day(time: dt.time | dt.datetime, with_seconds: bool = False) -> str:
    """Return a time of day on the 12-hour clock, e.g. “7:00 AM”; with seconds if asked for.

    >>> [format_time_of_day(dt.time(h, 5)).replace(NBSP, " ") for h in (0, 7, 12, 19)]
    ['12:05 AM', '7:05 AM', '12:05 PM', '7:05 PM']
    """
    clock = (
        f"{time.hour % 12 or 12}:{time:%M:%S}"
        if with_seconds
        else f"{time.hour % 12 or 12}:{time:%M}"
    )
    return f"{clock}{NBSP}{'AM' if time.hour < 12 else 'PM'}"


def format_minutes_at_least_one(minutes: float) -> str:
    """Return a duration of at least one minute, e.g. “14 minutes”."""
    return format_count_with_noun(round_minutes(minutes) or 1, "minute")


def format_time_spent(minutes: float) -> str:
    """Return time spent, in hours and minutes.

    >>> [format_time_spent(n).replace(NBSP, " ") for n in (0.4, 40, 120, 160)]
    ['less than a minute', '40 min', '2 h', '2 h 40 min']
    """
    if minutes < 1:
        return "less than a minute"
    hours, rest = divmod(round(minutes), 60)
    parts = [f"{hours:,}{NBSP}h"] if hours else []
    if rest:
        parts.append(f"{rest}{NBSP}min")
    return " ".join(parts)


def format_minutes_without_unit(minutes: float) -> str:
    """Return minutes for a table: 0, “under 1” or a whole number.

    >>> [format_minutes_without_unit(n) for n in (0, 0.4, 1, 1500.2)]
    ['0', 'under 1', '1', '1,500']
    """
    return "under 1" if 0 < minutes < 1 else f"{round(minutes):,}"


def format_time_ago(moment: dt.datetime, now: dt.datetime) -> str:
    """Return how long ago something was, e.g. “2 minutes ago”.

    >>> noon = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
    >>> steps = (dt.timedelta(0), dt.timedelta(minutes=2), dt.timedelta(hours=30))
    >>> [format_time_ago(noon, noon + step).replace(NBSP, " ") for step in steps]
    ['just now', '2 minutes ago', '30 hours ago']
    """
    minutes = int((now - moment).total_seconds() // 60)
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return f"{format_count_with_noun(minutes, 'minute')} ago"
    return f"{format_count_with_noun(minutes // 60, 'hour')} ago"


def format_count_with_noun(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, e.g. “1 card”, “1,480 reviews”."""
    word = noun if number == 1 else plural or f"{noun}s"
    return f"{number:,}{NBSP}{word}"


def format_points(points: float) -> str:
    """Return points of an exam with their hundredths, so that parts add up.

    >>> format_points(3 + 0.6 + 0.75), format_points(8.0)
    ('4.35', '8')
    """
    return f"{round(points, 2):g}"


def format_points_rounded(points: float) -> str:
    """Return points with one decimal at most, for sentences and headings.

    >>> format_points_rounded(11.12), format_points_rounded(8.95), format_points_rounded(8.0)
    ('11.1', '9', '8')
    """
    return f"{round(points + 1e-9, 1):g}"


def format_percent(share: float) -> str:
    """Return a share between 0 and 1 as a percentage, e.g. “58%”."""
    return f"{round(share * 100)}%"
