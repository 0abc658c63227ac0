"""Files that learners take along: made one at a time, on disk and not in memory."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import IO

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import Engine
from sqlmodel import Session
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from app.db.engine import snapshot_session
from app.db.storage_limit import StorageLimit
from app.errors import Conflict

LONGEST_WAIT = 50.0
"""Seconds until somebody is sent away; proxies give up after sixty."""
_MOST_FILES = 16  # that are being made or sent, so that they cannot fill the disk
_CHUNK = 256 * 1024
_GRACE = 60.0  # seconds that a download may take besides those that its size earns
_SLOWEST = 64 * 1024  # bytes a second
WriteFile = Callable[[Session, IO[bytes]], None]


class Downloads:
    """Makes files for learners in a thread; who finds one being made waits for it."""

    def __init__(
        self, engine: Engine, storage: StorageLimit, longest_wait: float = LONGEST_WAIT
    ) -> None:
        self._engine = engine
        self._storage = storage
        self._longest_wait = longest_wait
        self._places = asyncio.Semaphore(_MOST_FILES)
        self._at_work = asyncio.Lock()
        self._persons: set[str] = set()

    async def make(
        self, request: Request, person: str, name: str, write: WriteFile
    ) -> Response:
        """The file `name` that `write` makes from the database, as it is now.

        Raises Conflict while another file of the same person is made or sent,
        HTTPException 503 where others keep the server busy, and StorageFullError.
        """
        if person in self._persons:
            raise Conflict(
                "Another file of yours is being made or sent.",
                "Wait until you have it, then ask for this one.",
            )
        self._persons.add(person)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._persons.discard, person)
            async with contextlib.AsyncExitStack() as turn:
                await self._wait(stack, turn)
                if await request.is_disconnected():
                    raise ClientDisconnect
                # The file has no name, so that it is gone when the server ends.
                file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
                await run_in_threadpool(self._write, write, file)
            return _Download(file, name, stack.pop_all())

    async def _wait(
        self, stack: contextlib.AsyncExitStack, turn: contextlib.AsyncExitStack
    ) -> None:
        try:
            async with asyncio.timeout(self._longest_wait):
                await stack.enter_async_context(self._places)
                await turn.enter_async_context(self._at_work)
        except TimeoutError:
            words = "Files of others are being made just now. Try again in a minute."
            raise HTTPException(503, words, {"retry-after": "60"}) from None

    def _write(self, write: WriteFile, file: IO[bytes]) -> None:
        self._storage.expect_disk()
        with snapshot_session(self._engine) as db:
            write(db, file)


class _Download(StreamingResponse):
    """A file that is sent piece by piece; `held` is let go when it was."""

    def __init__(
        self, file: IO[bytes], name: str, held: contextlib.AsyncExitStack
    ) -> None:
        self._held = held
        self._size = file.seek(0, os.SEEK_END)
        file.seek(0)
        zipped = name.endswith(".zip")
        super().__init__(
            _pieces(file),
            media_type="application/zip" if zipped else "application/octet-stream",
            headers={
                "content-disposition": f'attachment; filename="{name}"',
                "content-length": str(self._size),
                "cache-control": "no-store",
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, and stop where nobody takes it at any decent rate."""
        try:
            async with asyncio.timeout(_GRACE + self._size / _SLOWEST):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            return  # the connection is closed with the answer cut short
        finally:
            await self._held.aclose()


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_CHUNK):
        yield piece
