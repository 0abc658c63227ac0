"""A worker process ends with the process that started it."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def ending_with_parent() -> Iterator[None]:
    """Stop this process in good order when its parent is gone.

    A parent that was killed cannot tell its workers to stop, and they would keep the
    port. One process alone has no such parent, and nothing happens.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(parent.sentinel, _stop, loop, parent.sentinel)
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


def _stop(loop: asyncio.AbstractEventLoop, sentinel: int) -> None:
    loop.remove_reader(sentinel)  # it stays readable
    os.kill(os.getpid(), signal.SIGTERM)
