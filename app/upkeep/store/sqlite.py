"""A SQLite file copied while it is written to, looked into, and taken out of use."""

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from app.db.schema_state import BESIDE, open_read_only
from app.upkeep.installation import InstallationError

_PAGES = 256  # one megabyte, so that nobody waits long for the disk
_MOMENTS = {
    "attempt": "at",
    "learner": "created_at",
    "note": "at",
    "reading": "at",
    "review": "at",
}


def copy(source: Path, target: Path, breath: Callable[[], object]) -> None:
    """Copy everything that was committed when it began, page by page.

    A read transaction holds one moment, so that writers neither wait nor make the
    copy begin anew; `breath` is called between the steps.
    """
    with (
        open_read_only(source) as original,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copied,
    ):
        copied.execute("PRAGMA synchronous=OFF")  # it is a draft until it is packed
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_master").fetchone()
        original.backup(copied, pages=_PAGES, progress=lambda *_left: breath())
        original.execute("COMMIT")
        copied.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside


def damage(path: Path) -> str:
    """The first thing that SQLite finds wrong with a file, or nothing."""
    try:
        with open_read_only(path) as connection:
            (words,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        words = str(error)
    return "" if words == "ok" else " ".join(str(words).split())


def orphans(path: Path) -> int:
    """How many rows point to a row that is not there."""
    with open_read_only(path) as connection:
        return len(connection.execute("PRAGMA foreign_key_check").fetchall())


def counts(path: Path) -> dict[str, int]:
    """The rows of each table."""
    with open_read_only(path) as connection:
        return {t: _count(connection, t) for t in sorted(_tables(connection))}


def newest_moment(path: Path) -> int | None:
    """When anybody last did something, in milliseconds since 1970."""
    with open_read_only(path) as connection:
        found = [
            connection.execute(f'SELECT max("{column}") FROM "{table}"').fetchone()[0]  # noqa: S608 - names of ours
            for table, column in _MOMENTS.items()
            if table in _tables(connection)
        ]
    return max((moment for moment in found if moment is not None), default=None)


def take_out_of_use(path: Path) -> None:
    """Put the log of a database into its file; Unusable while anybody has it open.

    A database that is damaged or empty stays as it is: SQLite would throw the log
    beside it away.
    """
    if not path.exists() or not path.stat().st_size or damage(path):
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


def files_of(path: Path) -> list[Path]:
    """The files of a database that are there."""
    names = (path, *(Path(f"{path}{end}") for end in BESIDE))
    return [name for name in names if name.exists()]


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows if not name.startswith("sqlite_")}


def _count(connection: sqlite3.Connection, table: str) -> int:
    quoted = table.replace('"', '""')
    found = connection.execute(f'SELECT count(*) FROM "{quoted}"')  # noqa: S608 - quoted
    return int(found.fetchone()[0])
