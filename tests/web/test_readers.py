"""Many who read at once: whoever waits keeps neither a thread nor the event loop."""

import asyncio

import httpx
from fastapi import FastAPI

from tests.loops import outcome

PEOPLE = 80  # twice as many as there are worker threads


def test_twice_as_many_readers_as_threads_are_all_answered(app: FastAPI):
    statuses = outcome(read_together(app))

    assert statuses == [200] * PEOPLE


async def read_together(app: FastAPI) -> list[int]:
    async def one() -> int:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://test"
        ) as person:
            return (await person.get("/exams")).status_code

    return await asyncio.gather(*(one() for _ in range(PEOPLE)))
