"""Backups: create, read and restore them, and decide which to delete."""

import contextlib
import dataclasses
import datetime as dt
import hashlib
import os
import re
import shutil
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.database import dump_tools
from app.database.engine import hide_passwords
from app.database.file_guards import (
    PRIVATE_FOLDER,
    make_private_folder,
    name_aside,
    open_private,
    private_temp_folder,
    sync_to_disk,
)
from app.database.installation import Installation, InstallationError, read_secret_file
from app.database.schema import (
    RESTORING,
    UnusableDatabaseError,
    examine_file,
    latest_revision,
    schema_revision,
    sqlite_file,
)

FORMAT = 1
MANIFEST = "manifest.json"
SECRET = "secret"  # noqa: S105 - the name of a file
DATABASE = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
"""File name of the database in a backup, by database kind."""
Kind = Literal["sqlite", "postgresql"]
KeySource = Literal["data folder", "HEADROOM_SECRET", "none"]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Strict = ConfigDict(frozen=True, strict=True)


class BackupMember(BaseModel):
    """Size and checksum of a file in a backup."""

    model_config = _Strict
    size: int = Field(ge=0)
    sha256: Digest


class BackupManifest(BaseModel):
    """Description of a backup. `rows` counts rows by table.

    `secret` says where the signing key came from. The backup always includes it: with a
    new key every browser would lose its learner.
    """

    model_config = _Strict
    format: int
    headroom: str
    schema_revision: str
    made_at: str
    database: Kind
    rows: dict[str, int]
    secret: KeySource
    files: dict[str, BackupMember]

    def written(self) -> bytes:
        """Return the manifest as the JSON bytes in the backup."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @property
    def day(self) -> str:
        """The date and time of the backup, for display."""
        return f"{self.made_at[:10]} {self.made_at[11:16]} UTC"


class _ManifestFormat(BaseModel):
    format: int


def read_manifest(content: bytes) -> BackupManifest:
    """Parse a manifest. Raises InstallationError if this version cannot read it."""
    try:
        found = _ManifestFormat.model_validate_json(content).format
        if found > FORMAT:
            raise InstallationError(
                f"it was written by a newer Headroom (format {found}; this version "
                f"reads format {FORMAT}): install the newer version first"
            )
        manifest = BackupManifest.model_validate_json(content)
    except ValidationError:
        raise InstallationError("its manifest is damaged or of another program") from None
    if DATABASE[manifest.database] not in manifest.files:
        raise InstallationError("it holds no database")
    if foreign := manifest.files.keys() - {*DATABASE.values(), SECRET}:
        raise InstallationError(f"it holds “{min(foreign)}”, which no backup does")
    return manifest


def program_version() -> str:
    return version("headroom")


def format_timestamp(now: dt.datetime) -> str:
    """Format a time for a manifest, in UTC."""
    return now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_PART = 1 << 20
_LONGEST = 1 << 20  # limit for a manifest, in bytes
# Exceptions of the zip reader for corrupt or foreign files.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
Breath = Callable[[], object]


class BackupArchive:
    def __init__(self, zipped: zipfile.ZipFile, path: Path) -> None:
        self._zipped = zipped
        self._path = path
        self.manifest: BackupManifest = self._read_manifest()

    def check(self) -> None:
        """Verify every file in the backup against its checksum."""
        for name in self.manifest.files:
            self._copy_member(name, None)

    def take_out(self, name: str, place: Path) -> None:
        """Extract a file to a new private path. Raises InstallationError if it is damaged."""
        with os.fdopen(open_private(place), "wb") as stream:
            self._copy_member(name, stream)
        sync_to_disk(place)

    def _copy_member(self, name: str, target: IO[bytes] | None) -> None:
        told = self.manifest.files[name]
        digest, size = hashlib.sha256(), 0
        with _expect_readable_archive(self._path), self._zipped.open(name) as source:
            # One byte beyond the expected size proves that it is another file.
            while size <= told.size and (part := source.read(_PART)):
                size += len(part)
                digest.update(part)
                if target is not None:
                    target.write(part)
        if (size, digest.hexdigest()) != (told.size, told.sha256):
            raise _damaged_backup_error(self._path, f"{name} is not what the manifest says")

    def _read_manifest(self) -> BackupManifest:
        with _expect_readable_archive(self._path), self._zipped.open(MANIFEST) as source:
            content = source.read(_LONGEST)
        try:
            return read_manifest(content)
        except InstallationError as error:
            raise InstallationError(f"{self._path} cannot be used: {error}.") from None


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[BackupArchive]:
    """Open a backup for reading. Raises InstallationError if the file is no valid backup."""
    with contextlib.ExitStack() as stack:
        with _expect_readable_archive(path):
            zipped = stack.enter_context(zipfile.ZipFile(path))
        yield BackupArchive(zipped, path)


def write_archive(target: Path, members: Mapping[str, Path], breath: Breath) -> None:
    """Write files into an archive at `target`. Calls `breath` regularly, which may raise."""
    with (
        os.fdopen(open_private(target), "wb") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
    ):
        for name, path in members.items():
            with (
                path.open("rb") as source,
                zipped.open(name, "w", force_zip64=True) as into,
            ):
                while part := source.read(_PART):
                    into.write(part)
                    breath()
    sync_to_disk(target)


def describe_member(path: Path, breath: Breath) -> BackupMember:
    """Return the size and checksum of a file for the manifest. Calls `breath` regularly."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as source:
        while part := source.read(_PART):
            size += len(part)
            digest.update(part)
            breath()
    return BackupMember(size=size, sha256=digest.hexdigest())


@contextlib.contextmanager
def _expect_readable_archive(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        words = error.strerror or "it ends too early"
        raise InstallationError(f"{path} cannot be read ({words}).") from None
    except _BROKEN as error:
        raise _damaged_backup_error(path, str(error).rstrip(".") or "it ends too early") from None


def _damaged_backup_error(path: Path, words: str) -> InstallationError:
    return InstallationError(
        f"{path} is not a sound backup of Headroom ({words}); nothing was changed: "
        "use another copy."
    )


_SPARE = 2  # the database copy and the archive exist at the same time


def create_backup(
    installation: Installation,
    target: Path,
    now: dt.datetime,
    breath: Breath = lambda: None,
) -> BackupManifest:
    """Write a backup to `target`, which is replaced only once the backup is completely on disk.

    It contains everything that was committed before it began. `breath` is called
    regularly; if it raises, the backup is canceled and removed.
    """
    with _backup_readable(installation, target) as engine:
        revision = schema_revision(engine)
        if not revision:
            raise InstallationError(
                "there is no database yet, so there is nothing to back up: start the "
                "server first, or set HEADROOM_DATA to the folder that it uses."
            )
        return write_backup(installation, engine, revision, target, now, breath)


def write_backup(
    installation: Installation,
    engine: Engine,
    revision: str,
    target: Path,
    now: dt.datetime,
    breath: Breath = lambda: None,
) -> BackupManifest:
    """`create_backup` for a database that was already checked and has the schema `revision`."""
    _expect_space(engine, target.parent)
    with private_temp_folder(target) as folder:
        rows = _copy_database(engine, folder, breath)
        key = _copy_key(installation, folder / SECRET)
        members = {path.name: path for path in sorted(folder.iterdir())}
        manifest = BackupManifest(
            format=FORMAT,
            headroom=program_version(),
            schema_revision=revision,
            made_at=format_timestamp(now),
            database=database_kind(engine),
            rows=rows,
            secret=key,
            files={n: describe_member(p, breath) for n, p in members.items()},
        )
        _pack_archive(manifest, members, target, breath)
    return manifest


def database_kind(engine: Engine) -> Kind:
    return "sqlite" if engine.dialect.name == "sqlite" else "postgresql"


@contextlib.contextmanager
def _backup_readable(installation: Installation, target: Path) -> Iterator[Engine]:
    engine = installation.engine()
    try:
        yield engine
    except UnusableDatabaseError as error:
        raise InstallationError(str(error)) from None
    except DBAPIError as error:
        said = hide_passwords(error.orig, installation.database)
        raise InstallationError(f"the database cannot be read ({said}).") from None
    except (OSError, sqlite3.Error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InstallationError(
            f"the backup {target} cannot be written ({said}): choose a place with "
            "enough space that can be written to."
        ) from None
    finally:
        engine.dispose()


def _expect_space(engine: Engine, folder: Path) -> None:
    if database_kind(engine) != "sqlite":
        return  # the size of a dump is not known in advance
    size = sum(path.stat().st_size for path in dump_tools.database_files(sqlite_file(engine)))
    free = shutil.disk_usage(folder).free
    if free < _SPARE * size:
        raise InstallationError(
            f"{folder} has {free // 1_000_000} MB free and a backup needs "
            f"{_SPARE * size // 1_000_000} MB while it is made: make room, or choose "
            "another place."
        )


def _copy_database(engine: Engine, folder: Path, breath: Breath) -> dict[str, int]:
    place = folder / DATABASE[database_kind(engine)]
    os.close(open_private(place))
    if database_kind(engine) == "sqlite":
        dump_tools.copy_database(sqlite_file(engine), place, breath)
        return dump_tools.count_rows(place)
    dump_tools.expect_programs()
    with dump_tools.hold_snapshot(engine) as (connection, moment):
        dump_tools.dump_database(engine, place, moment, breath)
        return dump_tools.count_server_rows(connection)


def _copy_key(installation: Installation, place: Path) -> KeySource:
    if not installation.secret and not installation.secret_file.exists():
        return "none"
    key = installation.secret or read_secret_file(installation.secret_file)
    with os.fdopen(open_private(place), "w", encoding="utf-8") as stream:
        stream.write(key)
    return "HEADROOM_SECRET" if installation.secret else "data folder"


def _pack_archive(
    manifest: BackupManifest, members: dict[str, Path], target: Path, breath: Breath
) -> None:
    folder = next(iter(members.values())).parent
    told = folder / MANIFEST
    told.write_bytes(manifest.written())
    whole = folder / "whole"
    write_archive(whole, {MANIFEST: told, **members}, breath)
    whole.replace(target)
    sync_to_disk(target.parent)


DAYS, WEEKS, MONTHS = 7, 4, 6
_NAME = re.compile(r"headroom-(\d{4}-\d{2}-\d{2})(-before-\d{4}-to-\d{4})?\.zip")


def dates_to_keep(dates: Iterable[dt.date]) -> set[dt.date]:
    """Return which of the backup dates to keep.

    The newest seven, the last of each of the newest four weeks (Monday to Sunday), and
    the last of each of the newest six months.
    """
    newest_first = sorted(set(dates), reverse=True)
    return {
        *newest_first[:DAYS],
        *_last_per_period(newest_first, lambda day: day.isocalendar()[:2])[:WEEKS],
        *_last_per_period(newest_first, lambda day: (day.year, day.month))[:MONTHS],
    }


def _last_per_period(
    newest_first: list[dt.date], period: Callable[[dt.date], Hashable]
) -> list[dt.date]:
    last: dict[Hashable, dt.date] = {}
    for day in newest_first:
        last.setdefault(period(day), day)
    return list(last.values())


def daily_backup_name(day: dt.date) -> str:
    """Return the file name of a daily backup."""
    return f"headroom-{day.isoformat()}.zip"


def name_before(day: dt.date, old: str, new: str) -> str:
    """Return the file name of a backup made before a migration from `old` to `new`."""
    return f"headroom-{day.isoformat()}-before-{old}-to-{new}.zip"


def list_daily_backups(folder: Path) -> dict[Path, dt.date]:
    """Return the backups in a folder with their dates, newest last. Other files are ignored."""
    found = {}
    for path in folder.glob("headroom-*.zip"):
        if match := _NAME.fullmatch(path.name):
            try:
                found[path] = dt.date.fromisoformat(match[1])
            except ValueError:  # no date, such as headroom-2026-02-31.zip: not a backup
                continue
    return dict(sorted(found.items(), key=lambda copy: (copy[1], copy[0].name)))


def find_expired_backups(folder: Path) -> list[Path]:
    """Return the backups in a folder that can be deleted."""
    found = list_daily_backups(folder)
    stay = dates_to_keep(found.values())
    return [path for path, day in found.items() if day not in stay]


_NAMED = {"sqlite": "a SQLite database", "postgresql": "a PostgreSQL database"}


@dataclasses.dataclass(frozen=True, slots=True)
class RestoreResult:
    """The manifest of the restored backup, and the folders with the replaced files."""

    manifest: BackupManifest
    kept: tuple[Path, ...]


def restore_backup(installation: Installation, source: Path, now: dt.datetime) -> RestoreResult:
    """Check a backup, then replace the database and the key with its contents.

    Raises InstallationError and changes nothing if the backup is invalid or the data
    folder is in use.
    """
    engine = installation.engine()
    try:
        with open_backup(source) as opened:
            _expect_readable(opened.manifest, engine, source)
            opened.check()
            make_private_folder(installation.data)
            with installation.alone():
                return _replace_installation(installation, engine, opened, now)
    except UnusableDatabaseError as error:
        raise InstallationError(str(error)) from None
    except (DBAPIError, sqlite3.Error) as error:
        said = hide_passwords(getattr(error, "orig", error), installation.database)
        raise InstallationError(f"the database cannot be reached ({said}).") from None
    except OSError as error:
        raise InstallationError(
            f"{error.filename or installation.data} cannot be written "
            f"({error.strerror}): make room, or set HEADROOM_DATA to another folder."
        ) from None
    finally:
        engine.dispose()


def _expect_readable(manifest: BackupManifest, engine: Engine, source: Path) -> None:
    if manifest.database != database_kind(engine):
        raise InstallationError(
            f"{source} holds {_NAMED[manifest.database]}, but this installation uses "
            f"{_NAMED[database_kind(engine)]}: set HEADROOM_DATABASE_URL to one of the same "
            "kind."
        )
    if manifest.schema_revision > latest_revision():
        raise InstallationError(
            f"{source} was written by a newer Headroom ({manifest.headroom}, schema "
            f"{manifest.schema_revision}; this version knows up to {latest_revision()}): "
            "install the newer version first."
        )


def _replace_installation(
    installation: Installation, engine: Engine, opened: BackupArchive, now: dt.datetime
) -> RestoreResult:
    manifest = opened.manifest
    aside = _ReplacedFiles(name_aside(now))
    to_file = manifest.database == "sqlite"
    place = sqlite_file(engine) if to_file else installation.data / "restore"
    # Extract each file on its target disk, which may be two disks.
    with (
        private_temp_folder(place) as folder,
        private_temp_folder(installation.secret_file) as beside,
    ):
        new = _BackupContents(
            folder / DATABASE[manifest.database],
            beside / SECRET if SECRET in manifest.files else None,
        )
        opened.take_out(new.database.name, new.database)
        if new.key is not None:
            opened.take_out(SECRET, new.key)
            read_secret_file(new.key)
        if to_file:
            _expect_sound(new.database, manifest)
            _replace_file(installation, place, new, aside)
        else:
            _replace_tables(installation, engine, new, (aside, now))
    return RestoreResult(manifest, tuple(aside.kept))


@dataclasses.dataclass(frozen=True, slots=True)
class _BackupContents:
    """The extracted, verified files of a backup."""

    database: Path
    key: Path | None


class _ReplacedFiles:
    """The replaced files, moved to a dated folder next to their old place."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._moved: list[tuple[Path, Path]] = []
        self.kept: list[Path] = []

    def place(self, path: Path) -> Path:
        """Return where to move a file. Creates the folder."""
        folder = path.parent / self._name
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        if folder not in self.kept:
            self.kept.append(folder)
        return folder / path.name

    def put(self, path: Path) -> None:
        """Move a file there, if it exists."""
        if path.exists():
            there = self.place(path)
            path.rename(there)
            self._moved.append((path, there))

    def put_back(self) -> None:
        """Move every file back to where it was."""
        while self._moved:
            path, there = self._moved.pop()
            there.replace(path)
        for folder in self.kept:
            folder.rmdir()
        self.kept.clear()


def _expect_sound(database: Path, manifest: BackupManifest) -> None:
    wrong = dump_tools.find_damage(database)
    try:
        if not wrong and examine_file(database) != manifest.schema_revision:
            wrong = "its schema is not the one that its manifest names"
        elif not wrong and dump_tools.count_rows(database) != manifest.rows:
            wrong = "its rows are not those that its manifest counts"
    except UnusableDatabaseError as error:
        wrong = str(error).partition(": ")[0]
    if wrong:
        raise InstallationError(
            f"the database inside of the backup is not sound ({wrong}); nothing was "
            "changed: use another copy."
        )


def _replace_file(
    installation: Installation, place: Path, new: _BackupContents, aside: _ReplacedFiles
) -> None:
    dump_tools.fold_in_wal(place)
    # While a file of this name exists, no server starts. So a crash at this point
    # leaves neither a new, empty database nor one with another's log.
    ready = Path(f"{place}{RESTORING}")
    new.database.replace(ready)
    sync_to_disk(place.parent)
    try:
        for path in dump_tools.database_files(place):
            aside.put(path)
        _replace_key(installation, new, aside)
        ready.replace(place)
    except OSError:
        aside.put_back()
        ready.unlink()
        raise
    sync_to_disk(place.parent)


def _replace_tables(
    installation: Installation,
    engine: Engine,
    new: _BackupContents,
    keeping: tuple[_ReplacedFiles, dt.datetime],
) -> None:
    dump_tools.expect_programs()
    dump_tools.expect_dump(engine, new.database)
    if others := dump_tools.count_other_connections(engine):
        raise InstallationError(
            f"{others} other connection{'s use' if others > 1 else ' uses'} the "
            "database: stop every server of this database first."
        )
    aside, now = keeping
    revision = dump_tools.server_revision(engine)
    if revision is not None:
        kept = aside.place(installation.data / "database.zip")
        write_backup(installation, engine, revision, kept, now)
    engine.dispose()
    dump_tools.replace_tables(engine, new.database, new.database.parent)
    _replace_key(installation, new, aside)


def _replace_key(installation: Installation, new: _BackupContents, aside: _ReplacedFiles) -> None:
    if new.key is None:
        return
    aside.put(installation.secret_file)
    new.key.replace(installation.secret_file)
    sync_to_disk(installation.data)
