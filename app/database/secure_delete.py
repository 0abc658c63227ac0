"""Removes what erased rows leave behind in SQLite's files.

Deleted rows are overwritten at once (`secure_delete`), but two kinds of copies remain.
The write-ahead log contains old pages; it is truncated soon after an erasure. And where
SQLite moved a row, unused space of a page may contain a copy. Only VACUUM removes that,
which rewrites the whole file while all writers wait. So it runs before the server
accepts requests, and once a day if the file is small. Other databases have their own
cleanup.
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
"""Maximum file size in bytes for a VACUUM while the server runs: a second or two."""
LARGEST_AT_START = 512 * 1024 * 1024
"""Maximum file size in bytes for a VACUUM before the server accepts requests: some ten seconds.

If a start took minutes, a process supervisor would kill it, again and again.
"""
_PAUSE = 15.0  # seconds between two truncations
_BUSY_TIMEOUT_MS = 200  # milliseconds that other writers may wait for one
_SPARE_BYTES = 64 * 1024 * 1024  # bytes that must stay free while the file is rewritten
_log = logging.getLogger("headroom")


def note_erasure(db: Session) -> None:
    """Record, in the erasing transaction, that the file has to be vacuumed.

    Each mark is a random number, so that an erasure during a VACUUM is not lost.
    """
    if db.get_bind().dialect.name == "sqlite":
        number = secrets.randbelow(2**31 - 1) + 1
        db.connection().exec_driver_sql(f"PRAGMA user_version = {number}")


class LogTruncation:
    """Truncates the write-ahead log on request, at most once in `pause` seconds.

    Requests in the meantime share the next truncation.
    """

    def __init__(self, engine: Engine, pause: float = _PAUSE) -> None:
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        self._path = Path(file) if file else None
        self._pause = pause
        self._requested = False
        self._task: asyncio.Task[None] | None = None

    async def request(self) -> None:
        """Request a truncation, now or in the next run. Returns at once."""
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
    """Checkpoint and truncate the write-ahead log; returns False if a reader prevents it.

    Writers wait only for the last part, at most `_PATIENCE` milliseconds.
    """
    with _open_waiting(path, _BUSY_TIMEOUT_MS) as file:
        return _truncate_wal(file)


def vacuum_daily(path: Path) -> bool:
    """Vacuum a small file that is marked for it, while the server runs.

    Returns whether it was done. On failure raises sqlite3.Error and leaves the mark.
    """
    if not _is_noted(path) or path.stat().st_size > LARGEST_DAILY:
        return False
    _expect_room(path)
    with _open_waiting(path, _BUSY_TIMEOUT_MS) as file:
        file.execute("PRAGMA temp_store=MEMORY")
        return _vacuum_file(file)


def vacuum_at_start(path: Path) -> bool:
    """Vacuum a marked file of up to `LARGEST_AT_START` bytes, if no other process has it open."""
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
        return vacuum_exclusively(path)
    except sqlite3.OperationalError as error:
        if is_busy(error):  # another server or a command uses the file
            return False
        raise


def vacuum_exclusively(path: Path) -> bool:
    """Vacuum a file of any size that no other process has open.

    Raises sqlite3.OperationalError if one has, or if the disk has too little space.
    """
    _expect_room(path)
    with _open_waiting(path, 0) as file:
        file.execute("PRAGMA locking_mode=EXCLUSIVE")
        # In containers the temporary folder may be in memory, which could be too small.
        file.execute("PRAGMA temp_store=FILE")
        folder = str(path.parent).replace("'", "''")
        file.execute(f"PRAGMA temp_store_directory='{folder}'")
        try:
            return _vacuum_file(file)
        finally:
            file.execute("PRAGMA temp_store_directory=''")


def _vacuum_file(file: sqlite3.Connection) -> bool:
    """Vacuum the file. Clears the mark once no old pages are left; returns whether it did."""
    (note,) = file.execute("PRAGMA user_version").fetchone()
    file.execute("PRAGMA busy_timeout=5000")  # waiting for others blocks nobody
    file.execute("VACUUM")
    file.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
    if not _truncate_wal(file):
        return False  # a reader still uses old pages; the mark stays
    file.execute("BEGIN IMMEDIATE")
    if file.execute("PRAGMA user_version").fetchone() == (note,):
        file.execute("PRAGMA user_version = 0")
    file.execute("COMMIT")
    return True


def _truncate_wal(file: sqlite3.Connection) -> bool:
    file.execute("PRAGMA wal_checkpoint(PASSIVE)")  # does most of the work without blocking anyone
    busy, _pages, _moved = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _truncate_quietly(path: Path) -> bool:
    try:
        return truncate_log(path)
    except sqlite3.Error as error:
        _log.warning("the log of the database was not emptied: %s", error)
        return False


def _is_noted(path: Path) -> bool:
    with _open_waiting(path, _BUSY_TIMEOUT_MS) as file:
        return bool(file.execute("PRAGMA user_version").fetchone()[0])


def _expect_room(path: Path) -> None:
    # VACUUM writes the contents twice: to a temporary file and to the log.
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    if free < 2 * size + _SPARE_BYTES:
        raise sqlite3.OperationalError(
            f"to rewrite {path} takes {(2 * size + _SPARE_BYTES) // 1_000_000:,} MB, and "
            f"{free // 1_000_000:,} MB are free"
        )


@contextlib.contextmanager
def _open_waiting(path: Path, milliseconds: int) -> Iterator[sqlite3.Connection]:
    """Yield a connection that waits so long for locks and never creates a file."""
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
