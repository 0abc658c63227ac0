"""Write sessions. SQLite has one writer at a time; the others wait on the event loop.

If they waited for the lock in threads, forty of them would use up all threads, and the
lock holder could not finish.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from app.database.errors import is_busy
from app.database.file_guards import DiskProbe, expect_database

Turn = Callable[[], AbstractAsyncContextManager[Session]]

WRITERS = 12
"""Concurrent write requests of one process on a database that allows several."""
WRITING = {"writes": True}
"""Execution options that tell a connection, before its transaction begins, that it will write."""
BUSY = 5000
"""Milliseconds that a connection waits for another writer before the request fails."""
# Requests queued behind one that timed out wait less. Otherwise the last of them would
# learn only after minutes that the database is busy.
_LEAST_WAIT = 1.0  # seconds
# Seconds between two tries while another process writes. SQLite's own waiting backs off
# to a tenth of a second, and would miss the gaps that the other process leaves.
_PAUSE = 0.002


def create_write_session(engine: Engine) -> Turn:
    """Return the context manager for writing: `async with turn() as session`.

    The writes are on disk once the block exits without an exception.
    """
    if engine.dialect.name == "sqlite":
        disk = DiskProbe(Path(engine.url.database or "").resolve().parent)
        return functools.partial(_write_alone, engine, asyncio.Lock(), disk)
    return functools.partial(_write_beside_others, engine, asyncio.Semaphore(WRITERS))


@contextlib.asynccontextmanager
async def _write_beside_others(engine: Engine, room: asyncio.Semaphore) -> AsyncIterator[Session]:
    """Yield a session with its own transaction, on a database with concurrent writers."""
    async with room:
        session = Session(engine, expire_on_commit=False)
        connect = functools.partial(session.connection, execution_options=WRITING)
        try:
            await run_in_threadpool(connect)
            yield session
            await run_in_threadpool(session.commit)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(session.close)


@contextlib.asynccontextmanager
async def _write_alone(
    engine: Engine, lock: asyncio.Lock, disk: DiskProbe
) -> AsyncIterator[Session]:
    """Yield a session that is the only one of this process that writes, on SQLite."""
    latest = time.monotonic() + BUSY / 1000
    async with lock:
        latest = max(latest, time.monotonic() + _LEAST_WAIT)
        with await _begin_when_free(engine, latest) as connection:
            with Session(connection, expire_on_commit=False) as session:
                yield session
                session.commit()
            # In a thread, because it waits for the disk. If this request is canceled
            # now, the transaction still ends before the connection is used again.
            commit = asyncio.ensure_future(run_in_threadpool(_commit, connection, disk))
            try:
                await asyncio.shield(commit)
            except asyncio.CancelledError:
                await asyncio.wait([commit])
                raise


async def _begin_when_free(engine: Engine, latest: float) -> Connection:
    """Begin a write transaction as soon as other processes allow it.

    Raises OperationalError at `latest`, on the monotonic clock.
    """
    while True:
        try:
            return _begin_write(engine)
        except OperationalError as error:
            busy = error.orig is not None and is_busy(error.orig)
            if not busy or time.monotonic() > latest:
                raise
        await asyncio.sleep(_PAUSE)


def _begin_write(engine: Engine) -> Connection:
    """Begin a write transaction. Raises OperationalError if another connection is writing."""
    expect_database(engine)
    connection = engine.connect().execution_options(**WRITING)
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute("PRAGMA busy_timeout=0")
        try:
            connection.begin()
        finally:
            driver.execute(f"PRAGMA busy_timeout={BUSY}")
    except BaseException:
        connection.close()
        raise
    return connection


def _commit(connection: Connection, disk: DiskProbe) -> None:
    driver: Any = connection.connection.dbapi_connection
    # A full disk rolls back the whole transaction, and SQLite accepts a commit of nothing.
    if not driver.in_transaction:
        raise RuntimeError("the transaction ended before its commit")
    try:
        connection.commit()
    except BaseException:
        connection.invalidate()  # the pool would reuse it with the open transaction
        raise
    # Check the disk even if this commit wrote nothing: a client resending an answer that
    # the disk lost must not get "already saved" from memory.
    disk.prove_writable()
