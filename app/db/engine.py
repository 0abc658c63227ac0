"""The engine of a database address, and one session and transaction per request."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import Engine, create_engine, event
from sqlmodel import Session

_PRAGMAS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # an acknowledged answer survives a power cut
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


def get_session(request: Request) -> Iterator[Session]:
    """The session of this request: committed when the route returned, else undone.

    Stores never commit. The dependency has function scope, so a commit that fails
    is answered as a failure and not as a success that never was.
    """
    with Session(request.app.state.engine, expire_on_commit=False) as session:
        if request.method == "POST":
            session.connection(execution_options={"writes": True})
        yield session
        session.commit()


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
