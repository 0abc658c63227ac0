"""Many who write at once: each waits for its turn, and nobody holds the others up."""

import asyncio

import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.db.tables import Learner, Reading
from tests.loops import outcome

PEOPLE = 80  # twice as many as there are worker threads


def test_twice_as_many_writers_as_threads_are_all_answered(
    app: FastAPI, session: Session
):
    statuses = outcome(write_together(app))

    assert statuses == [303] * PEOPLE
    assert len(session.exec(select(Reading.id)).all()) == PEOPLE


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
    assert len(session.exec(select(Reading.id)).all()) == 1
    assert session.exec(select(Learner.changes)).one() == PEOPLE


async def write_together(
    app: FastAPI, cookies: dict[str, str] | None = None
) -> list[int]:
    async def one() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test", cookies=cookies
        ) as person:
            answer = await person.post(
                "/concepts/weights/readings", data={"section": "try-it"}
            )
            return answer.status_code

    return await asyncio.gather(*(one() for _ in range(PEOPLE)))
