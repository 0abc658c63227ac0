"""How long a learner took for what is in the logs: sums, made where the rows lie."""

from typing import Any

from sqlalchemy import bindparam, distinct, func, select
from sqlmodel import Session, SQLModel

from app.content.live.library import Library
from app.progress.pace import USUAL, Pace, Spent, pace_of, page_spent

_REVIEW = SQLModel.metadata.tables["review"]
_ATTEMPT = SQLModel.metadata.tables["attempt"]
_READING = SQLModel.metadata.tables["reading"]

# A forgotten screen is no slow answer.
_MOST_LOOK, _MOST_ANSWER = 120_000, 600_000
_graded = (
    _REVIEW.c.learner_id == bindparam("learner"),
    _REVIEW.c.rating > 0,
    _REVIEW.c.milliseconds.between(1, _MOST_LOOK),
)
# In its first steps a card has no chance of recall yet: all of them are the first look.
_first = (*_graded, _REVIEW.c.recall.is_(None))
_later = (*_graded, _REVIEW.c.recall.is_not(None))
_answered = (
    _ATTEMPT.c.learner_id == bindparam("learner"),
    _ATTEMPT.c.milliseconds.between(1, _MOST_ANSWER),
)


def _one(value: Any, *conditions: Any) -> Any:
    return select(value).where(*conditions).scalar_subquery()


_review_time, _answer_time = (
    func.sum(table.c.milliseconds) for table in (_REVIEW, _ATTEMPT)
)
_SPENT = select(
    _one(_review_time, *_first),
    _one(func.count(distinct(_REVIEW.c.card)), *_first),
    _one(_review_time, *_later),
    _one(func.count(_REVIEW.c.id), *_later),
    _one(_answer_time, *_answered),
    _one(func.count(_ATTEMPT.c.id), *_answered),
)
_READ = select(_READING.c.topic, _READING.c.section, _READING.c.at).where(
    _READING.c.learner_id == bindparam("learner")
)


def pace(db: Session, learner_id: int, library: Library) -> Pace:
    """How long this learner takes; what is usual for one who has no row yet."""
    if not learner_id:
        return USUAL
    values = {"learner": learner_id}
    row = db.connection().execute(_SPENT, values).one()
    first, look, answer = (
        Spent((row[n] or 0) / 1000, row[n + 1]) for n in range(0, len(row), 2)
    )
    read = db.connection().execute(_READ, values).all()
    page = page_spent(((r[0], r[1], r[2]) for r in read), library.topics)
    return pace_of(first, look, answer, page)
