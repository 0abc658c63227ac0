"""How long a learner took for what is in the logs: sums, made where the rows lie."""

import datetime as dt

from sqlalchemy import bindparam, func, select
from sqlmodel import Session

from app.cards.store import card_pace
from app.content.live.library import Library
from app.db.once_a_day import StudyDayCache
from app.db.tables import TABLES
from app.learners.current import LearnerProfile
from app.progress.pace import USUAL, StudyPace, pace_of, page_spent
from app.scheduling.card_pace import TimeSpent
from app.scheduling.study_day import study_day_start
from app.web.clock import to_milliseconds

_ATTEMPT = TABLES["attempt"]
_READING = TABLES["reading"]

# A forgotten screen is no slow answer.
_MOST_ANSWER = 600_000
_answered = (
    _ATTEMPT.c.learner_id == bindparam("learner"),
    _ATTEMPT.c.study_day < bindparam("day"),
    _ATTEMPT.c.milliseconds.between(1, _MOST_ANSWER),
)


_spent = (
    select(
        func.sum(_ATTEMPT.c.milliseconds).label("taken"),
        func.count(_ATTEMPT.c.id).label("answers"),
    )
    .where(*_answered)
    .subquery()
)
# One question: the sums beside each section that was read, or alone.
_SPENT = select(_spent, _READING.c.topic, _READING.c.section, _READING.c.at).select_from(
    _spent.outerjoin(
        _READING,
        (_READING.c.learner_id == bindparam("learner")) & (_READING.c.at < bindparam("begun")),
    )
)


_KEPT: StudyDayCache[StudyPace] = StudyDayCache()


def pace(db: Session, learner: LearnerProfile, library: Library, day: dt.date) -> StudyPace:
    """How long this learner takes, as the study day `day` began.

    What is usual for one who has no row yet.
    """
    if not learner.id:
        return USUAL
    return _KEPT.of(db, learner.id, day, lambda: _asked(db, learner, library, day))


def _asked(db: Session, learner: LearnerProfile, library: Library, day: dt.date) -> StudyPace:
    values = {
        "learner": learner.id,
        "day": day.isoformat(),
        "begun": to_milliseconds(study_day_start(day, learner.zone)),
    }
    rows = db.connection().execute(_SPENT, values).all()
    read = ((r.topic, r.section, r.at) for r in rows if r.topic is not None)
    question = TimeSpent((rows[0].taken or 0) / 1000, rows[0].answers)
    page = page_spent(read, library.topics)
    return pace_of(card_pace(db, learner.id, day), question, page)
