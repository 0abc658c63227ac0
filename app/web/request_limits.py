"""Limits on requests: rate, size, time, host and origin; buffering of bodies.

The whole body is buffered first: a client that sends slowly or stops must not hold a
transaction, a place in the write queue or a database connection in the meantime.

NUL characters are refused. PostgreSQL cannot store them, file names end at them, and no
browser sends them.
"""

import asyncio
import collections
import contextlib
import dataclasses
import io
import ipaddress
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import IO, NamedTuple

from cachetools import LRUCache
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from app.errors import ForbiddenError

_SECONDS_BY_UNIT = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE_SETTING = re.compile(rf"([1-9]\d{{0,8}})/({'|'.join(_SECONDS_BY_UNIT)})")


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """The maximum number per second, minute, hour or day, in fixed windows."""

    max_requests: int
    time_unit: str

    @property
    def window_seconds(self) -> int:
        return _SECONDS_BY_UNIT[self.time_unit]


def parse_rate_limits(setting: str) -> tuple[RateLimit, ...]:
    """Parse a setting, e.g. "60/minute;1000/day"; returns () for "off".

    Raises ValueError with a message for anything else.
    """
    if setting.strip().lower() == "off":
        return ()
    matches = [_RATE_SETTING.fullmatch(part.strip()) for part in setting.split(";")]
    if not all(matches):
        raise ValueError("write a number for a time, e.g. 60/minute, or off")
    return tuple(RateLimit(int(match[1]), match[2]) for match in matches if match)


_MAX_COUNTED_CLIENTS = 20_000  # clients counted; a new one replaces the least recently used
_EXPORT_PATHS = {"/settings/export", "/settings/cards.apkg", "/settings/cards.colpkg"}
_SEARCH_PATHS = {"/search", "/flashcards/deck"}
SLOTS_OF_SLOW_REQUESTS = {
    "comparisons": "estimates",
    "estimates": "estimates",
    "exports": "files",
    "imports": "files",
}
"""Slow kinds of requests, and the slots they use."""
_KIND_BY_PATH_START = (
    ("/calculators/compare", "comparisons"),
    ("/calculators/", "estimates"),
    ("/api/v1/estimates/", "estimates"),
    ("/calendar/", "calendars"),
)


class _RateKey(NamedTuple):
    """What is counted. `client_or_browser` is an address, or a browser for limits named `…_browser`."""

    limit_name: str
    rate: RateLimit
    client_or_browser: str


class _WindowCount(NamedTuple):
    window_index: int
    requests: int


class RateLimiter:
    """Counts requests by kind and client. `clock` must be monotonic.

    The limit `imports` applies to one address, `imports_browser` to one browser.
    Requests without a cookie have a separate count, so that a client that drops its
    cookies does not block browsers behind the same address.
    """

    def __init__(
        self, settings_by_limit_name: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kinds = {
            kind: parse_rate_limits(words) for kind, words in settings_by_limit_name.items()
        }
        self._clock = clock
        self._counts: LRUCache[_RateKey, _WindowCount] = LRUCache(_MAX_COUNTED_CLIENTS)

    def raise_if_over_limit_else_count(self, kind: str, client: str, browser: str = "") -> None:
        """Count one request of a client. Raises HTTPException 429 if it exceeds a limit.

        `browser` is also counted separately if the kind has a browser limit. Refused
        requests are not counted, so one browser cannot use up the limit of its address.
        """
        self.raise_if_over_limit(kind, client, browser)
        self.count_request(kind, client, browser)

    def raise_if_over_limit(self, kind: str, client: str, browser: str = "") -> None:
        """Raise HTTPException 429 if one more request would exceed a limit."""
        for key in self._rate_keys(kind, client, browser):
            if self._count_in_current_window(key) >= key.rate.max_requests:
                raise self._too_many_requests_error(key)

    def count_request(self, kind: str, client: str, browser: str = "") -> None:
        """Count one request, even if it exceeds the limit."""
        for key in self._rate_keys(kind, client, browser):
            self._counts[key] = _WindowCount(
                self._window_index(key.rate), self._count_in_current_window(key) + 1
            )

    def seconds_until_allowed(self, kind: str, client: str, browser: str = "") -> int:
        """Return the seconds until one more would be allowed, 0 for now. Counts nothing."""
        keys = self._rate_keys(kind, client, browser)
        full = [
            key.rate for key in keys if self._count_in_current_window(key) >= key.rate.max_requests
        ]
        return max(map(self._seconds_until_window_ends, full), default=0)

    def _rate_keys(self, kind: str, client: str, browser: str) -> list[_RateKey]:
        limits = [(kind, f"{client} without a cookie")]
        if browser:
            limits = [(f"{kind}_browser", browser), (kind, client)]
        return [
            _RateKey(limit, rate, client_or_browser)
            for limit, client_or_browser in limits
            for rate in self._kinds.get(limit, ())
        ]

    def _count_in_current_window(self, key: _RateKey) -> int:
        counted = self._counts.get(key)
        is_current = counted and counted.window_index == self._window_index(key.rate)
        return counted.requests if counted and is_current else 0

    def _window_index(self, rate: RateLimit) -> int:
        return int(self._clock() // rate.window_seconds)

    def _seconds_until_window_ends(self, rate: RateLimit) -> int:
        """Return the seconds until the current window ends, at least 1."""
        end = (self._window_index(rate) + 1) * rate.window_seconds
        return max(1, round(end - self._clock()))

    def _too_many_requests_error(self, key: _RateKey) -> HTTPException:
        left = self._seconds_until_window_ends(key.rate)
        source = "browser" if key.limit_name.endswith("_browser") else "address"
        words = (
            f"This was asked more than {key.rate.max_requests:,} times in one {key.rate.time_unit}"
            f" from your {source}. Wait {left} seconds, then try again."
        )
        return HTTPException(429, words, {"retry-after": str(left)})


def rate_limit_kind_of_request_or_empty(method: str, path: str, query: bytes) -> str:
    """Return the rate limit kind of a request; empty for most, which have no limit of their own."""
    if path in _SEARCH_PATHS or path.startswith("/search/"):
        return "searches" if query else ""
    if path == "/settings/cards":
        return "imports" if method == "POST" else ""
    if path in _EXPORT_PATHS:
        return "exports"
    return next((kind for start, kind in _KIND_BY_PATH_START if path.startswith(start)), "")


def client_address_or_network(host: str) -> str:
    """Return the client that an address belongs to: an IPv4 address or an IPv6 /64."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, 64), strict=False))
    except ValueError:
        return host


def client_address_or_network_of_scope(scope: Scope) -> str:
    return client_address_or_network(scope["client"][0]) if scope.get("client") else ""


FORM_CONTENT_TYPE = b"application/x-www-form-urlencoded"
FORM_BYTES = 256 * 1024
"""Maximum size of a form in bytes. Larger bodies are files and need a slot."""
_COOKIE_BYTES = 8 * 1024
_QUERY_BYTES = 16 * 1024
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGuard:
    """Checks every request before the app sees it.

    `accepted_host_names` are None for any. `public_origin` is scheme and host of the public URL,
    empty if unknown.
    """

    accepted_host_names: frozenset[str] | None = None
    public_origin: str = ""

    def raise_for_bad_host_origin_or_text(self, scope: Scope) -> None:
        """Raise HTTPException or ForbiddenError for a request that must not be answered."""
        headers = dict(scope["headers"])
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) > 1:  # a proxy and the app might each pick a different one
            raise HTTPException(400, "The request has more than one Host header.")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name, _, port = host.rpartition(":")
        host = name if name and port.isdigit() else host
        if self.accepted_host_names is not None and host not in self.accepted_host_names:
            message = f"This server does not answer under the name “{host[:80]}”."
            raise HTTPException(421, message)
        if not self._passes_csrf_check(scope["method"], headers):
            raise ForbiddenError(
                "This was sent by another site, so nothing was changed.",
                "Open the page here and send it again.",
            )
        cookies = sum(len(value) for name, value in scope["headers"] if name == b"cookie")
        if cookies > _COOKIE_BYTES:
            message = f"The cookies have {cookies:,} bytes, and at most {_COOKIE_BYTES:,} are read"
            raise HTTPException(431, f"{message}. Clear the cookies of this site.")
        query = scope["query_string"]
        if len(query) > _QUERY_BYTES:
            message = f"The address has {len(query):,} bytes after its “?”"
            raise HTTPException(414, f"{message}, and at most {_QUERY_BYTES:,} are read.")
        if "\0" in scope["path"]:
            raise HTTPException(404)
        _refuse_nul_character(query)

    def _passes_csrf_check(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a request may write (CSRF check), by Sec-Fetch-Site or else Origin.

        Browsers send one of the two headers with every write, and pages cannot change
        them. A request with neither comes from a program, which has no cookie to abuse.
        """
        if method in _SAFE_METHODS:
            return True
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site in (b"same-origin", b"none")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if b"origin" not in headers or (self.public_origin and origin == self.public_origin):
            return True
        return origin.partition("://")[2].encode("latin-1") == headers.get(b"host")


def _refuse_nul_character(text: bytes) -> None:
    if b"\0" in text or b"%00" in text:
        raise HTTPException(
            422,
            "A text that was sent holds the character NUL, which no text may hold. "
            "Remove it, then send the text again.",
        )


_HALF_LIFE = 5.0  # seconds
_LEAST_USE_SECONDS = 0.01  # use that counts as none
_SLOW_TRANSFER_SECONDS = 5.0  # seconds until a slow transfer is displaced


class _Waiter(NamedTuple):
    client: str
    admitted: asyncio.Future[None]


class FairSlots:
    """Semaphore with a maximum of slots, and one for each client.

    A free slot goes to the client with the fewest slots. Among equals, it goes to the one with
    the least recent use. So a client with a hundred connections waits for itself, and for
    clients that request less.
    """

    def __init__(self, max_slots: int, max_slots_per_client: int) -> None:
        self._total = max_slots
        self._of_one_client = max_slots_per_client
        self._held: collections.Counter[str] = collections.Counter()
        # Seconds for which each client has used slots; halved every few seconds.
        self._used: dict[str, float] = {}
        self._halved_at = 0.0
        self._waiting: list[_Waiter] = []

    def is_below_client_limit(self, client: str) -> bool:
        return self._held[client] < self._of_one_client

    @contextlib.asynccontextmanager
    async def hold_slot(
        self, client: str, *, max_wait_seconds: float | None = None
    ) -> AsyncIterator[None]:
        """Wait for a slot and hold it during the block.

        Raises TimeoutError if none was free within `max_wait_seconds`.
        """
        loop = asyncio.get_running_loop()
        waiter = _Waiter(client, loop.create_future())
        self._waiting.append(waiter)
        self._admit_waiting_clients()
        try:
            async with asyncio.timeout(max_wait_seconds):
                await waiter.admitted
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:  # admitted just when it gave up
                self._release_slot(client)
            raise
        begun = loop.time()
        try:
            yield
        finally:
            self._record_slot_seconds(client, begun, loop.time())
            self._release_slot(client)

    def _record_slot_seconds(self, client: str, begun: float, now: float) -> None:
        if now - self._halved_at > _HALF_LIFE:
            self._halved_at = now
            self._used = {
                name: seconds / 2
                for name, seconds in self._used.items()
                if seconds > _LEAST_USE_SECONDS
            }
        self._used[client] = self._used.get(client, 0.0) + now - begun

    def _release_slot(self, client: str) -> None:
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        self._admit_waiting_clients()

    def _admit_waiting_clients(self) -> None:
        held = self._held
        while self._waiting and held.total() < self._total:
            free = [waiter for waiter in self._waiting if self.is_below_client_limit(waiter.client)]
            if not free:
                return
            first = min(free, key=lambda w: (held[w.client], self._used.get(w.client, 0.0)))
            self._waiting.remove(first)
            held[first.client] += 1
            if not first.admitted.done():
                first.admitted.set_result(None)


class BodyTransfer:
    """A body in transfer. `is_ended_for_waiting_client` is set if it was ended for another client."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self.begun = asyncio.get_running_loop().time()
        self.bytes = 0
        self.is_ended_for_waiting_client = False

    def set_deadline(self, moment: float) -> None:
        """Set when the transfer ends with TimeoutError, on the event loop's clock."""
        if not self.is_ended_for_waiting_client and not self._timeout.expired():
            self._timeout.reschedule(moment)

    def end_for_waiting_client(self) -> None:
        """End the transfer with TimeoutError now."""
        self.set_deadline(asyncio.get_running_loop().time())
        self.is_ended_for_waiting_client = True


class TransferSlots:
    """Fair slots for file transfers: while clients wait, the slowest transfer is ended.

    A transfer that has lasted some seconds is ended for a client that has waited as
    long, unless that client is at its own limit. So clients that send or read as slowly
    as allowed cannot keep slots from faster ones.
    """

    def __init__(self, max_slots: int, max_slots_per_client: int) -> None:
        self._slots = FairSlots(max_slots, max_slots_per_client)
        self._under_way: set[BodyTransfer] = set()

    @contextlib.asynccontextmanager
    async def hold_slot(self, client: str, *, max_wait_seconds: float) -> AsyncIterator[None]:
        """Wait for a slot and hold it during the block.

        Raises TimeoutError if none was free within `max_wait_seconds`.
        """
        async with contextlib.AsyncExitStack() as stack:
            helper = asyncio.ensure_future(self._keep_ending_slowest_transfer(client))
            try:
                slot = self._slots.hold_slot(client, max_wait_seconds=max_wait_seconds)
                await stack.enter_async_context(slot)
            finally:
                helper.cancel()
            yield

    @contextlib.asynccontextmanager
    async def register_transfer(self, *, has_slot: bool = True) -> AsyncIterator[BodyTransfer]:
        """Register a transfer during the block. It can be displaced if it has a slot.

        Raises TimeoutError if it expired or was displaced.
        """
        async with asyncio.timeout(None) as timeout:
            transfer = BodyTransfer(timeout)
            if has_slot:
                self._under_way.add(transfer)
            try:
                yield transfer
            finally:
                self._under_way.discard(transfer)

    async def _keep_ending_slowest_transfer(self, client: str) -> None:
        while True:
            await asyncio.sleep(_SLOW_TRANSFER_SECONDS)
            if self._slots.is_below_client_limit(client):
                self._end_slowest_transfer()

    def _end_slowest_transfer(self) -> None:
        now = asyncio.get_running_loop().time()
        rates = {
            transfer: transfer.bytes / (now - transfer.begun)
            for transfer in self._under_way
            if now - transfer.begun >= _SLOW_TRANSFER_SECONDS
            and not transfer.is_ended_for_waiting_client
        }
        if rates:
            min(rates, key=rates.__getitem__).end_for_waiting_client()


_IN_MEMORY = 64 * 1024  # bytes; larger bodies are buffered on disk
_CHUNK_BYTES = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class BodyLimits:
    """How long a body may take, and how many large ones are received at once.

    A body gets `base_seconds`, plus one second for each `min_bytes_a_second` received. So a large
    file can arrive over a line of one megabit, and a client that stops sending is soon noticed.
    A large body has over a quarter of a megabyte. Further ones wait as long as the largest may
    take. When all slots are taken, the slowest transfer is ended for a waiting client.
    """

    base_seconds: float = 20.0
    min_bytes_a_second: int = 128 * 1024
    max_large_bodies: int = 16
    max_large_bodies_per_client: int = 2

    def max_seconds_for_size(self, size: int) -> float:
        return self.base_seconds + size / self.min_bytes_a_second


SEND_LESS = "Go back and send less."
# By the rate limit kind of the request.
ADVICE_ON_LARGE_BODIES = {
    "estimates": (
        "Go back and take the longest field out of the config.json, which is usually "
        "quantization_config.quantized_layers; then choose the format of the weights yourself. "
        "The command headroom estimate reads a whole file."
    ),
}


class BodyReceiver:
    """Buffers request bodies; one instance per process."""

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self._slots = TransferSlots(limits.max_large_bodies, limits.max_large_bodies_per_client)

    @contextlib.asynccontextmanager
    async def buffer_whole_body(
        self,
        receive: Receive,
        headers: Mapping[bytes, bytes],
        max_bytes: int,
        client: str,
        advice: str = SEND_LESS,
    ) -> AsyncIterator[Receive]:
        """Yield a `receive` that replays the complete body, for use inside the block.

        `max_bytes` is the maximum size in bytes; `advice` is given on larger ones. Raises HTTPException 408, 413 or 503, and
        ClientDisconnect if the client disconnects while sending.
        """
        length = headers.get(b"content-length", b"0")
        if length == b"0" and b"transfer-encoding" not in headers:
            yield receive
            return
        if not length.isdigit() or len(length) > 15 or int(length) > max_bytes:
            raise _body_too_large_error(max_bytes, advice)
        is_large = int(length) > FORM_BYTES or b"transfer-encoding" in headers
        async with contextlib.AsyncExitStack() as stack:
            if is_large:
                seconds = self._limits.max_seconds_for_size(max_bytes)
                try:
                    await stack.enter_async_context(
                        self._slots.hold_slot(client, max_wait_seconds=seconds)
                    )
                except TimeoutError:
                    message = "Other files are being sent just now. Send yours in a minute."
                    hints = {"retry-after": "60", "connection": "close"}
                    raise HTTPException(503, message, hints) from None
            with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as buffer:
                await self._buffer_body(receive, buffer, max_bytes, advice, is_large=is_large)
                buffer.seek(0)
                yield _create_replaying_receive(buffer, receive)

    async def _buffer_body(
        self, receive: Receive, buffer: IO[bytes], max_bytes: int, advice: str, *, is_large: bool
    ) -> None:
        """Write the body to `buffer`. Raises HTTPException 408 if it takes too long."""
        try:
            async with self._slots.register_transfer(has_slot=is_large) as transfer:
                more = True
                while more:
                    seconds = self._limits.max_seconds_for_size(transfer.bytes)
                    transfer.set_deadline(transfer.begun + seconds)
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    piece = message.get("body", b"")
                    transfer.bytes += len(piece)
                    if transfer.bytes > max_bytes:
                        raise _body_too_large_error(max_bytes, advice)
                    buffer.write(piece)
                    more = message.get("more_body", False)
        except TimeoutError:
            if transfer.is_ended_for_waiting_client:
                words = "Your file came slowly while others waited. Send it in some minutes."
                hints = {"retry-after": "300", "connection": "close"}
                raise HTTPException(503, words, hints) from None
            words = "The rest of the request did not arrive in time. Send it again."
            raise HTTPException(408, words, {"connection": "close"}) from None


async def read_form_body(receive: Receive) -> tuple[bytes, Receive]:
    """Return the body of a form, and a `receive` that replays it.

    Raises HTTPException 422 if the body contains NUL.
    """
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    _refuse_nul_character(body)
    return body, _create_replaying_receive(io.BytesIO(body), receive)


def _create_replaying_receive(buffer: IO[bytes], receive: Receive) -> Receive:
    is_over = False

    async def replay() -> Message:
        nonlocal is_over
        if is_over:
            return await receive()  # reports whether the client is still connected
        piece = buffer.read(_CHUNK_BYTES)
        is_over = len(piece) < _CHUNK_BYTES
        return {"type": "http.request", "body": piece, "more_body": not is_over}

    return replay


def _body_too_large_error(max_bytes: int, advice: str) -> HTTPException:
    most = f"{max_bytes // 10**6} MB" if max_bytes >= 10**6 else f"{max_bytes // 1000} kB"
    message = f"At most {most} can be sent at once. {advice}"
    return HTTPException(413, message, {"connection": "close"})
