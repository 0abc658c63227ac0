"""A cache of values that stay the same for a study day."""

import datetime as dt
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from cachetools import LRUCache
from sqlalchemy import Engine
from sqlmodel import Session

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
