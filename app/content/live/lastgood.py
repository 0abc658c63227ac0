"""The last good version of every content file, kept on disk for the next start."""

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Collection
from pathlib import Path

from app.content.live.cache import make_below

_log = logging.getLogger("headroom")
_ABANDONED = 3600  # seconds after which a half-written copy belongs to nobody


class LastGood:
    """A folder of copies, byte for byte, each under the path of its file.

    Courses in different folders do not share it. Several server processes may: a copy
    is replaced at once and says the same whoever writes it. Where it cannot be
    written, the course is served all the same, and only a restart misses the copies.
    """

    def __init__(self, folder: Path, course: Path) -> None:
        name = hashlib.sha256(os.fsencode(course.absolute())).hexdigest()[:12]
        self.folder = folder / name
        self._data = folder.parent
        self._written: dict[str, bytes] = {}
        self._refused = False

    def get(self, path: str) -> bytes | None:
        """The copy of a file, or None where there is none."""
        try:
            return (self.folder / path).read_bytes()
        except OSError:
            return None

    def keep(self, path: str, content: bytes) -> None:
        """Make `content` the copy of a file."""
        digest = hashlib.sha256(content).digest()
        if self._written.get(path) == digest:
            return
        try:
            if self.get(path) != content:
                copy = self.folder / path
                make_below(self._data, copy.parent)
                _replace(copy, content)
        except OSError as error:
            self._note(error)
            return
        self._written[path] = digest

    def _note(self, error: OSError) -> None:
        if not self._refused:
            _log.warning(
                "last good content cannot be kept in %s: %s", self.folder, error
            )
        self._refused = True

    def forget_all_but(self, found: Collection[str]) -> None:
        """Drop the copies of files that are no longer there.

        A course without any file is one whose disk is missing: nothing is dropped.
        """
        if not found:
            return
        wanted = {self.folder / path for path in found}
        with contextlib.suppress(OSError):
            for file in [f for f in self.folder.rglob("*") if f not in wanted]:
                _drop(file)
        for path in self._written.keys() - set(found):
            self._written.pop(path, None)


def _drop(file: Path) -> None:
    with contextlib.suppress(OSError):
        if file.is_dir():
            if not any(file.iterdir()):
                file.rmdir()
        elif not file.name.startswith(".") or _is_old(file):
            file.unlink()


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > _ABANDONED


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it, not even after a power cut."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
