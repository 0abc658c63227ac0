"""Many who write at once: each waits for its turn, and nobody holds the others up."""

import asyncio
import contextlib
import sqlite3

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, update
from sqlmodel import Session, select

from app.database.engine import WRITE_OPTIONS
from app.database.tables import Learner, SectionNoteRow, SectionRead
from app.main import create_app
from app.settings import Settings
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome

PEOPLE = 80  # twice as many as there are worker threads


def test_twice_as_many_writers_as_threads_are_all_answered(app: FastAPI, session: Session):
    statuses = outcome(write_together(app))

    assert statuses == [303] * PEOPLE
    assert len(session.exec(select(SectionRead.id)).all()) == PEOPLE


@pytest.mark.drill  # one process with as many writers is tried above
def test_two_processes_that_write_at_once_let_each_other_write(
    app: FastAPI, settings: Settings, clock, live_course, session: Session
):
    other = create_app(settings, clock, live_course)

    async def both() -> list[list[int]]:
        return await asyncio.gather(write_together(app), write_together(other))

    assert outcome(both()) == [[303] * PEOPLE] * 2
    assert len(session.exec(select(SectionRead.id)).all()) == 2 * PEOPLE
    other.state.engine.dispose()


def test_a_write_that_fails_gives_its_turn_back(client):
    for _ in range(3):
        answer = client.post("/concepts/weights/readings", data={"section": "none"})
        assert answer.status_code == 422

    assert client.post("/concepts/weights/readings").status_code == 303


def test_first_writes_of_one_learner_at_once_make_one_learner(
    app: FastAPI, rosa: TestClient, session: Session
):
    cookies = dict(rosa.cookies)

    statuses = outcome(write_together(app, cookies))

    assert statuses == [303] * PEOPLE
    assert len(session.exec(select(Learner.id)).all()) == 1
    assert len(session.exec(select(SectionRead.id)).all()) == 1
    assert session.exec(select(Learner.changes)).one() == PEOPLE


@pytest.fixture
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits longer than a tenth of a second for another writer."""
    monkeypatch.setattr("app.database.engine.BUSY_TIMEOUT_MILLISECONDS", 100)
    monkeypatch.setattr("app.database.engine.BUSY_TIMEOUT_MILLISECONDS", 100)


@pytest.mark.usefixtures("_impatience")
def test_who_waits_in_vain_for_another_writer_is_asked_to_try_again(
    app: FastAPI, rosa: TestClient, session: Session
):
    first = rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    assert first.status_code == 303
    with Session(app.state.engine) as other:
        other.connection(execution_options=WRITE_OPTIONS)
        other.execute(update(Learner).values(name="held"))

        answer = rosa.post("/concepts/kv-cache/readings")

        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "60"
        assert "The database is busy just now" in answer.text
        assert "Nothing that was confirmed before is lost. Try again in" in answer.text
        assert "Something is broken" not in answer.text
        bare = rosa.post("/concepts/kv-cache/readings", headers={"HX-Request": "true"})
        assert bare.status_code == 503
        assert bare.text.startswith('<div class="msg bad problems" role="alert">')
        assert "The database is busy just now" in bare.text

    assert {r.topic for r in session.exec(select(SectionRead))} == {"weights"}
    session.rollback()
    assert rosa.post("/concepts/kv-cache/readings").status_code == 303
    assert {r.topic for r in session.exec(select(SectionRead))} == {"weights", "kv-cache"}


@ABOUT_SQLITE
def test_a_full_disk_is_called_by_its_name(app: FastAPI, rosa: TestClient, session: Session):
    first = rosa.post("/concepts/weights/readings", data={"section": "try-it"})
    assert first.status_code == 303
    with contextlib.closing(sqlite3.connect(app.state.engine.url.database)) as file:
        file.execute("VACUUM")  # no page is free

    def fill(connection: sqlite3.Connection, *_others: object) -> None:
        connection.execute("PRAGMA max_page_count=1")  # as many as it has now

    event.listen(app.state.engine, "checkout", fill)
    note = {"section": "try-it", "words": "much to remember " * 300}
    answers = [
        rosa.post("/concepts/weights/notes", data=note, headers=headers)
        for headers in ({}, {"HX-Request": "true"})
    ]
    event.remove(app.state.engine, "checkout", fill)

    for answer in answers:
        assert answer.status_code == 507
        assert "The disk of this server is full" in answer.text
        assert "Something is broken" not in answer.text
    assert session.exec(select(SectionNoteRow.id)).all() == []


async def write_together(app: FastAPI, cookies: dict[str, str] | None = None) -> list[int]:
    async def one() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", cookies=cookies
        ) as person:
            answer = await person.post("/concepts/weights/readings", data={"section": "try-it"})
            return answer.status_code

    return await asyncio.gather(*(one() for _ in range(PEOPLE)))
