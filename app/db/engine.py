"""The engine of a database address, and one session and transaction per request."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any, TypeVar

import anyio
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Engine, create_engine, event
from sqlmodel import Session

from app.db import tables  # noqa: F401 - fills the metadata that stores look into

Result = TypeVar("Result")
_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
    "PRAGMA secure_delete=ON",  # what was erased is overwritten, not only freed
    "PRAGMA busy_timeout=5000",
    "PRAGMA cache_size=-20000",
    "PRAGMA mmap_size=268435456",
    "PRAGMA temp_store=MEMORY",
)


def make_engine(address: str) -> Engine:
    """An engine for `address` (sqlite:///… or postgresql+psycopg://…)."""
    if not address.startswith("sqlite"):
        return create_engine(address, pool_pre_ping=True)
    engine = create_engine(address, connect_args={"check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


async def get_session(request: Request) -> AsyncIterator[Session]:
    """The session of this request: committed when a POST returned, else undone.

    Stores never commit. The dependency has function scope, so a commit that fails
    is answered as a failure and not as a success that never was.
    """
    engine: Engine = request.app.state.engine
    session = Session(engine, expire_on_commit=False)
    try:
        if request.method == "POST":
            async with _turn(request):
                yield await _begin(session)
                await run_in_threadpool(session.commit)
        else:
            yield session
    finally:
        with anyio.CancelScope(shield=True):
            await aside(session, session.close)


async def aside(db: Session, work: Callable[[], Result]) -> Result:
    """Run a short question where it is cheapest.

    SQLite answers from memory in less time than a change of threads takes; a database
    behind a network must not hold the event loop up.
    """
    if db.get_bind().dialect.name == "sqlite":
        return work()
    return await run_in_threadpool(work)


async def write_beside(request: Request, work: Callable[[Session], object]) -> None:
    """Do a small write that belongs to no POST: in its turn, and committed at once."""
    engine: Engine = request.app.state.engine
    async with _turn(request):
        await run_in_threadpool(_write, engine, work)


def _write(engine: Engine, work: Callable[[Session], object]) -> None:
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        work(db)
        db.commit()


def _turn(request: Request) -> AbstractAsyncContextManager[None]:
    # SQLite has one writer at a time. Whoever waits for it inside of a thread keeps
    # that thread from the one who has it, and forty of them bring all to a halt.
    engine: Engine = request.app.state.engine
    if engine.dialect.name != "sqlite":
        return nullcontext()
    lock: AbstractAsyncContextManager[None] = request.app.state.writer
    return lock


async def _begin(session: Session) -> Session:
    # In a thread, for a writer of another process may have to be waited for.
    options = {"writes": True}
    await run_in_threadpool(session.connection, execution_options=options)
    return session


DbSession = Annotated[Session, Depends(get_session, scope="function")]


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling is switched off: it would begin late
    # and not immediately, and two writers could then both hold a read lock.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begin_immediate(connection: Any) -> None:
    # A deferred transaction that reads first and writes later can fail with "busy"
    # at once; reads alone must not take the write lock. So the session says which.
    mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else ""
    connection.exec_driver_sql(f"BEGIN {mode}".strip())
