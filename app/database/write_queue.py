"""One writer at a time, group commit.

A commit waits for the disk, which costs as much as a request. So a request that finds
others waiting behind it leaves the commit to the last of them: each writes inside of
a savepoint of its own, and none is answered before the commit that holds its words.
A request that comes alone is committed at once.
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

# Another process, and whoever wrote first, waits no longer than this for a commit.
_MOST = 64
_LONGEST = 0.02  # seconds
# Processes that write at the same time see each other when a turn cannot begin. From
# then on each looks again so often, and after its commit leaves such a gap for others:
# without, the one that has just written would always be the next as well.
_LOOK = 0.001  # seconds
_GAP = 0.003  # seconds
_SEEN = 1.0  # seconds for which another process is expected to write again
WRITERS = 12
"""Requests of one process that write at the same time, where many can."""
WRITING = {"writes": True}
"""How a connection is told, before its transaction begins, that it will write."""
BUSY = 5000
"""Milliseconds that a connection waits for another writer before the request fails."""
# Those who wait in a queue behind one that waited so long in vain get less, or the last
# of them would be told after minutes that the database is busy.
_LEAST_WAIT = 1.0  # seconds


def create_write_session(engine: Engine) -> Turn:
    """How requests come to write: `async with turn() as session`.

    What was written is on disk once the block was left without an exception.
    """
    if engine.dialect.name == "sqlite":
        return _WriteQueue(engine).turn
    return functools.partial(_alone, engine, asyncio.Semaphore(WRITERS))


@contextlib.asynccontextmanager
async def _alone(engine: Engine, room: asyncio.Semaphore) -> AsyncIterator[Session]:
    """A transaction of its own, for a database with many writers at a time."""
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
    """The writers of one process, for SQLite, which has one at a time.

    They wait on the event loop: whoever waited for the lock inside of a thread would
    keep that thread from the one who has it, and forty would bring all to a halt.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._disk = DiskProbe(Path(engine.url.database or "").resolve().parent)
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._group: _CommitGroup | None = None
        self._met = -_SEEN  # when another process was met last

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
            return _begin(self._engine)
        except OperationalError:
            # The writer of another process is waited for in a thread.
            self._met = time.monotonic()
            latest = max(latest, self._met + _LEAST_WAIT)
            return await run_in_threadpool(_begin_soon, self._engine, latest)

    async def _settle_if_left(self) -> None:
        """Commit what was left to somebody who never came to their turn."""
        group = self._group
        if group is None or self._waiting or self._lock.locked():
            return
        await self._lock.acquire()  # at once, for nobody holds or awaits it
        await self._leave(group)

    async def _leave(self, group: "_CommitGroup") -> None:
        try:
            await asyncio.sleep(0)  # who has arrived meanwhile shall come along
            if not self._waiting or group.is_over:
                self._group = None
                await group.settle()
                if time.monotonic() - self._met < _SEEN:
                    await asyncio.sleep(_GAP)
        finally:
            self._lock.release()


class _CommitGroup:
    """What is written under one commit. `done` fails where the commit failed."""

    def __init__(self, connection: Connection, disk: DiskProbe) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._disk = disk
        self._kept = 0
        self._ended_by: BaseException | None = None
        self._begun = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether those who wrote have waited long enough, or wait in vain."""
        if self._kept >= _MOST or time.monotonic() - self._begun > _LONGEST:
            return True
        return not self._stands

    @property
    def _stands(self) -> bool:
        # A full disk ends the whole transaction, and SQLite does not mind a commit
        # of nothing.
        driver: Any = self._connection.connection.dbapi_connection
        return bool(driver.in_transaction)

    @contextlib.contextmanager
    def part(self) -> Iterator[Session]:
        """A session whose writing is kept, or undone alone where it fails."""
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
            if not self._stands:
                self._ended_by = self._ended_by or error
            raise
        self._kept += 1

    async def settle(self) -> None:
        """Put on disk what was kept; in a thread, for the disk is waited for."""
        try:
            await run_in_threadpool(self._commit)
        except Exception as error:  # noqa: BLE001 - told to all who wait for it
            self.done.set_exception(error)
            self.done.exception()  # also where nobody is left to be told
        else:
            self.done.set_result(None)

    def _commit(self) -> None:
        with self._connection as connection:
            if not self._kept:
                return
            if not self._stands:
                words = "the transaction ended before its commit"
                raise RuntimeError(words) from self._ended_by
            try:
                connection.commit()
            except BaseException:
                connection.invalidate()  # it would come back with its transaction
                raise
        # Also where nothing new was written: who comes again with an answer that the
        # disk lost is told by a memory of it.
        self._disk.prove()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    # A task that is canceled must not take the commit of others along.
    await asyncio.shield(asyncio.ensure_future(work))


def _begin_soon(engine: Engine, latest: float) -> Connection:
    """A transaction that writes, as soon as another process lets it begin.

    SQLite itself would look ever more seldom, and miss the gaps that others leave.
    Raises OperationalError at `latest`, on the monotonic clock.
    """
    while True:
        try:
            return _begin(engine)
        except OperationalError as error:
            busy = error.orig is not None and is_busy(error.orig)
            if not busy or time.monotonic() > latest:
                raise
        time.sleep(_LOOK)


def _begin(engine: Engine) -> Connection:
    """A transaction that writes; raises OperationalError where somebody else does."""
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
