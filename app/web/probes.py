"""Whether learners can be served and their work be saved: what /readyz answers.

Anybody may ask, so answers name no path, no host and no number of bytes. However often
they are asked, the checks run once a second at most, the one that writes to the disk
every ten seconds, and none on the event loop.
"""

import asyncio
import contextlib
import dataclasses
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import anyio
from anyio import to_thread
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import SQLModel

from app.content.live.courses import CourseRegistry
from app.content.live.library import LiveLibrary
from app.db.storage_limit import StorageLimit
from app.errors import StorageFullError

LEAST_FREE = 64 * 1024 * 1024
_KEPT = 1.0  # seconds that the outcome of a check holds
_DISK_KEPT = 10.0  # seconds that the one of the disk does, which waits for a sync
_PATIENCE = 0.8  # seconds for another process that writes
_LIMIT = 3.0  # seconds for a check, after which it counts as failed
_PROBE = 64 * 1024  # bytes that are written to see whether the disk takes them


@dataclasses.dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that was looked at; `problem` says what is wrong and what to do."""

    name: str
    problem: str = ""
    note: str = ""

    @property
    def line(self) -> str:
        """How the answer says it."""
        if self.problem:
            return f"{self.name}: FAILED. {self.problem}"
        return f"{self.name}: ok{', ' if self.note else ''}{self.note}"


class Readiness:
    """The checks of one process, and their last outcome."""

    def __init__(
        self, engine: Engine, folder: Path, courses: CourseRegistry, storage: StorageLimit
    ) -> None:
        self._courses = courses
        self._probes = (
            _Probe("database", _database_check(engine), _KEPT),
            _Probe(
                "disk",
                lambda: _disk_check(_folders(engine, folder), storage),
                _DISK_KEPT,
            ),
        )
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._found: tuple[HealthCheck, ...] = ()

    async def report(self) -> tuple[HealthCheck, ...]:
        """Every check, at most a second old, or ten seconds that of the disk."""
        async with self._lock:
            if time.monotonic() >= self._until:
                found = [await probe.result() for probe in self._probes]
                courses = self._courses.libraries.items()
                self._found = (*found, *(_course(n, live) for n, live in courses))
                self._until = time.monotonic() + _KEPT
            return self._found


class _Probe:
    """A check that may wait, in a thread of its own; its outcome holds `seconds`.

    The threads of the requests may all be waiting.
    """

    def __init__(self, name: str, work: Callable[[], HealthCheck], seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._thread = anyio.CapacityLimiter(1)
        self._until = 0.0
        self._check = HealthCheck(name)

    async def result(self) -> HealthCheck:
        """The outcome, found anew where the last one is too old."""
        if time.monotonic() >= self._until:
            self._check = await self._run()
            self._until = time.monotonic() + self._seconds
        return self._check

    async def _run(self) -> HealthCheck:
        with anyio.move_on_after(_LIMIT):
            return await to_thread.run_sync(
                self._work, abandon_on_cancel=True, limiter=self._thread
            )
        words = f"There was no answer within {_LIMIT:.0f} seconds. "
        return HealthCheck(self._name, words + "See that database and disk can be reached.")


def _course(name: str, live: LiveLibrary) -> HealthCheck:
    subject = f"content {name}" if name else "content"
    try:
        course = live.current()
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is said
        return HealthCheck(subject, f"The course cannot be read. {_CHECK_CONTENT}")
    if not course.topics:
        return HealthCheck(subject, f"The course has no topics. {_CHECK_CONTENT}")
    wrong = sum(p.severity == "error" for p in course.problems)
    note = f"{len(course.topics)} topics"
    if wrong:
        note += f", {wrong} errors in the files; `headroom check` names each"
    return HealthCheck(subject, note=note)


_CHECK_CONTENT = "Run `headroom check`, and fix what it names."


def check_disk(folders: Sequence[Path], least: int = LEAST_FREE) -> HealthCheck:
    """Whether each folder takes what is written and has `least` bytes free."""
    for folder in folders:
        try:
            free = shutil.disk_usage(folder).free
            _write(folder)
        except OSError as error:
            words = f"The data folder cannot be written ({error.strerror}). "
            return HealthCheck("disk", words + "Free space, or make the folder writable.")
        if free < least:
            words = f"The disk is nearly full: have {least // 1_000_000:,} MB free."
            return HealthCheck("disk", words)
    return HealthCheck("disk")


def _disk_check(folders: Sequence[Path], storage: StorageLimit) -> HealthCheck:
    found = check_disk(folders)
    try:
        storage.expect_room()
    except StorageFullError:
        return dataclasses.replace(found, note="full for imports")
    except (OSError, SQLAlchemyError):
        return found  # the other checks say so
    return found


def _write(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(_PROBE))
        probe.flush()
        os.fsync(probe.fileno())


def _folders(engine: Engine, folder: Path) -> tuple[Path, ...]:
    path = _path(engine)
    return (folder,) if path is None else tuple({folder, path.parent})


def _path(engine: Engine) -> Path | None:
    name = engine.url.database
    return Path(name) if engine.dialect.name == "sqlite" and name else None


def _database_check(engine: Engine) -> Callable[[], HealthCheck]:
    path = _path(engine)
    if path is None:
        return lambda: HealthCheck("database", _of_server(engine))
    born = _identity(path)
    return lambda: HealthCheck("database", _of_file(path, born))


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def _of_file(path: Path, born: tuple[int, int] | None) -> str:
    """What is wrong with a database file; empty where a write would succeed."""
    now = _identity(path)
    if now is None:
        return "The database file is gone. Stop the server, and restore a backup."
    if now != born:
        return "The database file was replaced. Restart the server to use the new one."
    try:
        with _opened(path) as connection:
            _begin_or_see_others_commit(connection)
            rows = connection.execute(_TABLES).fetchall()
            connection.rollback()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without its details
        return _SAID.get(code, _DAMAGED)
    return _missing_tables(name for (name,) in rows)


def _missing_tables(names: Iterable[str]) -> str:
    # The engine has filled the metadata with every table.
    if SQLModel.metadata.tables.keys() <= set(names):
        return ""
    return "The database lacks tables. Stop the server, and restore a backup."


def _begin_or_see_others_commit(connection: sqlite3.Connection) -> None:
    """Begin to write; given back at once. Raises sqlite3.Error where nobody can.

    Many learners who write one after the other may let nobody in between for a while:
    then what they have committed shows as well that it can be written.
    """
    (before,) = connection.execute(_CHANGES).fetchone()
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        (after,) = connection.execute(_CHANGES).fetchone()
        if after == before:
            raise


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_CHANGES = "PRAGMA data_version"  # another number after each commit of others
_DAMAGED = "The database is damaged. Stop the server, and restore a backup."
_SAID = {
    sqlite3.SQLITE_BUSY: "Another process keeps the database locked. "
    "Find the program that has it open, and end it.",
    sqlite3.SQLITE_READONLY: "The database is read-only. Make it writable.",
    sqlite3.SQLITE_FULL: "The disk is full. Free space.",
    sqlite3.SQLITE_CANTOPEN: "The database cannot be opened. "
    "Make the data folder readable and writable.",
    sqlite3.SQLITE_IOERR: "The disk reports errors. Look at the system's log.",
}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection beside the pool, which never makes a file that is not there."""
    address = f"file:{quote(str(path.absolute()))}?mode=rw"
    with contextlib.closing(
        sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
    ) as connection:
        yield connection


def _of_server(engine: Engine) -> str:
    try:
        with engine.connect() as connection:
            names = inspect(connection).get_table_names()
            closed = connection.execute(text(_READ_ONLY)).scalar()
    except SQLAlchemyError:
        return "The database server gives no answer. See that it runs and is reachable."
    if closed:
        return "The database server takes no writes. Make it writable."
    return _missing_tables(names)


_READ_ONLY = (
    "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean"
)
