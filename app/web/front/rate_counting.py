"""How often one client may ask for what is costly; one of it serves a process.

The limits themselves are the settings `rate_…` in `app/config.py`.
"""

import time
from collections.abc import Callable, Mapping

from cachetools import LRUCache
from starlette.exceptions import HTTPException
from starlette.types import Scope

from app.web.front.proxy_settings import network_of
from app.web.front.rate_setting import Rate, read_rates

_CLIENTS = 20_000  # counted at a time; who comes beyond them takes the oldest place
_EXPORTS = {"/settings/export", "/settings/cards.apkg", "/settings/cards.colpkg"}
QUEUED = {"exports", "imports"}
"""Kinds of work that wait for a place of their own, for a minute if need be."""
_BY_START = (
    ("/calculators/compare", "comparisons"),
    ("/calculators/", "estimates"),
    ("/api/v1/estimates/", "estimates"),
    ("/calendar/", "calendars"),
)


class Rates:
    """Counts the work of each kind by client; `clock` must never go back."""

    def __init__(
        self,
        kinds: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kinds = {kind: read_rates(words) for kind, words in kinds.items()}
        self._clock = clock
        self._counts: LRUCache[tuple[str, Rate, str], tuple[int, int]] = LRUCache(
            _CLIENTS
        )

    def admit(self, kind: str, client: str) -> None:
        """Count one piece of work of a client; raises HTTPException 429."""
        for rate in self._kinds.get(kind, ()):
            window, count = self._count(kind, rate, client)
            if count >= rate.most:
                raise self._too_many(kind, rate, window)
            self._counts[kind, rate, client] = (window, count + 1)

    def has_room(self, kind: str, client: str) -> bool:
        """Whether one more would be admitted; counts nothing."""
        return all(
            self._count(kind, rate, client)[1] < rate.most
            for rate in self._kinds.get(kind, ())
        )

    def _count(self, kind: str, rate: Rate, client: str) -> tuple[int, int]:
        """The number of the present window and what was counted in it."""
        window = int(self._clock() // rate.seconds)
        counted, count = self._counts.get((kind, rate, client), (window, 0))
        return window, count if counted == window else 0

    def _too_many(self, kind: str, rate: Rate, window: int) -> HTTPException:
        left = max(1, round((window + 1) * rate.seconds - self._clock()))
        client = "browser" if kind.startswith("learner_") else "address"
        words = (
            f"This was asked more than {rate.most:,} times in one {rate.unit} from"
            f" your {client}. Wait {left} seconds, then try again."
        )
        return HTTPException(429, words, {"retry-after": str(left)})


def kind_of(method: str, path: str, query: bytes) -> str:
    """The kind of costly work that a request asks for; empty for none."""
    if path == "/search" or path.startswith("/search/"):
        return "searches" if query else ""
    if path == "/settings/cards":
        return "imports" if method == "POST" else ""
    if path in _EXPORTS:
        return "exports"
    return next((kind for start, kind in _BY_START if path.startswith(start)), "")


def client_of(scope: Scope) -> str:
    """The client of a request, as far as its address tells."""
    return network_of(scope["client"][0]) if scope.get("client") else ""
