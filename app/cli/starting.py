"""`headroom serve` until it serves: who says stop is obeyed at once.

Most of a start is imports, so nothing but this is imported before it listens.
"""

import argparse
import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from app.cli.loading import load


def serve(given: argparse.Namespace) -> int:
    """Serve; a stop is a success, whenever it comes."""
    with _ending_at_once():
        status: int = load("app.cli.serving:serve")(given)
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
