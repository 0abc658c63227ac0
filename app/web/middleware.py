"""The outermost middleware: course paths, static files, limits and errors.

The app handles paths as if its course were the only one. The middleware removes the
course name from the path and adds it to the prefix of URLs in the response.
"""

import contextlib
import dataclasses
import logging
import secrets
import time
from collections.abc import Mapping
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
from app.web.http_exchange import HttpExchange, security_headers
from app.web.monitoring import Metrics
from app.web.rate_limits import SLOW, RateLimiter, rate_limit_kind
from app.web.render import StaticAssets
from app.web.request_limits import FORM, FORM_BYTES, BodyBuffer, FairSlots, RequestGuard, read_form
from app.web.visitor import YEAR, SessionCookies, parse_cookies, set_cookie_line

_OF_SERVER = ("/static/", "/api/")
# A service worker must not be redirected, or the browser would keep the old one
# forever.
_PATHS_OF_SERVER = {"/courses", "/sw.js", *monitoring.ADDRESSES}
# These pages belong to the person, not to a course. Any course may serve them.
_OF_PERSON = ("/continue", "/settings", "/authoring", "/calendar/")

_log = logging.getLogger("headroom")
_SLOW = 0.5
_LONGEST_WAIT = 50.0  # seconds for a slot; proxies give up after sixty
# One at a time: the others use what the first one read.
_COURSE_THREAD = anyio.CapacityLimiter(1)


@dataclasses.dataclass(frozen=True, slots=True)
class CourseRoute:
    """A request after removing its course. `redirect` is a URL to redirect to, if any.

    `cookie` is the Set-Cookie line that remembers the course.
    """

    scope: Scope
    course: str = SINGLE_COURSE
    redirect: str = ""
    cookie: bytes = b""


def resolve_course(
    courses: CourseRegistry, scope: Scope, cookies: Mapping[str, str]
) -> CourseRoute:
    """Determine the course of a request, and whether to redirect it."""
    site: str = scope["root_path"]
    path: str = scope["path"].removeprefix(site)
    query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
    last = cookies.get("course", "")
    of_server = path in _PATHS_OF_SERVER or path.startswith(_OF_SERVER)
    if not courses.named or of_server:
        return CourseRoute(scope)
    if path.startswith("/courses/"):
        name, slash, _ = path.removeprefix("/courses/").partition("/")
        if name not in courses.libraries:
            return CourseRoute(scope)
        if not slash:
            return CourseRoute(scope, name, f"/courses/{name}/{query}")
        # Only page visits count as choosing a course, not requests made by a page.
        mode = dict(scope["headers"]).get(b"sec-fetch-mode", b"navigate")
        chosen = mode == b"navigate" and last != name
        line = set_cookie_line("course", name, YEAR) if chosen else b""
        return CourseRoute({**scope, "root_path": f"{site}/courses/{name}"}, name, cookie=line)
    # a URL without a course: the same page in the last one
    if last not in courses.libraries:
        if len(courses.libraries) > 1 and not path.startswith(_OF_PERSON):
            return CourseRoute(scope, redirect="/courses")
        last = courses.first
    return CourseRoute(scope, redirect=f"/courses/{last}{quote(path)}{query}")


@dataclasses.dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Configuration of the middleware. `uploads` maps upload paths to their limit in bytes.

    Other paths have the lower limit of a form. `slots` are for pages, forms, estimates
    and files. `site` is the path prefix of the server. `https` means that every request
    comes over TLS, even if the scope does not say so.
    """

    static: StaticAssets
    courses: CourseRegistry
    cookies: SessionCookies
    intake: BodyBuffer
    slots: Mapping[str, FairSlots]
    rates: RateLimiter
    routes: RouteNames
    guard: RequestGuard
    site: str = ""
    https: bool = False
    metrics: Metrics | None = None
    uploads: Mapping[str, int] = dataclasses.field(default_factory=dict)


class EdgeMiddleware:
    """The outermost ASGI layer."""

    def __init__(self, app: ASGIApp, config: EdgeConfig) -> None:
        self._app = app
        self._config = config
        self._security = security_headers(https=config.https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _set_root_path(scope, self._config.site)
        cookies = parse_cookies(scope["headers"])
        route = resolve_course(self._config.courses, scope, cookies)
        secure = self._config.https or scope["scheme"] == "https"
        exchange = HttpExchange(route.scope, send, self._security, self._config.site, secure=secure)
        exchange.course_cookie = route.cookie
        if route.redirect:
            await exchange.redirect(route.redirect)
            self._count(exchange, "elsewhere")
        elif exchange.path.startswith("/static/"):
            await exchange.send(
                *await self._config.static.answer(exchange.path, exchange.query, exchange.headers)
            )
            self._count(exchange, "static")
        elif exchange.path in monitoring.ADDRESSES and exchange.method in {"GET", "HEAD"}:
            await self._app(route.scope, receive, send)  # works even if everything else is broken
        else:
            # `__Host-` cookies need HTTPS and the path “/”
            of_host = secure and not self._config.site
            exchange.visitor = self._config.cookies.recognize_visitor(cookies, of_host=of_host)
            await self._serve_page(route, receive, exchange)

    async def _serve_page(
        self, route: CourseRoute, receive: Receive, exchange: HttpExchange
    ) -> None:
        live = self._config.courses.libraries[route.course or self._config.courses.first]
        exchange.number = secrets.token_hex(4)
        state = {
            "visitor": exchange.visitor,
            "number": exchange.number,
            "library": await _read_course(live),
            "live": live,
            "course": route.course,
        }
        method = "GET" if exchange.method == "HEAD" else exchange.method
        inner = {
            **route.scope,
            "method": method,
            "state": {**route.scope.get("state", {}), **state},
        }
        try:
            await self._pass_on(inner, receive, exchange)
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
        self._log_if_slow(exchange, inner)
        if not exchange.started:
            await exchange.send_recorded()
        self._count(exchange, self._config.routes.of(inner))

    async def _pass_on(self, inner: Scope, receive: Receive, exchange: HttpExchange) -> None:
        """Apply limits, buffer the body, wait for a slot, then call the app."""
        config = self._config
        config.guard.check(inner)
        kind = rate_limit_kind(exchange.method, exchange.path, exchange.query)
        browser = exchange.visitor.known_digest
        config.rates.admit(kind, exchange.client, browser)
        if exchange.writes:
            config.rates.admit("writes", exchange.client, browser)
        content_type = exchange.headers.get(b"content-type", b"").lower()
        is_form = exchange.writes and content_type.startswith(FORM)
        room = FORM_BYTES
        if exchange.writes and not is_form:
            room = config.uploads.get(exchange.path, room)
        slots = config.slots[SLOW.get(kind) or ("forms" if exchange.writes else "pages")]
        async with (
            config.intake.whole(receive, exchange.headers, room, exchange.client) as buffered,
            contextlib.AsyncExitStack() as slot,
        ):
            occupied = slots.occupy(exchange.client, seconds=_LONGEST_WAIT)
            try:
                await slot.enter_async_context(occupied)
                is_busy = False
            except TimeoutError:
                is_busy = True
            body = buffered
            if is_form:
                # If the app is busy or full, the error page offers to send the form again.
                inner["state"]["form"], body = await read_form(buffered)
            if is_busy:
                message = "The server is busy just now. Try again in a minute."
                raise HTTPException(503, message, {"retry-after": "60"})
            if config.metrics and exchange.writes and exchange.path in config.uploads:
                slot.enter_context(config.metrics.importing())

            async def record(message: Message) -> None:
                if message.get("more_body"):
                    await slot.aclose()  # before a file is streamed to a slow client
                await exchange.record(message)

            await self._app(inner, body, record)

    def _count(self, exchange: HttpExchange, route: str) -> None:
        if self._config.metrics is not None:
            seconds = time.perf_counter() - exchange.begun
            self._config.metrics.answered(exchange.method, route, exchange.status, seconds)

    def _log_if_slow(self, exchange: HttpExchange, inner: Scope) -> None:
        seconds = time.perf_counter() - exchange.begun
        if seconds < _SLOW and exchange.status < 500:
            return
        known = {
            "request": exchange.number,
            "method": exchange.method,
            "route": self._config.routes.of(inner),
            "status": exchange.status,
            "milliseconds": round(seconds * 1000),
        }
        _log.warning("request %s: %s %s answered %d after %d ms", *known.values(), extra=known)


def _set_root_path(scope: Scope, site: str) -> Scope:
    """Return the scope with the server's prefix, whether or not a proxy removed it."""
    path: str = scope["path"]
    if site and (path == site or path.startswith(f"{site}/")):
        path = path.removeprefix(site) or "/"
    return {**scope, "root_path": site, "path": f"{site}{path}"}


async def _read_course(live: LiveLibrary) -> Library:
    """Return the current course.

    Checks the files in a thread, because reading an author's changes may take a second
    of processor time.
    """
    recent = live.recent()
    if recent is not None:
        return recent
    return await to_thread.run_sync(live.current, limiter=_COURSE_THREAD)
