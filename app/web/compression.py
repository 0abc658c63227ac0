"""Compression of responses."""

import gzip
import hashlib

import anyio
import brotli  # type: ignore[import-untyped]
from anyio import to_thread

_SMALL = 400  # bytes; below this, compression saves no packet
_LONG = 32_000  # bytes; above this, compression takes milliseconds and runs in a thread
_PAGE_LEVEL = 6  # of both encodings: 2 ms for 100 kB
FILE_LEVEL = 11  # for what is compressed once: 8% smaller than at level 5, 60 ms for 100 kB
# One at a time, so that compression does not slow down other requests.
_THREAD = anyio.CapacityLimiter(1)


class CompressedBody:
    """A response body that is compressed on demand, once for each encoding."""

    __slots__ = ("_encoded", "_level", "body", "tag")

    def __init__(self, body: bytes, level: int = _PAGE_LEVEL) -> None:
        self.body = body
        self._level = level
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._encoded: dict[bytes, bytes] = {}

    async def form(self, accepted: bytes) -> tuple[bytes, bytes]:
        """Return the body in an accepted encoding, and the name of the encoding."""
        encoding = next((name for name in (b"br", b"gzip") if name in accepted), b"")
        if len(self.body) < _SMALL or not encoding:
            return self.body, b""
        if encoding not in self._encoded:
            if len(self.body) < _LONG:
                encoded = _compress(self.body, encoding, self._level)
            else:
                encoded = await to_thread.run_sync(
                    _compress, self.body, encoding, self._level, limiter=_THREAD
                )
            self._encoded[encoding] = encoded
        return self._encoded[encoding], encoding


def _compress(body: bytes, encoding: bytes, level: int) -> bytes:
    if encoding == b"br":
        compressed: bytes = brotli.compress(body, quality=level)
        return compressed
    return gzip.compress(body, min(level, 9), mtime=0)
