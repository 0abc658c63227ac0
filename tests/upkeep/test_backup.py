"""`headroom backup`: one file that holds everything, made while others write."""

import json
import stat
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmodel import Session

from app.database.backup import create_backup, restore_backup
from app.database.engine import WRITE_OPTIONS, make_engine
from app.database.installation import Installation, InstallationError
from app.database.tables import Learner
from tests.amounts import FACTOR
from tests.databases import ABOUT_SQLITE, SERVER
from tests.upkeep.conftest import NOW

KEY = "a key that somebody gave by the environment"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copy.zip"


def test_a_backup_holds_database_key_and_manifest(installation, enroll, target) -> None:
    enroll(installation, "ada", "grace")

    create_backup(installation, target, NOW)

    with zipfile.ZipFile(target) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))
        database = "database.pgdump" if SERVER else "database.sqlite3"
        assert zipped.read("secret").decode() == installation.secret_file.read_text()
        assert set(zipped.namelist()) == {"manifest.json", "secret", database}
    assert manifest["format"] == 2
    assert manifest["rows"]["learner"] == 2
    assert manifest["database"] == ("postgresql" if SERVER else "sqlite")
    assert manifest["made_at"] == "2026-06-09T12:00:00Z"
    assert manifest["secret"] == "data folder"  # noqa: S105 - whence
    assert manifest["schema_revision"].isdecimal()


def test_only_its_owner_reads_it_and_nothing_lies_beside(installation, target) -> None:
    create_backup(installation, target, NOW)

    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert {p.name for p in target.parent.iterdir()} == {"copy.zip", "data"}


def test_a_key_of_the_environment_is_inside_too(installation, with_key, target) -> None:
    manifest = create_backup(with_key(installation, KEY), target, NOW)

    assert manifest.secret == "HEADROOM_SECRET"  # noqa: S105 - whence
    with zipfile.ZipFile(target) as zipped:
        assert zipped.read("secret").decode() == KEY


def test_without_a_database_there_is_nothing_to_back_up(fresh, target) -> None:
    with pytest.raises(InstallationError, match="there is no database yet"):
        create_backup(fresh, target, NOW)

    assert not target.exists()


def test_a_backup_that_is_broken_off_leaves_no_trace(installation, target) -> None:
    target.write_text("the copy of yesterday")

    class Stop(Exception):  # noqa: N818
        pass

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        create_backup(installation, target, NOW, stop)

    assert target.read_text() == "the copy of yesterday"
    assert {p.name for p in target.parent.iterdir()} == {"copy.zip", "data"}


@ABOUT_SQLITE
def test_a_damaged_database_is_not_copied(installation, target) -> None:
    Path(f"{installation.data_folder}/headroom.db").write_bytes(b"")

    with pytest.raises(InstallationError, match="0 bytes"):
        create_backup(installation, target, NOW)


class Writer(threading.Thread):
    """Writes one person after the other, and notes each that was confirmed."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(daemon=True)
        self._engine = make_engine(installation.database_url)
        self._leave = threading.Event()
        self.confirmed: list[str] = []
        self.some = threading.Event()
        """Enough was written for a copy to begin."""

    def run(self) -> None:
        while not self._leave.is_set():
            name = f"person {len(self.confirmed)}"
            with Session(self._engine) as db:
                db.connection(execution_options=WRITE_OPTIONS)
                db.add(Learner(key=name, created_at=0))
                db.commit()
            self.confirmed.append(name)
            if len(self.confirmed) >= 20:
                self.some.set()

    def stop(self) -> None:
        self._leave.set()
        self.join()
        self._engine.dispose()


@pytest.mark.parametrize("_turn", range(FACTOR))
def test_what_was_confirmed_before_it_began_is_inside(
    installation: Installation,
    fresh: Installation,
    target: Path,
    people: Callable[[Installation], set[str]],
    _turn: int,
) -> None:
    writer = Writer(installation)
    writer.start()
    assert writer.some.wait(60)

    before = set(writer.confirmed)
    manifest = create_backup(installation, target, NOW)
    writer.stop()

    restore_backup(fresh, target, NOW)
    found = people(fresh)
    assert before <= found <= {*writer.confirmed}
    assert manifest.rows["learner"] == len(found)


def test_a_writer_does_not_wait_for_a_copy(installation, enroll, people, target) -> None:
    written: list[str] = []

    def write() -> None:
        if not written:
            written.append("ada")
            enroll(installation, "ada")

    manifest = create_backup(installation, target, NOW, write)

    assert people(installation) == {"ada"}
    assert manifest.rows["learner"] == 0


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_without_its_programs_postgresql_is_not_copied(
    installation, target, monkeypatch, tmp_path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InstallationError, match="pg_dump was not found"):
        create_backup(installation, target, NOW)

    assert not target.exists()
