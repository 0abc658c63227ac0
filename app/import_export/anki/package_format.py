"""The .apkg layout: zip, zstd, tables, media.

Newer versions of Anki compress each file of the archive with zstd and list the media as a protocol
buffer. Older ones use zip compression and list the media as JSON.
"""

import dataclasses
import functools
import hashlib
import importlib
import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from app.import_export.xml_files import MAX_ARCHIVE_FILES
from app.markup.images import detect_image_format
from app.spaced_repetition.added_card_ids_and_faces import PICTURES

NEWEST_COLLECTION_NAME = "collection.anki21b"
_COLLECTION_FILE_NAME = "collection.anki2"
_META_FILE_CONTENT = b"\x08\x03"  # package version as a protocol buffer: the latest
_CHUNK_BYTES = 1 << 20
_WINDOW_LOG_MAX = 26  # limits the memory of the decompressor to 64 MiB


@functools.cache
def import_zstd_or_none() -> Any:
    """Return the zstd module: the standard library's from Python 3.14 on, or its backport, or None."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def open_zstd_stream(stream: IO[bytes]) -> IO[bytes]:
    """Return a decompressing stream; reading it may raise the `ZstdError` of that module."""
    module = import_zstd_or_none()
    options = {module.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
    decompressed: IO[bytes] = module.ZstdFile(stream, options=options)
    return decompressed


class PackageArchiveWriter:
    """Writes a package to a file, with only one media file in memory at a time.

    `newer_format` compresses it as newer versions of Anki do. Call `write_collection_and_finish` to complete it.
    """

    def __init__(self, file: IO[bytes], *, newer_format: bool) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._modern = newer_format
        self._media: list[_MediaFile] = []

    def add_media(self, name: str, content: bytes) -> None:
        """Write a media file, uncompressed, because media are already compressed."""
        digest = hashlib.sha1(content, usedforsecurity=False).digest()
        self._archive.writestr(str(len(self._media)), self._compress(content))
        self._media.append(_MediaFile(name, len(content), digest))

    def write_collection_and_finish(self, collection_file: Path) -> None:
        """Write the collection (an SQLite file) and the media list."""
        with self._archive as archive:
            if self._modern:
                archive.writestr("meta", _META_FILE_CONTENT)
                self._pack_collection(collection_file)
                archive.writestr("media", self._compress(_encode_media_list(self._media)))
                return
            archive.write(collection_file, _COLLECTION_FILE_NAME, zipfile.ZIP_DEFLATED)
            names = {str(number): m.name for number, m in enumerate(self._media)}
            archive.writestr("media", json.dumps(names), zipfile.ZIP_DEFLATED)

    def _compress(self, content: bytes) -> bytes:
        compressed: bytes = import_zstd_or_none().compress(content) if self._modern else content
        return compressed

    def _pack_collection(self, path: Path) -> None:
        compressor = import_zstd_or_none().ZstdCompressor()
        compressor.set_pledged_input_size(path.stat().st_size)
        with path.open("rb") as source, self._archive.open(NEWEST_COLLECTION_NAME, "w") as out:
            while chunk := source.read(_CHUNK_BYTES):
                out.write(compressor.compress(chunk))
            out.write(compressor.flush())


class _MediaFile(NamedTuple):
    name: str
    byte_count: int
    sha1: bytes


def _encode_media_list(media: Iterable[_MediaFile]) -> bytes:
    """Return the media list: name (1), size (2) and SHA-1 (3) of each file."""
    out = bytearray()
    for medium in media:
        entry = (
            _encode_bytes_field(1, medium.name.encode())
            + b"\x10"
            + _encode_varint(medium.byte_count)
        )
        out += _encode_bytes_field(1, entry + _encode_bytes_field(3, medium.sha1))
    return bytes(out)


def _encode_bytes_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _encode_varint(len(content)) + content


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


class _Varint(NamedTuple):
    """A number in a protocol buffer, and the offset behind it."""

    value: int
    end_offset: int


class ProtobufField(NamedTuple):
    number: int
    value: int | bytes


def decode_protobuf_fields(data: bytes) -> Iterator[ProtobufField]:
    """Yield the fields of a protocol buffer, up to the first invalid byte."""
    offset = 0
    while offset < len(data):
        key = _decode_varint(data, offset)
        offset = key.end_offset
        if key.value & 7 == 0:
            number = _decode_varint(data, offset)
            yield ProtobufField(key.value >> 3, number.value)
            offset = number.end_offset
        elif key.value & 7 == 2:
            length = _decode_varint(data, offset)
            offset = length.end_offset + length.value
            yield ProtobufField(key.value >> 3, data[length.end_offset : offset])
        elif key.value & 7 in (1, 5):
            offset += 8 if key.value & 7 == 1 else 4
        else:
            return


def _decode_varint(data: bytes, offset: int) -> _Varint:
    """Read the varint at an offset: seven bits in each byte."""
    value = shift = 0
    while offset < len(data) and shift < 70:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            break
    return _Varint(value, offset)


def parse_media_name_by_entry(media_list: bytes, *, newer_format: bool) -> dict[str, str]:
    """Return the media names by the names of their files in the archive."""
    if not newer_format:
        try:
            document = json.loads(media_list)
        except (ValueError, RecursionError):
            return {}
        pairs = document.items() if isinstance(document, dict) else ()
        return {str(key): str(name) for key, name in pairs}
    encoded_entries = (value for key, value in decode_protobuf_fields(media_list) if key == 1)
    entries = itertools.islice(encoded_entries, MAX_ARCHIVE_FILES)
    names: dict[str, str] = {}
    for index, entry in enumerate(entries):
        fields = dict(decode_protobuf_fields(entry)) if isinstance(entry, bytes) else {}
        name = fields.get(1)
        if isinstance(name, bytes):
            names[str(fields.get(255, index))] = name.decode("utf-8", "replace")
    return names


COLLECTION_SCHEMA = """
CREATE TABLE col (id integer primary key, crt integer not null, mod integer not null,
  scm integer not null, ver integer not null, dty integer not null,
  usn integer not null, ls integer not null, conf text not null, models text not null,
  decks text not null, dconf text not null, tags text not null);
CREATE TABLE notes (id integer primary key, guid text not null, mid integer not null,
  mod integer not null, usn integer not null, tags text not null, flds text not null,
  sfld integer not null, csum integer not null, flags integer not null,
  data text not null);
CREATE TABLE cards (id integer primary key, nid integer not null, did integer not null,
  ord integer not null, mod integer not null, usn integer not null,
  type integer not null, queue integer not null, due integer not null,
  ivl integer not null, factor integer not null, reps integer not null,
  lapses integer not null, left integer not null, odue integer not null,
  odid integer not null, flags integer not null, data text not null);
CREATE TABLE revlog (id integer primary key, cid integer not null,
  usn integer not null, ease integer not null, ivl integer not null,
  lastIvl integer not null, factor integer not null, time integer not null,
  type integer not null);
CREATE TABLE graves (usn integer not null, oid integer not null, type integer not null);
CREATE INDEX ix_notes_usn on notes (usn);
CREATE INDEX ix_notes_csum on notes (csum);
CREATE INDEX ix_cards_usn on cards (usn);
CREATE INDEX ix_cards_nid on cards (nid);
CREATE INDEX ix_cards_sched on cards (did, queue, due);
CREATE INDEX ix_revlog_usn on revlog (usn);
CREATE INDEX ix_revlog_cid on revlog (cid);
"""
# Never change these: an import finds the note type of an earlier one by its id.
ONE_WAY_NOTE_TYPE_ID = 1763683200001
BOTH_WAYS_NOTE_TYPE_ID = 1763683200002
_FIRST_SIDES_NOTE_TYPE_ID = 1763683201000
_DEFAULT_COLLECTION_SECONDS = 1763683200
_NOTE_TYPE_CSS = """.card { font-family: sans-serif; font-size: 1.2rem; text-align: left;
  max-width: 40rem; margin: auto; }
pre, code { font-family: monospace; }
table { border-collapse: collapse; } td, th { padding: 0.2rem 0.6rem; }"""


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionStart:
    """The start of the day from which a collection counts, if scheduling is exported."""

    epoch_seconds: int
    minutes_west_of_utc: int


def find_note_type_id_for_card_count(card_count: int) -> int:
    """Return the id of the note type with `card_count` cards, each with its own front and back."""
    return ONE_WAY_NOTE_TYPE_ID if card_count == 1 else _FIRST_SIDES_NOTE_TYPE_ID + card_count


def build_collection_row(
    deck_ids_by_name: dict[str, int],
    now_seconds: int,
    collection_start: CollectionStart | None,
    card_counts: Iterable[int],
) -> tuple[Any, ...]:
    """Return the row of the table col.

    `card_counts` are the card counts of notes whose cards are not reverses of each other.
    """
    conf = dict(_COLLECTION_CONFIG)
    if collection_start:
        conf |= {"schedVer": 2, "sched2021": True, "rollover": 4}
        conf["creationOffset"] = collection_start.minutes_west_of_utc
    deck_rows = {1: "Default"} | {number: name for name, number in deck_ids_by_name.items()}
    return (
        1,
        collection_start.epoch_seconds if collection_start else _DEFAULT_COLLECTION_SECONDS,
        now_seconds * 1000,
        _DEFAULT_COLLECTION_SECONDS * 1000,
        11,
        0,
        0,
        0,
        json.dumps(conf),
        json.dumps({str(m["id"]): m for m in _note_type_rows(card_counts)}),
        json.dumps({str(n): _deck_row(n, name, now_seconds) for n, name in deck_rows.items()}),
        json.dumps({"1": _DECK_OPTIONS}),
        "{}",
    )


class _CardFields(NamedTuple):
    """A card of a note type, and the fields that it shows."""

    name: str
    front_field: str
    back_field: str


def _note_type_rows(card_counts: Iterable[int]) -> Iterable[dict[str, Any]]:
    front_to_back = _CardFields("Card 1", "Front", "Back")
    back_to_front = _CardFields("Card 2", "Back", "Front")
    yield _note_type_row(ONE_WAY_NOTE_TYPE_ID, "Headroom", [front_to_back], ["Front", "Back"])
    yield _note_type_row(
        BOTH_WAYS_NOTE_TYPE_ID,
        "Headroom (both ways)",
        [front_to_back, back_to_front],
        ["Front", "Back"],
    )
    for count in sorted({count for count in card_counts if count > 1}):
        card_numbers = range(1, count + 1)
        yield _note_type_row(
            find_note_type_id_for_card_count(count),
            f"Headroom ({count} cards)",
            [_CardFields(f"Card {n}", f"Front {n}", f"Back {n}") for n in card_numbers],
            [f"{side} {n}" for n in card_numbers for side in ("Front", "Back")],
        )


def _note_type_row(
    note_type_id: int, name: str, cards: list[_CardFields], fields: list[str]
) -> dict[str, Any]:
    return {
        "id": note_type_id,
        "name": name,
        "type": 0,
        "mod": _DEFAULT_COLLECTION_SECONDS,
        "usn": -1,
        "sortf": 0,
        "did": 1,
        "css": _NOTE_TYPE_CSS,
        "flds": [_field_row(n, f) for n, f in enumerate(fields)],
        "tmpls": [_template_row(n, card) for n, card in enumerate(cards)],
        "req": [[n, "any", [fields.index(c.front_field)]] for n, c in enumerate(cards)],
        "latexPre": "",
        "latexPost": "",
        "tags": [],
        "vers": [],
    }


def _field_row(ordinal: int, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "ord": ordinal,
        "font": "Arial",
        "size": 20,
        "sticky": False,
        "rtl": False,
        "media": [],
    }


def _template_row(ordinal: int, card: _CardFields) -> dict[str, Any]:
    return {
        "name": card.name,
        "ord": ordinal,
        "qfmt": f"{{{{{card.front_field}}}}}",
        "afmt": f"{{{{FrontSide}}}}<hr id=answer>{{{{{card.back_field}}}}}",
        "bqfmt": "",
        "bafmt": "",
        "did": None,
    }


def _deck_row(deck_id: int, name: str, modified_at: int) -> dict[str, Any]:
    return {
        "id": deck_id,
        "name": name,
        "mod": modified_at,
        "usn": -1,
        "desc": "",
        "dyn": 0,
        "conf": 1,
        "collapsed": False,
        "browserCollapsed": False,
        "extendNew": 0,
        "extendRev": 0,
        "newToday": [0, 0],
        "revToday": [0, 0],
        "lrnToday": [0, 0],
        "timeToday": [0, 0],
    }


_COLLECTION_CONFIG: dict[str, Any] = {
    "activeDecks": [1],
    "addToCur": True,
    "collapseTime": 1200,
    "curDeck": 1,
    "curModel": str(ONE_WAY_NOTE_TYPE_ID),
    "dueCounts": True,
    "estTimes": True,
    "newSpread": 0,
    "nextPos": 1,
    "sortBackwards": False,
    "sortType": "noteFld",
    "timeLim": 0,
}
_DECK_OPTIONS = {
    "id": 1,
    "name": "Default",
    "mod": 0,
    "usn": 0,
    "autoplay": True,
    "maxTaken": 60,
    "replayq": True,
    "timer": 0,
    "new": {
        "bury": True,
        "delays": [1, 10],
        "initialFactor": 2500,
        "ints": [1, 4, 7],
        "order": 1,
        "perDay": 20,
        "separate": True,
    },
    "lapse": {"delays": [10], "leechAction": 0, "leechFails": 8, "minInt": 1, "mult": 0},
    "rev": {
        "bury": True,
        "ease4": 1.3,
        "fuzz": 0.05,
        "ivlFct": 1,
        "maxIvl": 36500,
        "minSpace": 1,
        "perDay": 200,
    },
}

_OWN_PICTURE_ADDRESS = re.compile(rf"{PICTURES}([0-9a-f]{{32}}\.[a-z]{{3,4}})")


def build_stored_picture_name_or_empty(content: bytes) -> str:
    """Return the stored name of a picture; empty if the content is not a picture.

    SVG does not count: it is a document that can contain scripts.
    """
    kind = detect_image_format(content)
    if kind in {"", "svg"}:
        return ""
    return f"{hashlib.sha256(content).hexdigest()[:32]}.{kind}"


def find_stored_picture_names(html: str) -> list[str]:
    return _OWN_PICTURE_ADDRESS.findall(html)


def build_package_picture_name(stored_name: str) -> str:
    return f"headroom-{stored_name}"


def replace_picture_urls_with_package_names(html: str) -> str:
    return _OWN_PICTURE_ADDRESS.sub(lambda m: build_package_picture_name(m[1]), html)
