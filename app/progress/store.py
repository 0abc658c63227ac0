"""SQL: shown predictions, and calendar feed URLs."""

import dataclasses
import datetime as dt
import json
import logging

from fastapi import Request
from sqlalchemy import bindparam, delete, func, insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.clock import to_milliseconds
from app.database.engine import (
    ATTEMPT,
    NEWEST,
    REGRADE,
    SCORE,
    DbSession,
    insert_if_absent,
    run_query,
    write_in_own_transaction,
)
from app.database.tables import TABLES, CalendarFeed, Learner, Prediction
from app.mastery.readiness import RULE, ExamResult, ScoreForecast, ScorePrediction
from app.study_plan.loader import CurrentSnapshot

_PREDICTION = TABLES["prediction"]
_SITTING = TABLES["sitting"]

_KEPT = select(_PREDICTION.c.id).where(
    _PREDICTION.c.learner_id == bindparam("learner"),
    _PREDICTION.c.exam == bindparam("exam"),
    _PREDICTION.c.day == bindparam("day"),
)


def is_kept(db: Session, learner_id: int, exam: str, day: dt.date) -> bool:
    """Return whether a prediction of that study day is in the log."""
    values = {"learner": learner_id, "exam": exam, "day": day.isoformat()}
    return db.connection().execute(_KEPT, values).first() is not None


def keep_first(
    db: Session,
    learner_id: int,
    ahead: ScoreForecast,
    target: int | None,
    when: tuple[dt.date, dt.datetime],
) -> None:
    """Save the prediction shown on a study day; the first one of the day stays."""
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


def load_predictions(db: Session, learner_id: int) -> tuple[ScorePrediction, ...]:
    """Return all predictions shown to a learner."""
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


def load_exam_results(db: Session, learner_id: int, most: int) -> tuple[ExamResult, ...]:
    """Return the last `most` closed sittings with their scores."""
    values = {"learner": learner_id, "most": most}
    rows = db.connection().execute(_RESULTS, values).all()
    return tuple(
        ExamResult(number, exam, started, score, len(json.loads(paper)), answered)
        for number, exam, started, paper, score, answered in rows
    )


_log = logging.getLogger("headroom")


async def log_prediction(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> None:
    """Save the first prediction of the day before the page that shows it is sent.

    These pages are GET requests and change nothing for the learner, so `changes` stays as it is and
    cached pages stay valid. If the log cannot be written, the page is still shown.
    """
    ahead, learner = snapshot.ahead, snapshot.learner
    if ahead is None or not learner.id:
        return
    day = snapshot.day
    if await run_query(db, lambda: is_kept(db, learner.id, ahead.exam, day)):
        return
    when = (day, snapshot.now)
    try:
        await write_in_own_transaction(
            request,
            lambda own: keep_first(own, learner.id, ahead, learner.target, when),
        )
    except SQLAlchemyError:
        _log.exception("a prediction could not be written down")


def feed_key(db: Session, learner_id: int) -> str:
    """Return the key in the learner's feed URL; empty if there is none."""
    mine = col(CalendarFeed.learner_id) == learner_id
    return db.scalar(select(col(CalendarFeed.key)).where(mine)) or ""


@dataclasses.dataclass(frozen=True, slots=True)
class CalendarFeedKey:
    """The learner of a calendar feed; `changes` grows with every write of that person."""

    learner_id: int
    changes: int


def find_feed(db: Session, key: str) -> CalendarFeedKey | None:
    """Return the feed with this key; None if there is none."""
    writer = aliased(Learner)
    changes = select(func.sum(col(writer.changes))).where(col(writer.person) == col(Learner.person))
    wanted = (
        select(col(Learner.id), changes.scalar_subquery())
        .join_from(CalendarFeed, Learner, col(Learner.id) == CalendarFeed.learner_id)
        .where(col(CalendarFeed.key) == key)
    )
    row = db.execute(wanted).first()
    return CalendarFeedKey(row[0], row[1]) if row else None


def renew_feed(db: Session, learner_id: int, key: str, now: dt.datetime) -> None:
    """Replace the learner's feed key by `key`; an empty one only ends the feed."""
    mine = col(CalendarFeed.learner_id) == learner_id
    db.execute(delete(CalendarFeed).where(mine))
    if key:
        row = {"learner_id": learner_id, "key": key, "at": to_milliseconds(now)}
        db.execute(insert(CalendarFeed).values(**row))
