"""Turns: one writes after the other, and nobody is answered before the commit."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, select

from app.database import engine as writer
from app.database.engine import (
    OpenWriteSession,
    create_write_session_opener,
    find_busy_or_disk_full_error,
    make_engine,
)
from app.database.schema import upgrade_schema
from app.database.tables import Learner
from app.errors import BusyError, DiskFullError
from tests.amounts import each_of_sample
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome

PEOPLE = 12
pytestmark = ABOUT_SQLITE


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{tmp_path / 'headroom.db'}")
    upgrade_schema(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def commits(engine: Engine) -> list[int]:
    """How many people were written down at each commit."""
    seen: list[int] = []

    def note(connection) -> None:
        seen.append(connection.execute(text("SELECT count(*) FROM learner")).scalar())

    event.listen(engine, "commit", note)
    return seen


def together(
    engine: Engine, write: Callable[[OpenWriteSession, int], Awaitable[None]]
) -> list[BaseException | None]:
    """What became of so many people who all write at once."""

    async def run() -> list[BaseException | None]:
        turn = create_write_session_opener(engine)
        people = (write(turn, number) for number in range(PEOPLE))
        return await asyncio.gather(*people, return_exceptions=True)

    return outcome(run())


async def enroll(turn: OpenWriteSession, number: int) -> None:
    async with turn() as session:
        session.add(Learner(key=f"person {number}", created_at=0))


def on_disk(engine: Engine) -> set[str]:
    """The people that another process would see."""
    address = f"file:{engine.url.database}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as other:
        return {key for (key,) in other.execute("SELECT key FROM learner")}


def names(numbers: range | list[int]) -> set[str]:
    return {f"person {number}" for number in numbers}


def test_each_turn_is_committed_at_once(engine, commits):
    async def one_after_the_other() -> None:
        turn = create_write_session_opener(engine)
        for number in range(3):
            await enroll(turn, number)
            assert on_disk(engine) == names(range(number + 1))

    outcome(one_after_the_other())

    assert commits == [1, 2, 3]


def test_nobody_is_answered_before_the_words_are_on_disk(engine):
    async def write(turn: OpenWriteSession, number: int) -> None:
        await enroll(turn, number)
        assert f"person {number}" in on_disk(engine)

    assert together(engine, write) == [None] * PEOPLE


def test_a_write_that_fails_is_undone_alone(engine):
    async def write(turn: OpenWriteSession, number: int) -> None:
        async with turn() as session:
            session.add(Learner(key=f"person {number}", created_at=0))
            session.flush()
            if number % 3 == 0:
                raise ValueError(number)

    answers = together(engine, write)

    assert [type(a) for a in answers[:3]] == [ValueError, type(None), type(None)]
    assert on_disk(engine) == names([n for n in range(PEOPLE) if n % 3])


def test_a_row_that_the_database_refuses_harms_no_neighbor(engine):
    async def write(turn: OpenWriteSession, number: int) -> None:
        async with turn() as session:
            session.add(Learner(key=f"person {number // 2}", created_at=0))

    answers = together(engine, write)

    refused = [a for a in answers if a is not None]
    assert len(refused) == PEOPLE // 2
    assert all(isinstance(a, IntegrityError) for a in refused)
    assert on_disk(engine) == names(range(PEOPLE // 2))


def test_a_commit_that_fails_gives_the_turn_back(engine):
    def refuse(_connection) -> None:
        raise OSError("disk full")

    event.listen(engine, "commit", refuse)
    answers = together(engine, enroll)
    event.remove(engine, "commit", refuse)

    assert [type(a) for a in answers] == [OSError] * PEOPLE
    assert on_disk(engine) == set()
    assert together(engine, enroll) == [None] * PEOPLE


def test_nobody_is_confirmed_when_the_whole_transaction_was_lost(engine):
    """As SQLite ends it when the disk is full."""

    async def write(turn: OpenWriteSession, number: int) -> None:
        async with turn() as session:
            session.add(Learner(key=f"person {number}", created_at=0))
            session.flush()
            if number == 1:
                driver = session.connection().connection.dbapi_connection
                driver.execute("ROLLBACK")
                raise OSError("disk full")

    answers = together(engine, write)

    confirmed = [number for number, a in enumerate(answers) if a is None]
    assert 1 not in confirmed
    assert on_disk(engine) == names(confirmed)


def test_who_loses_a_transaction_is_told_why(engine):
    async def write(turn: OpenWriteSession, number: int) -> None:
        async with turn() as session:
            session.add(Learner(key=f"person {number}", created_at=0))
            session.flush()
            driver = session.connection().connection.dbapi_connection
            if number == 1:
                driver.execute("PRAGMA max_page_count=1")  # as many as it has now
                words = "x" * 100_000
                session.add(Learner(key=f"{number} {words}", created_at=0))
                session.flush()
            driver.execute("PRAGMA max_page_count=1000000")

    answers = together(engine, write)

    told = [find_busy_or_disk_full_error(a) for a in answers if a is not None]
    assert [type(refusal) for refusal in told] == [DiskFullError]
    assert on_disk(engine) == names([n for n in range(PEOPLE) if n != 1])


def test_those_who_wait_behind_one_who_waited_in_vain_wait_no_longer(
    engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "BUSY_TIMEOUT_MILLISECONDS", 100)
    monkeypatch.setattr(writer, "_LEAST_WAIT", 0.0)
    begin, tries = writer._begin_write_or_raise_if_locked, [0]
    # Everybody comes at the same moment, and each try takes 30 ms of a clock of its own.
    attempts = [0]
    clock = SimpleNamespace(monotonic=lambda: attempts[0] * 0.03)
    monkeypatch.setattr(writer, "time", clock)

    def counted(engine: Engine) -> Connection:
        tries[-1] += 1
        attempts[0] += 1
        return begin(engine)

    monkeypatch.setattr(writer, "_begin_write_or_raise_if_locked", counted)

    async def write(turn: OpenWriteSession, number: int) -> None:
        try:
            await enroll(turn, number)
        finally:
            tries.append(0)

    with contextlib.closing(sqlite3.connect(str(engine.url.database))) as other:
        other.execute("BEGIN IMMEDIATE")
        answers = together(engine, write)

    assert {type(find_busy_or_disk_full_error(a)) for a in answers if a} == {BusyError}
    first, *others = tries[:PEOPLE]
    assert first > 2
    assert others == [1] * (PEOPLE - 1)


def test_who_leaves_while_waiting_takes_no_turn(engine):
    async def run() -> None:
        turn = create_write_session_opener(engine)
        async with turn() as session:
            waiting = asyncio.create_task(enroll(turn, 1))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            session.add(Learner(key="person 0", created_at=0))
        await enroll(turn, 2)

    outcome(run())

    assert on_disk(engine) == names([0, 2])


@each_of_sample("steps", range(8), 3)
def test_who_leaves_at_any_moment_keeps_nobody_waiting(engine, steps: int):
    async def run() -> None:
        turn = create_write_session_opener(engine)
        first = asyncio.create_task(enroll(turn, 0))
        second = asyncio.create_task(enroll(turn, 1))
        for _ in range(steps):
            await asyncio.sleep(0)
        first.cancel()
        await second
        with contextlib.suppress(asyncio.CancelledError):
            await first

    outcome(run())

    assert "person 1" in on_disk(engine)


def test_a_turn_sees_what_was_written_before_it(engine):
    async def write(turn: OpenWriteSession, _number: int) -> None:
        async with turn() as session:
            before = len(session.exec(select(Learner.id)).all())
            session.add(Learner(key=f"person {before}", created_at=0))

    assert together(engine, write) == [None] * PEOPLE
    assert on_disk(engine) == names(range(PEOPLE))


def test_the_writer_of_another_process_is_waited_for(engine):
    async def run() -> None:
        turn = create_write_session_opener(engine)
        with Session(engine) as other:
            other.connection(execution_options={"writes": True})
            other.add(Learner(key="person 0", created_at=0))
            other.flush()
            waiting = asyncio.create_task(enroll(turn, 1))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            other.commit()
        await waiting

    outcome(run())

    assert on_disk(engine) == names([0, 1])
