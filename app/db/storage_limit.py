"""How much learners may bring along, so that the disk keeps room for their answers."""

import shutil
import time
from pathlib import Path

from fastapi import Request
from sqlalchemy import Engine, text

from app.errors import StorageFullError

LEAST_FREE = 500_000_000
"""Bytes of the disk that stay free for answers, grades and copies."""
_ASKED_AGAIN = 30.0  # seconds for which the size that a database server told holds
_SIZE = text("SELECT pg_database_size(current_database())")


class StorageLimit:
    """Refuses imports and new cards once the database or the disk is full.

    `max_gb` bounds the database, 0 does not. `folder` lies on the disk of the data.
    """

    def __init__(self, engine: Engine, folder: Path, max_gb: float) -> None:
        self._engine = engine
        self._max_gb = max_gb
        name = engine.url.database
        is_file = engine.dialect.name == "sqlite" and name
        self._file = Path(name) if is_file and name else None
        self._folders = {folder, self._file.parent} if self._file else {folder}
        self._told = 0
        self._told_at = -_ASKED_AGAIN

    def expect_room(self) -> None:
        """Raise StorageFullError where learners may bring no more."""
        self.expect_disk()
        if self.is_reached():
            raise StorageFullError(
                "This server is full: its database has reached the limit of "
                f"{self._max_gb:g} GB, so no cards can be imported or written.",
                "Answers, grades and settings are still saved. Its host can raise the "
                "limit (HEADROOM_MAX_DATA_GB).",
            )

    def expect_disk(self) -> None:
        """Raise StorageFullError where little of the disk is free."""
        free = min(shutil.disk_usage(folder).free for folder in self._folders)
        if free < LEAST_FREE:
            raise StorageFullError(
                "This server is full: its disk has too little room for files.",
                "Answers, grades and settings are still saved. Its host has to free "
                f"room: {LEAST_FREE // 1_000_000} MB are needed.",
            )

    def is_reached(self) -> bool:
        """Whether the database is as large as it may become."""
        return bool(self._max_gb) and self.database_size() >= self._max_gb * 1e9

    def database_size(self) -> int:
        """Bytes of the database, with the log beside a file."""
        if self._file is not None:
            return _size_of(self._file) + _size_of(Path(f"{self._file}-wal"))
        if time.monotonic() - self._told_at >= _ASKED_AGAIN:
            with self._engine.connect() as connection:
                self._told = int(connection.execute(_SIZE).scalar_one())
            self._told_at = time.monotonic()
        return self._told


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a log comes and goes
        return 0


def expect_storage(request: Request) -> None:
    """Let a route that brings cards be refused where the server is full."""
    limit: StorageLimit = request.app.state.storage
    limit.expect_room()
