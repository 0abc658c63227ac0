"""What a named proxy says of the requests it passes on; nobody else is believed."""

import ipaddress
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.web.front.proxy_settings import Network, prefix_in


class TrustedProxyMiddleware:
    """Outermost layer: client, scheme and path prefix of a request as they are.

    `trusted` are the proxies whose X-Forwarded-For and -Proto count. `root` is the path
    prefix of the server; where it is None, X-Forwarded-Prefix of those proxies counts.
    Inside, `root_path` is the prefix and `path` begins with it, whether the proxy had
    taken it off or not.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[Network], root: str | None) -> None:
        self._app = app
        inner: Any = app  # uvicorn and Starlette spell the same protocol differently
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
        await layer(_below(scope, root) if root else scope, receive, send)

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
    return prefix_in(named.decode("latin-1"))


def _below(scope: Scope, root: str) -> Scope:
    path: str = scope["path"]
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
    return {**scope, "root_path": root, "path": f"{root}{path or '/'}"}
