"""How long a learner takes for cards: sums of the log, made where its rows lie."""

import datetime as dt
from typing import Any

from sqlalchemy import bindparam, distinct, func, select
from sqlmodel import Session

from app.db.insert_once import BROUGHT
from app.db.once_a_day import StudyDayCache
from app.db.tables import TABLES
from app.scheduling.card_pace import LOOK_SECONDS, NEW_SECONDS, CardPace, TimeSpent, shrink_mean

_LOG = TABLES["review"]
_MOST_LOOK = 120_000  # a forgotten screen is no slow answer
_graded = (
    _LOG.c.learner_id == bindparam("learner"),
    _LOG.c.rating > 0,
    _LOG.c.milliseconds.between(1, _MOST_LOOK),
    _LOG.c.study_day < bindparam("day"),
    # What a file brings during the day must not change what the day holds.
    _LOG.c.token.not_like(f"{BROUGHT}%"),
)
# In its first steps a card has no chance of recall yet: all of them are the first look.
_first = (*_graded, _LOG.c.recall.is_(None))
_later = (*_graded, _LOG.c.recall.is_not(None))


def _one(value: Any, *conditions: Any) -> Any:
    return select(value).where(*conditions).scalar_subquery()


_SPENT = select(
    _one(func.sum(_LOG.c.milliseconds), *_first),
    _one(func.count(distinct(_LOG.c.card)), *_first),
    _one(func.sum(_LOG.c.milliseconds), *_later),
    _one(func.count(_LOG.c.id), *_later),
)
_KEPT: StudyDayCache[CardPace] = StudyDayCache()


def card_pace(db: Session, learner_id: int, day: dt.date) -> CardPace:
    """The pace of a learner as a study day began."""
    if not learner_id:
        return CardPace()
    return _KEPT.of(db, learner_id, day, lambda: _asked(db, learner_id, day))


def _asked(db: Session, learner_id: int, day: dt.date) -> CardPace:
    values = {"learner": learner_id, "day": day.isoformat()}
    row = db.connection().execute(_SPENT, values).one()
    first, look = (TimeSpent((row[n] or 0) / 1000, row[n + 1]) for n in (0, 2))
    return CardPace(shrink_mean(first, NEW_SECONDS), shrink_mean(look, LOOK_SECONDS))
