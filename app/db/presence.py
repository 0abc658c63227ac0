"""Whether the database file is still the one that was opened.

Whoever has opened a file may go on writing into it after it was deleted, moved or
replaced, and nobody will ever find what was written.
"""

import os
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

_OPTION = "headroom_file"


class DatabaseGone(SQLAlchemyError):  # noqa: N818 - says what became of it
    """The database file was deleted, moved or replaced while it was in use."""


class OpenedFile:
    """Remembers which file lies at a path: by its number, which a name outlives."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = self._look()

    @property
    def options(self) -> dict[str, Any]:
        """How an engine is told of it."""
        return {_OPTION: self}

    def is_there(self) -> bool:
        """Whether the file that was opened still lies at its path."""
        return self._number is None or self._look() == self._number

    def expect(self, *_event: object) -> None:
        """Raise DatabaseGone where the file is not there any more."""
        if not self.is_there():
            raise DatabaseGone(
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


def database_is_there(engine: Engine) -> bool:
    """Whether a SQLite file still lies where it was opened; costs a microsecond.

    A server says itself when a database is gone, so with one the answer is yes.
    """
    opened = _opened(engine)
    return opened is None or opened.is_there()


def expect_database(engine: Engine) -> None:
    """Raise DatabaseGone where the database is not there any more."""
    opened = _opened(engine)
    if opened is not None:
        opened.expect()


def _opened(engine: Engine) -> OpenedFile | None:
    found: OpenedFile | None = engine.get_execution_options().get(_OPTION)
    return found
