"""Rate limits per client.

The limits themselves are the settings `rate_…` in `app/settings.py`.
"""

import dataclasses
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from cachetools import LRUCache
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.web.proxies import network_of

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE = re.compile(rf"([1-9]\d{{0,8}})/({'|'.join(_SECONDS)})")


@dataclasses.dataclass(frozen=True, slots=True)
class RateLimit:
    """So many in a second, minute, hour or day; windows are fixed."""

    most: int
    unit: str

    @property
    def seconds(self) -> int:
        """The length of the window."""
        return _SECONDS[self.unit]


def read_rates(words: str) -> tuple[RateLimit, ...]:
    """The rates of a setting, e.g. "60/minute;1000/day"; none for "off".

    Raises ValueError with a sentence for anything else.
    """
    if words.strip().lower() == "off":
        return ()
    found = [_RATE.fullmatch(part.strip()) for part in words.split(";")]
    if not all(found):
        raise ValueError("write a number for a time, e.g. 60/minute, or off")
    return tuple(RateLimit(int(match[1]), match[2]) for match in found if match)


_CLIENTS = 20_000  # counted at a time; who comes beyond them takes the oldest place
_EXPORTS = {"/settings/export", "/settings/cards.apkg", "/settings/cards.colpkg"}
_SEARCHES = {"/search", "/flashcards/deck"}
SLOW = {
    "comparisons": "estimates",
    "estimates": "estimates",
    "exports": "files",
    "imports": "files",
}
"""Kinds of work that take long, or wait for others; which slots they have."""
_BY_START = (
    ("/calculators/compare", "comparisons"),
    ("/calculators/", "estimates"),
    ("/api/v1/estimates/", "estimates"),
    ("/calendar/", "calendars"),
)


class _Key(NamedTuple):
    """What is counted: `who` is an address, or a browser for `…_browser`."""

    limit: str
    rate: RateLimit
    who: str


class RateLimiter:
    """Counts the work of each kind by client; `clock` must never go back.

    A kind `imports` has its limit for one address; `imports_browser` is that for one
    browser. Requests without a cookie are counted apart from those of browsers, so that
    whoever throws it away stops no browser behind the same address.
    """

    def __init__(
        self,
        kinds: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kinds = {kind: read_rates(words) for kind, words in kinds.items()}
        self._clock = clock
        self._counts: LRUCache[_Key, tuple[int, int]] = LRUCache(_CLIENTS)

    def admit(self, kind: str, client: str, browser: str = "") -> None:
        """Count one piece of work of a client; raises HTTPException 429.

        `browser` is counted by itself as well, where the kind has a limit for one. What
        is refused counts for nobody: one browser does not use up what its address has.
        """
        self.check(kind, client, browser)
        self.count(kind, client, browser)

    def check(self, kind: str, client: str, browser: str = "") -> None:
        """Raise HTTPException 429 where one more would not be admitted."""
        for key in self._keys(kind, client, browser):
            if self._count(key) >= key.rate.most:
                raise self._too_many(key)

    def count(self, kind: str, client: str, browser: str = "") -> None:
        """Count one piece of work that was done, whether it was admitted or not."""
        for key in self._keys(kind, client, browser):
            self._counts[key] = (self._window(key.rate), self._count(key) + 1)

    def seconds_to_wait(self, kind: str, client: str, browser: str = "") -> int:
        """How long until one more would be admitted, 0 for now; counts nothing."""
        keys = self._keys(kind, client, browser)
        full = [key.rate for key in keys if self._count(key) >= key.rate.most]
        return max(map(self._seconds_left, full), default=0)

    def _keys(self, kind: str, client: str, browser: str) -> list[_Key]:
        limits = [(kind, f"{client} without a cookie")]
        if browser:
            limits = [(f"{kind}_browser", browser), (kind, client)]
        return [
            _Key(limit, rate, who) for limit, who in limits for rate in self._kinds.get(limit, ())
        ]

    def _count(self, key: _Key) -> int:
        """What was counted in the present window."""
        window, count = self._counts.get(key, (0, 0))
        return count if window == self._window(key.rate) else 0

    def _window(self, rate: RateLimit) -> int:
        return int(self._clock() // rate.seconds)

    def _seconds_left(self, rate: RateLimit) -> int:
        """Until the present window ends, 1 or more."""
        end = (self._window(rate) + 1) * rate.seconds
        return max(1, round(end - self._clock()))

    def _too_many(self, key: _Key) -> HTTPException:
        left = self._seconds_left(key.rate)
        source = "browser" if key.limit.endswith("_browser") else "address"
        words = (
            f"This was asked more than {key.rate.most:,} times in one {key.rate.unit}"
            f" from your {source}. Wait {left} seconds, then try again."
        )
        return HTTPException(429, words, {"retry-after": str(left)})


def rate_limit_kind(method: str, path: str, query: bytes) -> str:
    """The kind of costly work that a request asks for; empty for none."""
    if path in _SEARCHES or path.startswith("/search/"):
        return "searches" if query else ""
    if path == "/settings/cards":
        return "imports" if method == "POST" else ""
    if path in _EXPORTS:
        return "exports"
    return next((kind for start, kind in _BY_START if path.startswith(start)), "")


def client_key(scope: Scope) -> str:
    """The client of a request, as far as its address tells."""
    return network_of(scope["client"][0]) if scope.get("client") else ""
