"""How Anki packs a collection and its media: plainly, or with zstd.

Newer versions pack each file of the archive with zstd and list the media as a protocol
buffer; older ones leave the packing to the archive and list the media in JSON.
"""

import dataclasses
import functools
import hashlib
import importlib
import itertools
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from app.exchange.formats.archive import MOST_FILES

NEWEST = "collection.anki21b"
_PLAIN = "collection.anki2"
_META = b"\x08\x03"  # the version of the package, as a protocol buffer: the latest
_CHUNK = 1 << 20
_WINDOW_LOG_MAX = 26  # no frame makes the reader hold more than 64 MiB


@functools.cache
def zstd() -> Any:
    """The module for zstd: of Python from 3.14 on, its backport before; or None."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def reading(stream: IO[bytes]) -> IO[bytes]:
    """A packed stream as what is in it; reading it may raise `zstd().ZstdError`."""
    module = zstd()
    limit = {module.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
    unpacked: IO[bytes] = module.ZstdFile(stream, options=limit)
    return unpacked


class PackageWriter:
    """A package that is written into a file, so that only one medium is in memory.

    `modern` packs it as newer versions of Anki do. It is complete after `finish`.
    """

    def __init__(self, file: IO[bytes], *, modern: bool) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._modern = modern
        self._media: list[_Medium] = []

    def add_media(self, name: str, content: bytes) -> None:
        """Write a file of the notes. It is no text, so to deflate it saves nothing."""
        digest = hashlib.sha1(content, usedforsecurity=False).digest()
        self._archive.writestr(str(len(self._media)), self._packed(content))
        self._media.append(_Medium(name, len(content), digest))

    def finish(self, collection: Path) -> None:
        """Write the collection, an SQLite file, and the list of the media."""
        with self._archive as archive:
            if self._modern:
                archive.writestr("meta", _META)
                self._pack_collection(collection)
                archive.writestr("media", self._packed(_entries(self._media)))
                return
            archive.write(collection, _PLAIN, zipfile.ZIP_DEFLATED)
            names = {str(number): m.name for number, m in enumerate(self._media)}
            archive.writestr("media", json.dumps(names), zipfile.ZIP_DEFLATED)

    def _packed(self, content: bytes) -> bytes:
        packed: bytes = zstd().compress(content) if self._modern else content
        return packed

    def _pack_collection(self, path: Path) -> None:
        packer = zstd().ZstdCompressor()
        packer.set_pledged_input_size(path.stat().st_size)
        with path.open("rb") as source, self._archive.open(NEWEST, "w") as out:
            while chunk := source.read(_CHUNK):
                out.write(packer.compress(chunk))
            out.write(packer.flush())


@dataclasses.dataclass(frozen=True, slots=True)
class _Medium:
    """A file of the notes: its name, its size in bytes and its SHA-1."""

    name: str
    size: int
    digest: bytes


def _entries(media: Iterable[_Medium]) -> bytes:
    """The list of media: for each its name (1), its size (2) and its SHA-1 (3)."""
    out = bytearray()
    for medium in media:
        entry = _field(1, medium.name.encode()) + b"\x10" + _varint(medium.size)
        out += _field(1, entry + _field(3, medium.digest))
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@dataclasses.dataclass(frozen=True, slots=True)
class _VarintCursor:
    """A number of a protocol buffer, and where the next one begins."""

    value: int
    end: int


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and strings of a protocol buffer in order, as far as it is sound."""
    at = 0
    while at < len(data):
        key = _number(data, at)
        at = key.end
        if key.value & 7 == 0:
            found = _number(data, at)
            yield key.value >> 3, found.value
            at = found.end
        elif key.value & 7 == 2:
            length = _number(data, at)
            at = length.end + length.value
            yield key.value >> 3, data[length.end : at]
        elif key.value & 7 in (1, 5):
            at += 8 if key.value & 7 == 1 else 4
        else:
            return


def _number(data: bytes, at: int) -> _VarintCursor:
    """The number that begins at a place, seven bits in each byte, and its end."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return _VarintCursor(value, at)


def names_of(listed: bytes, *, modern: bool) -> dict[str, str]:
    """The media of a package: the name of each by that of its file in the archive."""
    if not modern:
        try:
            found = json.loads(listed)
        except (ValueError, RecursionError):
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {str(key): str(name) for key, name in pairs}
    every = (value for key, value in fields_of(listed) if key == 1)
    entries = itertools.islice(every, MOST_FILES)
    names: dict[str, str] = {}
    for place, entry in enumerate(entries):
        known = dict(fields_of(entry)) if isinstance(entry, bytes) else {}
        name = known.get(1)
        if isinstance(name, bytes):
            names[str(known.get(255, place))] = name.decode("utf-8", "replace")
    return names
