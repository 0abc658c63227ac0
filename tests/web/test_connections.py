"""What a connection may bring, how long it may take, and how many there may be."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest
import uvicorn

from app.web import connection_guard as connections
from app.web.connection_guard import ConnectionLimits, create_guarded_protocol_factory
from tests.loops import outcome

CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def app(scope, receive, send) -> None:
    """Answers “well”: to a POST once its body has come."""
    if scope["type"] != "http":
        return
    while scope["method"] == "POST" and (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", b"4")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"well"})


@contextlib.asynccontextmanager
async def serving(limits: ConnectionLimits, served=app) -> AsyncIterator[int]:
    """The port of a server with these limits."""
    config = uvicorn.Config(
        served,
        port=0,
        http=create_guarded_protocol_factory(limits),
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


async def answer_to(port: int, *sent: bytes, host: str = "127.0.0.1") -> bytes:
    """Everything that comes back until the server closes the connection.

    `host` is the address from which the client connects.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    for piece in sent:
        writer.write(piece)
        await writer.drain()
    said = await reader.read()
    writer.close()
    return said


async def status_of(port: int, host: str = "127.0.0.1") -> bytes:
    return (await answer_to(port, CLOSING, host=host)).split(b" ")[1]


def test_a_head_that_does_not_come_is_not_waited_for():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_seconds=0.05)) as port:
            return await answer_to(port, b"GET / HTTP/1.1\r\nHost:")

    assert outcome(act()).startswith(b"HTTP/1.1 408")


def test_a_silent_connection_is_closed_without_a_word():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_seconds=0.05)) as port:
            return await answer_to(port)

    assert outcome(act()) == b""


def test_a_second_head_on_the_same_connection_has_its_time_as_well():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_seconds=0.05)) as port:
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
        async with serving(ConnectionLimits(max_head_bytes=1000)) as port:
            return await answer_to(port, b"GET / HTTP/1.1\r\nCookie: " + b"x" * 2000)

    said = outcome(act())
    assert said.startswith(b"HTTP/1.1 431")
    assert b"1,000 bytes" in said


def test_a_body_is_no_head():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_bytes=1000)) as port:
            head = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n"
            return await answer_to(port, head, b"x" * 2500, b"x" * 2500)

    assert outcome(act()).startswith(b"HTTP/1.1 200")


def test_a_head_has_the_same_size_when_it_comes_in_one_piece():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_bytes=1000)) as port:
            many = b"".join(b"X-%d: y\r\n" % n for n in range(300))
            return await answer_to(port, b"GET / HTTP/1.1\r\n" + many + b"\r\n")

    assert outcome(act()).startswith(b"HTTP/1.1 431")


def test_many_tiny_headers_are_refused_before_they_are_kept():
    async def act() -> bytes:
        async with serving(ConnectionLimits()) as port:
            head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * 2000 + b"\r\n"
            return await answer_to(port, head * 8)

    said = outcome(act())
    assert said.startswith(b"HTTP/1.1 431")
    assert b"100 headers" in said


def test_a_body_in_chunks_is_refused_before_its_trailers_can_fill_memory():
    async def act() -> bytes:
        async with serving(ConnectionLimits()) as port:
            trailers = b"0\r\n" + b"X-1: y\r\n" * 5000
            return await answer_to(port, CHUNKED + trailers)

    said = outcome(act())
    assert said.startswith(b"HTTP/1.1 411")
    assert b"Content-Length" in said


def test_requests_sent_ahead_of_their_responses_end_the_connection():
    served = 0

    async def counted(scope, receive, send) -> None:
        nonlocal served
        served += scope["type"] == "http"
        await asyncio.sleep(0.01)
        await app(scope, receive, send)

    async def act() -> bytes:
        async with serving(ConnectionLimits(), counted) as port:
            with contextlib.suppress(ConnectionError):
                return await answer_to(port, WHOLE * 1000)
            return b""

    assert outcome(act()).count(b"HTTP/1.1 200") <= 3
    assert served <= 3


def test_a_few_requests_sent_ahead_are_answered_in_order():
    async def act() -> bytes:
        async with serving(ConnectionLimits()) as port:
            return await answer_to(port, WHOLE * 2 + CLOSING)

    assert outcome(act()).count(b"HTTP/1.1 200") == 3


def test_the_rest_of_a_body_is_not_waited_for_after_the_response(monkeypatch):
    monkeypatch.setattr(connections, "_REST_OF_BODY", 0.05)

    async def act() -> bytes:
        async with serving(ConnectionLimits()) as port:
            head = b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
            return await answer_to(port, head, b"x")

    assert outcome(act()).startswith(b"HTTP/1.1 200")


def test_a_body_that_ends_after_the_response_leaves_no_silent_connection_open():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_head_seconds=0.05)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
            said = await reader.readuntil(b"well")
            writer.write(b"x")
            said += await reader.read()
            writer.close()
            return said

    assert outcome(act()).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("size", [8_000_000, 700_000])
def test_a_client_that_does_not_read_its_response_is_given_up(monkeypatch, size: int):
    monkeypatch.setattr(connections, "_STALLED_AFTER_SECONDS", 0.05)
    monkeypatch.setattr(connections, "_SEND_BUFFER", 4096)

    async def long(scope, _receive, send) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"content-length", b"%d" % size), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        body = {"type": "http.response.body", "more_body": True}
        await send({**body, "body": bytes(size - 1000)})
        await send({**body, "body": bytes(1000), "more_body": False})

    async def act() -> int:
        async with serving(ConnectionLimits(), long) as port:
            with socket.socket() as link:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                link.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(link, ("127.0.0.1", port))
                await loop.sock_sendall(link, WHOLE)
                await asyncio.sleep(0.5)
                taken = 0
                with contextlib.suppress(ConnectionError):
                    while piece := await loop.sock_recv(link, 65536):
                        taken += len(piece)
                return taken

    assert outcome(act()) < size


def test_one_client_holds_few_connections_and_a_named_proxy_as_many_as_it_needs():
    async def act(limits: ConnectionLimits) -> bytes:
        begun, over = asyncio.Event(), asyncio.Event()

        async def slow(scope, receive, send) -> None:
            if scope["path"] == "/slow":
                begun.set()
                await over.wait()
            await app(scope, receive, send)

        async with serving(limits, slow) as port:
            reader, first = await asyncio.open_connection("127.0.0.1", port)
            first.write(WHOLE.replace(b"/", b"/slow", 1))
            await begun.wait()
            status = await status_of(port)
            over.set()
            assert (await reader.readuntil(b"well")).startswith(b"HTTP/1.1 200")
            first.close()
            return status

    proxies = (ip_network("127.0.0.0/8"),)
    assert outcome(act(ConnectionLimits(max_connections_per_client=1))) == b"429"
    assert outcome(act(ConnectionLimits(max_connections_per_client=1, proxies=proxies))) == b"200"


def test_there_are_so_many_connections_and_no_more():
    async def act() -> list[bytes]:
        async with serving(ConnectionLimits(max_connections=1)) as port:
            _, first = await asyncio.open_connection("127.0.0.1", port)
            first.write(b"GET")
            crowded = await status_of(port)
            first.close()
            await first.wait_closed()
            while (later := await status_of(port)) == b"503":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return [crowded, later]

    assert outcome(act()) == [b"503", b"200"]


def test_a_newcomer_gets_the_place_of_the_client_with_the_most_idle_connections():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_connections=5)) as port:
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
            status = await status_of(port, "127.0.0.2")
            for _, writer in idle:
                writer.close()
            return status

    assert outcome(act()) == b"200"


def test_a_newcomer_gets_the_place_of_a_body_that_does_not_come():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_connections=6)) as port:
            half = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
            held = []
            for host in ("127.0.0.1", "127.0.0.3"):
                for _ in range(3):
                    _, writer = await asyncio.open_connection(
                        "127.0.0.1", port, local_addr=(host, 0)
                    )
                    writer.write(half)
                    await writer.drain()
                    held.append(writer)
            status = await status_of(port, "127.0.0.2")
            for writer in held:
                writer.close()
            return status

    assert outcome(act()) == b"200"


def test_one_who_holds_connections_open_keeps_no_other_at_that_address_out():
    async def act() -> bytes:
        async with serving(ConnectionLimits(max_connections_per_client=3)) as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            for _, writer in held:
                writer.write(b"GET / HT")
                await writer.drain()
            status = await status_of(port)
            for _, writer in held:
                writer.close()
            return status

    assert outcome(act()) == b"200"


def test_a_stop_does_not_wait_for_the_rest_of_a_body():
    async def act() -> bytes:
        async with serving(ConnectionLimits()) as port:
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
