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
    """How long each estimate took the last time.

    Counted is the time of its own thread: on a busy machine the wait for a processor
    would make every estimate look slow, and the threads would make it wait longer.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    async def run(self, name: str, work: Callable[[], Answer]) -> Answer:
        """Do the work of the estimate `name`, in a thread unless it is quick."""

        def timed() -> Answer:
            begun = self._clock()
            try:
                return work()
            finally:
                self._seconds[name] = self._clock() - begun

        if self._seconds.get(name, 1.0) < _QUICK:
            return timed()
        return await run_in_threadpool(timed)
