"""Downloads of learners: files created one at a time, on disk."""

import asyncio
import contextlib
import functools
import os
import tempfile
from collections.abc import Callable
from typing import IO

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response, StreamingResponse
from sqlalchemy import Engine
from sqlmodel import Session
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from app.database.engine import open_snapshot_session
from app.database.quotas import StorageLimit
from app.errors import ConflictError
from app.web.request_limits import (
    BodyTransfer,
    FairSlots,
    TransferSlots,
    client_address_or_network_of_scope,
)

LONGEST_WAIT = 30.0
"""Seconds until a waiting request is refused."""
_MAX_FILES = 16  # created or sent at a time, so that they cannot fill the disk
_MAX_FILES_PER_CLIENT = 2
_CHUNK_BYTES = 256 * 1024
_SECONDS_PER_CHUNK = 10.0  # within which a client must receive each piece
WriteFile = Callable[[Session, IO[bytes]], None]


class DownloadQueue:
    """Creates files for learners in a thread, one at a time, and sends them.

    Clients without a download come first. The slowest download is ended for a waiting
    client.
    """

    def __init__(
        self, engine: Engine, storage: StorageLimit, max_wait_seconds: float = LONGEST_WAIT
    ) -> None:
        self._engine = engine
        self._storage = storage
        self._longest_wait = max_wait_seconds
        self._transfer_slots = TransferSlots(_MAX_FILES, _MAX_FILES_PER_CLIENT)
        self._creation_slots = FairSlots(1, 1)
        self._persons: set[str] = set()

    async def create_download(
        self, request: Request, person_key: str, file_name: str, write_content: WriteFile
    ) -> Response:
        """Return a response with the file that `write_content` creates from the current database.

        Raises ConflictError while the person has another download, HTTPException 503 if
        too many others wait, and StorageFullError.
        """
        if person_key in self._persons:
            raise ConflictError(
                "Another file for you is being created or sent.",
                "Wait until you have it, then ask for this one.",
            )
        self._persons.add(person_key)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self._persons.discard, person_key)
            async with contextlib.AsyncExitStack() as turn:
                await self._take_transfer_and_creation_slots(
                    client_address_or_network_of_scope(request.scope), stack, turn
                )
                if await request.is_disconnected():
                    raise ClientDisconnect
                # The file has no name, so it disappears with the process.
                file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
                await run_in_threadpool(self._write_content_from_snapshot, write_content, file)
            return _FileDownload(file, file_name, self._transfer_slots, stack.pop_all())

    async def _take_transfer_and_creation_slots(
        self,
        client: str,
        stack_closed_when_sent: contextlib.AsyncExitStack,
        stack_closed_when_created: contextlib.AsyncExitStack,
    ) -> None:
        seconds = self._longest_wait
        try:
            async with asyncio.timeout(seconds):
                slot = self._transfer_slots.hold_slot(client, max_wait_seconds=seconds)
                await stack_closed_when_sent.enter_async_context(slot)
                await stack_closed_when_created.enter_async_context(
                    self._creation_slots.hold_slot(client)
                )
        except TimeoutError:
            message = "Files for others are being created. Try again in a minute."
            raise HTTPException(503, message, {"retry-after": "60"}) from None

    def _write_content_from_snapshot(self, write_content: WriteFile, file: IO[bytes]) -> None:
        self._storage.raise_if_disk_nearly_full()
        with open_snapshot_session(self._engine) as db:
            write_content(db, file)


class _FileDownload(StreamingResponse):
    """A file sent in pieces. `close_after_sending` are closed afterwards, the file among them."""

    def __init__(
        self,
        file: IO[bytes],
        file_name: str,
        transfer_slots: TransferSlots,
        close_after_sending: contextlib.AsyncExitStack,
    ) -> None:
        self._transfer_slots = transfer_slots
        self._resources = close_after_sending
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        zipped = file_name.endswith(".zip")
        super().__init__(
            iter(functools.partial(file.read, _CHUNK_BYTES), b""),
            media_type="application/zip" if zipped else "application/octet-stream",
            headers={
                "content-disposition": f'attachment; filename="{file_name}"',
                "content-length": str(size),
                "cache-control": "no-store",
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file. Stops if the client receives it too slowly."""
        try:
            async with self._transfer_slots.register_transfer() as transfer:
                await super().__call__(scope, receive, _set_deadline_at_each_chunk(send, transfer))
        except TimeoutError:
            return  # the connection is closed, so the client sees an incomplete file
        finally:
            await self._resources.aclose()


def _set_deadline_at_each_chunk(send: Send, transfer: BodyTransfer) -> Send:
    async def send_piece(message: Message) -> None:
        now = asyncio.get_running_loop().time()
        transfer.set_deadline(now + _SECONDS_PER_CHUNK)
        await send(message)
        transfer.bytes += len(message.get("body", b""))

    return send_piece
