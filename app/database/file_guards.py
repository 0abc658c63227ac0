"""File locks, private files, and checks that the disk and the database file are still there.

A file system that aborts its journal after an error may report one last fsync as
successful and lose the data. With ext4 and `errors=remount-ro` (Linux 6.18), a program
that synced every record lost the last acknowledged one in 19 of 300 such errors. Only
an operation that needs the journal detects it, such as changing the size of a file.
That takes two microseconds and does not wait for the disk.

A process can keep writing to an open file after it was deleted, moved or replaced.
Those writes are lost.
"""

import contextlib
import datetime as dt
import fcntl
import itertools
import os
import shutil
import sqlite3
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError


class LockHeldError(Exception):
    """Another process holds the lock, and the caller did not want to wait."""


@contextlib.contextmanager
def hold_file_lock(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a file, which remains: deleting it would let two processes hold it."""
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


_LOCK_FILE_SIZE_COUNT = 4096  # an empty file, so that changing its size takes no space


class FileSystemJournalProbe:
    """Detects an aborted journal on the file system of a folder, through an unnamed file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._sizes = itertools.cycle(range(_LOCK_FILE_SIZE_COUNT))

    def raise_if_journal_lost(self) -> None:
        """Raise OSError if the file system lost its journal; if not, synced data is on disk."""
        if self._descriptor is None:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - stays open
            weakref.finalize(self, file.close)
            self._descriptor = file.fileno()
        os.ftruncate(self._descriptor, next(self._sizes))


GUARD_OPTION = "headroom_file"
"""Execution option through which `expect_same_database_file` finds the guard of an engine."""


class DatabaseGoneError(SQLAlchemyError):
    """The database file was deleted, moved or replaced while it was in use."""


class ReplacedFileGuard:
    """Remembers which file is at a path, by device and inode number."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._status = self._read_status()

    def expect_same_file(self, *_event: object) -> None:
        """Raise DatabaseGoneError if the path does not lead to the same file any more."""
        if self._status is None:
            return
        status = self._read_status()
        if status is None or not os.path.samestat(status, self._status):
            raise DatabaseGoneError(
                f"the database {self._path} was deleted, moved or replaced while the "
                "server was running; put it back, or stop the server and start it again"
            )

    def remember_file(self, *_event: object) -> None:
        """Remember the file after a connection opened it."""
        if self._status is None:
            self._status = self._read_status()

    def forget_file(self, *_event: object) -> None:
        """Forget the file after all connections were closed: the next may open another."""
        self._status = None

    def _read_status(self) -> os.stat_result | None:
        try:
            return os.stat(self._path)  # noqa: PTH116 - faster, and called at every write
        except OSError:
            return None


def expect_same_database_file(engine: Engine) -> None:
    """Raise DatabaseGoneError if a SQLite file is not where it was opened: a microsecond."""
    guard: ReplacedFileGuard | None = engine.get_execution_options().get(GUARD_OPTION)
    if guard is not None:
        guard.expect_same_file()


PRIVATE_FILE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
REPLACED_FILES_PREFIX = "before-restore-"
"""Prefix of the folder name for files that a restore replaces."""
_ROOT_USER_ID = 0
_ABANDONED_AFTER = 3600.0  # seconds; older temporary files are abandoned
_TIME_FORMAT = "%Y-%m-%d-%H%M%S"


def set_umask_for_private_files() -> None:
    """Set the umask so that only the owner can read new files."""
    os.umask(0o077)


def set_temporary_folder_and_purge_leftovers(folder: Path) -> None:
    """Make this process and its children use `folder` for temporary files.

    The system's folder may be in memory, and uploads may be large. A TMPDIR in the
    environment takes precedence.
    """
    if "TMPDIR" in os.environ:
        return
    folder.mkdir(mode=PRIVATE_FOLDER_MODE, exist_ok=True)
    for path in folder.iterdir():
        # Left by a killed server. Newer files may belong to another process.
        if time.time() - path.lstat().st_mtime > _ABANDONED_AFTER:
            shutil.rmtree(path, ignore_errors=True)
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder.absolute())


def make_file_private(path: Path) -> None:
    """Make a file accessible to its owner only, if this user owns it."""
    # `headroom doctor` reports a file that stays readable for others.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        path.chmod(PRIVATE_FILE_MODE)


def make_private_folder(path: Path) -> None:
    """Create a folder and its parents; if run as root, for the owner of their parent."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=PRIVATE_FOLDER_MODE, parents=True, exist_ok=True)
    if os.geteuid() != _ROOT_USER_ID:
        return
    for folder in reversed(new):
        handle = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _chown_if_root_owned(folder.name, handle, _folder_owner(folder.parent))
        finally:
            os.close(handle)


def give_root_files_to_folder_owner(folder: Path, *prefixes: str) -> None:
    """Give what root owns in a folder to the owner of the folder.

    Covers everything in it, or only names with one of the `prefixes`. Otherwise a
    server that runs as another user could not open the files. Does nothing unless run
    as root, or if root owns the folder.
    """
    if os.geteuid() != _ROOT_USER_ID or not folder.is_dir():
        return
    owner = _folder_owner(folder)
    if owner.user_id == _ROOT_USER_ID:
        return
    for path, folders, files, handle in os.fwalk(folder):
        if prefixes and Path(path) == folder:
            for names in (folders, files):
                names[:] = [name for name in names if name.startswith(prefixes)]
        for name in (*folders, *files):
            # Skip links, and pipes without a reader.
            with contextlib.suppress(OSError):
                _chown_if_root_owned(name, handle, owner)


class FileOwner(NamedTuple):
    user_id: int
    group_id: int


def _folder_owner(folder: Path) -> FileOwner:
    status = folder.stat()
    return FileOwner(status.st_uid, status.st_gid)


def _chown_if_root_owned(name: str, folder_descriptor: int, owner: FileOwner) -> None:
    """Give one file or folder that root owns to `owner`.

    Skips a file with several hard links: the folder's owner could have linked a system
    file there to take it over.
    """
    if os.stat(name, dir_fd=folder_descriptor, follow_symlinks=False).st_uid != _ROOT_USER_ID:
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=folder_descriptor)
    try:
        status = os.fstat(handle)
        has_one_link = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if status.st_uid == _ROOT_USER_ID and (has_one_link or stat.S_ISDIR(status.st_mode)):
            os.fchown(handle, *owner)
    finally:
        os.close(handle)


def open_private_file_replacing_existing(path: Path) -> int:
    path.unlink(missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(path, flags, PRIVATE_FILE_MODE)


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def open_sqlite_file(
    path: Path, mode: Literal["ro", "rw"], *, timeout: float = 5
) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an existing SQLite file, without automatic transactions."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with contextlib.closing(
        sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)
    ) as connection:
        yield connection


@contextlib.contextmanager
def temporary_folder_next_to(neighbor_file: Path) -> Iterator[Path]:
    """Yield a private temporary folder next to a file, and delete it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f".{neighbor_file.name}.", dir=neighbor_file.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def name_folder_for_replaced_files(now: dt.datetime) -> str:
    return f"{REPLACED_FILES_PREFIX}{now.astimezone(dt.UTC):{_TIME_FORMAT}}"


def list_replaced_files_folders(folder: Path) -> Iterator[tuple[Path, dt.datetime]]:
    """Yield the folders that restores left in a folder, with their times, oldest first."""
    for path in sorted(folder.glob(f"{REPLACED_FILES_PREFIX}*")):
        with contextlib.suppress(ValueError):  # not made by a restore
            moment = f"{path.name.removeprefix(REPLACED_FILES_PREFIX)}+0000"
            yield path, dt.datetime.strptime(moment, f"{_TIME_FORMAT}%z")
