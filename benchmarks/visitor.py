"""A browser of the load: one connection, requests of a known learner."""

import asyncio

from itsdangerous import Signer

SECRET = "of the measurement, which nobody guesses"  # noqa: S105 - of a database that is thrown away
Request = tuple[str, str, bytes]
"""Method, path and body of a form."""


class Visitor:
    """A browser: it keeps its connection, and opens another where that was closed."""

    def __init__(self, port: int, head: str) -> None:
        self._port, self._head = port, head
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: Request) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        kept = self._streams is not None
        try:
            return await self._ask(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            if not kept:
                raise
            self.close()  # the server had closed it, being idle
            return await self._ask(request)

    async def _ask(self, request: Request) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        method, path, body = request
        length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{length}\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        at = head.find(b"content-length:")
        size = int(head[at + 15 : head.index(b"\r\n", at)]) if at >= 0 else 0
        return int(head[9:12]), await reader.readexactly(size)

    def close(self) -> None:
        """Let go of the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def visitor(port: int, key: str, more: str = "") -> Visitor:
    """The browser of the learner with this key, with some more cookies."""
    own = Signer(SECRET, salt="learner").sign(key).decode()
    cookies = "; ".join(filter(None, (f"headroom={own}", more)))
    head = (
        f"Host: 127.0.0.1:{port}\r\nCookie: {cookies}\r\nHX-Request: true\r\n"
        "Sec-Fetch-Site: same-origin\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
    )
    return Visitor(port, head)
