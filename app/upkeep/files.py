"""Files that only their owner may read, and that are on disk when they are named."""

import contextlib
import datetime as dt
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
_LEFT_BEHIND = 3600.0  # seconds; nobody needs a temporary file for so long
_ASIDE = "before-restore-"
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
def workshop(beside: Path) -> Iterator[Path]:
    """A private folder beside a file, on the same disk, that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=f".{beside.name}.", dir=beside.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def name_aside(now: dt.datetime) -> str:
    """The name of the folder that keeps what a restore replaces."""
    return f"{_ASIDE}{now.astimezone(dt.UTC):{_MOMENT}}"


def folders_aside(folder: Path) -> Iterator[tuple[Path, dt.datetime]]:
    """The folders that restores have left in a folder, the oldest first, and when."""
    for path in sorted(folder.glob(f"{_ASIDE}*")):
        with contextlib.suppress(ValueError):  # of somebody else
            moment = path.name.removeprefix(_ASIDE)
            yield path, dt.datetime.strptime(f"{moment}+0000", f"{_MOMENT}%z")
