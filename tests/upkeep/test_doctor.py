"""`headroom doctor`: what is wrong with an installation, and what to do about it."""

import dataclasses
import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.database.backup import create_due_backup_and_delete_expired
from app.database.doctor import DoctorFinding, iterate_doctor_findings
from app.database.engine import make_engine
from app.database.file_guards import name_folder_for_replaced_files
from app.database.installation import Installation
from app.database.schema import downgrade_schema
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE, SERVER
from tests.upkeep.conftest import NOW

Look = Callable[..., dict[str, DoctorFinding]]
Enroll = Callable[..., None]


@pytest.fixture(autouse=True)
def _private(installation: Installation) -> None:
    for path in installation.data_folder.iterdir():
        path.chmod(0o600)


@pytest.fixture
def look(installation: Installation) -> Look:
    """The findings by subject; the first of a subject."""

    def look(
        now: dt.datetime = NOW, installation: Installation = installation, content: Path = TINY
    ) -> dict[str, DoctorFinding]:
        findings = iterate_doctor_findings(installation, content, now)
        found: dict[str, DoctorFinding] = {}
        for finding in findings:
            found.setdefault(finding.subject, finding)
            assert finding.remedy or finding.level == "ok"
        return found

    return look


def test_a_sound_installation_is_well(installation, look: Look) -> None:
    create_due_backup_and_delete_expired(installation, NOW)

    assert {f.level for f in look().values()} == {"ok"}


def test_what_a_restore_has_kept_is_named_with_size_and_age(installation, look: Look) -> None:
    kept = installation.data_folder / name_folder_for_replaced_files(NOW - dt.timedelta(days=40))
    kept.mkdir()
    (kept / "headroom.db").write_bytes(b"x" * 2_500_000)
    (installation.data_folder / "before-restore-of-mine").mkdir()

    found = look()["kept by restore"]

    assert found.level == "warning"
    assert f"{kept}, 2.5 MB, 40 days old" in found.message
    assert f"rm -r {kept}" in found.remedy
    assert kept.exists()


def test_nothing_is_changed_by_looking(installation, look: Look) -> None:
    create_due_backup_and_delete_expired(installation, NOW)
    before = {p: p.stat().st_mtime_ns for p in installation.data_folder.rglob("*.*")}

    look()

    after = {p: p.stat().st_mtime_ns for p in installation.data_folder.rglob("*.*")}
    assert {p for p in after if p.suffix == ".zip"} <= set(before)
    assert {p: after[p] for p in before if p.name == "headroom.db"} == {
        p: before[p] for p in before if p.name == "headroom.db"
    }


def test_a_data_folder_that_is_missing_is_a_problem(installation, look: Look, tmp_path) -> None:
    gone = dataclasses.replace(installation, data_folder=tmp_path / "gone")

    assert look(installation=gone)["data folder"].level == "problem"


def test_files_that_others_can_read_are_named(installation, look: Look) -> None:
    installation.secret_file.chmod(0o644)

    found = look()["file modes"]

    assert found.level == "warning"
    assert found.remedy == f"Run: chmod 600 {installation.secret_file}"


@ABOUT_SQLITE
def test_a_damaged_database_is_a_problem(installation, look: Look) -> None:
    (installation.data_folder / "headroom.db").write_bytes(b"x" * 5000)

    assert look()["database"].level == "problem"


@ABOUT_SQLITE
def test_a_row_that_points_nowhere_is_a_problem(installation, look: Look) -> None:
    engine = make_engine(installation.database_url)
    with engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        connection.exec_driver_sql(
            "INSERT INTO reading (learner_id, topic, section, at) VALUES (7, '', '', 0)"
        )
        connection.exec_driver_sql("BEGIN")
    engine.dispose()

    found = look()["integrity"]

    assert found.level == "problem"
    assert found.message == "1 rows point to a row that is not there"


def test_an_older_schema_is_a_warning(installation, look: Look) -> None:
    engine = make_engine(installation.database_url)
    downgrade_schema(engine, "0002")
    engine.dispose()

    found = look()["database"]

    assert found.level == "warning"
    assert "`headroom db upgrade`" in found.remedy


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_a_server_that_does_not_answer_is_a_problem(installation, look: Look) -> None:
    away = "postgresql+psycopg://ada:hush@127.0.0.1:9/x"

    found = look(installation=dataclasses.replace(installation, database_url=away))

    assert found["database"].level == "problem"
    assert "hush" not in found["database"].message


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_key_that_is_none_is_a_problem(installation, look: Look, content: bytes) -> None:
    installation.secret_file.write_bytes(content)

    assert look()["key"].level == "problem"


def test_a_short_key_of_the_environment_is_a_problem(installation, look: Look) -> None:
    found = look(installation=dataclasses.replace(installation, configured_key="a"))

    assert found["key"].level == "problem"


def test_a_key_that_is_not_there_yet_is_a_warning(installation, look: Look) -> None:
    installation.secret_file.unlink()

    assert look()["key"].level == "warning"


def test_a_key_that_is_another_than_the_copy_holds_is_a_warning(
    installation,
) -> None:
    create_due_backup_and_delete_expired(installation, NOW)
    installation.secret_file.write_text("x" * 40)

    (warning,) = (
        f for f in iterate_doctor_findings(installation, TINY, NOW) if f.level == "warning"
    )

    assert "browsers from before are new learners" in warning.message


def test_errors_in_the_content_are_counted(look: Look, tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()

    found = look(content=tmp_path / "course")["content"]

    assert found.level == "warning"
    assert found.remedy == "`headroom check` names each."
    assert look(content=tmp_path / "none")["content"].level == "problem"


def test_without_copies_there_is_a_warning(installation, look: Look) -> None:
    off = dataclasses.replace(installation, backup_folder=None)

    assert look()["backups"].level == "warning"
    assert look(installation=off)["backups"].level == "warning"


def test_an_old_copy_is_a_warning_and_a_damaged_one_a_problem(installation, look: Look) -> None:
    path = create_due_backup_and_delete_expired(installation, NOW)
    assert path

    assert look(NOW + dt.timedelta(days=3))["backups"].level == "warning"

    os.truncate(path, path.stat().st_size - 9)
    assert look()["backups"].level == "problem"


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_missing_programs_of_postgresql_are_a_warning(look: Look, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert look()["PostgreSQL programs"].level == "warning"
