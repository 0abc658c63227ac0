"""Copies and checks databases: SQLite directly, PostgreSQL with pg_dump and pg_restore."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, func, inspect, select, table, text

from app.database.engine import redact_passwords_in_message
from app.database.file_guards import open_sqlite_file
from app.database.installation import InstallationError

_PAGES_PER_STEP = 256  # one megabyte, so that other requests do not wait long for the disk
POSTGRESQL_PROGRAMS = ("pg_dump", "pg_restore", "psql")
_DUMP_OPTIONS = ("--no-owner", "--no-privileges")
_COUNT_OTHER_CONNECTIONS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def copy_database_and_count_rows(
    engine: Engine, new_path: Path, call_regularly: Callable[[], object]
) -> dict[str, int]:
    """Copy what is committed, without delaying writers; returns the number of rows by table."""
    if engine.dialect.name == "sqlite":
        _copy_sqlite_file(Path(engine.url.database or ""), new_path, call_regularly)
        target_engine = create_engine(f"sqlite:///{new_path}")
        with target_engine.connect() as connection:
            rows = _count_rows_by_table(connection)
        target_engine.dispose()
        return rows
    require_postgresql_programs()
    with engine.connect() as connection:
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = 0"))
        snapshot = connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        command = ["pg_dump", "--format=custom", *_DUMP_OPTIONS, f"--snapshot={snapshot}"]
        _run_postgresql_program(engine, [*command, f"--file={new_path}"], call_regularly)
        return _count_rows_by_table(connection)


def _copy_sqlite_file(source: Path, target: Path, call_regularly: Callable[[], object]) -> None:
    with (
        open_sqlite_file(source, "ro") as source_database,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as target_database,
    ):
        # Safe, because the copy is temporary until it is packed.
        target_database.execute("PRAGMA synchronous=OFF")
        source_database.execute("BEGIN")
        source_database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        source_database.backup(
            target_database, pages=_PAGES_PER_STEP, progress=lambda *_left: call_regularly()
        )
        source_database.execute("COMMIT")
        target_database.execute("PRAGMA journal_mode=DELETE")  # one file, without a write-ahead log


def _count_rows_by_table(connection: Connection) -> dict[str, int]:
    return {
        name: connection.execute(select(func.count()).select_from(table(name))).scalar_one()
        for name in sorted(inspect(connection).get_table_names())
    }


def find_damage_of_sqlite_file(path: Path) -> str:
    """Return the first problem that SQLite finds in a file, or an empty string."""
    try:
        with open_sqlite_file(path, "ro") as connection:
            (result,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return " ".join(str(error).split())
    return "" if result == "ok" else " ".join(str(result).split())


def checkpoint_unused_sqlite_file_or_raise(path: Path) -> None:
    """Checkpoint a database file before it is replaced. Raises InstallationError if in use.

    Leaves a damaged or empty database alone: SQLite would delete its log.
    """
    if not path.exists() or not path.stat().st_size or find_damage_of_sqlite_file(path):
        return
    with open_sqlite_file(path, "rw", timeout=0) as database:
        try:
            database.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise InstallationError(
                    f"another program has the database {path} open: stop it first."
                ) from None
            raise


def find_missing_postgresql_program() -> str:
    """Return the first PostgreSQL program that is not installed, or an empty string."""
    return next((name for name in POSTGRESQL_PROGRAMS if shutil.which(name) is None), "")


def require_postgresql_programs() -> None:
    """Raise InstallationError if PostgreSQL's client programs are not installed."""
    if name := find_missing_postgresql_program():
        raise InstallationError(
            f"{name} was not found, and PostgreSQL is copied with it: install the "
            "PostgreSQL client programs of your server's version (on Debian: apt "
            "install postgresql-client)."
        )


def drop_tables_and_restore_postgresql_dump(engine: Engine, dump: Path) -> None:
    with engine.connect() as connection:
        quote = connection.dialect.identifier_preparer.quote_identifier
        names = [quote(name) for name in inspect(connection).get_table_names()]
    drops, script = dump.with_name("drop.sql"), dump.with_name("restore.sql")
    drops.write_text("".join(f"DROP TABLE {name} CASCADE;\n" for name in names))
    _run_postgresql_program(engine, ["pg_restore", *_DUMP_OPTIONS, f"--file={script}", str(dump)])
    psql = ["psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
    files = ["--output", os.devnull, f"--file={drops}", f"--file={script}"]
    _run_postgresql_program(engine, [*psql, *files])


def require_no_other_postgresql_connection(engine: Engine) -> None:
    """Raise InstallationError if another client is connected to the database."""
    with engine.connect() as connection:
        other_count = int(connection.execute(_COUNT_OTHER_CONNECTIONS).scalar_one())
    if other_count:
        raise InstallationError(
            f"{other_count} other connection{'s use' if other_count > 1 else ' uses'} the "
            "database: stop every server of this database first."
        )


def read_own_postgresql_schema_revision(engine: Engine) -> str | None:
    """Return the schema revision, None without tables.

    Raises InstallationError if the tables are those of another program.
    """
    with engine.connect() as connection:
        names = sorted(inspect(connection).get_table_names())
        if not names:
            return None
        if "alembic_version" not in names:
            raise InstallationError(
                f"the database holds tables of another program, such as “{names[0]}”: "
                "set HEADROOM_DATABASE_URL to a database of Headroom's own."
            )
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or ""


def _run_postgresql_program(
    engine: Engine, arguments: list[str], call_regularly: Callable[[], object] = lambda: None
) -> None:
    """Run a PostgreSQL program. Raises InstallationError with its last line of output."""
    with subprocess.Popen(  # noqa: S603 - PostgreSQL programs, arguments from this code
        arguments,
        env={**os.environ, **_connection_environment_variables(engine)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            error_output = _wait_and_read_error_output(process, call_regularly)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        address = engine.url.render_as_string(hide_password=False)
        last_line = redact_passwords_in_message(error_output.strip().rpartition("\n")[2], address)
        raise InstallationError(f"{arguments[0]} failed ({last_line or process.returncode}).")


def _wait_and_read_error_output(
    process: "subprocess.Popen[bytes]", call_regularly: Callable[[], object]
) -> str:
    while True:
        call_regularly()
        try:
            _output, error_output = process.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
        return error_output.decode(errors="replace")


def _connection_environment_variables(engine: Engine) -> Mapping[str, str]:
    """Return the connection parameters as environment variables: command lines are public."""
    _arguments, parameters = engine.dialect.create_connect_args(engine.url)
    names = {"dbname": "PGDATABASE", "application_name": "PGAPPNAME"}
    return {
        names.get(key, f"PG{key.upper().replace('_', '')}"): str(value)
        for key, value in parameters.items()
    }
