"""Schema revision and migrations.

Reads the revision without importing the migrations. That would add a third of a second
to every start.
"""

import contextlib
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlmodel import SQLModel

from app import ROOT
from app.database.engine import is_disk_full_error
from app.database.file_guards import hold_file_lock, make_file_private, open_sqlite_file

MIGRATIONS_FOLDER = ROOT / "migrations"
MIGRATION_FILES = MIGRATIONS_FOLDER / "versions"
RESTORING_SUFFIX = ".restoring"
"""Suffix of the file that a restore is about to move into the database's place."""
SQLITE_SIDE_FILES = ("-wal", "-shm")
"""Suffixes of the files that SQLite stores next to a database."""
_RESTORE_ADVICE = "put a backup in its place with `headroom restore FILE`"
_REVISION_PATTERN = re.compile(r"\d{4}")
_SQLITE_HEADER = b"SQLite format 3\0"
_DAMAGE_ERROR_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class UnusableDatabaseError(Exception):
    """The database must not be used. The message says why and what to do."""


def latest_schema_revision() -> str:
    return max(_known_revisions())


def is_schema_current(engine: Engine) -> bool:
    """Return whether the last migration has run; False if the database cannot be read."""
    try:
        with engine.connect() as connection:
            return _read_revision(connection) == latest_schema_revision()
    except DBAPIError:
        return False


def read_schema_revision(engine: Engine) -> str:
    """Return the revision of the schema; empty for a database without tables or file.

    Raises UnusableDatabaseError unless it is a database of this program, in this
    version or an older one. A file is only read: not even its journal mode changes.
    """
    if engine.dialect.name == "sqlite":
        return read_schema_revision_of_sqlite_file(require_sqlite_path(engine))
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        return _return_revision_or_raise_if_unusable(
            tables, lambda: _read_revision(connection), "the database"
        )


def require_sqlite_path(engine: Engine) -> Path:
    """Return the file of a SQLite database. Raises UnusableDatabaseError for one in memory."""
    name = engine.url.database or ""
    if name in {"", ":memory:"} or name.startswith("file:"):
        raise UnusableDatabaseError(
            "HEADROOM_DATABASE_URL names a SQLite database without a plain file, so "
            "nothing would be kept: write sqlite:////folder/headroom.db, or leave it "
            "empty to use the data folder."
        )
    return Path(name)


def read_schema_revision_of_sqlite_file(path: Path) -> str:
    """`read_schema_revision` for a SQLite file, also one that is to become the database."""
    if Path(f"{path}{RESTORING_SUFFIX}").exists():
        raise UnusableDatabaseError(
            f"a restore of {path} was interrupted: run `headroom restore FILE` again."
        )
    if not path.exists():
        _expect_no_orphaned_wal(path)
        return ""
    _expect_file_with_content(path)
    try:
        with open_sqlite_file(path, "ro") as connection:
            return _check_integrity_and_read_revision(path, connection)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB and not _has_sqlite_header(path):
            raise UnusableDatabaseError(
                f"{path} is not a SQLite database: {_RESTORE_ADVICE}, or set "
                "HEADROOM_DATABASE_URL to another place."
            ) from None
        if code in _DAMAGE_ERROR_CODES:
            raise _damaged_database_error(path, str(error)) from None
        if is_disk_full_error(error):
            raise UnusableDatabaseError(full_disk_message(path.parent)) from None
        raise UnusableDatabaseError(
            f"the database {path} cannot be opened ({error}): check who owns the file "
            "and its folder, and that no other program has locked it."
        ) from None


def full_disk_message(folder: Path) -> str:
    return f"the disk of {folder} is full: free some space, then start again."


def list_database_files(path: Path) -> list[Path]:
    """Return the database file and the files SQLite stores next to it, as far as they exist."""
    paths = (path, *(Path(f"{path}{end}") for end in SQLITE_SIDE_FILES))
    return [path for path in paths if path.exists()]


def _expect_no_orphaned_wal(path: Path) -> None:
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise UnusableDatabaseError(
            f"{log.name} is there, but the database {path} it belongs to is gone: "
            f"move the database back beside it, or {_RESTORE_ADVICE}."
        )


def _expect_file_with_content(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise UnusableDatabaseError(
            f"{path} is not a file: set HEADROOM_DATABASE_URL to another place."
        )
    # Check the size without opening the file. Closing it would release all locks that
    # this process has on it, and another process could delete the log under a running
    # server.
    if not path.stat().st_size:
        raise UnusableDatabaseError(
            f"the database {path} is empty (0 bytes), so its contents are lost: "
            f"{_RESTORE_ADVICE}, or delete the file to begin with a new database."
        )


def _has_sqlite_header(path: Path) -> bool:
    """Return whether a file that SQLite refused has its header, so that it is damaged."""
    with path.open("rb") as stream:
        return stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER


def _check_integrity_and_read_revision(path: Path, connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {name for (name,) in rows if not name.startswith("sqlite_")}

    def revision() -> str:
        rows = connection.execute("SELECT version_num FROM alembic_version")
        return str((rows.fetchone() or ("",))[0])

    current = _return_revision_or_raise_if_unusable(tables, revision, f"the database {path}")
    (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if result != "ok":
        raise _damaged_database_error(path, result)
    return current


def _damaged_database_error(path: Path, sqlite_message: str) -> UnusableDatabaseError:
    detail = " ".join(sqlite_message.split()).rstrip(".")
    return UnusableDatabaseError(f"the database {path} is damaged ({detail}): {_RESTORE_ADVICE}.")


def _return_revision_or_raise_if_unusable(
    existing_tables: set[str], read_revision: Callable[[], str], database_label: str
) -> str:
    if not existing_tables:
        return ""
    current = read_revision() if "alembic_version" in existing_tables else ""
    missing = SQLModel.metadata.tables.keys() - existing_tables
    if current == latest_schema_revision() and missing:
        raise UnusableDatabaseError(
            f"{database_label} is damaged (it has no table {', '.join(sorted(missing))}): {_RESTORE_ADVICE}."
        )
    if current in _known_revisions() or (not current and existing_tables == {"alembic_version"}):
        return current
    if _REVISION_PATTERN.fullmatch(current) and current > latest_schema_revision():
        raise UnusableDatabaseError(
            f"{database_label} was written by a newer Headroom (its schema is {current}; this "
            f"version knows up to {latest_schema_revision()}): install the newer version again, or "
            f"{_RESTORE_ADVICE} that this version wrote."
        )
    raise UnusableDatabaseError(
        f"{database_label} belongs to another program (it holds tables such as "
        f"“{min(existing_tables - {'alembic_version'}, default='alembic_version')}”): set "
        "HEADROOM_DATABASE_URL to a database of Headroom's own."
    )


def _known_revisions() -> set[str]:
    """Return the numbers of the migrations. Files are named NNNN_what_it_does.py."""
    return {path.name.partition("_")[0] for path in MIGRATION_FILES.glob("[0-9]*_*.py")}


def _read_revision(connection: Connection) -> str:
    result = connection.execute(text("SELECT version_num FROM alembic_version"))
    return result.scalar() or ""


def upgrade_schema(engine: Engine) -> None:
    _run_alembic_command(engine, lambda config: command.upgrade(config, "head"))


def downgrade_schema(engine: Engine, revision: str = "base") -> None:
    _run_alembic_command(engine, lambda config: command.downgrade(config, revision))


def _run_alembic_command(engine: Engine, run_command: Callable[[Config], object]) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    is_sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection:
        # Batch mode rebuilds SQLite tables. With foreign keys on, dropping the old table
        # would cascade to the rows that point to it.
        if is_sqlite:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        config.attributes["connection"] = connection
        run_command(config)
        connection.commit()
        if is_sqlite:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA foreign_keys=ON")


_LOCK_KEY = int.from_bytes(b"headroom", "big")
_WITHOUT_LIMIT = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


def upgrade_schema_if_outdated(
    engine: Engine, call_before_upgrade: Callable[[str], object]
) -> None:
    """Run pending migrations. Only one process does so; the others wait.

    `call_before_upgrade` is called with the current revision if a migration is needed and the
    database is not empty. Raises UnusableDatabaseError and changes nothing if the
    database must not be used.
    """
    if engine.dialect.name != "sqlite" and read_schema_revision(engine) == latest_schema_revision():
        return
    with hold_migration_lock(engine):
        revision = read_schema_revision(engine)
        if revision == latest_schema_revision():
            return
        if revision:
            call_before_upgrade(revision)
        upgrade_schema(engine)


def hold_migration_lock(engine: Engine) -> AbstractContextManager[None]:
    """Return a lock that keeps all other processes from migrating this database."""
    if engine.dialect.name != "sqlite":
        return _hold_postgresql_advisory_lock(engine)
    path = require_sqlite_path(engine)
    if not path.parent.is_dir():
        raise UnusableDatabaseError(
            f"the folder {path.parent} of the database is missing: make it, or set "
            "HEADROOM_DATABASE_URL to another place."
        )
    return hold_file_lock(Path(f"{path}.lock"))


def make_database_private(engine: Engine) -> None:
    """Make a SQLite database and the files next to it readable for their owner only."""
    if engine.dialect.name != "sqlite":
        return
    for path in list_database_files(require_sqlite_path(engine)):
        make_file_private(path)


@contextlib.contextmanager
def _hold_postgresql_advisory_lock(engine: Engine) -> Iterator[None]:
    with engine.begin() as connection:
        for name in _WITHOUT_LIMIT:
            connection.execute(text(f"SET LOCAL {name} = 0"))
        # The lock ends with the transaction, even if this process dies.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        yield
