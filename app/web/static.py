"""Static files: read once, named by their content, kept by browsers for a year."""

import mimetypes
import re
from collections.abc import Mapping
from pathlib import Path

from app.web.compression import BEST_QUALITY, CompressedBody

# What every page needs is one file: fewer requests before the first paint.
_BUNDLES = {
    "css/headroom.css": (
        "css/tokens.css",
        "css/base.css",
        "css/controls.css",
        "css/parts.css",
        "css/instruments.css",
    ),
    "js/headroom.js": (
        "js/preferences.js",
        "js/buttons.js",
        "js/keys.js",
        "js/reading.js",
        "js/notice.js",
        "js/retry.js",
        "js/focus.js",
    ),
}
_COMMENT = re.compile(rb"^ *//.*\n", re.MULTILINE)
_LINK = re.compile(rb"url\(\.\./([^)]+)\)")
_TYPES = {".woff2": "font/woff2", ".js": "text/javascript", ".md": "text/plain"}
_PACKED_ALREADY = {".woff2", ".png", ".webp", ".jpg"}


class StaticAssets:
    """Everything under one folder, in memory, with its address and its headers."""

    def __init__(self, folder: Path) -> None:
        self._bodies = _read(folder)
        self.files: Mapping[str, CompressedBody] = {
            name: CompressedBody(self._linked(name), BEST_QUALITY) for name in self._bodies
        }

    def address(self, name: str) -> str:
        """The address of a file; it changes with the content.

        Raises KeyError when there is no such file, so a page cannot ask for it.
        """
        return f"/static/{name}?v={_version(self.files[name])}"

    async def answer(
        self, path: str, query: bytes, accepted: bytes, known: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body for a request below /static/."""
        name = path.removeprefix("/static/")
        file = self.files.get(name)
        if file is None:
            return 404, [(b"content-type", b"text/plain")], b"There is no such file."
        named = query == f"v={_version(file)}".encode()
        headers = [
            (b"etag", file.tag),
            (b"cache-control", _YEAR if named else b"no-cache"),
            (b"vary", b"accept-encoding"),
        ]
        if file.tag in known:
            return 304, headers, b""
        ready = Path(name).suffix in _PACKED_ALREADY
        body, encoding = await file.form(b"" if ready else accepted)
        if encoding:
            headers.append((b"content-encoding", encoding))
        headers.append((b"content-type", _type(name)))
        return 200, headers, body

    def _linked(self, name: str) -> bytes:
        # Style sheets name fonts; the font's address must change with its content
        # too, or an old one would be kept for a year.
        body = self._bodies[name]
        if not name.endswith(".css"):
            return body

        def with_version(link: re.Match[bytes]) -> bytes:
            target = link[1].decode()
            version = _version(CompressedBody(self._bodies[target]))
            return f"url(../{target}?v={version})".encode()

        return _LINK.sub(with_version, body)


_YEAR = b"public, max-age=31536000, immutable"


def _read(folder: Path) -> dict[str, bytes]:
    bodies = {
        str(file.relative_to(folder).as_posix()): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    for name in [name for name in bodies if name.startswith("js/")]:
        bodies[name] = _COMMENT.sub(b"", bodies[name])  # they are for the source
    for name, parts in _BUNDLES.items():
        bodies[name] = b"\n".join(bodies[part] for part in parts)
    return bodies


def _version(file: CompressedBody) -> str:
    return file.tag[1:11].decode()


def _type(name: str) -> bytes:
    suffix = Path(name).suffix
    kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    text = kind.startswith("text/")
    return f"{kind}; charset=utf-8".encode() if text else kind.encode()
