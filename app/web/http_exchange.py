"""One request and its response in the middleware.

The app writes URLs as if the server had no path prefix. Here, on the way out, the
prefix is added: in one place, so that no URL is missed.
"""

import re
import time

from starlette.types import Message, Scope, Send

from app.web.compression import CompressedBody
from app.web.rate_limits import client_key
from app.web.visitor import HOST_PREFIX, Visitor, set_cookie_line

Headers = list[tuple[bytes, bytes]]

_ADDRESS = re.compile(
    rb'(\s(?:href|src|action|formaction|hx-get|hx-post|data-(?:changes|over|stuck|to))=")'
    rb"/(?!/)"
)
_COOKIE_PATH = re.compile(rb"(;\s*Path=)/(?=;|$)", re.IGNORECASE)
_URL_HEADERS = {
    *(b"location", b"content-location"),
    *(b"hx-redirect", b"hx-location", b"hx-push-url", b"hx-replace-url"),
}
_TEXT = (b"text/", b"application/json", b"image/svg", b"application/problem")
# These pages show a person's name. After sign-out, Back must not show them.
_PERSONAL = ("/settings", "/continue")
# Tells the service worker to drop its cached pages, which belonged to another learner.
_NEW = (b"x-new-browser", b"yes")
_POLICY = (
    "default-src 'self'; "
    "img-src 'self' data:; "
    "object-src 'none'; "
    "base-uri 'none'; "
    "form-action 'self'; "
    "frame-ancestors 'none'"
)
_OF_PAGES = {b"permissions-policy", b"cross-origin-opener-policy"}  # they mean nothing on a file
_REFUSED = ("camera", "geolocation", "microphone", "payment", "usb", "browsing-topics")


def security_headers(*, https: bool) -> Headers:
    """Return the security headers of every response. `https` adds Strict-Transport-Security."""
    headers = {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": ", ".join(f"{name}=()" for name in _REFUSED),
    }
    if https:
        headers["strict-transport-security"] = "max-age=31536000"
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class HttpExchange:
    """One request, and the response once it is there.

    The app gets `record` instead of `send`: it holds a complete response back until
    `send_recorded` and passes a streamed one through. `security` are the headers of every
    response. `site` is the path prefix of the server, which cookies get; URLs get that of
    the course (`root_path`). `secure` means that the request came over TLS.
    """

    def __init__(
        self, scope: Scope, send: Send, security: Headers, site: str, *, secure: bool
    ) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.method: str = scope["method"]
        self.root: str = scope["root_path"]
        self.path: str = scope["path"].removeprefix(self.root)
        self.query: bytes = scope["query_string"]
        self.client = client_key(scope)
        self.visitor = Visitor(key="")
        self.course_cookie = b""
        self.begun = time.perf_counter()
        self.status = 0
        self.started = False
        self.body = b""
        self.number = ""
        self._send = send
        self._security = security
        self._site = site
        self._secure = secure
        self._recorded: Headers = []

    @property
    def writes(self) -> bool:
        """Whether the method is POST."""
        return self.method == "POST"

    async def record(self, message: Message) -> None:
        """Record the app's response, or pass it on if it is streamed."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._recorded = list(message["headers"])
        elif self.started:
            await self._send(message)
        elif message.get("more_body"):
            self.started = True
            await self._start(self.status, self._recorded + self._carried_headers())
            await self._send(message)
        else:
            self.body = message.get("body", b"")

    async def send_recorded(self) -> None:
        """Send the recorded response; 304 if the browser already has the same page."""
        recorded = dict(self._recorded)
        content_type = recorded.get(b"content-type", b"")
        usual = b"no-store" if self.path.startswith(_PERSONAL) else b"private, no-cache"
        caching = recorded.get(b"cache-control", usual)
        replaced = {b"content-length", b"cache-control"}
        headers = [pair for pair in self._recorded if pair[0] not in replaced]
        headers += [(b"cache-control", caching), (b"x-request-id", self.number.encode())]
        headers += self._carried_headers()
        if not content_type.startswith(_TEXT):
            await self.send(self.status, headers, self.body)
            return
        if self.root and content_type.startswith(b"text/html"):
            self.body = _ADDRESS.sub(rb"\g<1>" + self.root.encode() + b"/", self.body)
        body = CompressedBody(self.body)
        headers.append((b"vary", b"accept-encoding, cookie"))
        is_cacheable = self.status == 200 and not self.writes and b"no-store" not in caching
        if is_cacheable and b"etag" not in recorded:
            headers.append((b"etag", body.tag))
            if body.tag in self.headers.get(b"if-none-match", b""):
                await self.send(304, headers, b"")
                return
        encoded, encoding = await body.form(self.headers.get(b"accept-encoding", b""))
        if encoding:
            headers.append((b"content-encoding", encoding))
        await self.send(self.status, headers, encoded)

    async def redirect(self, address: str) -> None:
        """Redirect to another path of this server, with method and body (307)."""
        location = address.encode("latin-1", "replace")
        await self.send(307, [(b"location", location), (b"cache-control", b"no-store")], b"")

    async def send(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response."""
        if status != 304:
            headers.append((b"content-length", str(len(body)).encode()))
        await self._start(status, headers)
        shown = b"" if self.method == "HEAD" else body
        await self._send({"type": "http.response.body", "body": shown})

    def _carried_headers(self) -> Headers:
        # A new browser gets its key with the first response. A write renews the cookie,
        # because browsers drop cookies after 400 days.
        visitor = self.visitor
        line = visitor.renewal if self.writes else visitor.cookie
        names = [_cookie_name(value) for name, value in self._recorded if name == b"set-cookie"]
        lines = []
        if line and _cookie_name(line) not in names:
            names.append(_cookie_name(line))
            lines.append(line)
        lines += [
            set_cookie_line(name, "", 0) for name in visitor.obsolete if HOST_PREFIX + name in names
        ]
        if self.course_cookie:
            lines.append(self.course_cookie)
        headers = [(b"set-cookie", line) for line in lines]
        return [*headers, _NEW] if visitor.cookie else headers

    async def _start(self, status: int, headers: Headers) -> None:
        """Send the head, with the security headers that the route has not set itself."""
        self.status = status
        without = {name for name, _ in headers}
        if self.path.startswith("/static/"):
            without |= _OF_PAGES
        headers = headers + [pair for pair in self._security if pair[0] not in without]
        headers = [(name, self._public_value(name, value)) for name, value in headers]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _public_value(self, name: bytes, value: bytes) -> bytes:
        """Return a header with the path prefix; a cookie sent over TLS is Secure."""
        if name in _URL_HEADERS and value.startswith(b"/") and not value.startswith(b"//"):
            return self.root.encode() + value
        if name == b"set-cookie":
            value = _COOKIE_PATH.sub(rb"\g<1>" + self._site.encode() + b"/", value)
            if self._secure and b"; secure" not in value.lower():
                value += b"; Secure"
        return value


def _cookie_name(line: bytes) -> str:
    return line.partition(b"=")[0].decode("latin-1")
