"""Fast start: lazy imports, stop signals, and the error of commands.

Most of the start time is imports, so only this module is imported before `serve` runs.
"""

import argparse
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any


def load(address: str) -> Any:
    """Import and return the object named `module:name`.

    Imported objects are permanent. Excluding them from garbage collection saves a
    seventh of the time, and another pass at exit.
    """
    module, _, name = address.partition(":")
    if module not in sys.modules:
        _import(module)
    return getattr(sys.modules[module], name)


def _import(module: str) -> None:
    running = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module(module)
    finally:
        gc.freeze()
        if running:
            gc.enable()


def serve(given: argparse.Namespace) -> int:
    """Run the server. A stop signal during startup exits with status 0."""
    with _ending_at_once():
        status: int = load("app.cli.server:serve")(given)
        return status


def serve_app() -> Any:
    """Create the app of a server process. A stop signal during the import exits at once."""
    with _ending_at_once():
        return load("app.main:serve_app")()


@contextlib.contextmanager
def _ending_at_once() -> Iterator[None]:
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _end(_number: int, _frame: FrameType | None) -> None:
    """Exit with status 0, like a server that is stopped later.

    By default, SIGINT would print a traceback, and SIGTERM would do nothing if this is
    the first process of a container.
    """
    os._exit(0)


class CommandError(Exception):
    """The command failed. The message says why and what to do."""
