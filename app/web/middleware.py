"""The outermost middleware: course paths, static files, page cache, limits and errors.

The app handles paths as if its course were the only one. The middleware removes the
course name from the path and adds it to the prefix of URLs in the response.
"""

import contextlib
import dataclasses
import datetime as dt
import logging
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from urllib.parse import quote

import anyio
from anyio import to_thread
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.content.courses import SINGLE_COURSE, CourseRegistry
from app.content.library import Library, LiveLibrary
from app.web import errors, monitoring
from app.web.dependencies import RouteNames
from app.web.headers import security_headers
from app.web.http_exchange import HttpExchange
from app.web.monitoring import Metrics
from app.web.page_cache import (
    BEST_QUALITY,
    LONG_PAGE,
    QUALITY,
    CachedPage,
    CachePolicy,
    CacheStamp,
    CompressedBody,
    PageCache,
)
from app.web.rate_limits import SLOW, RateLimiter, rate_limit_kind
from app.web.render import StaticAssets
from app.web.request_limits import (
    FORM,
    BodyBuffer,
    FairSlots,
    RequestGuard,
    read_form,
    refuse_null,
    refuse_null_in_form,
)
from app.web.visitor import YEAR, SessionCookies, Visitor, set_cookie_line

_LAST = re.compile(rb"(?:^|;)\s*course=([a-z0-9-]{1,80})(?=;|$)")
_OF_SERVER = ("/static/", "/api/")
# A service worker must not be redirected, or the browser would keep the old one
# forever.
_PATHS_OF_SERVER = {"/courses", "/sw.js", *monitoring.ADDRESSES}
# These pages belong to the person, not to a course. Any course may serve them.
_OF_PERSON = ("/continue", "/settings", "/authoring", "/calendar/")


@dataclasses.dataclass(frozen=True, slots=True)
class CourseRoute:
    """A request after removing its course. `elsewhere` is a URL to redirect to, if any.

    `site` is the prefix of the server, the same for all courses. `cookie` is the
    Set-Cookie line that remembers the course.
    """

    scope: Scope
    course: str
    site: str = ""
    elsewhere: str = ""
    cookie: bytes = b""


def resolve_course(courses: CourseRegistry, scope: Scope) -> CourseRoute:
    """Determine the course of a request, and whether to redirect it."""
    site: str = scope.get("root_path", "")
    if not courses.named:
        return CourseRoute(scope, SINGLE_COURSE, site)
    path: str = scope["path"].removeprefix(site)
    if path.startswith("/courses/"):
        name, slash, _ = path.removeprefix("/courses/").partition("/")
        if name in courses.libraries:
            return _route_in_course(scope, site, name, slash)
        return CourseRoute(scope, SINGLE_COURSE, site)
    if path in _PATHS_OF_SERVER or path.startswith(_OF_SERVER):
        return CourseRoute(scope, SINGLE_COURSE, site)
    return CourseRoute(scope, SINGLE_COURSE, site, _redirect_old_url(courses, scope, path))


def _route_in_course(scope: Scope, site: str, name: str, slash: str) -> CourseRoute:
    below = f"{site}/courses/{name}"
    if not slash:
        return CourseRoute(scope, name, site, _append_query(scope, f"/courses/{name}/"))
    headers = dict(scope["headers"])
    # Only page visits count as choosing a course, not requests made by a page.
    opened = headers.get(b"sec-fetch-mode", b"navigate") == b"navigate"
    line = b""
    if opened and _last_course(headers) != name:
        line = set_cookie_line("course", name, YEAR)
    return CourseRoute({**scope, "root_path": below}, name, site, cookie=line)


def _redirect_old_url(courses: CourseRegistry, scope: Scope, path: str) -> str:
    """Return the redirect for a URL without a course name: the same page in the last course."""
    name = _last_course(dict(scope["headers"]))
    if name not in courses.libraries:
        alone = len(courses.libraries) == 1
        if not alone and not path.startswith(_OF_PERSON):
            return "/courses"
        name = courses.first
    return _append_query(scope, f"/courses/{name}{quote(path)}")


def _last_course(headers: dict[bytes, bytes]) -> str:
    found = _LAST.search(headers.get(b"cookie", b""))
    return found[1].decode() if found else ""


def _append_query(scope: Scope, path: str) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


_log = logging.getLogger("headroom")
_SLOW = 0.5
_LONGEST_WAIT = 50.0  # seconds for a slot; proxies give up after sixty
_LOOKS = {"GET", "HEAD"}
_NOBODY = Visitor(key="")
# One at a time: the others use what the first one read.
_COURSE_THREAD = anyio.CapacityLimiter(1)


@dataclasses.dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Configuration of the middleware. `uploads` maps upload paths to their limit in bytes.

    Other paths have the lower limit of a form. `slots` are for pages, forms, estimates
    and files.
    """

    static: StaticAssets
    courses: CourseRegistry
    pages: PageCache
    doorkeeper: SessionCookies
    clock: Callable[[], dt.datetime]
    intake: BodyBuffer
    slots: Mapping[str, FairSlots]
    rates: RateLimiter
    routes: RouteNames
    https: bool
    admission: RequestGuard
    metrics: Metrics | None = None
    uploads: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def room(self, exchange: HttpExchange) -> int:
        """Return the maximum size of the request's body in bytes."""
        most = self.admission.bounds.body
        return self.uploads.get(exchange.path, most) if exchange.writes else most


class EdgeMiddleware:
    """The outermost ASGI layer. A cached page is served without calling FastAPI."""

    def __init__(self, app: ASGIApp, door: EdgeConfig) -> None:
        self._app = app
        self._door = door
        self._security = security_headers(https=door.https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        https = self._door.https
        found = resolve_course(self._door.courses, scope)
        scope = found.scope
        exchange = HttpExchange(scope, send, _NOBODY, self._security, https=https)
        if found.course:
            exchange.belongs_to(found.site, found.cookie)
        if found.elsewhere:
            await exchange.redirect(found.elsewhere)
            self._count(exchange, "elsewhere")
        elif exchange.path.startswith("/static/"):
            await self._file(exchange)
            self._count(exchange, "static")
        elif exchange.path in monitoring.ADDRESSES and exchange.method in _LOOKS:
            await self._app(scope, receive, send)  # works even if everything else is broken
        else:
            await self._serve_page(scope, receive, exchange, found.course)

    async def _file(self, exchange: HttpExchange) -> None:
        accepted = exchange.headers.get(b"accept-encoding", b"")
        known = exchange.headers.get(b"if-none-match", b"")
        query = exchange.target[1]
        await exchange.send_file(
            *await self._door.static.answer(exchange.path, query, accepted, known)
        )

    async def _serve_page(
        self, scope: Scope, receive: Receive, exchange: HttpExchange, name: str
    ) -> None:
        door = self._door
        refusal = door.admission.refusal(exchange)
        cookies = b"" if refusal else exchange.headers.get(b"cookie", b"")
        visitor = exchange.visitor = door.doorkeeper.recognize_visitor(cookies)
        live = door.courses.libraries[name or door.courses.first]
        course = await _read_course(live)
        now = CacheStamp(
            course.version,
            door.clock().timestamp(),
            door.pages.changes(visitor),
        )
        if exchange.is_cacheable and refusal is None:
            kept = door.pages.find(exchange.target, visitor, now)
            if kept is not None:
                await exchange.send_cached(kept)
                self._count(exchange, "kept")
                return
        exchange.number = secrets.token_hex(4)
        known = {
            "visitor": visitor,
            "number": exchange.number,
            "library": course,
            "live": live,
            "course": name,
        }
        inner = _inner_scope(scope, known)
        with self._count_import(exchange):
            await self._from_app(inner, receive, exchange, now, refusal)
        if door.metrics is not None:
            self._count(exchange, door.routes.of(inner))

    def _count(self, exchange: HttpExchange, route: str) -> None:
        if self._door.metrics is not None:
            seconds = time.perf_counter() - exchange.begun
            self._door.metrics.answered(exchange.method, route, exchange.status, seconds)

    def _count_import(self, exchange: HttpExchange) -> AbstractContextManager[None]:
        metrics = self._door.metrics
        if metrics and exchange.writes and exchange.path in self._door.uploads:
            return metrics.importing()
        return contextlib.nullcontext()

    async def _from_app(
        self,
        inner: Scope,
        receive: Receive,
        exchange: HttpExchange,
        now: CacheStamp,
        refusal: Exception | None,
    ) -> None:
        try:
            await self._pass_on(inner, receive, exchange, refusal)
        except ClientDisconnect:
            return  # the client is gone
        except Exception as error:
            if exchange.started:
                raise
            request = Request(inner, receive)
            response = errors.answer_to(request, error, exchange.number)
            await response(inner, receive, exchange.record)
        # a revoked session was replaced by a new visitor
        exchange.visitor = inner["state"]["visitor"]
        self._note(exchange, inner)
        if not exchange.started:
            await self._finish_page(exchange, inner["state"].get("wish"), now)

    async def _pass_on(
        self,
        inner: Scope,
        receive: Receive,
        exchange: HttpExchange,
        refusal: Exception | None,
    ) -> None:
        """Apply rate limits, buffer the body, wait for a slot, then call the app."""
        if refusal is not None:
            raise refusal
        door = self._door
        refuse_null(exchange.path, exchange.target[1])
        work = rate_limit_kind(exchange.method, exchange.path, exchange.target[1])
        browser = exchange.visitor.known_digest
        door.rates.admit(work, exchange.client, browser)
        if exchange.writes:
            door.rates.admit("writes", exchange.client, browser)
        body = door.intake.whole(receive, exchange.headers, door.room(exchange), exchange.client)
        slots = SLOW.get(work) or ("forms" if exchange.writes else "pages")
        async with body as received, contextlib.AsyncExitStack() as slot:
            occupied = door.slots[slots].occupy(exchange.client, seconds=_LONGEST_WAIT)
            is_busy = not await _enter_slot(slot, occupied)
            kind = exchange.headers.get(b"content-type", b"")
            whole = refuse_null_in_form(received, kind)
            if exchange.writes and kind.lower().startswith(FORM):
                # If the app is busy or full, the error page offers to send the form
                # again.
                inner["state"]["form"], whole = await read_form(whole)
            if is_busy:
                words = "The server is busy just now. Try again in a minute."
                raise HTTPException(503, words, {"retry-after": "60"})
            await self._app(inner, whole, _free_slot_before_file(slot, exchange.record))

    def _note(self, exchange: HttpExchange, inner: Scope) -> None:
        seconds = time.perf_counter() - exchange.begun
        if seconds < _SLOW and exchange.status < 500:
            return
        known = {
            "request": exchange.number,
            "method": exchange.method,
            "route": self._door.routes.of(inner),
            "status": exchange.status,
            "milliseconds": round(seconds * 1000),
        }
        _log.warning("request %s: %s %s answered %d after %d ms", *known.values(), extra=known)

    async def _finish_page(
        self, exchange: HttpExchange, wish: CachePolicy | None, now: CacheStamp
    ) -> None:
        if wish is None or exchange.status != 200 or not exchange.reads:
            await exchange.finish()
            return
        shared = wish.sharing == "all"
        changes = None if shared else now.changes
        is_shared = exchange.is_cacheable and wish.sharing != "nobody"
        is_long = len(exchange.body) >= LONG_PAGE
        quality = BEST_QUALITY if is_shared and is_long else QUALITY
        packed = CompressedBody(exchange.body, quality)
        kept = CachedPage(packed, exchange.kind, now.version, changes, wish.until, exchange.caching)
        if exchange.is_cacheable and (shared or changes is not None):
            self._door.pages.put(exchange.target, exchange.visitor, kept, wish.sharing)
        await exchange.send_cached(kept)


async def _enter_slot(
    stack: contextlib.AsyncExitStack, slot: AbstractAsyncContextManager[None]
) -> bool:
    """Wait for a slot; returns False on timeout."""
    try:
        await stack.enter_async_context(slot)
    except TimeoutError:
        return False
    return True


def _free_slot_before_file(slot: contextlib.AsyncExitStack, send: Send) -> Send:
    """Return a `send` that frees the slot before a file is streamed to a slow client."""

    async def record(message: Message) -> None:
        if message.get("more_body"):
            await slot.aclose()
        await send(message)

    return record


async def _read_course(live: LiveLibrary) -> Library:
    """Return the current course.

    Checks the files in a thread, because reading an author's changes may take a second
    of processor time.
    """
    recent = live.recent()
    if recent is not None:
        return recent
    return await to_thread.run_sync(live.current, limiter=_COURSE_THREAD)


def _inner_scope(scope: Scope, known: Mapping[str, object]) -> Scope:
    """Return the scope for the app: with visitor and course, and HEAD replaced by GET."""
    method = "GET" if scope["method"] == "HEAD" else scope["method"]
    return {**scope, "method": method, "state": {**scope.get("state", {}), **known}}
