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

from app.database.file_guards import open_sqlite_file

LARGEST_DAILY = 64 * 1024 * 1024
"""Maximum file size in bytes for a VACUUM while the server runs: a second or two."""
LARGEST_AT_START = 512 * 1024 * 1024
"""Maximum file size in bytes for a VACUUM before the server accepts requests: some ten seconds.

If a start took minutes, a process supervisor would kill it, again and again.
"""
_MIN_SECONDS_BETWEEN_TRUNCATIONS = 15.0  # seconds between two truncations
_BUSY_TIMEOUT_MS = 200  # milliseconds that other writers may wait for a truncation
_SPARE_BYTES = 64 * 1024 * 1024  # bytes that must stay free while the file is rewritten
_log = logging.getLogger("headroom")


def mark_database_for_vacuum(db: Session) -> None:
    """Record that the file has to be vacuumed, by a random number so that no erasure is lost."""
    if db.get_bind().dialect.name == "sqlite":
        mark = secrets.randbelow(2**31 - 1) + 1
        db.connection().exec_driver_sql(f"PRAGMA user_version = {mark}")


class WalTruncator:
    """Truncates the write-ahead log on request, at most once in `min_seconds_between` seconds."""

    def __init__(
        self, engine: Engine, min_seconds_between: float = _MIN_SECONDS_BETWEEN_TRUNCATIONS
    ) -> None:
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        self._path = Path(file) if file else None
        self._pause = min_seconds_between
        self._requested = False
        self._task: asyncio.Task[None] | None = None

    async def request_truncation(self) -> None:
        """Request a truncation, now or in the next run. Returns at once."""
        self._requested = self._path is not None
        if self._path and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._truncate_while_requested(self._path))

    async def truncate_and_stop(self) -> None:
        """Truncate the log before the server stops, and request nothing more."""
        if self._task is not None:
            self._task.cancel()
        if self._path is not None:
            await asyncio.to_thread(truncate_write_ahead_log, self._path)

    async def _truncate_while_requested(self, path: Path) -> None:
        while self._requested:
            self._requested = False
            if not await asyncio.to_thread(truncate_write_ahead_log, path):
                self._requested = True
            await asyncio.sleep(self._pause)


def truncate_write_ahead_log(path: Path) -> bool:
    """Truncate the write-ahead log; returns False if a reader prevents it. Writers wait briefly."""
    try:
        with _open_with_secure_delete(path) as file:
            return _checkpoint_and_truncate(file)
    except sqlite3.Error as error:
        _log.warning("the log of the database was not emptied: %s", error)
        return False


def vacuum_file_if_marked(
    path: Path, max_bytes: int, *, refuse_other_connections: bool = False
) -> bool:
    """`vacuum_file_and_clear_mark` for a file of up to `max_bytes` bytes from which something was erased."""
    with _open_with_secure_delete(path) as file:
        (mark,) = file.execute("PRAGMA user_version").fetchone()
    if mark and path.stat().st_size > max_bytes:
        _log.warning(
            "What erased learners left in unused space of %s is not removed: the file "
            "is too large. Stop the server and run `headroom db vacuum`.",
            path,
        )
        return False
    return bool(mark) and vacuum_file_and_clear_mark(
        path, refuse_other_connections=refuse_other_connections
    )


def vacuum_file_and_clear_mark(path: Path, *, refuse_other_connections: bool = False) -> bool:
    """Rewrite a file without what was erased. Returns False if a reader still uses old pages.

    Clears the mark of `mark_database_for_vacuum` unless more was erased meanwhile. Raises
    sqlite3.OperationalError if the disk has too little space, if others write without a
    pause, or, with `refuse_other_connections`, if another process has the file open.
    """
    # VACUUM writes the contents twice: to a temporary file and to the log.
    needed_bytes = 2 * path.stat().st_size + _SPARE_BYTES
    free_bytes = shutil.disk_usage(path.parent).free
    if free_bytes < needed_bytes:
        raise sqlite3.OperationalError(
            f"to rewrite {path} takes {needed_bytes // 1_000_000:,} MB, and "
            f"{free_bytes // 1_000_000:,} MB are free"
        )
    with _open_with_secure_delete(path) as file:
        if refuse_other_connections:
            file.execute("PRAGMA locking_mode=EXCLUSIVE")
        else:
            file.execute("PRAGMA busy_timeout=5000")  # waiting for others blocks nobody
        (mark,) = file.execute("PRAGMA user_version").fetchone()
        file.execute("VACUUM")
        file.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
        if not _checkpoint_and_truncate(file):
            return False
        file.execute("BEGIN IMMEDIATE")
        if file.execute("PRAGMA user_version").fetchone() == (mark,):
            file.execute("PRAGMA user_version = 0")
        file.execute("COMMIT")
        return True


def _checkpoint_and_truncate(file: sqlite3.Connection) -> bool:
    file.execute("PRAGMA wal_checkpoint(PASSIVE)")  # does most of the work without blocking anyone
    busy, _pages, _moved = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


@contextlib.contextmanager
def _open_with_secure_delete(path: Path) -> Iterator[sqlite3.Connection]:
    with open_sqlite_file(path, "rw", timeout=_BUSY_TIMEOUT_MS / 1000) as file:
        file.execute("PRAGMA secure_delete=ON")
        yield file
