"""The commands of upkeep, and a start that is stopped by one sentence."""

import os
import socket
import stat

import pytest
from sqlalchemy import make_url

from app.cli import main
from app.database.engine import make_engine
from app.database.schema import downgrade_schema
from tests.conftest import TINY
from tests.databases import ABOUT_SQLITE, SERVER

KEY = "a key that somebody gave by the environment"


@pytest.fixture(autouse=True)
def _environment(monkeypatch, installation) -> None:
    for name in list(os.environ):
        if name.startswith("HEADROOM_"):
            monkeypatch.delenv(name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HEADROOM_PORT", str(free.getsockname()[1]))
    monkeypatch.setenv("HEADROOM_DATA", str(installation.data_folder))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", installation.database_url)
    monkeypatch.setenv("HEADROOM_CONTENT", str(TINY))


@pytest.fixture(autouse=True)
def _modes() -> None:
    """What a command does to the modes of new files ends with its test."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def sentence(capsys) -> str:
    said = capsys.readouterr().err
    assert said.startswith("headroom: ")
    assert said.count("\n") == 1
    return said


def test_backup_says_what_it_holds(installation, enroll, capsys, tmp_path) -> None:
    enroll(installation, "ada")

    assert main(["backup", str(tmp_path / "copy.zip")]) == 0

    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path / 'copy.zip'}: 1 learner and ")
    assert "The key that signs cookies is inside: keep this file safe." in said


def test_backup_says_that_a_given_key_is_inside(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_SECRET", KEY)

    assert main(["backup", str(tmp_path / "copy.zip")]) == 0

    said = capsys.readouterr().out
    assert "The key from HEADROOM_SECRET is inside too" in said
    assert KEY not in said


def test_backup_replaces_a_file_only_when_told(capsys, tmp_path) -> None:
    path = tmp_path / "copy.zip"
    path.write_text("precious")

    assert main(["backup", str(path)]) == 2
    assert "exists already: choose another name, or add --force." in sentence(capsys)
    assert path.read_text() == "precious"

    assert main(["backup", "--force", str(path)]) == 0
    assert path.read_bytes().startswith(b"PK")


def test_backup_into_a_folder_that_is_not_there_is_one_sentence(capsys, tmp_path) -> None:
    assert main(["backup", str(tmp_path / "none" / "copy.zip")]) == 2
    assert "does not exist: make it first." in sentence(capsys)


def test_restore_says_what_it_did_and_where_the_old_is(
    installation, capsys, tmp_path, monkeypatch
) -> None:
    main(["backup", str(tmp_path / "copy.zip")])
    monkeypatch.setenv("HEADROOM_SECRET", KEY)
    capsys.readouterr()

    assert main(["restore", str(tmp_path / "copy.zip")]) == 0

    said = capsys.readouterr().out
    assert said.startswith("Restored 0 learners and ")
    assert f"is kept in {installation.data_folder / 'before-restore-'}" in said
    assert "HEADROOM_SECRET is set and wins over the key of the backup" in said
    assert "Start the server now" in said


def test_restore_of_something_else_is_one_sentence(capsys, tmp_path) -> None:
    (tmp_path / "other").write_text("Dear diary")

    assert main(["restore", str(tmp_path / "other")]) == 2
    assert "nothing was changed: use another copy." in sentence(capsys)


def test_doctor_is_content_with_a_sound_installation(installation, capsys) -> None:
    for path in installation.data_folder.iterdir():
        path.chmod(0o600)

    assert main(["doctor"]) == 0

    said = capsys.readouterr().out
    assert "ok       database: " in said
    assert said.endswith("0 problems, 1 warning\n")  # no copy was made yet


def test_doctor_finds_a_problem(installation, capsys) -> None:
    installation.secret_file.write_text("")

    assert main(["doctor"]) == 1
    assert "problem  key: cannot be used\n         → " in capsys.readouterr().out


def test_doctor_finds_settings_that_cannot_be_used(capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_PORT", "many")

    assert main(["doctor"]) == 2
    assert "HEADROOM_PORT is “many”" in sentence(capsys)


@ABOUT_SQLITE
@pytest.mark.parametrize("command", [["serve"], ["db", "upgrade"]])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty (0 bytes)"),
        (b"not a database at all" * 100, "is not a SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 8000, "is damaged"),
    ],
)
def test_a_database_that_must_not_be_used_stops_the_start(
    installation, capsys, command, content: bytes, words: str
) -> None:
    (installation.data_folder / "headroom.db").write_bytes(content)

    assert main(command) == 2

    said = sentence(capsys)
    assert words in said
    assert "`headroom restore FILE`" in said


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_stops_the_start(capsys, monkeypatch, address) -> None:
    monkeypatch.setenv("HEADROOM_DATABASE_URL", address)

    assert main(["db", "upgrade"]) == 2
    assert "nothing would be kept" in sentence(capsys)


def test_a_start_makes_what_is_kept_private(installation) -> None:
    if not SERVER:
        (installation.data_folder / "headroom.db").chmod(0o644)
    installation.secret_file.chmod(0o644)

    assert main(["db", "upgrade"]) == 0

    for path in installation.data_folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_data_folder_of_ours_is_private(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path / "new"))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", "")

    assert main(["db", "upgrade"]) == 0

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    mode = (tmp_path / "new" / "headroom.db").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://ada:hushhush@127.0.0.1:9/x",
        "postgresql+psycopg://ada@127.0.0.1:9/x?password=hushhush",
        "postgresql+psycopg://ada:hushhush@127.0.0.1:many/x",
        "postgresql+nothing://ada:hushhush@127.0.0.1:9/x",
        "hushhush",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["settings"],
        ["db", "upgrade"],
        ["serve"],
        ["backup", "copy.zip"],
        ["doctor"],
        ["export", "attempts-csv", "attempts.csv"],
    ],
)
def test_the_password_of_the_database_is_never_printed(
    capsys, monkeypatch, tmp_path, address: str, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADROOM_DATABASE_URL", address)

    main(command)

    said = capsys.readouterr()
    assert said.out + said.err
    assert "hush" not in said.out + said.err


@pytest.mark.skipif(not SERVER, reason="is about PostgreSQL")
def test_the_password_of_a_database_that_works_is_not_printed_either(
    capsys, monkeypatch, installation
) -> None:
    address = make_url(installation.database_url).set(password="hushhush")
    monkeypatch.setenv("HEADROOM_DATABASE_URL", address.render_as_string(hide_password=False))

    main(["db", "upgrade"])

    said = capsys.readouterr()
    assert "hush" not in said.out + said.err
    assert "***" in said.out


def test_a_short_key_stops_the_start(capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_SECRET", "a")

    assert main(["serve"]) == 2
    assert "HEADROOM_SECRET has 1 characters and needs at least 32" in sentence(capsys)


def test_an_empty_key_file_stops_the_start(installation, capsys) -> None:
    installation.secret_file.write_text("")

    assert main(["serve"]) == 2
    assert "holds no usable key" in sentence(capsys)


def test_an_older_database_is_copied_and_migrated(installation, capsys) -> None:
    engine = make_engine(installation.database_url)
    downgrade_schema(engine, "0002")
    engine.dispose()

    assert main(["db", "upgrade"]) == 0

    assert "is up to date." in capsys.readouterr().out
    assert len(list((installation.data_folder / "backups").glob("*-before-*.zip"))) == 1


def test_nothing_starts_while_somebody_restores(installation, capsys) -> None:
    with installation.hold_exclusive_lock():
        assert main(["db", "upgrade"]) == 2

    assert "a restore is going on there" in sentence(capsys)
