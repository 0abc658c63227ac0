"""Run slow estimates in threads, a few at a time."""

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from app.estimator import registry

Answer = TypeVar("Answer")

# A switch to a thread costs more than most estimates, but a slow search must not block the event
# loop.
_QUICK_SECONDS = 0.01
# Costly work has its own threads, so that it never takes all those that pages need. Python runs one
# thread at a time: more threads would finish nothing sooner, and pages would wait for each of them
# in turn.
MAX_WORKERS = 2
# How fast a slow run is forgotten. Inputs decide the time, so a slow one can follow at any time.
_FORGETTING = 0.9

_room: RunVar[anyio.CapacityLimiter] = RunVar("room of costly estimates")


class EstimateDurations:
    """The longest recent duration of each estimate.

    It is CPU time of the thread. On a busy machine the wait for a processor would make every
    estimate look slow, and using threads for all of them would make it wait even longer.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @property
    def known(self) -> tuple[str, ...]:
        """The names run so far."""
        return tuple(self._seconds)

    async def run(
        self, name: str, work: Callable[[], Answer], *, is_search: bool = False
    ) -> Answer:
        """Run the estimate `name`, in a thread unless it is usually quick.

        A search always runs in a thread: its inputs decide how long it takes, so quick runs say
        nothing about the next one. If all threads for costly work are busy, the caller waits on the
        event loop.
        """

        def timed() -> Answer:
            begun = self._clock()
            try:
                return work()
            finally:
                before = self._seconds.get(name, 0.0) * _FORGETTING
                self._seconds[name] = max(before, self._clock() - begun)

        if not is_search and self._seconds.get(name, 1.0) < _QUICK_SECONDS:
            return timed()
        return await run_sync(timed, limiter=_estimate_limiter())


def _estimate_limiter() -> anyio.CapacityLimiter:
    """Return the limiter of threads for costly work, one per event loop."""
    limiter = _room.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(MAX_WORKERS)
        _room.set(limiter)
    return limiter


PACE = EstimateDurations()
"""Shared by the web pages and the API of this process."""


def limit_concurrency(route: Callable[..., Answer]) -> Callable[..., Awaitable[Answer]]:
    """Wrap a route with the parameter `name`, so that slow estimates run in threads."""

    @functools.wraps(route)
    async def run(**arguments: Any) -> Answer:
        entry = registry.find_estimate(arguments["name"])
        # Unknown calculator names share one key. Otherwise made-up URLs would grow the table
        # without limit.
        name = f"{route.__name__} {entry.name if entry else ''}"
        is_search = entry is not None and entry.is_search
        work = functools.partial(route, **arguments)
        return await PACE.run(name, work, is_search=is_search)

    return run
