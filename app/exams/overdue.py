"""Closes papers whose time is up although nobody looks at them."""

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.content.live.courses import ALONE, Courses
from app.content.live.library import LiveLibrary
from app.db.writer import WRITING
from app.exams.sitting import close_overdue

_EVERY = 30.0
_log = logging.getLogger("headroom")


@contextlib.asynccontextmanager
async def closing(
    engine: Engine, courses: Courses, clock: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """Look for overdue papers as long as the server runs.

    Several processes may look at once: a paper is closed once, whoever is first.
    """
    watch = asyncio.create_task(_watch(engine, courses, clock))
    try:
        yield
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


def close_now(
    engine: Engine, library: LiveLibrary, now: dt.datetime, course: str = ALONE
) -> int:
    """Close every overdue paper of a course; returns how many."""
    with Session(engine) as db:
        db.connection(execution_options=WRITING)
        count = close_overdue(db, library.current(), now, course)
        db.commit()
        return count


async def _watch(
    engine: Engine, courses: Courses, clock: Callable[[], dt.datetime]
) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        try:
            for name, live in courses.libraries.items():
                await asyncio.to_thread(close_now, engine, live, clock(), name)
        except SQLAlchemyError:
            # The next round tries again; a locked database is no reason to stop.
            _log.exception("overdue papers could not be closed")
