"""Clock, time zones and study days, which begin at 04:00."""

import datetime as dt
import zoneinfo
from typing import Annotated

from fastapi import Depends, Request


async def current_time(request: Request) -> dt.datetime:
    # `async` although it does not wait: a plain `def` would run in a thread.
    now: dt.datetime = request.app.state.clock()
    return now


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def to_milliseconds(moment: dt.datetime) -> int:
    """Return a time as stored in the database: milliseconds since 1970 in UTC."""
    return int(moment.timestamp() * 1000)


def from_milliseconds(milliseconds_utc: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds_utc / 1000, dt.UTC)


Now = Annotated[dt.datetime, Depends(current_time)]

_ROLLOVER_TIME = dt.timedelta(hours=4)


def time_zone_or_utc(name: str) -> dt.tzinfo:
    """Return the time zone with this name, UTC if it is unknown on this machine."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return dt.UTC


def study_day_at(moment: dt.datetime, zone: str) -> dt.date:
    return (moment.astimezone(time_zone_or_utc(zone)) - _ROLLOVER_TIME).date()


def study_day_start(day: dt.date, zone: str) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), time_zone_or_utc(zone)) + _ROLLOVER_TIME


def round_minutes(minutes: float) -> int:
    """Round minutes for display: to whole minutes, but at least 1 unless 0.

    >>> [round_minutes(n) for n in (0, 0.4, 14.6)]
    [0, 1, 15]
    """
    return max(1, round(minutes)) if minutes else 0
