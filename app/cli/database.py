"""The commands `backup`, `restore`, `doctor`, `health`, `db` and `settings`."""

import argparse
import contextlib
import datetime as dt
import http.client
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from app.cli import CommandError
from app.content.check import format_count_noun
from app.database.backup import (
    BackupManifest,
    back_up_before_migration_if_enabled,
    create_backup,
    list_automatic_backups,
    restore_backup,
)
from app.database.doctor import iterate_doctor_findings
from app.database.engine import (
    is_disk_full_error,
    make_engine,
    redact_passwords_in_message,
    redact_passwords_of_url,
)
from app.database.file_guards import (
    REPLACED_FILES_PREFIX,
    give_root_files_to_folder_owner,
    make_file_private,
    make_private_folder,
    set_temporary_folder_and_purge_leftovers,
    set_umask_for_private_files,
)
from app.database.installation import Installation, InstallationError
from app.database.schema import (
    UnusableDatabaseError,
    full_disk_message,
    hold_migration_lock,
    is_schema_current,
    make_database_private,
    require_sqlite_path,
    upgrade_schema_if_outdated,
)
from app.database.secure_delete import (
    LARGEST_AT_START,
    vacuum_file_and_clear_mark,
    vacuum_file_if_marked,
)
from app.settings import Settings, list_settings_masking_secrets, unknown_variable_messages
from app.web.dependencies import public_or_listening_url


def read_settings() -> Settings:
    """Read the settings from the environment. Raises CommandError for the first invalid one."""
    for sentence in unknown_variable_messages():
        raise CommandError(sentence)
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = f"HEADROOM_{str(first['loc'][0]).upper()}"
        raise CommandError(
            f"{name} is “{first['input']}”, which cannot be used: {first['msg']}."
        ) from None


def run_settings_command(_options: argparse.Namespace) -> int:
    """Print each setting with its value, default and meaning."""
    for variable, value, default, meaning in list_settings_masking_secrets(read_settings()):
        if variable == "HEADROOM_DATABASE_URL" and value:
            value = redact_passwords_of_url(value)  # noqa: PLW2901 - without its password
        print(f"{variable}\n    value    {value}\n    default  {default or '(empty)'}")
        print(f"    meaning  {meaning}")
    return 0


_log = logging.getLogger("headroom")


def migrate_and_secure_database(installation: Installation, now: dt.datetime) -> None:
    """Migrate the database and make the data private; raises InstallationError if refused."""
    set_umask_for_private_files()
    engine = installation.make_engine()
    try:
        upgrade_schema_if_outdated(
            engine, lambda old: back_up_before_migration_if_enabled(installation, old, now)
        )
        engine.dispose()
        set_temporary_folder_and_purge_leftovers(
            installation.data_folder / "tmp"
        )  # for VACUUM and uploads
        _vacuum_after_erasure(engine)
        make_database_private(engine)
        make_file_private(installation.secret_file)
    except UnusableDatabaseError as error:
        backups = installation.backup_folder and list_automatic_backups(installation.backup_folder)
        newest = f" The newest copy is {list(backups)[-1]}." if backups else ""
        raise InstallationError(f"{error}{newest}") from None
    except DBAPIError as error:
        if error.orig is not None and is_disk_full_error(error.orig):
            raise InstallationError(full_disk_message(installation.data_folder)) from None
        reason = " ".join(
            redact_passwords_in_message(error.orig, installation.database_url).split()
        )
        raise InstallationError(
            f"the database {redact_passwords_of_url(installation.database_url)} cannot be opened ({reason}): "
            "check the address and that the server runs, or set HEADROOM_DATABASE_URL "
            "to another."
        ) from None
    except OSError as error:
        if is_disk_full_error(error):
            raise InstallationError(full_disk_message(installation.data_folder)) from None
        raise InstallationError(
            f"{error.filename or installation.data_folder} cannot be written "
            f"({error.strerror}): give this user the right to, or set HEADROOM_DATA."
        ) from None
    finally:
        engine.dispose()


def _vacuum_after_erasure(engine: Engine) -> None:
    """Vacuum a database after an erasure. A failure does not stop the start."""
    if engine.dialect.name != "sqlite":
        return
    try:
        with hold_migration_lock(engine):
            vacuum_file_if_marked(
                require_sqlite_path(engine), LARGEST_AT_START, refuse_other_connections=True
            )
    except sqlite3.Error as error:
        _log.warning("What erased learners left is not removed yet: %s.", error)


def build_installation(settings: Settings) -> Installation:
    return Installation(
        settings.data, settings.database_url_or_default, settings.secret, settings.backups_folder
    )


@contextlib.contextmanager
def open_database(settings: Settings) -> Iterator[Engine]:
    """Yield an engine for the server's database. The server may be running."""
    file = build_installation(settings).sqlite_path_or_none
    engine = make_engine(settings.database_url_or_default)
    with give_new_root_files_to_owner(settings):
        try:
            # Opening a missing SQLite file would create it.
            if (file and not file.is_file()) or not is_schema_current(engine):
                raise CommandError(
                    "the database does not exist yet or has an older schema; start the "
                    "server once, or run `headroom db upgrade`."
                )
            yield engine
        finally:
            engine.dispose()


@contextlib.contextmanager
def give_new_root_files_to_owner(settings: Settings) -> Iterator[None]:
    """Give files that root creates during the block to the owner of the data folder."""
    try:
        yield
    finally:
        give_root_files_to_folder_owner(settings.data)
        file = build_installation(settings).sqlite_path_or_none
        if file is not None and file.parent != settings.data:
            give_root_files_to_folder_owner(file.parent, file.name, REPLACED_FILES_PREFIX)


def get_server_url(settings: Settings) -> str:
    return public_or_listening_url(settings.url, settings.host, settings.port)


def create_data_folder(folder: Path) -> None:
    """Create the private data folder. Raises CommandError if it is not writable."""
    try:
        make_private_folder(folder)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)  # another starting process may have deleted it
    except OSError as error:
        raise CommandError(
            f"the data folder {folder} cannot be written ({error.strerror}); "
            "set HEADROOM_DATA to a folder that can."
        ) from None


@contextlib.contextmanager
def migrate_and_lock_data_folder(settings: Settings) -> Iterator[None]:
    """Prepare the database, and mark the data folder as in use during the block."""
    installation = build_installation(settings)
    try:
        with give_new_root_files_to_owner(settings), installation.hold_shared_lock():
            migrate_and_secure_database(installation, dt.datetime.now(dt.UTC))
            yield
    except InstallationError as error:
        raise CommandError(str(error)) from None


def run_database_command(options: argparse.Namespace) -> int:
    """Run `headroom db upgrade` or `headroom db vacuum`."""
    settings = read_settings()
    if options.action == "vacuum":
        return _vacuum_database(settings)
    create_data_folder(settings.data)
    with migrate_and_lock_data_folder(settings):
        print(
            f"The database {redact_passwords_of_url(settings.database_url_or_default)} is up to date."
        )
    return 0


def _vacuum_database(settings: Settings) -> int:
    """Vacuum the database, so that unused space contains nothing that was erased."""
    with open_database(settings) as engine:
        if engine.dialect.name != "sqlite":
            raise CommandError("PostgreSQL removes what was erased by itself (autovacuum).")
        path = require_sqlite_path(engine)
    try:
        vacuum_file_and_clear_mark(path, refuse_other_connections=True)
    except sqlite3.OperationalError as error:
        raise CommandError(
            f"the database {path} cannot be rewritten ({error}): stop every server "
            "that uses it, and make sure that its disk has room."
        ) from None
    print(f"{path} was rewritten and has {path.stat().st_size / 1e6:.1f} MB.")
    return 0


def run_backup_restore_or_doctor(options: argparse.Namespace) -> int:
    """Run backup, restore or doctor. Returns 1 if the doctor found problems."""
    settings = read_settings()
    installation = build_installation(settings)
    now = dt.datetime.now(dt.UTC)
    with give_new_root_files_to_owner(settings):
        set_umask_for_private_files()
        try:
            if options.command == "doctor":
                return _print_doctor_findings(installation, settings.content, now)
            if options.command == "backup":
                report = _create_backup_and_report(
                    installation, options.file, now, force=options.force
                )
            else:
                report = _restore_backup_and_report(installation, options.file, now)
        except InstallationError as error:
            raise CommandError(str(error)) from None
    print(report)
    return 0


def _create_backup_and_report(
    installation: Installation, file: Path, now: dt.datetime, *, force: bool
) -> str:
    if file.exists() and not force:
        raise InstallationError(f"{file} exists already: choose another name, or add --force.")
    if not file.parent.is_dir():
        raise InstallationError(f"the folder {file.parent} does not exist: make it first.")
    manifest = create_backup(installation, file, now)
    size = file.stat().st_size / 1e6
    lines = [f"{file}: {_describe_manifest(manifest)}, {size:.1f} MB."]
    if manifest.secret == "HEADROOM_SECRET":  # noqa: S105 - where the key came from
        lines.append(
            "The key from HEADROOM_SECRET is inside too, so that browsers find their "
            "learners again: keep this file as safe as the key."
        )
    elif manifest.secret == "none":  # noqa: S105 - where the key came from
        lines.append("There was no key yet, so none is inside.")
    else:
        lines.append("The key that signs cookies is inside: keep this file safe.")
    return "\n".join(lines)


def _restore_backup_and_report(installation: Installation, file: Path, now: dt.datetime) -> str:
    result = restore_backup(installation, file, now)
    lines = [f"Restored {_describe_manifest(result.manifest)} from {result.manifest.made_at_text}."]
    lines += [
        f"What was there before is kept in {folder}" for folder in result.replaced_files_folders
    ]
    if installation.configured_key and result.manifest.secret != "none":  # noqa: S105 - there is a key
        lines.append(
            "HEADROOM_SECRET is set and wins over the key of the backup: if they "
            "differ, leave it out, or browsers will not find their learners."
        )
    lines.append("Start the server now; an older schema is migrated then.")
    return "\n".join(lines)


def _describe_manifest(manifest: BackupManifest) -> str:
    learners = manifest.rows.get("learner", 0)
    rows = sum(manifest.rows.values())
    return (
        f"{format_count_noun(learners, 'learner')} and {rows:,} rows in all "
        f"(schema {manifest.schema_revision})"
    )


def _print_doctor_findings(installation: Installation, content: Path, now: dt.datetime) -> int:
    levels = []
    for finding in iterate_doctor_findings(installation, content, now):
        levels.append(finding.level)
        print(f"{finding.level:<8} {finding.subject}: {finding.message}")
        if finding.remedy:
            print(f"         → {finding.remedy}")
    problems, warnings = levels.count("problem"), levels.count("warning")
    print(f"{format_count_noun(problems, 'problem')}, {format_count_noun(warnings, 'warning')}")
    return int(problems > 0)


def run_health_command(_options: argparse.Namespace) -> int:
    """Print the server's readiness checks. Returns 1 if it is not ready."""
    settings = read_settings()
    host = "127.0.0.1" if settings.host in {"0.0.0.0", "::"} else settings.host  # noqa: S104 - compared, not bound to
    try:
        connection = http.client.HTTPConnection(host, settings.port, timeout=10)
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    except OSError as error:
        raise CommandError(f"no answer on {host}:{settings.port} ({error}).") from None
    print(text, end="")
    return int(response.status != http.HTTPStatus.OK)


COMMANDS = {
    "backup": run_backup_restore_or_doctor,
    "restore": run_backup_restore_or_doctor,
    "doctor": run_backup_restore_or_doctor,
    "health": run_health_command,
    "db": run_database_command,
    "settings": run_settings_command,
}
