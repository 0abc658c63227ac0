"""Which errors mean that a database is busy or out of room, and which are faults."""

import contextlib
import errno
import sqlite3
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from app.database.engine import find_busy_or_disk_full_error
from app.errors import BusyError, DiskFullError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "one.db"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE one (words)")
    return path


def failure(path: Path, *statements: str) -> sqlite3.Error:
    """What the last of these statements raises."""
    with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as file:
        for statement in statements[:-1]:
            file.execute(statement)
        with pytest.raises(sqlite3.Error) as raised:
            file.execute(statements[-1])
    return raised.value


def as_raised(error: Exception) -> OperationalError:
    """The error of a driver as SQLAlchemy passes it on."""
    with pytest.raises(OperationalError) as raised:
        raise OperationalError("INSERT", {}, error) from error
    return raised.value


def test_a_locked_file_is_busy(path: Path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        error = failure(path, "INSERT INTO one VALUES ('a')")

    refusal = find_busy_or_disk_full_error(as_raised(error))

    assert isinstance(refusal, BusyError)
    assert (refusal.status, refusal.retry_after) == (503, 60)


def test_a_file_that_may_not_grow_is_full(path: Path):
    error = failure(path, "PRAGMA max_page_count=2", "INSERT INTO one VALUES (zeroblob(100000))")

    refusal = find_busy_or_disk_full_error(as_raised(error))

    assert isinstance(refusal, DiskFullError)
    assert refusal.status == 507


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_system_without_room_is_full(number: int):
    assert isinstance(find_busy_or_disk_full_error(OSError(number, "no room")), DiskFullError)


def test_what_caused_an_error_counts():
    error = RuntimeError("the transaction ended before its commit")
    error.__cause__ = as_raised(OSError(errno.ENOSPC, "no room"))

    assert isinstance(find_busy_or_disk_full_error(error), DiskFullError)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (psycopg.errors.LockNotAvailable, BusyError),
        (psycopg.errors.SerializationFailure, BusyError),
        (psycopg.errors.DiskFull, DiskFullError),
    ],
)
def test_a_server_says_it_by_a_code(raised: type[psycopg.Error], expected: type[Exception]):
    assert isinstance(find_busy_or_disk_full_error(as_raised(raised("no"))), expected)


def test_anything_else_is_a_fault(path: Path):
    assert (
        find_busy_or_disk_full_error(as_raised(failure(path, "SELECT nothing FROM nowhere")))
        is None
    )
    assert find_busy_or_disk_full_error(as_raised(psycopg.errors.UndefinedTable("no"))) is None
    assert find_busy_or_disk_full_error(PermissionError(errno.EACCES, "no")) is None
    assert find_busy_or_disk_full_error(RuntimeError("a bug")) is None
