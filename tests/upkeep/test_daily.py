"""Copies that are made by themselves, beside the requests."""

import asyncio
import dataclasses
import datetime as dt
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.cli.database import migrate_and_secure_database
from app.database import backup as archive
from app.database.backup import create_due_backup_and_delete_expired, run_daily_backups
from app.database.engine import make_engine
from app.database.file_guards import hold_file_lock, temporary_folder_next_to
from app.database.installation import Installation, InstallationError
from app.database.schema import downgrade_schema, latest_schema_revision, read_schema_revision
from tests.databases import ABOUT_SQLITE, SERVER
from tests.loops import outcome
from tests.upkeep.conftest import NOW

TODAY = "headroom-2026-06-09.zip"
Enroll = Callable[..., None]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def older(installation: Installation) -> str:
    """Make the database one of an older schema; its revision."""
    engine = make_engine(installation.database_url)
    downgrade_schema(engine, "0002")
    engine.dispose()
    return "0002"


def revision(installation: Installation) -> str:
    engine = make_engine(installation.database_url)
    try:
        return read_schema_revision(engine)
    finally:
        engine.dispose()


def test_one_copy_is_made_a_day(installation) -> None:
    assert (
        create_due_backup_and_delete_expired(installation, NOW)
        == installation.backup_folder / TODAY
    )
    assert create_due_backup_and_delete_expired(installation, NOW) is None
    assert (
        create_due_backup_and_delete_expired(installation, NOW + dt.timedelta(days=1)) is not None
    )

    assert names(installation.backup_folder) == {TODAY, "headroom-2026-06-10.zip"}


def test_a_copy_is_a_backup_like_any_other(installation, enroll: Enroll) -> None:
    enroll(installation, "ada")

    path = create_due_backup_and_delete_expired(installation, NOW)

    assert path is not None
    with archive.open_backup(path) as opened:
        opened.verify_files()
        assert opened.manifest.rows["learner"] == 1


def test_old_copies_go(installation) -> None:
    for n in range(14):
        create_due_backup_and_delete_expired(installation, NOW + dt.timedelta(days=n))

    assert len(names(installation.backup_folder)) == 8  # seven days, and a Sunday


def test_another_place_may_be_named(installation, tmp_path) -> None:
    elsewhere = dataclasses.replace(installation, backup_folder=tmp_path / "disk" / "two")

    create_due_backup_and_delete_expired(elsewhere, NOW)

    assert names(tmp_path / "disk" / "two") == {TODAY}


def test_the_data_folder_itself_may_be_the_place(installation) -> None:
    beside = dataclasses.replace(installation, backup_folder=installation.data_folder)

    with beside.hold_shared_lock():
        assert create_due_backup_and_delete_expired(beside, NOW) == installation.data_folder / TODAY


def test_no_folder_is_made_where_the_data_folder_is_gone(installation) -> None:
    installation.data_folder.rename(installation.data_folder.with_name("moved"))

    with pytest.raises(InstallationError, match="is gone: put it back"):
        create_due_backup_and_delete_expired(installation, NOW)

    assert not installation.data_folder.exists()


def test_they_can_be_switched_off(installation) -> None:
    off = dataclasses.replace(installation, backup_folder=None)

    assert create_due_backup_and_delete_expired(off, NOW) is None

    assert not (installation.data_folder / "backups").exists()


def test_one_of_several_processes_makes_it(installation) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(
            pool.map(lambda _n: create_due_backup_and_delete_expired(installation, NOW), range(4))
        )

    assert [path for path in made if path] == [installation.backup_folder / TODAY]


def test_whoever_finds_another_at_it_leaves(installation) -> None:
    installation.backup_folder.mkdir()
    with hold_file_lock(installation.backup_folder / ".copying.lock"):
        assert create_due_backup_and_delete_expired(installation, NOW) is None

    assert names(installation.backup_folder) == set()


def test_what_a_killed_process_left_is_removed(installation) -> None:
    installation.backup_folder.mkdir()
    with temporary_folder_next_to(installation.backup_folder / "headroom-2026-06-08.zip") as folder:
        folder.rename(folder.with_name(".headroom-2026-06-08.zip.1"))
        left = folder.with_name(".headroom-2026-06-08.zip.1")
    (left / "database.sqlite3").write_text("half of it")

    create_due_backup_and_delete_expired(installation, NOW)

    assert names(installation.backup_folder) == {TODAY}


async def serve(installation: Installation, done: Callable[[], bool]) -> None:
    """Serve until it is done; the first look is at once."""
    async with run_daily_backups(installation, lambda: NOW, first_delay=0.0):
        while not done():  # noqa: ASYNC110 - a file tells nobody that it is there
            await asyncio.sleep(0.01)


def test_a_server_makes_it_by_itself(installation) -> None:
    path = installation.backup_folder / TODAY

    outcome(serve(installation, path.exists))

    assert names(installation.backup_folder) == {TODAY}


def test_a_server_that_stops_does_not_wait_for_a_copy(installation) -> None:
    """It is broken off without a trace, and made at the next start."""
    begun = threading.Event()

    async def stop_in_the_middle() -> None:
        async with run_daily_backups(installation, clock, first_delay=0.0):
            await asyncio.to_thread(begun.wait, 60)

    def clock() -> dt.datetime:
        begun.set()
        return NOW

    outcome(stop_in_the_middle())

    if (installation.backup_folder / TODAY).exists():  # it was quicker
        return
    assert not installation.backup_folder.exists() or names(installation.backup_folder) == set()


def test_a_server_holds_its_data_folder(installation) -> None:
    async def restore_meanwhile() -> None:
        async with run_daily_backups(installation, lambda: NOW):
            with pytest.raises(InstallationError, match="a server uses it"):
                installation.hold_exclusive_lock().__enter__()

    outcome(restore_meanwhile())


def test_a_copy_that_fails_is_logged(installation, caplog) -> None:
    installation.backup_folder.write_text("a file where the folder should be")

    with caplog.at_level(logging.WARNING, "headroom"):
        outcome(serve(installation, lambda: bool(caplog.records)))

    assert "The daily copy could not be made" in caplog.text
    assert "set HEADROOM_BACKUPS to one that can" in caplog.text


def test_a_copy_is_made_before_a_migration(installation) -> None:
    old = older(installation)

    migrate_and_secure_database(installation, NOW)

    (name,) = names(installation.backup_folder)
    assert name == f"headroom-2026-06-09-before-0002-to-{latest_schema_revision()}.zip"
    with archive.open_backup(installation.backup_folder / name) as opened:
        opened.verify_files()
        assert opened.manifest.schema_revision == old
    assert revision(installation) == latest_schema_revision()


def test_no_copy_is_made_where_nothing_is_migrated(installation, fresh) -> None:
    migrate_and_secure_database(installation, NOW)
    fresh.data_folder.mkdir()
    migrate_and_secure_database(fresh, NOW)

    assert not installation.backup_folder.exists()
    assert not fresh.backup_folder.exists()


def test_nothing_is_migrated_without_a_copy(installation) -> None:
    older(installation)
    installation.backup_folder.write_text("a file where the folder should be")

    with pytest.raises(InstallationError, match="HEADROOM_BACKUPS"):
        migrate_and_secure_database(installation, NOW)

    assert revision(installation) == "0002"


def test_without_copies_it_is_migrated_all_the_same(installation) -> None:
    older(installation)

    migrate_and_secure_database(dataclasses.replace(installation, backup_folder=None), NOW)

    assert revision(installation) == latest_schema_revision()


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_without_pg_dump_it_is_migrated_with_a_warning(
    installation, caplog, monkeypatch, tmp_path
) -> None:
    older(installation)
    monkeypatch.setenv("PATH", str(tmp_path))

    with caplog.at_level(logging.WARNING, "headroom"):
        migrate_and_secure_database(installation, NOW)

    assert "pg_dump was not found" in caplog.text
    assert revision(installation) == latest_schema_revision()


@ABOUT_SQLITE
def test_a_start_names_the_newest_copy(installation) -> None:
    create_due_backup_and_delete_expired(installation, NOW)
    (installation.data_folder / "headroom.db").write_bytes(b"")

    with pytest.raises(InstallationError) as stopped:
        migrate_and_secure_database(installation, NOW)

    newest_copy = installation.backup_folder / TODAY
    assert str(stopped.value).endswith(f" The newest copy is {newest_copy}.")
