"""Daily backups and backups before a migration."""

import asyncio
import contextlib
import datetime as dt
import logging
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from app.database import dump_tools
from app.database.backup import (
    Pause,
    create_backup,
    daily_backup_name,
    find_expired_backups,
    name_migration_backup,
)
from app.database.file_guards import PRIVATE_FOLDER, LockHeldError, file_lock
from app.database.installation import Installation, InstallationError
from app.database.schema import latest_revision
from app.database.secure_delete import LARGEST_DAILY, vacuum_if_marked

_FIRST = 60.0  # after the start, which is busy enough
_EVERY = 600.0
_PAUSE = 0.005  # between two steps, so that requests come first
_LOCK = ".copying.lock"
_log = logging.getLogger("headroom")
Clock = Callable[[], dt.datetime]


class _ServerStoppingError(Exception):
    """Cancels a backup because the server stops. The next start makes it."""


@contextlib.asynccontextmanager
async def run_daily_backups(
    installation: Installation, clock: Clock, first: float = _FIRST
) -> AsyncIterator[None]:
    """Make daily backups while the server runs.

    Several server processes may run this: one makes the backup, the others find it. The
    data folder is locked as in use, so that no restore replaces it.
    """
    leaving, stop = asyncio.Event(), threading.Event()
    with installation.in_use():
        watch = asyncio.create_task(
            _watch_schedule(_DailyBackup(installation, clock, stop), leaving, first)
        )
        try:
            yield
        finally:
            leaving.set()
            stop.set()
            await watch


def copy_if_due(
    installation: Installation,
    now: dt.datetime,
    pause: Pause = lambda: None,
    before: Callable[[], object] = lambda: None,
) -> Path | None:
    """Make today's backup and delete expired ones. Returns its path.

    `before` is called just before a backup is made. Returns None if today's backup
    exists, if another process is making it, or if backups are disabled.
    """
    folder = installation.backups
    if folder is None or (target := folder / daily_backup_name(_local_day(now))).exists():
        return None
    if not installation.data.is_dir():
        raise InstallationError(f"the data folder {installation.data} is gone: put it back.")
    _make_folder(folder)
    try:
        with file_lock(folder / _LOCK, wait=False):
            _delete_temporary_backups(folder)
            if target.exists():
                return None
            before()
            create_backup(installation, target, now, pause)
            for path in find_expired_backups(folder):
                path.unlink()
    except LockHeldError:
        return None
    return target


def copy_before_migration(installation: Installation, revision: str, now: dt.datetime) -> None:
    """Back up a database before a migration. Raises InstallationError if that fails."""
    folder = installation.backups
    if folder is None:
        return
    if _lacks_programs(installation):
        _log.warning(
            "No copy is made before the migration: %s was not found.", dump_tools.missing_program()
        )
        return
    _make_folder(folder)
    target = folder / name_migration_backup(_local_day(now), revision, latest_revision())
    try:
        with file_lock(folder / _LOCK):
            create_backup(installation, target, now)
    except InstallationError as error:
        raise InstallationError(
            f"the database is not migrated without a copy, and {error} (To migrate "
            "without one, set HEADROOM_BACKUPS=off.)"
        ) from None


class _DailyBackup:
    """Checks whether a backup is due. Logs a failure once and retries."""

    def __init__(self, installation: Installation, clock: Clock, stop: threading.Event) -> None:
        self._installation = installation
        self._clock = clock
        self._stop = stop
        self._logged = ""
        self._vacuumed: dt.date | None = None

    def back_up_if_due(self) -> None:
        try:
            if _lacks_programs(self._installation):
                dump_tools.expect_programs()
            copy_if_due(self._installation, self._clock(), self._check_stopping, self._vacuum)
            self._logged = ""
        except _ServerStoppingError:
            return
        except (InstallationError, OSError) as error:
            if str(error) != self._logged:
                _log.warning("The daily copy could not be made: %s", error)
            self._logged = str(error)
        except Exception:  # noqa: BLE001 - logged, and the next check retries
            _log.exception("The daily copy could not be made")

    def _vacuum(self) -> None:
        """Vacuum the database once a day if learners were erased, even if the backup fails."""
        day = _local_day(self._clock())
        if self._vacuumed == day or not self._installation.database.startswith("sqlite"):
            return
        self._vacuumed = day
        path = Path(self._installation.database.partition(":///")[2])
        try:
            vacuum_if_marked(path, LARGEST_DAILY)
        except sqlite3.Error as error:
            _log.warning("What erased learners left is not removed today: %s.", error)

    def _check_stopping(self) -> None:
        if self._stop.wait(_PAUSE):
            raise _ServerStoppingError


async def _watch_schedule(copier: _DailyBackup, leaving: asyncio.Event, first: float) -> None:
    seconds = first
    while not leaving.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(leaving.wait(), seconds)
            return
        await asyncio.to_thread(copier.back_up_if_due)
        seconds = _EVERY


def _lacks_programs(installation: Installation) -> bool:
    sqlite = installation.database.startswith("sqlite")
    return not sqlite and installation.backups is not None and bool(dump_tools.missing_program())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise InstallationError(
            f"the folder {folder} of the copies cannot be made ({error.strerror}): set "
            "HEADROOM_BACKUPS to one that can."
        ) from None


def _delete_temporary_backups(folder: Path) -> None:
    """Delete temporary files of a process that was killed while it made a backup."""
    for draft in folder.glob(".headroom-*.zip.*"):
        shutil.rmtree(draft, ignore_errors=True)


def _local_day(now: dt.datetime) -> dt.date:
    return now.astimezone(dt.UTC).date()
