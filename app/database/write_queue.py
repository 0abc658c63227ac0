"""Write queue for SQLite: one writer at a time, with group commit.

A commit waits for the disk, which takes as long as a request. So a request with others
queued behind it leaves the commit to the last of them. Each writes inside its own
savepoint, and none is answered before the commit that contains its writes. A lone
request is committed at once.
"""

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
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

# Limits of a commit group, so that other processes and the first writer do not wait
# long.
_MOST = 64
_MAX_GROUP_SECONDS = 0.02  # seconds
# Processes that write at the same time notice each other when a transaction cannot
# begin. From then on each retries at this interval and leaves a gap after each commit.
# Without the gap, the process that just committed would always win the lock again.
_LOOK = 0.001  # seconds
_GAP = 0.003  # seconds
_SEEN = 1.0  # for which another process is expected to write again
WRITERS = 12
"""Concurrent write requests of one process on a database that allows several."""
WRITING = {"writes": True}
"""Execution options that tell a connection, before its transaction begins, that it will write."""
BUSY = 5000
"""Milliseconds that a connection waits for another writer before the request fails."""
# Requests queued behind one that timed out wait less. Otherwise the last of them would
# learn only after minutes that the database is busy.
_LEAST_WAIT = 1.0  # seconds


def create_write_session(engine: Engine) -> Turn:
    """Return the context manager for writing: `async with turn() as session`.

    The writes are on disk once the block exits without an exception.
    """
    if engine.dialect.name == "sqlite":
        return _WriteQueue(engine).turn
    return functools.partial(_write_alone, engine, asyncio.Semaphore(WRITERS))


@contextlib.asynccontextmanager
async def _write_alone(engine: Engine, room: asyncio.Semaphore) -> AsyncIterator[Session]:
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


class _WriteQueue:
    """The write queue of one process, for SQLite, which allows one writer at a time.

    Requests wait on the event loop. If they waited for the lock in threads, forty of
    them would use up all threads, and the lock holder could not finish.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._disk = DiskProbe(Path(engine.url.database or "").resolve().parent)
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._group: _CommitGroup | None = None
        self._met = -_SEEN  # when another process was last seen writing

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[Session]:
        group = await self._enter()
        try:
            with group.part() as session:
                yield session
        finally:
            await _to_the_end(self._leave(group))
        await asyncio.shield(group.done)

    async def _enter(self) -> "_CommitGroup":
        self._waiting += 1
        latest = time.monotonic() + BUSY / 1000
        try:
            await self._lock.acquire()
        except BaseException:
            self._waiting -= 1
            await _to_the_end(self._settle_if_left())
            raise
        self._waiting -= 1
        if self._group is None:
            try:
                self._group = _CommitGroup(await self._begin(latest), self._disk)
            except BaseException:
                self._lock.release()
                raise
        return self._group

    async def _begin(self, latest: float) -> Connection:
        try:
            return _begin_write(self._engine)
        except OperationalError:
            # Wait in a thread for the writer of another process.
            self._met = time.monotonic()
            latest = max(latest, self._met + _LEAST_WAIT)
            return await run_in_threadpool(_begin_when_free, self._engine, latest)

    async def _settle_if_left(self) -> None:
        """Commit a group whose last expected member was canceled before it wrote."""
        group = self._group
        if group is None or self._waiting or self._lock.locked():
            return
        await self._lock.acquire()  # immediate: the lock is free and nobody waits for it
        await self._leave(group)

    async def _leave(self, group: "_CommitGroup") -> None:
        try:
            await asyncio.sleep(0)  # let requests that arrived in the meantime join the group
            if not self._waiting or group.is_over:
                self._group = None
                await group.settle()
                if time.monotonic() - self._met < _SEEN:
                    await asyncio.sleep(_GAP)
        finally:
            self._lock.release()


class _CommitGroup:
    """The writes of one commit. `done` raises if the commit failed."""

    def __init__(self, connection: Connection, disk: DiskProbe) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._disk = disk
        self._kept = 0
        self._ended_by: BaseException | None = None
        self._begun = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether to commit now: the group is full or old, or its transaction already ended."""
        if self._kept >= _MOST or time.monotonic() - self._begun > _MAX_GROUP_SECONDS:
            return True
        return not self._is_active

    @property
    def _is_active(self) -> bool:
        # A full disk rolls back the whole transaction, and SQLite accepts a commit of
        # nothing.
        driver: Any = self._connection.connection.dbapi_connection
        return bool(driver.in_transaction)

    @contextlib.contextmanager
    def part(self) -> Iterator[Session]:
        """Yield a session in a savepoint, which is rolled back alone if the block raises."""
        try:
            with Session(
                self._connection,
                expire_on_commit=False,
                join_transaction_mode="create_savepoint",
            ) as session:
                session.connection()
                yield session
                session.commit()
        except BaseException as error:
            if not self._is_active:
                self._ended_by = self._ended_by or error
            raise
        self._kept += 1

    async def settle(self) -> None:
        """Commit the group in a thread, because the commit waits for the disk."""
        try:
            await run_in_threadpool(self._commit_transaction)
        except Exception as error:  # noqa: BLE001 - reported to all members of the group
            self.done.set_exception(error)
            self.done.exception()  # avoid a warning if nobody awaits it
        else:
            self.done.set_result(None)

    def _commit_transaction(self) -> None:
        with self._connection as connection:
            if not self._kept:
                return
            if not self._is_active:
                words = "the transaction ended before its commit"
                raise RuntimeError(words) from self._ended_by
            try:
                connection.commit()
            except BaseException:
                connection.invalidate()  # the pool would reuse it with the open transaction
                raise
        # Check the disk even if this commit wrote nothing: a client resending an answer
        # that the disk lost must not get "already saved" from memory.
        self._disk.prove_writable()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    # Canceling one request must not cancel the commit of the others.
    await asyncio.shield(asyncio.ensure_future(work))


def _begin_when_free(engine: Engine, latest: float) -> Connection:
    """Begin a write transaction as soon as other processes allow it.

    Polls at a fixed interval: SQLite's own busy handler backs off and would miss the
    gaps that others leave. Raises OperationalError at `latest`, on the monotonic clock.
    """
    while True:
        try:
            return _begin_write(engine)
        except OperationalError as error:
            busy = error.orig is not None and is_busy(error.orig)
            if not busy or time.monotonic() > latest:
                raise
        time.sleep(_LOOK)


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
