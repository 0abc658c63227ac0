"""A test client that gives a request to the app at once.

That of Starlette asks its event loop eight times for one answer, and reads the address
three times: together that is more work than most pages are.
"""

import asyncio
import json as json_text
import re
import urllib.request
from collections.abc import Mapping, MutableMapping
from email.message import Message
from typing import Any
from urllib.parse import unquote, urlencode

from fastapi.testclient import TestClient
from httpx2 import USE_CLIENT_DEFAULT, ByteStream, QueryParams, Request, Response

# An address that is sent as it is written.
_PATH = r"/(?:[\w\-~!$&()*+,;=:@]|%[\dA-Fa-f]{2}|(?<!/)\.|/(?!/))*"
_QUERY = r"(?:[\w\-.~!$&()*+,;=:@/]|%[\dA-Fa-f]{2})*"
_PLAIN_ADDRESS = re.compile(rf"({_PATH})(?:\?({_QUERY}))?", re.ASCII)
_PEER = ("testclient", 50000)
_SENT_WITH_LENGTH = frozenset({"POST", "PUT", "PATCH"})


class _Answer(Response):
    """An answer that makes its request only for who asks for it."""

    asked: tuple[str, str]

    @property
    def request(self) -> Request:
        return Request(*self.asked)


class _Received:
    """What a cookie jar asks of an answer."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers

    def info(self) -> Message:
        message = Message()
        for name, value in self._headers:
            if name.lower() == b"set-cookie":
                message.add_header("set-cookie", value.decode())
        return message


class DirectClient(TestClient):
    """A client of Starlette, for which most requests are the work of the app alone.

    What is out of the ordinary goes the way of Starlette: redirects that are followed,
    files, streams, addresses that must be quoted, and an app that has not been started.
    """

    def request(  # type: ignore[override]
        self,
        method: str,
        url: Any,
        *,
        content: Any = None,
        data: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        follow_redirects: Any = USE_CLIENT_DEFAULT,
        **more: Any,
    ) -> Response:
        follows = (
            self.follow_redirects if follow_redirects is USE_CLIENT_DEFAULT else follow_redirects
        )
        address = None
        if isinstance(url, str) and params is None:
            address = _PLAIN_ADDRESS.fullmatch(url)
        elif isinstance(url, str) and params and isinstance(params, dict) and "?" not in url:
            address = _PLAIN_ADDRESS.fullmatch(f"{url}?{QueryParams(params)}")
        plain = (
            address
            and len(address[0]) < 60_000
            and self.portal
            and not follows
            and not self.params
            and all(v is None or v is USE_CLIENT_DEFAULT for v in more.values())
            and (content is None or isinstance(content, bytes | str))
            and (data is None or isinstance(data, Mapping))
            and (headers is None or isinstance(headers, dict))
        )
        if not plain:
            return super().request(
                method,
                url,
                content=content,
                data=data,
                json=json,
                params=params,
                headers=headers,
                follow_redirects=follow_redirects,
                **more,
            )
        assert address
        body, kind = _encode(content, data, json)
        return self._ask(method.upper(), address[1], address[2], body, kind, headers or {})

    def _ask(
        self,
        method: str,
        path: str,
        query: str | None,
        body: bytes,
        kind: str,
        headers: Mapping[str, str],
    ) -> Response:
        base = self.base_url
        raw_path = base.raw_path.rstrip(b"/") + path.encode()
        host = base.netloc.decode()
        url = f"{base.scheme}://{host}{raw_path.decode()}" + ("" if query is None else f"?{query}")
        sent = {"host": host} | {k.lower(): v for k, v in self.headers.items()}
        sent |= {name.lower(): value for name, value in headers.items()}
        if kind:
            sent.setdefault("content-type", kind)
        if body or method in _SENT_WITH_LENGTH:
            sent.setdefault("content-length", str(len(body)))
        asked = urllib.request.Request(url, headers=sent)  # noqa: S310 - is sent nowhere
        self.cookies.jar.add_cookie_header(asked)
        if cookie := asked.get_header("Cookie"):
            sent["cookie"] = cookie
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": unquote(unquote(raw_path.decode())),
            "raw_path": raw_path,
            "root_path": "",
            "scheme": base.scheme,
            "query_string": (query or "").encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": _PEER,
            "server": [base.host, base.port or {"http": 80, "https": 443}[base.scheme]],
            "extensions": {},
            "state": self.app_state.copy(),
        }
        assert self.portal
        status, told, parts = self.portal.call(self._answer, scope, body)
        if any(name.lower() == b"set-cookie" for name, _ in told):
            self.cookies.jar.extract_cookies(_Received(told), asked)  # type: ignore[arg-type]
        answer = _Answer(
            status, headers=told, stream=ByteStream(b"" if method == "HEAD" else parts)
        )
        answer.asked = (method, url)
        answer.read()
        return answer

    async def _answer(
        self, scope: MutableMapping[str, Any], body: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Run the app for one request, until it has ended."""
        status, headers, parts = 0, [], []
        asked, ended = False, asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            nonlocal asked
            if asked:
                await ended.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                assert not status, "an answer began twice"
                status, headers = message["status"], [*message.get("headers", [])]
            else:
                assert status, "a body came before its answer"
                assert message["type"] == "http.response.body"
                assert not ended.is_set(), "a body came after the end"
                parts.append(bytes(message.get("body", b"")))
                if not message.get("more_body", False):
                    ended.set()

        await self.app(scope, receive, send)
        assert status, "there was no answer"
        return status, headers, b"".join(parts)


def _encode(
    content: bytes | str | None, data: Mapping[str, Any] | None, json: Any
) -> tuple[bytes, str]:
    """What is sent, and of which kind it is."""
    if content is not None:
        return content.encode() if isinstance(content, str) else content, ""
    if data:
        pairs = [
            (name, _word(one))
            for name, value in data.items()
            for one in (value if isinstance(value, list | tuple) else [value])
        ]
        return urlencode(pairs).encode(), "application/x-www-form-urlencoded"
    if json is not None:
        text = json_text.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode(), "application/json"
    return b"", ""


def _word(value: Any) -> str:
    """A value of a form, as httpx2 writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
