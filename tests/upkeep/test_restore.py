"""`headroom restore`: everything is checked first, and what was there is kept."""

import dataclasses
import errno
import itertools
import json
import random
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmodel import Session, select

from app.cli.database import migrate_and_secure_database
from app.database.backup import create_backup, restore_backup
from app.database.engine import make_engine
from app.database.installation import Installation, InstallationError
from app.database.schema import downgrade_schema, latest_schema_revision
from app.database.tables import Learner
from tests.amounts import FACTOR
from tests.databases import ABOUT_SQLITE, SERVER
from tests.upkeep.conftest import NOW

People = Callable[[Installation], set[str]]


@pytest.fixture
def backup(installation, enroll, tmp_path) -> Path:
    """A backup in which ada is; bob came later."""
    enroll(installation, "ada")
    path = tmp_path / "copy.zip"
    create_backup(installation, path, NOW)
    enroll(installation, "bob")
    return path


def state_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, but for locks, which are empty."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "lock" not in path.name
    }


def refusal(installation: Installation, source: Path) -> str:
    """The one sentence; nothing in the data folder has changed."""
    before = state_of(installation.data_folder)
    with pytest.raises(InstallationError) as stopped:
        restore_backup(installation, source, NOW)
    said = str(stopped.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert state_of(installation.data_folder) == before
    return said


def changed(source: Path, **told: object) -> Path:
    """The backup with another manifest."""
    path = source.with_name("changed.zip")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                content = json.dumps({**json.loads(content), **told}).encode()
            new.writestr(name, content)
    return path


def test_what_was_copied_is_there_again(installation, backup, people: People) -> None:
    restore_backup(installation, backup, NOW)

    assert people(installation) == {"ada"}


def test_a_fresh_machine_becomes_the_old_one(installation, fresh, backup, people: People) -> None:
    restore_backup(fresh, backup, NOW)

    assert people(fresh) == {"ada"}
    assert fresh.secret_file.read_text() == installation.secret_file.read_text()
    assert stat.S_IMODE(fresh.secret_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(fresh.data_folder.stat().st_mode) == 0o700


def test_what_was_there_is_kept_and_can_be_put_back(installation, backup, people: People) -> None:
    done = restore_backup(installation, backup, NOW)

    (kept,) = done.replaced_files_folders
    assert kept == installation.data_folder / "before-restore-2026-06-09-120000"
    assert (kept / "secret").read_text() == installation.secret_file.read_text()
    if SERVER:
        restore_backup(installation, kept / "database.zip", NOW.replace(hour=13))
    else:
        (kept / "headroom.db").rename(installation.data_folder / "headroom.db")
    assert people(installation) == {"ada", "bob"}


@ABOUT_SQLITE  # a server's tables change in one transaction
def test_a_disk_that_fails_on_the_way_leaves_all_as_it_was(
    installation, backup, people: People, monkeypatch
) -> None:
    key = installation.secret_file.read_text()
    calls = itertools.count()

    def full(_folder: Path) -> None:
        if next(calls) == 1:  # the key is replaced, the database is not
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("app.database.backup.sync_to_disk", full)
    with pytest.raises(InstallationError, match="No space left"):
        restore_backup(installation, backup, NOW)

    assert people(installation) == {"ada", "bob"}
    assert installation.secret_file.read_text() == key
    left = {path.name for path in installation.data_folder.iterdir()}
    assert not any("restor" in name for name in left), left


def test_an_older_schema_is_migrated_at_the_next_start(
    installation, fresh, enroll, people: People, tmp_path
) -> None:
    enroll(installation, "ada")
    engine = make_engine(installation.database_url)
    downgrade_schema(engine, "0001")
    engine.dispose()
    create_backup(installation, tmp_path / "old.zip", NOW)

    done = restore_backup(fresh, tmp_path / "old.zip", NOW)
    migrate_and_secure_database(fresh, NOW)

    assert done.manifest.schema_revision == "0001"
    assert people(fresh) == {"ada"}


def test_a_newer_schema_gives_way_to_an_older_backup(installation, backup, people: People) -> None:
    engine = make_engine(installation.database_url)
    with engine.begin() as db:
        db.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        db.exec_driver_sql("CREATE TABLE of_the_future (id INTEGER)")
    engine.dispose()

    restore_backup(installation, backup, NOW)

    migrate_and_secure_database(installation, NOW)
    assert people(installation) == {"ada"}


def test_a_backup_cut_short_anywhere_changes_nothing(
    installation, backup, subtests: pytest.Subtests
) -> None:
    content = backup.read_bytes()
    whole = len(content)
    ends = [0, 1, 3, 4, 30, whole - 1, whole - 21, whole - 22, whole - 23]
    for turn in range(24 * FACTOR):
        anywhere = random.Random(turn).randrange(whole)  # noqa: S311 - a drill
        end = ends[turn] if turn < len(ends) else anywhere
        backup.write_bytes(content[:end])

        with subtests.test(end=end):
            assert "nothing was changed" in refusal(installation, backup)


def test_a_backup_with_a_changed_byte_is_refused_or_restored_whole(
    installation, backup, enroll, people: People, subtests: pytest.Subtests
) -> None:
    whole = backup.read_bytes()
    for turn in range(24 * FACTOR):
        content = bytearray(whole)
        place = random.Random(turn).randrange(len(content))  # noqa: S311 - a drill
        content[place] ^= 1 << turn % 8
        backup.write_bytes(content)

        with subtests.test(place=place):
            try:
                restore_backup(installation, backup, NOW)
            except InstallationError:
                assert people(installation) == {"ada", "bob"}
            else:  # a time stamp or the like inside of the zip, which means nothing
                assert people(installation) == {"ada"}
                enroll(installation, "bob")


@pytest.mark.parametrize("content", [b"", b"PK", b"Dear diary, " * 500])
def test_a_file_that_is_no_backup_is_refused(installation, tmp_path, content) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)

    assert "is not a sound backup of Headroom" in refusal(installation, other)


def test_the_archive_of_something_else_is_refused(installation, tmp_path) -> None:
    other = tmp_path / "photos.zip"
    with zipfile.ZipFile(other, "w") as zipped:
        zipped.writestr("cat.jpg", b"miaow")

    assert "is not a sound backup of Headroom" in refusal(installation, other)


def test_a_file_that_is_not_there_is_named(installation, tmp_path) -> None:
    said = refusal(installation, tmp_path / "none.zip")

    assert said == f"{tmp_path / 'none.zip'} cannot be read (No such file or directory)."


def test_a_newer_format_is_refused(installation, backup) -> None:
    said = refusal(installation, changed(backup, format=3, more="unknown"))

    assert "written by a newer Headroom (format 3;" in said


def test_a_newer_schema_is_refused(installation, backup) -> None:
    said = refusal(installation, changed(backup, schema_revision="9999"))

    assert f"schema 9999; this version knows up to {latest_schema_revision()}" in said


def test_a_manifest_without_its_parts_is_refused(installation, backup) -> None:
    said = refusal(installation, changed(backup, rows="many"))

    assert "its manifest is damaged or of another program" in said


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "notes.txt"])  # noqa: S108
def test_nothing_but_database_and_key_is_taken_out(
    installation, backup, people: People, name: str
) -> None:
    before = set(installation.data_folder.rglob("*"))
    with zipfile.ZipFile(backup, "a") as zipped:
        zipped.writestr(name, b"evil")

    done = restore_backup(installation, backup, NOW)

    assert people(installation) == {"ada"}
    new = {
        path
        for path in installation.data_folder.rglob("*")
        if not path.is_relative_to(done.replaced_files_folders[0])
    }
    assert {path for path in new - before if "lock" not in path.name} == set()
    assert not list(installation.data_folder.parent.parent.glob("evil"))


def test_a_backup_of_format_1_is_restored(installation, backup, people: People) -> None:
    files = {"database.sqlite3": {"size": 1, "sha256": "0" * 64}}

    restore_backup(installation, changed(backup, format=1, files=files), NOW)

    assert people(installation) == {"ada"}


def test_the_backup_of_the_other_kind_of_database_is_refused(installation, backup) -> None:
    other = "sqlite" if SERVER else "postgresql"

    said = refusal(installation, changed(backup, database=other))

    assert "set HEADROOM_DATABASE_URL to one of the same kind" in said


def test_nothing_is_restored_under_a_server(installation, backup) -> None:
    with installation.hold_shared_lock():
        assert "for a server uses it" in refusal(installation, backup)


def test_nobody_starts_while_somebody_restores(installation) -> None:
    with (
        installation.hold_exclusive_lock(),
        pytest.raises(InstallationError, match="a restore is going on there"),
        installation.hold_shared_lock(),
    ):
        pass


def test_nothing_is_restored_under_another_program(installation, backup) -> None:
    engine = make_engine(installation.database_url)
    with Session(engine) as db:
        db.exec(select(Learner.id)).all()

        with pytest.raises(InstallationError, match=r"another program has|other connection"):
            restore_backup(installation, backup, NOW)
    engine.dispose()


@ABOUT_SQLITE
def test_a_damaged_database_is_moved_aside_as_it_is(installation, backup, people: People) -> None:
    database = installation.data_folder / "headroom.db"
    database.write_bytes(b"damaged" * 1000)
    Path(f"{database}-wal").write_bytes(b"its log")

    (kept,) = restore_backup(installation, backup, NOW).replaced_files_folders

    assert people(installation) == {"ada"}
    assert (kept / "headroom.db").read_bytes() == b"damaged" * 1000
    assert (kept / "headroom.db-wal").read_bytes() == b"its log"


@ABOUT_SQLITE
def test_a_database_outside_of_the_data_folder_is_kept_where_it_is(
    installation, backup, people: People, tmp_path
) -> None:
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    (installation.data_folder / "headroom.db").rename(elsewhere / "headroom.db")
    moved = dataclasses.replace(installation, database_url=f"sqlite:///{elsewhere / 'headroom.db'}")

    done = restore_backup(moved, backup, NOW)

    assert people(moved) == {"ada"}
    assert {folder.parent for folder in done.replaced_files_folders} == {
        elsewhere,
        moved.data_folder,
    }
    assert (elsewhere / done.replaced_files_folders[0].name / "headroom.db").exists()
    assert (moved.data_folder / done.replaced_files_folders[0].name / "secret").exists()


@ABOUT_SQLITE
def test_a_restore_that_was_interrupted_is_done_again(installation, backup, people: People) -> None:
    ready = installation.data_folder / "headroom.db.restoring"
    ready.write_bytes(b"half of it")
    (installation.data_folder / "headroom.db").rename(installation.data_folder / "aside.db")
    with pytest.raises(InstallationError, match="was interrupted"):
        migrate_and_secure_database(installation, NOW)

    restore_backup(installation, backup, NOW)

    migrate_and_secure_database(installation, NOW)
    assert people(installation) == {"ada"}
    assert not ready.exists()


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_the_tables_of_another_program_are_not_replaced(fresh, backup) -> None:
    engine = make_engine(fresh.database_url)
    with engine.begin() as db:
        db.exec_driver_sql("CREATE TABLE invoices (id INTEGER)")
    engine.dispose()

    with pytest.raises(InstallationError, match="tables of another program, such as “invoices”"):
        restore_backup(fresh, backup, NOW)
