"""Zip archives of strangers: counted, measured, and kept in their folder."""

import contextlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

from app.exchange.items import UnusableFileError

MOST_FILES = 5_000
MOST_BYTES = 64_000_000
_MOST_RATIO = 200
_SMALL = 1_000_000  # below this even a high ratio does no harm
# All that zipfile and the unpackers below it raise for bytes that make no sense;
# that of bz2 is an OSError without a number.
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError)


@contextlib.contextmanager
def unpacking(file: IO[bytes], refusal: str) -> Iterator[zipfile.ZipFile]:
    """The archive in `file`, inspected; raises Unusable, which begins with `refusal`.

    The same is raised for what turns out to be broken while its files are read.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            inspect(archive.infolist())
            yield archive
    except UnusableFileError:
        raise
    except NotImplementedError:
        why = "the archive is packed in a way that is not known here"
        raise UnusableFileError(f"{refusal}: {why}.") from None
    except _BROKEN:
        raise UnusableFileError(f"{refusal}: {_fault(file)}.") from None
    except OSError as error:
        if error.errno is not None:  # of a disk, not of the archive
            raise
        raise UnusableFileError(f"{refusal}: {_fault(file)}.") from None


def _fault(file: IO[bytes]) -> str:
    file.seek(0)
    start = file.read(2)
    if not start:
        return "the file is empty"
    if start != b"PK":
        return "the file is no zip archive"
    return "the archive is damaged or cut off"


def files_in(data: bytes, ending: str) -> Iterator[tuple[str, bytes]]:
    """The files of an archive whose names end so, in order; raises Unusable.

    The whole archive is refused when any name leaves its folder, when it has too many
    files, or when it would grow too much; nothing is ever written to disk.
    """
    with unpacking(io.BytesIO(data), "The archive cannot be read") as archive:
        for entry in archive.infolist():
            if entry.filename.lower().endswith(ending) and not entry.is_dir():
                yield entry.filename, _content(archive, entry)


def inspect(entries: list[zipfile.ZipInfo]) -> None:
    """Raise Unusable for an archive that leaves its folder or would grow too much."""
    if len(entries) > MOST_FILES:
        raise UnusableFileError(f"The archive has more than {MOST_FILES:,} files.")
    total = sum(e.file_size for e in entries)
    packed = sum(e.compress_size for e in entries) or 1
    if total > MOST_BYTES or (total > _SMALL and total / packed > _MOST_RATIO):
        raise UnusableFileError("The archive unpacks to far more than it holds; it is refused.")
    for entry in entries:
        name = entry.filename
        path = PurePosixPath(name)
        outside = path.is_absolute() or ".." in path.parts
        if outside or "\\" in name or ":" in name or "\0" in name:
            raise UnusableFileError(f"The archive names a file outside of it: “{name[:60]}”.")
        if entry.flag_bits & 1:
            raise UnusableFileError("The archive is encrypted; unpack it first.")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A file, read no further than it says it is long."""
    with archive.open(entry) as stream:
        content = stream.read(entry.file_size + 1)
    if len(content) > entry.file_size:
        raise UnusableFileError(f"The archive lies about the size of “{entry.filename[:60]}”.")
    return content
