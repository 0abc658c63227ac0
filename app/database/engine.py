"""Database engine, sessions, the queue of writers, and the query for the current score.

Form and URL validation refuses most bad values. The error handler here catches the
rest: numbers beyond 32 or 64 bits, and characters that the database cannot store.

Code that reads scores selects `SCORE` from `GRADED_ATTEMPTS`, so that regraded attempts count
with their new score. Only pages that show both scores read `attempt.score` itself.
"""

import asyncio
import contextlib
import errno
import functools
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DataError, OperationalError
from sqlmodel import Session, SQLModel

from app.database.file_guards import (
    GUARD_OPTION,
    FileSystemJournalProbe,
    ReplacedFileGuard,
    expect_same_database_file,
)
from app.database.tables import TABLES
from app.errors import AppError, BusyError, DiskFullError, InvalidInputError

# 55P03 lock not available, 40001 serialization failure, 40P01 deadlock.
_BUSY_STATES = {"55P03", "40001", "40P01"}
_FULL_STATES = {"53100"}
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# The second code: the -shm file next to the database cannot grow.
_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}


def find_busy_or_disk_full_error(error: BaseException) -> AppError | None:
    """Return the error to show for an exception or its causes; None for a bug."""
    cause: BaseException | None = error
    while cause is not None:
        if is_driver_lock_busy_error(cause):
            return BusyError(
                "The database is busy just now, so this could not be done.",
                "Nothing that was confirmed before is lost. Try again in a minute.",
            )
        if is_disk_full_error(cause):
            return DiskFullError(
                "The disk of this server is full, so this could not be saved.",
                "Nothing that was confirmed before is lost. Tell whoever runs the "
                "server, and try again when there is room.",
            )
        cause = cause.__cause__
    return None


def is_driver_lock_busy_error(driver_error: BaseException) -> bool:
    """Return whether an exception of the driver itself says that another connection has the lock.

    SQLAlchemy's wrapper of it, as `OperationalError`, is none; its `orig` is.
    """
    code = getattr(driver_error, "sqlite_errorcode", 0) & 0xFF  # without the extended part
    return code in _BUSY_CODES or getattr(driver_error, "sqlstate", "") in _BUSY_STATES


def is_disk_full_error(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in _FULL_ERRNOS
    code = getattr(error, "sqlite_errorcode", 0)
    return code in _FULL_CODES or getattr(error, "sqlstate", "") in _FULL_STATES


OpenWriteSession = Callable[[], AbstractAsyncContextManager[Session]]

MAX_CONCURRENT_WRITES = 12
"""Concurrent write requests of one process on a database that allows several."""
WRITE_OPTIONS = {"writes": True}
"""Execution options that tell a connection, before its transaction begins, that it will write."""
BUSY_TIMEOUT_MILLISECONDS = 5000
"""Milliseconds that a connection waits for another writer before the request fails."""
# Requests queued behind one that timed out wait less. Otherwise the last of them would
# learn only after minutes that the database is busy.
_LEAST_WAIT = 1.0  # seconds
# Seconds between two tries while another process writes. SQLite's own waiting backs off
# to a tenth of a second, and would miss the gaps that the other process leaves.
_WRITE_RETRY_SECONDS = 0.002


def create_write_session_opener(engine: Engine) -> OpenWriteSession:
    """Return what opens write sessions; the writes are on disk once its block exits."""
    if engine.dialect.name == "sqlite":
        disk = FileSystemJournalProbe(Path(engine.url.database or "").resolve().parent)
        return functools.partial(_single_writer_session, engine, asyncio.Lock(), disk)
    return functools.partial(
        _concurrent_writer_session, engine, asyncio.Semaphore(MAX_CONCURRENT_WRITES)
    )


@contextlib.asynccontextmanager
async def _concurrent_writer_session(
    engine: Engine, writer_slots: asyncio.Semaphore
) -> AsyncIterator[Session]:
    """Yield a session with its own transaction, on a database with concurrent writers."""
    async with writer_slots:
        session = Session(engine, expire_on_commit=False)
        connect = functools.partial(session.connection, execution_options=WRITE_OPTIONS)
        try:
            await run_in_threadpool(connect)
            yield session
            await run_in_threadpool(session.commit)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(session.close)


@contextlib.asynccontextmanager
async def _single_writer_session(
    engine: Engine, lock: asyncio.Lock, disk: FileSystemJournalProbe
) -> AsyncIterator[Session]:
    """Yield a session that is the only one of this process that writes, on SQLite."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MILLISECONDS / 1000
    async with lock:
        deadline = max(deadline, time.monotonic() + _LEAST_WAIT)
        with await _begin_write_when_unlocked(engine, deadline) as connection:
            with Session(connection, expire_on_commit=False) as session:
                yield session
                session.commit()
            # In a thread, because it waits for the disk. If this request is canceled
            # now, the transaction still ends before the connection is used again.
            commit = asyncio.ensure_future(
                run_in_threadpool(_commit_and_verify_file_system_journal, connection, disk)
            )
            try:
                await asyncio.shield(commit)
            except asyncio.CancelledError:
                await asyncio.wait([commit])
                raise


async def _begin_write_when_unlocked(engine: Engine, deadline: float) -> Connection:
    """Begin a write transaction, or raise OperationalError at `deadline` on the monotonic clock."""
    while True:
        try:
            return _begin_write_or_raise_if_locked(engine)
        except OperationalError as error:
            is_busy = error.orig is not None and is_driver_lock_busy_error(error.orig)
            if not is_busy or time.monotonic() > deadline:
                raise
        await asyncio.sleep(_WRITE_RETRY_SECONDS)


def _begin_write_or_raise_if_locked(engine: Engine) -> Connection:
    """Begin a write transaction. Raises OperationalError if another connection is writing."""
    expect_same_database_file(engine)
    connection = engine.connect().execution_options(**WRITE_OPTIONS)
    driver: Any = connection.connection.dbapi_connection
    try:
        driver.execute("PRAGMA busy_timeout=0")
        try:
            connection.begin()
        finally:
            driver.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MILLISECONDS}")
    except BaseException:
        connection.close()
        raise
    return connection


def _commit_and_verify_file_system_journal(
    connection: Connection, journal_probe: FileSystemJournalProbe
) -> None:
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
    journal_probe.raise_if_journal_lost()


_log = logging.getLogger("headroom")
_UNSTORABLE_VALUE_MESSAGE = (
    "Something that was sent cannot be saved: a number is too large, or a text holds "
    "a character that no text may hold."
)


def _convert_unstorable_value_error(context: ExceptionContext) -> Exception | None:
    error = context.original_exception
    # The SQLite driver raises Python errors before the database sees the value.
    if isinstance(error, OverflowError | UnicodeEncodeError) or isinstance(
        context.sqlalchemy_exception, DataError
    ):
        # The log must not contain the value.
        _log.warning("the database had no room for a value (%s)", type(error).__name__)
        return InvalidInputError(
            _UNSTORABLE_VALUE_MESSAGE, hint="Check what was typed, then send it again."
        )
    return None


Result = TypeVar("Result")
MAX_CONCURRENT_READS = 16
"""Read requests that one process runs at a time; further ones wait for a semaphore.

Waiting on the event loop costs no thread. Writers have a separate limit (see
`create_write_session_opener`), because a read request may have to write as well.
"""
# No code may wait for a pooled connection: it would block a thread or the event loop
# that another request needs to return one. Two extra connections are for background
# tasks.
_POOL_SIZE = MAX_CONCURRENT_READS + MAX_CONCURRENT_WRITES + 2
_SQLITE_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
    "PRAGMA secure_delete=ON",  # erased data is overwritten, not only freed
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MILLISECONDS}",
    "PRAGMA cache_size=-20000",
    "PRAGMA mmap_size=268435456",
    "PRAGMA temp_store=MEMORY",
)
# In milliseconds. They bound every wait on PostgreSQL too.
_POSTGRESQL_TIMEOUTS = {
    "statement_timeout": 30_000,
    "idle_in_transaction_session_timeout": 300_000,  # a transaction of a hung process
}
_SECONDS_TO_CONNECT = 10
_MILLISECONDS_TO_HEAR = 30_000  # when the network to the server is down


def make_engine(database_url: str) -> Engine:
    """Return an engine for a database URL (sqlite:///… or postgresql+psycopg://…)."""
    if not database_url.startswith("sqlite"):
        return _make_postgresql_engine(database_url)
    url = make_url(database_url)
    replaced_file_guard = ReplacedFileGuard(url.database or ":memory:")
    engine = create_engine(
        url,
        connect_args={"check_same_thread": False},
        pool_size=_POOL_SIZE,
        hide_parameters=True,  # keep answers and names out of logs
        execution_options={GUARD_OPTION: replaced_file_guard},
    )
    # Connecting would create a new file.
    event.listen(engine, "do_connect", replaced_file_guard.expect_same_file)
    event.listen(engine, "connect", replaced_file_guard.remember_file)
    event.listen(engine, "engine_disposed", replaced_file_guard.forget_file)
    event.listen(engine, "connect", _configure_sqlite_connection)
    event.listen(engine, "begin", _begin_sqlite_transaction)
    event.listen(engine, "handle_error", _convert_unstorable_value_error)
    return engine


async def open_session_that_commits_if_post(request: Request) -> AsyncIterator[Session]:
    """Yield the session of this request: committed after a POST returned, otherwise rolled back.

    Stores never commit. The dependency has function scope, so that a failed commit is
    reported as an error and not as a success.
    """
    if request.method == "POST":
        open_write_session: OpenWriteSession = request.app.state.open_write_session
        async with open_write_session() as session:
            yield session
        return
    async with open_read_only_session(request) as session:
        yield session


@contextlib.asynccontextmanager
async def open_read_only_session(request: Request) -> AsyncIterator[Session]:
    """Yield a session that is never committed, once a reader slot is free."""
    async with request.app.state.reader_slots:
        session = Session(request.app.state.engine, expire_on_commit=False)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_thread_unless_sqlite(session, session.close)


@contextlib.contextmanager
def open_snapshot_session(engine: Engine) -> Iterator[Session]:
    """Yield a session for large reads that sees one snapshot of the database.

    Its connection is closed instead of returned to the pool, which frees SQLite's cache
    and mapped memory. SQLite cannot truncate its write-ahead log in the meantime, so
    use it for seconds and one at a time.
    """
    with engine.connect() as connection:
        connection.detach()
        if engine.dialect.name == "sqlite":
            driver: Any = connection.connection.dbapi_connection
            for pragma in ("mmap_size=0", "cache_size=-2000"):
                driver.execute(f"PRAGMA {pragma}")
        with Session(connection, expire_on_commit=False) as session:
            yield session


async def run_in_thread_unless_sqlite(db: Session, work: Callable[[], Result]) -> Result:
    """Run a short query on the event loop (SQLite) or in a thread (PostgreSQL).

    SQLite answers from memory faster than a thread switch. A database server must not
    block the event loop.
    """
    if db.get_bind().dialect.name == "sqlite":
        return work()
    return await run_in_threadpool(work)


async def write_during_read_request(request: Request, work: Callable[[Session], object]) -> None:
    """Run a small write outside of a POST; the request gives up its reader slot meanwhile."""
    open_write_session: OpenWriteSession = request.app.state.open_write_session
    read_semaphore: asyncio.Semaphore = request.app.state.reader_slots
    read_semaphore.release()
    try:
        async with open_write_session() as session:
            await run_in_thread_unless_sqlite(session, functools.partial(work, session))
    finally:
        with anyio.CancelScope(shield=True):
            await read_semaphore.acquire()


DbSession = Annotated[Session, Depends(open_session_that_commits_if_post, scope="function")]


def _make_postgresql_engine(address: str) -> Engine:
    # Readers see one snapshot, as on SQLite, however many queries a page runs.
    engine = create_engine(
        address,
        pool_pre_ping=True,
        pool_size=_POOL_SIZE,
        hide_parameters=True,
        isolation_level="REPEATABLE READ",
        connect_args={
            "connect_timeout": _SECONDS_TO_CONNECT,
            "tcp_user_timeout": _MILLISECONDS_TO_HEAR,
        },
    )
    event.listen(engine, "connect", _configure_postgresql_connection)
    event.listen(engine, "set_connection_execution_options", _set_write_isolation_level)
    event.listen(engine, "handle_error", _convert_unstorable_value_error)
    return engine


def _set_write_isolation_level(_connection: Connection, options: MutableMapping[str, Any]) -> None:
    # A writer waits for the lock on the learner's row, and must then see what the
    # previous holder committed.
    if options.get("writes"):
        options["isolation_level"] = "READ COMMITTED"


def _configure_sqlite_connection(connection: Any, _record: object) -> None:
    # Switch off the driver's transaction handling. It begins late and deferred, so two
    # writers could both hold a read lock.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _SQLITE_PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _configure_postgresql_connection(connection: Any, _record: object) -> None:
    # Wait for another writer as long as on SQLite, then fail the request.
    limits = {"lock_timeout": BUSY_TIMEOUT_MILLISECONDS, **_POSTGRESQL_TIMEOUTS}
    connection.autocommit = True
    with connection.cursor() as cursor:
        for name, limit in limits.items():
            cursor.execute(f"SET {name} = {limit}")
    connection.autocommit = False


def _begin_sqlite_transaction(connection: Any) -> None:
    # A deferred transaction that reads first and writes later can fail with "busy" at
    # once, and reads must not take the write lock. So the session declares which it is.
    mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else ""
    connection.exec_driver_sql(f"BEGIN {mode}".strip())


_MASKED_TEXT = "***"
_SECRET_URL_PARAMETERS = ("password", "sslpassword")
_UNREADABLE_URL = "(an address that cannot be read)"


def redact_passwords_of_url(address: str) -> str:
    """Return the database URL with every password replaced by stars."""
    url = parse_database_url(address)
    if url is None:
        return _UNREADABLE_URL
    # A password with an “@” that was not escaped continues in the host.
    password_rest, _at, host = (url.host or "").rpartition("@")
    if password_rest:
        url = url.set(host=host)
    url = url.update_query_dict({n: _MASKED_TEXT for n in _SECRET_URL_PARAMETERS if n in url.query})
    return url.render_as_string(hide_password=True).replace("%2A", "*")


def redact_passwords_in_message(message: object, database_url: str) -> str:
    text = str(message)
    url = parse_database_url(database_url)
    if url is None:
        return text.replace(database_url, _UNREADABLE_URL) if database_url else text
    for secret in sorted(_list_passwords_of_url(url), key=len, reverse=True):
        text = text.replace(secret, _MASKED_TEXT)
    return text


def parse_database_url(address: str) -> URL | None:
    """Return a database URL in its parts; None if it is invalid."""
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        return None


def _list_passwords_of_url(url: URL) -> set[str]:
    password_rest, _at, _host = (url.host or "").rpartition("@")
    candidates = (
        url.password,
        password_rest,
        *(url.query.get(name) for name in _SECRET_URL_PARAMETERS),
    )
    return {password for password in candidates if isinstance(password, str) and password}


IMPORTED_REVIEW_PREFIX = "file:"
"""Prefix of the token of a row imported from a file. Tokens of forms are hexadecimal."""


def insert_if_absent(db: Session, table: type[SQLModel], values: Mapping[str, Any]) -> int | None:
    """Insert a row; returns its id, None if a unique value exists. A concurrent repeat waits."""
    statement = _insert_statement(table, db.connection().dialect.name)
    row = db.connection().execute(statement, values).first()
    return int(row[0]) if row else None


@functools.cache
def _insert_statement(table: type[SQLModel], dialect: str) -> Any:
    columns = TABLES[str(table.__tablename__)]
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(columns).on_conflict_do_nothing().returning(columns.c.id)


ATTEMPT = TABLES["attempt"]
REGRADE = TABLES["regrade"]

_later = REGRADE.alias("later")
_is_followed = (
    select(_later.c.id)
    .where(_later.c.attempt_id == REGRADE.c.attempt_id, _later.c.after == REGRADE.c.id)
    .correlate(REGRADE)
    .exists()
)
NEWEST: ColumnElement[bool] = (REGRADE.c.attempt_id == ATTEMPT.c.id) & ~_is_followed
"""Join condition for an attempt and its newest regrade."""
GRADED_ATTEMPTS: FromClause = ATTEMPT.outerjoin(REGRADE, NEWEST)
"""Every attempt with its newest regrade, if there is one."""
SCORE: ColumnElement[Any] = func.coalesce(REGRADE.c.score, ATTEMPT.c.score)
"""The current score: of the newest regrade, or of the attempt."""
REVISION: ColumnElement[Any] = func.coalesce(REGRADE.c.revision, ATTEMPT.c.revision)
"""The question revision that the current score was graded by."""
