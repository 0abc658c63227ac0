"""What a connection may bring, how long it may take, and how many there may be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from ipaddress import ip_network

import uvicorn

from app.web.front.connections import Limits, guarded
from tests.loops import outcome

WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def app(scope, receive, send) -> None:
    """Answers “well”; at /half it waits for the body first."""
    if scope["type"] != "http":
        return
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"well"})


@contextlib.asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[int]:
    """The port of a server with these limits."""
    config = uvicorn.Config(
        app,
        port=0,
        http=guarded(limits),
        lifespan="off",
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn sets a flag
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


async def answer_to(port: int, *sent: bytes) -> bytes:
    """Everything that comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in sent:
        writer.write(piece)
        await writer.drain()
    said = await reader.read()
    writer.close()
    return said


async def status_of(port: int) -> bytes:
    closing = WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    return (await answer_to(port, closing)).split(b" ")[1]


def test_a_head_that_does_not_come_is_not_waited_for():
    async def act() -> bytes:
        async with serving(Limits(head_seconds=0.05)) as port:
            return await answer_to(port, b"GET / HTTP/1.1\r\nHost:")

    assert outcome(act()).startswith(b"HTTP/1.1 408")


def test_a_silent_connection_is_closed_without_a_word():
    async def act() -> bytes:
        async with serving(Limits(head_seconds=0.05)) as port:
            return await answer_to(port)

    assert outcome(act()) == b""


def test_a_second_head_on_the_same_connection_has_its_time_as_well():
    async def act() -> bytes:
        async with serving(Limits(head_seconds=0.05)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(WHOLE)
            assert (await reader.readuntil(b"well")).startswith(b"HTTP/1.1 200")
            writer.write(b"GET / HT")
            said = await reader.read()
            writer.close()
            return said

    assert outcome(act()).startswith(b"HTTP/1.1 408")


def test_a_head_has_a_size():
    async def act() -> bytes:
        async with serving(Limits(head_bytes=1000)) as port:
            return await answer_to(port, b"GET / HTTP/1.1\r\nCookie: " + b"x" * 2000)

    said = outcome(act())
    assert said.startswith(b"HTTP/1.1 431")
    assert b"1,000 bytes" in said


def test_a_body_is_no_head():
    async def act() -> bytes:
        async with serving(Limits(head_bytes=1000)) as port:
            head = (
                b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n"
            )
            return await answer_to(port, head, b"x" * 2500, b"x" * 2500)

    assert outcome(act()).startswith(b"HTTP/1.1 200")


def test_one_client_holds_few_connections_and_a_named_proxy_as_many_as_it_needs():
    async def act(limits: Limits) -> bytes:
        async with serving(limits) as port:
            _, first = await asyncio.open_connection("127.0.0.1", port)
            first.write(b"GET")
            status = await status_of(port)
            first.close()
            return status

    proxies = (ip_network("127.0.0.0/8"),)
    assert outcome(act(Limits(of_one_client=1))) == b"429"
    assert outcome(act(Limits(of_one_client=1, proxies=proxies))) == b"200"


def test_there_are_so_many_connections_and_no_more():
    async def act() -> list[bytes]:
        async with serving(Limits(connections=1)) as port:
            _, first = await asyncio.open_connection("127.0.0.1", port)
            first.write(b"GET")
            crowded = await status_of(port)
            first.close()
            await first.wait_closed()
            while (later := await status_of(port)) == b"503":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return [crowded, later]

    assert outcome(act()) == [b"503", b"200"]


def test_a_stop_does_not_wait_for_the_rest_of_a_body():
    async def act() -> bytes:
        async with serving(Limits()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx")
            await writer.drain()
            await status_of(port)
        said = b""
        with contextlib.suppress(ConnectionError):
            said = await reader.read()
        writer.close()
        return said

    assert outcome(act()) == b""
