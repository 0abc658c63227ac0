"""Locks between processes: files that the system unlocks when their holder dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class LockHeldError(Exception):
    """Somebody else holds the lock and was not to be waited for."""


@contextlib.contextmanager
def file_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold the lock on `path`, alone or with all others who share it.

    The file stays afterwards, empty: to delete it would let two hold it at once.
    """
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, mode if wait else mode | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeldError(str(path)) from None
        yield
    finally:
        os.close(handle)
