"""Learners, their sessions and their device codes in the database."""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlmodel import Session, col, delete, update

from app.db.insert_once import insert_if_absent
from app.db.tables import DeviceCode, Learner, LearnerSession, Note, StudyDay
from app.learners.store.sessions import BrowserVisit, begin_session, rows_of
from app.web.clock import from_milliseconds, to_milliseconds

_COLUMNS: tuple[Any, ...] = tuple(
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
        Learner.all_minutes,
        Learner.double_last_week,
        Learner.days_off,
        Learner.acts,
        Learner.person,
        Learner.course,
    )
)
# Every request asks the first and every write the second.
_FIND = (
    select(
        col(LearnerSession.revoked_at),
        col(LearnerSession.last_seen),
        *_COLUMNS,
    )
    .join_from(LearnerSession, Learner, col(Learner.id) == LearnerSession.learner_id)
    .where(col(LearnerSession.digest) == bindparam("wanted"))
)
_SHARED = {"name", "zone"}
_COUNT = (
    update(Learner)
    .where(col(Learner.id) == bindparam("wanted"))
    .values(changes=Learner.changes + 1)
    .returning(col(Learner.id))
)


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerRecord:
    """A session and its learner, as they lie in the tables.

    `id` is 0 where the person is known from another course alone; `home` is then the
    row of that one.
    """

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
    all_minutes: bool
    double_last_week: bool
    days_off: str
    acts: int
    person: str
    course: str
    home: int


@dataclasses.dataclass(frozen=True, slots=True)
class Enrollment:
    """What the first write puts down about a learner; `arrival` is their browser."""

    person: str
    course: str
    name: str
    zone: str
    arrival: BrowserVisit


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerListRow:
    """A learner as a list names them; `last_seen` is of the last day with a write."""

    id: int
    name: str
    created: dt.datetime
    last_seen: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Records:
    """What a person has on this server, told so that they know it for their own."""

    person: str
    name: str
    since: dt.datetime
    last_seen: dt.datetime
    days: int
    answers: int
    reviews: int
    notes: int


def people(db: Session) -> list[LearnerListRow]:
    """Everybody, the first one first; the number is that of their oldest row."""
    rows = db.execute(
        select(
            func.min(col(Learner.id)),
            func.max(col(Learner.name)),
            func.min(col(Learner.created_at)),
            func.max(col(LearnerSession.last_seen)),
        )
        .join_from(
            Learner,
            LearnerSession,
            col(LearnerSession.learner_id) == Learner.id,
            isouter=True,
        )
        .group_by(col(Learner.person))
        .order_by(func.min(col(Learner.id)))
    )
    return [
        LearnerListRow(number, name, from_milliseconds(born), from_milliseconds(seen or born))
        for number, name, born, seen in rows
    ]


def find_learner(db: Session, digest: str, course: str = "") -> LearnerRecord | None:
    """The session whose key has this digest, with its learner; None before a write."""
    row = db.connection().execute(_FIND, {"wanted": digest}).first()
    if row is None:
        return None
    found = LearnerRecord(*[*row, row[2]])
    return found if found.course == course else _elsewhere(db, found, course)


def _elsewhere(db: Session, known: LearnerRecord, course: str) -> LearnerRecord:
    """The same person in another course than that in which this browser began."""
    wanted = {"person": known.person, "course": course}
    row = db.connection().execute(_OF_COURSE, wanted).first()
    if row:
        return LearnerRecord(*[known.revoked_at, known.last_seen, *row, known.home])
    fresh = Learner(key=key_in(known.person, course), created_at=0)
    return dataclasses.replace(
        known,
        id=0,
        key=fresh.key,
        course=course,
        exam_day=None,
        minutes_a_day=fresh.minutes_a_day,
        retention=fresh.retention,
        target=None,
        calendar=fresh.calendar,
        missed=fresh.missed,
        all_minutes=fresh.all_minutes,
        double_last_week=fresh.double_last_week,
        days_off=fresh.days_off,
        acts=fresh.acts,
    )


def key_in(person: str, course: str) -> str:
    """The key of a person in a course; it does not lead back."""
    if not course:
        return person
    return hashlib.sha256(f"{person}:{course}".encode()).hexdigest()[:32]


_OF_COURSE = select(*_COLUMNS).where(
    col(Learner.person) == bindparam("person"),
    col(Learner.course) == bindparam("course"),
)
_OF_NUMBER = select(*_COLUMNS).where(col(Learner.id) == bindparam("wanted"))


def learner_numbered(db: Session, learner_id: int) -> LearnerRecord | None:
    """A learner without a browser, as a calendar program asks for them."""
    row = db.connection().execute(_OF_NUMBER, {"wanted": learner_id}).first()
    return LearnerRecord(*[None, 0, *row, learner_id]) if row else None


def enroll(db: Session, enrollment: Enrollment) -> int:
    """Write a learner down at the first thing worth keeping; returns the id."""
    arrival = enrollment.arrival
    row = Learner(
        key=key_in(enrollment.person, enrollment.course),
        person=enrollment.person,
        course=enrollment.course,
        name=enrollment.name,
        zone=enrollment.zone,
        created_at=to_milliseconds(arrival.at),
    ).model_dump(exclude={"id"})
    number = insert_if_absent(db, Learner, row)
    if number is None:  # another first write of theirs came at the same moment
        mine = col(Learner.key) == row["key"]
        return db.scalar(select(col(Learner.id)).where(mine)) or 0
    begin_session(db, number, arrival)  # where none was begun in another course
    return number


def bump_change_counter(db: Session, learner_id: int) -> bool:
    """Note that something of this learner changes, so that kept pages fall away.

    Says whether there is such a learner still. With many writers at a time, others
    who write for the same learner wait here until this transaction has ended.
    """
    return db.connection().execute(_COUNT, {"wanted": learner_id}).first() is not None


def lock_learner(db: Session, learner_id: int) -> None:
    """Wait for others who write for this learner; without counting a change."""
    db.execute(select(col(Learner.id)).where(col(Learner.id) == learner_id).with_for_update())


def change_settings(db: Session, learner_id: int, values: Mapping[str, Any]) -> None:
    """Set columns of one learner; name and zone are the person's in every course."""
    db.execute(update(Learner).where(col(Learner.id) == learner_id).values(**values))
    shared = {name: value for name, value in values.items() if name in _SHARED}
    if shared:
        others = col(Learner.id).in_(rows_of(learner_id))
        db.execute(update(Learner).where(others).values(**shared))


def in_course(db: Session, course: str) -> int:
    """How many learners a course has."""
    theirs = select(func.count()).where(col(Learner.course) == course)
    return db.scalar(theirs) or 0


def move_to_course(db: Session, course: str) -> tuple[int, int]:
    """Give a course what was done when it was alone: how many rows, and how many not.

    Who has begun anew in the course keeps that; the row of before stays as it is.
    """
    begun = select(col(Learner.person)).where(col(Learner.course) == course)
    done = db.execute(
        update(Learner)
        .where(col(Learner.course) == "", col(Learner.person).not_in(begun))
        .values(course=course, changes=Learner.changes + 1)
    )
    return int(done.rowcount), in_course(db, "")  # type: ignore[attr-defined] # a cursor result


def add_code(db: Session, learner_id: int, digest: str, expires: dt.datetime) -> None:
    """Keep a device code; earlier ones of this learner stop working."""
    void_codes(db, learner_id)
    db.add(DeviceCode(learner_id=learner_id, digest=digest, expires_at=to_milliseconds(expires)))


def use_code(db: Session, digest: str, now: dt.datetime) -> int | None:
    """The learner whose code this is, once and in time; else None."""
    return db.scalar(
        update(DeviceCode)
        .where(
            col(DeviceCode.digest) == digest,
            col(DeviceCode.used_at).is_(None),
            col(DeviceCode.expires_at) > to_milliseconds(now),
        )
        .values(used_at=to_milliseconds(now))
        .returning(col(DeviceCode.learner_id))
    )


def find_code_owner(db: Session, digest: str, now: dt.datetime) -> int | None:
    """The learner of a code that is unused and in time; it stays unused."""
    return db.scalar(
        select(col(DeviceCode.learner_id)).where(
            col(DeviceCode.digest) == digest,
            col(DeviceCode.used_at).is_(None),
            col(DeviceCode.expires_at) > to_milliseconds(now),
        )
    )


def describe_records(db: Session, learner_id: int) -> Records:
    """How much a person has in all courses together, and since when."""
    rows = rows_of(learner_id)
    person, name, since = db.execute(
        select(
            func.max(col(Learner.person)),
            func.max(col(Learner.name)),
            func.min(col(Learner.created_at)),
        ).where(col(Learner.id).in_(rows))
    ).one()
    last_seen = db.scalar(
        select(func.max(col(LearnerSession.last_seen))).where(
            col(LearnerSession.learner_id).in_(rows)
        )
    )
    days, answers, reviews = db.execute(
        select(
            func.count(col(StudyDay.day).distinct()),
            func.sum(col(StudyDay.answers)),
            func.sum(col(StudyDay.reviews)),
        ).where(col(StudyDay.learner_id).in_(rows))
    ).one()
    notes = db.scalar(
        select(func.count()).where(col(Note.learner_id).in_(rows), col(Note.words) != "")
    )
    return Records(
        person=person,
        name=name,
        since=from_milliseconds(since),
        last_seen=from_milliseconds(last_seen or since),
        days=days,
        answers=int(answers or 0),
        reviews=int(reviews or 0),
        notes=notes or 0,
    )


def void_codes(db: Session, learner_id: int) -> None:
    """Let no code of this learner work any more."""
    db.execute(delete(DeviceCode).where(col(DeviceCode.learner_id).in_(rows_of(learner_id))))
