"""Quick estimates are answered at once, slow ones beside the other requests."""

import time
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

Answer = TypeVar("Answer")

# A hop to a thread costs more than most estimates; a search of seconds must not
# hold up everybody else.
_QUICK = 0.01


class Pace:
    """How long each estimate took the last time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    async def run(self, name: str, work: Callable[[], Answer]) -> Answer:
        """Do the work of the estimate `name`, in a thread unless it is quick."""
        begun = self._clock()
        try:
            if self._seconds.get(name, 1.0) < _QUICK:
                return work()
            return await run_in_threadpool(work)
        finally:
            self._seconds[name] = self._clock() - begun
