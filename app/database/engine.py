"""Engine, sessions, insert-once, latest-score query.

Forms and addresses refuse what they can name. This is the net below them: numbers
beyond 32 or 64 bits, and characters that no text may hold.

Everybody who reads a score reads `SCORE` from `GRADED`, so that an answer that was
graded again counts anew wherever it counts. The score of the log itself is asked for
only where both are shown.
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
from sqlalchemy.dialects import postgresql, registry, sqlite
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DataError
from sqlmodel import Session, SQLModel

from app.database.file_guards import DatabaseFileGuard, DatabaseGoneError, expect_database
from app.database.tables import TABLES
from app.database.write_queue import BUSY, WRITERS, Turn
from app.errors import InvalidInputError

_log = logging.getLogger("headroom")
_MESSAGE = (
    "Something that was sent cannot be saved: a number is too large, or a text holds "
    "a character that no text may hold."
)


def refuse_bad_values(engine: Engine) -> None:
    """Let every statement of this engine raise `InvalidInputError` for a value without room."""
    event.listen(engine, "handle_error", _instead)


def invalid_value_error(error: BaseException) -> InvalidInputError:
    """What is raised in the place of a driver's error; logged without the value."""
    _log.warning("the database had no room for a value (%s)", type(error).__name__)
    return InvalidInputError(_MESSAGE, hint="Check what was typed, then send it again.")


def _instead(context: ExceptionContext) -> Exception | None:
    error = context.original_exception
    # SQLite's driver raises Python's own errors, before the database has a say.
    if isinstance(error, OverflowError | UnicodeEncodeError) or isinstance(
        context.sqlalchemy_exception, DataError
    ):
        return invalid_value_error(error)
    return None


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
    (see `write_queue.create_write_session`), for who reads may have to write something down beside.
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


_HIDDEN = "***"
_SECRETS = ("password", "sslpassword")
_UNREADABLE = "(an address that cannot be read)"


def redact_url(address: str) -> str:
    """The address with every password replaced by stars."""
    url = _parsed(address)
    if url is None:
        return _UNREADABLE
    # A password with an “@” that was not escaped continues in the host.
    rest, _at, host = (url.host or "").rpartition("@")
    if rest:
        url = url.set(host=host)
    url = url.update_query_dict({n: _HIDDEN for n in _SECRETS if n in url.query})
    return url.render_as_string(hide_password=True).replace("%2A", "*")


def without_password(words: object, address: str) -> str:
    """What somebody said about a database, with the passwords of `address` hidden."""
    said = str(words)
    url = _parsed(address)
    if url is None:
        return said.replace(address, _UNREADABLE) if address else said
    for secret in sorted(_passwords(url), key=len, reverse=True):
        said = said.replace(secret, _HIDDEN)
    return said


def _parsed(address: str) -> URL | None:
    try:
        return make_url(address)
    except (ArgumentError, ValueError):
        return None


def _passwords(url: URL) -> set[str]:
    rest, _at, _host = (url.host or "").rpartition("@")
    given = (url.password, rest, *(url.query.get(name) for name in _SECRETS))
    return {g for g in given if isinstance(g, str) and g}


BROUGHT = "file:"
"""How the token of a row begins that came with a file; a form's is hexadecimal."""


def insert_if_absent(db: Session, table: type[SQLModel], values: Mapping[str, Any]) -> int | None:
    """Insert a row; returns its id, or None when a unique value is there already.

    A repeated request that arrives while the first is still being answered waits for
    it here and then finds its row.
    """
    statement = _statement(table, db.connection().dialect.name)
    row = db.connection().execute(statement, values).first()
    return int(row[0]) if row else None


@functools.cache
def _statement(table: type[SQLModel], dialect: str) -> Any:
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
"""Joins an attempt with the one regrade of it that none follows."""
GRADED: FromClause = ATTEMPT.outerjoin(REGRADE, NEWEST)
"""Every attempt, beside its newest regrade where it was graded again."""
SCORE: ColumnElement[Any] = func.coalesce(REGRADE.c.score, ATTEMPT.c.score)
"""The score that counts."""
REVISION: ColumnElement[Any] = func.coalesce(REGRADE.c.revision, ATTEMPT.c.revision)
"""The wording that the score was given by."""
