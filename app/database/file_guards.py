"""File locks, private files, is the file still the one that was opened.

A file system that gives up its journal after an error may answer the sync of that very
moment with success, and lose what was synced. With ext4 and `errors=remount-ro` (Linux
6.18) a program that wrote records and synced each lost the last one that it had been
told of 19 times in 300 such errors. Only a change that needs the journal finds it out,
and the size of a file is one: it costs two microseconds and no wait for the disk.

Whoever has opened a file may go on writing into it after it was deleted, moved or
replaced, and nobody will ever find what was written.
"""

import contextlib
import datetime as dt
import fcntl
import itertools
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError


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


_SIZES = 4096  # bytes; a file without content, so none of them takes up room


class DiskProbe:
    """The file system under a folder, asked through a file that has no name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None
        self._sizes = itertools.cycle(range(_SIZES))

    def prove(self) -> None:
        """Make a change of size after a sync; raises OSError where it is refused.

        What was synced before a proof that succeeds is on the disk.
        """
        if self._descriptor is None:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - stays open
            weakref.finalize(self, file.close)
            self._descriptor = file.fileno()
        os.ftruncate(self._descriptor, next(self._sizes))


_OPTION = "headroom_file"


class DatabaseGoneError(SQLAlchemyError):
    """The database file was deleted, moved or replaced while it was in use."""


class DatabaseFileGuard:
    """Remembers which file lies at a path: by its number, which a name outlives."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = self._look()

    @property
    def options(self) -> dict[str, Any]:
        """How an engine is told of it."""
        return {_OPTION: self}

    def expect(self, *_event: object) -> None:
        """Raise DatabaseGone where the file is not there any more."""
        if self._number is not None and self._look() != self._number:
            raise DatabaseGoneError(
                f"the database {self._path} was deleted, moved or replaced while the "
                "server was running; put it back, or stop the server and start it again"
            )

    def note(self, *_event: object) -> None:
        """A connection has just opened the file."""
        if self._number is None:
            self._number = self._look()

    def forget(self, *_event: object) -> None:
        """Every connection was closed: the next may open another file."""
        self._number = None

    def _look(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - asked at every write
        except OSError:
            return None
        return found.st_dev, found.st_ino


def expect_database(engine: Engine) -> None:
    """Raise DatabaseGone where a SQLite file does not lie where it was opened.

    It costs a microsecond. A server says itself when a database is gone.
    """
    opened: DatabaseFileGuard | None = engine.get_execution_options().get(_OPTION)
    if opened is not None:
        opened.expect()


PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
ASIDE = "before-restore-"
"""How the name of a folder begins that keeps what a restore replaces."""
_ROOT = 0
_LEFT_BEHIND = 3600.0  # seconds; nobody needs a temporary file for so long
_MOMENT = "%Y-%m-%d-%H%M%S"


def keep_new_files_private() -> None:
    """Whatever this process makes from now on is readable by its owner alone."""
    os.umask(0o077)


def use_temporary_folder(folder: Path) -> None:
    """Have this process and its children put temporary files into a folder of ours.

    The usual one may be memory, and files of learners may be large. A host who names
    a folder with TMPDIR is obeyed.
    """
    if "TMPDIR" in os.environ:
        return
    folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    for path in folder.iterdir():
        # Of a server that was killed; others that run beside this one need theirs.
        if time.time() - path.lstat().st_mtime > _LEFT_BEHIND:
            shutil.rmtree(path, ignore_errors=True)
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder.absolute())


def make_private(path: Path) -> None:
    """Take what others may do with a file away, where this user owns it."""
    # `headroom doctor` names the file where it stays open to others.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        path.chmod(PRIVATE)


def make_private_folder(path: Path) -> None:
    """Make a folder and those above it; root makes them for the owner of what is there.

    Raises OSError where that cannot be.
    """
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    for folder in reversed(new):
        _give_new(folder)


def give_to_owner(folder: Path, *beginnings: str) -> None:
    """Give what root owns in a folder to the owner of the folder.

    That is everything in it, or what has names with such `beginnings`. A server that
    runs as another user could not open it. Does nothing for anybody but root, nor
    where root owns the folder.
    """
    if os.geteuid() != _ROOT or not folder.is_dir():
        return
    owner = _owner_of(folder)
    if owner[0] == _ROOT:
        return
    for path, folders, files, handle in os.fwalk(folder):
        if beginnings and Path(path) == folder:
            for names in (folders, files):
                names[:] = [name for name in names if name.startswith(beginnings)]
        for name in (*folders, *files):
            # A link, or a pipe that nobody reads, is not ours.
            with contextlib.suppress(OSError):
                _give(name, handle, owner)


def _give_new(folder: Path) -> None:
    """Give a folder that root has just made to the owner of the one above it."""
    if os.geteuid() != _ROOT:
        return
    place = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _give(folder.name, place, _owner_of(folder.parent))
    finally:
        os.close(place)


def _owner_of(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_uid, found.st_gid


def _give(name: str, place: int, owner: tuple[int, int]) -> None:
    """Give one file or folder of root's away.

    A file with a second name stays root's: whoever owns the folder could have put it
    there to be given a file of the system.
    """
    if os.stat(name, dir_fd=place, follow_symlinks=False).st_uid != _ROOT:
        return
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(name, flags, dir_fd=place)
    try:
        found = os.fstat(handle)
        alone = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        if found.st_uid == _ROOT and (alone or stat.S_ISDIR(found.st_mode)):
            os.fchown(handle, *owner)
    finally:
        os.close(handle)


def open_private(path: Path) -> int:
    """A new, empty file for its owner alone, opened to write in place of an old one."""
    path.unlink(missing_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(path, flags, PRIVATE)


def sync(path: Path) -> None:
    """Wait until a file, or the names inside of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def private_temp_folder(beside: Path) -> Iterator[Path]:
    """A private folder beside a file, on the same disk, that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def name_aside(now: dt.datetime) -> str:
    """The name of the folder that keeps what a restore replaces."""
    return f"{ASIDE}{now.astimezone(dt.UTC):{_MOMENT}}"


def folders_aside(folder: Path) -> Iterator[tuple[Path, dt.datetime]]:
    """The folders that restores have left in a folder, the oldest first, and when."""
    for path in sorted(folder.glob(f"{ASIDE}*")):
        with contextlib.suppress(ValueError):  # of somebody else
            moment = path.name.removeprefix(ASIDE)
            yield path, dt.datetime.strptime(f"{moment}+0000", f"{_MOMENT}%z")
