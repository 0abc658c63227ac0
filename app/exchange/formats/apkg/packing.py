"""How Anki packs a collection and its media: plainly, or with zstd.

Newer versions pack each file of the archive with zstd and list the media as a protocol
buffer; older ones leave the packing to the archive and list the media in JSON.
"""

import dataclasses
import functools
import hashlib
import importlib
import io
import itertools
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, Any

from app.exchange.formats.archive import MOST_FILES

NEWEST = "collection.anki21b"
_PLAIN = "collection.anki2"
_META = b"\x08\x03"  # the version of the package, as a protocol buffer: the latest
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


def written(database: bytes, media: Mapping[str, bytes], *, modern: bool) -> bytes:
    """A package of a collection and its media files by name."""
    out = io.BytesIO()
    method = zipfile.ZIP_STORED if modern else zipfile.ZIP_DEFLATED
    pack = zstd().compress if modern else bytes
    with zipfile.ZipFile(out, "w", method) as archive:
        if modern:
            archive.writestr("meta", _META)
        archive.writestr(NEWEST if modern else _PLAIN, pack(database))
        for number, content in enumerate(media.values()):
            archive.writestr(str(number), pack(content))
        names = {str(number): name for number, name in enumerate(media)}
        listed = json.dumps(names).encode()
        archive.writestr("media", pack(_entries(media)) if modern else listed)
    return out.getvalue()


def _entries(media: Mapping[str, bytes]) -> bytes:
    """The list of media: for each its name (1), its size (2) and its SHA-1 (3)."""
    out = bytearray()
    for name, content in media.items():
        digest = hashlib.sha1(content, usedforsecurity=False).digest()
        entry = _field(1, name.encode()) + b"\x10" + _varint(len(content))
        out += _field(1, entry + _field(3, digest))
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
class _Cursor:
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


def _number(data: bytes, at: int) -> _Cursor:
    """The number that begins at a place, seven bits in each byte, and its end."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return _Cursor(value, at)


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
