"""Files that learners take along: one is made at a time; who waits holds nothing."""

import asyncio
import threading
from collections.abc import Callable
from typing import IO

import httpx
import pytest
from fastapi import FastAPI, Request
from sqlmodel import Session
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.accounts.downloads import DownloadQueue
from app.errors import ConflictError
from app.main import create_app
from app.settings import Settings
from tests.amounts import each_of_sample
from tests.conftest import visit
from tests.loops import outcome

FILES = [
    "/settings/export",
    "/settings/cards.apkg",
    "/settings/cards.apkg?newest=yes",
    "/settings/cards.colpkg",
]


def asker(client: str = "127.0.0.1", *, left: bool = False) -> Request:
    """A request whose client waits for the answer, or has left."""

    async def receive() -> dict[str, str]:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "GET", "headers": [], "client": (client, 1)}
    return Request(scope, receive)


async def sent(response) -> bytes:
    pieces: list[bytes] = []

    async def send(message) -> None:
        pieces.append(message.get("body", b""))

    await response({"type": "http"}, asker().receive, send)
    return b"".join(pieces)


def browser(app: FastAPI) -> httpx.AsyncClient:
    """One that asks in the loop of the test."""
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://testserver")


def written(words: bytes) -> Callable[[Session, IO[bytes]], None]:
    return lambda _db, file: file.write(words) and None


def test_one_file_is_made_at_a_time_and_all_come(app: FastAPI):
    at_work, most = 0, 0

    def write(_db: Session, file: IO[bytes]) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        threading.Event().wait(0.01)
        file.write(b"a file")
        at_work -= 1

    async def take(downloads: DownloadQueue, person: str) -> bytes:
        return await sent(await downloads.create_download(asker(), person, "f.zip", write))

    async def run() -> list[bytes]:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        return await asyncio.gather(*(take(downloads, f"p{n}") for n in range(30)))

    assert outcome(run()) == [b"a file"] * 30
    assert most == 1


@each_of_sample("path", FILES, 2)
def test_who_waits_holds_neither_a_connection_nor_a_place_among_readers(app: FastAPI, path: str):
    app.state.reader_slots = asyncio.Semaphore(1)
    downloads, pool = app.state.downloads, app.state.engine.pool

    async def run() -> None:
        async with browser(app) as rosa, browser(app) as milo, browser(app) as reader:
            async with downloads._creation_slots.hold_slot("somebody"):
                waiting = [asyncio.create_task(b.get(path)) for b in (rosa, milo)]
                while len(downloads._persons) < len(waiting):  # noqa: ASYNC110
                    await asyncio.sleep(0)
                assert (await reader.get("/plan")).status_code == 200
                assert pool.checkedout() == 0
                assert not any(task.done() for task in waiting)
            assert {(await task).status_code for task in waiting} == {200}

    outcome(run())


@pytest.mark.parametrize("path", FILES)
def test_who_waits_in_vain_is_told_so_in_words(app: FastAPI, path: str):
    app.state.downloads = DownloadQueue(app.state.engine, app.state.storage, max_wait_seconds=0.01)

    async def run() -> httpx.Response:
        making = app.state.downloads._creation_slots.hold_slot("somebody")
        async with making, browser(app) as rosa:
            return await rosa.get(path)

    answer = outcome(run())

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "60"
    assert "Files for others are being created." in answer.text
    assert "Something is broken" not in answer.text


def test_a_second_file_of_the_same_person_is_refused_until_the_first_was_sent(
    app: FastAPI,
):
    async def run() -> bytes:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        first = await downloads.create_download(asker(), "rosa", "f.zip", written(b"first"))
        his = await downloads.create_download(asker(), "milo", "f.zip", written(b"his"))
        with pytest.raises(ConflictError, match="Another file for you"):
            await downloads.create_download(asker(), "rosa", "f.zip", written(b"second"))
        await sent(first)
        await sent(his)
        second = await downloads.create_download(asker(), "rosa", "f.zip", written(b"second"))
        return await sent(second)

    assert outcome(run()) == b"second"


def test_nobody_waits_without_end(app: FastAPI):
    async def run() -> None:
        downloads = DownloadQueue(app.state.engine, app.state.storage, max_wait_seconds=0.01)
        async with downloads._creation_slots.hold_slot("somebody"):
            with pytest.raises(HTTPException) as refused:
                await downloads.create_download(asker(), "rosa", "f.zip", written(b"x"))
        assert refused.value.status_code == 503
        assert refused.value.headers == {"retry-after": "60"}
        await sent(await downloads.create_download(asker(), "rosa", "f.zip", written(b"x")))

    outcome(run())


def test_nothing_is_made_for_who_has_left_meanwhile(app: FastAPI):
    async def run() -> None:
        downloads = DownloadQueue(app.state.engine, app.state.storage)

        def write(_db: Session, _file: IO[bytes]) -> None:
            raise AssertionError("nobody is there to take it")

        with pytest.raises(ClientDisconnect):
            await downloads.create_download(asker(left=True), "rosa", "f.zip", write)
        await sent(await downloads.create_download(asker(), "rosa", "f.zip", written(b"x")))

    outcome(run())


def test_a_file_that_could_not_be_made_holds_nothing(app: FastAPI):
    async def run() -> bytes:
        downloads = DownloadQueue(app.state.engine, app.state.storage)

        def fail(_db: Session, _file: IO[bytes]) -> None:
            raise OSError("the disk is full")

        for _ in range(20):
            with pytest.raises(OSError, match="full"):
                await downloads.create_download(asker(), "rosa", "f.zip", fail)
        return await sent(
            await downloads.create_download(asker(), "rosa", "f.zip", written(b"there"))
        )

    assert outcome(run()) == b"there"


def test_a_file_that_nobody_takes_is_given_up(app: FastAPI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.accounts.downloads._SECONDS_PER_CHUNK", 0.01)

    async def run() -> None:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        response = await downloads.create_download(asker(), "rosa", "f.zip", written(b"x"))

        async def never(_message) -> None:
            await asyncio.Event().wait()

        await response({"type": "http"}, asker().receive, never)
        await sent(await downloads.create_download(asker(), "rosa", "f.zip", written(b"x")))

    outcome(run())


def test_a_reader_has_to_take_each_piece_in_time(app: FastAPI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.accounts.downloads._SECONDS_PER_CHUNK", 5)
    monkeypatch.setattr("app.accounts.downloads._CHUNK_BYTES", 1000)

    async def run() -> tuple[int, int]:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        large, taken, passed = written(bytes(10_000)), 0, 0.0
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + passed)

        async def take(message) -> None:
            nonlocal taken, passed
            if taken >= 8000:
                passed += 5
                await asyncio.Event().wait()
            passed += 1  # eight pieces take longer than one may
            taken += len(message.get("body", b""))

        stopped = await downloads.create_download(asker(), "rosa", "f.zip", large)
        await stopped({"type": "http"}, asker().receive, take)
        whole = await downloads.create_download(asker(), "rosa", "f.zip", large)
        return taken, len(await sent(whole))

    assert outcome(run()) == (8000, 10_000)


def test_readers_of_few_clients_leave_places_to_others(app: FastAPI):
    async def run() -> list[bytes]:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        tasks = []
        for number in range(16):
            who = asker(f"10.0.0.{number // 4}"), f"reader {number}", "f.zip"
            make = downloads.create_download(*who, written(b"x"))
            tasks.append(asyncio.ensure_future(make))
        waiting = {*tasks}
        while len(waiting) > 8:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        new = [
            await downloads.create_download(asker(f"10.0.1.{n}"), f"new {n}", "f", written(b"new"))
            for n in range(8)
        ]
        assert sum(task.done() for task in tasks) == 8
        bodies = [await sent(response) for response in new]
        for task in tasks:
            await sent(await task)
        return bodies

    assert outcome(run()) == [b"new"] * 8


def test_the_slowest_reader_gives_way_to_who_waits(app: FastAPI, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("app.web.request_limits._SLOW_TRANSFER_SECONDS", 0.01)

    async def never(_message) -> None:
        await asyncio.Event().wait()

    async def run() -> tuple[bytes, int]:
        downloads = DownloadQueue(app.state.engine, app.state.storage)
        readers = []
        for number in range(16):
            who = asker(f"10.0.0.{number}"), f"reader {number}", "f.zip"
            response = await downloads.create_download(*who, written(b"x"))
            reading = response({"type": "http"}, asker().receive, never)
            readers.append(asyncio.ensure_future(reading))
        new = await downloads.create_download(asker("10.0.1.1"), "new", "f.zip", written(b"new"))
        ended = sum(task.done() for task in readers)
        for task in readers:
            task.cancel()
        return await sent(new), ended

    body, ended = outcome(run())
    assert body == b"new"
    assert 1 <= ended < 16


def test_who_is_sent_a_file_holds_no_slot_of_the_server(settings: Settings, clock, live_course):
    one = settings.model_copy(update={"client_requests": 1})
    app = create_app(one, clock, live_course)
    path = "/settings/export"
    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "state": {},
    }

    async def run() -> int:
        sending = asyncio.Event()

        async def take(message) -> None:
            if message["type"] == "http.response.body":
                sending.set()
                await asyncio.Event().wait()

        reading = asyncio.ensure_future(app(scope, asker().receive, take))
        await sending.wait()
        async with browser(app) as rosa:
            answer = await asyncio.wait_for(rosa.get(path), 20)
        reading.cancel()
        return answer.status_code

    assert outcome(run()) == 200


@each_of_sample("path", FILES, 2)
def test_a_file_is_sent_with_its_length_and_its_name(app: FastAPI, path: str):
    with visit(app) as client:
        answer = client.get(path)
        head = client.head(path)

    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert answer.headers["cache-control"] == "no-store"
    assert head.headers["content-length"] == answer.headers["content-length"]
