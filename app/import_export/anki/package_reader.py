"""Read an untrusted package.

A package is a zip archive with an SQLite database, and either can be malicious. Only the database
is unpacked, under a name of our own. SQLite reads it without trusting its schema, runs only plain
selects of ordinary tables, and stops after a fixed amount of work.
"""

import contextlib
import dataclasses
import datetime as dt
import json
import math
import sqlite3
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from app.import_export import UnusableFileError
from app.import_export.anki.card_templates import (
    CardSides,
    NoteType,
    find_picture_names,
    read_deck_names_by_id,
    read_note_types_by_id,
    render_card_sides,
)
from app.import_export.anki.package_format import (
    NEWEST_COLLECTION_NAME,
    import_zstd_or_none,
    open_zstd_stream,
    parse_media_name_by_entry,
)
from app.import_export.anki.package_writer import AddedCardInfo
from app.import_export.xml_files import MAX_ARCHIVE_BYTES, open_checked_archive

_COLLECTION_FILE_NAMES = (NEWEST_COLLECTION_NAME, "collection.anki21", "collection.anki2")
_NEWEST_FORMAT_HINT = (
    "Export it from Anki again with “Support older Anki versions” ticked; this server"
    " cannot read the newest format."
)
_NONE_OF_ANKI = "It is no .apkg or .colpkg of Anki"
MAX_FILE_BYTES = 2_000_000
"""The most bytes read of a picture or of the media list."""
MAX_MEDIA_BYTES = 30_000_000
_MOST_IN_VAIN = 100
"""The most damaged or oversized pictures; each has to be unpacked to find out."""
_CHUNK_BYTES = 1 << 20
_MAX_VALUE_BYTES = 8_000_000  # bytes of one value; all note types of a collection are one value
_SQLITE_STEPS_BETWEEN_CHECKS = 1_000_000  # SQLite VM steps between two checks
_MOST_LOOKS = 2_000
_ALLOWED_SQLITE_ACTIONS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
_READ_TABLES = {"col", "notes", "cards", "revlog", "decks", "notetypes", "fields"} | {"templates"}
_SQLITE_FILE_START = b"SQLite format 3\0"


@contextlib.contextmanager
def open_package_database(file: IO[bytes], temporary_folder: Path) -> Iterator[sqlite3.Connection]:
    """Unpack the collection of a package into `temporary_folder`; raises UnusableFileError."""
    path = temporary_folder / "collection"
    _unpack_collection(file, path)
    with contextlib.closing(_connect_read_only(path)) as connection:
        try:
            _raise_unless_ordinary_tables(connection)
            yield connection
        except (sqlite3.Error, OverflowError):
            raise UnusableFileError(
                "The collection in the package is damaged, or was made to do harm:"
                " it cannot be read as the tables that Anki writes."
            ) from None


def read_media_by_name(file: IO[bytes], wanted_names: Collection[str]) -> dict[str, bytes]:
    """Return the wanted media of a package, by name.

    Files that are too large or damaged are left out, and so are all files after the total limit.
    """
    if not wanted_names:
        return {}
    media: dict[str, bytes] = {}
    bytes_left, unusable_count = MAX_MEDIA_BYTES, 0
    with open_checked_archive(file, _NONE_OF_ANKI) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        modern = NEWEST_COLLECTION_NAME in entries
        media_list = _read_small_entry_or_empty(archive, entries.get("media"), is_zstd=modern)
        for key, name in parse_media_name_by_entry(media_list, newer_format=modern).items():
            if bytes_left <= 0 or unusable_count > _MOST_IN_VAIN:
                break
            if name in wanted_names and name not in media and key in entries:
                content = _read_small_entry_or_empty(archive, entries[key], is_zstd=modern)
                bytes_left -= len(content)
                unusable_count += not content
                if content:
                    media[name] = content
    return media


def _read_small_entry_or_empty(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo | None, *, is_zstd: bool
) -> bytes:
    """Return a small file of the archive; empty if it is missing or damaged."""
    if entry is None:
        return b""
    with archive.open(entry) as stream:
        try:
            source = open_zstd_stream(stream) if is_zstd else stream
            content = source.read(MAX_FILE_BYTES + 1)
        except _decompression_error_types():
            return b""
    return content if len(content) <= MAX_FILE_BYTES else b""


def _decompression_error_types() -> tuple[type[Exception], ...]:
    module = import_zstd_or_none()
    return (EOFError, module.ZstdError) if module else (EOFError,)


def _unpack_collection(file: IO[bytes], path: Path) -> None:
    with open_checked_archive(file, _NONE_OF_ANKI) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        name = next((n for n in _COLLECTION_FILE_NAMES if n in entries), None)
        if name is None:
            raise UnusableFileError("It holds no collection of Anki; .apkg and .colpkg do.")
        with archive.open(entries[name]) as stream, path.open("wb") as out:
            if name == NEWEST_COLLECTION_NAME:
                _decompress_zstd_within_limit(stream, out)
            else:
                _copy_limited(stream, out)


def _decompress_zstd_within_limit(stream: IO[bytes], out: IO[bytes]) -> None:
    if import_zstd_or_none() is None:
        raise UnusableFileError(_NEWEST_FORMAT_HINT)
    try:
        _copy_limited(open_zstd_stream(stream), out)
    except _decompression_error_types():
        raise UnusableFileError("The collection in the package is damaged.") from None


def _copy_limited(source: IO[bytes], out: IO[bytes]) -> None:
    """Copy at most the archive limit, whatever size the archive states."""
    bytes_left = MAX_ARCHIVE_BYTES
    while chunk := source.read(_CHUNK_BYTES):
        bytes_left -= len(chunk)
        if bytes_left < 0:
            raise UnusableFileError(
                f"The collection is larger than {MAX_ARCHIVE_BYTES // 1_000_000} MB."
            )
        out.write(chunk)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    with path.open("rb") as stream:
        if stream.read(len(_SQLITE_FILE_START)) != _SQLITE_FILE_START:
            raise UnusableFileError("The collection in the package is no SQLite database.")
    address = f"{path.as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    # Invalid UTF-8 comes from a bug in another program and is no reason to stop.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON"):
        connection.execute(f"PRAGMA {pragma}")
    remaining_checks = iter(range(_MOST_LOOKS))
    connection.set_progress_handler(
        lambda: next(remaining_checks, None) is None, _SQLITE_STEPS_BETWEEN_CHECKS
    )
    connection.set_authorizer(_authorize_read)
    return connection


def _authorize_read(action: int, table: str | None, *_: str | None) -> int:
    """Allow only plain reads of the tables that a collection has."""
    is_known_table = action != sqlite3.SQLITE_READ or table in _READ_TABLES | {"sqlite_master"}
    allowed = action in _ALLOWED_SQLITE_ACTIONS and is_known_table
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _raise_unless_ordinary_tables(connection: sqlite3.Connection) -> None:
    """Refuse views and virtual tables in place of tables."""
    rows = connection.execute("SELECT name, type, rootpage, sql FROM sqlite_master").fetchmany(1000)
    tables = {
        str(name)
        for name, kind, root, sql in rows
        if kind == "table" and root and not str(sql).upper().startswith("CREATE VIRT")
    }
    wrong = sorted(
        str(name) for name, kind, *_ in rows if name in _READ_TABLES and name not in tables
    )
    missing = sorted({"col", "notes", "cards", "revlog"} - tables)
    if wrong or missing:
        raise UnusableFileError(
            f"The collection in the package has no ordinary table “{(wrong or missing)[0]}”."
        )


MAX_NOTES = 20_000
_MOST_CARDS = 40_000
_MOST_GRADES = 200_000
_MOST_WORDS = 40_000_000  # total text length of all cards
_LONGEST_GUID = 100
_LONGEST_TAGS = 1000
MANUAL_REVLOG_KIND = 4
"""The revlog type of a manual edit."""
_SUSPENDED_QUEUE = -1
_BURIED_QUEUES = -2, -3  # as a sibling of a reviewed card, and manually
_NEW_CARD_TYPE, _REVIEW_CARD_TYPE = 0, 2
_MIN_RETENTION, _MAX_RETENTION = 0.7, 0.97  # the range of the desired retention
_SEED_COUNT = 2**53
_MAX_CREATION_SECONDS = 4_000_000_000  # seconds since 1970
_MAX_DAY_OFFSET = 40_000  # days
_NOTE_FIELD_SEPARATOR = "\x1f"  # between the fields of a note
_NO_CARD_INFO = AddedCardInfo()
_NO_TYPE = NoteType("", (), {})


@dataclasses.dataclass(frozen=True, slots=True)
class RevlogEntry:
    """A row of the revlog.

    One of the kind `MANUAL_REVLOG_KIND` is a manual edit; without interval and `factor` it reset the card.
    """

    at_ms: int
    ease: int
    duration_ms: int
    revlog_kind: int
    interval: int = 0
    factor: int = 0

    @property
    def is_reset(self) -> bool:
        return self.revlog_kind == MANUAL_REVLOG_KIND and not (
            self.ease or self.interval or self.factor
        )


@dataclasses.dataclass(frozen=True, slots=True)
class PackageNote:
    guid: str
    note_type: NoteType
    field_values: tuple[str, ...]
    tags: str

    @property
    def max_card_text_length(self) -> int:
        return sum(map(len, self.field_values)) + self.note_type.max_template_length


@dataclasses.dataclass(frozen=True, slots=True)
class PackageCard:
    """A card of a package with its note.

    `desired_retention` is the last desired retention, `due_day` that of a review card. The value of
    `new_card_position` orders new cards.
    """

    note: PackageNote
    card_ordinal: int
    deck_name: str
    revlog: tuple[RevlogEntry, ...]
    is_suspended: bool
    desired_retention: float | None
    added_info: AddedCardInfo
    new_card_position: int
    is_new: bool
    due_day: dt.date | None
    buried_at_ms: int | None

    def render_sides(self) -> CardSides:
        """Return the sides as HTML, not sanitized."""
        return render_card_sides(self.note.note_type, self.note.field_values, self.card_ordinal)


@dataclasses.dataclass(frozen=True, slots=True)
class AnkiPackage:
    """All cards of a package, and the number of log rows without a card."""

    cards: tuple[PackageCard, ...]
    stray_log_row_count: int
    picture_by_name: Mapping[str, bytes]


def read_package(file: IO[bytes]) -> AnkiPackage:
    """Read an .apkg or .colpkg; raises UnusableFileError with the reason."""
    with (
        tempfile.TemporaryDirectory(prefix="headroom-") as folder,
        open_package_database(file, Path(folder)) as db,
    ):
        notes = _read_notes_by_id(db)
        entries_by_card_row_id, row_count = _read_revlog(db)
        cards = tuple(_read_cards(db, notes, entries_by_card_row_id))
    log_rows_of_cards = sum(len(card.revlog) for card in cards)
    picture_names = {
        name for note in notes.values() for name in find_picture_names(note.field_values)
    }
    file.seek(0)
    stray = row_count - log_rows_of_cards
    return AnkiPackage(cards, stray, read_media_by_name(file, picture_names))


def _read_notes_by_id(db: sqlite3.Connection) -> dict[int, PackageNote]:
    types = read_note_types_by_id(db)
    rows = db.execute("SELECT id, guid, mid, flds, tags FROM notes").fetchmany(MAX_NOTES + 1)
    if not rows:
        raise UnusableFileError("It holds no notes.")
    if len(rows) > MAX_NOTES:
        raise UnusableFileError(f"It holds more than {MAX_NOTES:,} notes; export fewer decks.")
    return {
        number: PackageNote(
            str(guid)[:_LONGEST_GUID],
            types.get(kind, _NO_TYPE),
            tuple(str(fields).split(_NOTE_FIELD_SEPARATOR)),
            " ".join(str(tags).split())[:_LONGEST_TAGS],
        )
        for number, guid, kind, fields, tags in rows
        if isinstance(number, int) and guid
    }


def _read_revlog(db: sqlite3.Connection) -> tuple[Mapping[int, list[RevlogEntry]], int]:
    """Return the valid entries of each card, oldest first, and the number of all rows."""
    query = "SELECT id, cid, ease, time, type, ivl, factor FROM revlog"
    rows = db.execute(query).fetchmany(_MOST_GRADES + 1)
    if len(rows) > _MOST_GRADES:
        raise UnusableFileError(f"It holds more than {_MOST_GRADES:,} grades; export fewer decks.")
    log: dict[int, list[RevlogEntry]] = {}
    for number, card, *values in rows:
        if all(isinstance(v, int) for v in (number, card, *values)):
            log.setdefault(card, []).append(RevlogEntry(number, *values))
    for group in log.values():
        group.sort(key=lambda row: row.at_ms)
    return log, len(rows)


def _read_cards(
    db: sqlite3.Connection,
    note_by_row_id: Mapping[int, PackageNote],
    revlog_by_card_row_id: Mapping[int, list[RevlogEntry]],
) -> Iterator[PackageCard]:
    decks, first_day = read_deck_names_by_id(db), _read_collection_start_day(db)
    rows = db.execute(_SELECT_CARDS).fetchmany(_MOST_CARDS + 1)
    if len(rows) > _MOST_CARDS:
        raise UnusableFileError(f"It holds more than {_MOST_CARDS:,} cards; export fewer decks.")
    length = 0
    for row in _keep_one_valid_row_per_card_of_note(rows):
        number, note, deck, original_deck, ordinal, queue, due, kind, original_due, mod, data = row
        note_content = note_by_row_id.get(note)
        if note_content is None:
            continue
        length += note_content.max_card_text_length
        if length > _MOST_WORDS:
            raise UnusableFileError("Its cards hold more text than can be taken in at once.")
        card_data = _parse_card_data(data)
        due_offset = original_due if original_deck else due
        yield PackageCard(
            note_content,
            ordinal,
            decks.get(original_deck or deck, ""),
            tuple(revlog_by_card_row_id.get(number, ())),
            is_suspended=queue == _SUSPENDED_QUEUE,
            desired_retention=card_data.desired_retention,
            added_info=card_data.added_info,
            new_card_position=due,
            is_new=kind == _NEW_CARD_TYPE,
            due_day=_add_days_or_none(first_day, due_offset) if kind == _REVIEW_CARD_TYPE else None,
            buried_at_ms=mod * 1000 if queue in _BURIED_QUEUES else None,
        )


# If a card is buried, burying was its last change: `mod` is that moment in seconds.
_SELECT_CARDS = "SELECT id, nid, did, odid, ord, queue, due, type, odue, mod, data FROM cards"


def _read_collection_start_day(db: sqlite3.Connection) -> dt.date | None:
    """Return the day from which the collection counts; days start at 4:00 in its zone.

    Uses the zone that the collection names. Otherwise UTC, which is within half a day.
    """
    rows = db.execute("SELECT crt, conf FROM col LIMIT 1").fetchall()
    if not rows or not isinstance(rows[0][0], int) or not 0 <= rows[0][0] < _MAX_CREATION_SECONDS:
        return None
    try:
        minutes_west = json.loads(rows[0][1] or "{}").get("creationOffset", 0)
    except (ValueError, TypeError, AttributeError, RecursionError):
        minutes_west = 0
    minutes_west = (
        minutes_west if isinstance(minutes_west, int) and abs(minutes_west) <= 24 * 60 else 0
    )
    moment = dt.datetime.fromtimestamp(rows[0][0], dt.UTC)
    return (moment - dt.timedelta(minutes=minutes_west)).date()


def _add_days_or_none(first_day: dt.date | None, offset: int) -> dt.date | None:
    if first_day is None or not -_MAX_DAY_OFFSET < offset < _MAX_DAY_OFFSET:
        return None
    return first_day + dt.timedelta(days=offset)


def _keep_one_valid_row_per_card_of_note(
    rows: Iterable[tuple[Any, ...]],
) -> Iterator[tuple[Any, ...]]:
    """Yield rows with valid numbers, each card of a note once."""
    seen: set[tuple[int, int]] = set()
    for row in rows:
        key = row[1], row[4]
        if all(isinstance(v, int) for v in row[:10]) and key not in seen:
            seen.add(key)
            yield row


class AnkiCardData(NamedTuple):
    """What the data column of a card holds: the desired retention, and what we added."""

    desired_retention: float | None
    added_info: AddedCardInfo


def _parse_card_data(data: Any) -> AnkiCardData:
    try:
        card_json = json.loads(data or "{}")
        own_json = json.loads(card_json.get("cd") or "{}")
        added_info = AddedCardInfo(
            _natural_number_or_none(own_json.get("seed")),
            _natural_number_or_none(own_json.get("since")),
        )
        retention = card_json.get("dr")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return AnkiCardData(None, _NO_CARD_INFO)
    if not isinstance(retention, float) or not math.isfinite(retention):
        return AnkiCardData(None, added_info)
    return AnkiCardData(min(_MAX_RETENTION, max(_MIN_RETENTION, retention)), added_info)


def _natural_number_or_none(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _SEED_COUNT else None
