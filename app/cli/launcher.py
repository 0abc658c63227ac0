"""Lazy imports, stop signals, CommandError.

Most of a start is imports, so nothing but this is imported before it listens.
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
    """What `module:name` names.

    What an import makes stays. The collector looks through it again and again, a
    seventh of the time, and once more at the end, unless it is kept from that.
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
    """Serve; a stop is a success, whenever it comes."""
    with _ending_at_once():
        status: int = load("app.cli.server:serve")(given)
        return status


def serve_app() -> Any:
    """The application of a server process, which uvicorn lets load before it ends."""
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
    """End as a server does that was stopped later.

    The default would be a traceback for SIGINT, and nothing at all for SIGTERM where
    this is the first process of a container.
    """
    os._exit(0)


class CommandError(Exception):
    """The command cannot go on; the sentence says what to do about it."""
