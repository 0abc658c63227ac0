"""Puts a backup in the place of an installation, and keeps what was there."""

import dataclasses
import datetime as dt
import sqlite3
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.db.database_url import without_password
from app.db.schema_state import (
    RESTORING,
    UnusableDatabaseError,
    examine_file,
    latest_revision,
    sqlite_file,
)
from app.upkeep import archive
from app.upkeep.archive import BackupArchive
from app.upkeep.backup import kind_of, write_backup
from app.upkeep.files import (
    PRIVATE_FOLDER,
    make_private_folder,
    name_aside,
    private_temp_folder,
    sync,
)
from app.upkeep.installation import Installation, InstallationError
from app.upkeep.manifest import DATABASE, SECRET, BackupManifest
from app.upkeep.secret import read_secret_file
from app.upkeep.store import server, sqlite

_NAMED = {"sqlite": "a SQLite database", "postgresql": "a PostgreSQL database"}


@dataclasses.dataclass(frozen=True, slots=True)
class RestoreResult:
    """What was put back, and where that lies which was there before."""

    manifest: BackupManifest
    kept: tuple[Path, ...]


def restore(installation: Installation, source: Path, now: dt.datetime) -> RestoreResult:
    """Check everything about a backup, then replace database and key by its own.

    Raises Unusable, and changes nothing, where anything is wrong with the backup or
    somebody uses the data folder.
    """
    engine = installation.engine()
    try:
        with archive.open_backup(source) as opened:
            _expect_readable(opened.manifest, engine, source)
            opened.check()
            make_private_folder(installation.data)
            with installation.alone():
                return _replace(installation, engine, opened, now)
    except UnusableDatabaseError as error:
        raise InstallationError(str(error)) from None
    except (DBAPIError, sqlite3.Error) as error:
        said = without_password(getattr(error, "orig", error), installation.database)
        raise InstallationError(f"the database cannot be reached ({said}).") from None
    except OSError as error:
        raise InstallationError(
            f"{error.filename or installation.data} cannot be written "
            f"({error.strerror}): make room, or set HEADROOM_DATA to another folder."
        ) from None
    finally:
        engine.dispose()


def _expect_readable(manifest: BackupManifest, engine: Engine, source: Path) -> None:
    if manifest.database != kind_of(engine):
        raise InstallationError(
            f"{source} holds {_NAMED[manifest.database]}, but this installation uses "
            f"{_NAMED[kind_of(engine)]}: set HEADROOM_DATABASE_URL to one of the same "
            "kind."
        )
    if manifest.schema_revision > latest_revision():
        raise InstallationError(
            f"{source} was written by a newer Headroom ({manifest.headroom}, schema "
            f"{manifest.schema_revision}; this version knows up to {latest_revision()}): "
            "install the newer version first."
        )


def _replace(
    installation: Installation, engine: Engine, opened: BackupArchive, now: dt.datetime
) -> RestoreResult:
    manifest = opened.manifest
    aside = _ReplacedFiles(name_aside(now))
    to_file = manifest.database == "sqlite"
    place = sqlite_file(engine) if to_file else installation.data / "restore"
    # Each is written on the disk where it will lie, which may be two.
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
    """What was in the backup, checked, in a folder of its own."""

    database: Path
    key: Path | None


class _ReplacedFiles:
    """Where that goes which is replaced: a dated folder beside it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._moved: list[tuple[Path, Path]] = []
        self.kept: list[Path] = []

    def place(self, path: Path) -> Path:
        """Where a file is kept; its folder is made."""
        folder = path.parent / self._name
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        if folder not in self.kept:
            self.kept.append(folder)
        return folder / path.name

    def put(self, path: Path) -> None:
        """Move a file there, if it is there."""
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
    wrong = sqlite.damage(database)
    try:
        if not wrong and examine_file(database) != manifest.schema_revision:
            wrong = "its schema is not the one that its manifest names"
        elif not wrong and sqlite.counts(database) != manifest.rows:
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
    sqlite.take_out_of_use(place)
    # While a file of this name is there no server starts: whoever pulls the plug now
    # finds neither a new, empty database nor one with the log of another.
    ready = Path(f"{place}{RESTORING}")
    new.database.replace(ready)
    sync(place.parent)
    try:
        for path in sqlite.files_of(place):
            aside.put(path)
        _replace_key(installation, new, aside)
        ready.replace(place)
    except OSError:
        aside.put_back()
        ready.unlink()
        raise
    sync(place.parent)


def _replace_tables(
    installation: Installation,
    engine: Engine,
    new: _BackupContents,
    keeping: tuple[_ReplacedFiles, dt.datetime],
) -> None:
    server.expect_programs()
    server.expect_dump(engine, new.database)
    if others := server.others(engine):
        raise InstallationError(
            f"{others} other connection{'s use' if others > 1 else ' uses'} the "
            "database: stop every server of this database first."
        )
    aside, now = keeping
    revision = server.revision(engine)
    if revision is not None:
        kept = aside.place(installation.data / "database.zip")
        write_backup(installation, engine, revision, kept, now)
    engine.dispose()
    server.replace(engine, new.database, new.database.parent)
    _replace_key(installation, new, aside)


def _replace_key(installation: Installation, new: _BackupContents, aside: _ReplacedFiles) -> None:
    if new.key is None:
        return
    aside.put(installation.secret_file)
    new.key.replace(installation.secret_file)
    sync(installation.data)
