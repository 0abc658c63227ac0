"""Detects writes to the database by any process, and caches values per study day."""

import datetime as dt
import sqlite3
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from cachetools import LRUCache
from sqlalchemy import Engine
from sqlmodel import Session

_CHANGES = """
SELECT CASE WHEN s.revoked_at IS NULL THEN (l.created_at << 20) + (
  SELECT sum(o.changes) FROM learner AS o WHERE o.person = l.person
) END
FROM learner_session AS s JOIN learner AS l ON l.id = s.learner_id
WHERE s.digest = ?
"""


class DataVersion:
    """Detects writes by any process through a separate SQLite connection.

    Use one instance per event loop. Queries take microseconds and never wait, because
    writers do not block readers of a write-ahead log.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def read_version(self) -> int:
        """Return a number that changes with every commit of another connection."""
        rows = self._ask("PRAGMA data_version", ())
        return int(rows[0][0])

    def changes(self, digest: str) -> int | None:
        """Return a number that changes with every write of a session's learner, in any course.

        Returns −1 if there is no such session, None if it was revoked. The number
        includes the creation time of the learner's row, so that a learner who erased
        everything and starts over with the same key never gets an old number.
        """
        rows = self._ask(_CHANGES, (digest,))
        number: int | None = rows[0][0] if rows else -1
        return number

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, question: str, values: tuple[str, ...]) -> list[tuple[Any]]:
        if self._connection is None:
            self._connection = sqlite3.connect(
                # fail instead of creating a new file
                f"{Path(self._path).absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        return self._connection.execute(question, values).fetchall()


def create_data_version(engine: Engine) -> DataVersion | None:
    """Return the change detector of a SQLite file; None for databases behind a network."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return None
    return DataVersion(engine.url.database)


_LEARNERS = 2000
Value = TypeVar("Value")


class StudyDayCache(Generic[Value]):
    """Cache of one value per learner and study day. The value must not change during the day."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[Engine, LRUCache[int, tuple[dt.date, Value]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, db: Session, learner_id: int, day: dt.date, ask: Callable[[], Value]) -> Value:
        """Return a learner's value on a study day, calling `ask` if it is not cached."""
        kept = self._kept.setdefault(db.get_bind().engine, LRUCache(_LEARNERS))
        known = kept.get(learner_id)
        if known is not None and known[0] == day:
            return known[1]
        found = ask()
        kept[learner_id] = (day, found)
        return found
