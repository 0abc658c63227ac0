"""What stands before the routes: files, kept pages, and what every answer carries."""

import dataclasses
import datetime as dt
import logging
import secrets
import time
from collections.abc import Callable, Mapping

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.content.library import Library, LiveLibrary
from app.errors import NotAllowed
from app.web import errors
from app.web.csrf import comes_from_here
from app.web.exchange import Exchange
from app.web.headers import security
from app.web.keeping import Kept, Moment, Pages, Wish
from app.web.packing import Packed
from app.web.static import StaticFiles
from app.web.visitor import Doorkeeper, Visitor, place_of

_log = logging.getLogger("headroom")
_SLOW = 0.5
_LARGEST = 256 * 1024
_NOBODY = Visitor(key="")


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
    https: bool
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
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"].startswith("/static/"):
            await self._file(Exchange(scope, send, _NOBODY, self._security))
        else:
            await self._page(scope, receive, send)

    async def _file(self, exchange: Exchange) -> None:
        path, query = exchange.target
        accepted = exchange.headers.get(b"accept-encoding", b"")
        known = exchange.headers.get(b"if-none-match", b"")
        await exchange.send_file(
            *self._door.static.answer(path, query, accepted, known)
        )

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        door = self._door
        exchange = Exchange(scope, send, _NOBODY, self._security)
        visitor = door.doorkeeper.recognise(
            exchange.headers.get(b"cookie", b""), place_of(scope)
        )
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
                return
        exchange.number = secrets.token_hex(4)
        inner = _inner(scope, visitor, exchange.number, course)
        await self._from_app(inner, receive, exchange, now)

    async def _from_app(
        self, inner: Scope, receive: Receive, exchange: Exchange, now: Moment
    ) -> None:
        begun = time.perf_counter()
        try:
            room = self._door.room(exchange)
            _admit(exchange, room)
            await self._app(inner, _limited(receive, room), exchange.record)
        except Exception as error:
            if exchange.started:
                raise
            request = Request(inner, receive)
            response = errors.answer_to(request, error, exchange.number)
            await response(inner, receive, exchange.record)
        exchange.visitor = inner["state"]["visitor"]  # a revoked one has become new
        _note(exchange, time.perf_counter() - begun)
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


def _note(exchange: Exchange, seconds: float) -> None:
    if seconds < _SLOW and exchange.status < 500:
        return
    _log.warning(
        "request %s: %s %s answered %d after %.0f ms",
        exchange.number,
        exchange.method,
        exchange.target[0],
        exchange.status,
        seconds * 1000,
    )
