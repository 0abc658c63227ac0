"""Middleware of every request: course of the URL, static files, cookies, headers, the response."""

import contextlib
import dataclasses
import logging
import re
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

from app.content.course import Course
from app.content.live_courses import SINGLE_COURSE, CourseRegistry, LiveCourse
from app.web import error_responses, monitoring
from app.web.monitoring import Metrics, RouteTemplates
from app.web.render import CompressedBody, StaticAssets
from app.web.request_limits import (
    ADVICE_ON_LARGE_BODIES,
    FORM_BYTES,
    FORM_CONTENT_TYPE,
    SEND_LESS,
    SLOTS_OF_SLOW_REQUESTS,
    BodyReceiver,
    FairSlots,
    RateLimiter,
    RequestGuard,
    client_address_or_network_of_scope,
    rate_limit_kind_of_request_or_empty,
    read_form_body,
)
from app.web.visitor import (
    HOST_PREFIX,
    YEAR_SECONDS,
    SessionCookies,
    Visitor,
    format_set_cookie,
    parse_cookies,
)

Headers = list[tuple[bytes, bytes]]

_ADDRESS_ATTRIBUTE = re.compile(
    rb'(\s(?:href|src|action|formaction|hx-get|hx-post|data-(?:changes|over|stuck|to))=")'
    rb"/(?!/)"
)
_COOKIE_PATH = re.compile(rb"(;\s*Path=)/(?=;|$)", re.IGNORECASE)
_URL_HEADERS = {
    *(b"location", b"content-location"),
    *(b"hx-redirect", b"hx-location", b"hx-push-url", b"hx-replace-url"),
}
_TEXT_TYPES = (b"text/", b"application/json", b"image/svg", b"application/problem")
# These pages show a person's name. After sign-out, Back must not show them.
_PATHS_WITH_NAMES = ("/settings", "/continue")
# Tells the service worker to drop its cached pages, which belonged to another learner.
_NEW_BROWSER_HEADER = (b"x-new-browser", b"yes")
_CONTENT_SECURITY_POLICY = (
    "default-src 'self'; "
    "img-src 'self' data:; "
    "object-src 'none'; "
    "base-uri 'none'; "
    "form-action 'self'; "
    "frame-ancestors 'none'"
)
_HEADERS_OF_PAGES = {
    b"permissions-policy",
    b"cross-origin-opener-policy",
}  # they mean nothing on a file
_DENIED_FEATURES = ("camera", "geolocation", "microphone", "payment", "usb", "browsing-topics")


def build_security_headers(*, adds_hsts: bool) -> Headers:
    """Return the security headers of every response. `adds_hsts` adds Strict-Transport-Security."""
    headers = {
        "content-security-policy": _CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": ", ".join(f"{name}=()" for name in _DENIED_FEATURES),
    }
    if adds_hsts:
        headers["strict-transport-security"] = "max-age=31536000"
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class HttpExchange:
    """One request, and the response once it is there.

    The app gets `record_or_stream_response` instead of `send`: it holds a complete response back until
    `send_recorded_response` and passes a streamed one through. `security_headers` are the headers of every
    response. `path_prefix` is that of the server, which cookies get; URLs get that of
    the course (`root_path`). `is_https` means that the request came over TLS.
    """

    def __init__(
        self,
        scope: Scope,
        send: Send,
        security_headers: Headers,
        path_prefix: str,
        *,
        is_https: bool,
    ) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.method: str = scope["method"]
        self.course_prefix: str = scope["root_path"]
        self.path: str = scope["path"].removeprefix(self.course_prefix)
        self.query: bytes = scope["query_string"]
        self.client = client_address_or_network_of_scope(scope)
        self.visitor = Visitor(session_key="")
        self.course_cookie = b""
        self.begun_at = time.perf_counter()
        self.status = 0
        self.is_head_sent = False
        self.body = b""
        self.request_id = ""
        self._send = send
        self._security = security_headers
        self._path_prefix = path_prefix
        self.is_https = is_https
        self._recorded: Headers = []

    @property
    def is_write(self) -> bool:
        return self.method == "POST"

    async def record_or_stream_response(self, message: Message) -> None:
        """Record the app's response, or pass it on if it is streamed."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._recorded = list(message["headers"])
        elif self.is_head_sent:
            await self._send(message)
        elif message.get("more_body"):
            self.is_head_sent = True
            await self._send_head(self.status, self._recorded + self._build_set_cookie_headers())
            await self._send(message)
        else:
            self.body = message.get("body", b"")

    async def send_recorded_response(self) -> None:
        """Send the recorded response; 304 if the browser already has the same page."""
        recorded = dict(self._recorded)
        content_type = recorded.get(b"content-type", b"")
        usual = b"no-store" if self.path.startswith(_PATHS_WITH_NAMES) else b"private, no-cache"
        caching = recorded.get(b"cache-control", usual)
        replaced = {b"content-length", b"cache-control"}
        headers = [pair for pair in self._recorded if pair[0] not in replaced]
        headers += [(b"cache-control", caching), (b"x-request-id", self.request_id.encode())]
        headers += self._build_set_cookie_headers()
        if not content_type.startswith(_TEXT_TYPES):
            await self.send(self.status, headers, self.body)
            return
        if self.course_prefix and content_type.startswith(b"text/html"):
            self.body = _ADDRESS_ATTRIBUTE.sub(
                rb"\g<1>" + self.course_prefix.encode() + b"/", self.body
            )
        body = CompressedBody(self.body)
        headers.append((b"vary", b"accept-encoding, cookie"))
        is_cacheable = self.status == 200 and not self.is_write and b"no-store" not in caching
        if is_cacheable and b"etag" not in recorded:
            headers.append((b"etag", body.tag))
            if body.tag in self.headers.get(b"if-none-match", b""):
                await self.send(304, headers, b"")
                return
        encoded, encoding = await body.encode_for(self.headers.get(b"accept-encoding", b""))
        if encoding:
            headers.append((b"content-encoding", encoding))
        await self.send(self.status, headers, encoded)

    async def redirect(self, address: str) -> None:
        """Redirect to another path of this server, with method and body (307)."""
        location = address.encode("latin-1", "replace")
        await self.send(307, [(b"location", location), (b"cache-control", b"no-store")], b"")

    async def send(self, status: int, headers: Headers, body: bytes) -> None:
        if status != 304:
            headers.append((b"content-length", str(len(body)).encode()))
        await self._send_head(status, headers)
        shown = b"" if self.method == "HEAD" else body
        await self._send({"type": "http.response.body", "body": shown})

    def _build_set_cookie_headers(self) -> Headers:
        # A new browser gets its key with the first response. A write renews the cookie,
        # because browsers drop cookies after 400 days.
        visitor = self.visitor
        line = visitor.renewal_cookie if self.is_write else visitor.new_session_cookie
        names = [
            _read_name_of_cookie_line(value)
            for name, value in self._recorded
            if name == b"set-cookie"
        ]
        lines = []
        if line and _read_name_of_cookie_line(line) not in names:
            names.append(_read_name_of_cookie_line(line))
            lines.append(line)
        lines += [
            format_set_cookie(name, "", 0)
            for name in visitor.obsolete_cookie_names
            if HOST_PREFIX + name in names
        ]
        if self.course_cookie:
            lines.append(self.course_cookie)
        headers = [(b"set-cookie", line) for line in lines]
        return [*headers, _NEW_BROWSER_HEADER] if visitor.new_session_cookie else headers

    async def _send_head(self, status: int, headers: Headers) -> None:
        """Send the head, with the security headers that the route has not set itself."""
        self.status = status
        without = {name for name, _ in headers}
        if self.path.startswith("/static/"):
            without |= _HEADERS_OF_PAGES
        headers = headers + [pair for pair in self._security if pair[0] not in without]
        headers = [(name, self._add_path_prefix_or_secure(name, value)) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _add_path_prefix_or_secure(self, name: bytes, value: bytes) -> bytes:
        """Return a header with the path prefix; a cookie sent over TLS is Secure."""
        if name in _URL_HEADERS and value.startswith(b"/") and not value.startswith(b"//"):
            return self.course_prefix.encode() + value
        if name == b"set-cookie":
            value = _COOKIE_PATH.sub(rb"\g<1>" + self._path_prefix.encode() + b"/", value)
            if self.is_https and b"; secure" not in value.lower():
                value += b"; Secure"
        return value


def _read_name_of_cookie_line(line: bytes) -> str:
    return line.partition(b"=")[0].decode("latin-1")


_PATH_STARTS_WITHOUT_COURSE = ("/static/", "/api/")
# A service worker must not be redirected, or the browser would keep the old one
# forever.
_PATHS_WITHOUT_COURSE = {"/courses", "/sw.js", *monitoring.MONITORING_PATHS}
# These pages belong to the person, not to a course. Any course may serve them.
_PATH_STARTS_OF_ANY_COURSE = ("/continue", "/settings", "/authoring", "/calendar/")

_log = logging.getLogger("headroom")
_SLOW_REQUEST_SECONDS = 0.5
_LONGEST_WAIT = 50.0  # seconds for a slot; proxies give up after sixty
# One at a time: the others use what the first one read.
_COURSE_THREAD = anyio.CapacityLimiter(1)


@dataclasses.dataclass(frozen=True, slots=True)
class CourseRoute:
    """A request after removing its course. `redirect_url` is a URL to redirect to, if any.

    `set_cookie_line` is the Set-Cookie line that remembers the course.
    """

    scope: Scope
    course_name: str = SINGLE_COURSE
    redirect_url: str = ""
    set_cookie_line: bytes = b""


def resolve_course_or_redirect(
    courses: CourseRegistry, scope: Scope, cookies: Mapping[str, str]
) -> CourseRoute:
    """Determine the course of a request, and whether to redirect it."""
    site: str = scope["root_path"]
    path: str = scope["path"].removeprefix(site)
    query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
    last = cookies.get("course", "")
    of_server = path in _PATHS_WITHOUT_COURSE or path.startswith(_PATH_STARTS_WITHOUT_COURSE)
    if not courses.has_several_courses or of_server:
        return CourseRoute(scope)
    if path.startswith("/courses/"):
        name, slash, _ = path.removeprefix("/courses/").partition("/")
        if name not in courses.live_courses:
            return CourseRoute(scope)
        if not slash:
            return CourseRoute(scope, name, f"/courses/{name}/{query}")
        # Only page visits count as choosing a course, not requests made by a page.
        mode = dict(scope["headers"]).get(b"sec-fetch-mode", b"navigate")
        chosen = mode == b"navigate" and last != name
        line = format_set_cookie("course", name, YEAR_SECONDS) if chosen else b""
        return CourseRoute(
            {**scope, "root_path": f"{site}/courses/{name}"}, name, set_cookie_line=line
        )
    # a URL without a course: the same page in the last one
    if last not in courses.live_courses:
        if len(courses.live_courses) > 1 and not path.startswith(_PATH_STARTS_OF_ANY_COURSE):
            return CourseRoute(scope, redirect_url="/courses")
        last = courses.default_course_name
    return CourseRoute(scope, redirect_url=f"/courses/{last}{quote(path)}{query}")


@dataclasses.dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Configuration of the middleware. `max_upload_bytes_by_path` maps the paths of uploads to limits.

    Other paths have the lower limit of a form. `fair_slots_by_kind` are for pages, forms, estimates
    and files. `path_prefix` is that of the server. `is_always_https` means that every request
    comes over TLS, even if the scope does not say so.
    """

    static_assets: StaticAssets
    courses: CourseRegistry
    cookies: SessionCookies
    body_receiver: BodyReceiver
    fair_slots_by_kind: Mapping[str, FairSlots]
    rate_limiter: RateLimiter
    route_templates: RouteTemplates
    request_guard: RequestGuard
    path_prefix: str = ""
    is_always_https: bool = False
    metrics: Metrics | None = None
    max_upload_bytes_by_path: Mapping[str, int] = dataclasses.field(default_factory=dict)


class EdgeMiddleware:
    """The outermost ASGI layer."""

    def __init__(self, app: ASGIApp, config: EdgeConfig) -> None:
        self._app = app
        self._config = config
        self._security = build_security_headers(adds_hsts=config.is_always_https)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _ensure_path_prefix(scope, self._config.path_prefix)
        cookies = parse_cookies(scope["headers"])
        route = resolve_course_or_redirect(self._config.courses, scope, cookies)
        secure = self._config.is_always_https or scope["scheme"] == "https"
        exchange = HttpExchange(
            route.scope, send, self._security, self._config.path_prefix, is_https=secure
        )
        exchange.course_cookie = route.set_cookie_line
        if route.redirect_url:
            await exchange.redirect(route.redirect_url)
            self._record_metrics(exchange, "elsewhere")
        elif exchange.path.startswith("/static/"):
            await exchange.send(
                *await self._config.static_assets.respond(
                    exchange.path, exchange.query, exchange.headers
                )
            )
            self._record_metrics(exchange, "static")
        elif exchange.path in monitoring.MONITORING_PATHS and exchange.method in {"GET", "HEAD"}:
            await self._app(route.scope, receive, send)  # works even if everything else is broken
        else:
            # `__Host-` cookies need HTTPS and the path “/”
            of_host = secure and not self._config.path_prefix
            exchange.visitor = self._config.cookies.recognize_visitor(
                cookies, use_host_prefix=of_host
            )
            await self._call_app_and_send_response(route, receive, exchange)

    async def _call_app_and_send_response(
        self, route: CourseRoute, receive: Receive, exchange: HttpExchange
    ) -> None:
        live = self._config.courses.live_courses[
            route.course_name or self._config.courses.default_course_name
        ]
        exchange.request_id = secrets.token_hex(4)
        state = {
            "visitor": exchange.visitor,
            "is_https": exchange.is_https,
            "request_id": exchange.request_id,
            "course": await _load_current_course(live),
            "live": live,
            "course_name": route.course_name,
        }
        method = "GET" if exchange.method == "HEAD" else exchange.method
        inner = {
            **route.scope,
            "method": method,
            "state": {**route.scope.get("state", {}), **state},
        }
        try:
            await self._call_app_within_limits(inner, receive, exchange)
        except ClientDisconnect:
            return  # the client is gone
        except Exception as error:
            if exchange.is_head_sent:
                raise
            request = Request(inner, receive)
            response = error_responses.response_for_exception(request, error, exchange.request_id)
            await response(inner, receive, exchange.record_or_stream_response)
        # a revoked session was replaced by a new visitor
        exchange.visitor = inner["state"]["visitor"]
        self._log_if_slow_or_failed(exchange, inner)
        if not exchange.is_head_sent:
            await exchange.send_recorded_response()
        self._record_metrics(exchange, self._config.route_templates.route_template_or_dash(inner))

    async def _call_app_within_limits(
        self, app_scope: Scope, receive: Receive, exchange: HttpExchange
    ) -> None:
        """Apply limits, buffer the body, wait for a slot, then call the app."""
        config = self._config
        config.request_guard.raise_for_bad_host_origin_or_text(app_scope)
        kind = rate_limit_kind_of_request_or_empty(exchange.method, exchange.path, exchange.query)
        browser = exchange.visitor.sent_key_digest
        config.rate_limiter.raise_if_over_limit_else_count(kind, exchange.client, browser)
        if exchange.is_write:
            config.rate_limiter.raise_if_over_limit_else_count("writes", exchange.client, browser)
        content_type = exchange.headers.get(b"content-type", b"").lower()
        is_form = exchange.is_write and content_type.startswith(FORM_CONTENT_TYPE)
        max_bytes, advice = FORM_BYTES, ADVICE_ON_LARGE_BODIES.get(kind, SEND_LESS)
        if exchange.is_write and not is_form:
            max_bytes = config.max_upload_bytes_by_path.get(exchange.path, max_bytes)
        slots = config.fair_slots_by_kind[
            SLOTS_OF_SLOW_REQUESTS.get(kind) or ("forms" if exchange.is_write else "pages")
        ]
        async with (
            config.body_receiver.buffer_whole_body(
                receive, exchange.headers, max_bytes, exchange.client, advice
            ) as buffered,
            contextlib.AsyncExitStack() as slot,
        ):
            occupied = slots.hold_slot(exchange.client, max_wait_seconds=_LONGEST_WAIT)
            try:
                await slot.enter_async_context(occupied)
                is_busy = False
            except TimeoutError:
                is_busy = True
            body = buffered
            if is_form:
                # If the app is busy or full, the error page offers to send the form again.
                app_scope["state"]["form"], body = await read_form_body(buffered)
            if is_busy:
                message = "The server is busy just now. Try again in a minute."
                raise HTTPException(503, message, {"retry-after": "60"})
            if (
                config.metrics
                and exchange.is_write
                and exchange.path in config.max_upload_bytes_by_path
            ):
                slot.enter_context(config.metrics.track_running_import())

            async def record(message: Message) -> None:
                if message.get("more_body"):
                    await slot.aclose()  # before a file is streamed to a slow client
                await exchange.record_or_stream_response(message)

            await self._app(app_scope, body, record)

    def _record_metrics(self, exchange: HttpExchange, route_template: str) -> None:
        if self._config.metrics is not None:
            seconds = time.perf_counter() - exchange.begun_at
            self._config.metrics.record_response(
                exchange.method, route_template, exchange.status, seconds
            )

    def _log_if_slow_or_failed(self, exchange: HttpExchange, app_scope: Scope) -> None:
        seconds = time.perf_counter() - exchange.begun_at
        if seconds < _SLOW_REQUEST_SECONDS and exchange.status < 500:
            return
        known = {
            "request": exchange.request_id,
            "method": exchange.method,
            "route": self._config.route_templates.route_template_or_dash(app_scope),
            "status": exchange.status,
            "milliseconds": round(seconds * 1000),
        }
        _log.warning("request %s: %s %s answered %d after %d ms", *known.values(), extra=known)


def _ensure_path_prefix(scope: Scope, prefix: str) -> Scope:
    """Return the scope with the server's prefix, whether or not a proxy removed it."""
    path: str = scope["path"]
    if prefix and (path == prefix or path.startswith(f"{prefix}/")):
        path = path.removeprefix(prefix) or "/"
    return {**scope, "root_path": prefix, "path": f"{prefix}{path}"}


async def _load_current_course(live: LiveCourse) -> Course:
    """Return the current course.

    Checks the files in a thread, because reading an author's changes may take a second
    of processor time.
    """
    recent = live.get_recently_checked_course()
    if recent is not None:
        return recent
    return await to_thread.run_sync(live.get_current_course, limiter=_COURSE_THREAD)
