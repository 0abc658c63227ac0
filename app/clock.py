"""Study day (rolls over at 04:00), time zones, datetime to milliseconds and back, default retention."""

import datetime as dt
import zoneinfo
from typing import Annotated

from fastapi import Depends, Request


async def current_time(request: Request) -> dt.datetime:
    """The present in UTC, from the clock that the app was built with."""
    # `async` although it waits for nothing: a plain `def` costs a thread.
    now: dt.datetime = request.app.state.clock()
    return now


def utc_now() -> dt.datetime:
    """The machine's clock in UTC."""
    return dt.datetime.now(dt.UTC)


def to_milliseconds(moment: dt.datetime) -> int:
    """A moment as the database keeps it: milliseconds since 1970 in UTC."""
    return int(moment.timestamp() * 1000)


def from_milliseconds(milliseconds_utc: int) -> dt.datetime:
    """The inverse of `milliseconds`."""
    return dt.datetime.fromtimestamp(milliseconds_utc / 1000, dt.UTC)


Now = Annotated[dt.datetime, Depends(current_time)]

_ROLLOVER = dt.timedelta(hours=4)


def zone_of(name: str) -> dt.tzinfo:
    """The time zone of that name, UTC where this machine does not know it."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return dt.UTC


def study_day_of(moment: dt.datetime, zone: str) -> dt.date:
    """The study day that `moment` belongs to in a zone."""
    return (moment.astimezone(zone_of(zone)) - _ROLLOVER).date()


def study_day_start(day: dt.date, zone: str) -> dt.datetime:
    """The moment at which a study day begins in a zone."""
    return dt.datetime.combine(day, dt.time(), zone_of(zone)) + _ROLLOVER


RETENTION = 0.9


def round_minutes(minutes: float) -> int:
    """Minutes as pages show them, so that what is shown adds up.

    >>> [round_minutes(n) for n in (0, 0.4, 14.6)]
    [0, 1, 15]
    """
    return max(1, round(minutes)) if minutes else 0
