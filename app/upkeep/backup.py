"""Makes a backup: database, key and manifest in one file, while others write."""

import contextlib
import datetime as dt
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.db.database_url import without_password
from app.db.schema_state import UnusableDatabaseError, schema_revision, sqlite_file
from app.upkeep import archive
from app.upkeep.archive import Breath
from app.upkeep.files import open_private, private_temp_folder, sync
from app.upkeep.installation import Installation, InstallationError
from app.upkeep.manifest import (
    DATABASE,
    FORMAT,
    MANIFEST,
    SECRET,
    BackupManifest,
    KeySource,
    Kind,
    program,
    stamp,
)
from app.upkeep.secret import read_secret_file
from app.upkeep.store import server, sqlite

_SPARE = 2  # a draft of the database and the packed file lie side by side


def create_backup(
    installation: Installation,
    target: Path,
    now: dt.datetime,
    breath: Breath = lambda: None,
) -> BackupManifest:
    """Write a backup to `target`, which is replaced only when all of it is on disk.

    Everything that was acknowledged before it began is inside. `breath` is called
    again and again meanwhile; what it raises ends the backup without a trace.
    """
    with _readable(installation, target) as engine:
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
    """`back_up` for a database that was looked at: its schema is `revision`."""
    _expect_space(engine, target.parent)
    with private_temp_folder(target) as folder:
        rows = _copy_database(engine, folder, breath)
        key = _copy_key(installation, folder / SECRET)
        members = {path.name: path for path in sorted(folder.iterdir())}
        manifest = BackupManifest(
            format=FORMAT,
            headroom=program(),
            schema_revision=revision,
            made_at=stamp(now),
            database=kind_of(engine),
            rows=rows,
            secret=key,
            files={n: archive.member(p, breath) for n, p in members.items()},
        )
        _pack(manifest, members, target, breath)
    return manifest


def kind_of(engine: Engine) -> Kind:
    """Which of the two databases an engine speaks to."""
    return "sqlite" if engine.dialect.name == "sqlite" else "postgresql"


@contextlib.contextmanager
def _readable(installation: Installation, target: Path) -> Iterator[Engine]:
    engine = installation.engine()
    try:
        yield engine
    except UnusableDatabaseError as error:
        raise InstallationError(str(error)) from None
    except DBAPIError as error:
        said = without_password(error.orig, installation.database)
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
    if kind_of(engine) != "sqlite":
        return  # how much a dump takes is not known before
    size = sum(path.stat().st_size for path in sqlite.files_of(sqlite_file(engine)))
    free = shutil.disk_usage(folder).free
    if free < _SPARE * size:
        raise InstallationError(
            f"{folder} has {free // 1_000_000} MB free and a backup needs "
            f"{_SPARE * size // 1_000_000} MB while it is made: make room, or choose "
            "another place."
        )


def _copy_database(engine: Engine, folder: Path, breath: Breath) -> dict[str, int]:
    place = folder / DATABASE[kind_of(engine)]
    os.close(open_private(place))
    if kind_of(engine) == "sqlite":
        sqlite.copy(sqlite_file(engine), place, breath)
        return sqlite.counts(place)
    server.expect_programs()
    with server.one_moment(engine) as (connection, moment):
        server.dump(engine, place, moment, breath)
        return server.counts(connection)


def _copy_key(installation: Installation, place: Path) -> KeySource:
    if not installation.secret and not installation.secret_file.exists():
        return "none"
    key = installation.secret or read_secret_file(installation.secret_file)
    with os.fdopen(open_private(place), "w", encoding="utf-8") as stream:
        stream.write(key)
    return "HEADROOM_SECRET" if installation.secret else "data folder"


def _pack(manifest: BackupManifest, members: dict[str, Path], target: Path, breath: Breath) -> None:
    folder = next(iter(members.values())).parent
    told = folder / MANIFEST
    told.write_bytes(manifest.written())
    whole = folder / "whole"
    archive.write(whole, {MANIFEST: told, **members}, breath)
    whole.replace(target)
    sync(target.parent)
