"""Answers by question, read once and then only what was added.

The log of answers only grows, and a veteran has thousands of rows of it. So each
process keeps the first answers of the learners it served last and asks for the rows
since the newest that it knows. That row comes along as the proof that the log is
still the same one. With several writers an earlier number may be committed later, so
there the number of all rows proves that none was missed; SQLite has one writer. Where
answers were graded again since, all are read again.
"""

import collections
import dataclasses
import datetime as dt
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, bindparam, func, select
from sqlmodel import Session

from app.db.counted_scores import ATTEMPT, GRADED, REGRADE, SCORE
from app.mastery.evidence import AnswerHistory
from app.mastery.standing import AnswerHistories

_mine = ATTEMPT.c.learner_id == bindparam("learner")
_ROW = ("id", "token", "at")
_ANSWER = ("item", "first", "study_day", "hints", "certainty")
_regraded = REGRADE.alias()
_REGRADES = [
    select(number)
    .where(_regraded.c.learner_id == bindparam("learner"))
    .scalar_subquery()
    .label(name)
    for name, number in (
        ("regrades", func.count(_regraded.c.id)),
        ("last_regrade", func.max(_regraded.c.id)),
    )
]
# This runs through the index alone; only new rows are looked up.
_SINCE = (
    select(
        *(ATTEMPT.c[name] for name in (*_ROW, *_ANSWER)),
        SCORE.label("score"),
        *_REGRADES,
    )
    .select_from(GRADED)
    .where(_mine, ATTEMPT.c.id >= bindparam("since"))
    .order_by(ATTEMPT.c.id)
)
_ALL = select(func.count()).where(_mine)
_LEARNERS = 500


@dataclasses.dataclass(frozen=True, slots=True)
class CachedAnswers:
    """The first answers of a learner by question, as far as row `last` of the log.

    `rows` is the number of all answers until then; `last` is number, token and moment;
    `regrades` is how many of them were graded again, and the number of the newest.
    """

    answers: AnswerHistories = dataclasses.field(default_factory=AnswerHistories)
    rows: int = 0
    last: tuple[int, str, int] = (0, "", 0)
    regrades: tuple[int, int | None] = (0, None)


_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[Engine, collections.OrderedDict[int, CachedAnswers]] = (
    weakref.WeakKeyDictionary()
)


def first_answers(db: Session, learner_id: int) -> AnswerHistories:
    """First answers by question; those of a mock exam appear when it is closed.

    The same mapping is given again as long as no question is answered or graded again.
    """
    engine = db.get_bind().engine
    with _lock:
        kept = _kept.setdefault(engine, collections.OrderedDict())
        known = kept.get(learner_id, CachedAnswers())
    found = _catch_up(db, learner_id, known)
    with _lock:
        kept[learner_id] = found
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)
    return found.answers


def _catch_up(db: Session, learner_id: int, known: CachedAnswers) -> CachedAnswers:
    """What is known with what was added; all of it where the log is another."""
    values = {"learner": learner_id, "since": known.last[0]}
    rows = db.connection().execute(_SINCE, values).all()
    if known.rows:
        if not rows or _of(rows[0]) != (known.last, known.regrades):
            return _catch_up(db, learner_id, CachedAnswers())
        rows = rows[1:]
        if _is_short(db, learner_id, known.rows + len(rows)):
            return _catch_up(db, learner_id, CachedAnswers())
    if not rows:
        return known
    added = _changed(rows, known.answers)
    last, regrades = _of(rows[-1])
    return CachedAnswers(
        answers=known.answers.and_(added) if added else known.answers,
        rows=known.rows + len(rows),
        last=last,
        regrades=regrades,
    )


def _is_short(db: Session, learner_id: int, rows: int) -> bool:
    """Whether there are more rows than were seen one after the other."""
    connection = db.connection()
    if connection.dialect.name == "sqlite":
        return False
    return connection.execute(_ALL, {"learner": learner_id}).scalar() != rows


def _of(row: Any) -> tuple[tuple[int, str, int], tuple[int, int | None]]:
    return (row.id, row.token, row.at), (row.regrades, row.last_regrade)


def _changed(rows: Sequence[Any], known: Mapping[str, AnswerHistory]) -> dict[str, AnswerHistory]:
    """The questions of the rows: answered first in them, or once more."""
    days = {text: dt.date.fromisoformat(text) for text in {r.study_day for r in rows}}
    found: dict[str, AnswerHistory] = {}
    for row in rows:
        day, before = days[row.study_day], found.get(row.item, known.get(row.item))
        if row.first:
            found[row.item] = AnswerHistory(row.score, day, row.hints, row.certainty or 0)
        elif before is not None:
            found[row.item] = before.again(row.score, day, row.hints)
    return found
