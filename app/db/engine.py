"""The engine of a database address, and one session and transaction per request."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlmodel import Session

from app.db import tables  # noqa: F401 - fills the metadata that stores look into
from app.db.presence import DatabaseFileGuard, DatabaseGoneError, expect_database
from app.db.values import refuse_bad_values
from app.db.writer import BUSY, WRITERS, Turn

_log = logging.getLogger("headroom")
Result = TypeVar("Result")
READERS = 16
"""Requests of one process that read at the same time; further ones wait."""
# Nobody may ever wait for a connection: who did would hold a thread, or the event loop
# itself, that another needs to give one back. Two more are for what runs beside.
_CONNECTIONS = READERS + WRITERS + 2
_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
    "PRAGMA secure_delete=ON",  # what was erased is overwritten, not only freed
    f"PRAGMA busy_timeout={BUSY}",
    "PRAGMA cache_size=-20000",
    "PRAGMA mmap_size=268435456",
    "PRAGMA temp_store=MEMORY",
)
# Milliseconds, so that with PostgreSQL too no wait is without end.
_LIMITS = {
    "statement_timeout": 30_000,
    "idle_in_transaction_session_timeout": 300_000,  # of a process that stands still
}
_SECONDS_TO_CONNECT = 10
_MILLISECONDS_TO_HEAR = 30_000  # of a server behind a network that is gone


class PlainSavepoints(SQLiteDialect_pysqlite):
    """SQLite whose savepoints, one for each request, are said without ceremony."""

    supports_statement_cache = True

    def do_savepoint(self, connection: Connection, name: str) -> None:
        _say(connection, f"SAVEPOINT {name}")

    def do_rollback_to_savepoint(self, connection: Connection, name: str) -> None:
        # A full disk undoes the whole transaction, and its savepoints are gone. To ask
        # for one would hide what has happened behind “no such savepoint”.
        driver: Any = connection.connection.dbapi_connection
        if driver.in_transaction:
            _say(connection, f"ROLLBACK TO {name}")

    def do_release_savepoint(self, connection: Connection, name: str) -> None:
        _say(connection, f"RELEASE {name}")


def make_engine(address: str) -> Engine:
    """An engine for `address` (sqlite:///… or postgresql+psycopg://…)."""
    if not address.startswith("sqlite"):
        return _make_server_engine(address)
    registry.register("sqlite.plain", __name__, "PlainSavepoints")
    url = make_url(address).set(drivername="sqlite+plain")
    opened = DatabaseFileGuard(url.database or ":memory:")
    engine = create_engine(
        url,
        connect_args={"check_same_thread": False},
        pool_size=_CONNECTIONS,
        hide_parameters=True,  # answers and names, which belong into no log
        execution_options=opened.options,
    )
    event.listen(engine, "do_connect", opened.expect)  # it would make a new file
    event.listen(engine, "connect", opened.note)
    event.listen(engine, "engine_disposed", opened.forget)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    refuse_bad_values(engine)
    return engine


def checkpoint_wal(engine: Engine) -> None:
    """Write the log beside a SQLite file into the file, so that it is in one piece.

    Where somebody else still reads or writes, what is left stays in the log. A file
    that is not there any more is left alone, and said to be.
    """
    if engine.dialect.name != "sqlite":
        return
    try:
        expect_database(engine)
    except DatabaseGoneError as error:
        _log.error("%s", error)
        return
    with contextlib.closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("PRAGMA busy_timeout=0")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute(f"PRAGMA busy_timeout={BUSY}")
        cursor.close()


def create_read_semaphore() -> asyncio.Semaphore:
    """Where a request waits that wants to read, before it takes a connection.

    It waits on the event loop, which costs nothing. Writers have a room of their own
    (see `writer.turns`), for who reads may have to write something down beside.
    """
    return asyncio.Semaphore(READERS)


async def get_session(request: Request) -> AsyncIterator[Session]:
    """The session of this request: committed when a POST returned, else undone.

    Stores never commit. The dependency has function scope, so a commit that fails
    is answered as a failure and not as a success that never was.
    """
    if request.method == "POST":
        turn: Turn = request.app.state.turn
        async with turn() as session:
            yield session
        return
    async with read_only_session(request) as session:
        yield session


@contextlib.asynccontextmanager
async def read_only_session(request: Request) -> AsyncIterator[Session]:
    """A session that keeps nothing, once there is room for one more who reads."""
    async with request.app.state.reading_room:
        session = Session(request.app.state.engine, expire_on_commit=False)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await run_query(session, session.close)


@contextlib.contextmanager
def snapshot_session(engine: Engine) -> Iterator[Session]:
    """A session for whoever reads much: all of it as it was at one moment.

    Its connection is closed at the end instead of going back to the pool, so that
    nothing of what SQLite has read or mapped stays in memory. SQLite cannot empty the
    log beside its file meanwhile, so use it for seconds and one at a time.
    """
    with engine.connect() as connection:
        connection.detach()
        if engine.dialect.name == "sqlite":
            driver: Any = connection.connection.dbapi_connection
            for pragma in ("mmap_size=0", "cache_size=-2000"):
                driver.execute(f"PRAGMA {pragma}")
        with Session(connection, expire_on_commit=False) as session:
            yield session


async def run_query(db: Session, work: Callable[[], Result]) -> Result:
    """Run a short question where it is cheapest.

    SQLite answers from memory in less time than a change of threads takes; a database
    behind a network must not hold the event loop up.
    """
    if db.get_bind().dialect.name == "sqlite":
        return work()
    return await run_in_threadpool(work)


async def write_in_own_transaction(request: Request, work: Callable[[Session], object]) -> None:
    """Do a small write that belongs to no POST: in its turn, and committed at once.

    Who reads leaves the reading room as long as it waits for its turn.
    """
    turn: Turn = request.app.state.turn
    room: asyncio.Semaphore = request.app.state.reading_room
    room.release()
    try:
        async with turn() as session:
            await run_query(session, functools.partial(work, session))
    finally:
        with anyio.CancelScope(shield=True):
            await room.acquire()


DbSession = Annotated[Session, Depends(get_session, scope="function")]


def _make_server_engine(address: str) -> Engine:
    # Who reads sees one moment, as with SQLite, however many questions a page asks.
    engine = create_engine(
        address,
        pool_pre_ping=True,
        pool_size=_CONNECTIONS,
        hide_parameters=True,
        isolation_level="REPEATABLE READ",
        connect_args={
            "connect_timeout": _SECONDS_TO_CONNECT,
            "tcp_user_timeout": _MILLISECONDS_TO_HEAR,
        },
    )
    event.listen(engine, "connect", _prepare_server)
    event.listen(engine, "set_connection_execution_options", _see_commits)
    refuse_bad_values(engine)
    return engine


def _see_commits(_connection: Connection, options: MutableMapping[str, Any]) -> None:
    # Who writes waits for others at the row of the learner, and then has to see what
    # they have written.
    if options.get("writes"):
        options["isolation_level"] = "READ COMMITTED"


def _say(connection: Connection, words: str) -> None:
    connection.connection.cursor().execute(words)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling is switched off: it would begin late
    # and not immediately, and two writers could then both hold a read lock.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _prepare_server(connection: Any, _record: object) -> None:
    # Another writer is waited for as long as with SQLite, and then the request fails.
    limits = {"lock_timeout": BUSY, **_LIMITS}
    connection.autocommit = True
    with connection.cursor() as cursor:
        for name, limit in limits.items():
            cursor.execute(f"SET {name} = {limit}")
    connection.autocommit = False


def _begin_immediate(connection: Any) -> None:
    # A deferred transaction that reads first and writes later can fail with "busy"
    # at once; reads alone must not take the write lock. So the session says which.
    mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else ""
    connection.exec_driver_sql(f"BEGIN {mode}".strip())
