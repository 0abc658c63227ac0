"""Cached pages, compression."""

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


_KNOWN = 4000  # learners whose count of changes is kept in mind
_BYTES = 64 * 1024 * 1024
_ENTRY = 1000  # bytes of what holds a page, about
_LARGEST_SHARE = 16  # one page takes no more of the room than this part
_STRANGER = -1
USUAL_CACHING = b"private, no-cache"
"""The Cache-Control of a page that says nothing else."""

Sharing = Literal["all", "strangers", "nobody"]
Target = tuple[str, bytes, str]
"""What a page was made for: path, query, and the prefix of the addresses in it."""
Key = tuple[str, bytes, str, str, str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class CachePolicy:
    """What a route says of its answer: how long it holds, and whether for all."""

    until: float
    sharing: Sharing


@dataclasses.dataclass(frozen=True, slots=True)
class CachedPage:
    """An answer that is kept, with everything that it depends on."""

    packed: CompressedBody
    kind: bytes
    version: str
    changes: int | None
    until: float
    caching: bytes = USUAL_CACHING


@dataclasses.dataclass(frozen=True, slots=True)
class CacheStamp:
    """What an answer made now may rest on, read before it is made.

    `changes` counts the learner's writes: −1 before the first, None where writes
    cannot be seen or the session was revoked, and only shared answers can be given.
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
    """Let the answer of this route be sent again to the same learner.

    It is thrown away when the course changes, when the learner writes anything, and
    at `until`. `shared`: it is the same for everybody, for it shows no name, no theme
    and no page frame. `strangers`: all who have written nothing yet may share it, for
    it holds no token of a form.
    """
    end = until.timestamp() if until else math.inf
    request.state.wish = CachePolicy(
        end, "all" if shared else "strangers" if strangers else "nobody"
    )


class PageCache:
    """The kept pages of one process, the least used thrown out first.

    They take at most `most` bytes: body, compressed forms, address and key together.
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
        """How many bytes the kept pages take."""
        return int(self._kept.currsize)

    def changes(self, visitor: Visitor) -> int | None:
        """How often the visitor's learner has written, in whatever process.

        None where that cannot be told. A database that fails is left to the app: it
        answers as for any fault, and what needs no database is served.
        """
        if self._pulse is None:
            return None
        if visitor.cookie:
            return _STRANGER  # the key is of this moment: nobody has written with it
        try:
            return self._count_changes(self._pulse, visitor.digest)
        except sqlite3.Error:
            return None

    def _count_changes(self, pulse: DataVersion, digest: str) -> int | None:
        beat = pulse.beat()
        if beat != self._beat or len(self._changes) > _KNOWN:
            self._changes.clear()
            self._beat = beat
        if digest not in self._changes:
            self._changes[digest] = pulse.changes(digest)
        return self._changes[digest]

    def find(self, target: Target, visitor: Visitor, now: CacheStamp) -> CachedPage | None:
        """The kept answer for this target, if it still holds."""
        for key in _keys(target, visitor, now.changes):
            entry = self._kept.get(key)
            if entry is None:
                continue
            if _holds(entry[0], now):
                return entry[0]
            self._kept.pop(key, None)
        return None

    def put(self, target: Target, visitor: Visitor, kept: CachedPage, sharing: Sharing) -> None:
        """Keep an answer for this target."""
        key = _key(target, visitor, kept.changes, sharing)
        size = _ENTRY + 2 * len(kept.packed.body) + sum(map(len, key))
        if size <= self._kept.maxsize // _LARGEST_SHARE:
            self._kept[key] = (kept, size)

    def forget(self, digests: Collection[str]) -> None:
        """Throw away every page that was made for these sessions."""
        for key in [key for key in self._kept if key[3] in digests]:
            self._kept.pop(key, None)

    def close(self) -> None:
        """Forget everything and let the database go."""
        self._kept.clear()
        if self._pulse is not None:
            self._pulse.close()


def _keys(target: Target, visitor: Visitor, changes: int | None) -> tuple[Key, ...]:
    shared = (*target, "*", "", "")
    if changes is None:
        return (shared,)
    own = (*target, visitor.digest, visitor.look, "")
    if changes == _STRANGER:
        return (_strange(target, visitor), own, shared)
    return (own, shared)


def _key(target: Target, visitor: Visitor, changes: int | None, sharing: Sharing) -> Key:
    if sharing == "all":
        return (*target, "*", "", "")
    if sharing == "strangers" and changes == _STRANGER:
        return _strange(target, visitor)
    return (*target, visitor.digest, visitor.look, "")


def _strange(target: Target, visitor: Visitor) -> Key:
    # All who have no row yet see the same pages, but for the zone of their browser.
    return (*target, "", visitor.look, visitor.zone)


def _holds(kept: CachedPage, now: CacheStamp) -> bool:
    if kept.version != now.version or kept.until <= now.time:
        return False
    return kept.changes is None or kept.changes == now.changes
