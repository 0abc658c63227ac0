"""Page cache and compression of responses."""

import dataclasses
import datetime as dt
import functools
import gzip
import hashlib
import math
import sqlite3
from collections.abc import Collection
from typing import Literal

import anyio
import brotli  # type: ignore[import-untyped]
from anyio import to_thread
from cachetools import LRUCache
from fastapi import Request

from app.database.change_tracking import DataVersion
from app.web.visitor import Visitor

_SMALL = 400  # bytes; below this, compression saves no packet
_LONG = 32_000  # bytes; above this, compression takes milliseconds and runs in a thread
QUALITY = 5
"""Brotli quality for pages: 2 ms for 100 kB."""
BEST_QUALITY = 11
"""Brotli quality for files and long shared pages: 100 ms, an eighth smaller."""
LONG_PAGE = 75_000
"""Bytes from which a shared page is compressed with the best quality."""
# One at a time, so that compression does not slow down other requests.
_THREAD = anyio.CapacityLimiter(1)
_LEVEL = 5  # of gzip


class CompressedBody:
    """A response body that is compressed on demand, with the result cached."""

    __slots__ = ("_forms", "_quality", "body", "tag")

    def __init__(self, body: bytes, quality: int = QUALITY) -> None:
        self.body = body
        self.tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'.encode()
        self._quality = quality
        self._forms: dict[bytes, bytes] = {}

    async def form(self, accepted: bytes) -> tuple[bytes, bytes]:
        """Return the body in an accepted encoding, and the name of the encoding."""
        encoding = _choose_encoding(accepted)
        if len(self.body) < _SMALL or not encoding:
            return self.body, b""
        if encoding not in self._forms:
            work = functools.partial(_compress_body, self.body, encoding, self._quality)
            is_quick = len(self.body) < _LONG and self._quality == QUALITY
            form = work() if is_quick else await to_thread.run_sync(work, limiter=_THREAD)
            self._forms[encoding] = form
        return self._forms[encoding], encoding


def _choose_encoding(accepted: bytes) -> bytes:
    return next((name for name in (b"br", b"gzip") if name in accepted), b"")


def _compress_body(body: bytes, encoding: bytes, quality: int) -> bytes:
    if encoding == b"br":
        compressed: bytes = brotli.compress(body, quality=quality)
        return compressed
    return gzip.compress(body, _LEVEL, mtime=0)


_KNOWN = 4000  # learners whose change counter is cached
_BYTES = 64 * 1024 * 1024
_ENTRY = 1000  # approximate overhead of an entry in bytes
_LARGEST_SHARE = 16  # a page may use at most this fraction of the cache
_STRANGER = -1
USUAL_CACHING = b"private, no-cache"
"""The default Cache-Control of a page."""

Sharing = Literal["all", "strangers", "nobody"]
Target = tuple[str, bytes, str]
"""The path, the query and the URL prefix that a page was rendered for."""
Key = tuple[str, bytes, str, str, str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class CachePolicy:
    """How a response may be cached: until when, and shared with whom."""

    until: float
    sharing: Sharing


@dataclasses.dataclass(frozen=True, slots=True)
class CachedPage:
    """A cached response, with everything its validity depends on."""

    packed: CompressedBody
    kind: bytes
    version: str
    changes: int | None
    until: float
    caching: bytes = USUAL_CACHING


@dataclasses.dataclass(frozen=True, slots=True)
class CacheStamp:
    """The state that a response depends on, read before it is rendered.

    `changes` counts the learner's writes. It is −1 before the first, and None if the
    session was revoked or if writes cannot be detected; then only shared pages are
    served from the cache.
    """

    version: str
    time: float
    changes: int | None


def allow_caching(
    request: Request,
    until: dt.datetime | None = None,
    *,
    shared: bool = False,
    strangers: bool = False,
) -> None:
    """Let the response of this route be cached for the same learner.

    It expires when the course changes, when the learner writes anything, and at
    `until`. `shared`: the same for everybody, because it shows no name, no theme and no
    page frame. `strangers`: shared by all visitors without a learner row, because it
    contains no form token.
    """
    end = until.timestamp() if until else math.inf
    request.state.wish = CachePolicy(
        end, "all" if shared else "strangers" if strangers else "nobody"
    )


class PageCache:
    """The page cache of one process, which evicts the least recently used pages.

    It takes at most `most` bytes, including compressed bodies, URLs and keys.
    """

    def __init__(self, pulse: DataVersion | None, most: int = _BYTES) -> None:
        self._pulse = pulse
        self._kept: LRUCache[Key, tuple[CachedPage, int]] = LRUCache(
            most, getsizeof=lambda entry: entry[1]
        )
        self._beat = 0
        self._changes: dict[str, int | None] = {}

    @property
    def size(self) -> int:
        """The size of the cache in bytes."""
        return int(self._kept.currsize)

    def changes(self, visitor: Visitor) -> int | None:
        """Return the change counter of the visitor's learner, across processes.

        Returns None if it is unknown, also on database errors: the app handles those,
        and pages without a database still work.
        """
        if self._pulse is None:
            return None
        if visitor.cookie:
            return _STRANGER  # this session key was just created, so nothing was written with it
        try:
            return self._count_changes(self._pulse, visitor.digest)
        except sqlite3.Error:
            return None

    def _count_changes(self, pulse: DataVersion, digest: str) -> int | None:
        beat = pulse.read_version()
        if beat != self._beat or len(self._changes) > _KNOWN:
            self._changes.clear()
            self._beat = beat
        if digest not in self._changes:
            self._changes[digest] = pulse.changes(digest)
        return self._changes[digest]

    def find(self, target: Target, visitor: Visitor, now: CacheStamp) -> CachedPage | None:
        """Return the cached page, if it is still valid."""
        for key in _cache_keys(target, visitor, now.changes):
            entry = self._kept.get(key)
            if entry is None:
                continue
            if _is_fresh(entry[0], now):
                return entry[0]
            self._kept.pop(key, None)
        return None

    def put(self, target: Target, visitor: Visitor, kept: CachedPage, sharing: Sharing) -> None:
        """Cache a page."""
        key = _cache_key(target, visitor, kept.changes, sharing)
        size = _ENTRY + 2 * len(kept.packed.body) + sum(map(len, key))
        if size <= self._kept.maxsize // _LARGEST_SHARE:
            self._kept[key] = (kept, size)

    def forget(self, digests: Collection[str]) -> None:
        """Delete all pages cached for these sessions."""
        for key in [key for key in self._kept if key[3] in digests]:
            self._kept.pop(key, None)

    def close(self) -> None:
        """Clear the cache and close its database connection."""
        self._kept.clear()
        if self._pulse is not None:
            self._pulse.close()


def _cache_keys(target: Target, visitor: Visitor, changes: int | None) -> tuple[Key, ...]:
    shared = (*target, "*", "", "")
    if changes is None:
        return (shared,)
    own = (*target, visitor.digest, visitor.look, "")
    if changes == _STRANGER:
        return (_stranger_key(target, visitor), own, shared)
    return (own, shared)


def _cache_key(target: Target, visitor: Visitor, changes: int | None, sharing: Sharing) -> Key:
    if sharing == "all":
        return (*target, "*", "", "")
    if sharing == "strangers" and changes == _STRANGER:
        return _stranger_key(target, visitor)
    return (*target, visitor.digest, visitor.look, "")


def _stranger_key(target: Target, visitor: Visitor) -> Key:
    # Visitors without a row share pages, except for their browser's time zone.
    return (*target, "", visitor.look, visitor.zone)


def _is_fresh(kept: CachedPage, now: CacheStamp) -> bool:
    if kept.version != now.version or kept.until <= now.time:
        return False
    return kept.changes is None or kept.changes == now.changes
