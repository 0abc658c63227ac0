"""Fast start: imports without garbage collection, stop signals, and the error of commands.

Most of the start time is imports, so only this module is imported before `serve` runs.
"""

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any


class CommandError(Exception):
    """The command failed. The message says why and what to do."""


@contextlib.contextmanager
def exclude_imports_from_gc() -> Iterator[None]:
    """Exclude what is imported in the block from garbage collection.

    It stays in memory anyway. This saves a seventh of the time, and another pass at exit.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if running:
            gc.enable()


def serve_app() -> Any:
    """Create the app of a server process. A stop signal during the import exits at once."""
    with end_on_first_signal():
        with exclude_imports_from_gc():
            from app import main
        return main.serve_app()


@contextlib.contextmanager
def end_on_first_signal() -> Iterator[None]:
    """Exit with status 0 at a stop signal, like a server that is stopped later.

    By default, SIGINT would print a traceback, and SIGTERM would do nothing if this is
    the first process of a container.
    """

    def exit_at_once(_number: int, _frame: FrameType | None) -> None:
        os._exit(0)

    before = {
        number: signal.signal(number, exit_at_once) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)
