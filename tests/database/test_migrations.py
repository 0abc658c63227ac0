"""Migrations lead up, down, and to exactly the tables that the code declares."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, MetaData, Table, column, inspect, table, text
from sqlmodel import Session, SQLModel, select

from app.accounts.learner import plan_mock_exam_days
from app.database.engine import make_engine
from app.database.schema import downgrade_schema, is_schema_current, upgrade_schema
from app.database.tables import (
    Attempt,
    ItemReport,
    Learner,
    LearnerSession,
    PracticeRun,
    Regrade,
    Review,
    SectionNoteRow,
    SectionRead,
    Sitting,
    SittingAnswer,
    StudyDayActivity,
)
from app.web.visitor import hash_session_key
from tests.databases import ABOUT_SQLITE, Databases


def drift(engine: Engine) -> list[Any]:
    """Differences between the database and the tables; empty when they agree."""
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "render_as_batch": True}
        )
        return list(compare_metadata(context, SQLModel.metadata))


@pytest.fixture
def engine(tmp_path: Path, databases: Databases):
    with databases.blank(tmp_path) as address:
        engine = make_engine(address)
        yield engine
        engine.dispose()


@pytest.fixture
def migrated(tmp_path: Path, databases: Databases):
    """A database that leads up to the newest shape already."""
    with databases.empty(tmp_path) as address:
        engine = make_engine(address)
        yield engine
        engine.dispose()


def test_a_fresh_database_has_every_table(engine: Engine) -> None:
    upgrade_schema(engine)

    assert {"learner", "attempt", "review", "memory"} <= set(inspect(engine).get_table_names())
    assert drift(engine) == []


def test_down_and_up_again_leaves_no_trace(engine: Engine) -> None:
    upgrade_schema(engine)
    downgrade_schema(engine)
    assert set(inspect(engine).get_table_names()) <= {"alembic_version"}

    upgrade_schema(engine)
    assert drift(engine) == []


def test_a_second_upgrade_changes_nothing(migrated: Engine) -> None:
    with Session(migrated) as db:
        db.add(Learner(key="ada", created_at=0))
        db.commit()

    upgrade_schema(migrated)

    with Session(migrated) as db:
        assert [row.key for row in db.exec(select(Learner))] == ["ada"]


def test_erasing_a_learner_erases_what_is_theirs(migrated: Engine) -> None:
    with Session(migrated) as db:
        learner = Learner(key="ada", created_at=0)
        db.add(learner)
        db.flush()
        assert learner.id
        db.add(an_attempt(learner.id))
        db.commit()

        db.delete(learner)
        db.commit()

        assert db.exec(select(Attempt)).all() == []


def an_attempt(learner: int) -> Attempt:
    return Attempt(
        learner_id=learner,
        token="t",
        item="q",
        revision="r",
        topic="t",
        seed=1,
        context="quiz",
        raw="{}",
        parsed="{}",
        score=1.0,
        first=True,
        study_day="2026-01-01",
        at=0,
    )


def test_a_database_knows_whether_it_has_the_newest_shape(engine: Engine) -> None:
    assert not is_schema_current(engine)

    upgrade_schema(engine)

    assert is_schema_current(engine)


def test_days_of_an_older_database_are_added_up(migrated: Engine) -> None:
    with Session(migrated) as db:
        learner = Learner(key="ada", created_at=0)
        db.add(learner)
        db.flush()
        assert learner.id
        db.add(an_attempt(learner.id))
        stands, undone = a_review(learner.id, "1"), a_review(learner.id, "2")
        db.add_all([stands, undone])
        db.flush()
        db.add(a_review(learner.id, "3", rating=0, voids=undone.id))
        db.commit()
    downgrade_schema(migrated, "0001")

    upgrade_schema(migrated)

    with Session(migrated) as db:
        (day,) = db.exec(select(StudyDayActivity)).all()
        assert (day.day, day.answers, day.reviews) == ("2026-01-01", 1, 1)
        assert day.milliseconds == 4000
        (learner,) = db.exec(select(Learner)).all()
        assert (learner.calendar, learner.missed) == (True, True)


LATER = ("acts", "act", "until_day")  # columns that version 3 did not have


def insert_old(db: Session, name: str, row: dict[str, object]) -> None:
    """Insert a row as an older version did, without the columns of later ones."""
    values = {key: value for key, value in row.items() if key not in LATER}
    db.execute(table(name, *map(column, values)).insert().values(values))


def a_review(learner: int, token: str, rating: int = 3, voids: int | None = None) -> Review:
    return Review(
        learner_id=learner,
        token=token,
        card="c",
        rating=rating,
        voids=voids,
        milliseconds=4000 if rating else None,
        study_day="2026-01-01",
        at=0,
    )


def test_browsers_of_an_older_database_go_on_as_they_were(migrated: Engine) -> None:
    with Session(migrated) as db:  # written as of today: columns may have come since
        learner = Learner(key="ada", created_at=0)
        insert_old(db, "learner", {**learner.model_dump(), "id": 1})
        insert_old(db, "review", {**a_review(1, "1").model_dump(), "id": 1})
        db.commit()
    downgrade_schema(migrated, "0003")

    upgrade_schema(migrated)

    with Session(migrated) as db:
        (session,) = db.exec(select(LearnerSession)).all()
        assert session.digest == hash_session_key("ada")
        assert session.revoked_at is None


def test_everybody_so_far_is_a_person_in_the_one_course(migrated: Engine) -> None:
    with Session(migrated) as db:
        db.add_all([Learner(key="ada", created_at=0), Learner(key="bob", created_at=0)])
        db.commit()
    downgrade_schema(migrated, "0009")

    upgrade_schema(migrated)

    with Session(migrated) as db:
        rows = db.exec(select(Learner).order_by(Learner.key)).all()
        assert [(row.person, row.course) for row in rows] == [("ada", ""), ("bob", "")]


def test_answers_of_before_are_kept_and_may_be_graded_again(migrated: Engine) -> None:
    downgrade_schema(migrated, "0012")
    with Session(migrated) as db:
        (learner,) = write_learners(db, "ada")
        db.add(an_attempt(learner))
        db.commit()
        before = db.exec(select(Attempt)).one().model_dump()

    upgrade_schema(migrated)

    with Session(migrated) as db:
        attempt = db.exec(select(Attempt)).one()
        assert attempt.model_dump() == before
        db.add(a_regrade(attempt))
        db.commit()
        db.delete(db.exec(select(Learner)).one())
        db.commit()
        assert db.exec(select(Regrade)).all() == []


def a_regrade(attempt: Attempt) -> Regrade:
    return Regrade(
        attempt_id=attempt.id,
        learner_id=attempt.learner_id,
        after=0,
        revision="r2",
        score=0.0,
        at=0,
    )


def a_report(learner: int, token: str) -> ItemReport:
    return ItemReport(learner_id=learner, token=token, item="q", revision="r", words="no", at=0)


def write_learners(db: Session, *keys: str) -> list[int]:
    """Write learners with the columns that the table has in its present revision."""
    table = Table("learner", MetaData(), autoload_with=db.connection())
    for key in keys:
        values = Learner(key=key, created_at=0).model_dump(exclude={"id"}) | {"all_minutes": False}
        known = {name: value for name, value in values.items() if name in table.c}
        db.execute(table.insert().values(known))
    return [db.execute(select(table.c.id).where(table.c.key == key)).scalar_one() for key in keys]


# What 0015 and later ones add, which has no place in the revisions before it.
_NEW = {
    "plan_begun",
    "mock_days",
    "card_amount",
    "all_minutes",
    "reminder_hour",
    "exam_result",
    "past_exams",
    "page_route",
    "mail",
    "mail_key",
    "mail_confirmed",
    "mailed",
}


def everything(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, without the columns that came or went later."""
    tables = MetaData()
    tables.reflect(engine)
    with engine.connect() as connection:
        return {
            table.name: sorted(
                tuple(row)
                for row in connection.execute(
                    select(*(table.c[name] for name in sorted(set(table.c.keys()) - _NEW)))
                )
            )
            for table in tables.sorted_tables
            if table.name in SQLModel.metadata.tables and table.name != "day_list"
        }


def write_a_running_exam(engine: Engine) -> None:
    """Three learners, of whom the second one sits an exam and has answered before."""
    with Session(engine) as db:
        ada, number, _ = write_learners(db, "ada", "bob", "eve")
        sitting = Sitting(
            learner_id=number,
            token="s",
            exam="mock",
            seed=1,
            paper="[]",
            started_at=0,
            deadline_at=9,
        )
        db.add_all([sitting, an_attempt(number), a_review(number, "1")])
        db.add(a_report(number, "r"))
        db.flush()
        db.add(SittingAnswer(sitting_id=sitting.id, number=1, at=0))
        db.execute(text(f"DELETE FROM learner WHERE id = {ada}"))  # noqa: S608 - a number
        db.commit()


def test_a_table_built_anew_keeps_every_row_and_what_hangs_on_it(
    migrated: Engine,
) -> None:
    downgrade_schema(migrated, "0013")
    write_a_running_exam(migrated)
    before = everything(migrated)
    assert len(before["sitting_answer"]) == 1

    upgrade_schema(migrated)

    assert everything(migrated) == before
    with Session(migrated) as db:
        db.delete(db.exec(select(Learner).where(Learner.key == "bob")).one())
        db.commit()
    left = everything(migrated)
    assert {name for name, rows in left.items() if rows} == {"learner"}


@ABOUT_SQLITE
def test_large_tables_are_not_built_anew(migrated: Engine) -> None:
    def places() -> dict[str, int]:
        words = text("SELECT name, rootpage FROM sqlite_master WHERE rootpage > 0")
        with migrated.connect() as connection:
            return {row.name: row.rootpage for row in connection.execute(words)}

    downgrade_schema(migrated, "0013")
    before = places()

    upgrade_schema(migrated)

    moved = {name for name, page in places().items() if before.get(name) != page}
    assert {name for name in moved if name in SQLModel.metadata.tables} == {
        "day_list",  # new
        "item_report",
        "learner",
    }


def test_numbers_of_rows_that_were_erased_are_not_given_again(migrated: Engine) -> None:
    downgrade_schema(migrated, "0013")
    write_a_running_exam(migrated)
    upgrade_schema(migrated)
    with Session(migrated) as db:
        eve = db.exec(select(Learner).where(Learner.key == "eve")).one()
        report = a_report(eve.id or 0, "of eve")
        db.add(report)
        db.flush()
        gone = (eve.id or 0, report.id or 0)
        db.delete(eve)
        db.commit()

        new = Learner(key="kim", created_at=0)
        db.add(new)
        db.flush()
        assert (new.id or 0) > gone[0]
        report = a_report(new.id or 0, "of kim")
        db.add(report)
        db.flush()
        assert (report.id or 0) > gone[1]


def test_what_is_kept_about_a_topic_follows_it_to_its_new_name(migrated: Engine) -> None:
    with Session(migrated) as db:
        db.add(Learner(id=1, key="ada", created_at=0))
        db.flush()
        rows = [("virtualisation", "a"), ("virtualisation", "b"), ("virtualization", "b")]
        for topic, section in (*rows, ("mig", "a")):
            db.add(SectionRead(learner_id=1, topic=topic, section=section, at=0))
        db.add(
            SectionNoteRow(
                learner_id=1, topic="data-centre-monitoring", section="a", words="x", at=0
            )
        )
        for mode in ("topic", "objective"):
            scope = "virtualisation"
            db.add(PracticeRun(learner_id=1, token=mode, mode=mode, scope=scope, items="[]", at=0))
        db.commit()

    downgrade_schema(migrated, "0014")
    upgrade_schema(migrated)

    with Session(migrated) as db:
        read = [(r.topic, r.section) for r in db.exec(select(SectionRead)).all()]
        assert sorted(read) == [("mig", "a"), ("virtualization", "a"), ("virtualization", "b")]
        assert [n.topic for n in db.exec(select(SectionNoteRow))] == ["data-center-monitoring"]
        runs = {r.mode: r.scope for r in db.exec(select(PracticeRun))}
        assert runs == {"topic": "virtualization", "objective": "virtualisation"}


def test_an_exam_day_ahead_gets_the_dates_of_its_mock_exams(migrated: Engine) -> None:
    downgrade_schema(migrated, "0015")
    before = dt.datetime.now(dt.UTC).date()
    days = {"ahead": 24, "soon": 3, "over": -5}
    with Session(migrated) as db:
        write_learners(db, "none", *days)
        for key, n in days.items():
            exam = (before + dt.timedelta(days=n)).isoformat()
            values = {"exam": exam, "key": key}
            db.execute(text('UPDATE learner SET exam_day = :exam WHERE "key" = :key'), values)
        db.commit()

    upgrade_schema(migrated)

    with Session(migrated) as db:
        rows = {row.key: row for row in db.exec(select(Learner)).all()}
    mocks = {key: len(row.mock_days.split()) for key, row in rows.items()}
    assert mocks == {"none": 0, "ahead": 3, "soon": 0, "over": 0}
    today = dt.date.fromisoformat(rows["ahead"].plan_begun or "")
    assert before <= today <= dt.datetime.now(dt.UTC).date()
    assert rows["ahead"].plan_begun == rows["soon"].plan_begun == today.isoformat()
    assert rows["over"].plan_begun is rows["none"].plan_begun is None
    assert {row.card_amount for row in rows.values()} == {"normal"}
    expected = plan_mock_exam_days(today, before + dt.timedelta(days=24))
    assert rows["ahead"].mock_days.split() == [day.isoformat() for day in expected]
