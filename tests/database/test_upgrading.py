"""What a database must be before it is used, and who migrates when several start."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app.database.engine import make_engine
from app.database.schema import (
    UnusableDatabaseError,
    downgrade_schema,
    latest_schema_revision,
    read_schema_revision,
    read_schema_revision_of_sqlite_file,
    upgrade_schema,
    upgrade_schema_if_outdated,
)
from tests.amounts import FACTOR
from tests.browser.server import WARM
from tests.database.migrating import hold, migrate
from tests.databases import ABOUT_SQLITE, Databases


@pytest.fixture
def address(tmp_path: Path, databases: Databases) -> Iterator[str]:
    with databases.blank(tmp_path) as address:
        yield address


@pytest.fixture
def engine(address: str) -> Iterator[Engine]:
    engine = make_engine(address)
    yield engine
    engine.dispose()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headroom.db"


def refusal(engine: Engine) -> str:
    """The one sentence that stops the start."""
    with pytest.raises(UnusableDatabaseError) as stopped:
        upgrade_schema_if_outdated(engine, pytest.fail)
    said = str(stopped.value)
    assert said.endswith(".")
    assert "\n" not in said
    return said


def refusal_of(file: Path) -> str:
    engine = make_engine(f"sqlite:///{file}")
    try:
        return refusal(engine)
    finally:
        engine.dispose()


def say(engine: Engine, words: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(words))


def test_a_database_that_is_absent_is_made(engine: Engine) -> None:
    upgrade_schema_if_outdated(engine, pytest.fail)

    assert read_schema_revision(engine) == latest_schema_revision()


def test_an_older_database_is_migrated_after_what_comes_before(engine: Engine) -> None:
    upgrade_schema(engine)
    downgrade_schema(engine, "0002")
    told: list[str] = []

    upgrade_schema_if_outdated(
        engine, lambda old: told.append(f"{old} is {read_schema_revision(engine)}")
    )

    assert told == ["0002 is 0002"]
    assert read_schema_revision(engine) == latest_schema_revision()


def test_nothing_is_migrated_where_what_comes_before_fails(engine: Engine) -> None:
    upgrade_schema(engine)
    downgrade_schema(engine, "0002")

    def fail(_old: str) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        upgrade_schema_if_outdated(engine, fail)

    assert read_schema_revision(engine) == "0002"


def test_a_newer_database_is_refused(engine: Engine) -> None:
    upgrade_schema(engine)
    say(engine, "UPDATE alembic_version SET version_num = '9999'")

    said = refusal(engine)

    assert "written by a newer Headroom (its schema is 9999;" in said
    assert "install the newer version again" in said


def test_the_database_of_another_program_is_refused(engine: Engine) -> None:
    say(engine, "CREATE TABLE invoices (id INTEGER)")

    said = refusal(engine)

    assert "belongs to another program (it holds tables such as “invoices”)" in said
    say(engine, "SELECT id FROM invoices")  # it is as it was
    with pytest.raises(UnusableDatabaseError):
        read_schema_revision(engine)


def test_another_program_may_use_the_same_migration_tool(engine: Engine) -> None:
    say(engine, "CREATE TABLE invoices (id INTEGER)")
    say(engine, "CREATE TABLE alembic_version (version_num VARCHAR(32))")
    say(engine, "INSERT INTO alembic_version VALUES ('3f9a1c2b7d10')")

    assert "belongs to another program" in refusal(engine)


@ABOUT_SQLITE
def test_a_file_of_another_program_is_not_even_opened_to_write(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE invoices (id INTEGER)")
    before = file.read_bytes()

    refusal_of(file)

    assert file.read_bytes() == before


@ABOUT_SQLITE
def test_a_database_of_no_bytes_is_not_taken_for_a_new_one(file: Path) -> None:
    file.touch()

    said = refusal_of(file)

    assert f"the database {file} is empty (0 bytes)" in said
    assert "`headroom restore FILE`" in said
    assert file.stat().st_size == 0


@ABOUT_SQLITE
def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    file.write_bytes(b"Dear diary, " * 1000)

    assert "is not a SQLite database" in refusal_of(file)


@ABOUT_SQLITE
def test_a_damaged_database_is_refused(file: Path) -> None:
    engine = make_engine(f"sqlite:///{file}")
    upgrade_schema(engine)
    engine.dispose()
    content = bytearray(file.read_bytes())
    for page in range(3, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    file.write_bytes(content)

    said = refusal_of(file)

    assert f"the database {file} is damaged" in said
    assert "`headroom restore FILE`" in said


def test_a_database_without_one_of_its_tables_is_refused(engine: Engine) -> None:
    upgrade_schema(engine)
    say(engine, "DROP TABLE note")
    say(engine, "DROP TABLE reading")

    said = refusal(engine)

    assert "is damaged (it has no table note, reading)" in said
    assert "`headroom restore FILE`" in said


@ABOUT_SQLITE
def test_a_database_cut_short_is_refused(file: Path) -> None:
    engine = make_engine(f"sqlite:///{file}")
    upgrade_schema(engine)
    engine.dispose()
    os.truncate(file, file.stat().st_size // 2)

    assert "is damaged" in refusal_of(file)


@ABOUT_SQLITE
def test_a_folder_in_the_place_of_the_database_is_refused(file: Path) -> None:
    file.mkdir()

    assert "is not a file" in refusal_of(file)


@ABOUT_SQLITE
def test_a_missing_folder_is_named(file: Path) -> None:
    assert "the folder" in refusal_of(file.parent / "none" / "headroom.db")


@ABOUT_SQLITE
def test_a_log_without_its_database_is_not_thrown_away(file: Path) -> None:
    log = Path(f"{file}-wal")
    log.write_bytes(b"what somebody answered")

    assert "is gone: move the database back beside it" in refusal_of(file)
    assert log.read_bytes() == b"what somebody answered"


@ABOUT_SQLITE
def test_an_interrupted_restore_is_finished_first(file: Path) -> None:
    Path(f"{file}.restoring").touch()

    assert "was interrupted: run `headroom restore FILE` again" in refusal_of(file)


@ABOUT_SQLITE
@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(address: str) -> None:
    engine = make_engine(address)

    assert "nothing would be kept" in refusal(engine)


@ABOUT_SQLITE
def test_a_database_whose_log_was_left_by_a_killed_process_is_sound(
    file: Path, tmp_path: Path
) -> None:
    engine = make_engine(f"sqlite:///{file}")
    upgrade_schema(engine)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("headroom.db", "headroom.db-wal"):
        shutil.copy(tmp_path / name, copy / name)
    engine.dispose()

    again = make_engine(f"sqlite:///{copy / 'headroom.db'}")
    assert read_schema_revision(again) == latest_schema_revision()
    again.dispose()


class Migrating:
    """A process that migrates when it is told to begin."""

    def __init__(self, address: str, said: Path) -> None:
        self._said = said
        self._pipe, theirs = WARM.Pipe()
        self._process = WARM.Process(target=migrate, args=(address, theirs, said))
        self._process.start()

    def begin(self) -> None:
        self._pipe.send("go")

    def end(self) -> tuple[int | None, str]:
        """Its status and its words."""
        self._process.join()
        return self._process.exitcode, self._said.read_text()


def three(address: str, folder: Path) -> list[Migrating]:
    return [Migrating(address, folder / f"said-{number}") for number in range(3)]


def begin_together(processes: list[Migrating]) -> list[tuple[int | None, str]]:
    """The status and the words of each after all were told to begin."""
    for process in processes:
        process.begin()
    return [process.end() for process in processes]


@pytest.mark.drill
@pytest.mark.parametrize("_turn", range(FACTOR))
def test_three_processes_that_start_at_once_all_come_up(
    address: str, engine: Engine, tmp_path: Path, _turn: int
) -> None:
    assert begin_together(three(address, tmp_path)) == [(0, "ready\n")] * 3
    assert read_schema_revision(engine) == latest_schema_revision()


@pytest.mark.drill
@pytest.mark.parametrize("_turn", range(FACTOR))
def test_an_older_database_is_migrated_by_one_of_three(
    address: str, engine: Engine, tmp_path: Path, _turn: int
) -> None:
    upgrade_schema(engine)
    downgrade_schema(engine, "0001")
    engine.dispose()

    ends = begin_together(three(address, tmp_path))

    assert sorted(ends) == [(0, "0001\nready\n"), *[(0, "ready\n")] * 2]


def test_whoever_is_killed_while_migrating_keeps_nobody_waiting(
    address: str, tmp_path: Path
) -> None:
    alone, theirs = WARM.Pipe()
    first = WARM.Process(target=hold, args=(address, theirs))
    first.start()
    assert alone.recv() == "alone"

    others = three(address, tmp_path)
    first.kill()
    first.join()

    assert begin_together(others) == [(0, "ready\n")] * 3


def test_to_examine_a_database_keeps_the_locks_of_the_process(tmp_path: Path) -> None:
    """Else another process that closes it takes the log away from under a server."""
    path = tmp_path / "headroom.db"
    with contextlib.closing(sqlite3.connect(path)) as server:
        server.execute("PRAGMA journal_mode=WAL")
        server.execute("CREATE TABLE alembic_version (version_num TEXT)")
        server.commit()

        assert read_schema_revision_of_sqlite_file(path) == ""
        other = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
        asked = "c.execute('SELECT * FROM alembic_version').fetchall(); c.close()"
        subprocess.run([sys.executable, "-c", other + asked, path], check=True)

        assert Path(f"{path}-wal").exists()
