"""Prometheus metrics, health checks and logs.

Labels of metrics are methods, routes and status classes, nothing that clients sent.
Several processes share their metrics through files in PROMETHEUS_MULTIPROC_DIR.

The health checks are public, so their responses contain no path, host or number of
bytes. They run at most once a second (the disk check every ten seconds), and not on the
event loop. The middleware passes these URLs on before it reads course, learner or
database, so that they work whatever else fails.

Log lines contain nothing that clients sent. Requests are named by their route. Of an
exception only the type and the traceback are logged, because its message may repeat an
answer. Messages of the system and of the database connection are logged.
"""

import asyncio
import collections
import contextlib
import dataclasses
import functools
import hmac
import logging
import multiprocessing
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TextIO
from urllib.parse import quote

import anyio
from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from fastapi.routing import iter_route_contexts
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
    multiprocess,
)
from pythonjsonlogger.json import JsonFormatter
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlmodel import Session, SQLModel
from starlette.types import Scope

from app.content.live_courses import CourseRegistry, LiveCourse
from app.database.engine import OpenWriteSession
from app.database.file_guards import DatabaseGoneError, expect_same_database_file
from app.database.quotas import LEAST_FREE, LEAST_FREE_TO_SERVE, StorageLimit
from app.errors import StorageFullError

router = APIRouter(include_in_schema=False)
METRICS_PATH = "/metrics"
SHARED_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_COUNTED_METHODS = {"GET", "HEAD", "POST"}
_DURATION_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_OF_PROCESS = re.compile(r"gauge_live\w*_(\d+)\.db")


class Metrics:
    """The metrics of one process. `token` is required to read them.

    `count_problems` returns the number of problems in the course.
    """

    def __init__(self, token: str, count_problems: Callable[[], int]) -> None:
        self._token = token.encode()
        self._count_problems = count_problems
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        seconds = functools.partial(Histogram, registry=registry, buckets=_DURATION_BUCKETS_SECONDS)
        gauge = functools.partial(Gauge, registry=registry)
        by_route = ("method", "route")
        self._requests = Counter(
            "headroom_requests",
            "Requests that were answered.",
            (*by_route, "status"),
            registry=registry,
        )
        self._latency = seconds(
            "headroom_request_seconds", "Time until a request was answered.", by_route
        )
        self._waits = seconds("headroom_write_wait_seconds", "Time until a turn began.")
        self._writes = seconds(
            "headroom_write_seconds", "Time from the begin of a turn until it was on disk."
        )
        self._waiting = gauge(
            "headroom_writers_waiting", "Requests that wait to write.", multiprocess_mode="livesum"
        )
        self._imports = gauge(
            "headroom_imports_running", "Files being taken in.", multiprocess_mode="livesum"
        )
        self._problems = gauge(
            "headroom_content_problems", "Problems in the course.", multiprocess_mode="livemax"
        )

    def is_valid_authorization(self, header: str) -> bool:
        given = header.removeprefix("Bearer ").encode()
        return hmac.compare_digest(given, self._token)

    def record_response(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _COUNTED_METHODS else "other"
        self._requests.labels(method, route, f"{status // 100}xx").inc()
        self._latency.labels(method, route).observe(seconds)

    def track_running_import(self) -> AbstractContextManager[None]:
        return self._imports.track_inprogress()

    def wrap_write_session_with_timing(
        self, open_write_session: OpenWriteSession
    ) -> OpenWriteSession:
        """Return `open_write_session` with its waiting and writing time measured."""
        return lambda: self._measure_write_session(open_write_session)

    def render_prometheus_text(self) -> bytes:
        self._problems.set(self._count_problems())
        folder = os.environ.get(SHARED_FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(self._registry)
        _delete_dead_process_metrics(Path(folder))
        everything = CollectorRegistry()
        ProcessCollector(registry=everything)
        multiprocess.MultiProcessCollector(everything)  # type: ignore[no-untyped-call]
        return generate_latest(everything)

    @contextlib.asynccontextmanager
    async def _measure_write_session(
        self, open_write_session: OpenWriteSession
    ) -> AsyncIterator[Session]:
        arrived = time.perf_counter()
        with contextlib.ExitStack() as waiting:
            waiting.enter_context(self._waiting.track_inprogress())
            async with open_write_session() as session:
                waiting.close()
                begun = time.perf_counter()
                self._waits.observe(begun - arrived)
                yield session
        self._writes.observe(time.perf_counter() - begun)


@router.api_route(METRICS_PATH, methods=["GET", "HEAD"])
async def show_metrics(request: Request) -> Response:
    """Respond with the metrics if the request has the token; 404 without the setting."""
    metrics: Metrics | None = request.app.state.metrics
    if metrics is None:
        return PlainTextResponse("There is no page at this address.\n", 404)
    if not metrics.is_valid_authorization(request.headers.get("authorization", "")):
        words = "Send the token that HEADROOM_METRICS_TOKEN holds.\n"
        return PlainTextResponse(words, 401, headers={"www-authenticate": "Bearer"})
    return Response(metrics.render_prometheus_text(), media_type=CONTENT_TYPE_LATEST)


def share_metrics_between_processes(folder: Path) -> None:
    """Make processes started from now on share their metrics in `folder`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()
    os.environ[SHARED_FOLDER_VARIABLE] = str(folder)


def _delete_dead_process_metrics(folder: Path) -> None:
    for file in folder.glob("gauge_live*.db"):
        named = _OF_PROCESS.fullmatch(file.name)
        if named and not _is_process_alive(int(named[1])):
            multiprocess.mark_process_dead(int(named[1]), str(folder))  # type: ignore[no-untyped-call]


def _is_process_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


_CHECK_SECONDS = 1.0  # for which the result of a check is cached
_DISK_SECONDS = 10.0  # of the disk check, which waits for a sync
_LOCK_WAIT_SECONDS = 0.8  # seconds to wait for another writing process
_MAX_CHECK_SECONDS = 3.0  # seconds after which a check counts as failed
_PROBE_BYTES = 64 * 1024  # bytes that are written to test the disk


@dataclasses.dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """The result of one check. `problem` says what is wrong and what to do; empty if ok."""

    name: str
    problem: str = ""
    note: str = ""

    @property
    def status_line(self) -> str:
        if self.problem:
            return f"{self.name}: FAILED. {self.problem}"
        return f"{self.name}: ok{', ' if self.note else ''}{self.note}"


class ReadinessChecks:
    """The health checks of one process, and their cached results."""

    def __init__(
        self, engine: Engine, data_folder: Path, courses: CourseRegistry, storage: StorageLimit
    ) -> None:
        folders = _list_folders_to_check(engine, data_folder)
        self._checks = [
            _CachedCheck("database", lambda: _check_database(engine)),
            _CachedCheck("disk", lambda: _check_disk_and_quota(folders, storage), _DISK_SECONDS),
        ]
        for name, live in courses.live_courses.items():
            check = functools.partial(_check_course, name, live)
            self._checks.append(_CachedCheck("content", check))
        self._lock = asyncio.Lock()

    async def get_recent_results(self) -> list[HealthCheckResult]:
        """Return the results, at most a second old; that of the disk at most ten seconds."""
        async with self._lock:
            return [await check.get_recent_result() for check in self._checks]


class _CachedCheck:
    def __init__(
        self,
        name: str,
        check: Callable[[], HealthCheckResult],
        cache_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._name = name
        self._check = check
        self._cache_seconds = cache_seconds
        self._result = HealthCheckResult("")
        self._due_at = 0.0
        # Each has its own thread: those of the requests may be in use.
        self._thread = anyio.CapacityLimiter(1)

    async def get_recent_result(self) -> HealthCheckResult:
        if time.monotonic() >= self._due_at:
            message = f"There was no answer within {_MAX_CHECK_SECONDS:.0f} seconds. "
            message += "See that database and disk can be reached."
            self._result = HealthCheckResult(self._name, message)
            with anyio.move_on_after(_MAX_CHECK_SECONDS):
                self._result = await to_thread.run_sync(
                    self._check, abandon_on_cancel=True, limiter=self._thread
                )
            self._due_at = time.monotonic() + self._cache_seconds
        return self._result


def _check_course(name: str, live: LiveCourse) -> HealthCheckResult:
    subject = f"content {name}" if name else "content"
    try:
        course = live.get_current_course()
    except Exception:  # noqa: BLE001 - any error is reported
        return HealthCheckResult(subject, f"The course cannot be read. {_CHECK_CONTENT}")
    if not course.topics:
        return HealthCheckResult(subject, f"The course has no topics. {_CHECK_CONTENT}")
    wrong = sum(p.severity == "error" for p in course.problems)
    note = f"{len(course.topics)} topics"
    if wrong:
        note += f", {wrong} errors in the files; `headroom check` names each"
    return HealthCheckResult(subject, note=note)


_CHECK_CONTENT = "Run `headroom check`, and fix what it names."


def check_disk(
    folders: Sequence[Path], min_free_bytes: int = LEAST_FREE_TO_SERVE
) -> HealthCheckResult:
    """Check that each folder is writable and has `min_free_bytes` bytes free.

    The problem names what the server needs for everything that it does, cards included.
    """
    for folder in folders:
        try:
            free = shutil.disk_usage(folder).free
            _raise_if_not_writable(folder)
        except OSError as error:
            words = f"The data folder cannot be written ({error.strerror}). "
            return HealthCheckResult("disk", words + "Free space, or make the folder writable.")
        if free < min_free_bytes:
            needed_bytes = max(min_free_bytes, LEAST_FREE)
            words = f"The disk is nearly full: have {needed_bytes // 1_000_000:,} MB free."
            return HealthCheckResult("disk", words)
    return HealthCheckResult("disk")


def _check_disk_and_quota(folders: Sequence[Path], storage: StorageLimit) -> HealthCheckResult:
    check = check_disk(folders)
    try:
        storage.raise_if_full_for_cards()
    except StorageFullError:
        return dataclasses.replace(check, note="full for imports")
    except (OSError, SQLAlchemyError):
        return check  # the other checks report it
    return check


def _raise_if_not_writable(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(_PROBE_BYTES))
        probe.flush()
        os.fsync(probe.fileno())


def _list_folders_to_check(engine: Engine, data_folder: Path) -> tuple[Path, ...]:
    path = _database_path(engine)
    return (data_folder,) if path is None else tuple({data_folder, path.parent})


def _database_path(engine: Engine) -> Path | None:
    name = engine.url.database
    return Path(name) if engine.dialect.name == "sqlite" and name else None


def _check_database(engine: Engine) -> HealthCheckResult:
    path = _database_path(engine)
    fault = _find_postgresql_fault(engine) if path is None else _find_sqlite_fault(engine, path)
    return HealthCheckResult("database", fault)


def _find_sqlite_fault(engine: Engine, path: Path) -> str:
    """Return what is wrong with a database file; empty if a write would succeed."""
    if not path.exists():
        return "The database file is gone. Stop the server, and restore a backup."
    try:
        expect_same_database_file(engine)
    except DatabaseGoneError:
        return "The database file was replaced. Restart the server to use the new one."
    try:
        with _connect_outside_pool(path) as connection:
            _raise_if_database_not_writable(connection)
            rows = connection.execute(_SELECT_TABLE_NAMES).fetchall()
            connection.rollback()
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the primary error code
        return _SQLITE_ERROR_MESSAGES.get(code, _DAMAGED_DATABASE_MESSAGE)
    return _describe_missing_tables(name for (name,) in rows)


def _describe_missing_tables(existing_tables: Iterable[str]) -> str:
    # All tables are in the metadata: the engine module imports them.
    if SQLModel.metadata.tables.keys() <= set(existing_tables):
        return ""
    return "The database lacks tables. Stop the server, and restore a backup."


def _raise_if_database_not_writable(connection: sqlite3.Connection) -> None:
    """Begin a write transaction. Raises sqlite3.Error if no process can write.

    With many learners writing one after another, this may not get the lock in time.
    Then a commit by others shows that the database is writable.
    """
    (before,) = connection.execute(_DATA_VERSION).fetchone()
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        (after,) = connection.execute(_DATA_VERSION).fetchone()
        if after == before:
            raise


_SELECT_TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_DATA_VERSION = "PRAGMA data_version"  # changes after each commit of others
_DAMAGED_DATABASE_MESSAGE = "The database is damaged. Stop the server, and restore a backup."
_SQLITE_ERROR_MESSAGES = {
    sqlite3.SQLITE_BUSY: "Another process keeps the database locked. "
    "Find the program that has it open, and end it.",
    sqlite3.SQLITE_READONLY: "The database is read-only. Make it writable.",
    sqlite3.SQLITE_FULL: "The disk is full. Free space.",
    sqlite3.SQLITE_CANTOPEN: "The database cannot be opened. "
    "Make the data folder readable and writable.",
    sqlite3.SQLITE_IOERR: "The disk reports errors. Look at the system's log.",
}


def _connect_outside_pool(path: Path) -> contextlib.closing[sqlite3.Connection]:
    """Open a separate connection, which never creates a missing file."""
    address = f"file:{quote(str(path.absolute()))}?mode=rw"
    return contextlib.closing(
        sqlite3.connect(address, uri=True, timeout=_LOCK_WAIT_SECONDS, isolation_level=None)
    )


def _find_postgresql_fault(engine: Engine) -> str:
    try:
        with engine.connect() as connection:
            names = inspect(connection).get_table_names()
            closed = connection.execute(text(_READ_ONLY)).scalar()
    except SQLAlchemyError:
        return "The database server gives no answer. See that it runs and is reachable."
    if closed:
        return "The database server takes no writes. Make it writable."
    return _describe_missing_tables(names)


_READ_ONLY = (
    "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean"
)

MONITORING_PATHS = frozenset({"/healthz", "/readyz", METRICS_PATH})
_NO_STORE_HEADERS = {"cache-control": "no-store"}


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def respond_to_liveness_probe() -> PlainTextResponse:
    """Respond "well" if the process can respond at all."""
    return PlainTextResponse("well", headers=_NO_STORE_HEADERS)


@router.api_route("/readyz", methods=["GET", "HEAD"])
async def respond_to_readiness_probe(request: Request) -> PlainTextResponse:
    """Respond with one line per check; 503 if learners cannot be served."""
    readiness: ReadinessChecks = request.app.state.readiness
    checks = await readiness.get_recent_results()
    words = "".join(f"{check.status_line}\n" for check in checks)
    status = 503 if any(check.problem for check in checks) else 200
    return PlainTextResponse(words, status, headers=_NO_STORE_HEADERS)


LogFormat = Literal["text", "json"]
_LOGGED_FIELDS = (
    *("time", "level", "logger", "message"),
    *("request", "method", "route", "status", "milliseconds", "exc_info"),
)
_MINUTE_SECONDS = 60.0  # seconds
_SERVER_ERROR_STATUS = 500
# uvicorn logs this for every client that requests a WebSocket. There is none here, and
# `ws="none"` does not silence it.
_WEBSOCKET_ADVICE = "No supported WebSocket library"


def configure_logging(log_format: LogFormat) -> None:
    """Log this process to standard error."""
    root = logging.getLogger()
    root.handlers[:] = [create_log_handler(log_format)]
    root.setLevel(logging.WARNING)


def create_log_handler(log_format: LogFormat) -> logging.StreamHandler[TextIO]:
    handler: logging.StreamHandler[TextIO] = logging.StreamHandler()
    handler.setFormatter(_AllowListJsonFormatter() if log_format == "json" else _TextFormatter())
    handler.addFilter(RepeatedLineFilter())
    return handler


class _TextFormatter(logging.Formatter):
    """Log lines for people: time, level, message; then the traceback of an exception."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - overrides logging
        record.message = _message_on_one_line(record)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - overrides logging
        return _format_error_chain(ei[1])


class _AllowListJsonFormatter(JsonFormatter):
    """Log lines as JSON, with those fields of `_LOGGED_FIELDS` that are set."""

    converter = staticmethod(time.gmtime)
    default_time_format = _TextFormatter.default_time_format
    default_msec_format = _TextFormatter.default_msec_format

    def __init__(self) -> None:
        names = {"asctime": "time", "levelname": "level", "name": "logger"}
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=names)

    def process_log_record(self, log_data: dict[str, object]) -> dict[str, object]:
        return {name: log_data[name] for name in _LOGGED_FIELDS if name in log_data}

    def formatException(self, ei: Any) -> str:  # noqa: N802 - overrides logging
        return _format_error_chain(ei[1])


def _message_on_one_line(record: logging.LogRecord) -> str:
    """Return the message as one line, with control characters escaped."""
    words = record.getMessage()
    if record.name == "asyncio":  # its other lines repeat the exception
        words = words.partition("\n")[0]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


def _format_error_chain(error: BaseException | None) -> str:
    """Return the traceback and type of an error and its causes, causes first."""
    parts = []
    for one in reversed(list(_error_chain(error))):
        parts.append("".join(traceback.format_tb(one.__traceback__)))
        parts.append(
            f"{type(one).__module__}.{type(one).__qualname__}{_message_without_client_data(one)}\n"
        )
    return "".join(parts).rstrip("\n")


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        quiet = error.__suppress_context__
        error = error.__cause__ or (None if quiet else error.__context__)


def _message_without_client_data(error: BaseException) -> str:
    if isinstance(error, OperationalError):
        return f": {str(error.orig).partition(chr(10))[0]}"
    if isinstance(error, OSError) and error.strerror:
        return f": {error.strerror}"
    return ""


class RepeatedLineFilter(logging.Filter):
    """Limits each kind of log line that clients can cause to one per minute.

    The next line of the kind reports how many were dropped. A kind is a message, or
    status and route of a request. Server errors (status 500 or an exception) are always
    logged.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._shown: dict[str, float] = {}
        self._hidden: collections.Counter[str] = collections.Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith(_WEBSOCKET_ADVICE):
            return False
        kind = _kind_of_limited_line_or_empty(record)
        if not kind:
            return True
        now = self._clock()
        if now - self._shown.get(kind, -_MINUTE_SECONDS) < _MINUTE_SECONDS:
            self._hidden[kind] += 1
            return False
        self._shown[kind] = now
        if hidden := self._hidden.pop(kind, 0):
            record.msg = f"{record.msg} ({hidden:,} more since the last time)"
        return True


def _kind_of_limited_line_or_empty(record: logging.LogRecord) -> str:
    """Return the key to count a line by; empty for lines that are always logged."""
    status: int | None = getattr(record, "status", None)
    if record.exc_info or status == _SERVER_ERROR_STATUS:
        return ""
    if status is None:
        return str(record.msg)
    return f"{status} {getattr(record, 'route', '')}"


@contextlib.contextmanager
def stop_worker_when_parent_ends() -> Iterator[None]:
    """Stop this worker process gracefully when its parent process ends.

    A killed parent cannot stop its workers, and they would keep the port open. Without
    a parent process this does nothing.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(parent.sentinel, _stop_this_process_gracefully, loop, parent.sentinel)
    try:
        yield
    finally:
        loop.remove_reader(parent.sentinel)


def _stop_this_process_gracefully(loop: asyncio.AbstractEventLoop, sentinel: int) -> None:
    loop.remove_reader(sentinel)  # the sentinel stays readable
    os.kill(os.getpid(), signal.SIGTERM)


class RouteTemplates:
    """Route templates of requests. They contain nothing that the client sent."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._names: dict[int, str] = {}

    def route_template_or_dash(self, scope: Scope) -> str:
        """Return the template, e.g. “/quiz/{topic}”; “-” if no route matched."""
        route = scope.get("route") or scope.get("endpoint")
        if route is None:
            return "-"
        if id(route) not in self._names:
            for one in iter_route_contexts(self._app.routes):
                # Quick routes leave only `endpoint` in the scope, no `route`.
                self._names[id(one.original_route)] = one.path or "-"
                self._names[id(one.endpoint)] = one.path or "-"
        return self._names.get(id(route), "-")
