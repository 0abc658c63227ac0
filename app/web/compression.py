"""Response bodies with their compressed forms, chosen by what the client accepts."""

import gzip
import hashlib

import brotli  # type: ignore[import-untyped]  # it ships no types
from fastapi.concurrency import run_in_threadpool

_SMALL = 400  # below this a compressed response saves no packet
_LONG = 32_000  # above this compressing takes milliseconds, so it is done in a thread
_QUALITY = 5  # of brotli; 11 would take 50 times as long for an eighth fewer bytes
_LEVEL = 5  # of gzip


class Packed:
    """A body that may be sent often; compressed when a client first asks for it."""

    __slots__ = ("_forms", "body", "tag")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._forms: dict[bytes, bytes] = {}

    async def form(self, accepted: bytes) -> tuple[bytes, bytes]:
        """The body for an Accept-Encoding header, and the name of its encoding."""
        encoding = _choose_encoding(accepted)
        if len(self.body) < _SMALL or not encoding:
            return self.body, b""
        if encoding not in self._forms:
            if len(self.body) < _LONG:
                self._forms[encoding] = _compress(self.body, encoding)
            else:
                self._forms[encoding] = await run_in_threadpool(
                    _compress, self.body, encoding
                )
        return self._forms[encoding], encoding


def _choose_encoding(accepted: bytes) -> bytes:
    return next((name for name in (b"br", b"gzip") if name in accepted), b"")


def _compress(body: bytes, encoding: bytes) -> bytes:
    if encoding == b"br":
        compressed: bytes = brotli.compress(body, quality=_QUALITY)
        return compressed
    return gzip.compress(body, _LEVEL, mtime=0)
