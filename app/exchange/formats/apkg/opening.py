"""The collection in a package of a stranger, opened so that it can only be read.

A package is a zip archive, and in it lies an SQLite database: both may be built to do
harm. Nothing is unpacked but the database, under a name of our own; SQLite reads it
without trusting its schema, runs nothing but plain selects of ordinary tables, and
stops after a fixed amount of work.
"""

import contextlib
import sqlite3
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from app.exchange.formats.apkg.packing import NEWEST, names_of, reading, zstd
from app.exchange.formats.archive import MOST_BYTES, unpacking
from app.exchange.items import UnusableFileError

_NAMES = (NEWEST, "collection.anki21", "collection.anki2")
_OLDER = (
    "Export it from Anki again with “Support older Anki versions” ticked; this server"
    " cannot read the newest format."
)
_NONE_OF_ANKI = "It is no .apkg or .colpkg of Anki"
MOST_OF_A_FILE = 2_000_000
"""So many bytes of a picture or of the list of media are read."""
MOST_OF_MEDIA = 30_000_000
_MOST_IN_VAIN = 100
"""So many pictures may be damaged or too large: each is unpacked to be told so."""
_CHUNK = 1 << 20
_LONGEST = 8_000_000  # bytes of one value; the note types of a collection are one
_EVERY = 1_000_000  # steps of SQLite's machine between two looks
_MOST_LOOKS = 2_000
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
_TABLES = {"col", "notes", "cards", "revlog", "decks", "notetypes", "fields"} | {"templates"}
_MAGIC = b"SQLite format 3\0"


@contextlib.contextmanager
def open_package(file: IO[bytes], folder: Path) -> Iterator[sqlite3.Connection]:
    """The collection of the package `file`, unpacked into `folder`; raises Unusable."""
    path = folder / "collection"
    _unpack(file, path)
    with contextlib.closing(_connect(path)) as connection:
        try:
            _expect_tables(connection)
            yield connection
        except (sqlite3.Error, OverflowError):
            raise UnusableFileError(
                "The collection in the package is damaged, or was built to do harm:"
                " it cannot be read as the tables that Anki writes."
            ) from None


def media_of(file: IO[bytes], wanted: Collection[str]) -> dict[str, bytes]:
    """Those of the wanted media that the package `file` holds, by name.

    Files that are too large, or damaged, are left out, and so is all that comes when
    enough has been read.
    """
    if not wanted:
        return {}
    found: dict[str, bytes] = {}
    left, in_vain = MOST_OF_MEDIA, 0
    with unpacking(file, _NONE_OF_ANKI) as archive:
        known = {entry.filename: entry for entry in archive.infolist()}
        modern = NEWEST in known
        listed = _content(archive, known.get("media"), modern=modern)
        for key, name in names_of(listed, modern=modern).items():
            if left <= 0 or in_vain > _MOST_IN_VAIN:
                break
            if name in wanted and name not in found and key in known:
                content = _content(archive, known[key], modern=modern)
                left -= len(content)
                in_vain += not content
                if content:
                    found[name] = content
    return found


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo | None, *, modern: bool) -> bytes:
    """A small file of the archive; empty where it is not there or not sound."""
    if entry is None:
        return b""
    with archive.open(entry) as stream:
        try:
            source = reading(stream) if modern else stream
            content = source.read(MOST_OF_A_FILE + 1)
        except _damages():
            return b""
    return content if len(content) <= MOST_OF_A_FILE else b""


def _damages() -> tuple[type[Exception], ...]:
    """What is raised for packed bytes that make no sense."""
    module = zstd()
    return (EOFError, module.ZstdError) if module else (EOFError,)


def _unpack(file: IO[bytes], path: Path) -> None:
    with unpacking(file, _NONE_OF_ANKI) as archive:
        known = {entry.filename: entry for entry in archive.infolist()}
        name = next((n for n in _NAMES if n in known), None)
        if name is None:
            raise UnusableFileError("It holds no collection of Anki; .apkg and .colpkg do.")
        with archive.open(known[name]) as stream, path.open("wb") as out:
            if name == NEWEST:
                _copy_newest(stream, out)
            else:
                _copy(stream, out)


def _copy_newest(stream: IO[bytes], out: IO[bytes]) -> None:
    if zstd() is None:
        raise UnusableFileError(_OLDER)
    try:
        _copy(reading(stream), out)
    except _damages():
        raise UnusableFileError("The collection in the package is damaged.") from None


def _copy(source: IO[bytes], out: IO[bytes]) -> None:
    """Copy no more than an archive may hold, whatever it says of itself."""
    left = MOST_BYTES
    while chunk := source.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise UnusableFileError(f"The collection is larger than {MOST_BYTES // 1_000_000} MB.")
        out.write(chunk)


def _connect(path: Path) -> sqlite3.Connection:
    with path.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise UnusableFileError("The collection in the package is no SQLite database.")
    address = f"{path.as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    # Text that is no UTF-8 is a slip of some other program, not a reason to stop.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}")
    looks = iter(range(_MOST_LOOKS))
    connection.set_progress_handler(lambda: next(looks, None) is None, _EVERY)
    connection.set_authorizer(_allow)
    return connection


def _allow(action: int, table: str | None, *_: str | None) -> int:
    """Plain reading of the tables that a collection has, and of no other."""
    known = action != sqlite3.SQLITE_READ or table in _TABLES | {"sqlite_master"}
    allowed = action in _READS and known
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _expect_tables(connection: sqlite3.Connection) -> None:
    """Refuse views and virtual tables that stand where a table should."""
    rows = connection.execute("SELECT name, type, rootpage, sql FROM sqlite_master").fetchmany(1000)
    found = {
        str(name)
        for name, kind, root, sql in rows
        if kind == "table" and root and not str(sql).upper().startswith("CREATE VIRT")
    }
    wrong = sorted(str(name) for name, kind, *_ in rows if name in _TABLES and name not in found)
    missing = sorted({"col", "notes", "cards", "revlog"} - found)
    if wrong or missing:
        raise UnusableFileError(
            f"The collection in the package has no ordinary table “{(wrong or missing)[0]}”."
        )
