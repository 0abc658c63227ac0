"""Size, time, host and CSRF checks; body buffering.

Whoever sends slowly, or stops in the middle, must not hold a transaction, a place in
the queue of writers or a connection of the pool meanwhile.

PostgreSQL cannot keep NUL, file systems end a name at it, and no browser sends it.
"""

import asyncio
import collections
import contextlib
import dataclasses
import io
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import IO
from urllib.parse import urlsplit

from fastapi import HTTPException as fastapi_HTTPException
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from app.errors import ForbiddenError
from app.web.http_exchange import HttpExchange

_READS = {"GET", "HEAD", "OPTIONS"}


def comes_from_here(method: str, headers: Mapping[bytes, bytes], public: str) -> bool:
    """Whether a request may write, by Sec-Fetch-Site or else by Origin.

    `public` is the origin under which a proxy offers this server, where it is known.

    Browsers send one of the two with every write and pages cannot change them.
    Without both the request comes from a program, which has no cookie to abuse.
    """
    if method in _READS:
        return True
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    if origin is None or (public and origin.decode("latin-1") == public):
        return True
    return urlsplit(origin.decode("latin-1")).netloc.encode() == headers.get(b"host")


_ALIVE = {"/healthz", "/readyz", "/metrics"}  # asked by machines, under any name


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLimits:
    """How long the parts of a request may be, in bytes; `body` is for a form."""

    head: int = 64 * 1024
    cookies: int = 8 * 1024
    query: int = 16 * 1024
    body: int = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGuard:
    """What every request is held against.

    `hosts` are the names under which the server answers, none for any; `origin` is the
    scheme and host of its public address, empty where that is not known.
    """

    bounds: RequestLimits
    hosts: frozenset[str] = frozenset()
    origin: str = ""

    def refusal(self, exchange: HttpExchange) -> Exception | None:
        """Why a request is not looked at; None where it is."""
        if len(exchange.hosts) > 1:  # proxies and programs take different ones
            return HTTPException(400, "The request has more than one Host header.")
        host = _name_of(exchange.headers.get(b"host", b"").decode("latin-1").lower())
        if self.hosts and exchange.path not in _ALIVE and host not in self.hosts:
            words = f"This server does not answer under the name “{host[:80]}”."
            return HTTPException(421, words)
        if not comes_from_here(exchange.method, exchange.headers, self.origin):
            return ForbiddenError(
                "This was sent by another site, so nothing was changed.",
                "Open the page here and send it again.",
            )
        return self._too_long(exchange)

    def _too_long(self, exchange: HttpExchange) -> HTTPException | None:
        cookies, most = len(exchange.headers.get(b"cookie", b"")), self.bounds.cookies
        if cookies > most:
            words = f"The cookies have {cookies:,} bytes, and at most {most:,} are read"
            return HTTPException(431, f"{words}. Clear the cookies of this site.")
        query, most = len(exchange.target[1]), self.bounds.query
        if query > most:
            words = f"The address has {query:,} bytes after its “?”"
            return HTTPException(414, f"{words}, and at most {most:,} are read.")
        return None


def _name_of(host: str) -> str:
    """A Host header without its port."""
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


_HALF_LIFE = 5.0  # seconds
_FORGOTTEN = 0.01  # seconds of use that make no difference
_PATIENCE = 5.0  # seconds until a slow transfer gives way


@dataclasses.dataclass(eq=False, slots=True)
class _Waiter:
    """A request that waits; `admitted` is done when it has a slot."""

    client: str
    admitted: "asyncio.Future[None]"


class FairSlots:
    """`total` slots in all, at most `of_one_client` for each client.

    A free slot goes to the client that holds the fewest, and of those to the one that
    has held slots for the shortest time lately. So a client with a hundred connections
    waits for itself, and for others who ask less.
    """

    def __init__(self, total: int, of_one_client: int) -> None:
        self._total = total
        self._of_one_client = of_one_client
        self._held: collections.Counter[str] = collections.Counter()
        # Seconds for which each client has held slots; halved every few seconds.
        self._used: dict[str, float] = {}
        self._halved_at = 0.0
        self._waiting: list[_Waiter] = []

    def may_hold_more(self, client: str) -> bool:
        """Whether only the slots of others keep a client from having one more."""
        return self._held[client] < self._of_one_client

    @contextlib.asynccontextmanager
    async def occupy(self, client: str, *, seconds: float | None = None) -> AsyncIterator[None]:
        """Wait for a slot, and hold it inside of the block.

        Raises TimeoutError when none was free for `seconds`.
        """
        loop = asyncio.get_running_loop()
        waiter = _Waiter(client, loop.create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            async with asyncio.timeout(seconds):
                await waiter.admitted
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # admitted at the moment at which it gave up
                self._release(client)
            raise
        begun = loop.time()
        try:
            yield
        finally:
            self._note_use(client, begun, loop.time())
            self._release(client)

    def _note_use(self, client: str, begun: float, now: float) -> None:
        if now - self._halved_at > _HALF_LIFE:
            self._halved_at = now
            self._used = {
                name: seconds / 2 for name, seconds in self._used.items() if seconds > _FORGOTTEN
            }
        self._used[client] = self._used.get(client, 0.0) + now - begun

    def _release(self, client: str) -> None:
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        self._admit()

    def _admit(self) -> None:
        held = self._held
        while self._waiting and held.total() < self._total:
            free = [w for w in self._waiting if held[w.client] < self._of_one_client]
            if not free:
                return
            first = min(free, key=lambda w: (held[w.client], self._used.get(w.client, 0.0)))
            self._waiting.remove(first)
            held[first.client] += 1
            if not first.admitted.done():
                first.admitted.set_result(None)


class Transfer:
    """A body that is being sent or received; `is_displaced` when it gave way."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self.begun = asyncio.get_running_loop().time()
        self.bytes = 0
        self.is_displaced = False

    def expire_at(self, moment: float) -> None:
        """End the transfer with TimeoutError at a moment of the event loop's clock."""
        if not self.is_displaced and not self._timeout.expired():
            self._timeout.reschedule(moment)

    def displace(self) -> None:
        """End the transfer with TimeoutError now."""
        self.expire_at(asyncio.get_running_loop().time())
        self.is_displaced = True


class TransferSlots:
    """Fair slots for files on their way: where clients wait, the slowest gives way.

    A transfer that has lasted for some seconds is ended for a client that has waited
    as long, unless that client waits for slots of its own. So clients that send or
    read as slowly as they may keep no slot from those who are quicker.
    """

    def __init__(self, total: int, of_one_client: int) -> None:
        self._slots = FairSlots(total, of_one_client)
        self._under_way: set[Transfer] = set()

    @contextlib.asynccontextmanager
    async def occupy(self, client: str, *, seconds: float) -> AsyncIterator[None]:
        """Wait for a slot, and hold it inside of the block.

        Raises TimeoutError when none was free for `seconds`.
        """
        async with contextlib.AsyncExitStack() as stack:
            helper = asyncio.ensure_future(self._displace_others(client))
            try:
                slot = self._slots.occupy(client, seconds=seconds)
                await stack.enter_async_context(slot)
            finally:
                helper.cancel()
            yield

    @contextlib.asynccontextmanager
    async def transfer(self, *, has_slot: bool = True) -> AsyncIterator[Transfer]:
        """A transfer that lasts as long as the block; it gives way if it has a slot.

        Raises TimeoutError where it expired or was displaced.
        """
        async with asyncio.timeout(None) as timeout:
            transfer = Transfer(timeout)
            if has_slot:
                self._under_way.add(transfer)
            try:
                yield transfer
            finally:
                self._under_way.discard(transfer)

    async def _displace_others(self, client: str) -> None:
        while True:
            await asyncio.sleep(_PATIENCE)
            if self._slots.may_hold_more(client):
                self._displace_slowest()

    def _displace_slowest(self) -> None:
        now = asyncio.get_running_loop().time()
        rates = {
            transfer: transfer.bytes / (now - transfer.begun)
            for transfer in self._under_way
            if now - transfer.begun >= _PATIENCE and not transfer.is_displaced
        }
        if rates:
            min(rates, key=rates.__getitem__).displace()


_IN_MEMORY = 64 * 1024  # larger bodies wait on disk
_LARGE = 256 * 1024  # any form may have as much; larger bodies, which are files, queue
_PIECE = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class BodyTimeouts:
    """How long a body may take, and how many large ones may come at a time.

    `seconds` is for any body; each `bytes_a_second` that have come earn one more, so
    that a large file may come over a line of one megabit and who stops sending is soon
    noticed. `files` bodies of more than a quarter of a megabyte are taken in at a time,
    `of_one_client` of them from one address; others wait as long as the largest takes.
    Where all are taken, the slowest that comes gives way to who waits.
    """

    seconds: float = 20.0
    bytes_a_second: int = 128 * 1024
    files: int = 16
    of_one_client: int = 2

    def seconds_for(self, size: int) -> float:
        """The longest that a body of so many bytes may take."""
        return self.seconds + size / self.bytes_a_second


class BodyBuffer:
    """Takes bodies in; one of it serves a process."""

    def __init__(self, patience: BodyTimeouts) -> None:
        self._patience = patience
        self._slots = TransferSlots(patience.files, patience.of_one_client)

    @contextlib.asynccontextmanager
    async def whole(
        self, receive: Receive, headers: Mapping[bytes, bytes], room: int, client: str
    ) -> AsyncIterator[Receive]:
        """A `receive` that has everything already, to be used inside of the block.

        `room` is how many bytes may come. Raises HTTPException 408, 413 or 503, and
        ClientDisconnect where the client went away in the middle.
        """
        if not _has_body(headers):
            yield receive
            return
        size = _announced(headers)
        if size is None or size > room:
            raise too_large(room)
        is_large = size > _LARGE or b"transfer-encoding" in headers
        async with self._place(client, room, is_large=is_large):
            with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept:
                await self._pour(receive, kept, room, is_large=is_large)
                kept.seek(0)
                yield _replayed(kept, receive)

    @contextlib.asynccontextmanager
    async def _place(self, client: str, room: int, *, is_large: bool) -> AsyncIterator[None]:
        if not is_large:
            yield
            return
        async with contextlib.AsyncExitStack() as stack:
            seconds = self._patience.seconds_for(room)
            slot = self._slots.occupy(client, seconds=seconds)
            try:
                await stack.enter_async_context(slot)
            except TimeoutError:
                words = "Other files are being sent just now. Send yours in a minute."
                told = {"retry-after": "60", "connection": "close"}
                raise HTTPException(503, words, told) from None
            yield

    async def _pour(self, receive: Receive, kept: IO[bytes], room: int, *, is_large: bool) -> None:
        """Write a body down; raises HTTPException 408 where it takes too long."""
        seconds_for = self._patience.seconds_for
        try:
            async with self._slots.transfer(has_slot=is_large) as transfer:
                more = True
                while more:
                    transfer.expire_at(transfer.begun + seconds_for(transfer.bytes))
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    piece = message.get("body", b"")
                    transfer.bytes += len(piece)
                    if transfer.bytes > room:
                        raise too_large(room)
                    kept.write(piece)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise _too_slow(is_displaced=transfer.is_displaced) from None


def _too_slow(*, is_displaced: bool) -> HTTPException:
    if is_displaced:
        words = "Your file came slowly while others waited. Send it in some minutes."
        return HTTPException(503, words, {"retry-after": "300", "connection": "close"})
    words = "The rest of the request did not arrive in time. Send it again."
    return HTTPException(408, words, {"connection": "close"})


async def read_form(receive: Receive) -> tuple[bytes, Receive]:
    """The body of a form, and a `receive` that gives it once more."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body, _replayed(io.BytesIO(body), receive)


def _replayed(kept: IO[bytes], receive: Receive) -> Receive:
    over = False

    async def again() -> Message:
        nonlocal over
        if over:
            return await receive()  # whether the client is still there
        piece = kept.read(_PIECE)
        over = len(piece) < _PIECE
        return {"type": "http.request", "body": piece, "more_body": not over}

    return again


def _has_body(headers: Mapping[bytes, bytes]) -> bool:
    length = headers.get(b"content-length", b"0")
    return length != b"0" or b"transfer-encoding" in headers


def _announced(headers: Mapping[bytes, bytes]) -> int | None:
    """The length that a request announces; 0 for none, None for nonsense."""
    length = headers.get(b"content-length", b"0")
    sound = length.isdigit() and len(length) < 16
    return int(length) if sound else None


def too_large(room: int) -> HTTPException:
    """The refusal of a body of more than `room` bytes."""
    most = f"{room // 10**6} MB" if room >= 10**6 else f"{room // 1000} kB"
    words = f"At most {most} can be sent at once. Go back and send less."
    return HTTPException(413, words, {"connection": "close"})


FORM = b"application/x-www-form-urlencoded"
_SIGNS = (b"\0", b"%00")
_MESSAGE = (
    "A text that was sent holds the character NUL, which no text may hold. "
    "Remove it, then send the text again."
)


def refuse_null(path: str, query: bytes) -> None:
    """Raise where an address names NUL: 404 in its path, 422 in its query."""
    if "\0" in path:
        raise fastapi_HTTPException(404)
    _look_into(query)


def without_null(receive: Receive, kind: bytes) -> Receive:
    """`receive`, refusing forms of this content type that hold NUL.

    Files come in other forms and may hold anything.
    """
    if not kind.lower().startswith(FORM):
        return receive
    end = b""

    async def looked_into() -> Message:
        nonlocal end
        message = await receive()
        body = end + message.get("body", b"")
        _look_into(body)
        end = body[-2:]  # "%0" may end one piece and "0" begin the next
        return message

    return looked_into


def _look_into(sent: bytes) -> None:
    if any(sign in sent for sign in _SIGNS):
        raise fastapi_HTTPException(422, _MESSAGE)
