"""Zip archives of strangers: counted, measured, and kept in their folder."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from app.exchange.items import Unusable

_MOST_FILES = 5_000
MOST_BYTES = 64_000_000
_MOST_RATIO = 200
_SMALL = 1_000_000  # below this even a high ratio does no harm


def files_in(data: bytes, ending: str) -> Iterator[tuple[str, bytes]]:
    """The files of an archive whose names end so, in order; raises Unusable.

    The whole archive is refused when any name leaves its folder, when it has too many
    files, or when it would grow too much; nothing is ever written to disk.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            inspect(entries)
            for entry in entries:
                if entry.filename.lower().endswith(ending) and not entry.is_dir():
                    yield entry.filename, _content(archive, entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise Unusable(f"The archive cannot be read: {error}.") from None


def inspect(entries: list[zipfile.ZipInfo]) -> None:
    """Raise Unusable for an archive that leaves its folder or would grow too much."""
    if len(entries) > _MOST_FILES:
        raise Unusable(f"The archive has more than {_MOST_FILES:,} files.")
    total = sum(e.file_size for e in entries)
    packed = sum(e.compress_size for e in entries) or 1
    if total > MOST_BYTES or (total > _SMALL and total / packed > _MOST_RATIO):
        raise Unusable("The archive unpacks to far more than it holds; it is refused.")
    for entry in entries:
        name = entry.filename
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts
        if outside or "\\" in name or ":" in name or "\0" in name:
            raise Unusable(f"The archive names a file outside of it: “{name[:60]}”.")
        if entry.flag_bits & 1:
            raise Unusable("The archive is encrypted; unpack it first.")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A file, read no further than it says it is long."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) > entry.file_size:
        raise Unusable(f"The archive lies about the size of “{entry.filename[:60]}”.")
    return content
