"""Limits on rows per learner and on bytes in the data folder.

What a course bounds needs no quota: notes, pages read, flags, cards put aside and what
is remembered of cards have a row for each section, question or card. Answers and
reviews are logs that are never cut; how fast they grow is limited by client. The log of
one card has a quota, since all of it is replayed when something in it changes.
"""

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from cachetools import LRUCache
from sqlalchemy import ColumnElement, Engine, literal, select, text
from sqlmodel import Session

from app.errors import ConflictError, QuotaExceededError, StorageFullError


@dataclasses.dataclass(frozen=True, slots=True)
class Quota:
    """The most rows of a kind, what is said to who wants more, and what to do."""

    most: int
    message: str
    hint: str

    def check(self, count: int) -> None:
        """Raise Conflict where there are more than the quota allows."""
        if count > self.most:
            raise ConflictError(self.message.format(most=self.most), self.hint)


OWN_CARDS = Quota(
    50_000,
    "You have {most:,} cards of your own, the most that are kept for one learner.",
    "Remove a deck at Settings, Cards and Anki, then save again.",
)
OPEN_REPORTS = Quota(
    100,
    "{most:,} of your reports are still open, the most that one learner may have.",
    "Report this when the author has settled some of them.",
)
SITTINGS = Quota(
    1_000,
    "You have sat {most:,} mock exams, the most that are kept for one learner.",
    "Practice without a clock instead. To sit more exams, download your data and "
    "erase it, both in Settings.",
)
SESSIONS = Quota(
    1_000,
    "You have signed in from {most:,} browsers, the most that are kept for one learner.",
    "Go on in a browser that is signed in already.",
)
CARD_LOG = Quota(
    1_000,
    "This card has {most:,} entries in its log, the most that are kept of one card.",
    "Put it aside, or write its words on a new card of your own.",
)
MOST_RUNS = 1_000
"""Practice runs of a learner; older ones go, and their answers stay."""


def check_quota(db: Session, quota: Quota, *rows: ColumnElement[bool]) -> None:
    """Raise Conflict where more rows than the quota allows meet the conditions.

    To be called after the row was inserted: a repeated request that inserts nothing
    is no more than before, and the refusal takes the row back.
    """
    one_more = select(literal(1)).where(*rows).limit(1).offset(quota.most)
    if db.scalar(one_more) is not None:
        quota.check(quota.most + 1)


LEAST_FREE = 500_000_000
"""Bytes of the disk that stay free for answers, grades and copies."""
_ASKED_AGAIN = 30.0  # seconds for which the size that a database server told holds
_DAY = 86_400  # seconds
_CLIENTS = 20_000  # counted at a time; who comes beyond them takes the oldest place
_RESERVE = 0.1  # of the limit, kept for learners who were here before
_STILL_SAVED = (
    "Answers, grades and settings are still saved. Its host can raise the limit "
    "(HEADROOM_MAX_DATA_GB)."
)
_SIZE = text("SELECT pg_database_size(current_database())")


class DailyQuota:
    """How many bytes each client has stored today, in memory; `most` 0 is no limit.

    A day is one of UTC. `clock` gives seconds since 1970.
    """

    def __init__(self, most: float, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._clock = clock
        self._stored: LRUCache[str, tuple[int, int]] = LRUCache(_CLIENTS)

    def count(self, client: str, size: int) -> None:
        """Note that so many bytes of a client were stored."""
        day = int(self._clock() // _DAY)
        self._stored[client] = (day, self._stored_on(day, client) + size)

    def check(self, client: str) -> None:
        """Raise QuotaExceededError where a client has stored what it may in a day."""
        day, second = divmod(int(self._clock()), _DAY)
        if self._most and self._stored_on(day, client) >= self._most:
            raise QuotaExceededError(
                f"From your address {self._most / 1e6:,.0f} MB of cards were added "
                "today, the most for one day.",
                "Add the rest tomorrow. Answers, grades and settings are still saved.",
                _DAY - second,
            )

    def _stored_on(self, day: int, client: str) -> int:
        last, size = self._stored.get(client, (0, 0))
        return size if last == day else 0


class StorageLimit:
    """Refuses imports and new cards once the database or the disk is full.

    `max_gb` bounds the database, 0 does not. `folder` lies on the disk of the data.
    """

    def __init__(self, engine: Engine, folder: Path, max_gb: float) -> None:
        self._engine = engine
        self._max_gb = max_gb
        name = engine.url.database
        is_file = engine.dialect.name == "sqlite" and name
        self._file = Path(name) if is_file and name else None
        self._folders = {folder, self._file.parent} if self._file else {folder}
        self._told = 0
        self._told_at = -_ASKED_AGAIN

    def expect_room(self, *, is_known: bool = True) -> None:
        """Raise StorageFullError where learners may bring no more.

        The last tenth of the limit is only for learners who are known.
        """
        self.expect_disk()
        if self.is_reached():
            raise StorageFullError(
                "This server is full: its database has reached the limit of "
                f"{self._max_gb:g} GB, so no cards can be imported or written.",
                _STILL_SAVED,
            )
        if not is_known and self.is_reserved():
            raise StorageFullError(
                "This server is nearly full: the rest of its room is kept for learners "
                "who began more than a day ago.",
                _STILL_SAVED,
            )

    def expect_disk(self) -> None:
        """Raise StorageFullError where little of the disk is free."""
        free = min(shutil.disk_usage(folder).free for folder in self._folders)
        if free < LEAST_FREE:
            raise StorageFullError(
                "This server is full: its disk has too little room for files.",
                "Answers, grades and settings are still saved. Its host has to free "
                f"room: {LEAST_FREE // 1_000_000} MB are needed.",
            )

    def is_reached(self) -> bool:
        """Whether the database is as large as it may become."""
        return self._has(1)

    def is_reserved(self) -> bool:
        """Whether the database has so much that the rest is for learners it knows."""
        return self._has(1 - _RESERVE)

    def _has(self, share: float) -> bool:
        """Whether the database has this share of what it may have."""
        return bool(self._max_gb) and self.database_size() >= share * self._max_gb * 1e9

    def database_size(self) -> int:
        """Bytes of the database, with the log beside a file."""
        if self._file is not None:
            return _size_of(self._file) + _size_of(Path(f"{self._file}-wal"))
        if time.monotonic() - self._told_at >= _ASKED_AGAIN:
            with self._engine.connect() as connection:
                self._told = int(connection.execute(_SIZE).scalar_one())
            self._told_at = time.monotonic()
        return self._told


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a log comes and goes
        return 0
