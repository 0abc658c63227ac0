"""The names of the cookies of a server that shares its host with another one.

Browsers send a cookie to every port of a host, so two servers under one name would
take each other's learners for strangers and overwrite their keys. Rooms know one name
each; here, in one place, it becomes the server's own on the way out and back.
"""

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.cookies import AUTHOR, CHOICES, COOKIE

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_TAKEN = {AUTHOR, *CHOICES}


def sound(name: str) -> bool:
    """Whether a name may stand in the place of ours."""
    return bool(_NAME.fullmatch(name)) and name not in _TAKEN


class CookieNames:
    """Gives the two cookies that carry a key the names that the server was given."""

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        given = (name, name + AUTHOR.removeprefix(COOKIE))
        self._inside = {
            outer.encode(): inner.encode()
            for outer, inner in zip(given, (COOKIE, AUTHOR), strict=True)
        }
        self._outside = {inner: outer for outer, inner in self._inside.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_renamed(message: Message) -> None:
            if message["type"] == "http.response.start":
                words = [self._leaving(*pair) for pair in message["headers"]]
                message = {**message, "headers": words}
            await send(message)

        words = [self._coming(*pair) for pair in scope["headers"]]
        await self._app({**scope, "headers": words}, receive, send_renamed)

    def _coming(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Ours under the names that the rooms know; another server's are left out."""
        if name.lower() != b"cookie":
            return name, value
        kept = []
        for cookie in value.split(b";"):
            key, sign, rest = cookie.strip().partition(b"=")
            if key in self._outside and key not in self._inside:
                continue
            kept.append(self._inside.get(key, key) + sign + rest)
        return name, b"; ".join(kept)

    def _leaving(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        if name.lower() != b"set-cookie":
            return name, value
        key, sign, rest = value.partition(b"=")
        return name, self._outside.get(key, key) + sign + rest
