"""Learners, their sessions and their device codes in the database."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlmodel import Session, col, delete, update

from app.db.insert_once import insert_once
from app.db.tables import DeviceCode, Learner, LearnerSession
from app.learners.store.sessions import Arrival, begin_session, learner_of
from app.web.clock import milliseconds, moment

# Every request asks the first and every write the second.
_FIND = (
    select(
        col(LearnerSession.revoked_at),
        col(LearnerSession.last_seen),
        col(Learner.id),
        col(Learner.key),
        col(Learner.name),
        col(Learner.zone),
        col(Learner.exam_day),
        col(Learner.minutes_a_day),
        col(Learner.retention),
        col(Learner.target),
        col(Learner.calendar),
        col(Learner.missed),
        col(Learner.acts),
    )
    .join_from(LearnerSession, Learner, col(Learner.id) == LearnerSession.learner_id)
    .where(col(LearnerSession.digest) == bindparam("wanted"))
)
_COUNT = (
    update(Learner)
    .where(col(Learner.id) == bindparam("wanted"))
    .values(changes=Learner.changes + 1)
    .returning(col(Learner.id))
)


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """A session and its learner, as they lie in the tables."""

    revoked_at: int | None
    last_seen: int
    id: int
    key: str
    name: str
    zone: str
    exam_day: str | None
    minutes_a_day: int
    retention: float
    target: int | None
    calendar: bool
    missed: bool
    acts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Enrollment:
    """What the first write puts down about a learner; `arrival` is their browser."""

    key: str
    zone: str
    arrival: Arrival


@dataclasses.dataclass(frozen=True, slots=True)
class Person:
    """A learner as a list names them; `last_seen` is told to within a day."""

    id: int
    name: str
    created: dt.datetime
    last_seen: dt.datetime


def people(db: Session) -> list[Person]:
    """Every learner, the first one first."""
    rows = db.execute(
        select(
            col(Learner.id),
            col(Learner.name),
            col(Learner.created_at),
            func.max(col(LearnerSession.last_seen)),
        )
        .join_from(
            Learner,
            LearnerSession,
            col(LearnerSession.learner_id) == Learner.id,
            isouter=True,
        )
        .group_by(col(Learner.id), col(Learner.name), col(Learner.created_at))
        .order_by(col(Learner.id))
    )
    return [
        Person(number, name, moment(born), moment(seen or born))
        for number, name, born, seen in rows
    ]


def find_learner(db: Session, digest: str) -> Known | None:
    """The session whose key has this digest, with its learner; None before a write."""
    row = db.connection().execute(_FIND, {"wanted": digest}).first()
    return Known(*tuple(row)) if row else None


_OF_NUMBER = (
    select(
        *(
            col(column)
            for column in (
                Learner.id,
                Learner.key,
                Learner.name,
                Learner.zone,
                Learner.exam_day,
                Learner.minutes_a_day,
                Learner.retention,
                Learner.target,
                Learner.calendar,
                Learner.missed,
                Learner.acts,
            )
        )
    )
).where(col(Learner.id) == bindparam("wanted"))


def learner_numbered(db: Session, learner_id: int) -> Known | None:
    """A learner without a browser, as a calendar program asks for them."""
    row = db.connection().execute(_OF_NUMBER, {"wanted": learner_id}).first()
    return Known(None, 0, *tuple(row)) if row else None


def enroll(db: Session, enrollment: Enrollment) -> int:
    """Write a learner down at the first thing worth keeping; returns the id."""
    arrival = enrollment.arrival
    row = Learner(
        key=enrollment.key,
        zone=enrollment.zone,
        created_at=milliseconds(arrival.at),
    ).model_dump(exclude={"id"})
    number = insert_once(db, Learner, row)
    if number is None:  # another first write of theirs came at the same moment
        number = learner_of(db, arrival.digest)
    else:
        begin_session(db, number, arrival)
    return number or 0


def count_change(db: Session, learner_id: int) -> bool:
    """Note that something of this learner changes, so that kept pages fall away.

    Says whether there is such a learner still. With many writers at a time, others
    who write for the same learner wait here until this transaction has ended.
    """
    return db.connection().execute(_COUNT, {"wanted": learner_id}).first() is not None


def hold(db: Session, learner_id: int) -> None:
    """Wait for others who write for this learner; without counting a change."""
    db.execute(
        select(col(Learner.id)).where(col(Learner.id) == learner_id).with_for_update()
    )


def change_settings(db: Session, learner_id: int, values: Mapping[str, Any]) -> None:
    """Set columns of one learner."""
    db.execute(update(Learner).where(col(Learner.id) == learner_id).values(**values))


def add_code(db: Session, learner_id: int, digest: str, expires: dt.datetime) -> None:
    """Keep a device code; earlier ones of this learner stop working."""
    void_codes(db, learner_id)
    db.add(
        DeviceCode(
            learner_id=learner_id, digest=digest, expires_at=milliseconds(expires)
        )
    )


def use_code(db: Session, digest: str, now: dt.datetime) -> int | None:
    """The learner whose code this is, once and in time; else None."""
    return db.scalar(
        update(DeviceCode)
        .where(
            col(DeviceCode.digest) == digest,
            col(DeviceCode.used_at).is_(None),
            col(DeviceCode.expires_at) > milliseconds(now),
        )
        .values(used_at=milliseconds(now))
        .returning(col(DeviceCode.learner_id))
    )


def void_codes(db: Session, learner_id: int) -> None:
    """Let no code of this learner work any more."""
    db.execute(delete(DeviceCode).where(col(DeviceCode.learner_id) == learner_id))
