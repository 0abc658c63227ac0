"""The body of a request, taken in whole before anything is done with it.

Whoever sends slowly, or stops in the middle, must not hold a transaction, a place in
the queue of writers or a connection of the pool meanwhile.
"""

import contextlib
import dataclasses
import io
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import IO

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from app.web.front.fair_slots import TransferSlots

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
