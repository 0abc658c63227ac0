"""Remove what erased rows leave behind in the files of SQLite.

Deleted rows are overwritten at once (`secure_delete`), but two things stay. The
write-ahead log holds pages as they were before: it is emptied soon after an erasure.
And where SQLite moved a row, a copy of it may stay in unused space of a page. Only
VACUUM removes that, which rewrites the whole file while all who write wait. So it runs
before the server serves, and once a day where the file is small. Other databases tidy
up by rules of their own.
"""

import asyncio
import contextlib
import logging
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import Session

from app.database.errors import is_busy

LARGEST_DAILY = 64 * 1024 * 1024
"""Bytes of a file that may be rewritten while the server runs: a second or two."""
LARGEST_AT_START = 512 * 1024 * 1024
"""Bytes of a file that may be rewritten before the server serves: some ten seconds.

Whatever watches over the server would end a start that takes minutes, again and again.
"""
_PAUSE = 15.0  # seconds between two truncations
_PATIENCE = 200  # milliseconds in which others may be kept waiting for one
_SPARE = 64 * 1024 * 1024  # bytes that must stay free while a file is rewritten
_log = logging.getLogger("headroom")


def note_erasure(db: Session) -> None:
    """Note, in the transaction that erases, that the file has to be rewritten.

    Each note is a number of its own, so that one which comes meanwhile is not lost.
    """
    if db.get_bind().dialect.name == "sqlite":
        number = secrets.randbelow(2**31 - 1) + 1
        db.connection().exec_driver_sql(f"PRAGMA user_version = {number}")


class LogTruncation:
    """Empties the write-ahead log on request, at most once in `pause` seconds.

    Requests that come meanwhile share the next one.
    """

    def __init__(self, engine: Engine, pause: float = _PAUSE) -> None:
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        self._path = Path(file) if file else None
        self._pause = pause
        self._requested = False
        self._task: asyncio.Task[None] | None = None

    async def request(self) -> None:
        """Have the log emptied, now or in the next run; returns at once."""
        if self._path is None:
            return
        self._requested = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(self._path))

    async def _run(self, path: Path) -> None:
        while self._requested:
            self._requested = False
            if not await asyncio.to_thread(_truncate_quietly, path):
                self._requested = True
            await asyncio.sleep(self._pause)


def truncate_log(path: Path) -> bool:
    """Write the log of a file into the file and empty it; false where somebody reads.

    Who writes waits for the last part alone, and not for long.
    """
    with _opened(path, _PATIENCE) as file:
        return _truncate(file)


def vacuum_daily(path: Path) -> bool:
    """Rewrite a small file in which an erasure is noted, beside a running server.

    Returns whether that was done. Raises sqlite3.Error, and leaves the note, where it
    cannot be.
    """
    if not _is_noted(path) or path.stat().st_size > LARGEST_DAILY:
        return False
    _expect_room(path)
    with _opened(path, _PATIENCE) as file:
        file.execute("PRAGMA temp_store=MEMORY")
        return _vacuum(file)


def vacuum_at_start(path: Path) -> bool:
    """`vacuum_daily` for a larger file that nobody else has open."""
    if not _is_noted(path):
        return False
    if path.stat().st_size > LARGEST_AT_START:
        _log.warning(
            "What erased learners left in unused space of %s is not removed: the file "
            "is too large for a start. Stop the server and run `headroom db vacuum`.",
            path,
        )
        return False
    try:
        return vacuum_alone(path)
    except sqlite3.OperationalError as error:
        if is_busy(error):  # another server uses the file, or a command does
            return False
        raise


def vacuum_alone(path: Path) -> bool:
    """Rewrite a file of any size that nobody else has open.

    Raises sqlite3.OperationalError where somebody has, or where there is no room.
    """
    _expect_room(path)
    with _opened(path, 0) as file:
        file.execute("PRAGMA locking_mode=EXCLUSIVE")
        # Where containers have their temporary files in memory, it would not suffice.
        file.execute("PRAGMA temp_store=FILE")
        folder = str(path.parent).replace("'", "''")
        file.execute(f"PRAGMA temp_store_directory='{folder}'")
        try:
            return _vacuum(file)
        finally:
            file.execute("PRAGMA temp_store_directory=''")


def _vacuum(file: sqlite3.Connection) -> bool:
    """Rewrite the file; the note goes once nothing is left of the old pages."""
    (note,) = file.execute("PRAGMA user_version").fetchone()
    file.execute("PRAGMA busy_timeout=5000")  # to wait for others hinders nobody
    file.execute("VACUUM")
    file.execute(f"PRAGMA busy_timeout={_PATIENCE}")
    if not _truncate(file):
        return False  # somebody reads the old pages; the note stays
    file.execute("BEGIN IMMEDIATE")
    if file.execute("PRAGMA user_version").fetchone() == (note,):
        file.execute("PRAGMA user_version = 0")
    file.execute("COMMIT")
    return True


def _truncate(file: sqlite3.Connection) -> bool:
    file.execute("PRAGMA wal_checkpoint(PASSIVE)")  # most of the work; nobody waits
    busy, _pages, _moved = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _truncate_quietly(path: Path) -> bool:
    try:
        return truncate_log(path)
    except sqlite3.Error as error:
        _log.warning("the log of the database was not emptied: %s", error)
        return False


def _is_noted(path: Path) -> bool:
    with _opened(path, _PATIENCE) as file:
        return bool(file.execute("PRAGMA user_version").fetchone()[0])


def _expect_room(path: Path) -> None:
    # The new contents are written twice: to a temporary file, and to the log.
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    if free < 2 * size + _SPARE:
        raise sqlite3.OperationalError(
            f"to rewrite {path} takes {(2 * size + _SPARE) // 1_000_000:,} MB, and "
            f"{free // 1_000_000:,} MB are free"
        )


@contextlib.contextmanager
def _opened(path: Path, milliseconds: int) -> Iterator[sqlite3.Connection]:
    """A connection that waits so long for others, and never makes a new file."""
    with contextlib.closing(
        sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=milliseconds / 1000,
            isolation_level=None,
        )
    ) as file:
        file.execute("PRAGMA secure_delete=ON")
        yield file
