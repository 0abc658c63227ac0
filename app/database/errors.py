"""Recognizes database errors that are not bugs: busy database, full disk."""

import errno
import sqlite3

from app.errors import AppError, BusyError, DiskFullError

# 55P03 lock not available, 40001 serialization failure, 40P01 deadlock.
_BUSY_STATES = {"55P03", "40001", "40P01"}
_FULL_STATES = {"53100"}
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# The second code: the -shm file next to the database cannot grow.
_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_FULL_ERRNOS = {errno.ENOSPC, errno.EDQUOT}


def convert_to_app_error(error: BaseException) -> AppError | None:
    """Return the error to show for an exception or its causes; None for a bug."""
    cause: BaseException | None = error
    while cause is not None:
        if is_busy(cause):
            return BusyError(
                "The database is busy just now, so this could not be done.",
                "Nothing that was confirmed before is lost. Try again in a minute.",
            )
        if is_full(cause):
            return DiskFullError(
                "The disk of this server is full, so this could not be saved.",
                "Nothing that was confirmed before is lost. Tell whoever runs the "
                "server, and try again when there is room.",
            )
        cause = cause.__cause__
    return None


def is_busy(error: BaseException) -> bool:
    """Return whether a driver reports that another connection holds the lock."""
    state = getattr(error, "sqlstate", None)
    return _primary_error_code(error) & 0xFF in _BUSY_CODES or state in _BUSY_STATES


def is_full(error: BaseException) -> bool:
    """Return whether the driver or the system reports a full disk."""
    if isinstance(error, OSError):
        return error.errno in _FULL_ERRNOS
    return (
        _primary_error_code(error) in _FULL_CODES or getattr(error, "sqlstate", "") in _FULL_STATES
    )


def _primary_error_code(error: BaseException) -> int:
    """Return the extended SQLite error code; its lowest eight bits are the primary code."""
    return getattr(error, "sqlite_errorcode", 0)
