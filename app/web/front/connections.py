"""Connections that bring nothing are closed: what uvicorn leaves open for ever.

uvicorn closes connections that are idle between two requests. This adds what a server
on an open port needs besides: a limit for the time and the size of a request's head,
for answers that nobody takes, and for the number of connections.
"""

import asyncio
import collections
import dataclasses
import functools
import ipaddress
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from app.web.front.proxy_settings import Network

_SPARE = 150  # files that a process needs besides its connections
_STALLED = 60.0  # seconds in which a client takes nothing of its answer


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What one server process bears.

    `head_bytes` and `head_seconds` bound request line and headers together, from the
    first byte on a connection to the last of the head. `connections` counts all open
    ones, `of_one_client` those of one address; `proxies` are addresses that may open
    as many as they need.
    """

    head_bytes: int = 32 * 1024
    head_seconds: float = 10.0
    connections: int = 1000
    of_one_client: int = 100
    proxies: Sequence[Network] = ()

    def is_crowd(self, host: str, count: int) -> bool:
        """Whether so many connections from one address are too many."""
        return count > self.of_one_client and not any(
            ipaddress.ip_address(host) in network for network in self.proxies
        )


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with `Limits`; `census` counts the connections by client."""

    def __init__(
        self,
        *args: Any,
        limits: Limits,
        census: "collections.Counter[str]",
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._limits = limits
        self._census = census
        self._host = ""
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head = 0  # bytes of the head so far; −1 while a body arrives

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and refuse it where there are too many."""
        super().connection_made(transport)
        self._host = self.client[0] if self.client else "::"
        self._census[self._host] += 1
        self._timer = self._soon(self._limits.head_seconds, self._too_slow)
        if self._limits.is_crowd(self._host, self._census[self._host]):
            words = "Too many connections are open from your address."
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, words)
        elif len(self.connections) > self._limits.connections:
            words = "Too many connections are open. Try again in a minute."
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, words)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its timers."""
        self._census[self._host] -= 1
        if self._census[self._host] <= 0:
            del self._census[self._host]
        self._timer = _stopped(self._timer)
        self._stalled = _stopped(self._stalled)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on what came, as long as a head stays within its limits."""
        if self.transport.is_closing():
            return
        if self._head >= 0:
            self._head += len(data)
            self._timer = self._timer or self._soon(
                self._limits.head_seconds, self._too_slow
            )
        super().data_received(data)
        if self._head > self._limits.head_bytes:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"The head of a request may have {self._limits.head_bytes:,} bytes.",
            )

    def on_headers_complete(self) -> None:
        """The head is there: its clock stops."""
        self._head = -1
        self._timer = _stopped(self._timer)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there: what comes next is the head of another."""
        self._head = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it is made."""
        self._stalled = self._stalled or self._soon(_STALLED, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has taken what was waiting."""
        self._stalled = _stopped(self._stalled)
        super().resume_writing()

    def shutdown(self) -> None:
        """Do not wait for a request that has not arrived when the server stops."""
        if self._head >= 0:
            super().shutdown()
        else:
            self.transport.abort()

    def _soon(self, seconds: float, action: Any) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, action)

    def _too_slow(self) -> None:
        self._timer = None
        cycle: RequestResponseCycle | None = self.cycle
        if (
            cycle and not cycle.response_complete
        ):  # what came early belongs to the request after this one
            self._timer = self._soon(self._limits.head_seconds, self._too_slow)
            return
        if not self._head:  # nothing came: a browser that connected in advance
            self.transport.close()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"No request came within {self._limits.head_seconds:g} seconds.",
        )

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = f"{sentence}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "content-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def guarded(limits: Limits) -> type[asyncio.Protocol]:
    """What uvicorn makes for each connection; all of a process are counted together."""
    made = functools.partial(
        GuardedProtocol, limits=limits, census=collections.Counter()
    )
    return cast("type[asyncio.Protocol]", made)  # uvicorn calls it, as it would a class


def room_for(connections: int) -> int:
    """As many connections of those wanted as the system lets a process open.

    The soft limit of open files is raised to the hard one first.
    """
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return connections
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, hard - _SPARE))


def _stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """No timer, the given one having been stopped."""
    if timer is not None:
        timer.cancel()
    return None
