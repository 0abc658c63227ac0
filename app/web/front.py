"""What stands before the routes: files, kept pages, and what every answer carries."""

import contextlib
import dataclasses
import datetime as dt
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.content.library import Library, LiveLibrary
from app.errors import NotAllowed
from app.web import errors, health
from app.web.addresses import RouteNames
from app.web.characters import refuse_null, without_null
from app.web.csrf import comes_from_here
from app.web.exchange import Exchange
from app.web.headers import security
from app.web.keeping import Kept, Moment, Pages, Wish
from app.web.metrics import Metrics
from app.web.packing import Packed
from app.web.static import StaticFiles
from app.web.visitor import Doorkeeper, Visitor

_log = logging.getLogger("headroom")
_SLOW = 0.5
_LARGEST = 256 * 1024
_LOOKS = {"GET", "HEAD"}
_NOBODY = Visitor(key="", renewal=b"")


@dataclasses.dataclass(frozen=True, slots=True)
class Door:
    """What the front works with; `uploads` are the addresses that take files.

    Each says how many bytes may be sent to it, instead of the few that a form needs.
    """

    static: StaticFiles
    library: LiveLibrary
    pages: Pages
    doorkeeper: Doorkeeper
    clock: Callable[[], dt.datetime]
    routes: RouteNames
    https: bool
    metrics: Metrics | None = None
    uploads: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def room(self, exchange: Exchange) -> int:
        """How many bytes the body of a request may have."""
        path = exchange.target[0]
        return (
            self.uploads.get(path, _LARGEST) if exchange.method == "POST" else _LARGEST
        )


class Front:
    """The outermost layer, plain ASGI: a kept page never touches the framework."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._security = security(https=door.https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"].startswith("/static/"):
            exchange = Exchange(scope, send, _NOBODY, self._security)
            await self._file(exchange)
            self._count(exchange, "static", begun)
        elif scope["path"] in health.ADDRESSES and scope["method"] in _LOOKS:
            await self._app(scope, receive, send)  # whatever else is broken
        else:
            await self._page(scope, receive, send, begun)

    async def _file(self, exchange: Exchange) -> None:
        path, query = exchange.target
        accepted = exchange.headers.get(b"accept-encoding", b"")
        known = exchange.headers.get(b"if-none-match", b"")
        await exchange.send_file(
            *self._door.static.answer(path, query, accepted, known)
        )

    async def _page(
        self, scope: Scope, receive: Receive, send: Send, begun: float
    ) -> None:
        door = self._door
        exchange = Exchange(scope, send, _NOBODY, self._security)
        visitor = door.doorkeeper.recognise(exchange.headers.get(b"cookie", b""))
        exchange.visitor = visitor
        course = door.library.current()
        now = Moment(
            course.version,
            door.clock().timestamp(),
            door.pages.changes(visitor),
        )
        if exchange.reads:
            kept = door.pages.find(exchange.target, visitor, now)
            if kept is not None:
                await exchange.give(kept)
                self._count(exchange, "kept", begun)
                return
        exchange.number = secrets.token_hex(4)
        inner = _inner(scope, visitor, exchange.number, course)
        with self._importing(exchange):
            await self._from_app(inner, receive, exchange, now)
        self._count(exchange, door.routes.of(inner), begun)

    def _count(self, exchange: Exchange, route: str, begun: float) -> None:
        if self._door.metrics is not None:
            seconds = time.perf_counter() - begun
            self._door.metrics.answered(
                exchange.method, route, exchange.status, seconds
            )

    def _importing(self, exchange: Exchange) -> AbstractContextManager[None]:
        metrics, path = self._door.metrics, exchange.target[0]
        if metrics and exchange.method == "POST" and path in self._door.uploads:
            return metrics.importing()
        return contextlib.nullcontext()

    async def _from_app(
        self, inner: Scope, receive: Receive, exchange: Exchange, now: Moment
    ) -> None:
        begun = time.perf_counter()
        try:
            room = self._door.room(exchange)
            _admit(exchange, room)
            kind = exchange.headers.get(b"content-type", b"")
            body = without_null(_limited(receive, room), kind)
            await self._app(inner, body, exchange.record)
        except Exception as error:
            if exchange.started:
                raise
            request = Request(inner, receive)
            response = errors.answer_to(request, error, exchange.number)
            await response(inner, receive, exchange.record)
        route = self._door.routes.of(inner)
        _note(exchange, route, time.perf_counter() - begun)
        if not exchange.started:
            await self._finish(exchange, inner["state"].get("wish"), now)

    async def _finish(self, exchange: Exchange, wish: Wish | None, now: Moment) -> None:
        if wish is None or exchange.status != 200 or not exchange.reads:
            await exchange.finish()
            return
        shared = wish.sharing == "all"
        changes = None if shared else now.changes
        kept = Kept(
            Packed(exchange.body), exchange.kind, now.version, changes, wish.until
        )
        if shared or changes is not None:
            self._door.pages.put(exchange.target, exchange.visitor, kept, wish.sharing)
        await exchange.give(kept)


def _inner(scope: Scope, visitor: Visitor, number: str, course: Library) -> Scope:
    """The request as the app sees it: it knows visitor and course, and no HEAD."""
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    known = {"visitor": visitor, "number": number, "library": course}
    return {**scope, "method": method, "state": {**scope.get("state", {}), **known}}


def _admit(exchange: Exchange, room: int) -> None:
    refuse_null(*exchange.target)
    if not comes_from_here(exchange.method, exchange.headers):
        raise NotAllowed(
            "This was sent by another site, so nothing was changed.",
            "Open the page here and send it again.",
        )
    length = exchange.headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > room:
        raise _too_large(room)


def _limited(receive: Receive, room: int) -> Receive:
    """`receive`, refusing bodies that grow past the limit without saying so."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > room:
            raise _too_large(room)
        return message

    return counted


def _too_large(room: int) -> HTTPException:
    return HTTPException(413, f"At most {room // 1024:,} kB can be sent at once.")


def _note(exchange: Exchange, route: str, seconds: float) -> None:
    if seconds < _SLOW and exchange.status < 500:
        return
    known = {
        "request": exchange.number,
        "method": exchange.method,
        "route": route,
        "status": exchange.status,
        "milliseconds": round(seconds * 1000),
    }
    _log.warning(
        "request %s: %s %s answered %d after %d ms", *known.values(), extra=known
    )
