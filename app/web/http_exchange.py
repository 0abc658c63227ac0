"""One request and its response in the middleware.

The app writes URLs as if the server had no path prefix. Here, on the way out, the
prefix is added: in one place, so that no URL is missed.
"""

import re
import time

from starlette.types import Message, Scope, Send

from app.web.headers import Headers
from app.web.page_cache import USUAL_CACHING, CachedPage, CompressedBody, Target
from app.web.rate_limits import client_key
from app.web.visitor import COOKIE, Visitor

# Text that people wrote is escaped on pages, so it cannot match.
_ADDRESS = re.compile(
    rb'(\s(?:href|src|action|formaction|hx-get|hx-post|data-(?:changes|over|stuck|to))=")'
    rb"/(?!/)"
)
_PATH = re.compile(rb"(;\s*Path=)/(?=;|$)", re.IGNORECASE)
_HEADERS = {
    *(b"location", b"content-location"),
    *(b"hx-redirect", b"hx-location", b"hx-push-url", b"hx-replace-url"),
}


def body_below(root: str, body: bytes) -> bytes:
    """Prefix the URLs in a page with `root`, e.g. “/study”."""
    return _ADDRESS.sub(rb"\g<1>" + root.encode() + b"/", body) if root else body


def headers_below(root: str, site: str, words: Headers) -> Headers:
    """Prefix the URLs in headers with `root`, and the paths of cookies with `site`."""
    return [(name, _header_below(root, site, name, value)) for name, value in words]


def _header_below(root: str, site: str, name: bytes, value: bytes) -> bytes:
    if name in _HEADERS and value.startswith(b"/") and not value.startswith(b"//"):
        return root.encode() + value
    if name == b"set-cookie":
        return _PATH.sub(rb"\g<1>" + site.encode() + b"/", value)
    return value


_TEXT = (b"text/", b"application/json", b"image/svg", b"application/problem")
_SESSION_COOKIE_PREFIX = f"{COOKIE}=".encode()
# These pages show a person's name. After sign-out, Back must not show them.
_PERSONAL = ("/settings", "/continue")
# Tells the service worker to drop its cached pages, which belonged to another learner.
_NEW = (b"x-new-browser", b"yes")


class HttpExchange:
    """One request, and the response once it is there.

    The app gets `record` instead of `send`: it holds a complete response back until
    `finish` and passes a streamed one through. `https` means that every request comes
    over TLS, even if the scope does not say so.
    """

    def __init__(
        self,
        scope: Scope,
        send: Send,
        visitor: Visitor,
        words: Headers,
        *,
        https: bool,
    ) -> None:
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.hosts = [value for name, value in scope["headers"] if name == b"host"]
        self.method: str = scope["method"]
        self.root: str = scope.get("root_path", "")
        self._site = self.root
        self._chosen: Headers = []
        self.path: str = scope["path"].removeprefix(self.root)
        self.target: Target = (scope["path"], scope["query_string"], self.root)
        self.client = client_key(scope)
        self.visitor = visitor
        self.begun = time.perf_counter()
        self.status = 0
        self.started = False
        self.body = b""
        self.number = ""
        self._send = send
        self._words = words
        self._secure = https or scope.get("scheme") == "https"
        self._recorded: Headers = []

    def belongs_to(self, site: str, chosen: bytes) -> None:
        """Set the cookie path to the server's prefix, and add the Set-Cookie line `chosen`."""
        self._site = site
        self._chosen = [(b"set-cookie", chosen)] if chosen else []

    @property
    def reads(self) -> bool:
        """Whether the method is GET or HEAD."""
        return self.method in {"GET", "HEAD"}

    @property
    def is_cacheable(self) -> bool:
        """Whether the response may come from the page cache or be stored in it.

        Requests with a query are excluded: a client can invent any number of them.
        """
        return self.reads and not self.target[1]

    @property
    def writes(self) -> bool:
        """Whether the method is POST."""
        return self.method == "POST"

    @property
    def kind(self) -> bytes:
        """The content type of the recorded response."""
        return dict(self._recorded).get(b"content-type", b"")

    @property
    def caching(self) -> bytes:
        """The Cache-Control header of the recorded response."""
        usual = b"no-store" if self.path.startswith(_PERSONAL) else USUAL_CACHING
        return dict(self._recorded).get(b"cache-control", usual)

    async def record(self, message: Message) -> None:
        """Record the app's response, or pass it on if it is streamed."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._recorded = list(message["headers"])
        elif self.started:
            await self._send(message)
        elif message.get("more_body"):
            self.started = True
            words = self._recorded + self._carried_headers()
            await self._start(self.status, self._with_security(words))
            await self._send(message)
        else:
            self.body = message.get("body", b"")
            if self.kind.startswith(b"text/html"):
                self.body = body_below(self.root, self.body)

    async def send_cached(self, kept: CachedPage) -> None:
        """Send a cached page, or 304 if the browser already has it."""
        words = [
            (b"etag", kept.packed.tag),
            (b"cache-control", kept.caching),
            (b"vary", b"accept-encoding, cookie"),
        ]
        if self.number:  # just rendered, so the log may mention this request
            words.append((b"x-request-id", self.number.encode()))
        if self.visitor.cookie:
            words += [(b"set-cookie", self.visitor.cookie), _NEW]
        words += self._chosen
        if kept.packed.tag in self.headers.get(b"if-none-match", b""):
            # On 304 the browser uses the other headers of its cached page.
            await self._start(304, words)
            await self._send({"type": "http.response.body", "body": b""})
            return
        words.append((b"content-type", kept.kind))
        await self._packed(200, words, kept.packed)

    async def finish(self) -> None:
        """Send the recorded response."""
        replaced = {b"content-length", b"cache-control"}
        words = [pair for pair in self._recorded if pair[0] not in replaced]
        words.append((b"cache-control", self.caching))
        words += self._carried_headers()
        words.append((b"x-request-id", self.number.encode()))
        if self.kind.startswith(_TEXT):
            words.append((b"vary", b"accept-encoding"))
            await self._packed(self.status, words, CompressedBody(self.body))
        else:
            await self._whole_response(self.status, words, self.body)

    async def redirect(self, address: str) -> None:
        """Redirect to another path of this server, with method and body (307)."""
        words = [(b"location", address.encode("latin-1", "replace"))]
        words.append((b"cache-control", b"no-store"))
        await self._whole_response(307, words, b"")

    async def send_file(self, status: int, words: Headers, body: bytes) -> None:
        await self._whole_response(status, words, body)

    def _carried_headers(self) -> Headers:
        # A new browser gets its key with the first response. A write renews the cookie,
        # because browsers drop cookies after 400 days.
        line = self.visitor.renewal if self.method == "POST" else self.visitor.cookie
        chosen = any(
            name == b"set-cookie" and value.startswith(_SESSION_COOKIE_PREFIX)
            for name, value in self._recorded
        )
        words = [(b"set-cookie", line)] if line and not chosen else []
        words += self._chosen
        return [*words, _NEW] if self.visitor.cookie else words

    def _with_security(self, headers: Headers) -> Headers:
        """Add the security headers, except those that the route has set."""
        own = {name for name, _ in headers}
        return headers + [pair for pair in self._words if pair[0] not in own]

    async def _packed(self, status: int, words: Headers, packed: CompressedBody) -> None:
        body, encoding = await packed.form(self.headers.get(b"accept-encoding", b""))
        if encoding:
            words.append((b"content-encoding", encoding))
        await self._whole_response(status, words, body)

    async def _whole_response(self, status: int, words: Headers, body: bytes) -> None:
        if status != 304:
            words.append((b"content-length", str(len(body)).encode()))
        await self._start(status, self._with_security(words))
        shown = b"" if self.method == "HEAD" else body
        await self._send({"type": "http.response.body", "body": shown})

    async def _start(self, status: int, words: Headers) -> None:
        self.status = status
        if self.root:
            words = headers_below(self.root, self._site, words)
        if self._secure:
            words = [_only_over_tls(name, value) for name, value in words]
        await self._send({"type": "http.response.start", "status": status, "headers": words})


def _only_over_tls(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Mark a cookie sent over TLS as Secure."""
    if name != b"set-cookie" or b"; secure" in value.lower():
        return name, value
    return name, value + b"; Secure"
