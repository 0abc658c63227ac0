"""Whether the database file is still the one that was opened.

Whoever has opened a file may go on writing into it after it was deleted, moved or
replaced, and nobody will ever find what was written.
"""

import os
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

_OPTION = "headroom_file"


class DatabaseGoneError(SQLAlchemyError):
    """The database file was deleted, moved or replaced while it was in use."""


class DatabaseFileGuard:
    """Remembers which file lies at a path: by its number, which a name outlives."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = self._look()

    @property
    def options(self) -> dict[str, Any]:
        """How an engine is told of it."""
        return {_OPTION: self}

    def expect(self, *_event: object) -> None:
        """Raise DatabaseGone where the file is not there any more."""
        if self._number is not None and self._look() != self._number:
            raise DatabaseGoneError(
                f"the database {self._path} was deleted, moved or replaced while the "
                "server was running; put it back, or stop the server and start it again"
            )

    def note(self, *_event: object) -> None:
        """A connection has just opened the file."""
        if self._number is None:
            self._number = self._look()

    def forget(self, *_event: object) -> None:
        """Every connection was closed: the next may open another file."""
        self._number = None

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - asked at every write
        except OSError:
            return None
        return found.st_dev, found.st_ino


def expect_database(engine: Engine) -> None:
    """Raise DatabaseGone where a SQLite file does not lie where it was opened.

    It costs a microsecond. A server says itself when a database is gone.
    """
    opened: DatabaseFileGuard | None = engine.get_execution_options().get(_OPTION)
    if opened is not None:
        opened.expect()
