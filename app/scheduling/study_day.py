"""Which day a moment belongs to: a day of study turns at 04:00 local time."""

import datetime as dt
import zoneinfo

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
