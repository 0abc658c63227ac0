"""The last good version of every content file, kept on disk for the next start."""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path

from app.content.live.cache import make_below, replace_file

_log = logging.getLogger("headroom")
_ABANDONED = 3600  # seconds after which what cannot be locked belongs to nobody
_TRIES = 5  # as often another process may clear away what one is about to write


class LastGoodFiles:
    """A folder of copies, byte for byte, each under the path of its file.

    Courses in different folders do not share it. Several server processes may: a copy
    is replaced at once, under a name of its own until it is whole, and says the same
    whoever writes it. Where it cannot be written, the course is served all the same,
    and only a restart misses the copies.
    """

    def __init__(self, folder: Path, course: Path) -> None:
        name = hashlib.sha256(os.fsencode(course.absolute())).hexdigest()[:12]
        self.folder = folder / name
        self._data = folder.parent
        self._refused = False

    def get(self, path: str) -> bytes | None:
        """The copy of a file, or None where there is none."""
        try:
            return (self.folder / path).read_bytes()
        except OSError:
            return None

    def keep(self, path: str, content: bytes) -> None:
        """Make `content` the copy of a file, whatever stands in its way."""
        for left in reversed(range(_TRIES)):
            if self.get(path) == content:
                return
            try:
                self._clear_way(path)
                make_below(self._data, (self.folder / path).parent)
                replace_file(self.folder / path, content, synced=True)
            except OSError as error:
                if not left:
                    self._note(error)

    def _clear_way(self, path: str) -> None:
        """Remove files where folders are needed, and a folder in place of a copy."""
        copy = self.folder / path
        for above in (self.folder, *reversed(copy.parents[: path.count("/")])):
            if above.is_file():
                above.unlink(missing_ok=True)
        if copy.is_dir():
            shutil.rmtree(copy)

    def _note(self, error: OSError) -> None:
        if not self._refused:
            _log.warning("last good content cannot be kept in %s: %s", self.folder, error)
        self._refused = True

    def forget_all_but(self, found: Collection[str]) -> None:
        """Drop the copies of files that are no longer there, and half-written ones.

        A course without any file is one whose disk is missing: no copy is dropped.
        """
        wanted = {self.folder / path for path in found}
        for folder, _, names in os.walk(self.folder, topdown=False):
            for file in (Path(folder, name) for name in names):
                half = file.name.startswith(".") and file not in wanted
                if (half and _is_abandoned(file)) or (found and not half and file not in wanted):
                    with contextlib.suppress(OSError):
                        file.unlink()
            with contextlib.suppress(OSError):  # one with copies in it stays
                Path(folder).rmdir()


def _is_abandoned(file: Path) -> bool:
    """Whether no process is writing a file: its writer holds a lock until it ends."""
    with contextlib.suppress(OSError):
        with file.open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:  # a disk without locks
                return time.time() - file.stat().st_mtime > _ABANDONED
        return True
    return False
