"""Has anything been written; per-study-day cache."""

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
    """A reader beside the pool that notices the writes of every process.

    One instance belongs to one event loop. Its questions take microseconds and
    never wait: readers of a write-ahead log are not blocked by writers.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def beat(self) -> int:
        """A number that changes whenever anybody has committed something."""
        rows = self._ask("PRAGMA data_version", ())
        return int(rows[0][0])

    def changes(self, digest: str) -> int | None:
        """A number that every write of a session's learner moves, in whatever course.

        −1 where nobody has such a session yet, None where it was revoked. The number
        holds the birth of the learner's row: whoever erased everything and begins
        again with the same key is not shown what was counted before.
        """
        rows = self._ask(_CHANGES, (digest,))
        number: int | None = rows[0][0] if rows else -1
        return number

    def close(self) -> None:
        """Let the file go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, question: str, values: tuple[str, ...]) -> list[tuple[Any]]:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"{Path(self._path).absolute().as_uri()}?mode=rw",  # never a new file
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        return self._connection.execute(question, values).fetchall()


def create_data_version(engine: Engine) -> DataVersion | None:
    """The pulse of a SQLite file; None where asking would cost a round trip."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return None
    return DataVersion(engine.url.database)


_LEARNERS = 2000
Value = TypeVar("Value")


class StudyDayCache(Generic[Value]):
    """One kind of value. What it is made of must not change during the day."""

    def __init__(self) -> None:
        self._kept: weakref.WeakKeyDictionary[Engine, LRUCache[int, tuple[dt.date, Value]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, db: Session, learner_id: int, day: dt.date, ask: Callable[[], Value]) -> Value:
        """The value of a learner on a study day; `ask` makes it where none is kept."""
        kept = self._kept.setdefault(db.get_bind().engine, LRUCache(_LEARNERS))
        known = kept.get(learner_id)
        if known is not None and known[0] == day:
            return known[1]
        found = ask()
        kept[learner_id] = (day, found)
        return found
