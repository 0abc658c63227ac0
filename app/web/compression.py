"""Bytes of an answer with their compressed forms, made once and chosen by the asker."""

import gzip
import hashlib

import brotli  # type: ignore[import-untyped]  # it ships no types

_SMALL = 400  # below this a compressed answer saves no packet
_LONG, _THOROUGH = 75_000, 11


def quality_of(body: bytes, *, shared: bool) -> int:
    """How thoroughly a page is compressed that is kept: 5, or 11 of 11.

    A long page costs 3 ms at the former and 150 ms at the latter, for an eighth fewer
    bytes. That is worth it for the lists that strangers share (glossary, sources), and
    not for a page that is made anew whenever its one learner writes.
    """
    return _THOROUGH if shared and len(body) >= _LONG else 5


class Packed:
    """A body that is answered often; compressed when first asked for."""

    __slots__ = ("_brotli", "_gzip", "_quality", "body", "tag")

    def __init__(self, body: bytes, quality: int = 5) -> None:
        self.body = body
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._quality = quality
        self._brotli = b""
        self._gzip = b""

    def form(self, accepted: bytes) -> tuple[bytes, bytes]:
        """The body for an Accept-Encoding header, and the name of its encoding."""
        if len(self.body) < _SMALL:
            return self.body, b""
        if b"br" in accepted:
            self._brotli = self._brotli or brotli.compress(
                self.body, quality=self._quality
            )
            return self._brotli, b"br"
        if b"gzip" in accepted:
            self._gzip = self._gzip or gzip.compress(self.body, 6, mtime=0)
            return self._gzip, b"gzip"
        return self.body, b""
