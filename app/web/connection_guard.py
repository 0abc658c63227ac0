"""uvicorn's HTTP protocol with limits on connections, heads and stalled clients.

uvicorn closes a connection that is idle between two requests. A server on an open port
also needs limits on the time and size of a request's head, on pipelined requests, on
responses that the client does not read, on a body that trickles in after its response,
and on the number of connections.
"""

import asyncio
import dataclasses
import functools
import ipaddress
import socket
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.web.request_limits import client_address_or_network

_SPARE_CONNECTIONS = 150  # files that a process needs in addition to its connections
# after which a client that reads nothing of its response is disconnected
_STALLED_AFTER_SECONDS = 60.0
_REST_OF_BODY = 1.0  # seconds for the rest of a body whose response has been sent
_MAX_PIPELINED_REQUESTS = 2  # requests sent ahead of their responses; browsers send none
_MAX_HEADERS = 100  # headers of a request; browsers send about twenty
_CHUNK_BYTES = 16 * 1024  # bytes that are parsed before checking the limits again
# Without a limit the kernel buffers up to 4 MB for a client that does not read, and a
# slow one shows no progress for minutes.
_SEND_BUFFER = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Connection limits of one server process.

    `max_head_bytes` and `max_head_seconds` limit request line and headers together, from the first byte
    on a connection to the last of the head. `max_connections` counts all open connections;
    `client_address_or_network` says what one client is. Addresses in `proxies` are exempt from
    `max_connections_per_client`.
    """

    max_head_bytes: int = 32 * 1024
    max_head_seconds: float = 10.0
    max_connections: int = 1000
    max_connections_per_client: int = 400
    proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = ()

    def is_proxy(self, host: str) -> bool:
        """Return whether this address is a proxy, which may open any number of connections."""
        return any(ipaddress.ip_address(host) in network for network in self.proxies)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with `ConnectionLimits`; `connections_by_client` has the connections by client."""

    def __init__(
        self,
        *args: Any,
        limits: ConnectionLimits,
        connections_by_client: "dict[str, set[GuardedProtocol]]",
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self._limits = limits
        self._clients = connections_by_client
        self._client = ""
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head_bytes = 0  # bytes of the head so far; −1 while a body arrives

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and refuse it if there are too many."""
        super().connection_made(transport)
        _set_send_buffer_size(transport)
        host = self.client[0] if self.client else "::"
        self._client = client_address_or_network(host)
        mine = self._clients.setdefault(self._client, set())
        mine.add(self)
        self._timer = self.loop.call_later(
            self._limits.max_head_seconds, self._refuse_or_close_on_timeout
        )
        is_crowd = len(mine) > self._limits.max_connections_per_client
        if is_crowd and not self._limits.is_proxy(host):
            if not self._abort_one_waiting_for_its_client(mine):
                message = "Too many connections are open from your address."
                self._refuse(HTTPStatus.TOO_MANY_REQUESTS, message)
        elif (
            len(self.connections) > self._limits.max_connections
            and not self._abort_one_of_busiest_client()
        ):
            message = "Too many connections are open. Try again in a minute."
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, message)

    def connection_lost(self, exc: Exception | None) -> None:
        mine = self._clients[self._client]
        mine.discard(self)
        if not mine:
            del self._clients[self._client]
        self._timer = _cancel_timer_if_set(self._timer)
        self._stalled = _cancel_timer_if_set(self._stalled)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data as long as the head stays within its limits."""
        if self.transport.is_closing():
            return
        if self._head_bytes >= 0:
            self._timer = self._timer or self.loop.call_later(
                self._limits.max_head_seconds, self._refuse_or_close_on_timeout
            )
        for begin in range(0, len(data), _CHUNK_BYTES):
            piece = data[begin : begin + _CHUNK_BYTES]
            if self._head_bytes >= 0:
                self._head_bytes += len(piece)
            super().data_received(piece)
            if self._head_bytes > self._limits.max_head_bytes:
                self._refuse_large_head()
            if self.transport.is_closing():  # the connection is refused: do not parse the rest
                return

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header. Trailers after a body are dropped."""
        if self._head_bytes < 0 or self.transport.is_closing():
            return
        if len(self.headers) < _MAX_HEADERS:
            super().on_header(name, value)
        else:  # each header takes a hundred bytes of memory, however short it is
            self._refuse_large_head()

    def on_headers_complete(self) -> None:
        """Check the size of the whole head, then let uvicorn start the request."""
        if self.transport.is_closing():
            return
        self._head_bytes = -1
        self._timer = _cancel_timer_if_set(self._timer)
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self._limits.max_head_bytes:
            self._refuse_large_head()
        elif any(name == b"transfer-encoding" for name, _ in self.headers):
            # Browsers announce the length of a body. Chunked bodies, chunk extensions
            # and trailers would each need another limit.
            message = "Send the length of the body (Content-Length), not chunks."
            self._refuse(HTTPStatus.LENGTH_REQUIRED, message)
        elif len(self.pipeline) >= _MAX_PIPELINED_REQUESTS:
            self.transport.abort()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a piece of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the head of the next request."""
        if self.transport.is_closing():
            return
        self._head_bytes = 0
        super().on_message_complete()
        # uvicorn stopped its keep-alive timer when the body arrived
        if self.cycle.response_complete:
            self._timer = _cancel_timer_if_set(self._timer)
            self._timer = self.loop.call_later(
                self._limits.max_head_seconds, self._refuse_or_close_on_timeout
            )

    def on_response_complete(self) -> None:
        """Limit the time for the rest of a body that is not needed any more."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_when_client_stops_reading()
        elif self._head_bytes < 0 and self.cycle.response_complete:
            self._timer = _cancel_timer_if_set(self._timer)
            self._timer = self.loop.call_later(_REST_OF_BODY, self._close)

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        """Start a timer: the client reads its response more slowly than it is sent."""
        self._stalled = self._stalled or self.loop.call_later(
            _STALLED_AFTER_SECONDS, self.transport.abort
        )
        super().pause_writing()

    def resume_writing(self) -> None:
        """Stop the timer: the client has read what was buffered."""
        self._stalled = _cancel_timer_if_set(self._stalled)
        super().resume_writing()

    def shutdown(self) -> None:
        """On server shutdown, drop a request that has not fully arrived."""
        if self._head_bytes >= 0:
            super().shutdown()
        else:
            self.transport.abort()

    @property
    def is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    @property
    def is_waiting_for_client(self) -> bool:
        """Whether the server waits for the client to send something."""
        return self.is_idle or self._head_bytes < 0

    def _abort_one_of_busiest_client(self) -> bool:
        """Close a connection of the client that has the most, if this one has fewer."""
        most = max(self._clients.values(), key=len)
        if len(most) <= len(self._clients[self._client]):
            return False
        if not self._abort_one_waiting_for_its_client(most):
            next(iter(most)).transport.abort()
        return True

    def _abort_one_waiting_for_its_client(self, connections: "set[GuardedProtocol]") -> bool:
        for other in connections:
            if other is not self and other.is_waiting_for_client:
                other.transport.abort()
                return True
        return False

    def _refuse_or_close_on_timeout(self) -> None:
        self._timer = None
        if not self.is_idle:  # pipelined data belongs to the next request
            self._timer = self.loop.call_later(
                self._limits.max_head_seconds, self._refuse_or_close_on_timeout
            )
            return
        if not self._head_bytes:  # nothing was sent: a browser that connected in advance
            self._close()
            return
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"No request came within {self._limits.max_head_seconds:g} seconds.",
        )

    def _refuse_large_head(self) -> None:
        most = self._limits.max_head_bytes
        message = f"A request may have {_MAX_HEADERS} headers and a head of {most:,} bytes."
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, message)

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        if self.transport.is_closing():
            return
        body = f"{reason}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "content-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self._close()

    def _close(self) -> None:
        self.transport.close()
        self._abort_when_client_stops_reading()

    def _abort_when_client_stops_reading(self) -> None:
        """Abort a closing connection if its client stops reading the buffered response."""
        self._stalled = _cancel_timer_if_set(self._stalled)
        size = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(
            _STALLED_AFTER_SECONDS, self._abort_if_client_read_nothing, size
        )

    def _abort_if_client_read_nothing(self, unsent_bytes_before: int) -> None:
        if self.transport.get_write_buffer_size() >= unsent_bytes_before:
            self.transport.abort()
        else:
            self._abort_when_client_stops_reading()


def create_guarded_protocol_factory(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol class for uvicorn. It counts the connections of one process."""
    made = functools.partial(GuardedProtocol, limits=limits, connections_by_client={})
    # uvicorn only calls it, so a partial works like a class
    return cast("type[asyncio.Protocol]", made)


def _set_send_buffer_size(transport: asyncio.Transport) -> None:
    link = transport.get_extra_info("socket")
    if link is not None:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)


def raise_file_limit_and_cap_connections(max_connections: int) -> int:
    """Return `max_connections`, reduced to what the limit of open files allows.

    Raises the soft limit of the process to the hard limit first.
    """
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return max_connections
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return max_connections
    return max(1, min(max_connections, hard - _SPARE_CONNECTIONS))


def _cancel_timer_if_set(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Cancel the timer and return None, for assignment."""
    if timer is not None:
        timer.cancel()
    return None
