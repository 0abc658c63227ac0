"""Templates, static files and compressed bodies: from a value to what is sent."""

import functools
import gzip
import hashlib
import mimetypes
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import brotli  # type: ignore[import-untyped]
from anyio import to_thread
from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from app.content.live_courses import CourseRegistry
from app.estimator.units import format_value
from app.markup.text import same_language, text_direction
from app.web.formatting import (
    format_count_with_noun,
    format_date_with_weekday,
    format_date_with_year,
    format_minutes_at_least_one,
    format_minutes_without_unit,
    format_percent,
    format_points,
    format_points_rounded,
    format_time_of_day,
    format_time_spent,
)
from app.widgets.estimate_view import format_interval_or_exact
from app.widgets.svg import (
    VERDICT_ICONS,
    draw_named_share_meters,
    draw_option_shares,
    draw_share_meter,
)

_MIN_COMPRESSED_BYTES = 400  # bytes; below this, compression saves no packet
# bytes; above this, compression takes milliseconds and runs in a thread
_COMPRESSED_IN_THREAD_FROM_BYTES = 32_000
_PAGE_LEVEL = 8  # of both encodings: 3 ms for 100 kB, 1% smaller than at level 6
FILE_LEVEL = 11  # for what is compressed once: 8% smaller than at level 5, 60 ms for 100 kB
# One at a time, so that compression does not slow down other requests.
_COMPRESSION_THREAD = anyio.CapacityLimiter(1)


class CompressedBody:
    """A response body that is compressed on demand, once for each encoding."""

    __slots__ = ("_encoded", "_level", "body", "tag")

    def __init__(self, body: bytes, level: int = _PAGE_LEVEL) -> None:
        self.body = body
        self._level = level
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._encoded: dict[bytes, bytes] = {}

    async def encode_for(self, accept_encoding: bytes) -> tuple[bytes, bytes]:
        """Return the body, and in which of the accepted encodings it is, or b"" for none."""
        encoding = next((name for name in (b"br", b"gzip") if name in accept_encoding), b"")
        if len(self.body) < _MIN_COMPRESSED_BYTES or not encoding:
            return self.body, b""
        if encoding not in self._encoded:
            if len(self.body) < _COMPRESSED_IN_THREAD_FROM_BYTES:
                encoded = _compress(self.body, encoding, self._level)
            else:
                encoded = await to_thread.run_sync(
                    _compress, self.body, encoding, self._level, limiter=_COMPRESSION_THREAD
                )
            self._encoded[encoding] = encoded
        return self._encoded[encoding], encoding


def _compress(body: bytes, encoding: bytes, level: int) -> bytes:
    if encoding == b"br":
        compressed: bytes = brotli.compress(body, quality=level)
        return compressed
    return gzip.compress(body, min(level, 9), mtime=0)


# Files that every page needs are bundled: fewer requests before the first paint.
_SOURCES_BY_CSS_BUNDLE = {
    "css/headroom.css": (
        "css/tokens.css",
        "css/base.css",
        "css/controls.css",
        "css/parts.css",
        "css/instruments.css",
        "css/search.css",
    ),
    "js/headroom.js": (
        "js/preferences.js",
        "js/buttons.js",
        "js/keys.js",
        "js/overlay.js",
        "js/reading.js",
        "js/notice.js",
        "js/retry.js",
        "js/focus.js",
        "js/htmx_config.js",
    ),
}
# Comments and indentation are only for the source.
_COMMENT_OR_INDENT = re.compile(rb"^ *(//.*|/\*[^\n]*\*/)\n|^ +", re.MULTILINE)
_RELATIVE_CSS_URL = re.compile(rb"url\(\.\./([^)]+)\)")
_MEDIA_TYPE_BY_SUFFIX = {".woff2": "font/woff2", ".js": "text/javascript", ".md": "text/plain"}
_PACKED_ALREADY = {".woff2", ".png", ".webp", ".jpg"}


class StaticAssets:
    """The static files of a folder, in memory, with URLs and headers."""

    def __init__(self, folder: Path) -> None:
        self._bodies = _read_static_files(folder)
        self.files: Mapping[str, CompressedBody] = {
            name: CompressedBody(self._add_versions_to_font_urls(name), FILE_LEVEL)
            for name in self._bodies
        }

    def versioned_url(self, name: str) -> str:
        """Return the URL of a file, which includes a hash of its content.

        Raises KeyError for a missing file, so that a page cannot refer to one.
        """
        return f"/static/{name}?v={_content_version(self.files[name])}"

    async def respond(
        self, path: str, query: bytes, request_headers: Mapping[bytes, bytes]
    ) -> "StaticResponse":
        """Respond to a request below /static/ that has the headers `request_headers`."""
        name = path.removeprefix("/static/")
        file = self.files.get(name)
        if file is None:
            headers = [(b"content-type", b"text/plain")]
            return StaticResponse(404, headers, b"There is no such file.")
        named = query == f"v={_content_version(file)}".encode()
        headers = [
            (b"etag", file.tag),
            (b"cache-control", _CACHE_FOR_A_YEAR if named else b"no-cache"),
            (b"vary", b"accept-encoding"),
        ]
        if file.tag in request_headers.get(b"if-none-match", b""):
            return StaticResponse(304, headers, b"")
        ready = Path(name).suffix in _PACKED_ALREADY
        accepted = b"" if ready else request_headers.get(b"accept-encoding", b"")
        body, encoding = await file.encode_for(accepted)
        if encoding:
            headers.append((b"content-encoding", encoding))
        headers.append((b"content-type", _content_type_of_static_file(name)))
        return StaticResponse(200, headers, body)

    def _add_versions_to_font_urls(self, name: str) -> bytes:
        # Style sheets refer to fonts. The font URL must include a hash as well, or
        # browsers would use an old font for a year.
        body = self._bodies[name]
        if not name.endswith(".css"):
            return body

        def with_version(link: re.Match[bytes]) -> bytes:
            target = link[1].decode()
            version = _content_version(CompressedBody(self._bodies[target]))
            return f"url(../{target}?v={version})".encode()

        return _RELATIVE_CSS_URL.sub(with_version, body)


class StaticResponse(NamedTuple):
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


_CACHE_FOR_A_YEAR = b"public, max-age=31536000, immutable"


def _read_static_files(folder: Path) -> dict[str, bytes]:
    bodies = {
        str(file.relative_to(folder).as_posix()): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    for name in [name for name in bodies if name.startswith(("js/", "css/"))]:
        bodies[name] = _COMMENT_OR_INDENT.sub(b"", bodies[name])
    for name, parts in _SOURCES_BY_CSS_BUNDLE.items():
        bodies[name] = b"\n".join(bodies[part] for part in parts)
    return bodies


def _content_version(file: CompressedBody) -> str:
    return file.tag[1:11].decode()


def _content_type_of_static_file(file_name: str) -> bytes:
    suffix = Path(file_name).suffix
    kind = _MEDIA_TYPE_BY_SUFFIX.get(suffix) or mimetypes.guess_type(file_name)[0] or "text/plain"
    text = kind.startswith("text/")
    return f"{kind}; charset=utf-8".encode() if text else kind.encode()


INTERFACE_LANGUAGE = "en"
"""The language of the user interface."""


def create_template_env(template_folder: Path, static: StaticAssets) -> Environment:
    """Return the Jinja environment: autoescape on, undefined names raise."""
    environment = Environment(
        loader=FileSystemLoader(template_folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["quantity"] = format_value
    environment.filters["prevent_line_breaks_in_codes"] = prevent_line_breaks_in_codes
    for function in (
        *(format_date_with_year, format_date_with_weekday, format_count_with_noun),
        *(format_minutes_at_least_one, format_time_spent, format_minutes_without_unit),
        *(format_percent, format_points, format_points_rounded),
        *(format_time_of_day, format_interval_or_exact),
        *(draw_share_meter, draw_named_share_meters, draw_option_shares),
    ):
        environment.globals[function.__name__] = function
    environment.globals |= {
        "VERDICT_ICONS": VERDICT_ICONS,
        "asset": static.versioned_url,
        "frame_note": _footer_note,
        "offers_author_pages": _should_link_author_pages,
        "has_courses": _has_several_courses,
        "has_calculators": _has_calculators,
    }
    return environment


def render_page(
    request: Request, template: str, *, status: int = 200, **context: Any
) -> HTMLResponse:
    """Render a whole page, or a fragment with its own URL.

    A template gets only what its route passes. The page frame needs `learner` (see
    `accounts.current_learner`) and reads the rest from `request`.
    """
    answer = HTMLResponse(_render_template(request, template, context), status)
    if getattr(context.get("learner"), "row_id_in_any_course", 0) and not _is_secure_context(
        request
    ):
        # Insecure origins ignore Clear-Site-Data, so after sign-out Back would show the
        # page with the learner's name.
        answer.headers["cache-control"] = "no-store"
    return answer


def render_fragment_or_redirect(
    request: Request, fragment: str, *, redirect_url: str, **context: Any
) -> Response:
    """Respond to a write: a fragment for htmx, a redirect for a plain form."""
    if is_htmx_request(request):
        return HTMLResponse(_render_template(request, fragment, context))
    return RedirectResponse(redirect_url, status_code=303)


def is_htmx_request(request: Request) -> bool:
    return request.headers.get("HX-Request") == "true"


def _footer_note(request: Request) -> str:
    notes: tuple[str, ...] = request.state.course.syllabus.notes
    return notes[0] if notes else ""


def _should_link_author_pages(request: Request) -> bool:
    """Return whether to link the author pages: this browser has an author cookie."""
    return bool(request.state.visitor.author_token and request.app.state.settings.authoring)


def _has_several_courses(request: Request) -> bool:
    courses: CourseRegistry = request.app.state.courses
    return len(courses.live_courses) > 1


def _has_calculators(request: Request) -> bool:
    return bool(request.state.course.syllabus.offers_calculators)


def _render_template(request: Request, template: str, context: dict[str, Any]) -> str:
    environment: Environment = request.app.state.templates
    language = request.state.course.syllabus.language
    whole = {"request": request, **create_language_variables(language), **context}
    html = environment.get_template(template).render(whole)
    return isolate_left_to_right_text(html) if text_direction(language) == "rtl" else html


_VERBATIM_PATTERN = r"<(?P<tag>script|style|textarea|pre|code|title)\b.*?</(?P=tag)>|<[^>]*>"
_AMOUNT_PATTERN = (
    r"[-+\u2212~\u2248]?\d[\d.,:]*\s*[-\u2013\u2026]?\s*[\d.,]*\s*[A-Za-zµΩ°$€][\w/²³·]*(?!;)"
)
_ISOLATED_TEXT = re.compile(
    rf"(?P<lead><(?P<b>b|strong)>)(?=(?:What|Common)[\w ]+\.</(?P=b)>)|{_VERBATIM_PATTERN}|(?P<amount>{_AMOUNT_PATTERN})",
    re.DOTALL,
)


def isolate_left_to_right_text(html: str) -> str:
    r"""Return a page of a right-to-left course in which amounts and English labels stay in order.

    Else the number and the unit of 50 g change places.

    >>> isolate_left_to_right_text("<b>50 g</b> <code>5 g</code>") == (
    ...     "<b>\u206650 g\u2069</b> <code>5 g</code>"
    ... )
    True
    """

    def isolate(match: re.Match[str]) -> str:
        if match["amount"]:
            return f"\u2066{match[0]}\u2069"
        if match["lead"]:
            return f'<{match["b"]} lang="{INTERFACE_LANGUAGE}" dir="ltr">'
        return match[0]

    return _ISOLATED_TEXT.sub(isolate, html)


_EXAM_CODE = re.compile(r"\b[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)+\b")


def prevent_line_breaks_in_codes(text: str) -> Markup:
    """Return a text in which no line breaks within a code such as an exam's.

    >>> print(prevent_line_breaks_in_codes("CB-1 mock exam & more"))
    <span class="whole">CB-1</span> mock exam &amp; more
    """
    marked = _EXAM_CODE.sub(r'<span class="whole">\g<0></span>', str(escape(text)))
    return Markup(marked)  # noqa: S704 - escaped above


def create_language_variables(language: str) -> dict[str, Any]:
    """Return the language marks for templates; empty if the course is in the UI language.

    `lang` is the attribute for an element with course text, `english` for UI text
    inside one. `authored` wraps course text inside UI text; `authored_after_colon` wraps what follows
    a colon. Names inside of UI sentences are not marked.

    >>> "<h1{lang}>".format(**create_language_variables("de")), "<h1{lang}>".format(**create_language_variables("en-GB"))
    ('<h1 lang="de">', '<h1>')
    >>> print(create_language_variables("ar")["lang"])
     lang="ar" dir="rtl"
    >>> print(create_language_variables("de")["authored"]("Druck & Zug"))
    <bdi lang="de">Druck &amp; Zug</bdi>
    >>> print(create_language_variables("de")["authored_after_colon"]("Read: Druck"))
    Read: <bdi lang="de">Druck</bdi>
    """
    if same_language(language, INTERFACE_LANGUAGE):
        same = {"authored": escape, "authored_after_colon": escape}
        return {"lang": Markup(), "english": Markup(), **same}
    authored = functools.partial(Markup('<bdi lang="{}">{}</bdi>').format, language)
    right_to_left = text_direction(language) == "rtl"
    return {
        "lang": Markup(' lang="{}"').format(language) + Markup(' dir="rtl"') * right_to_left,
        "english": Markup(' lang="{}"').format(INTERFACE_LANGUAGE)
        + Markup(' dir="ltr"') * right_to_left,
        "authored": authored,
        "authored_after_colon": functools.partial(_mark_text_after_colon, authored),
    }


def _mark_text_after_colon(authored: Callable[[str], Markup], text: str) -> Markup:
    ours, colon, name = text.partition(": ")
    return escape(ours + colon) + (authored(name) if name else "")


def _is_secure_context(request: Request) -> bool:
    """Return whether browsers treat the connection as secure: HTTPS or localhost."""
    host = request.url.hostname or ""
    return request.state.is_https or host in {"localhost", "::1"} or host.startswith("127.")
