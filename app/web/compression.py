"""Response bodies with their compressed forms, chosen by what the client accepts."""

import functools
import gzip
import hashlib

import anyio
import brotli  # type: ignore[import-untyped]  # it ships no types
from anyio import to_thread

_SMALL = 400  # below this a compressed response saves no packet
_LONG = 32_000  # above this compressing takes milliseconds, so it is done in a thread
QUALITY = 5
"""How thoroughly brotli compresses a page: 2 ms for 100 kB."""
BEST_QUALITY = 11
"""For files, and for long pages that strangers share: 100 ms, an eighth fewer bytes."""
LONG_PAGE = 75_000
"""Bytes from which an eighth of a page is worth that time."""
# One at a time: however many are asked for, the rest of the server goes on.
_THREAD = anyio.CapacityLimiter(1)
_LEVEL = 5  # of gzip


class CompressedBody:
    """A body that may be sent often; compressed when a client first asks for it."""

    __slots__ = ("_forms", "_quality", "body", "tag")

    def __init__(self, body: bytes, quality: int = QUALITY) -> None:
        self.body = body
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._quality = quality
        self._forms: dict[bytes, bytes] = {}

    async def form(self, accepted: bytes) -> tuple[bytes, bytes]:
        """The body for an Accept-Encoding header, and the name of its encoding."""
        encoding = _choose_encoding(accepted)
        if len(self.body) < _SMALL or not encoding:
            return self.body, b""
        if encoding not in self._forms:
            work = functools.partial(_compress, self.body, encoding, self._quality)
            is_quick = len(self.body) < _LONG and self._quality == QUALITY
            form = work() if is_quick else await to_thread.run_sync(work, limiter=_THREAD)
            self._forms[encoding] = form
        return self._forms[encoding], encoding


def _choose_encoding(accepted: bytes) -> bytes:
    return next((name for name in (b"br", b"gzip") if name in accepted), b"")


def _compress(body: bytes, encoding: bytes, quality: int) -> bytes:
    if encoding == b"br":
        compressed: bytes = brotli.compress(body, quality=quality)
        return compressed
    return gzip.compress(body, _LEVEL, mtime=0)
