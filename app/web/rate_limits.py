"""Rate limits per client.

The limits are the settings `rate_…` in `app/settings.py`.
"""

import dataclasses
import ipaddress
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachetools import LRUCache
from starlette.exceptions import HTTPException
from starlette.types import Scope

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9]\d{{0,8}})/({'|'.join(_SECONDS)})")


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """The maximum number per second, minute, hour or day, in fixed windows."""

    most: int
    unit: str

    @property
    def seconds(self) -> int:
        return _SECONDS[self.unit]


def read_rates(words: str) -> tuple[RateLimit, ...]:
    """Parse a setting, e.g. "60/minute;1000/day"; returns () for "off".

    Raises ValueError with a message for anything else.
    """
    if words.strip().lower() == "off":
        return ()
    found = [_RATE.fullmatch(part.strip()) for part in words.split(";")]
    if not all(found):
        raise ValueError("write a number for a time, e.g. 60/minute, or off")
    return tuple(RateLimit(int(match[1]), match[2]) for match in found if match)


_CLIENTS = 20_000  # clients counted; a new one replaces the least recently used
_EXPORTS = {"/settings/export", "/settings/cards.apkg", "/settings/cards.colpkg"}
_SEARCHES = {"/search", "/flashcards/deck"}
SLOW = {
    "comparisons": "estimates",
    "estimates": "estimates",
    "exports": "files",
    "imports": "files",
}
"""Slow kinds of requests, and the slots they use."""
_BY_START = (
    ("/calculators/compare", "comparisons"),
    ("/calculators/", "estimates"),
    ("/api/v1/estimates/", "estimates"),
    ("/calendar/", "calendars"),
)


class _RateKey(NamedTuple):
    """What is counted. `who` is an address, or a browser for limits named `…_browser`."""

    limit: str
    rate: RateLimit
    who: str


class RateLimiter:
    """Counts requests by kind and client. `clock` must be monotonic.

    The limit `imports` applies to one address, `imports_browser` to one browser.
    Requests without a cookie have a separate count, so that a client that drops its
    cookies does not block browsers behind the same address.
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kinds = {kind: read_rates(words) for kind, words in kinds.items()}
        self._clock = clock
        self._counts: LRUCache[_RateKey, tuple[int, int]] = LRUCache(_CLIENTS)

    def admit(self, kind: str, client: str, browser: str = "") -> None:
        """Count one request of a client. Raises HTTPException 429 if it exceeds a limit.

        `browser` is also counted separately if the kind has a browser limit. Refused
        requests are not counted, so one browser cannot use up the limit of its address.
        """
        self.check(kind, client, browser)
        self.count(kind, client, browser)

    def check(self, kind: str, client: str, browser: str = "") -> None:
        """Raise HTTPException 429 if one more request would exceed a limit."""
        for key in self._rate_keys(kind, client, browser):
            if self._count(key) >= key.rate.most:
                raise self._too_many(key)

    def count(self, kind: str, client: str, browser: str = "") -> None:
        """Count one request, even if it exceeds the limit."""
        for key in self._rate_keys(kind, client, browser):
            self._counts[key] = (self._window(key.rate), self._count(key) + 1)

    def seconds_to_wait(self, kind: str, client: str, browser: str = "") -> int:
        """Return the seconds until one more would be allowed, 0 for now. Counts nothing."""
        keys = self._rate_keys(kind, client, browser)
        full = [key.rate for key in keys if self._count(key) >= key.rate.most]
        return max(map(self._seconds_left, full), default=0)

    def _rate_keys(self, kind: str, client: str, browser: str) -> list[_RateKey]:
        limits = [(kind, f"{client} without a cookie")]
        if browser:
            limits = [(f"{kind}_browser", browser), (kind, client)]
        return [
            _RateKey(limit, rate, who)
            for limit, who in limits
            for rate in self._kinds.get(limit, ())
        ]

    def _count(self, key: _RateKey) -> int:
        """Return the count in the current window."""
        window, count = self._counts.get(key, (0, 0))
        return count if window == self._window(key.rate) else 0

    def _window(self, rate: RateLimit) -> int:
        return int(self._clock() // rate.seconds)

    def _seconds_left(self, rate: RateLimit) -> int:
        """Return the seconds until the current window ends, at least 1."""
        end = (self._window(rate) + 1) * rate.seconds
        return max(1, round(end - self._clock()))

    def _too_many(self, key: _RateKey) -> HTTPException:
        left = self._seconds_left(key.rate)
        source = "browser" if key.limit.endswith("_browser") else "address"
        words = (
            f"This was asked more than {key.rate.most:,} times in one {key.rate.unit}"
            f" from your {source}. Wait {left} seconds, then try again."
        )
        return HTTPException(429, words, {"retry-after": str(left)})


def rate_limit_kind(method: str, path: str, query: bytes) -> str:
    """Return the rate limit kind of a request; empty if it is not limited."""
    if path in _SEARCHES or path.startswith("/search/"):
        return "searches" if query else ""
    if path == "/settings/cards":
        return "imports" if method == "POST" else ""
    if path in _EXPORTS:
        return "exports"
    return next((kind for start, kind in _BY_START if path.startswith(start)), "")


def client_network(host: str) -> str:
    """Return the client that an address belongs to: an IPv4 address or an IPv6 /64."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, 64), strict=False))
    except ValueError:
        return host


def client_key(scope: Scope) -> str:
    """Return the client of a request, by its address."""
    return client_network(scope["client"][0]) if scope.get("client") else ""
