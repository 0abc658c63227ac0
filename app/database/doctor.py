"""The checks of `headroom doctor`."""

import dataclasses
import datetime as dt
import difflib
import hashlib
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.content.check import check_course
from app.content.courses import find_course_folders
from app.database import backup, dump_tools
from app.database.backup import SECRET, list_daily_backups
from app.database.engine import hide_passwords, redact_url
from app.database.file_guards import folders_aside
from app.database.installation import (
    Installation,
    InstallationError,
    load_secret_key,
    read_secret_file,
)
from app.database.quotas import LEAST_FREE, StorageLimit
from app.database.schema import UnusableDatabaseError, latest_revision, schema_revision, sqlite_file

Level = Literal["ok", "warning", "problem"]
_LONG_LOG = 100_000_000  # SQLite checkpoints its log at four million
_OLD_COPY = dt.timedelta(days=2)
_BACK, _AHEAD = dt.timedelta(minutes=5), dt.timedelta(days=400)


@dataclasses.dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check. `remedy` says what to do if something is wrong."""

    level: Level
    subject: str
    words: str
    remedy: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedDeployment:
    """An installation with its course folder and environment variables.

    `settings` are the valid variable names. `max_data_gb` limits the database, 0 means
    no limit.
    """

    installation: Installation
    content: Path
    settings: frozenset[str]
    environment: Mapping[str, str]
    max_data_gb: float = 0


def run_checks(deployment: CheckedDeployment, now: dt.datetime) -> Iterator[DoctorFinding]:
    """Run every check; none of them changes anything."""
    installation = deployment.installation
    yield _check_settings(deployment.settings, deployment.environment)
    yield from _data_folder(installation.data)
    yield _check_file_modes(installation)
    yield from _check_database(deployment, now)
    yield _check_secret_key(installation)
    for folder in find_course_folders(deployment.content).values():
        yield _check_content(folder)
    yield from _check_backups(installation, now)
    yield from _check_replaced_files(installation, now)
    if not installation.database.startswith("sqlite"):
        yield _check_programs()


def _check_settings(known: frozenset[str], environment: Mapping[str, str]) -> DoctorFinding:
    given = sorted(name for name in environment if name.startswith("HEADROOM_"))
    unknown = [name for name in given if name not in known]
    if not unknown:
        return DoctorFinding("ok", "settings", f"{len(given)} set, all of them known")
    like = difflib.get_close_matches(unknown[0], known, n=1)
    hint = f"Did you mean {like[0]}? " if like else ""
    return DoctorFinding(
        "warning",
        "settings",
        f"nothing reads {', '.join(unknown)}",
        f"{hint}`headroom settings` lists every name.",
    )


def _data_folder(data: Path) -> Iterator[DoctorFinding]:
    subject = "data folder"
    if not data.is_dir():
        yield DoctorFinding(
            "problem",
            subject,
            f"{data} does not exist",
            "Set HEADROOM_DATA to the right folder, start the server once to make a "
            "new one, or put a backup there with `headroom restore FILE`.",
        )
        return
    if not os.access(data, os.W_OK | os.X_OK):
        words = f"{data} cannot be written by this user"
        yield DoctorFinding("problem", subject, words, f"Let this user own it: chown {data}.")
        return
    free = shutil.disk_usage(data).free
    words = f"{data} can be written, {free // 1_000_000:,} MB free"
    if free < LEAST_FREE:
        words += ", too little to import cards"
        yield DoctorFinding("warning", subject, words, "Make room before the disk is full.")
    else:
        yield DoctorFinding("ok", subject, words)


def _check_file_modes(installation: Installation) -> DoctorFinding:
    paths = [installation.secret_file]
    if installation.database.startswith("sqlite"):
        paths += dump_tools.database_files(Path(installation.database.partition(":///")[2]))
    if installation.backups is not None:
        paths += list_daily_backups(installation.backups)
    open_ = [p for p in paths if p.is_file() and p.stat().st_mode & 0o077]
    if open_:
        names = " ".join(str(p) for p in open_)
        words = f"others on this machine can read {names}"
        return DoctorFinding("warning", "file modes", words, f"Run: chmod 600 {names}")
    return DoctorFinding("ok", "file modes", "nobody else can read what is kept")


def _check_database(deployment: CheckedDeployment, now: dt.datetime) -> Iterator[DoctorFinding]:
    installation = deployment.installation
    name = redact_url(installation.database)
    try:
        engine = installation.engine()
    except InstallationError as error:
        yield DoctorFinding("problem", "database", name, str(error))
        return
    try:
        revision = schema_revision(engine)
        if not revision:
            words = f"{name} does not exist yet or is empty"
            yield DoctorFinding("warning", "database", words, "The first start makes it.")
            return
        yield _check_schema(name, revision)
        yield from _check_stored_data(engine, deployment)
        yield _check_clock(_newest_moment(engine), now)
    except UnusableDatabaseError as error:
        yield DoctorFinding("problem", "database", name, f"{error}")
    except (DBAPIError, sqlite3.Error) as error:
        said = hide_passwords(getattr(error, "orig", error), installation.database)
        words = f"{name} cannot be opened ({' '.join(said.split())})"
        remedy = "Check the address, and that the server runs and lets this user in."
        yield DoctorFinding("problem", "database", words, remedy)
    finally:
        engine.dispose()


def _check_schema(name: str, revision: str) -> DoctorFinding:
    words = f"{name} opens; schema {revision}, newest {latest_revision()}"
    if revision == latest_revision():
        return DoctorFinding("ok", "database", words)
    remedy = "The next start migrates it, after a copy; or run `headroom db upgrade`."
    return DoctorFinding("warning", "database", words, remedy)


def _check_stored_data(engine: Engine, deployment: CheckedDeployment) -> Iterator[DoctorFinding]:
    folder, max_gb = deployment.installation.data, deployment.max_data_gb
    yield _check_size(StorageLimit(engine, folder, max_gb))
    if engine.dialect.name == "sqlite":
        yield from _check_database_file(sqlite_file(engine))


def _check_size(limit: StorageLimit) -> DoctorFinding:
    words = f"{limit.database_size() / 1e9:.2f} GB"
    if not limit.is_reached():
        return DoctorFinding("ok", "size", words)
    words += ", which is the limit: learners can import and write no cards"
    return DoctorFinding("warning", "size", words, "Raise HEADROOM_MAX_DATA_GB.")


def _check_database_file(path: Path) -> Iterator[DoctorFinding]:
    if wrong := dump_tools.find_damage(path):
        words = f"{path} is damaged ({wrong})"
        yield DoctorFinding("problem", "integrity", words, "Run `headroom restore FILE`.")
        return
    if count := dump_tools.count_orphan_rows(path):
        words = f"{count} rows point to a row that is not there"
        remedy = "Report it with the version; a backup from before may be sound."
        yield DoctorFinding("problem", "integrity", words, remedy)
    else:
        yield DoctorFinding("ok", "integrity", "every page and every reference is sound")
    log = Path(f"{path}-wal")
    size = log.stat().st_size if log.exists() else 0
    words = f"{size / 1e6:.1f} MB"
    if size > _LONG_LOG:
        remedy = "Something reads without an end: restart the server."
        yield DoctorFinding("warning", "write-ahead log", words, remedy)
    else:
        yield DoctorFinding("ok", "write-ahead log", words)


def _newest_moment(engine: Engine) -> int | None:
    if engine.dialect.name == "sqlite":
        return dump_tools.newest_moment(sqlite_file(engine))
    with engine.connect() as connection:
        return dump_tools.newest_server_moment(connection)


def _check_clock(newest_moment: int | None, now: dt.datetime) -> DoctorFinding:
    words = f"{now:%Y-%m-%d %H:%M} UTC"
    if newest_moment is None:
        return DoctorFinding("ok", "clock", f"{words}; no row to compare it with")
    last = dt.datetime.fromtimestamp(newest_moment / 1000, dt.UTC)
    words += f", the newest row is of {last:%Y-%m-%d %H:%M} UTC"
    remedy = "Set the clock of this machine (timedatectl), best by NTP."
    if now < last - _BACK:
        return DoctorFinding("problem", "clock", words, remedy)
    if now > last + _AHEAD:
        return DoctorFinding("warning", "clock", words, f"If that is wrong: {remedy}")
    return DoctorFinding("ok", "clock", words)


def _check_secret_key(installation: Installation) -> DoctorFinding:
    path = installation.secret_file
    if not installation.secret and not path.exists():
        return DoctorFinding(
            "warning",
            "key",
            f"{path} does not exist; with a new one, every browser is a new learner",
            "If there were learners before: `headroom restore FILE` brings it back.",
        )
    try:
        key = read_secret_file(path) if not installation.secret else _load_key(installation)
    except InstallationError as error:
        return DoctorFinding("problem", "key", "cannot be used", str(error))
    where = "HEADROOM_SECRET" if installation.secret else str(path)
    return DoctorFinding("ok", "key", f"{where} has {len(key)} characters")


def _load_key(installation: Installation) -> str:
    return load_secret_key(installation.secret, installation.secret_file)


def _check_content(folder: Path) -> DoctorFinding:
    if not folder.is_dir():
        words = f"{folder} is not a folder"
        remedy = "Set HEADROOM_CONTENT to the folder that holds syllabus.toml."
        return DoctorFinding("problem", "content", words, remedy)
    errors = sum(p.severity == "error" for p in check_course(folder))
    if errors:
        words = f"{errors} error{'' if errors == 1 else 's'} in {folder}"
        return DoctorFinding("warning", "content", words, "`headroom check` names each.")
    return DoctorFinding("ok", "content", f"no errors in {folder}")


def _check_backups(installation: Installation, now: dt.datetime) -> Iterator[DoctorFinding]:
    folder = installation.backups
    if folder is None:
        words = "HEADROOM_BACKUPS=off, so no daily copies are made"
        yield DoctorFinding("warning", "backups", words, "Run `headroom backup FILE` daily.")
        return
    found = list(list_daily_backups(folder)) if folder.is_dir() else []
    if not found:
        words = f"there is none in {folder}"
        remedy = "A running server makes one within ten minutes; or `headroom backup`."
        yield DoctorFinding("warning", "backups", words, remedy)
        return
    yield _newest_copy(found, now)
    yield from _same_key(installation, found[-1])


def _newest_copy(found: list[Path], now: dt.datetime) -> DoctorFinding:
    path = found[-1]
    try:
        with backup.open_backup(path) as opened:
            opened.check()
            made = dt.datetime.fromisoformat(opened.manifest.made_at)
    except InstallationError as error:
        remedy = "Make another with `headroom backup FILE`, and check the disk."
        return DoctorFinding("problem", "backups", str(error), remedy)
    words = f"{len(found)} copies, the newest of {opened.manifest.day} is sound"
    if now - made > _OLD_COPY:
        remedy = "A running server makes one a day; its log says why it does not."
        return DoctorFinding("warning", "backups", words, remedy)
    return DoctorFinding("ok", "backups", words)


def _check_replaced_files(installation: Installation, now: dt.datetime) -> Iterator[DoctorFinding]:
    """Report folders with the files that a restore replaced. Only the owner may delete them."""
    places = {installation.data}
    if installation.database.startswith("sqlite"):
        places.add(Path(installation.database.partition(":///")[2]).parent)
    for place in sorted(places):
        for folder, made in folders_aside(place):
            size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
            days = max(0, (now - made).days)
            yield DoctorFinding(
                "warning",
                "kept by restore",
                f"{folder}, {size / 1e6:.1f} MB, {days} day{'' if days == 1 else 's'} "
                "old: what was there before, erased learners included",
                f"When nothing of it is missed: rm -r {shlex.quote(str(folder))}",
            )


def _same_key(installation: Installation, path: Path) -> Iterator[DoctorFinding]:
    """Warn if the current key is not the one in the backup at `path`."""
    try:
        key = installation.secret or read_secret_file(installation.secret_file)
        with backup.open_backup(path) as opened:
            told = opened.manifest.files.get(SECRET)
    except InstallationError:  # reported by an earlier check
        return
    if told is not None and told.sha256 != hashlib.sha256(key.encode()).hexdigest():
        yield DoctorFinding(
            "warning",
            "key",
            f"it is not the one in {path}, so browsers from before are new learners",
            "Unless you changed it yourself: `headroom restore FILE` brings it back.",
        )


def _check_programs() -> DoctorFinding:
    if name := dump_tools.missing_program():
        return DoctorFinding(
            "warning",
            "PostgreSQL programs",
            f"{name} was not found, so no copies are made",
            "Install the client programs of the server's version.",
        )
    return DoctorFinding("ok", "PostgreSQL programs", "pg_dump, pg_restore and psql are there")
