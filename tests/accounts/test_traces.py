"""What is left of erased rows in the files of the data folder, and for how long.

Rows are overwritten at once and the log is emptied soon. Copies of rows in unused space
of the file are gone after the next start or the next daily copy.
tests/web/test_two_processes.py says the same of several processes.
"""

import asyncio
import contextlib
import functools
import random
import shutil
import sqlite3
import threading
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.accounts import learner_store as store
from app.cli.database import migrate_and_secure_database
from app.database import secure_delete as erasure
from app.database.backup import _DailyBackupScheduler
from app.database.installation import Installation
from app.database.secure_delete import (
    WalTruncator,
    truncate_write_ahead_log,
    vacuum_file_and_clear_mark,
    vacuum_file_if_marked,
)
from app.database.tables import Attempt, Learner, SectionNoteRow
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome
from tests.upkeep.conftest import NOW

pytestmark = ABOUT_SQLITE
WORD = "Rosalindanovskaya"


def hits(folder: Path, word: str = WORD) -> dict[str, int]:
    """In which files the word lies, and how often."""
    found = {
        path.name: path.read_bytes().count(word.encode())
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {name: count for name, count in found.items() if count}


def wait_until(seen: Callable[[], bool]) -> None:
    """Look until it is so; the limit is only there so that nothing hangs for ever."""
    for _ in range(1200):
        if seen():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within a minute")


def settings_of(name: str) -> dict[str, str]:
    return {"name": name, "minutes_a_day": "30", "retention": "90"}


@pytest.fixture
def folder(app: FastAPI) -> Path:
    return Path(app.state.engine.url.database).parent


@pytest.fixture
def path(app: FastAPI) -> Path:
    return Path(app.state.engine.url.database)


@pytest.fixture
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the daily copies that is not beside the database."""
    return tmp_path_factory.mktemp("copies")


def erase(engine: Engine, learner: int) -> None:
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        store.erase_person_in_all_courses(db, learner)
        db.commit()


def test_the_words_of_a_learner_leave_every_file(rosa: TestClient, folder: Path):
    rosa.post("/settings", data=settings_of(WORD))
    assert hits(folder)

    rosa.post("/settings/erasure", data={"word": "erase"})

    wait_until(lambda: not hits(folder))
    assert "erased" in rosa.get("/settings/erased").text.lower()


def crowd(engine: Engine, turns: int = 25) -> list[int]:
    """Learners whose rows came mixed, changed and went, as over months."""
    chance = random.Random(3)  # noqa: S311 - repeatable, not secret
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        learners = [Learner(key=f"key-{n}", created_at=1) for n in range(40)]
        db.add_all(learners)
        db.flush()
        numbers = [row.id or 0 for row in learners]
        for turn in range(turns):
            for number in chance.sample(numbers, len(numbers)):
                words = f"{{{number}}} " * chance.randint(1, 90)
                db.add(written(number, turn, words))
                db.add(answered(number, f"{turn}.{chance.random()}", words))
            db.flush()
            for note in db.exec(select(SectionNoteRow)).all():
                if chance.random() < 0.1:
                    note.words = note.words * chance.randint(1, 4)
                elif chance.random() < 0.05:
                    db.delete(note)
        db.commit()
    return numbers


def written(learner: int, turn: int, words: str) -> SectionNoteRow:
    return SectionNoteRow(learner_id=learner, topic="t", section=f"s{turn}", words=words, at=turn)


def answered(learner: int, token: str, words: str) -> Attempt:
    return Attempt(
        learner_id=learner,
        token=f"{learner}:{token}",
        item=f"q{{{learner}}}",
        revision="r",
        topic="t",
        seed=1,
        context="quiz",
        raw=words[:400],
        parsed="{}",
        score=1.0,
        first=False,
        study_day="2026-01-01",
        at=0,
    )


def erase_half(app: FastAPI, path: Path, turns: int = 25) -> tuple[list[int], list[int]]:
    """Erase every other learner of a crowd; who is gone, and who is left."""
    numbers = crowd(app.state.engine, turns)
    gone, left = numbers[::2], numbers[1::2]
    for number in gone:
        erase(app.state.engine, number)
    assert truncate_write_ahead_log(path)
    return gone, left


def traces(path: Path, numbers: Iterable[int]) -> dict[int, dict[str, int]]:
    """In which files the words of these learners lie."""
    found = {n: hits(path.parent, f"{{{n}}}") for n in numbers}
    return {n: files for n, files in found.items() if files}


def amount(path: Path, numbers: Iterable[int]) -> int:
    """How many words of these learners lie in files."""
    return sum(n for files in traces(path, numbers).values() for n in files.values())


def noted(path: Path) -> bool:
    with contextlib.closing(sqlite3.connect(path)) as file:
        return bool(file.execute("PRAGMA user_version").fetchone()[0])


def free_pages(path: Path) -> int:
    """Pages that a file keeps for later; none after it was rewritten."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        return int(file.execute("PRAGMA freelist_count").fetchone()[0])


def copied(path: Path, folder: Path) -> Path:
    """The file as another process would find it after a kill."""
    folder.mkdir()
    for name in (path, Path(f"{path}-wal")):
        shutil.copy(name, folder / name.name)
    return folder / path.name


def test_an_erasure_empties_the_log_and_rewrites_nothing(app: FastAPI, path: Path):
    gone, left = erase_half(app, path)

    assert Path(f"{path}-wal").stat().st_size == 0
    assert free_pages(path) > 0
    assert noted(path)
    assert amount(path, gone) < amount(path, left) / 100  # in unused space of pages


def test_nothing_is_left_after_the_next_start(app: FastAPI, path: Path, tmp_path: Path):
    gone, left = erase_half(app, path)
    again = copied(path, tmp_path / "again")

    migrate_and_secure_database(Installation(again.parent, f"sqlite:///{again}", "", None), NOW)

    assert traces(again, gone) == {}
    assert len(traces(again, left)) == len(left)
    assert not noted(again)
    assert free_pages(again) == 0


def test_nothing_is_left_after_the_daily_copy_nor_in_it(app: FastAPI, path: Path, copies: Path):
    gone, left = erase_half(app, path)
    copier = _copier(path, copies)

    copier.back_up_if_due_logging_failures()

    assert traces(path, gone) == {}
    assert not noted(path)
    (copy,) = copies.glob("headroom-*.zip")
    with zipfile.ZipFile(copy) as packed:
        packed.extractall(copies / "unpacked")
    inside = copies / "unpacked" / "database.sqlite3"
    assert traces(inside, gone) == {}
    assert len(traces(inside, left)) == len(left)


def _copier(path: Path, copies: Path) -> _DailyBackupScheduler:
    installation = Installation(path.parent, f"sqlite:///{path}", "", copies)
    return _DailyBackupScheduler(installation, lambda: NOW, threading.Event())


def test_a_day_has_one_rewriting_also_where_no_copy_can_be_made(
    app: FastAPI, path: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
):
    _gone, left = erase_half(app, path, turns=2)
    copier = _copier(path, copies)
    monkeypatch.setattr("app.database.backup.create_backup", Mock(side_effect=OSError("full")))
    copier.back_up_if_due_logging_failures()
    assert not noted(path)

    erase(app.state.engine, left[0])
    copier.back_up_if_due_logging_failures()

    assert noted(path)


def test_a_large_file_is_not_rewritten_while_the_server_runs(
    app: FastAPI, path: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
):
    erase_half(app, path)
    monkeypatch.setattr("app.database.backup.LARGEST_DAILY", path.stat().st_size - 1)

    _copier(path, copies).back_up_if_due_logging_failures()

    assert noted(path)
    assert free_pages(path) > 0
    assert list(copies.glob("headroom-*.zip"))


def test_a_start_rewrites_no_file_that_takes_minutes_and_says_what_does(
    app: FastAPI,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    gone, _left = erase_half(app, path)
    app.state.engine.dispose()
    monkeypatch.setattr("app.cli.database.LARGEST_AT_START", path.stat().st_size - 1)

    migrate_and_secure_database(Installation(path.parent, f"sqlite:///{path}", "", None), NOW)

    assert noted(path)
    assert "Stop the server and run `headroom db vacuum`" in caplog.text
    assert vacuum_file_and_clear_mark(path, refuse_other_connections=True)
    assert traces(path, gone) == {}
    assert not noted(path)


def test_a_start_rewrites_nothing_that_another_server_uses(
    app: FastAPI, path: Path, rosa: TestClient
):
    erase_half(app, path, turns=2)
    rosa.get("/settings")  # the pool holds a connection

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        vacuum_file_if_marked(path, 2**30, refuse_other_connections=True)

    assert noted(path)
    assert rosa.post("/settings", data=settings_of("Rosa")).status_code == 303


def test_a_start_goes_on_where_there_is_no_room_to_rewrite(
    app: FastAPI,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    erase_half(app, path, turns=2)
    app.state.engine.dispose()
    monkeypatch.setattr(erasure, "_SPARE_BYTES", 10**18)

    migrate_and_secure_database(Installation(path.parent, f"sqlite:///{path}", "", None), NOW)

    assert noted(path)
    assert "What erased learners left is not removed yet: to rewrite" in caplog.text


def test_an_erasure_during_the_rewriting_stays_noted(
    app: FastAPI, path: Path, monkeypatch: pytest.MonkeyPatch
):
    numbers = crowd(app.state.engine, turns=2)
    erase(app.state.engine, numbers[0])
    app.state.engine.dispose()

    class Meanwhile(sqlite3.Connection):
        def execute(self, words: str, *values: object) -> sqlite3.Cursor:
            done = super().execute(words, *values)
            if words == "VACUUM":
                patched.undo()
                erase(app.state.engine, numbers[1])
            return done

    open_file = functools.partial(sqlite3.connect, factory=Meanwhile)
    with monkeypatch.context() as patched:
        patched.setattr(erasure.sqlite3, "connect", open_file)
        assert vacuum_file_and_clear_mark(path)

    assert noted(path)


def test_who_still_reads_is_waited_for(app: FastAPI, rosa: TestClient, path: Path):
    rosa.post("/settings", data=settings_of(WORD))
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    assert reader.execute("SELECT name FROM learner").fetchall() == [(WORD,)]

    async def erase_beside_a_reader() -> None:
        truncation = WalTruncator(app.state.engine, min_seconds_between=0.01)
        await asyncio.to_thread(erase_everything, rosa)
        await truncation.request_truncation()
        await asyncio.sleep(0.5)
        assert hits(path.parent)
        assert reader.execute("SELECT name FROM learner").fetchall() == [(WORD,)]
        reader.execute("COMMIT")
        await asyncio.to_thread(wait_until, lambda: not hits(path.parent))

    outcome(erase_beside_a_reader())
    reader.close()


def erase_everything(client: TestClient) -> None:
    answer = client.post("/settings/erasure", data={"word": "erase"})
    assert answer.status_code == 303


def test_many_erasures_share_few_truncations(app: FastAPI, monkeypatch: pytest.MonkeyPatch):
    done: list[Path] = []
    monkeypatch.setattr(erasure, "truncate_write_ahead_log", lambda path: not done.append(path))

    async def request_often() -> None:
        loop, passed = asyncio.get_running_loop(), 0
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + passed)
        truncation = WalTruncator(app.state.engine, min_seconds_between=5)
        for _ in range(50):
            await truncation.request_truncation()
            await asyncio.sleep(0)
        more = 10  # seconds after the last that is due
        while more:
            passed += 1 if done else 0
            await asyncio.sleep(0.01)
            more -= len(done) >= 2

    outcome(request_often())

    assert len(done) == 2  # one at once, and one for all that came meanwhile


def test_without_an_erasure_nothing_is_written(app: FastAPI, path: Path):
    crowd(app.state.engine, turns=2)
    app.state.engine.dispose()
    before = path.read_bytes()

    assert not vacuum_file_if_marked(path, 2**30, refuse_other_connections=True)
    assert not vacuum_file_if_marked(path, 2**30)

    assert path.read_bytes() == before


def test_the_page_says_how_long_file_and_backups_keep_it(rosa: TestClient):
    for address in ("/settings/erasure", "/settings/erased"):
        page = " ".join(rosa.get(address).text.replace("\xa0", " ").split())
        assert (
            "Parts of it may stay in unused space of the database file until that file "
            "is rewritten, usually within a day."
        ) in page
        assert "Backups of this server that were made before" in page
        assert "up to 6 months" in page
