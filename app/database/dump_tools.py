"""Copies and checks databases: SQLite directly, PostgreSQL with pg_dump and pg_restore."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from app.database.engine import hide_passwords
from app.database.installation import InstallationError
from app.database.schema import SQLITE_SIDE_FILES, open_read_only

_PAGES = 256  # one megabyte, so that other requests do not wait long for the disk
_MOMENTS = {
    "attempt": "at",
    "learner": "created_at",
    "note": "at",
    "reading": "at",
    "review": "at",
}


def copy_database(source: Path, target: Path, breath: Callable[[], object]) -> None:
    """Copy everything that was committed when the copy began, page by page.

    A read transaction fixes the snapshot, so that writers neither wait nor restart the
    copy. `breath` is called between the steps.
    """
    with (
        open_read_only(source) as original,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copied,
    ):
        copied.execute("PRAGMA synchronous=OFF")  # safe: the copy is temporary until it is packed
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_master").fetchone()
        original.backup(copied, pages=_PAGES, progress=lambda *_left: breath())
        original.execute("COMMIT")
        copied.execute("PRAGMA journal_mode=DELETE")  # one file, without a write-ahead log


def find_damage(path: Path) -> str:
    """Return the first problem that SQLite finds in a file, or an empty string."""
    try:
        with open_read_only(path) as connection:
            (words,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        words = str(error)
    return "" if words == "ok" else " ".join(str(words).split())


def count_orphan_rows(path: Path) -> int:
    """Return how many foreign keys point to a missing row."""
    with open_read_only(path) as connection:
        return len(connection.execute("PRAGMA foreign_key_check").fetchall())


def count_rows(path: Path) -> dict[str, int]:
    """Return the number of rows of each table."""
    with open_read_only(path) as connection:
        return {t: _count_table_rows(connection, t) for t in sorted(_table_names(connection))}


def newest_moment(path: Path) -> int | None:
    """Return the time of the newest row, in milliseconds since 1970; None without rows."""
    with open_read_only(path) as connection:
        found = [
            connection.execute(f'SELECT max("{column}") FROM "{table}"').fetchone()[0]  # noqa: S608 - constant names
            for table, column in _MOMENTS.items()
            if table in _table_names(connection)
        ]
    return max((moment for moment in found if moment is not None), default=None)


def fold_in_wal(path: Path) -> None:
    """Checkpoint a database file before it is replaced. Raises InstallationError if in use.

    Leaves a damaged or empty database alone: SQLite would delete its log.
    """
    if not path.exists() or not path.stat().st_size or find_damage(path):
        return
    address = f"{path.absolute().as_uri()}?mode=rw"
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=0)) as database:
        try:
            database.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise InstallationError(
                    f"another program has the database {path} open: stop it first."
                ) from None
            raise


def database_files(path: Path) -> list[Path]:
    """Return the database file and the files SQLite stores next to it, as far as they exist."""
    names = (path, *(Path(f"{path}{end}") for end in SQLITE_SIDE_FILES))
    return [name for name in names if name.exists()]


def _table_names(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _count_table_rows(connection: sqlite3.Connection, table: str) -> int:
    quoted = table.replace('"', '""')
    found = connection.execute(f'SELECT count(*) FROM "{quoted}"')  # noqa: S608 - quoted
    return int(found.fetchone()[0])


DUMP = "pg_dump"
PROGRAMS = (DUMP, "pg_restore", "psql")
_OPTIONS = ("--no-owner", "--no-privileges")
_TABLES = text(
    "SELECT table_name FROM information_schema.tables WHERE table_schema ="
    " current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name"
)
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
_SERVER_MOMENTS = (
    ("attempt", "at"),
    ("learner", "created_at"),
    ("note", "at"),
    ("reading", "at"),
    ("review", "at"),
)


def missing_program() -> str:
    """Return the first PostgreSQL program that is not installed, or an empty string."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), "")


def expect_programs() -> None:
    """Raise InstallationError if PostgreSQL's client programs are not installed."""
    if name := missing_program():
        raise InstallationError(
            f"{name} was not found, and PostgreSQL is copied with it: install the "
            "PostgreSQL client programs of your server's version (on Debian: apt "
            "install postgresql-client)."
        )


@contextlib.contextmanager
def hold_snapshot(engine: Engine) -> Iterator[tuple[Connection, str]]:
    """Yield a connection with a snapshot, and the snapshot's name for pg_dump."""
    with engine.connect() as connection:
        for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = 0"))
        name = connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        yield connection, str(name)


def dump_database(engine: Engine, target: Path, moment: str, breath: Callable[[], object]) -> None:
    """Dump the database in PostgreSQL's custom format, as of the snapshot `moment`."""
    words = [DUMP, "--format=custom", *_OPTIONS, f"--snapshot={moment}"]
    _run_program(engine, [*words, f"--file={target}"], breath)


def expect_dump(engine: Engine, dumped: Path) -> None:
    """Raise InstallationError if pg_restore cannot read a dump."""
    _run_program(engine, ["pg_restore", "--list", f"--file={os.devnull}", str(dumped)])


def replace_tables(engine: Engine, dumped: Path, folder: Path) -> None:
    """Replace all tables with those of a dump, in one transaction."""
    with engine.connect() as connection:
        quote = connection.dialect.identifier_preparer.quote_identifier
        names = [quote(name) for name in list_server_tables(connection)]
    drops = folder / "drop.sql"
    drops.write_text("".join(f"DROP TABLE {name} CASCADE;\n" for name in names))
    script = folder / "restore.sql"
    _run_program(engine, ["pg_restore", *_OPTIONS, f"--file={script}", str(dumped)])
    psql = ["psql", "--no-psqlrc", "--quiet", "--single-transaction"]
    stop = ["--set=ON_ERROR_STOP=1", "--output", os.devnull]
    _run_program(engine, [*psql, *stop, f"--file={drops}", f"--file={script}"])


def list_server_tables(connection: Connection) -> list[str]:
    return list(connection.execute(_TABLES).scalars())


def count_server_rows(connection: Connection) -> dict[str, int]:
    """Return the number of rows of each table."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    return {
        name: connection.execute(
            text(f"SELECT count(*) FROM {quote(name)}")  # noqa: S608 - quoted
        ).scalar_one()
        for name in list_server_tables(connection)
    }


def count_other_connections(engine: Engine) -> int:
    """Return the number of other client connections to the database."""
    with engine.connect() as connection:
        return int(connection.execute(_OTHERS).scalar_one())


def server_revision(engine: Engine) -> str | None:
    """Return the schema revision; None for a database without tables.

    Raises InstallationError if the tables belong to another program.
    """
    with engine.connect() as connection:
        there = list_server_tables(connection)
        if not there:
            return None
        if "alembic_version" not in there:
            raise InstallationError(
                f"the database holds tables of another program, such as “{there[0]}”: "
                "set HEADROOM_DATABASE_URL to a database of Headroom's own."
            )
        found = connection.execute(text("SELECT version_num FROM alembic_version"))
        return found.scalar() or ""


def newest_server_moment(connection: Connection) -> int | None:
    """Return the time of the newest row, in milliseconds since 1970; None without rows."""
    there = set(list_server_tables(connection))
    found = [
        connection.execute(text(f"SELECT max({column}) FROM {table}")).scalar()  # noqa: S608 - constant names
        for table, column in _SERVER_MOMENTS
        if table in there
    ]
    return max((moment for moment in found if moment is not None), default=None)


def _run_program(
    engine: Engine, words: list[str], breath: Callable[[], object] = lambda: None
) -> None:
    """Run a PostgreSQL program. Raises InstallationError with its last line of output."""
    with subprocess.Popen(  # noqa: S603 - PostgreSQL programs, arguments from this code
        words,
        env={**os.environ, **_program_environment(engine)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            said = _wait_for_program(running, breath)
        except BaseException:
            running.kill()
            raise
    if running.returncode:
        address = engine.url.render_as_string(hide_password=False)
        last = hide_passwords(said.strip().rpartition("\n")[2], address)
        raise InstallationError(f"{words[0]} failed ({last or running.returncode}).")


def _wait_for_program(running: "subprocess.Popen[bytes]", breath: Callable[[], object]) -> str:
    while True:
        breath()
        try:
            _nothing, said = running.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
        return said.decode(errors="replace")


def _program_environment(engine: Engine) -> Mapping[str, str]:
    """Return the connection parameters as environment variables: command lines are public."""
    _nothing, given = engine.dialect.create_connect_args(engine.url)
    names = {"dbname": "PGDATABASE", "application_name": "PGAPPNAME"}
    return {
        names.get(key, f"PG{key.upper().replace('_', '')}"): str(value)
        for key, value in given.items()
    }
