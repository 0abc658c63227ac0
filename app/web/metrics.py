"""What the server counts for Prometheus, and the address that shows it to who may.

Labels are methods, routes and classes of status: nothing that anybody sent. Where
several processes serve, they share what they count through files of a folder, as
prometheus_client does it: PROMETHEUS_MULTIPROC_DIR names the folder.
"""

import asyncio
import contextlib
import dataclasses
import hmac
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from sqlmodel import Session

from app.db.writer import Turn

router = APIRouter(include_in_schema=False)
ADDRESS = "/metrics"
SHARED = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = {"GET", "HEAD", "POST"}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PAUSE = 5.0  # seconds between two looks at what is not counted as it happens
_OF_PROCESS = re.compile(r"gauge_live\w*_(\d+)\.db")


@dataclasses.dataclass(frozen=True, slots=True)
class MetricSources:
    """What is looked at when somebody asks, instead of being counted."""

    kept_bytes: Callable[[], int]
    content_problems: Callable[[], int]


class Metrics:
    """The counters of one process; `token` opens the address that shows them."""

    def __init__(self, token: str, sources: MetricSources) -> None:
        self._token = token.encode()
        self._sources = sources
        self._registry = CollectorRegistry()
        self._requests = Counter(
            *("headroom_requests", "Requests that were answered."),
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._latency = self._histogram(
            "request_seconds", "Time until a request was answered.", "method", "route"
        )
        self._waits = self._histogram("write_wait_seconds", "Time until a turn began.")
        self._writes = self._histogram(
            "write_seconds", "Time from the begin of a turn until it was on disk."
        )
        self._waiting = self._gauge("writers_waiting", "Requests that wait to write.")
        self._imports = self._gauge("imports_running", "Files being taken in.")
        self._looked_at = self._gauges()

    def admits(self, header: str) -> bool:
        """Whether an Authorization header holds the token."""
        given = header.removeprefix("Bearer ").encode()
        return hmac.compare_digest(given, self._token)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request by its method, its route and the class of its status."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, f"{status // 100}xx").inc()
        self._latency.labels(method, route).observe(seconds)

    @contextlib.contextmanager
    def importing(self) -> Iterator[None]:
        """Count a file as long as it is being taken in."""
        with self._imports.track_inprogress():
            yield

    def timed(self, turn: Turn) -> Turn:
        """The same turns to write, counted."""

        def begin() -> AbstractAsyncContextManager[Session]:
            return self._timed(turn)

        return begin

    def shown(self) -> bytes:
        """What Prometheus reads: of every process, where several serve."""
        self._look()
        folder = os.environ.get(SHARED)
        if folder is None:
            return generate_latest(self._registry)
        _forget_the_dead(Path(folder))
        everything = CollectorRegistry()
        multiprocess.MultiProcessCollector(everything)  # type: ignore[no-untyped-call]
        return generate_latest(everything)

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Look at what is not counted now and then, for other processes to show."""
        if SHARED not in os.environ:
            yield
            return
        task = asyncio.ensure_future(self._look_again())
        try:
            yield
        finally:
            task.cancel()

    async def _look_again(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_PAUSE)

    def _look(self) -> None:
        for gauge, look in self._looked_at:
            try:
                gauge.set(look())
            except Exception:  # noqa: BLE001 - what cannot be told is not a number
                gauge.set(float("nan"))

    @contextlib.asynccontextmanager
    async def _timed(self, turn: Turn) -> AsyncIterator[Session]:
        arrived = time.perf_counter()
        with contextlib.ExitStack() as waiting:
            waiting.enter_context(self._waiting.track_inprogress())
            async with turn() as session:
                waiting.close()
                begun = time.perf_counter()
                self._waits.observe(begun - arrived)
                yield session
        self._writes.observe(time.perf_counter() - begun)

    def _histogram(self, name: str, words: str, *labels: str) -> Histogram:
        return Histogram(
            f"headroom_{name}", words, labels, registry=self._registry, buckets=_SECONDS
        )

    def _gauge(self, name: str, words: str, mode: str = "livesum") -> Gauge:
        return Gauge(
            f"headroom_{name}",
            words,
            registry=self._registry,
            multiprocess_mode=mode,  # type: ignore[arg-type] # one of its words
        )

    def _gauges(self) -> tuple[tuple[Gauge, Callable[[], float]], ...]:
        of, each = self._sources, "liveall"
        return (
            (self._gauge("kept_bytes", "Pages kept in memory."), of.kept_bytes),
            (
                self._gauge("content_problems", "Problems in the course.", "livemax"),
                of.content_problems,
            ),
            (self._gauge("resident_bytes", "Memory in use.", each), _resident),
            (self._gauge("cpu_seconds", "Processor time.", each), time.process_time),
            (self._gauge("open_files", "Open files.", each), _open_files),
        )


@router.api_route(ADDRESS, methods=["GET", "HEAD"])
async def show(request: Request) -> Response:
    """What was counted, for whoever has the token; without a setting there is none."""
    metrics: Metrics | None = request.app.state.metrics
    if metrics is None:
        return PlainTextResponse("There is no page at this address.\n", 404)
    if not metrics.admits(request.headers.get("authorization", "")):
        words = "Send the token that HEADROOM_METRICS_TOKEN holds.\n"
        return PlainTextResponse(words, 401, headers={"www-authenticate": "Bearer"})
    return Response(metrics.shown(), media_type=CONTENT_TYPE_LATEST)


def begin_shared(folder: Path) -> None:
    """Let processes that are started from now on share what they count."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink()
    os.environ[SHARED] = str(folder)


def _forget_the_dead(folder: Path) -> None:
    for file in folder.glob("gauge_live*.db"):
        named = _OF_PROCESS.fullmatch(file.name)
        if named and not _lives(int(named[1])):
            multiprocess.mark_process_dead(int(named[1]), str(folder))  # type: ignore[no-untyped-call]


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _resident() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> float:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
