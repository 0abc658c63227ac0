"""Backups: create, read and restore them, make one each day, and decide which to delete."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import logging
import os
import re
import shutil
import sqlite3
import threading
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.database import database_copies
from app.database.database_copies import find_missing_postgresql_program
from app.database.engine import redact_passwords_in_message
from app.database.file_guards import (
    PRIVATE_FOLDER_MODE,
    LockHeldError,
    hold_file_lock,
    make_private_folder,
    name_folder_for_replaced_files,
    open_private_file_replacing_existing,
    sync_to_disk,
    temporary_folder_next_to,
)
from app.database.installation import Installation, InstallationError, read_secret_key_file
from app.database.schema import (
    RESTORING_SUFFIX,
    UnusableDatabaseError,
    latest_schema_revision,
    list_database_files,
    read_schema_revision,
    read_schema_revision_of_sqlite_file,
    require_sqlite_path,
)
from app.database.secure_delete import LARGEST_DAILY, vacuum_file_if_marked

BACKUP_VERSION = 2
MANIFEST_FILE_NAME = "manifest.json"
SECRET_FILE_NAME = "secret"  # noqa: S105 - the name of a file
DATABASE_FILE_BY_DIALECT = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
"""File name of the database in a backup, by database kind."""
Kind = Literal["sqlite", "postgresql"]
Pause = Callable[[], object]
_CHUNK_BYTES = 1 << 20
_LONGEST_MANIFEST = 1 << 20  # limit for a manifest, in bytes
_COPIES_AT_ONCE = 2  # the database copy and the archive exist at the same time
_KIND_NAMES = {"sqlite": "a SQLite database", "postgresql": "a PostgreSQL database"}
# Exceptions of the zip reader for corrupt or foreign files.
_DAMAGE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError, ValueError)


class BackupManifest(BaseModel):
    """Description of a backup. `rows` counts rows by table.

    `secret` says where the signing key came from. The backup always includes it: with a
    new key every browser would lose its learner.
    """

    format: int
    headroom: str
    schema_revision: str
    made_at: str
    database: Kind
    rows: dict[str, int]
    secret: Literal["data folder", "HEADROOM_SECRET", "none"]

    @property
    def made_at_text(self) -> str:
        return f"{self.made_at[:10]} {self.made_at[11:16]} UTC"


class BackupReader:
    """An open backup. Reading a file of a zip archive to its end verifies its checksum."""

    def __init__(self, zip_file: zipfile.ZipFile, path: Path) -> None:
        self._zipped = zip_file
        self._path = path
        with _convert_archive_errors(path), zip_file.open(MANIFEST_FILE_NAME) as source:
            content = source.read(_LONGEST_MANIFEST)
        self.manifest = _read_manifest(content, path)
        self.has_key = SECRET_FILE_NAME in zip_file.namelist()

    def verify_files(self) -> None:
        """Verify every file in the backup. Raises InstallationError if one is damaged."""
        with _convert_archive_errors(self._path):
            if name := self._zipped.testzip():
                raise zipfile.BadZipFile(f"{name} is damaged")

    def read_secret_key(self) -> str:
        with _convert_archive_errors(self._path):
            return self._zipped.read(SECRET_FILE_NAME).decode()

    def extract(self, name: str, new_path: Path) -> None:
        """Extract a file to a new private path. Raises InstallationError if it is damaged."""
        with (
            os.fdopen(open_private_file_replacing_existing(new_path), "wb") as target,
            _convert_archive_errors(self._path),
            self._zipped.open(name) as source,
        ):
            shutil.copyfileobj(source, target, _CHUNK_BYTES)
        sync_to_disk(new_path)


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[BackupReader]:
    """Open a backup for reading. Raises InstallationError if the file is no valid backup."""
    with contextlib.ExitStack() as stack:
        with _convert_archive_errors(path):
            zipped = stack.enter_context(zipfile.ZipFile(path))
        yield BackupReader(zipped, path)


def _read_manifest(content: bytes, path: Path) -> BackupManifest:
    """Parse a manifest. Raises InstallationError if this version cannot read it."""
    try:
        manifest = BackupManifest.model_validate_json(content)
    except ValidationError:
        raise InstallationError(
            f"{path} cannot be used: its manifest is damaged or of another program."
        ) from None
    if manifest.format > BACKUP_VERSION:
        raise InstallationError(
            f"{path} cannot be used: it was written by a newer Headroom (format "
            f"{manifest.format}; this version reads format {BACKUP_VERSION}): install the newer "
            "version first."
        )
    return manifest


@contextlib.contextmanager
def _convert_archive_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or "it ends too early"
        raise InstallationError(f"{path} cannot be read ({reason}).") from None
    except _DAMAGE_ERRORS as error:
        reason = str(error).rstrip(".") or "it ends too early"
        raise InstallationError(
            f"{path} is not a sound backup of Headroom ({reason}); nothing was changed: "
            "use another copy."
        ) from None


def create_backup(
    installation: Installation, target: Path, now: dt.datetime, call_regularly: Pause = lambda: None
) -> BackupManifest:
    """Write a backup to `target`, which is replaced only once the backup is completely on disk.

    It contains everything that was committed before it began. `call_regularly` is called
    regularly; if it raises, the backup is canceled and removed.
    """
    with _open_engine_converting_errors(installation, f"the backup {target}") as engine:
        revision = read_schema_revision(engine)
        if not revision:
            raise InstallationError(
                "there is no database yet, so there is nothing to back up: start the "
                "server first, or set HEADROOM_DATA to the folder that it uses."
            )
        return _copy_database_and_write_archive(
            installation, engine, revision, target, now, call_regularly
        )


def _copy_database_and_write_archive(
    installation: Installation,
    engine: Engine,
    revision: str,
    target: Path,
    now: dt.datetime,
    call_regularly: Pause,
) -> BackupManifest:
    kind = _database_kind(engine)
    if kind == "sqlite":  # the size of a dump is not known in advance
        _raise_if_too_little_free_space(require_sqlite_path(engine), target.parent)
    with temporary_folder_next_to(target) as folder:
        database = folder / DATABASE_FILE_BY_DIALECT[kind]
        os.close(open_private_file_replacing_existing(database))
        rows = database_copies.copy_database_and_count_rows(engine, database, call_regularly)
        manifest = BackupManifest(
            format=BACKUP_VERSION,
            headroom=version("headroom"),
            schema_revision=revision,
            made_at=now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            database=kind,
            rows=rows,
            secret="HEADROOM_SECRET" if installation.configured_key else "data folder",
        )
        key = installation.configured_key
        if not key and installation.secret_file.exists():
            key = read_secret_key_file(installation.secret_file)
        if not key:
            manifest.secret = "none"  # noqa: S105 - there is no key yet
        archive = folder / "whole"
        with (
            os.fdopen(open_private_file_replacing_existing(archive), "wb") as stream,
            zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
        ):
            zipped.writestr(MANIFEST_FILE_NAME, manifest.model_dump_json(indent=1) + "\n")
            if key:
                zipped.writestr(SECRET_FILE_NAME, key)
            with (
                database.open("rb") as source,
                zipped.open(database.name, "w", force_zip64=True) as member,
            ):
                while part := source.read(_CHUNK_BYTES):
                    member.write(part)
                    call_regularly()
        sync_to_disk(archive)
        archive.replace(target)
        sync_to_disk(target.parent)
    return manifest


def _database_kind(engine: Engine) -> Kind:
    return "sqlite" if engine.dialect.name == "sqlite" else "postgresql"


@contextlib.contextmanager
def _open_engine_converting_errors(
    installation: Installation, target_label: str
) -> Iterator[Engine]:
    """Yield an engine; raises InstallationError if it, or writing `target_label`, is refused."""
    engine = installation.make_engine()
    try:
        yield engine
    except UnusableDatabaseError as error:
        raise InstallationError(str(error)) from None
    except (DBAPIError, sqlite3.Error) as error:
        reason = redact_passwords_in_message(
            getattr(error, "orig", error), installation.database_url
        )
        raise InstallationError(f"the database cannot be used ({reason}).") from None
    except OSError as error:
        raise InstallationError(
            f"{target_label} cannot be written ({error.strerror}): make room, or choose a place "
            "that can be written to."
        ) from None
    finally:
        engine.dispose()


def _raise_if_too_little_free_space(database: Path, folder: Path) -> None:
    size = sum(path.stat().st_size for path in list_database_files(database))
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < _COPIES_AT_ONCE * size:
        raise InstallationError(
            f"{folder} has {free_bytes // 1_000_000} MB free and a backup needs "
            f"{_COPIES_AT_ONCE * size // 1_000_000} MB while it is made: make room, or choose "
            "another place."
        )


DAYS, WEEKS, MONTHS = 7, 4, 6
_BACKUP_FILE_NAME = re.compile(r"headroom-(\d{4}-\d{2}-\d{2})(-before-\d{4}-to-\d{4})?\.zip")


def select_backup_dates_to_keep(dates: Iterable[dt.date]) -> set[dt.date]:
    """Return which of the backup dates to keep.

    The newest seven, the last of each of the newest four weeks (Monday to Sunday), and
    the last of each of the newest six months.
    """
    newest_first = sorted(set(dates), reverse=True)
    return {
        *newest_first[:DAYS],
        *_last_day_of_each_period(newest_first, lambda day: day.isocalendar()[:2])[:WEEKS],
        *_last_day_of_each_period(newest_first, lambda day: (day.year, day.month))[:MONTHS],
    }


def _last_day_of_each_period(
    newest_first: list[dt.date], period_of_day: Callable[[dt.date], Hashable]
) -> list[dt.date]:
    last: dict[Hashable, dt.date] = {}
    for day in newest_first:
        last.setdefault(period_of_day(day), day)
    return list(last.values())


def name_daily_backup(day: dt.date) -> str:
    return f"headroom-{day.isoformat()}.zip"


def name_migration_backup(day: dt.date, old_revision: str, new_revision: str) -> str:
    """Return the file name of a backup made before a migration from `old_revision` to `new_revision`."""
    return f"headroom-{day.isoformat()}-before-{old_revision}-to-{new_revision}.zip"


def list_automatic_backups(folder: Path) -> dict[Path, dt.date]:
    """Return the backups in a folder with their dates, newest last. Other files are ignored."""
    backups = {}
    for path in folder.glob("headroom-*.zip"):
        if match := _BACKUP_FILE_NAME.fullmatch(path.name):
            try:
                backups[path] = dt.date.fromisoformat(match[1])
            except ValueError:  # no date, such as headroom-2026-02-31.zip: not a backup
                continue
    return dict(sorted(backups.items(), key=lambda copy: (copy[1], copy[0].name)))


def find_expired_backups(folder: Path) -> list[Path]:
    backups = list_automatic_backups(folder)
    kept_dates = select_backup_dates_to_keep(backups.values())
    return [path for path, day in backups.items() if day not in kept_dates]


@dataclasses.dataclass(frozen=True, slots=True)
class RestoreResult:
    """The manifest of the restored backup, and the folders with the replaced files."""

    manifest: BackupManifest
    replaced_files_folders: tuple[Path, ...]


def restore_backup(installation: Installation, source: Path, now: dt.datetime) -> RestoreResult:
    """Check a backup, then replace the database and the key with its contents.

    Raises InstallationError and changes nothing if the backup is invalid or the data
    folder is in use.
    """
    with (
        _open_engine_converting_errors(installation, str(installation.data_folder)) as engine,
        open_backup(source) as backup,
    ):
        manifest = backup.manifest
        if manifest.database != _database_kind(engine):
            raise InstallationError(
                f"{source} holds {_KIND_NAMES[manifest.database]}, but this installation uses "
                f"{_KIND_NAMES[_database_kind(engine)]}: set HEADROOM_DATABASE_URL to one of the "
                "same kind."
            )
        if manifest.schema_revision > latest_schema_revision():
            raise InstallationError(
                f"{source} was written by a newer Headroom ({manifest.headroom}, schema "
                f"{manifest.schema_revision}; this version knows up to {latest_schema_revision()}): "
                "install the newer version first."
            )
        backup.verify_files()
        make_private_folder(installation.data_folder)
        replaced = _ReplacedFiles(name_folder_for_replaced_files(now))
        with installation.hold_exclusive_lock():
            _replace_database_and_key(installation, engine, backup, replaced, now)
    return RestoreResult(manifest, tuple(replaced.folders))


class _ReplacedFiles:
    """The replaced files, moved to a dated folder next to their old place."""

    def __init__(self, folder_name: str) -> None:
        self._name = folder_name
        self._moved: list[tuple[Path, Path]] = []
        self.folders: list[Path] = []

    def create_folder_and_name_target(self, path: Path) -> Path:
        """Return where to move a file. Creates the folder."""
        folder = path.parent / self._name
        folder.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
        if folder not in self.folders:
            self.folders.append(folder)
        return folder / path.name

    def move_aside(self, path: Path) -> None:
        """Move a file there, if it exists."""
        if path.exists():
            target = self.create_folder_and_name_target(path)
            path.rename(target)
            self._moved.append((path, target))

    def move_all_back(self) -> None:
        for path, moved_path in reversed(self._moved):
            moved_path.replace(path)
        for folder in self.folders:
            folder.rmdir()


def _replace_database_and_key(
    installation: Installation,
    engine: Engine,
    backup: BackupReader,
    replaced_files: _ReplacedFiles,
    now: dt.datetime,
) -> None:
    kind = backup.manifest.database
    target = (
        require_sqlite_path(engine) if kind == "sqlite" else installation.data_folder / "restore"
    )
    # Extract each file on its target disk, which may be two disks.
    with (
        temporary_folder_next_to(target) as folder,
        temporary_folder_next_to(installation.secret_file) as key_folder,
    ):
        database, key = folder / DATABASE_FILE_BY_DIALECT[kind], key_folder / SECRET_FILE_NAME
        backup.extract(database.name, database)
        if backup.has_key:
            backup.extract(SECRET_FILE_NAME, key)
            read_secret_key_file(key)

        def replace_key() -> None:
            if backup.has_key:
                replaced_files.move_aside(installation.secret_file)
                key.replace(installation.secret_file)
                sync_to_disk(installation.data_folder)

        if kind == "sqlite":
            _check_extracted_database(database, backup.manifest)
            _replace_sqlite_file_and_key(target, database, replaced_files, replace_key)
        else:
            database_copies.require_postgresql_programs()
            database_copies.require_no_other_postgresql_connection(engine)
            revision = database_copies.read_own_postgresql_schema_revision(engine)
            if revision is not None:
                backup_path = replaced_files.create_folder_and_name_target(
                    installation.data_folder / "database.zip"
                )
                _copy_database_and_write_archive(
                    installation, engine, revision, backup_path, now, lambda: None
                )
            engine.dispose()
            database_copies.drop_tables_and_restore_postgresql_dump(engine, database)
            replace_key()


def _check_extracted_database(database: Path, manifest: BackupManifest) -> None:
    fault = database_copies.find_damage_of_sqlite_file(database)
    try:
        if not fault and read_schema_revision_of_sqlite_file(database) != manifest.schema_revision:
            fault = "its schema is not the one that its manifest names"
    except UnusableDatabaseError as error:
        fault = str(error).partition(": ")[0]
    if fault:
        raise InstallationError(
            f"the database inside of the backup is not sound ({fault}); nothing was "
            "changed: use another copy."
        )


def _replace_sqlite_file_and_key(
    target: Path,
    extracted_database: Path,
    replaced_files: _ReplacedFiles,
    replace_key: Callable[[], None],
) -> None:
    database_copies.checkpoint_unused_sqlite_file_or_raise(target)
    # While a file of this name exists, no server starts. So a crash at this point
    # leaves neither a new, empty database nor one with another's log.
    staged_file = Path(f"{target}{RESTORING_SUFFIX}")
    extracted_database.replace(staged_file)
    sync_to_disk(target.parent)
    try:
        for path in list_database_files(target):
            replaced_files.move_aside(path)
        replace_key()
        staged_file.replace(target)
    except OSError:
        replaced_files.move_all_back()
        staged_file.unlink()
        raise
    sync_to_disk(target.parent)


_FIRST_DELAY = 60.0  # after the start, which is busy enough
_SECONDS_BETWEEN_CHECKS = 600.0
_PAUSE_BETWEEN_STEPS_SECONDS = 0.005  # between two steps, so that requests come first
_COPYING_LOCK_NAME = ".copying.lock"
_log = logging.getLogger("headroom")
Clock = Callable[[], dt.datetime]


class _ServerStoppingError(Exception):
    """Cancels a backup because the server stops. The next start makes it."""


@contextlib.asynccontextmanager
async def run_daily_backups(
    installation: Installation, clock: Clock, first_delay: float = _FIRST_DELAY
) -> AsyncIterator[None]:
    """Make daily backups while the server runs.

    Several server processes may run this: one makes the backup, the others find it. The
    data folder is locked as in use, so that no restore replaces it.
    """
    schedule_stopping, backup_stopping = asyncio.Event(), threading.Event()
    with installation.hold_shared_lock():
        daily_backup = _DailyBackupScheduler(installation, clock, backup_stopping)
        schedule = asyncio.create_task(
            daily_backup.run_until_stopping(schedule_stopping, first_delay)
        )
        try:
            yield
        finally:
            schedule_stopping.set()
            backup_stopping.set()
            await schedule


def create_due_backup_and_delete_expired(
    installation: Installation,
    now: dt.datetime,
    call_regularly: Pause = lambda: None,
    before_backup: Callable[[], object] = lambda: None,
) -> Path | None:
    """Make today's backup and delete expired ones. Returns its path.

    `before_backup` is called just before a backup is made. Returns None if today's backup
    exists, if another process is making it, or if backups are disabled.
    """
    folder = installation.backup_folder
    if folder is None or (target := folder / name_daily_backup(_utc_day(now))).exists():
        return None
    if not installation.data_folder.is_dir():
        raise InstallationError(f"the data folder {installation.data_folder} is gone: put it back.")
    _make_private_backup_folder(folder)
    try:
        with hold_file_lock(folder / _COPYING_LOCK_NAME, wait=False):
            # Left by a process that was killed while it made a backup.
            for temporary_folder in folder.glob(".headroom-*.zip.*"):
                shutil.rmtree(temporary_folder, ignore_errors=True)
            if target.exists():
                return None
            before_backup()
            create_backup(installation, target, now, call_regularly)
            for path in find_expired_backups(folder):
                path.unlink()
    except LockHeldError:
        return None
    return target


def back_up_before_migration_if_enabled(
    installation: Installation, old_revision: str, now: dt.datetime
) -> None:
    """Back up a database before a migration. Raises InstallationError if that fails."""
    folder = installation.backup_folder
    if folder is None:
        return
    if _lacks_needed_postgresql_programs(installation):
        _log.warning(
            "No copy is made before the migration: %s was not found.",
            find_missing_postgresql_program(),
        )
        return
    _make_private_backup_folder(folder)
    target = folder / name_migration_backup(_utc_day(now), old_revision, latest_schema_revision())
    try:
        with hold_file_lock(folder / _COPYING_LOCK_NAME):
            create_backup(installation, target, now)
    except InstallationError as error:
        raise InstallationError(
            f"the database is not migrated without a copy, and {error} (To migrate "
            "without one, set HEADROOM_BACKUPS=off.)"
        ) from None


class _DailyBackupScheduler:
    """Checks whether a backup is due. Logs a failure once and retries."""

    def __init__(self, installation: Installation, clock: Clock, stop: threading.Event) -> None:
        self._installation = installation
        self._clock = clock
        self._stop = stop
        self._logged = ""
        self._vacuumed: dt.date | None = None

    async def run_until_stopping(self, stopping: asyncio.Event, first_delay: float) -> None:
        seconds = first_delay
        while not stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)
                return
            await asyncio.to_thread(self.back_up_if_due_logging_failures)
            seconds = _SECONDS_BETWEEN_CHECKS

    def back_up_if_due_logging_failures(self) -> None:
        try:
            if _lacks_needed_postgresql_programs(self._installation):
                database_copies.require_postgresql_programs()
            create_due_backup_and_delete_expired(
                self._installation,
                self._clock(),
                self._raise_if_stopping,
                self._vacuum_after_erasure,
            )
            self._logged = ""
        except _ServerStoppingError:
            return
        except (InstallationError, OSError) as error:
            if str(error) != self._logged:
                _log.warning("The daily copy could not be made: %s", error)
            self._logged = str(error)
        except Exception:  # noqa: BLE001 - logged, and the next check retries
            _log.exception("The daily copy could not be made")

    def _vacuum_after_erasure(self) -> None:
        """Vacuum the database once a day if learners were erased, even if the backup fails."""
        day, path = _utc_day(self._clock()), self._installation.sqlite_path_or_none
        if self._vacuumed == day or path is None:
            return
        self._vacuumed = day
        try:
            vacuum_file_if_marked(path, LARGEST_DAILY)
        except sqlite3.Error as error:
            _log.warning("What erased learners left is not removed today: %s.", error)

    def _raise_if_stopping(self) -> None:
        if self._stop.wait(_PAUSE_BETWEEN_STEPS_SECONDS):
            raise _ServerStoppingError


def _lacks_needed_postgresql_programs(installation: Installation) -> bool:
    is_sqlite = installation.database_url.startswith("sqlite")
    is_enabled = installation.backup_folder is not None
    return is_enabled and not is_sqlite and bool(find_missing_postgresql_program())


def _make_private_backup_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise InstallationError(
            f"the folder {folder} of the copies cannot be made ({error.strerror}): set "
            "HEADROOM_BACKUPS to one that can."
        ) from None


def _utc_day(now: dt.datetime) -> dt.date:
    return now.astimezone(dt.UTC).date()
