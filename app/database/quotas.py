"""Limits on rows per learner and on bytes in the data folder.

Data that the course limits needs no quota: notes, pages read, flags, suspended cards
and card states have one row per section, question or card. Answers and reviews are logs
that are never cut; rate limits bound their growth. The log of one card has a quota,
because every change replays all of it.
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
class RowQuota:
    """The maximum number of rows of a kind, and the message and hint for exceeding it."""

    max_rows: int
    message: str
    hint: str

    def raise_if_exceeded(self, count: int) -> None:
        if count > self.max_rows:
            raise ConflictError(self.message.format(most=self.max_rows), self.hint)


OWN_CARDS = RowQuota(
    50_000,
    "You have {most:,} cards of your own, the most that are kept for one learner.",
    "Remove a deck at Settings, Cards and Anki, then save again.",
)
OPEN_REPORTS = RowQuota(
    100,
    "{most:,} of your reports are still open, the most that one learner may have.",
    "Report this when the author has settled some of them.",
)
SITTINGS = RowQuota(
    1_000,
    "You have sat {most:,} mock exams, the most that are kept for one learner.",
    "Practice without a clock instead. To sit more exams, download your data and "
    "erase it, both in Settings.",
)
SESSIONS = RowQuota(
    1_000,
    "You have signed in from {most:,} browsers, the most that are kept for one learner.",
    "Go on in a browser that is signed in already.",
)
CARD_LOG = RowQuota(
    1_000,
    "This card has {most:,} entries in its log, the most that are kept of one card.",
    "Put it aside, or write its words on a new card of your own.",
)
MOST_RUNS = 1_000
"""Practice runs saved per learner. Older ones are deleted, their answers remain."""


def raise_if_row_quota_exceeded(
    db: Session, quota: RowQuota, *conditions: ColumnElement[bool]
) -> None:
    """Raise ConflictError if more rows than the quota allows meet the conditions.

    Call it after inserting the row: a repeated request that inserts nothing passes, and
    the error rolls the insert back.
    """
    excess_row = select(literal(1)).where(*conditions).limit(1).offset(quota.max_rows)
    if db.scalar(excess_row) is not None:
        quota.raise_if_exceeded(quota.max_rows + 1)


LEAST_FREE = 500_000_000
"""Free bytes on the disk that are reserved for answers, reviews and backups: no cards with less."""
LEAST_FREE_TO_SERVE = 64 * 1024 * 1024
"""With fewer free bytes the reserve is nearly used up, and the server reports that it isn't ready."""
_SIZE_CACHED_SECONDS = 30.0  # seconds for which the size of a PostgreSQL database is cached
_DAY_SECONDS = 86_400  # seconds
_MAX_COUNTED_CLIENTS = 20_000  # clients counted; a new one replaces the least recently used
# share of the limit that is reserved for existing learners
_SHARE_RESERVED_FOR_KNOWN_LEARNERS = 0.1
_STILL_SAVED = (
    "Answers, grades and settings are still saved. Its host can raise the limit "
    "(HEADROOM_MAX_DATA_GB)."
)
_SELECT_DATABASE_SIZE = text("SELECT pg_database_size(current_database())")


class DailyByteQuota:
    """Bytes that each client stored this UTC day, in memory. A `max_bytes_a_day` of 0 means no limit."""

    def __init__(self, max_bytes_a_day: float, clock: Callable[[], float] = time.time) -> None:
        self._most = max_bytes_a_day
        self._clock = clock
        self._stored: LRUCache[str, tuple[int, int]] = LRUCache(_MAX_COUNTED_CLIENTS)

    def add_stored_bytes(self, client: str, size: int) -> None:
        day = int(self._clock() // _DAY_SECONDS)
        self._stored[client] = (day, self._bytes_stored_on(day, client) + size)

    def raise_if_used_up(self, client: str) -> None:
        day, second_of_day = divmod(int(self._clock()), _DAY_SECONDS)
        if self._most and self._bytes_stored_on(day, client) >= self._most:
            raise QuotaExceededError(
                f"From your address {self._most / 1e6:,.0f} MB of cards were added "
                "today, the most for one day.",
                "Add the rest tomorrow. Answers, grades and settings are still saved.",
                _DAY_SECONDS - second_of_day,
            )

    def _bytes_stored_on(self, day: int, client: str) -> int:
        stored_day, size = self._stored.get(client, (0, 0))
        return size if stored_day == day else 0


class StorageLimit:
    """Refuses new cards once disk or database is full; a `max_database_gb` of 0 is no limit."""

    def __init__(self, engine: Engine, data_folder: Path, max_database_gb: float) -> None:
        self._engine = engine
        self._max_gb = max_database_gb
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        self._file = Path(file) if file else None
        self._folders = {data_folder, self._file.parent} if self._file else {data_folder}
        self._size = 0
        self._size_read_at = -_SIZE_CACHED_SECONDS

    def raise_if_full_for_cards(self, *, is_known_learner: bool = True) -> None:
        """Raise StorageFullError if no more cards fit; the last tenth is for known learners."""
        self.raise_if_disk_nearly_full()
        if self._has_database_reached_share(1):
            raise StorageFullError(
                "This server is full: its database has reached the limit of "
                f"{self._max_gb:g} GB, so no cards can be imported or written.",
                _STILL_SAVED,
            )
        if not is_known_learner and self.is_only_reserve_left():
            raise StorageFullError(
                "This server is nearly full: the rest of its room is kept for learners "
                "who began more than a day ago.",
                _STILL_SAVED,
            )

    def raise_if_disk_nearly_full(self) -> None:
        """Raise StorageFullError if the disk has too little free space."""
        free_bytes = min(shutil.disk_usage(folder).free for folder in self._folders)
        if free_bytes < LEAST_FREE:
            raise StorageFullError(
                "This server is full: its disk has too little room for files.",
                "Answers, grades and settings are still saved. Its host has to free "
                f"room: {LEAST_FREE // 1_000_000} MB are needed.",
            )

    def is_only_reserve_left(self) -> bool:
        return self._has_database_reached_share(1 - _SHARE_RESERVED_FOR_KNOWN_LEARNERS)

    def _has_database_reached_share(self, share: float) -> bool:
        return bool(self._max_gb) and self.read_database_bytes() >= share * self._max_gb * 1e9

    def read_database_bytes(self) -> int:
        """Return the size of the database in bytes, including SQLite's write-ahead log."""
        if self._file is not None:
            return _file_size(self._file) + _file_size(Path(f"{self._file}-wal"))
        if time.monotonic() - self._size_read_at >= _SIZE_CACHED_SECONDS:
            with self._engine.connect() as connection:
                self._size = int(connection.execute(_SELECT_DATABASE_SIZE).scalar_one())
            self._size_read_at = time.monotonic()
        return self._size


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # SQLite creates and deletes its log
        return 0
