"""A browser in the process of the test, whose requests cost it little."""

import asyncio
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient


class Visitor(TestClient):
    """A test client that takes an answer as a whole.

    The usual one changes to the thread of the app and back seven times for each answer,
    to take it piece by piece, which costs as much as to make most pages.
    """

    def __init__(self, app: FastAPI, base_url: str, headers: dict[str, str]) -> None:
        super().__init__(app, base_url=base_url, headers=headers, follow_redirects=False)
        self._transport = _AtOnce(self)


class _AtOnce(httpx2.BaseTransport):
    def __init__(self, client: Visitor) -> None:
        self._client = client

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        with self._client._portal_factory() as portal:
            return portal.call(self._answer, request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        start: dict[str, Any] = {}
        sent, pieces = [request.content], []
        over = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if sent:
                return {"type": "http.request", "body": sent.pop()}
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            assert not over.is_set()
            if message["type"] == "http.response.start":
                start.update(message)
                return
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                over.set()

        await self._client.app(_scope_of(request), receive, send)
        assert over.is_set(), "the app ended without a whole answer"
        body = b"" if request.method == "HEAD" else b"".join(pieces)
        return httpx2.Response(
            start["status"], headers=start.get("headers", []), stream=httpx2.ByteStream(body)
        )


def _scope_of(request: httpx2.Request) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("testclient", 50000),
        "server": (url.host, url.port or {"http": 80, "https": 443}[url.scheme]),
    }
