"""Stores learners, their browser sessions and device codes; export and erasure of their rows."""

import base64
import dataclasses
import datetime as dt
import functools
import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, RowMapping, Select, Table, bindparam, exists, func, select
from sqlalchemy import delete as sqlalchemy_delete
from sqlmodel import Session, SQLModel, col, delete, update

from app.accounts.learner import (
    CARD_AMOUNTS,
    FIELD_BY_COLUMN,
    PAGE_LENGTHS,
    LearnerProfile,
    parse_past_exams,
)
from app.clock import from_milliseconds, to_milliseconds
from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.database.engine import insert_if_absent
from app.database.quotas import SESSIONS, raise_if_row_quota_exceeded
from app.database.secure_delete import mark_database_for_vacuum
from app.database.tables import (
    TABLES,
    CardStateRow,
    DeviceCode,
    Learner,
    LearnerSession,
    OwnCard,
    Review,
    SectionNoteRow,
    Sitting,
    SittingAnswer,
    StudyDayActivity,
)

_UPDATE_LAST_SEEN = (
    update(LearnerSession)
    .where(col(LearnerSession.digest) == bindparam("wanted"))
    .values(last_seen=bindparam("now"), device=bindparam("named"))
)


@dataclasses.dataclass(frozen=True, slots=True)
class BrowserVisit:
    """A browser's visit: the hash of its session key, the browser's name and the time."""

    session_key_digest: str
    browser_name: str
    visited_at: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class BrowserSession:
    """A valid session; the current one is that of the requesting browser."""

    id: int
    browser_name: str
    created: dt.datetime
    last_seen: dt.datetime
    is_current: bool


def insert_browser_session(db: Session, learner_id: int, visit: BrowserVisit) -> None:
    """Start a session for a browser of this learner.

    Raises ConflictError if the learner has reached the maximum number of sessions.
    Revoked ones count, because their rows remain.
    """
    visited_at = to_milliseconds(visit.visited_at)
    row = LearnerSession(
        learner_id=learner_id,
        digest=visit.session_key_digest,
        device=visit.browser_name,
        created_at=visited_at,
        last_seen=visited_at,
    )
    if insert_if_absent(db, LearnerSession, row.model_dump(exclude={"id"})) is not None:
        person_rows = col(LearnerSession.learner_id).in_(
            select_learner_ids_of_same_person(learner_id)
        )
        raise_if_row_quota_exceeded(db, SESSIONS, person_rows)


def select_learner_ids_of_same_person(learner_id: int) -> Any:
    """Return a query for the ids of all rows of the person, one per course."""
    person = select(col(Learner.person)).where(col(Learner.id) == learner_id)
    return select(col(Learner.id)).where(col(Learner.person) == person.scalar_subquery())


def update_session_last_seen(db: Session, visit: BrowserVisit) -> None:
    now = to_milliseconds(visit.visited_at)
    db.connection().execute(
        _UPDATE_LAST_SEEN,
        {"wanted": visit.session_key_digest, "now": now, "named": visit.browser_name},
    )


def list_browser_sessions(
    db: Session, learner_id: int, current_session_key_digest: str
) -> list[BrowserSession]:
    """Return a learner's valid sessions: the requesting one, then the newest first."""
    rows = db.execute(
        select(
            col(LearnerSession.id),
            col(LearnerSession.device),
            col(LearnerSession.created_at),
            col(LearnerSession.last_seen),
            col(LearnerSession.digest) == current_session_key_digest,
        )
        .where(
            col(LearnerSession.learner_id).in_(select_learner_ids_of_same_person(learner_id)),
            col(LearnerSession.revoked_at).is_(None),
        )
        .order_by(col(LearnerSession.last_seen).desc(), col(LearnerSession.id).desc())
    )
    sessions = [
        BrowserSession(
            session_id,
            device,
            from_milliseconds(created),
            from_milliseconds(last_seen),
            bool(is_current),
        )
        for session_id, device, created, last_seen, is_current in rows
    ]
    return sorted(sessions, key=lambda session: not session.is_current)


def revoke_session_and_return_digest(
    db: Session, learner_id: int, session_id: int, now: dt.datetime
) -> str | None:
    """End one session of a learner; returns its key hash, None if there is no such session."""
    digest: str | None = db.scalar(
        _revoke_statement(now)
        .where(
            col(LearnerSession.id) == session_id,
            col(LearnerSession.learner_id).in_(select_learner_ids_of_same_person(learner_id)),
        )
        .returning(col(LearnerSession.digest))
    )
    return digest


def revoke_other_sessions(
    db: Session, learner_id: int, kept_session_key_digest: str, now: dt.datetime
) -> None:
    db.execute(
        _revoke_statement(now).where(
            col(LearnerSession.learner_id).in_(select_learner_ids_of_same_person(learner_id)),
            col(LearnerSession.digest) != kept_session_key_digest,
        )
    )


def revoke_session_by_digest(db: Session, session_key_digest: str, now: dt.datetime) -> None:
    """End the session with this key hash, if there is one."""
    db.execute(_revoke_statement(now).where(col(LearnerSession.digest) == session_key_digest))


def _revoke_statement(now: dt.datetime) -> Any:
    # The row remains, so that its cookie is never treated as new.
    return (
        update(LearnerSession)
        .where(col(LearnerSession.revoked_at).is_(None))
        .values(revoked_at=to_milliseconds(now))
    )


# What a learner can set is a column of the table and a field of `LearnerProfile`.
_LEARNER_COLUMNS = tuple(c for c in TABLES["learner"].c if c.name not in {"created_at", "changes"})
# Ids of course cards contain no colon.
_edited_card = select(col(OwnCard.id)).where(
    col(OwnCard.learner_id) == col(Learner.id), col(OwnCard.card).not_like("%:%")
)
_PROFILE_COLUMNS = (
    *(c.label(FIELD_BY_COLUMN.get(c.name, c.name)) for c in _LEARNER_COLUMNS),
    _edited_card.exists().label("has_edited_cards"),
)
# Precompiled: every request runs the first and every write the second.
_FIND_BY_SESSION = (
    select(col(LearnerSession.revoked_at), col(LearnerSession.last_seen), *_PROFILE_COLUMNS)
    .join_from(LearnerSession, Learner, col(Learner.id) == LearnerSession.learner_id)
    .where(col(LearnerSession.digest) == bindparam("wanted"))
)
_SHARED_COLUMNS = {"name", "zone"}
_INCREMENT_CHANGES = (
    update(Learner)
    .where(col(Learner.id) == bindparam("wanted"))
    .values(changes=Learner.changes + 1)
    .returning(col(Learner.id))
)


@dataclasses.dataclass(frozen=True, slots=True)
class ListedPerson:
    """A learner for the list. `last_seen` is the last day with a write."""

    id: int
    name: str
    created: dt.datetime
    last_seen: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class PersonDataSummary:
    """A summary of a person's data, by which they can recognize it as their own."""

    person: str
    name: str
    created: dt.datetime
    last_seen: dt.datetime
    study_day_count: int
    answer_count: int
    review_count: int
    note_count: int


def list_people(db: Session) -> list[ListedPerson]:
    """Return all people, oldest first, with the id of their oldest row."""
    rows = db.execute(
        select(
            func.min(col(Learner.id)),
            func.max(col(Learner.name)),
            func.min(col(Learner.created_at)),
            func.max(col(LearnerSession.last_seen)),
        )
        .join_from(
            Learner, LearnerSession, col(LearnerSession.learner_id) == Learner.id, isouter=True
        )
        .group_by(col(Learner.person))
        .order_by(func.min(col(Learner.id)))
    )
    return [
        ListedPerson(
            learner_id, name, from_milliseconds(created), from_milliseconds(last_seen or created)
        )
        for learner_id, name, created, last_seen in rows
    ]


def find_learner_by_session(
    db: Session, session_key_digest: str, course_name: str = ""
) -> LearnerProfile | None:
    """Return the learner of the session with this key hash; None before the first write.

    In another course than the one the session began in, `id` is 0 if the person has
    saved nothing there.
    """
    row = (
        db.connection().execute(_FIND_BY_SESSION, {"wanted": session_key_digest}).mappings().first()
    )
    if row is None:
        return None
    columns = dict(row)
    session = {
        "is_session_revoked": columns.pop("revoked_at") is not None,
        "last_seen": columns.pop("last_seen"),
        "row_id_in_any_course": columns["id"],
    }
    if columns["course_name"] != course_name:
        columns = _find_or_build_row_in_course(db, columns, course_name)
    return _learner_from_columns(columns, **session)


def _find_or_build_row_in_course(
    db: Session, columns_in_other_course: dict[str, Any], course_name: str
) -> dict[str, Any]:
    """Return the person's row in another course, or a new one with what courses share."""
    person = columns_in_other_course["person"]
    row = (
        db.connection()
        .execute(_FIND_IN_COURSE, {"person": person, "course": course_name})
        .mappings()
        .first()
    )
    if row:
        return dict(row)
    shared = {name: columns_in_other_course[name] for name in ("person", *_SHARED_COLUMNS)}
    key = derive_learner_key(person, course_name)
    draft = Learner(key=key, course=course_name, created_at=0, **shared).model_dump()
    return {FIELD_BY_COLUMN.get(c.name, c.name): draft[c.name] for c in _LEARNER_COLUMNS} | {
        "id": 0
    }


def _learner_from_columns(columns: dict[str, Any], **session: Any) -> LearnerProfile:
    exam_day, plan_begun = columns["exam_day"], columns["plan_begun"]
    parsed = {
        "exam_day": dt.date.fromisoformat(exam_day) if exam_day else None,
        "days_off": frozenset(map(int, columns["days_off"])),
        "plan_begun": dt.date.fromisoformat(plan_begun) if plan_begun else None,
        "mock_days": tuple(map(dt.date.fromisoformat, columns["mock_days"].split())),
        "past_exams": parse_past_exams(columns["past_exams"]),
        # A choice that this version doesn't know has no effect.
        "card_amount": amount if (amount := columns["card_amount"]) in CARD_AMOUNTS else "normal",
        "page_route": route if (route := columns["page_route"]) in PAGE_LENGTHS else "auto",
    }
    return LearnerProfile(**columns | parsed | session)


def derive_learner_key(person_key: str, course_name: str) -> str:
    """Return the learner key of a person in a course. The person cannot be derived from it."""
    if not course_name:
        return person_key
    return hashlib.sha256(f"{person_key}:{course_name}".encode()).hexdigest()[:32]


_FIND_IN_COURSE = select(*_PROFILE_COLUMNS).where(
    col(Learner.person) == bindparam("person"), col(Learner.course) == bindparam("course")
)
_FIND_BY_ID = select(*_PROFILE_COLUMNS).where(col(Learner.id) == bindparam("wanted"))


def load_learner_by_id(db: Session, learner_id: int) -> LearnerProfile | None:
    """Return a learner by id, without a browser, e.g. for a calendar program."""
    row = db.connection().execute(_FIND_BY_ID, {"wanted": learner_id}).mappings().first()
    return _learner_from_columns(dict(row), row_id_in_any_course=learner_id) if row else None


def insert_learner_with_session(db: Session, learner: LearnerProfile, visit: BrowserVisit) -> int:
    """Insert a learner with the first write; returns the id."""
    row = Learner(
        key=learner.key,
        person=learner.person,
        course=learner.course_name,
        name=learner.name,
        zone=learner.zone,
        created_at=to_milliseconds(visit.visited_at),
    ).model_dump(exclude={"id"})
    learner_id = insert_if_absent(db, Learner, row)
    if learner_id is None:  # a concurrent first write inserted the row
        same_key = col(Learner.key) == row["key"]
        return db.scalar(select(col(Learner.id)).where(same_key)) or 0
    insert_browser_session(
        db, learner_id, visit
    )  # does nothing if a session exists from another course
    return learner_id


def increment_change_counter(db: Session, learner_id: int) -> bool:
    """Increment the learner's change counter, so that cached pages become invalid.

    Returns whether the learner still exists. On PostgreSQL, other writers for this
    learner wait here until this transaction ends.
    """
    return db.connection().execute(_INCREMENT_CHANGES, {"wanted": learner_id}).first() is not None


def lock_learner_row(db: Session, learner_id: int) -> None:
    """Wait for other writers for this learner, without incrementing the change counter."""
    db.execute(select(col(Learner.id)).where(col(Learner.id) == learner_id).with_for_update())


def update_learner_columns(
    db: Session, learner_id: int, values_by_column: Mapping[str, Any]
) -> None:
    """Set columns of a learner. `name` and `zone` are set in all of the person's courses."""
    db.execute(update(Learner).where(col(Learner.id) == learner_id).values(**values_by_column))
    shared = {name: value for name, value in values_by_column.items() if name in _SHARED_COLUMNS}
    if shared:
        person_rows = col(Learner.id).in_(select_learner_ids_of_same_person(learner_id))
        db.execute(update(Learner).where(person_rows).values(**shared))


def count_course_learners(db: Session, course_name: str) -> int:
    query = select(func.count()).where(col(Learner.course) == course_name)
    return db.scalar(query) or 0


def adopt_learners_without_course(db: Session, course_name: str) -> tuple[int, int]:
    """Move learners from when the server had one course, except those with a row in `course_name`.

    Return how many were moved, and how many had begun in it again.
    """
    people_in_course = select(col(Learner.person)).where(col(Learner.course) == course_name)
    result = db.execute(
        update(Learner)
        .where(col(Learner.course) == "", col(Learner.person).not_in(people_in_course))
        .values(course=course_name, changes=Learner.changes + 1)
    )
    moved = int(result.rowcount)  # type: ignore[attr-defined] # a cursor result
    return moved, count_course_learners(db, "")


def replace_device_code(
    db: Session, learner_id: int, code_digest: str, expires: dt.datetime
) -> None:
    """Store a device code. Earlier codes of this learner become invalid."""
    delete_device_codes_of_person(db, learner_id)
    db.add(
        DeviceCode(learner_id=learner_id, digest=code_digest, expires_at=to_milliseconds(expires))
    )


def redeem_device_code(db: Session, code_digest: str, now: dt.datetime) -> int | None:
    """Use up a code and return its learner; None if it is used, expired or unknown."""
    return db.scalar(
        update(DeviceCode)
        .where(*_valid_code_conditions(code_digest, now))
        .values(used_at=to_milliseconds(now))
        .returning(col(DeviceCode.learner_id))
    )


def find_device_code_owner(db: Session, code_digest: str, now: dt.datetime) -> int | None:
    """Return the learner of a valid code without using it up."""
    return db.scalar(
        select(col(DeviceCode.learner_id)).where(*_valid_code_conditions(code_digest, now))
    )


def _valid_code_conditions(code_digest: str, now: dt.datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        col(DeviceCode.digest) == code_digest,
        col(DeviceCode.used_at).is_(None),
        col(DeviceCode.expires_at) > to_milliseconds(now),
    )


def summarize_person_data_in_all_courses(db: Session, learner_id: int) -> PersonDataSummary:
    learner_ids = select_learner_ids_of_same_person(learner_id)
    person, name, created = db.execute(
        select(
            func.max(col(Learner.person)),
            func.max(col(Learner.name)),
            func.min(col(Learner.created_at)),
        ).where(col(Learner.id).in_(learner_ids))
    ).one()
    last_seen = db.scalar(
        select(func.max(col(LearnerSession.last_seen))).where(
            col(LearnerSession.learner_id).in_(learner_ids)
        )
    )
    days, answers, reviews = db.execute(
        select(
            func.count(col(StudyDayActivity.day).distinct()),
            func.sum(col(StudyDayActivity.answers)),
            func.sum(col(StudyDayActivity.reviews)),
        ).where(col(StudyDayActivity.learner_id).in_(learner_ids))
    ).one()
    notes = db.scalar(
        select(func.count()).where(
            col(SectionNoteRow.learner_id).in_(learner_ids), col(SectionNoteRow.words) != ""
        )
    )
    return PersonDataSummary(
        person=person,
        name=name,
        created=from_milliseconds(created),
        last_seen=from_milliseconds(last_seen or created),
        study_day_count=days,
        answer_count=int(answers or 0),
        review_count=int(reviews or 0),
        note_count=notes or 0,
    )


def delete_device_codes_of_person(db: Session, learner_id: int) -> None:
    db.execute(
        delete(DeviceCode).where(
            col(DeviceCode.learner_id).in_(select_learner_ids_of_same_person(learner_id))
        )
    )


_SITTING_TABLE = TABLES["sitting"]
_PAPERS_OF_LEARNER = select(_SITTING_TABLE.c.paper).where(
    _SITTING_TABLE.c.learner_id == bindparam("of_learner")
)
_IS_RUNNING = _SITTING_TABLE.c.closed_at.is_(None) & (
    _SITTING_TABLE.c.deadline_at > bindparam("now")
)
_RUNNING_PAPERS, _PAST_PAPERS = (
    _PAPERS_OF_LEARNER.where(_IS_RUNNING),
    _PAPERS_OF_LEARNER.where(~_IS_RUNNING),
)


def list_question_ids_in_running_exam(
    db: Session, learner_id: int, now: dt.datetime
) -> frozenset[str]:
    return _list_question_ids_in_papers(db, _RUNNING_PAPERS, learner_id, now)


def list_question_ids_in_past_exams(
    db: Session, learner_id: int, now: dt.datetime
) -> frozenset[str]:
    """Return the questions of all finished mock exams, answered or not."""
    return _list_question_ids_in_papers(db, _PAST_PAPERS, learner_id, now)


def _list_question_ids_in_papers(
    db: Session, papers: Select[Any], learner_id: int, now: dt.datetime
) -> frozenset[str]:
    if not learner_id:
        return frozenset()
    values = {"of_learner": learner_id, "now": to_milliseconds(now)}
    stored_papers = db.connection().execute(papers, values).scalars()
    return frozenset(slot[1] for paper in stored_papers for slot in json.loads(paper))


# Never exported: keys and hashes are for the server only. Picture contents are separate
# files.
_SECRET_COLUMNS = {"key", "person", "digest", "content"}
_UNEXPORTED_TABLES = {DeviceCode.__tablename__}
_OWN_PICTURE_TABLE = TABLES["own_picture"]
_ROWS_PER_QUERY = 200
_ERASED_LAST = {Learner.__tablename__, LearnerSession.__tablename__}
_MAX_BATCH_WEIGHT = 500
# Erasing weight per row: a picture has up to 2 MB, a card or an exam paper some kB.
_ERASING_WEIGHTS = {"own_picture": 100, "own_card": 5, "sitting": 5}


def list_exported_tables() -> tuple[Table, ...]:
    return tuple(
        table for table in list_tables_with_learner_rows() if table.name not in _UNEXPORTED_TABLES
    )


def list_exported_columns(table: Table) -> tuple[str, ...]:
    return tuple(c.name for c in table.columns if c.name not in _SECRET_COLUMNS)


def iterate_exported_rows_of_person(
    db: Session, table: Table, learner_id: int
) -> Iterator[RowMapping]:
    """Yield a learner's rows of a table, oldest first, loading a few at a time."""
    columns = [table.c[name] for name in list_exported_columns(table)]
    row_ids = _list_row_ids_of_person(db, table, learner_id)
    for start in range(0, len(row_ids), _ROWS_PER_QUERY):
        batch = table.c.id.in_(row_ids[start : start + _ROWS_PER_QUERY])
        query = select(*columns).where(batch).order_by(table.c.id)
        yield from db.execute(query).mappings()


def iterate_exported_pictures_of_person(
    db: Session, learner_id: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of a learner's pictures, each once."""
    yielded_names = set()
    for row_id in _list_row_ids_of_person(db, _OWN_PICTURE_TABLE, learner_id):
        query = select(_OWN_PICTURE_TABLE.c.name, _OWN_PICTURE_TABLE.c.content)
        name, content = db.execute(query.where(_OWN_PICTURE_TABLE.c.id == row_id)).one()
        if name not in yielded_names:  # two courses may have the same picture
            yield name, base64.b64decode(content)
        yielded_names.add(name)


def _list_row_ids_of_person(db: Session, table: Table, learner_id: int) -> "array[int]":
    """Return the ids of a learner's rows, in order.

    Rows are loaded by id, because sorting whole rows in the database would take as much
    memory as they do.
    """
    query = (
        select(table.c.id).where(_rows_of_person_condition(table, learner_id)).order_by(table.c.id)
    )
    return array("q", db.scalars(query.execution_options(yield_per=1000)))


def count_records_of_person_by_table(db: Session, learner_id: int) -> dict[str, int]:
    """Return how many entries of each table a learner has, as a person would count them.

    Undone reviews and their undo entries do not count, nor do cards that were never
    reviewed.
    """
    return {
        table.name: db.scalar(
            select(func.count())
            .select_from(table)
            .where(_rows_of_person_condition(table, learner_id), *_countable_row_conditions(table))
        )
        or 0
        for table in list_tables_with_learner_rows()
    }


def _countable_row_conditions(table: Table) -> tuple[ColumnElement[bool], ...]:
    if table.name == Review.__tablename__:
        undoing = table.alias()
        undone = select(undoing.c.id).where(undoing.c.voids == table.c.id).exists()
        return table.c.rating > 0, ~undone
    if table.name == CardStateRow.__tablename__:
        return (table.c.state != "new",)
    return ()


def has_unclosed_sitting_in_any_course(db: Session, learner_id: int) -> bool:
    open_sittings = select(func.count()).where(
        col(Sitting.learner_id).in_(select_learner_ids_of_same_person(learner_id)),
        col(Sitting.closed_at).is_(None),
    )
    return bool(db.scalar(open_sittings))


def erase_person_in_all_courses(db: Session, learner_id: int) -> None:
    """Delete a learner with all rows, in every course; see `app.database.secure_delete`."""
    mark_database_for_vacuum(db)
    db.execute(
        sqlalchemy_delete(Learner).where(
            col(Learner.id).in_(select_learner_ids_of_same_person(learner_id))
        )
    )


def erase_row_batch_and_check_for_more(db: Session, learner_id: int) -> bool:
    """Delete some rows of a learner; returns whether there may be more.

    A single statement for all rows would block other writers for seconds. The learner
    and their sessions are left to `erase_person_in_all_courses`, which also deletes rows added in the
    meantime.
    """
    mark_database_for_vacuum(db)
    budget = _MAX_BATCH_WEIGHT
    for table in reversed(list_tables_with_learner_rows()):
        weight = _ERASING_WEIGHTS.get(table.name, 1)
        if table.name in _ERASED_LAST:
            continue
        if budget < weight:
            return True
        batch = select(table.c.id).where(_rows_of_person_condition(table, learner_id))
        batch = batch.limit(budget // weight)
        result: Any = db.execute(sqlalchemy_delete(table).where(table.c.id.in_(batch)))
        budget -= result.rowcount * weight
    return budget < _MAX_BATCH_WEIGHT


def load_sitting_days(db: Session, learner: LearnerProfile, course: Course) -> list[dt.date]:
    """Return the study days of the finished sittings of the mock exam that is planned.

    One that was ended without an answer is none.
    """
    exam = cached_course_facts(course).main_exam_slug
    mine = col(Sitting.learner_id) == learner.id, col(Sitting.exam) == exam
    answers = col(SittingAnswer.sitting_id) == col(Sitting.id), col(SittingAnswer.raw) != "{}"
    sat = select(col(Sitting.started_at)).where(
        *mine, col(Sitting.closed_at).is_not(None), exists().where(*answers)
    )
    return [learner.study_day(from_milliseconds(at)) for at in db.connection().scalars(sat)]


@functools.cache
def list_tables_with_learner_rows() -> tuple[Table, ...]:
    """Return the learner table and all tables with rows of learners, parents first."""
    tables = SQLModel.metadata.sorted_tables
    return tuple(table for table in tables if _find_foreign_key_toward_learner(table) is not None)


class ParentForeignKey(NamedTuple):
    """The column of a table that refers to the rows of another, with which its rows are erased."""

    column: str
    parent: Table


def _find_foreign_key_toward_learner(table: Table) -> ParentForeignKey | None:
    """Return the link that leads from a table to the learner, directly or by other tables."""
    if table.name == Learner.__tablename__:
        return ParentForeignKey("id", table)
    links = [
        ParentForeignKey(key.parent.name, key.column.table)
        for key in sorted(table.foreign_keys, key=lambda key: key.parent.name)
        if key.ondelete == "CASCADE"
    ]
    for link in links:
        if link.parent.name == Learner.__tablename__:
            return link
    for link in links:
        if link.parent is not table and _find_foreign_key_toward_learner(link.parent) is not None:
            return link
    return None


def _rows_of_person_condition(table: Table, learner_id: int) -> ColumnElement[bool]:
    """Return the condition that selects a learner's rows, in every course."""
    link = _find_foreign_key_toward_learner(table)
    if link is None:
        raise LookupError(f"No row of {table.name} belongs to a learner.")
    if link.parent.name == Learner.__tablename__:
        return table.c[link.column].in_(select_learner_ids_of_same_person(learner_id))
    parent_rows = _rows_of_person_condition(link.parent, learner_id)
    return table.c[link.column].in_(select(link.parent.c.id).where(parent_rows))
