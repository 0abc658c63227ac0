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


def load_attribute(address: str) -> Any:
    """Import and return the object named `module:name`.

    Imported objects are permanent. Excluding them from garbage collection saves a
    seventh of the time, and another pass at exit.
    """
    module, _, name = address.partition(":")
    if module not in sys.modules:
        _import_module(module)
    return getattr(sys.modules[module], name)


def _import_module(module: str) -> None:
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
    with _end_on_first_signal():
        status: int = load_attribute("app.cli.server:serve")(given)
        return status


def serve_app() -> Any:
    """Create the app of a server process. A stop signal during the import exits at once."""
    with _end_on_first_signal():
        return load_attribute("app.main:serve_app")()


@contextlib.contextmanager
def _end_on_first_signal() -> Iterator[None]:
    before = {
        number: signal.signal(number, _exit_on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, action)


def _exit_on_signal(_number: int, _frame: FrameType | None) -> None:
    """Exit with status 0, like a server that is stopped later.

    By default, SIGINT would print a traceback, and SIGTERM would do nothing if this is
    the first process of a container.
    """
    os._exit(0)


class CommandError(Exception):
    """The command failed. The message says why and what to do."""
