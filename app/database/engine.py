"""Database engine, request sessions, idempotent inserts and the query for the current score.

Form and URL validation refuses most bad values. The error handler here catches the
rest: numbers beyond 32 or 64 bits, and characters that the database cannot store.

Code that reads scores selects `SCORE` from `GRADED`, so that regraded attempts count
with their new score. Only pages that show both scores read `attempt.score` itself.
"""

import asyncio
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
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
from sqlalchemy.exc import ArgumentError, DataError
from sqlmodel import Session, SQLModel

from app.database.file_guards import ReplacedFileGuard
from app.database.tables import TABLES
from app.database.write_queue import BUSY, WRITERS, Turn
from app.errors import InvalidInputError

_log = logging.getLogger("headroom")
_MESSAGE = (
    "Something that was sent cannot be saved: a number is too large, or a text holds "
    "a character that no text may hold."
)


def convert_value_errors(engine: Engine) -> None:
    """Convert errors about unstorable values on this engine to `InvalidInputError`."""
    event.listen(engine, "handle_error", _replacement_error)


def invalid_value_error(error: BaseException) -> InvalidInputError:
    """Return the error to raise for a value that cannot be stored. Logs it without the value."""
    _log.warning("the database had no room for a value (%s)", type(error).__name__)
    return InvalidInputError(_MESSAGE, hint="Check what was typed, then send it again.")


def _replacement_error(context: ExceptionContext) -> Exception | None:
    error = context.original_exception
    # The SQLite driver raises Python errors before the database sees the value.
    if isinstance(error, OverflowError | UnicodeEncodeError) or isinstance(
        context.sqlalchemy_exception, DataError
    ):
        return invalid_value_error(error)
    return None


Result = TypeVar("Result")
READERS = 16
"""Read requests that one process runs at a time; further ones wait."""
# No code may wait for a pooled connection: it would block a thread or the event loop
# that another request needs to return one. Two extra connections are for background
# tasks.
_CONNECTIONS = READERS + WRITERS + 2
_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
    "PRAGMA secure_delete=ON",  # erased data is overwritten, not only freed
    f"PRAGMA busy_timeout={BUSY}",
    "PRAGMA cache_size=-20000",
    "PRAGMA mmap_size=268435456",
    "PRAGMA temp_store=MEMORY",
)
# In milliseconds. They bound every wait on PostgreSQL too.
_LIMITS = {
    "statement_timeout": 30_000,
    "idle_in_transaction_session_timeout": 300_000,  # a transaction of a hung process
}
_SECONDS_TO_CONNECT = 10
_MILLISECONDS_TO_HEAR = 30_000  # when the network to the server is down


def make_engine(address: str) -> Engine:
    """Return an engine for a database URL (sqlite:///… or postgresql+psycopg://…)."""
    if not address.startswith("sqlite"):
        return _make_postgresql_engine(address)
    url = make_url(address)
    opened = ReplacedFileGuard(url.database or ":memory:")
    engine = create_engine(
        url,
        connect_args={"check_same_thread": False},
        pool_size=_CONNECTIONS,
        hide_parameters=True,  # keep answers and names out of logs
        execution_options=opened.options,
    )
    event.listen(engine, "do_connect", opened.expect_file)  # connecting would create a new file
    event.listen(engine, "connect", opened.note)
    event.listen(engine, "engine_disposed", opened.forget)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    convert_value_errors(engine)
    return engine


def create_read_semaphore() -> asyncio.Semaphore:
    """Return the semaphore that read requests acquire before they take a connection.

    Waiting on the event loop costs no thread. Writers have a separate limit (see
    `write_queue.create_write_session`), because a read request may have to write as
    well.
    """
    return asyncio.Semaphore(READERS)


async def get_session(request: Request) -> AsyncIterator[Session]:
    """Yield the session of this request: committed after a POST returned, otherwise rolled back.

    Stores never commit. The dependency has function scope, so that a failed commit is
    reported as an error and not as a success.
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
    """Yield a session that is never committed, once a reader slot is free."""
    async with request.app.state.reading_room:
        session = Session(request.app.state.engine, expire_on_commit=False)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await run_query(session, session.close)


@contextlib.contextmanager
def snapshot_session(engine: Engine) -> Iterator[Session]:
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


async def run_query(db: Session, work: Callable[[], Result]) -> Result:
    """Run a short query on the event loop (SQLite) or in a thread (PostgreSQL).

    SQLite answers from memory faster than a thread switch. A database server must not
    block the event loop.
    """
    if db.get_bind().dialect.name == "sqlite":
        return work()
    return await run_in_threadpool(work)


async def write_in_own_transaction(request: Request, work: Callable[[Session], object]) -> None:
    """Run a small write outside of a POST in its own transaction, and commit it at once.

    The request gives up its reader slot while it waits for the write queue.
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


def _make_postgresql_engine(address: str) -> Engine:
    # Readers see one snapshot, as on SQLite, however many queries a page runs.
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
    event.listen(engine, "connect", _prepare_postgresql)
    event.listen(engine, "set_connection_execution_options", _set_write_isolation_level)
    convert_value_errors(engine)
    return engine


def _set_write_isolation_level(_connection: Connection, options: MutableMapping[str, Any]) -> None:
    # A writer waits for the lock on the learner's row, and must then see what the
    # previous holder committed.
    if options.get("writes"):
        options["isolation_level"] = "READ COMMITTED"


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # Switch off the driver's transaction handling. It begins late and deferred, so two
    # writers could both hold a read lock.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _prepare_postgresql(connection: Any, _record: object) -> None:
    # Wait for another writer as long as on SQLite, then fail the request.
    limits = {"lock_timeout": BUSY, **_LIMITS}
    connection.autocommit = True
    with connection.cursor() as cursor:
        for name, limit in limits.items():
            cursor.execute(f"SET {name} = {limit}")
    connection.autocommit = False


def _begin_immediate(connection: Any) -> None:
    # A deferred transaction that reads first and writes later can fail with "busy" at
    # once, and reads must not take the write lock. So the session declares which it is.
    mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else ""
    connection.exec_driver_sql(f"BEGIN {mode}".strip())


_HIDDEN = "***"
_SECRETS = ("password", "sslpassword")
_UNREADABLE = "(an address that cannot be read)"


def redact_url(address: str) -> str:
    """Return the database URL with every password replaced by stars."""
    url = _parse_url(address)
    if url is None:
        return _UNREADABLE
    # A password with an “@” that was not escaped continues in the host.
    rest, _at, host = (url.host or "").rpartition("@")
    if rest:
        url = url.set(host=host)
    url = url.update_query_dict({n: _HIDDEN for n in _SECRETS if n in url.query})
    return url.render_as_string(hide_password=True).replace("%2A", "*")


def hide_passwords(words: object, address: str) -> str:
    """Return a message about a database with the passwords of its URL `address` hidden."""
    said = str(words)
    url = _parse_url(address)
    if url is None:
        return said.replace(address, _UNREADABLE) if address else said
    for secret in sorted(_url_passwords(url), key=len, reverse=True):
        said = said.replace(secret, _HIDDEN)
    return said


def _parse_url(address: str) -> URL | None:
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        return None


def _url_passwords(url: URL) -> set[str]:
    rest, _at, _host = (url.host or "").rpartition("@")
    given = (url.password, rest, *(url.query.get(name) for name in _SECRETS))
    return {g for g in given if isinstance(g, str) and g}


BROUGHT = "file:"
"""Prefix of the token of a row imported from a file. Tokens of forms are hexadecimal."""


def insert_if_absent(db: Session, table: type[SQLModel], values: Mapping[str, Any]) -> int | None:
    """Insert a row; returns its id, or None if a unique value already exists.

    A request repeated while the first is in progress waits here and then finds the row.
    """
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
GRADED: FromClause = ATTEMPT.outerjoin(REGRADE, NEWEST)
"""Every attempt with its newest regrade, if there is one."""
SCORE: ColumnElement[Any] = func.coalesce(REGRADE.c.score, ATTEMPT.c.score)
"""The current score: of the newest regrade, or of the attempt."""
REVISION: ColumnElement[Any] = func.coalesce(REGRADE.c.revision, ATTEMPT.c.revision)
"""The question revision that the current score was graded by."""
