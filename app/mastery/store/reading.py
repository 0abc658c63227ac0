"""The pages that a learner read in, put together only after more was read.

A long past has hundreds of marks, and most visits add none. A mark is made, moved to
a later moment or removed: so their number and moments tell whether any has changed.
"""

import collections
import dataclasses
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, String, bindparam, cast, func, select
from sqlmodel import Session

from app.db.tables import TABLES

_READING = TABLES["reading"]
_LEARNERS = 500
_mine = _READING.c.learner_id == bindparam("learner")
_STATE = select(
    func.count().label("marks"), func.max(_READING.c.at), func.sum(_READING.c.at)
).where(_mine)
# Names of sections hold neither space nor @; that of a page without any is empty.
_PAGES = (
    select(
        _READING.c.topic,
        func.aggregate_strings(_READING.c.section + "@" + cast(_READING.c.at, String), " "),
        func.max(_READING.c.at).label("at"),
        func.count(),
        func.sum(_READING.c.at),
    )
    .where(_mine)
    .group_by(_READING.c.topic)
    .order_by(func.max(_READING.c.at).desc())
)


@dataclasses.dataclass(frozen=True, slots=True)
class PageProgress:
    """A page that was opened: when its sections were read in ms, and when the last."""

    topic: str
    sections: Mapping[str, int]
    at: int


Pages = Sequence[PageProgress]
State = tuple[Any, ...]
_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[Engine, collections.OrderedDict[int, tuple[State, Pages]]] = (
    weakref.WeakKeyDictionary()
)


def pages(db: Session, learner_id: int) -> Pages:
    """The pages that this learner has read in, the last one first."""
    engine = db.get_bind().engine
    with _lock:
        kept = _kept.setdefault(engine, collections.OrderedDict())
        known = kept.get(learner_id)
    if (
        known is not None
        and known[0] == db.connection().execute(_STATE, {"learner": learner_id}).first()
    ):
        return known[1]
    found = _read(db, learner_id)
    with _lock:
        kept[learner_id] = found
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)
    return found[1]


def _read(db: Session, learner_id: int) -> tuple[State, Pages]:
    """The pages and, from the same look, the state that they are of."""
    rows = db.connection().execute(_PAGES, {"learner": learner_id}).all()
    made = tuple(PageProgress(topic, _moments(text), at) for topic, text, at, *_ in rows)
    if not rows:
        return (0, None, None), made
    marks, moments = sum(row[3] for row in rows), sum(row[4] for row in rows)
    return (marks, rows[0].at, moments), made


def _moments(text: str) -> dict[str, int]:
    marks = (mark.rpartition("@") for mark in text.split(" "))
    return {section: int(at) for section, _, at in marks}
