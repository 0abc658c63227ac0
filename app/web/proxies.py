"""Trusted proxies, path prefix and cookie names.

Browsers send a cookie to every port of a host, so two servers on one host would
overwrite each other's cookies. Hosts in one domain can set cookies for each other, so
over HTTPS the names begin with `__Host-`, which browsers accept only from the host
itself. The app uses fixed names; the middleware renames them on the way in and out.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.web.headers import Headers
from app.web.visitor import AUTHOR, CHOICES, COOKIE, set_cookie_line

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def parse_networks(words: str) -> tuple[Network, ...]:
    """Parse a comma-separated list of addresses and networks. Raises ValueError."""
    names = [name.strip() for name in words.split(",") if name.strip()]
    return tuple(ipaddress.ip_network(name, strict=False) for name in names)


def parse_prefix(words: str) -> str:
    """Return a path prefix without trailing slash; empty if there is none or it is invalid."""
    words = words.strip().rstrip("/")
    return words if _PREFIX.fullmatch(words) else ""


def client_network(host: str) -> str:
    """Return the client that an address belongs to: an IPv4 address or an IPv6 /64."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, 64), strict=False))
    except ValueError:
        return host


class TrustedProxyMiddleware:
    """Sets client, scheme and path prefix of a request from the headers of trusted proxies.

    X-Forwarded-For and -Proto count only from `trusted` proxies. `root` is the path
    prefix of the server; if it is None, their X-Forwarded-Prefix is used. For the app,
    `root_path` is the prefix and `path` begins with it, whether or not the proxy
    removed it.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[Network], root: str | None) -> None:
        self._app = app
        inner: Any = app  # uvicorn and Starlette type the same protocol differently
        self._believing: Any = ProxyHeadersMiddleware(inner, [str(n) for n in trusted])
        self._trusted = trusted
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = self._is_known(scope)
        root = self._root
        if root is None:
            root = _named_prefix(scope) if known else ""
        layer: ASGIApp = self._believing if known else self._app
        await layer(_scope_below(scope, root) if root else scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        if not self._trusted or not scope.get("client"):
            return False
        try:
            peer = ipaddress.ip_address(scope["client"][0])
        except ValueError:
            return False
        return any(peer in network for network in self._trusted)


def _named_prefix(scope: Scope) -> str:
    named = dict(scope["headers"]).get(b"x-forwarded-prefix", b"")
    return parse_prefix(named.decode("latin-1"))


def _scope_below(scope: Scope, root: str) -> Scope:
    path: str = scope["path"]
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
    return {**scope, "root_path": root, "path": f"{root}{path or '/'}"}


_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_TAKEN = {AUTHOR, *CHOICES}
_HOST = b"__Host-"


def is_sound_name(name: str) -> bool:
    """Return whether a setting may be used as the cookie name."""
    return bool(_NAME.fullmatch(name)) and name not in _TAKEN


class CookieRenamer:
    """Renames the two cookies that carry a key to the configured name.

    A `__Host-` cookie needs HTTPS and the path “/”, so a server with a path prefix does
    without. If the expected form is missing, a cookie of the other form is accepted: it
    was set before the server moved, and the next write replaces it. Of several cookies
    with one name the first counts. The app gets a single Cookie header.
    """

    def __init__(self, app: ASGIApp, name: str, *, https: bool) -> None:
        self._app = app
        self._https = https
        self._outer = {
            COOKIE.encode(): name.encode(),
            AUTHOR.encode(): (name + AUTHOR.removeprefix(COOKIE)).encode(),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secure = self._https or scope.get("scheme") == "https"
        of_host = secure and not scope.get("root_path")
        incoming, obsolete = self._rename_incoming(scope["headers"], of_host=of_host)
        prefix = _HOST if of_host else b""

        async def send_renamed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: Headers = []
                for name, value in message["headers"]:
                    headers += self._rename_outgoing(name, value, prefix, obsolete)
                message = {**message, "headers": headers}
            await send(message)

        await self._app({**scope, "headers": incoming}, receive, send_renamed)

    def _rename_incoming(self, headers: Headers, *, of_host: bool) -> tuple[Headers, set[bytes]]:
        """Return the headers with the app's cookie names, and the names of obsolete cookies."""
        line = b";".join(value for name, value in headers if name == b"cookie")
        if not line:
            return headers, set()
        cookies: dict[bytes, bytes] = {}
        for cookie in line.split(b";"):
            cookies.setdefault(cookie.partition(b"=")[0].strip(), cookie.strip())
        obsolete: set[bytes] = set()
        ours: list[bytes] = []
        for inner, outer in self._outer.items():
            plain, host = cookies.pop(outer, b""), cookies.pop(_HOST + outer, b"")
            cookies.pop(inner, None)  # belongs to another server on this host
            cookie = (host or plain) if of_host else (plain or host)
            if cookie:
                ours.append(inner + b"=" + cookie.partition(b"=")[2])
            if of_host and plain:
                obsolete.add(outer)
        others = [pair for pair in headers if pair[0] != b"cookie"]
        joined = b"; ".join([*ours, *cookies.values()])
        return [*others, (b"cookie", joined)], obsolete

    def _rename_outgoing(
        self, name: bytes, value: bytes, prefix: bytes, obsolete: set[bytes]
    ) -> Headers:
        """Return the header with the public cookie name. Also expires an obsolete cookie."""
        inner, sign, rest = value.partition(b"=")
        if name.lower() != b"set-cookie" or inner not in self._outer:
            return [(name, value)]
        outer = self._outer[inner]
        renamed = [(name, prefix + outer + sign + rest)]
        if outer in obsolete:
            renamed.append((name, set_cookie_line(outer.decode(), "", 0)))
        return renamed
