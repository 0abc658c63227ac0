"""Many who read at once: whoever waits keeps neither a thread nor the event loop."""

import asyncio

import httpx
from fastapi import FastAPI, Request

from app.database.engine import DbSession, write_during_read_request
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome

PEOPLE = 80  # twice as many as there are worker threads


def test_twice_as_many_readers_as_threads_are_all_answered(app: FastAPI):
    statuses = outcome(read_together(app))

    assert statuses == [200] * PEOPLE


@ABOUT_SQLITE
def test_who_reads_and_waits_to_write_keeps_no_reader_waiting(app: FastAPI):
    arrived = asyncio.Semaphore(0)

    @app.get("/notes-down")
    async def notes_down(request: Request, _db: DbSession) -> str:
        arrived.release()
        await write_during_read_request(request, lambda _: None)
        return "noted"

    async def while_one_writes() -> tuple[int, list[int]]:
        async with app.state.open_write_session():
            waiting = [
                asyncio.ensure_future(ask(app, "/notes-down", f"10.0.0.{number}"))
                for number in range(5)  # one client would wait for itself
            ]
            for _ in waiting:
                await arrived.acquire()
            read = await ask(app, "/exams")
        return read, await asyncio.gather(*waiting)

    assert outcome(while_one_writes()) == (200, [200] * 5)


async def read_together(app: FastAPI) -> list[int]:
    return await asyncio.gather(*(ask(app, "/exams") for _ in range(PEOPLE)))


async def ask(app: FastAPI, path: str, client: str = "127.0.0.1") -> int:
    transport = httpx.ASGITransport(app=app, client=(client, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as person:
        return (await person.get(path)).status_code
