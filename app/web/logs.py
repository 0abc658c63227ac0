"""The log of a server process: one line for each thing, as text or as JSON.

A line never holds what somebody sent: requests are named by their route, and of an
exception only its kind and the lines of code are written, for its message may repeat
an answer. Messages of the system and of the database connection are the exception.
"""

import collections
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Literal, TextIO

from pythonjsonlogger.json import JsonFormatter
from sqlalchemy.exc import OperationalError

Kind = Literal["text", "json"]
_WRITTEN = (
    *("time", "level", "logger", "message"),
    *("request", "method", "route", "status", "milliseconds", "exc_info"),
)
_MINUTE = 60.0  # seconds
_FAULT = 500
# What uvicorn says to every client that asks for a WebSocket. There is none here, and
# `ws="none"` does not keep it from saying so.
_ADVICE = "No supported WebSocket library"
_Raised = tuple[type[BaseException], BaseException, TracebackType | None]
_RaisedOrNot = _Raised | tuple[None, None, None]


def configure(kind: Kind) -> None:
    """Write the log of this process to its standard error."""
    root = logging.getLogger()
    root.handlers[:] = [handler_of(kind)]
    root.setLevel(logging.WARNING)


def handler_of(kind: Kind) -> logging.StreamHandler[TextIO]:
    """A handler that writes lines of this kind."""
    handler: logging.StreamHandler[TextIO] = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter() if kind == "json" else _TextFormatter())
    handler.addFilter(RepeatFilter())
    return handler


class _TextFormatter(logging.Formatter):
    """Lines for people: time, level, sentence; below it where an exception arose."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name
        record.message = _sentence(record)
        return super().formatMessage(record)

    def formatException(self, ei: _RaisedOrNot) -> str:  # noqa: N802 - its name
        return _where(ei[1])


class _JsonFormatter(JsonFormatter):
    """Lines for programs: the fields of `_WRITTEN` that are known."""

    converter = staticmethod(time.gmtime)
    default_time_format = _TextFormatter.default_time_format
    default_msec_format = _TextFormatter.default_msec_format

    def __init__(self) -> None:
        names = {"asctime": "time", "levelname": "level", "name": "logger"}
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=names)

    def process_log_record(self, log_data: dict[str, object]) -> dict[str, object]:
        return {name: log_data[name] for name in _WRITTEN if name in log_data}

    def formatException(self, ei: _RaisedOrNot) -> str:  # noqa: N802 - its name
        return _where(ei[1])


def _sentence(record: logging.LogRecord) -> str:
    """The message in one line: no control character may begin another."""
    words = record.getMessage()
    if record.name == "asyncio":  # the lines below the first show what was raised
        words = words.partition("\n")[0]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


def _where(error: BaseException | None) -> str:
    """The lines of code through which an error came, and its kind; causes first."""
    parts = []
    for one in reversed(list(_chain(error))):
        parts.append("".join(traceback.format_tb(one.__traceback__)))
        parts.append(f"{type(one).__module__}.{type(one).__qualname__}{_said(one)}\n")
    return "".join(parts).rstrip("\n")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        quiet = error.__suppress_context__
        error = error.__cause__ or (None if quiet else error.__context__)


def _said(error: BaseException) -> str:
    """What an error says, where it cannot repeat what somebody sent."""
    if isinstance(error, OperationalError):
        return f": {str(error.orig).partition(chr(10))[0]}"
    if isinstance(error, OSError) and error.strerror:
        return f": {error.strerror}"
    return ""


class RepeatFilter(logging.Filter):
    """Lets each kind of line that clients can cause through once a minute.

    The next one of its kind says how many were left out. A kind is a message, or the
    status and route of a request; faults of ours (500, or with an exception) are
    written each time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._shown: dict[str, float] = {}
        self._hidden: collections.Counter[str] = collections.Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith(_ADVICE):
            return False
        kind = _kind(record)
        if not kind:
            return True
        now = self._clock()
        if now - self._shown.get(kind, -_MINUTE) < _MINUTE:
            self._hidden[kind] += 1
            return False
        self._shown[kind] = now
        if hidden := self._hidden.pop(kind, 0):
            record.msg = f"{record.msg} ({hidden:,} more since the last time)"
        return True


def _kind(record: logging.LogRecord) -> str:
    """What a line is counted with; empty for one that is written each time."""
    status: int | None = getattr(record, "status", None)
    if record.exc_info or status == _FAULT:
        return ""
    if status is None:
        return str(record.msg)
    return f"{status} {getattr(record, 'route', '')}"
