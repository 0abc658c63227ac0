"""Closes papers whose time is up although nobody looks at them."""

import asyncio
import contextlib
import datetime as dt
import logging
import time
from collections.abc import AsyncIterator, Callable

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.content.live.courses import ALONE, CourseRegistry
from app.content.live.library import LiveLibrary
from app.db.writer import WRITING
from app.exams import store
from app.exams.sitting import close

_EVERY = 30.0
_GAP = 0.003  # seconds
_log = logging.getLogger("headroom")


@contextlib.asynccontextmanager
async def run_sitting_closer(
    engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]
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


def close_now(engine: Engine, library: LiveLibrary, now: dt.datetime, course: str = ALONE) -> int:
    """Close every overdue paper of a course; returns how many.

    Each in a transaction of its own, with a gap behind it for others who write: many
    papers may end at the same moment.
    """
    with Session(engine) as db:
        late = store.overdue(db, now, course)
    for sat in late:
        with Session(engine) as db:
            db.connection(execution_options=WRITING)
            close(db, library.current(), sat, "time", sat.deadline)
            db.commit()
        time.sleep(_GAP)
    return len(late)


async def _watch(engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]) -> None:
    while True:
        await asyncio.sleep(_EVERY)
        try:
            for name, live in courses.libraries.items():
                await asyncio.to_thread(close_now, engine, live, clock(), name)
        except SQLAlchemyError:
            # The next round tries again; a locked database is no reason to stop.
            _log.exception("overdue papers could not be closed")
