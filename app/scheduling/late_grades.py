"""The moment of a grade that was given away from the server and comes in later."""

import datetime as dt

OLDEST = dt.timedelta(days=30)


def is_too_old(given: dt.datetime, now: dt.datetime) -> bool:
    """Whether a grade was given so long ago that it says nothing any more.

    After 30 days a clock that was wrong is more likely than a browser that waited.
    """
    return now - given > OLDEST


def settled(given: dt.datetime, now: dt.datetime, last: dt.datetime | None) -> dt.datetime:
    """The moment that the log keeps for a grade given at `given` and read at `now`.

    Never in the future, whatever the clock of the device says, and never before the
    last review of the card, for the log is replayed in its order. Where the last
    review lies in the future itself, its moment is kept.
    """
    moment = min(given, now)
    return moment if last is None else max(moment, last)
