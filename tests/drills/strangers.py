"""Hostile clients: each does one thing as fast as it can, from an address of its own.

They send what any program on the network may send, and are bounded in time. They run
in a process of their own, so that they take no time from whoever measures.
"""

import asyncio
import io
import json
import secrets
import socket
import sys
import time
import zipfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from urllib.parse import urlencode

from tests.import_export.package import Made, database

_TABLE = ("|a" * 130 + "\n" + "|-" * 130 + "\n" + "|\n" * 900)[:3950]
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Client:
    """One address with its cookie, on a server at `port`."""

    def __init__(self, port: int, host: str, seconds: float) -> None:
        self.port = port
        self.host = host
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        self.cookie = ""
        self.statuses: dict[int, int] = {}

    @property
    def is_on(self) -> bool:
        """Whether there is time left."""
        return time.monotonic() < self.end

    async def connect(self, buffer: int = 0) -> _Streams:
        """A new connection from this client's address; `buffer` bytes are received."""
        link = socket.socket()
        try:
            if buffer:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            link.setblocking(False)
            link.bind((self.host, 0))
            loop = asyncio.get_running_loop()
            await loop.sock_connect(link, ("127.0.0.1", self.port))
        except BaseException:
            link.close()
            raise
        return await asyncio.open_connection(sock=link, limit=buffer or 2**16)

    async def ask(
        self,
        path: str,
        form: Mapping[str, str] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The body of a response; a form is posted; cookies are kept."""
        named = {"Host": "localhost", "Connection": "close", **(headers or {})}
        if self.cookie:
            named["Cookie"] = self.cookie
        body = b""
        if form is not None:
            body = form if isinstance(form, bytes) else urlencode(form).encode()
            named.setdefault("Content-Type", "application/x-www-form-urlencoded")
            named["Content-Length"] = str(len(body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        method = "GET" if form is None else "POST"
        reader, writer = await self.connect()
        try:
            writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
            said = await reader.read()
        finally:
            writer.close()
        head, _, content = said.partition(b"\r\n\r\n")
        status = int(head[9:12] or 0)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        for line in head.split(b"\r\n"):
            name, _, value = line.decode("latin-1").partition(": ")
            if name.lower() == "set-cookie" and "headroom=" in value:
                self.cookie = value.partition(";")[0]
        return content

    async def loop(self, work: Callable[[], Awaitable[object]], times: int = 1) -> None:
        """Repeat some work over `times` connections until the time is over."""

        async def repeat() -> None:
            while self.is_on:
                try:
                    await work()
                except (OSError, asyncio.IncompleteReadError, ValueError):
                    await asyncio.sleep(0.05)

        await asyncio.gather(*(repeat() for _ in range(times)))


async def send_trailers(client: Client) -> None:
    """A chunked body that ends at once, and trailers without end."""
    head = b"GET /static/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"

    async def work() -> None:
        _, writer = await client.connect()
        try:
            writer.write(head)
            while client.is_on:
                writer.write(b"X-1: y\r\n" * 8000)
                await writer.drain()
        finally:
            writer.transport.abort()

    await client.loop(work)


async def send_one_long_trailer(client: Client) -> None:
    """The same with a single trailer whose value does not end."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: "

    async def work() -> None:
        _, writer = await client.connect()
        try:
            writer.write(head)
            while client.is_on:
                writer.write(b"y" * 64_000)
                await writer.drain()
        finally:
            writer.transport.abort()

    await client.loop(work)


async def pipeline(client: Client) -> None:
    """Sixty connections with thousands of requests each, and no response read."""
    requests = b"GET /concepts/dpu HTTP/1.1\r\nHost: x\r\n\r\n" * 6000

    async def work() -> None:
        reader, writer = await client.connect()
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        try:
            writer.write(requests)
            await asyncio.wait_for(writer.drain(), 5)
            await asyncio.sleep(2)
        finally:
            writer.transport.abort()

    await client.loop(work, 60)


async def write_tables(client: Client) -> None:
    """Six connections that keep adding cards with a table as large as it may be."""
    await client.ask("/flashcards/own")
    form = {"front": _TABLE, "back": _TABLE}

    async def work() -> None:
        await client.ask("/flashcards/own", {**form, "token": secrets.token_hex(8)})

    await client.loop(work, 6)


async def take_archives(client: Client) -> None:
    """Four archives at once, again and again, of a learner with many pictures."""
    await client.ask("/settings/cards")
    for number in range(3):
        await _bring(client, make_deck(f"deck {number}"))
    await client.loop(lambda: client.ask("/settings/export"), 4)


async def bring_decks(client: Client) -> None:
    """Packages with pictures, two at a time."""
    await client.ask("/settings/cards")
    await client.loop(lambda: _bring(client, make_deck(secrets.token_hex(4))), 2)


async def write_cards(client: Client) -> None:
    """Cards of one's own, as large as they may be."""
    await client.ask("/flashcards/own")

    async def work() -> None:
        words = secrets.token_urlsafe(2900)[:3900]
        form = {"front": words, "back": words, "token": secrets.token_hex(8)}
        await client.ask("/flashcards/own", form)

    await client.loop(work, 4)


async def read_pages(client: Client) -> None:
    """Twenty connections that ask for long pages under new queries."""

    async def work() -> None:
        for path in ("/glossary", "/plan", "/progress", "/sources"):
            query = f"?x={secrets.token_hex(8)}"
            await client.ask(path + query, headers={"Accept-Encoding": "br"})
            client.cookie = ""

    await client.loop(work, 20)


async def drip(client: Client) -> None:
    """Two hundred connections whose bodies trickle in after the response."""
    head = b"GET /static/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"

    async def work() -> None:
        _, writer = await client.connect()
        try:
            writer.write(head)
            while client.is_on and not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.5)
        finally:
            writer.transport.abort()

    await client.loop(work, 200)


async def erase(client: Client) -> None:
    """Begin, and erase everything, in a loop."""

    async def work() -> None:
        await client.ask("/flashcards/own")
        words = {"front": "a", "back": "b", "token": secrets.token_hex(8)}
        await client.ask("/flashcards/own", words)
        await client.ask("/settings/erasure", {"word": "erase"})
        client.cookie = ""

    await client.loop(work)


async def guess_codes(client: Client) -> None:
    """Wrong device codes."""
    await client.ask("/continue")

    async def work() -> None:
        code = secrets.token_hex(4).upper().replace("0", "2").replace("1", "3")
        await client.ask("/continue", {"code": code})

    await client.loop(work, 4)


async def upload_slowly(client: Client) -> None:
    """Four uploads of twenty megabytes that come in drops."""
    await client.loop(lambda: _upload(client, 30_000), 4)


async def _upload(client: Client, piece: int) -> None:
    """Send twenty megabytes, a piece in half a second."""
    _, writer = await client.connect()
    try:
        writer.write(
            b"POST /settings/cards HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n"
            b"Content-Length: 20000000\r\n\r\n--b\r\n"
        )
        while client.is_on and not writer.is_closing():
            writer.write(b"x" * piece)
            await writer.drain()
            await asyncio.sleep(0.5)
    finally:
        writer.transport.abort()


async def read_slowly(client: Client) -> None:
    """Sixteen readers at eight addresses who take a few bytes of an archive at a time.

    Each has nineteen megabytes of pictures.
    """

    async def read(number: int) -> None:
        reader = Client(client.port, f"127.0.2.{number // 2}", client.seconds)
        await reader.ask("/settings/cards")
        await _bring(reader, make_deck(f"deck {number}"))

        async def work() -> None:
            stream, writer = await reader.connect(buffer=4096)
            try:
                head = f"Host: localhost\r\nCookie: {reader.cookie}\r\n\r\n"
                writer.write(f"GET /settings/export HTTP/1.1\r\n{head}".encode())
                said = b"some"
                while reader.is_on and said:
                    said = await stream.read(2000)
                    await asyncio.sleep(0.5)
            finally:
                writer.transport.abort()

        await reader.loop(work)

    await asyncio.gather(*(read(number) for number in range(16)))


async def upload_from_everywhere(client: Client) -> None:
    """Sixteen uploads from eight addresses, just quick enough not to be given up."""

    async def upload(number: int) -> None:
        sender = Client(client.port, f"127.0.3.{number // 2}", client.seconds)
        await sender.loop(lambda: _upload(sender, 70_000))

    await asyncio.gather(*(upload(number) for number in range(16)))


async def send_nonsense(client: Client) -> None:
    """Bytes that are no HTTP, and upgrades to what is not offered."""

    async def work() -> None:
        for said in (b"nonsense\r\n\r\n", _UPGRADE):
            _, writer = await client.connect()
            try:
                writer.write(said)
                await writer.drain()
                await asyncio.sleep(0.01)
            finally:
                writer.transport.abort()

    await client.loop(work, 2)


_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
STRANGERS: dict[str, Callable[[Client], Coroutine[None, None, None]]] = {
    work.__name__: work
    for work in (
        *(send_trailers, send_one_long_trailer, pipeline, write_tables),
        *(take_archives, bring_decks, write_cards, read_pages, drip, erase),
        *(guess_codes, upload_slowly, upload_from_everywhere, read_slowly),
        send_nonsense,
    )
}


def make_deck(name: str, pictures: int = 21) -> bytes:
    """A package of Anki with so many pictures of 0.9 MB each."""
    names = [f"{name}-{number}.png" for number in range(pictures)]
    notes = [Made(n, (f'<img src="{n}">', "back")) for n in names]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("collection.anki21", database(*notes))
        archive.writestr("media", json.dumps({str(i): n for i, n in enumerate(names)}))
        for number in range(len(names)):
            picture = b"\x89PNG\r\n\x1a\n" + secrets.token_bytes(900_000)
            archive.writestr(str(number), picture)
    return out.getvalue()


async def _bring(client: Client, content: bytes) -> None:
    boundary = secrets.token_hex(8)
    disposition = 'form-data; name="file"; filename="deck.apkg"'
    body = (
        (
            f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
            "Content-Type: application/octet-stream\r\n\r\n"
        ).encode()
        + content
        + f"\r\n--{boundary}--\r\n".encode()
    )
    kind = f"multipart/form-data; boundary={boundary}"
    await client.ask("/settings/cards", body, {"Content-Type": kind})


async def _run(port: int, seconds: float, names: list[str]) -> None:
    clients = {
        name: Client(port, f"127.0.1.{number}", seconds) for number, name in enumerate(names, 1)
    }
    work = [
        asyncio.wait_for(STRANGERS[name](client), seconds + 5) for name, client in clients.items()
    ]
    results = await asyncio.gather(*work, return_exceptions=True)
    for name, result in zip(names, results, strict=True):
        said = type(result).__name__ if isinstance(result, BaseException) else "over"
        sys.stdout.write(f"{name} {said} {clients[name].statuses}\n")


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
