"""Takes what was erased out of the files of SQLite while the server runs.

Deleted rows are overwritten at once (`secure_delete`). But the log beside the file
holds pages as they were before, and a page whose cells were moved keeps copies of them
in its gaps. So after an erasure the log is emptied and the file written anew. Other
databases tidy up by rules of their own.
"""

import asyncio
import contextlib
import enum
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from sqlalchemy import Engine
from sqlmodel import Session

_EVERY = 1.0  # seconds from look to look
_AFTER_A_FAULT = 60.0  # seconds to the next try, e.g. where the disk is full
_PATIENCE = 500  # milliseconds in which others may be kept waiting at a time
# A file of this size is written anew in about a second, in which writers wait.
AT_ONCE = 32 * 1024 * 1024
_QUIET = 60.0  # A larger one is, once nobody has written for so many seconds,
_AT_LAST = 24 * 3600.0  # or after so many in any case.
_log = logging.getLogger("headroom")


class State(enum.IntEnum):
    """What the file says of itself in its `user_version`."""

    CLEAN = 0
    ERASED = 1
    AT_WORK = 2


def note_erasure(db: Session) -> None:
    """Note, in the transaction that erases, that traces are left to be removed."""
    if db.get_bind().dialect.name == "sqlite":
        words = f"PRAGMA user_version = {State.ERASED.value}"
        db.connection().exec_driver_sql(words)


@contextlib.asynccontextmanager
async def scrubbing(engine: Engine) -> AsyncIterator[None]:
    """Look for erasures, in whatever process, as long as the server runs."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        yield
        return
    scrubber = Scrubber(Path(engine.url.database))
    watch = asyncio.create_task(_watch(scrubber))
    try:
        yield
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
        scrubber.close()


async def _watch(scrubber: "Scrubber") -> None:
    work = scrubber.resume
    while True:
        wait = _EVERY
        try:
            await _in_a_thread(scrubber, work)
            work = scrubber.advance
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                wait = _AFTER_A_FAULT
                _log.warning("what was erased is not out of the files yet: %s", error)
        await asyncio.sleep(wait)


async def _in_a_thread(scrubber: "Scrubber", work: Callable[[], None]) -> None:
    done = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(done)
    except asyncio.CancelledError:
        # Nobody may close a connection that a thread still works with.
        scrubber.interrupt()
        with contextlib.suppress(sqlite3.Error):
            await done
        raise


class Scrubber:
    """The work on one file; where somebody is in the way it goes on the next time."""

    def __init__(self, path: Path, at_once: int = AT_ONCE) -> None:
        self._path = path
        self._at_once = at_once
        self._file: sqlite3.Connection | None = None
        self._left: list[Callable[[sqlite3.Connection], bool]] = []
        self._since = 0.0
        self._beat = (0, 0.0)

    def resume(self) -> None:
        """Take up what a process left that was ended at work."""
        _step(self._opened(), State.AT_WORK, State.ERASED)

    def advance(self) -> None:
        """Do what can be done now."""
        file = self._opened()
        if not self._left:
            if not _step(file, State.ERASED, State.AT_WORK):
                return  # nothing to do, or another process does it
            self._left = [_empty_log, self._rewrite, _empty_log, _finish]
            self._since = time.monotonic()
            self._beat = (_beat(file), self._since)
        while self._left and self._left[0](file):
            del self._left[0]

    def interrupt(self) -> None:
        """Break off what runs in another thread; the next start takes it up."""
        if self._file is not None:
            self._file.interrupt()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> sqlite3.Connection:
        if self._file is None:
            address = f"{self._path.absolute().as_uri()}?mode=rw"  # never a new file
            self._file = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False
            )
            self._file.execute(f"PRAGMA busy_timeout={_PATIENCE}")
            self._file.execute("PRAGMA secure_delete=ON")
        return self._file

    def _rewrite(self, file: sqlite3.Connection) -> bool:
        large = self._path.stat().st_size > self._at_once
        if large and not self._is_quiet(file):
            return False
        file.execute(f"PRAGMA temp_store={'FILE' if large else 'MEMORY'}")
        file.execute("VACUUM")
        return True

    def _is_quiet(self, file: sqlite3.Connection) -> bool:
        now = time.monotonic()
        if _beat(file) != self._beat[0]:
            self._beat = (_beat(file), now)
        return now - self._beat[1] >= _QUIET or now - self._since >= _AT_LAST


def _beat(file: sqlite3.Connection) -> int:
    """A number that changes whenever another connection commits."""
    return int(file.execute("PRAGMA data_version").fetchone()[0])


def _state(file: sqlite3.Connection) -> int:
    return int(file.execute("PRAGMA user_version").fetchone()[0])


def _step(file: sqlite3.Connection, before: State, after: State) -> bool:
    """Go from one state to the next; of several processes one does."""
    if _state(file) != before:
        return False
    file.execute("BEGIN IMMEDIATE")
    try:
        if _state(file) != before:
            return False
        file.execute(f"PRAGMA user_version = {after.value}")
    finally:
        file.execute("COMMIT")
    return True


def _empty_log(file: sqlite3.Connection) -> bool:
    """Write the log into the file and cut it to nothing; false while somebody reads."""
    busy, _pages, _moved = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _finish(file: sqlite3.Connection) -> bool:
    _step(file, State.AT_WORK, State.CLEAN)  # or somebody erased meanwhile: once more
    return True
