"""Parsed files on disk, so that a start with nothing changed reads no Markdown.

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
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import Any

import app
from app.content import model, parsed, problems, source_file
from app.content.parsed import ParsedFile
from app.questions import model as questions
from app.questions.kinds import KINDS

_ANSWERS = dict.fromkeys(m for kind in KINDS.values() for m in kind.models)
_TYPES: tuple[type, ...] = (
    *(
        kind
        for module in (model, questions, source_file, parsed, problems)
        for kind in vars(module).values()
        if isinstance(kind, type)
        and dataclasses.is_dataclass(kind)
        and kind.__module__ == module.__name__
        and kind is not source_file.SourceFile
    ),
    *_ANSWERS,
)
_NUMBER = {kind: number for number, kind in enumerate(_TYPES)}
_FIELDS = {kind: tuple(f.name for f in dataclasses.fields(kind)) for kind in _TYPES}
_TUPLE = -1
_DATE = -2
ROOMS = ("content", "drawings", "estimator", "instruments", "questions")
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
