"""Which requests are looked at: not too long, sent to this server, by our own pages."""

import dataclasses

from starlette.exceptions import HTTPException

from app.errors import ForbiddenError
from app.web.front.csrf import comes_from_here
from app.web.front.http_exchange import HttpExchange

_ALIVE = {"/healthz", "/readyz", "/metrics"}  # asked by machines, under any name


@dataclasses.dataclass(frozen=True, slots=True)
class RequestLimits:
    """How long the parts of a request may be, in bytes; `body` is for a form."""

    head: int = 64 * 1024
    cookies: int = 8 * 1024
    query: int = 16 * 1024
    body: int = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGuard:
    """What every request is held against.

    `hosts` are the names under which the server answers, none for any; `origin` is the
    scheme and host of its public address, empty where that is not known.
    """

    bounds: RequestLimits
    hosts: frozenset[str] = frozenset()
    origin: str = ""

    def refusal(self, exchange: HttpExchange) -> Exception | None:
        """Why a request is not looked at; None where it is."""
        if len(exchange.hosts) > 1:  # proxies and programs take different ones
            return HTTPException(400, "The request has more than one Host header.")
        host = _name_of(exchange.headers.get(b"host", b"").decode("latin-1").lower())
        if self.hosts and exchange.path not in _ALIVE and host not in self.hosts:
            words = f"This server does not answer under the name “{host[:80]}”."
            return HTTPException(421, words)
        if not comes_from_here(exchange.method, exchange.headers, self.origin):
            return ForbiddenError(
                "This was sent by another site, so nothing was changed.",
                "Open the page here and send it again.",
            )
        return self._too_long(exchange)

    def _too_long(self, exchange: HttpExchange) -> HTTPException | None:
        cookies, most = len(exchange.headers.get(b"cookie", b"")), self.bounds.cookies
        if cookies > most:
            words = f"The cookies have {cookies:,} bytes, and at most {most:,} are read"
            return HTTPException(431, f"{words}. Clear the cookies of this site.")
        query, most = len(exchange.target[1]), self.bounds.query
        if query > most:
            words = f"The address has {query:,} bytes after its “?”"
            return HTTPException(414, f"{words}, and at most {most:,} are read.")
        return None


def _name_of(host: str) -> str:
    """A Host header without its port."""
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host
