"""Parsed files and last good versions on disk.

The format is JSON and not pickle: an entry can hold values only, so that whoever may
write into the data folder can at worst change a text, never run code.
"""

import contextlib
import dataclasses
import datetime as dt
import errno
import fcntl
import functools
import hashlib
import json
import logging
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import app
from app.content import parsed_file
from app.content.parsed_file import ParsedFile
from app.markup import model, problems
from app.questions import model as questions
from app.questions.types import KINDS

_ANSWERS = dict.fromkeys(m for kind in KINDS.values() for m in kind.models)
_TYPES: tuple[type, ...] = (
    *(
        kind
        for module in (model, questions, problems, parsed_file, problems)
        for kind in vars(module).values()
        if isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind.__module__ == module.__name__
        and kind is not problems.SourceFile
    ),
    *_ANSWERS,
)
_NUMBER = {kind: number for number, kind in enumerate(_TYPES)}
_FIELDS = {kind: tuple(f.name for f in dataclasses.fields(kind)) for kind in _TYPES}
_TUPLE = -1
_DATE = -2
ROOMS = ("content", "estimator", "markup", "questions", "widgets")
"""The rooms whose code decides what is read from a file."""
_LIBRARIES = ("markdown-it-py", "mdit-py-plugins", "latex2mathml", "pygments", "pyyaml")


def encode(value: Any) -> Any:
    """A value of the model as plain JSON: lists that begin with their type."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [_TUPLE, *map(encode, value)]
    if isinstance(value, dt.date):
        return [_DATE, value.isoformat()]
    if isinstance(value, dict):
        return {k: encode(v) for k, v in value.items()}
    kind = type(value)
    return [_NUMBER[kind], *(encode(getattr(value, f)) for f in _FIELDS[kind])]


def decode(value: Any) -> Any:
    """The inverse of `encode`; raises on anything that `encode` does not write."""
    if isinstance(value, list):
        number = value[0]
        inner = [decode(v) if v.__class__ is list or v.__class__ is dict else v for v in value[1:]]
        if number >= 0:
            return _TYPES[number](*inner)
        return tuple(inner) if number == _TUPLE else dt.date.fromisoformat(inner[0])
    if isinstance(value, dict):
        return {k: decode(v) for k, v in value.items()}
    return value


@functools.cache
def code_version() -> str:
    """A hash that changes with whatever could change how a file is read.

    It is of the code itself, so that machines with the same course and the same code
    name the same version.
    """
    import importlib.metadata  # noqa: PLC0415 - slow, and `check` needs it not

    root = Path(app.__file__).parent
    digest = hashlib.sha256(sys.version.encode())
    for name in _LIBRARIES:
        digest.update(importlib.metadata.version(name).encode())
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix in {".json", ".py", ".toml"}:
                digest.update(f"{file.relative_to(root)}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def make_below(root: Path, folder: Path) -> None:
    """Make a folder below `root`; raises FileNotFoundError where that is not there.

    A data folder that is gone is a disk that is missing, and comes back: nothing may
    be written in its place meanwhile.
    """
    if not root.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
    folder.mkdir(parents=True, exist_ok=True)


def replace_file(file: Path, content: bytes, *, synced: bool = False) -> None:
    """Write a file at once: nobody sees half of it, whatever others write meanwhile.

    The new file lies beside it under a name of its own, locked until it is whole.
    `synced`: it is on disk before it takes the place of the old one. Raises OSError.
    """
    beside = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as stream:
            with contextlib.suppress(OSError):  # a disk without locks
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(content)
            stream.flush()
            if synced:
                os.fsync(stream.fileno())
            if file.exists():
                beside.chmod(stat.S_IMODE(file.stat().st_mode))
            beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


class ParseCache:
    """A folder of parsed files, each named by the hash of all it depends on.

    It lies in the `cache` of a data folder, which has to be there.
    """

    def __init__(self, cache: Path) -> None:
        self.folder = cache / "content"
        self._data = cache.parent
        self.version = code_version()
        self.used: set[str] = set()

    def name(self, path: str, content: bytes, context: str) -> str:
        """The name under which the reading of `content` is kept."""
        digest = hashlib.sha256(f"{self.version}\0{path}\0{context}\0".encode())
        digest.update(content)
        return f"{digest.hexdigest()[:40]}.json"

    def get(self, name: str) -> ParsedFile | None:
        """A kept reading, or None; a damaged entry is as good as none."""
        self.used.add(name)
        try:
            found = decode(json.loads((self.folder / name).read_bytes()))
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        return found if isinstance(found, ParsedFile) else None

    def put(self, name: str, reading: ParsedFile) -> None:
        """Keep a reading; a folder that cannot be written is no misfortune."""
        # A value that JSON cannot hold is read anew at each start.
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            make_below(self._data, self.folder)
            text = json.dumps(encode(reading), ensure_ascii=False, separators=(",", ":"))
            replace_file(self.folder / name, text.encode())

    def prune(self) -> None:
        """Forget the oldest readings once most of the folder is no longer used."""
        with contextlib.suppress(OSError):
            kept = [f for f in self.folder.iterdir() if f.name not in self.used]
            if len(kept) > 3 * len(self.used) + 100:
                for file in sorted(kept, key=lambda f: f.stat().st_mtime)[: len(kept) // 2]:
                    file.unlink(missing_ok=True)


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
