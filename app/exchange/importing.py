"""Imports that go on beside the requests: a slice, then whoever else waits to write."""

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from fastapi.concurrency import run_in_threadpool
from sqlmodel import Session
from starlette.exceptions import HTTPException

from app.db.writer import Turn
from app.errors import ConflictError
from app.exchange import store
from app.exchange.store import ImportCounts, ImportedCard
from app.learners.current import LearnerProfile
from app.learners.store import bump_change_counter
from app.web.front.fair_slots import FairSlots

AT_ONCE = 2
"""Files that one process reads and writes at a time, each held in its memory."""
_LONGEST_WAIT = 50.0  # seconds until somebody is sent away; proxies give up after 60
_SOON = 1.0  # seconds in which a small file is done
_log = logging.getLogger("headroom")
Room = contextlib.AsyncExitStack


class ImportRunner:
    """The imports of this process. Each slice is a transaction of its own."""

    def __init__(
        self,
        turn: Turn,
        clock: Callable[[], dt.datetime],
        patience: float = _LONGEST_WAIT,
    ) -> None:
        self._turn = turn
        self._clock = clock
        self._patience = patience
        self._slots = FairSlots(AT_ONCE, AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """At the end, wait until the slices that are being written are on disk."""
        yield
        self._ending = True
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def room(self, client: str = "") -> AsyncIterator[Room]:
        """A place among the files at a time; HTTPException 503 when none gets free.

        Clients that have none come first. Who begins an import takes the place along
        (`pop_all`).
        """
        async with contextlib.AsyncExitStack() as room:
            slot = self._slots.occupy(client, seconds=self._patience)
            try:
                await room.enter_async_context(slot)
            except TimeoutError:
                words = "Other files are being imported just now. Send yours in a minute."
                raise HTTPException(503, words, {"retry-after": "60"}) from None
            yield room

    async def begin(
        self,
        running: tuple[LearnerProfile, int],
        arrivals: Sequence[ImportedCard],
        room: Room,
    ) -> asyncio.Task[None]:
        """Write cards slice by slice; returns when they are written, or soon."""
        task = asyncio.create_task(self._run(running, arrivals, room))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait({task}, timeout=_SOON)
        return task

    async def _run(
        self,
        running: tuple[LearnerProfile, int],
        arrivals: Sequence[ImportedCard],
        room: Room,
    ) -> None:
        name = (running[0].id, running[1])
        async with room:
            try:
                state = await self._write(running, arrivals)
                await self._end(name, state)
            except Exception:  # noqa: BLE001 - nobody waits: the page and the log say so
                _log.exception("an import of cards failed")
                with contextlib.suppress(Exception):
                    await self._end(name, store.FAILED)

    async def _write(
        self, running: tuple[LearnerProfile, int], arrivals: Sequence[ImportedCard]
    ) -> str:
        """How it ended: done, canceled, stopped with the server, or full."""
        waiting = 0
        for part in store.slices_of(arrivals):
            if self._ending:
                return store.STOPPED
            now = self._clock()
            try:
                async with self._turn() as db:
                    outcome = await run_in_threadpool(
                        _write_slice, db, running, part, (now, waiting)
                    )
            except ConflictError:  # as many own cards as one may have
                return store.FULL
            if outcome is None:
                return store.CANCELLED
            waiting += outcome.waiting
        return store.DONE

    async def _end(self, running: tuple[int, int], state: str) -> None:
        async with self._turn() as db:
            bump_change_counter(db, running[0])
            await run_in_threadpool(store.end_import, db, running, state)


def _write_slice(
    db: Session,
    running: tuple[LearnerProfile, int],
    part: Sequence[ImportedCard],
    at: tuple[dt.datetime, int],
) -> ImportCounts | None:
    """Write a slice and how far it brought the import; None when that was ended."""
    learner, began = running
    now, waiting = at
    # Whoever writes for a learner asks for this first: others wait here for us.
    if not bump_change_counter(db, learner.id) or not store.is_running(db, (learner.id, began)):
        return None
    outcome = store.import_cards(db, learner, part, now, waiting)
    store.advance_import(db, (learner.id, began), (len(part), outcome), now)
    return outcome
