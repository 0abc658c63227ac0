"""Slow estimates run a few at a time."""

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from app.estimator import registry

Answer = TypeVar("Answer")

# A hop to a thread costs more than most estimates; a search must not hold up everybody
# else.
_QUICK = 0.01
# Costly work has threads of its own, so that it never takes all of those that pages
# need. One interpreter runs one thread at a time: with more of them nothing would be
# done sooner, and whoever answers pages would wait for each of them in turn.
AT_ONCE = 2
# How fast it is forgotten that an estimate was slow: what its inputs decide may come
# again at any time.
_FORGETTING = 0.9

_room: RunVar[anyio.CapacityLimiter] = RunVar("room of costly estimates")


class EstimateDurations:
    """How long each estimate took lately at most.

    Counted is the time of its own thread: on a busy machine the wait for a processor
    would make every estimate look slow, and the threads would make it wait longer.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    @property
    def known(self) -> tuple[str, ...]:
        """The names that were asked for so far."""
        return tuple(self._seconds)

    async def run(
        self, name: str, work: Callable[[], Answer], *, is_search: bool = False
    ) -> Answer:
        """Do the work of the estimate `name`, in a thread unless it is quick.

        A search always gets a thread: its inputs decide how long it takes, so quick
        answers say nothing about the next one. Who finds all threads of costly work
        taken waits on the event loop.
        """

        def timed() -> Answer:
            begun = self._clock()
            try:
                return work()
            finally:
                before = self._seconds.get(name, 0.0) * _FORGETTING
                self._seconds[name] = max(before, self._clock() - begun)

        if not is_search and self._seconds.get(name, 1.0) < _QUICK:
            return timed()
        return await run_sync(timed, limiter=_limiter())


def _limiter() -> anyio.CapacityLimiter:
    """The threads for costly work of this event loop."""
    limiter = _room.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(AT_ONCE)
        _room.set(limiter)
    return limiter


PACE = EstimateDurations()
"""That of this process, for all faces of the estimates."""


def limit_concurrency(route: Callable[..., Answer]) -> Callable[..., Awaitable[Answer]]:
    """A route that answers for the estimate called `name`, at its pace."""

    @functools.wraps(route)
    async def run(**asked: Any) -> Answer:
        entry = registry.find_estimate(asked["name"])
        # Addresses of nothing share one word: strangers make up as many as they like.
        name = f"{route.__name__} {entry.name if entry else ''}"
        is_search = entry is not None and entry.is_search
        work = functools.partial(route, **asked)
        return await PACE.run(name, work, is_search=is_search)

    return run
