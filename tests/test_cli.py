"""The `headroom` command: what it prints, and one sentence where it cannot go on."""

import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from app.authoring import scaffold
from app.cli import EXPORT_FORMATS, IMPORT_FORMATS, PART_KINDS, QUESTION_TYPES, main
from app.estimator.hardware.part_values import FIELDS
from app.import_export.formats import ATTEMPT_FORMATS, READERS, WRITERS

TINY = Path(__file__).parent / "courses" / "tiny"


def test_settings_lists_each_with_value_default_and_meaning(capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_PORT", "8123")

    assert main(["settings"]) == 0
    printed = capsys.readouterr().out

    assert "HEADROOM_PORT\n    value    8123\n    default  8000\n" in printed
    assert "Port to listen on." in printed


def test_the_secret_is_not_printed(capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_SECRET", "hush")

    main(["settings"])

    assert "hush" not in capsys.readouterr().out


def test_a_setting_that_cannot_be_used_is_one_sentence(capsys, monkeypatch) -> None:
    monkeypatch.setenv("HEADROOM_PORT", "many")

    assert main(["settings"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("headroom: HEADROOM_PORT is “many”, which cannot be used")
    assert said.count("\n") == 1


def test_a_command_in_the_folder_of_a_served_course_uses_its_data(
    capsys, monkeypatch, tmp_path
) -> None:
    (tmp_path / ".headroom").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADROOM_DATA", "")
    monkeypatch.setenv("HEADROOM_CONTENT", "")

    assert main(["settings"]) == 0
    printed = capsys.readouterr().out

    assert "HEADROOM_DATA\n    value    .headroom\n" in printed
    assert "HEADROOM_CONTENT\n    value    .\n" in printed


def test_a_busy_port_says_what_to_do(capsys, monkeypatch, tmp_path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        monkeypatch.setenv("HEADROOM_PORT", str(port))
        monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))

        assert main(["serve"]) == 2

    said = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "HEADROOM_PORT=" in said


def test_host_and_port_can_be_options(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEADROOM_HOST", "127.0.0.3")
    monkeypatch.setenv("HEADROOM_PORT", "9")
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    with socket.socket() as busy:
        busy.bind(("127.0.0.2", 0))
        busy.listen()
        port = busy.getsockname()[1]

        assert main(["serve", "--host", "127.0.0.2", "--port", str(port)]) == 2

    assert f"cannot listen on 127.0.0.2:{port}" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_says_what_to_do(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path / "file" / "data"))

    assert main(["db", "upgrade"]) == 2
    assert "set HEADROOM_DATA to a folder that can" in capsys.readouterr().err


def test_a_damaged_database_says_what_to_do(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "headroom.db").write_bytes(b"not a database at all" * 100)
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))

    assert main(["db", "upgrade"]) == 2
    said = capsys.readouterr().err
    assert "is not a SQLite database" in said
    assert "Traceback" not in said


def test_a_missing_content_folder_says_what_to_do(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.setenv("HEADROOM_CONTENT", str(tmp_path / "none"))

    assert main(["serve"]) == 2
    assert "set HEADROOM_CONTENT" in capsys.readouterr().err


def test_a_database_is_brought_up_to_date(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path / "new"))

    assert main(["db", "upgrade"]) == 0
    assert (tmp_path / "new" / "headroom.db").exists()


def test_a_database_is_rewritten_where_nobody_uses_it(capsys, monkeypatch, tmp_path) -> None:
    path = tmp_path / "headroom.db"
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", f"sqlite:///{path}")
    main(["db", "upgrade"])
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 7")  # somebody was erased
        file.execute("CREATE TABLE left_over AS SELECT zeroblob(1000000)")
        file.execute("DROP TABLE left_over")

        assert main(["db", "vacuum"]) == 2

        said = capsys.readouterr().err
        assert "(database is locked): stop every server that uses it" in said
        assert file.execute("PRAGMA user_version").fetchone() == (7,)

    assert main(["db", "vacuum"]) == 0
    assert f"{path} was rewritten and has 0." in capsys.readouterr().out
    with contextlib.closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (0,)


def test_a_sound_course_passes_the_check() -> None:
    assert main(["check", str(TINY)]) == 0


def test_a_broken_course_is_named_place_by_place(capsys, tmp_path) -> None:
    topic = tmp_path / "topics" / "t"
    topic.mkdir(parents=True)
    (topic / "quiz.md").write_text("---\ntitle: T\n---\n\n### Which?\n\n- [x] A\n")

    assert main(["check", str(tmp_path), "--format", "json"]) == 1
    problems = json.loads(capsys.readouterr().out)

    keys = {"path", "line", "column", "code", "severity", "message", "hint"}
    assert all(set(p) == keys for p in problems)
    assert "topics/t/quiz.md" in {p["path"] for p in problems}


def test_no_folder_at_all_is_one_sentence(capsys) -> None:
    assert main(["check", "nowhere"]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_nobody_listening_is_not_well(capsys, monkeypatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("HEADROOM_PORT", str(port))

    assert main(["health"]) == 2
    assert f"no answer on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["inference-memory", "kv-cache", "training-memory"])
def test_an_estimate_is_answered_as_json(capsys, name) -> None:
    assert main(["estimate", name, "--model", "llama-3.1-70b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]


def test_accuracy_says_how_near_each_kind_comes(capsys) -> None:
    assert main(["accuracy"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()

    assert "within tolerance" in first
    assert "python -m evidence.accuracy FILE --json" in last


def test_accuracy_says_where_own_cases_are_answered(capsys, tmp_path) -> None:
    assert main(["accuracy", str(tmp_path / "cases.json"), "--json"]) == 2
    assert "python -m evidence.accuracy FILE --json" in capsys.readouterr().err


def test_an_address_without_a_driver_says_what_to_install(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", "oracle://somewhere/else")

    assert main(["db", "upgrade"]) == 2
    assert "for PostgreSQL write postgresql+psycopg://" in capsys.readouterr().err


def test_the_collector_passes_over_what_a_command_imports_and_runs_on() -> None:
    """Looking through it would take a third of the time of a start."""
    code = (
        "import gc; from app.cli import main; main(['settings']);"
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert said.stdout.endswith(b"\nTrue True\n")


def test_the_parser_offers_what_the_commands_know() -> None:
    assert set(IMPORT_FORMATS) == set(READERS)
    assert set(EXPORT_FORMATS) == {*WRITERS, *ATTEMPT_FORMATS}
    assert QUESTION_TYPES == scaffold.ITEM_TYPES
    assert tuple(FIELDS) == PART_KINDS


def test_the_list_of_commands_and_an_estimate_import_no_web_framework(
    subtests: pytest.Subtests,
) -> None:
    for words in (["--help"], ["estimate", "kv-cache", "--json"]):
        with subtests.test(words=words):
            code = (
                "import contextlib, sys; from app.cli import main\n"
                f"with contextlib.suppress(SystemExit): main({words})\n"
                "print({'fastapi', 'pydantic', 'sqlalchemy'} & set(sys.modules))"
            )
            ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

            assert ran.stdout.endswith(b"\nset()\n")
