"""The present moment as an argument, so that no rule asks a clock."""

import datetime as dt
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
