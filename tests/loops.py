"""A loop of one's own for what a test lets happen at once."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")
_AT_MOST = 60  # seconds, only so that nothing hangs for ever


def outcome(work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns.

    It runs in a thread of its own: a browser test may have left a loop in this one.
    """

    async def guarded() -> Result:
        return await asyncio.wait_for(work, timeout=_AT_MOST)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(guarded())).result()


def is_on_event_loop() -> bool:
    """Whether this thread runs an event loop, which waits for what is done here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
