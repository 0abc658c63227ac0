"""The log of predictions, and the finished mock exams that they are held against."""

import datetime as dt
import json

from sqlalchemy import bindparam, func, select
from sqlmodel import Session

from app.db.counted_scores import ATTEMPT, NEWEST, REGRADE, SCORE
from app.db.insert_once import insert_if_absent
from app.db.tables import TABLES, Prediction
from app.mastery.readiness import RULE, ScoreForecast
from app.mastery.turnout import ExamResult, ScorePrediction
from app.web.clock import to_milliseconds

_PREDICTION = TABLES["prediction"]
_SITTING = TABLES["sitting"]

_KEPT = select(_PREDICTION.c.id).where(
    _PREDICTION.c.learner_id == bindparam("learner"),
    _PREDICTION.c.exam == bindparam("exam"),
    _PREDICTION.c.day == bindparam("day"),
)


def is_kept(db: Session, learner_id: int, exam: str, day: dt.date) -> bool:
    """Whether a prediction of that study day is in the log."""
    values = {"learner": learner_id, "exam": exam, "day": day.isoformat()}
    return db.connection().execute(_KEPT, values).first() is not None


def keep_first(
    db: Session,
    learner_id: int,
    ahead: ScoreForecast,
    target: int | None,
    when: tuple[dt.date, dt.datetime],
) -> None:
    """Write down what is shown on a study day; the first of the day stays."""
    day, now = when
    chance = ahead.chance(target / 100) if target is not None else None
    values = {
        "learner_id": learner_id,
        "exam": ahead.exam,
        "day": day.isoformat(),
        "rule": RULE,
        "questions": ahead.questions,
        "answers": ahead.answers,
        "expected": ahead.mean,
        "low": ahead.low,
        "high": ahead.high,
        "target": target,
        "chance": chance,
        "at": to_milliseconds(now),
    }
    insert_if_absent(db, Prediction, values)


_PREDICTIONS = select(
    *(_PREDICTION.c[name] for name in ("exam", "day", "at", "questions", "expected", "low", "high"))
).where(_PREDICTION.c.learner_id == bindparam("learner"))


def told(db: Session, learner_id: int) -> tuple[ScorePrediction, ...]:
    """Everything that a learner was told."""
    rows = db.connection().execute(_PREDICTIONS, {"learner": learner_id})
    return tuple(
        ScorePrediction(exam, dt.date.fromisoformat(day), *rest) for exam, day, *rest in rows
    )


_RESULTS = (
    select(
        _SITTING.c.id,
        _SITTING.c.exam,
        _SITTING.c.started_at,
        _SITTING.c.paper,
        func.coalesce(func.sum(SCORE), 0.0),
        func.count(ATTEMPT.c.id),
    )
    .join(ATTEMPT, ATTEMPT.c.sitting_id == _SITTING.c.id, isouter=True)
    .join(REGRADE, NEWEST, isouter=True)
    .where(_SITTING.c.learner_id == bindparam("learner"), _SITTING.c.closed_at.is_not(None))
    .group_by(_SITTING.c.id)
    .order_by(_SITTING.c.started_at.desc())
    .limit(bindparam("most"))
)


def results(db: Session, learner_id: int, most: int) -> tuple[ExamResult, ...]:
    """The last `most` closed sittings with their points."""
    values = {"learner": learner_id, "most": most}
    rows = db.connection().execute(_RESULTS, values).all()
    return tuple(
        ExamResult(number, exam, started, score, len(json.loads(paper)), answered)
        for number, exam, started, paper, score, answered in rows
    )
