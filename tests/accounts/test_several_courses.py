"""One person with a row in each course: what is shared, and what is not."""

import datetime as dt

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from app.accounts import learner_store as belongings
from app.accounts import learner_store as store
from app.accounts.learner import LearnerProfile
from app.accounts.learner_store import (
    BrowserVisit,
    derive_learner_key,
    find_learner_by_session,
)
from app.database.tables import DeviceCode, Learner, LearnerSession, SectionNoteRow

NOON = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
HERE = BrowserVisit("d" * 64, "Firefox on Linux", NOON)


def begin(db: Session, course_name: str, name: str = "") -> int:
    key = derive_learner_key("rosa", course_name)
    learner = LearnerProfile(
        key, person="rosa", course_name=course_name, name=name, zone="Europe/Berlin"
    )
    return store.insert_learner_with_session(db, learner, HERE)


def test_a_course_has_a_row_and_the_browser_one_session(session: Session) -> None:
    first = begin(session, "aid")
    second = begin(session, "sizing")
    again = begin(session, "sizing")

    assert first != second == again
    assert len(session.exec(select(LearnerSession)).all()) == 1
    for course_name, number in (("aid", first), ("sizing", second)):
        found = find_learner_by_session(session, HERE.session_key_digest, course_name)
        assert found
        assert (found.id, found.row_id_in_any_course, found.person) == (number, first, "rosa")
        assert found.key == derive_learner_key("rosa", course_name)


def test_a_course_begins_with_name_and_zone_and_nothing_else(session: Session) -> None:
    first = begin(session, "aid", "Rosa")
    store.update_learner_columns(session, first, {"exam_day": "2026-07-01", "target": 80})

    found = find_learner_by_session(session, HERE.session_key_digest, "sizing")

    assert found
    assert (found.id, found.row_id_in_any_course) == (0, first)
    assert (found.name, found.zone) == ("Rosa", "Europe/Berlin")
    assert (found.exam_day, found.target) == (None, None)
    assert found.key == derive_learner_key("rosa", "sizing") != derive_learner_key("rosa", "aid")


def test_a_name_is_the_persons_and_a_plan_the_courses(session: Session) -> None:
    first, second = begin(session, "aid"), begin(session, "sizing")
    other = session.exec(select(Learner).where(Learner.id == second)).one()

    store.update_learner_columns(session, first, {"name": "Rosa", "minutes_a_day": 45})

    session.refresh(other)
    assert (other.name, other.minutes_a_day) == ("Rosa", 30)


def test_one_person_is_one_line(session: Session) -> None:
    first = begin(session, "aid", "Rosa")
    begin(session, "sizing", "Rosa")

    (one,) = store.list_people(session)
    assert (one.id, one.name) == (first, "Rosa")


def test_codes_and_browsers_are_the_persons(session: Session) -> None:
    first, second = begin(session, "aid"), begin(session, "sizing")
    store.replace_device_code(session, second, "c" * 64, NOON + dt.timedelta(minutes=5))
    assert [
        b.is_current for b in store.list_browser_sessions(session, second, HERE.session_key_digest)
    ] == [True]
    store.insert_browser_session(session, second, BrowserVisit("e" * 64, "Safari", NOON))

    found = find_learner_by_session(session, "e" * 64, "aid")
    assert found
    assert (found.id, found.row_id_in_any_course) == (first, second)
    store.delete_device_codes_of_person(session, first)
    assert session.exec(select(DeviceCode)).all() == []
    store.revoke_other_sessions(session, first, HERE.session_key_digest, NOON)
    assert len(store.list_browser_sessions(session, first, HERE.session_key_digest)) == 1


def test_archive_and_erasure_hold_every_course(app, session: Session) -> None:
    engine: Engine = app.state.engine
    first, second = begin(session, "aid"), begin(session, "sizing")
    for number in (first, second):
        session.add(SectionNoteRow(learner_id=number, topic="t", section="s", at=1))
    session.add(Learner(key="milo", created_at=1))
    session.commit()

    learners, notes = Learner.__table__, SectionNoteRow.__table__
    rows = list(belongings.iterate_exported_rows_of_person(session, learners, second))
    assert [row["course"] for row in rows] == ["aid", "sizing"]
    assert len(list(belongings.iterate_exported_rows_of_person(session, notes, second))) == 2
    assert "person" not in belongings.list_exported_columns(learners)
    assert belongings.count_records_of_person_by_table(session, first)["note"] == 2

    belongings.erase_person_in_all_courses(session, second)
    session.commit()
    with Session(engine) as db:
        assert [one.key for one in db.exec(select(Learner))] == ["milo"]
        assert db.exec(select(SectionNoteRow)).all() == []
        assert db.exec(select(col(LearnerSession.id))).all() == []
