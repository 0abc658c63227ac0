"""The checks of `headroom doctor`."""

import dataclasses
import datetime as dt
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from sqlalchemy.exc import DBAPIError

from app.content.check import check_course
from app.content.live_courses import find_course_folders
from app.database import database_copies
from app.database.backup import BackupReader, list_automatic_backups, open_backup
from app.database.engine import redact_passwords_in_message, redact_passwords_of_url
from app.database.file_guards import list_replaced_files_folders, open_sqlite_file
from app.database.installation import Installation, InstallationError
from app.database.quotas import LEAST_FREE
from app.database.schema import (
    UnusableDatabaseError,
    latest_schema_revision,
    list_database_files,
    read_schema_revision,
    require_sqlite_path,
)

Level = Literal["ok", "warning", "problem"]
_OLD_COPY = dt.timedelta(days=2)


@dataclasses.dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check. `remedy` says what to do if something is wrong."""

    level: Level
    subject: str
    message: str
    remedy: str = ""


def iterate_doctor_findings(
    installation: Installation, content_folder: Path, now: dt.datetime
) -> Iterator[DoctorFinding]:
    """Run every check; none of them changes anything. `content_folder` is the course folder."""
    yield _check_data_folder(installation.data_folder)
    yield _check_file_modes(installation)
    yield from _check_database(installation)
    yield _check_secret_key(installation)
    for folder in find_course_folders(content_folder).values():
        yield _check_course_content(folder)
    yield from _check_backups(installation, now)
    yield from _report_replaced_files_folders(installation, now)
    if not installation.database_url.startswith("sqlite"):
        yield _check_postgresql_programs()


def _check_data_folder(data: Path) -> DoctorFinding:
    subject = "data folder"
    if not data.is_dir():
        remedy = (
            "Set HEADROOM_DATA to the right folder, start the server once to make a "
            "new one, or put a backup there with `headroom restore FILE`."
        )
        return DoctorFinding("problem", subject, f"{data} does not exist", remedy)
    if not os.access(data, os.W_OK | os.X_OK):
        message = f"{data} cannot be written by this user"
        return DoctorFinding("problem", subject, message, f"Let this user own it: chown {data}.")
    free_bytes = shutil.disk_usage(data).free
    message = f"{data} can be written, {free_bytes // 1_000_000:,} MB free"
    if free_bytes < LEAST_FREE:
        message += ", too little to import cards"
        return DoctorFinding("warning", subject, message, "Make room before the disk is full.")
    return DoctorFinding("ok", subject, message)


def _check_file_modes(installation: Installation) -> DoctorFinding:
    paths = [installation.secret_file]
    if installation.sqlite_path_or_none:
        paths += list_database_files(installation.sqlite_path_or_none)
    if installation.backup_folder is not None:
        paths += list_automatic_backups(installation.backup_folder)
    readable_paths = [p for p in paths if p.is_file() and p.stat().st_mode & 0o077]
    if readable_paths:
        names = " ".join(str(p) for p in readable_paths)
        message = f"others on this machine can read {names}"
        return DoctorFinding("warning", "file modes", message, f"Run: chmod 600 {names}")
    return DoctorFinding("ok", "file modes", "nobody else can read what is kept")


def _check_database(installation: Installation) -> Iterator[DoctorFinding]:
    name = redact_passwords_of_url(installation.database_url)
    try:
        engine = installation.make_engine()
    except InstallationError as error:
        yield DoctorFinding("problem", "database", name, str(error))
        return
    try:
        revision = read_schema_revision(engine)
        message = f"{name} opens; schema {revision}, newest {latest_schema_revision()}"
        if not revision:
            message = f"{name} does not exist yet or is empty"
            yield DoctorFinding("warning", "database", message, "The first start makes it.")
            return
        if revision == latest_schema_revision():
            yield DoctorFinding("ok", "database", message)
        else:
            remedy = "The next start migrates it, after a copy; or run `headroom db upgrade`."
            yield DoctorFinding("warning", "database", message, remedy)
        if engine.dialect.name == "sqlite":
            yield _check_sqlite_integrity(require_sqlite_path(engine))
    except UnusableDatabaseError as error:
        yield DoctorFinding("problem", "database", name, f"{error}")
    except (DBAPIError, sqlite3.Error) as error:
        reason = redact_passwords_in_message(
            getattr(error, "orig", error), installation.database_url
        )
        message = f"{name} cannot be opened ({' '.join(reason.split())})"
        remedy = "Check the address, and that the server runs and lets this user in."
        yield DoctorFinding("problem", "database", message, remedy)
    finally:
        engine.dispose()


def _check_sqlite_integrity(path: Path) -> DoctorFinding:
    if fault := database_copies.find_damage_of_sqlite_file(path):
        message = f"{path} is damaged ({fault})"
        return DoctorFinding("problem", "integrity", message, "Run `headroom restore FILE`.")
    with open_sqlite_file(path, "ro") as connection:
        orphans = len(connection.execute("PRAGMA foreign_key_check").fetchall())
    if orphans:
        message = f"{orphans} rows point to a row that is not there"
        remedy = "Report it with the version; a backup from before may be sound."
        return DoctorFinding("problem", "integrity", message, remedy)
    return DoctorFinding("ok", "integrity", "every page and every reference is sound")


def _check_secret_key(installation: Installation) -> DoctorFinding:
    path = installation.secret_file
    if not installation.configured_key and not path.exists():
        return DoctorFinding(
            "warning",
            "key",
            f"{path} does not exist; with a new one, every browser is a new learner",
            "If there were learners before: `headroom restore FILE` brings it back.",
        )
    try:
        key = installation.read_secret_key()
    except InstallationError as error:
        return DoctorFinding("problem", "key", "cannot be used", str(error))
    source = "HEADROOM_SECRET" if installation.configured_key else str(path)
    return DoctorFinding("ok", "key", f"{source} has {len(key)} characters")


def _check_course_content(course_folder: Path) -> DoctorFinding:
    if not course_folder.is_dir():
        message = f"{course_folder} is not a folder"
        remedy = "Set HEADROOM_CONTENT to the folder that holds syllabus.toml."
        return DoctorFinding("problem", "content", message, remedy)
    errors = sum(p.severity == "error" for p in check_course(course_folder))
    if errors:
        message = f"{errors} error{'' if errors == 1 else 's'} in {course_folder}"
        return DoctorFinding("warning", "content", message, "`headroom check` names each.")
    return DoctorFinding("ok", "content", f"no errors in {course_folder}")


def _check_backups(installation: Installation, now: dt.datetime) -> Iterator[DoctorFinding]:
    folder = installation.backup_folder
    if folder is None:
        message = "HEADROOM_BACKUPS=off, so no daily copies are made"
        yield DoctorFinding("warning", "backups", message, "Run `headroom backup FILE` daily.")
        return
    paths = list(list_automatic_backups(folder)) if folder.is_dir() else []
    if not paths:
        message = f"there is none in {folder}"
        remedy = "A running server makes one within ten minutes; or `headroom backup`."
        yield DoctorFinding("warning", "backups", message, remedy)
        return
    try:
        with open_backup(paths[-1]) as backup:
            backup.verify_files()
            made_at = dt.datetime.fromisoformat(backup.manifest.made_at)
            message = f"{len(paths)} copies, the newest of {backup.manifest.made_at_text} is sound"
            if now - made_at > _OLD_COPY:
                remedy = "A running server makes one a day; its log says why it does not."
                yield DoctorFinding("warning", "backups", message, remedy)
            else:
                yield DoctorFinding("ok", "backups", message)
            yield from _warn_if_backup_key_differs(installation, backup, paths[-1])
    except InstallationError as error:
        remedy = "Make another with `headroom backup FILE`, and check the disk."
        yield DoctorFinding("problem", "backups", str(error), remedy)


def _warn_if_backup_key_differs(
    installation: Installation, backup: BackupReader, path: Path
) -> Iterator[DoctorFinding]:
    try:
        key = installation.read_secret_key()
    except InstallationError:  # reported by an earlier check
        return
    if backup.has_key and backup.read_secret_key() != key:
        yield DoctorFinding(
            "warning",
            "key",
            f"it is not the one in {path}, so browsers from before are new learners",
            "Unless you changed it yourself: `headroom restore FILE` brings it back.",
        )


def _report_replaced_files_folders(
    installation: Installation, now: dt.datetime
) -> Iterator[DoctorFinding]:
    """Report folders with the files that a restore replaced. Only the owner may delete them."""
    parents = {installation.data_folder}
    if installation.sqlite_path_or_none:
        parents.add(installation.sqlite_path_or_none.parent)
    for parent in sorted(parents):
        for folder, made_at in list_replaced_files_folders(parent):
            size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
            days = max(0, (now - made_at).days)
            yield DoctorFinding(
                "warning",
                "kept by restore",
                f"{folder}, {size / 1e6:.1f} MB, {days} day{'' if days == 1 else 's'} "
                "old: what was there before, erased learners included",
                f"When nothing of it is missed: rm -r {shlex.quote(str(folder))}",
            )


def _check_postgresql_programs() -> DoctorFinding:
    subject = "PostgreSQL programs"
    if name := database_copies.find_missing_postgresql_program():
        message = f"{name} was not found, so no copies are made"
        remedy = "Install the client programs of the server's version."
        return DoctorFinding("warning", subject, message, remedy)
    return DoctorFinding("ok", subject, "pg_dump, pg_restore and psql are there")
