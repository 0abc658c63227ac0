"""The body of a request, taken in whole before anything is done with it.

Whoever sends slowly, or stops in the middle, must not hold a transaction, a place in
the queue of writers or a connection of the pool meanwhile.
"""

import asyncio
import collections
import contextlib
import dataclasses
import io
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import IO

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

_IN_MEMORY = 512 * 1024  # larger bodies, which are files, wait on disk
_PIECE = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Patience:
    """How long a body may take, and how many large ones may come at a time.

    `seconds` is for any body; each `bytes_a_second` that have come earn one more, so
    that a large file may come over a slow line and who stops sending is soon found.
    `files` bodies of more than half a megabyte are taken in at a time, `of_one_client`
    of them from one address.
    """

    seconds: float = 20.0
    bytes_a_second: int = 64 * 1024
    files: int = 16
    of_one_client: int = 2


class Intake:
    """Takes bodies in; one of it serves a process."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._senders: collections.Counter[str] = collections.Counter()

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
        with (
            self._place(room, client),
            tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as kept,
        ):
            try:
                await self._pour(receive, kept, room)
            except TimeoutError:
                words = "The rest of the request did not arrive in time. Send it again."
                raise HTTPException(408, words, {"connection": "close"}) from None
            kept.seek(0)
            yield _replayed(kept, receive)

    @contextlib.contextmanager
    def _place(self, room: int, client: str) -> Iterator[None]:
        if room <= _IN_MEMORY:
            yield
            return
        patience, senders = self._patience, self._senders
        if (
            senders.total() >= patience.files
            or senders[client] >= patience.of_one_client
        ):
            words = "Other files are being sent just now. Send yours again in a minute."
            raise HTTPException(503, words, {"retry-after": "60"})
        senders[client] += 1
        try:
            yield
        finally:
            senders[client] -= 1
            if not senders[client]:
                del senders[client]

    async def _pour(self, receive: Receive, kept: IO[bytes], room: int) -> None:
        patience, taken = self._patience, 0
        begun = asyncio.get_running_loop().time()
        async with asyncio.timeout(patience.seconds) as clock:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece = message.get("body", b"")
                taken += len(piece)
                if taken > room:
                    raise too_large(room)
                kept.write(piece)
                if not message.get("more_body"):
                    return
                earned = taken / patience.bytes_a_second
                clock.reschedule(begun + patience.seconds + earned)


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
