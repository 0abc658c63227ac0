"""What was erased is in no file of the data folder any more, while the server runs.

tests/web/test_two_processes.py says the same of several processes.
"""

import random
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.belongings import store
from app.db.scrubbing import AT_ONCE, Scrubber, State
from app.db.tables import Attempt, Learner, Note
from tests.databases import ABOUT_SQLITE

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


def state(path: Path) -> int:
    with sqlite3.connect(path) as file:
        return int(file.execute("PRAGMA user_version").fetchone()[0])


def settings_of(name: str) -> dict[str, str]:
    return {"name": name, "minutes_a_day": "30", "retention": "90"}


@pytest.fixture
def folder(app: FastAPI) -> Path:
    return Path(app.state.engine.url.database).parent


@pytest.fixture
def path(app: FastAPI) -> Path:
    return Path(app.state.engine.url.database)


@pytest.fixture
def scrubber(path: Path):
    scrubber = Scrubber(path)
    yield scrubber
    scrubber.close()


def erase(engine: Engine, learner: int) -> None:
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        store.erase(db, learner)
        db.commit()


def test_the_words_of_a_learner_leave_every_file(rosa: TestClient, folder: Path):
    rosa.post("/settings", data=settings_of(WORD))
    assert hits(folder)

    rosa.post("/settings/erasure", data={"word": "erase"})

    wait_until(lambda: not hits(folder))
    assert "erased" in rosa.get("/settings/erased").text.lower()


def crowd(engine: Engine) -> list[int]:
    """Learners whose rows came mixed, changed and went, as over months."""
    chance = random.Random(3)  # noqa: S311 - repeatable, not secret
    with Session(engine) as db:
        db.connection(execution_options={"writes": True})
        learners = [Learner(key=f"key-{n}", created_at=1) for n in range(40)]
        db.add_all(learners)
        db.flush()
        numbers = [row.id or 0 for row in learners]
        for turn in range(25):
            for number in chance.sample(numbers, len(numbers)):
                words = f"{{{number}}} " * chance.randint(1, 90)
                db.add(written(number, turn, words))
                db.add(answered(number, f"{turn}.{chance.random()}", words))
            db.flush()
            for note in db.exec(select(Note)).all():
                if chance.random() < 0.1:
                    note.words = note.words * chance.randint(1, 4)
                elif chance.random() < 0.05:
                    db.delete(note)
        db.commit()
    return numbers


def written(learner: int, turn: int, words: str) -> Note:
    return Note(learner_id=learner, topic="t", section=f"s{turn}", words=words, at=turn)


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


def test_nothing_stays_in_the_gaps_of_pages(
    app: FastAPI, path: Path, scrubber: Scrubber
):
    numbers = crowd(app.state.engine)
    gone, left = numbers[::2], numbers[1::2]
    for number in gone:
        erase(app.state.engine, number)

    while state(path) != State.CLEAN:
        scrubber.advance()

    assert {n: hits(path.parent, f"{{{n}}}") for n in gone} == {n: {} for n in gone}
    assert all(hits(path.parent, f"{{{n}}}") for n in left)


def test_who_still_reads_is_waited_for(
    app: FastAPI, rosa: TestClient, session: Session, path: Path, scrubber: Scrubber
):
    rosa.post("/settings", data=settings_of(WORD))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT name FROM learner").fetchall() == [(WORD,)]
    number = session.exec(select(Learner.id)).one()
    session.rollback()
    erase(app.state.engine, number)

    scrubber.advance()
    assert state(path) != State.CLEAN
    assert reader.execute("SELECT name FROM learner").fetchall() == [(WORD,)]

    reader.execute("COMMIT")
    reader.close()
    wait_until(lambda: bool(scrubber.advance()) or not hits(path.parent))


def test_work_that_was_cut_short_is_taken_up_at_the_next_start(
    app: FastAPI, path: Path, scrubber: Scrubber
):
    numbers = crowd(app.state.engine)
    erase(app.state.engine, numbers[0])
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {State.AT_WORK.value}")

    scrubber.advance()
    assert state(path) == State.AT_WORK  # that of another process, as it seems

    scrubber.resume()
    scrubber.advance()
    assert state(path) == State.CLEAN


def test_a_large_file_is_written_anew_in_a_quiet_hour(app: FastAPI, path: Path):
    numbers = crowd(app.state.engine)
    erase(app.state.engine, numbers[0])
    scrubber = Scrubber(path, at_once=0)

    scrubber.advance()

    assert state(path) == State.AT_WORK
    assert Path(f"{path}-wal").stat().st_size < AT_ONCE
    scrubber.close()


def test_without_an_erasure_nothing_is_written(path: Path, scrubber: Scrubber):
    before = path.stat().st_mtime_ns

    scrubber.resume()
    scrubber.advance()

    assert path.stat().st_mtime_ns == before


def test_the_page_says_how_long_backups_keep_it(rosa: TestClient):
    for address in ("/settings/erasure", "/settings/erased"):
        page = rosa.get(address).text.replace("\xa0", " ")
        assert "Backups of this server that were made before" in page
        assert "up to 6 months" in " ".join(page.split())
