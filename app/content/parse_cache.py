"""Caches parsed files and last good versions on disk.

The format is JSON, not pickle: someone with write access to the data folder could at
worst change texts, not run code.
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
from app.content import parsed_file, uncomputed_amounts
from app.content.parsed_file import GlossaryNames, ParsedFile
from app.markup import model, problems
from app.questions import model as questions
from app.questions.types import QUESTION_TYPES

_ANSWER_CLASSES = dict.fromkeys(m for kind in QUESTION_TYPES.values() for m in kind.answer_classes)
_CACHED_TYPES: tuple[type, ...] = (
    *(
        kind
        for module in (model, questions, problems, parsed_file, uncomputed_amounts)
        for kind in vars(module).values()
        if isinstance(kind, type)
        and (dataclasses.is_dataclass(kind) or issubclass(kind, tuple))
        and kind.__module__ == module.__name__
        and kind is not problems.ParseContext
    ),
    *_ANSWER_CLASSES,
)
_NUMBER_BY_TYPE = {kind: number for number, kind in enumerate(_CACHED_TYPES)}
_FIELD_NAMES_BY_TYPE: dict[type, tuple[str, ...]] = {
    kind: tuple(f.name for f in dataclasses.fields(kind))
    if dataclasses.is_dataclass(kind)
    else getattr(kind, "_fields", ())
    for kind in _CACHED_TYPES
}
_TUPLE_TYPE_NUMBER = -1
_DATE_TYPE_NUMBER = -2
VERSIONED_PACKAGES = ("content", "estimator", "markup", "questions", "widgets")
"""The packages whose code determines the result of parsing."""
_PARSING_PACKAGES = ("markdown-it-py", "mdit-py-plugins", "latex2mathml", "pygments", "pyyaml")


def encode_value_for_cache(value: Any) -> Any:
    """Encode a value of the model as JSON: lists that begin with a type number."""
    if value is None or isinstance(value, str | int | float):
        return value
    if type(value) is tuple:
        return [_TUPLE_TYPE_NUMBER, *map(encode_value_for_cache, value)]
    if isinstance(value, dt.date):
        return [_DATE_TYPE_NUMBER, value.isoformat()]
    if isinstance(value, dict):
        return {k: encode_value_for_cache(v) for k, v in value.items()}
    kind = type(value)
    return [
        _NUMBER_BY_TYPE[kind],
        *(encode_value_for_cache(getattr(value, f)) for f in _FIELD_NAMES_BY_TYPE[kind]),
    ]


def decode_cached_value(value: Any) -> Any:
    """Inverse of `encode_value_for_cache`. Raises an exception for anything that it does not write."""
    if isinstance(value, list):
        number = value[0]
        inner = [
            decode_cached_value(v) if v.__class__ is list or v.__class__ is dict else v
            for v in value[1:]
        ]
        if number >= 0:
            return _CACHED_TYPES[number](*inner)
        return tuple(inner) if number == _TUPLE_TYPE_NUMBER else dt.date.fromisoformat(inner[0])
    if isinstance(value, dict):
        return {k: decode_cached_value(v) for k, v in value.items()}
    return value


@functools.cache
def compute_parser_code_hash() -> str:
    """Return a hash of all code that affects parsing.

    It depends on the code only, so that machines with the same course and code agree on
    the version.
    """
    import importlib.metadata  # noqa: PLC0415 - slow, and `check` does not need it

    root = Path(app.__file__).parent
    digest = hashlib.sha256(sys.version.encode())
    for name in _PARSING_PACKAGES:
        digest.update(importlib.metadata.version(name).encode())
    for package in VERSIONED_PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.suffix in {".json", ".py", ".toml"}:
                digest.update(f"{file.relative_to(root)}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def make_folder_in_existing_root(existing_root: Path, folder: Path) -> None:
    """Create a folder below `existing_root`. Raises FileNotFoundError if `existing_root` does not exist.

    A missing data folder is probably an unmounted disk. Nothing may be written in its
    place.
    """
    if not existing_root.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(existing_root))
    folder.mkdir(parents=True, exist_ok=True)


def replace_file_atomically(file: Path, content: bytes, *, flush_to_disk: bool = False) -> None:
    """Replace a file atomically, also with concurrent writers.

    Writes a temporary file next to it, locked until it is complete. With `flush_to_disk`, it
    is on disk before it replaces the old one. Raises OSError.
    """
    temporary_file = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with temporary_file.open("xb") as stream:
            with contextlib.suppress(OSError):  # the file system may not support locks
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.write(content)
            stream.flush()
            if flush_to_disk:
                os.fsync(stream.fileno())
            if file.exists():
                temporary_file.chmod(stat.S_IMODE(file.stat().st_mode))
            temporary_file.replace(file)
    finally:
        temporary_file.unlink(missing_ok=True)


class ParseCacheFolder:
    """A folder of parsed files, each named by the hash of everything it depends on.

    It is in the `cache` folder of the data folder, which must exist.
    """

    def __init__(self, cache_folder: Path) -> None:
        self.folder = cache_folder / "content"
        self._data = cache_folder.parent
        self.version = compute_parser_code_hash()
        self.used: set[str] = set()

    def make_entry_file_name(self, path: str, content: bytes, glossary_names: GlossaryNames) -> str:
        digest = hashlib.sha256(f"{self.version}\0{path}\0{glossary_names.fingerprint}\0".encode())
        digest.update(content)
        return f"{digest.hexdigest()[:40]}.json"

    def read_entry(self, entry_file_name: str) -> ParsedFile | None:
        """Return a cached entry; None if it is missing or damaged."""
        self.used.add(entry_file_name)
        try:
            decoded = decode_cached_value(json.loads((self.folder / entry_file_name).read_bytes()))
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        return decoded if isinstance(decoded, ParsedFile) else None

    def write_entry(self, entry_file_name: str, parsed_file: ParsedFile) -> None:
        """Save an entry. Failures are ignored; the next start parses the file again."""
        # Values that JSON cannot represent are parsed again at each start.
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            make_folder_in_existing_root(self._data, self.folder)
            text = json.dumps(
                encode_value_for_cache(parsed_file), ensure_ascii=False, separators=(",", ":")
            )
            replace_file_atomically(self.folder / entry_file_name, text.encode())

    def prune_if_mostly_unused(self) -> None:
        """Delete the oldest entries once most of the folder is unused."""
        with contextlib.suppress(OSError):
            unused_files = [f for f in self.folder.iterdir() if f.name not in self.used]
            if len(unused_files) > 3 * len(self.used) + 100:
                unused_files.sort(key=lambda f: f.stat().st_mtime)
                for file in unused_files[: len(unused_files) // 2]:
                    file.unlink(missing_ok=True)


_log = logging.getLogger("headroom")
# seconds after which a file that cannot be locked counts as abandoned
_ABANDONED_AFTER_SECONDS = 3600
_MAX_WRITE_TRIES = 5  # retries, because another process may delete the folder just before the write


class LastGoodFiles:
    """A folder with copies of the files, under the same relative paths.

    Courses in different folders have separate copies. Several server processes may
    share them: copies are replaced atomically, and all write the same content. If the
    folder is not writable, the course is still served, but a restart has no copies.
    """

    def __init__(self, copies_folder: Path, course_folder: Path) -> None:
        name = hashlib.sha256(os.fsencode(course_folder.absolute())).hexdigest()[:12]
        self.folder = copies_folder / name
        self._data = copies_folder.parent
        self._refused = False

    def read_copy(self, path: str) -> bytes | None:
        """Return the copy of a file; None if there is none."""
        try:
            return (self.folder / path).read_bytes()
        except OSError:
            return None

    def write_copy(self, path: str, content: bytes) -> None:
        """Save `content` as the copy of a file, replacing whatever is at its path."""
        for tries_left in reversed(range(_MAX_WRITE_TRIES)):
            if self.read_copy(path) == content:
                return
            try:
                self._remove_files_blocking_path(path)
                make_folder_in_existing_root(self._data, (self.folder / path).parent)
                replace_file_atomically(self.folder / path, content, flush_to_disk=True)
            except OSError as error:
                if not tries_left:
                    self._log_failure(error)

    def _remove_files_blocking_path(self, path: str) -> None:
        """Delete files where folders are needed, and a folder at the path of the copy."""
        copy = self.folder / path
        for parent in (self.folder, *reversed(copy.parents[: path.count("/")])):
            if parent.is_file():
                parent.unlink(missing_ok=True)
        if copy.is_dir():
            shutil.rmtree(copy)

    def _log_failure(self, error: OSError) -> None:
        if not self._refused:
            _log.warning("last good content cannot be kept in %s: %s", self.folder, error)
        self._refused = True

    def delete_copies_except(self, kept_paths: Collection[str]) -> None:
        """Delete the copies of files that no longer exist, and incomplete ones.

        If the course has no files at all, its disk is probably missing: no copy is
        deleted.
        """
        valid_copies = {self.folder / path for path in kept_paths}
        for folder, _, names in os.walk(self.folder, topdown=False):
            for file in (Path(folder, name) for name in names):
                if file in valid_copies:
                    continue
                is_temporary = file.name.startswith(".")
                is_obsolete = (
                    _is_unlocked_temporary_file(file) if is_temporary else bool(kept_paths)
                )
                if is_obsolete:
                    with contextlib.suppress(OSError):
                        file.unlink()
            with contextlib.suppress(OSError):  # fails if it contains copies
                Path(folder).rmdir()


def _is_unlocked_temporary_file(file: Path) -> bool:
    """Return whether no process is writing a file. Writers hold a lock."""
    with contextlib.suppress(OSError):
        with file.open("rb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:  # the file system does not support locks
                return time.time() - file.stat().st_mtime > _ABANDONED_AFTER_SECONDS
        return True
    return False
