"""SQL: shown predictions, exam results, calendar feed URLs, and mail subscriptions."""

import dataclasses
import datetime as dt
import json

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.clock import to_milliseconds
from app.database.engine import ATTEMPT, NEWEST, REGRADE, SCORE
from app.database.tables import TABLES, CalendarFeed, Learner
from app.progress.predictions import ExamResult, ScorePrediction

_PREDICTION = TABLES["prediction"]
_SITTING = TABLES["sitting"]

_PREDICTIONS = select(
    *(_PREDICTION.c[name] for name in ("exam", "day", "at", "questions", "expected", "low", "high"))
).where(_PREDICTION.c.learner_id == bindparam("learner"))


def load_score_predictions(db: Session, learner_id: int) -> tuple[ScorePrediction, ...]:
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
    .limit(bindparam("limit"))
)


def load_exam_results(db: Session, learner_id: int, limit: int) -> tuple[ExamResult, ...]:
    """Return the last `limit` closed sittings with their scores."""
    values = {"learner": learner_id, "limit": limit}
    rows = db.connection().execute(_RESULTS, values).all()
    return tuple(
        ExamResult(number, exam, started, score, len(json.loads(paper)), answered)
        for number, exam, started, paper, score, answered in rows
    )


def load_feed_key(db: Session, learner_id: int) -> str:
    """Return the key in the learner's feed URL; empty if there is none."""
    is_own = col(CalendarFeed.learner_id) == learner_id
    return db.scalar(select(col(CalendarFeed.key)).where(is_own)) or ""


@dataclasses.dataclass(frozen=True, slots=True)
class CalendarFeedOwner:
    """The learner of a calendar feed; `change_count` grows with every write of that person."""

    learner_id: int
    change_count: int


def find_feed_owner(db: Session, feed_key: str) -> CalendarFeedOwner | None:
    """Return the feed with this key; None if there is none."""
    writer = aliased(Learner)
    changes = select(func.sum(col(writer.changes))).where(col(writer.person) == col(Learner.person))
    query = (
        select(col(Learner.id), changes.scalar_subquery())
        .join_from(CalendarFeed, Learner, col(Learner.id) == CalendarFeed.learner_id)
        .where(col(CalendarFeed.key) == feed_key)
    )
    row = db.execute(query).first()
    return CalendarFeedOwner(row[0], row[1]) if row else None


def replace_feed_key(db: Session, learner_id: int, new_key_or_empty: str, now: dt.datetime) -> None:
    """Replace the learner's feed key by `new_key_or_empty`; an empty one only ends the feed."""
    is_own = col(CalendarFeed.learner_id) == learner_id
    db.execute(delete(CalendarFeed).where(is_own))
    if new_key_or_empty:
        row = {"learner_id": learner_id, "key": new_key_or_empty, "at": to_milliseconds(now)}
        db.execute(insert(CalendarFeed).values(**row))


@dataclasses.dataclass(frozen=True, slots=True)
class MailSubscription:
    """An address for the weekly summary; `last_mail_day` is an ISO date, empty before a mail."""

    learner_id: int
    address: str
    link_key: str
    confirmed: bool
    last_mail_day: str


_SUBSCRIPTION = select(
    *(TABLES["learner"].c[n] for n in ("id", "mail", "mail_key", "mail_confirmed", "mailed"))
)


def list_mail_subscriptions(db: Session) -> tuple[MailSubscription, ...]:
    """Return the addresses of all learners who gave one."""
    return tuple(
        MailSubscription(*row)
        for row in db.connection().execute(_SUBSCRIPTION.where(col(Learner.mail) != ""))
    )


def find_mail_subscription(db: Session, link_key: str) -> MailSubscription | None:
    """Return the address whose mails link to `link_key`; None if there is none."""
    row = (
        db.connection().execute(_SUBSCRIPTION.where(col(Learner.mail_key) == link_key)).first()
        if link_key
        else None
    )
    return MailSubscription(*row) if row else None


def claim_mail_delivery(db: Session, subscription: MailSubscription, day: dt.date) -> bool:
    """Record that a mail goes out; False if another process did so or the subscription changed."""
    is_subscriber = (
        col(Learner.id) == subscription.learner_id,
        col(Learner.mail_key) == subscription.link_key,
    )
    is_unchanged = col(Learner.mailed) == subscription.last_mail_day
    result = db.execute(
        update(Learner).where(*is_subscriber, is_unchanged).values(mailed=day.isoformat())
    )
    return bool(result.rowcount)  # type: ignore[attr-defined] # a cursor result
