"""What a package of Anki holds: cards with their words, states and logs."""

import dataclasses
import json
import math
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from app.exchange.formats.apkg.history import Aside
from app.exchange.formats.apkg.notetypes import NoteType, deck_names, note_types
from app.exchange.formats.apkg.opening import opened
from app.exchange.formats.apkg.showing import faces_of
from app.exchange.items import Unusable

MOST_NOTES = 20_000
_MOST_CARDS = 40_000
_MOST_GRADES = 200_000
_MOST_WORDS = 40_000_000  # characters that all cards together are made of
_LONGEST_GUID = 100
_ASIDE = -1
_LOWEST, _HIGHEST = 0.7, 0.97  # the recall that a learner may ask for
_SEEDS = 2**53
_PARTS = "\x1f"  # between the fields of a note
_NOTHING = Aside()
_NO_TYPE = NoteType("", (), {})


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A row of the revlog: its number is the moment in milliseconds since 1970."""

    number: int
    ease: int
    time: int
    kind: int


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A card of a package. Its faces are raw HTML, for `faces` alone renders them.

    `retention` is the recall that was wanted last, `aside` what we wrote beside it
    ourselves; `place` orders new cards.
    """

    guid: str
    ordinal: int
    deck: str
    kind: NoteType
    fields: tuple[str, ...]
    log: tuple[Row, ...] = ()
    suspended: bool = False
    retention: float | None = None
    aside: Aside = _NOTHING
    place: int = 0

    @property
    def faces(self) -> tuple[str, str]:
        """Front and back as the note type shows them; not cleaned."""
        return faces_of(self.kind, self.fields, self.ordinal)


@dataclasses.dataclass(frozen=True, slots=True)
class Package:
    """All cards of a package, and how many rows of its log belong to none."""

    notes: int
    cards: tuple[Found, ...]
    stray: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Note:
    guid: str
    kind: NoteType
    fields: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many characters a card of it is made of."""
        return sum(map(len, self.fields)) + self.kind.size


def read_package(file: IO[bytes]) -> Package:
    """Read an .apkg or .colpkg; raises Unusable with a sentence why not."""
    with (
        tempfile.TemporaryDirectory(prefix="headroom-") as folder,
        opened(file, Path(folder)) as db,
    ):
        notes = _notes(db)
        log, total = _log(db)
        cards = tuple(_cards(db, notes, log))
    carried = sum(len(card.log) for card in cards)
    return Package(len(notes), cards, total - carried)


def _notes(db: sqlite3.Connection) -> dict[int, _Note]:
    types = note_types(db)
    rows = db.execute("SELECT id, guid, mid, flds FROM notes").fetchmany(MOST_NOTES + 1)
    if not rows:
        raise Unusable("It holds no notes.")
    if len(rows) > MOST_NOTES:
        raise Unusable(f"It holds more than {MOST_NOTES:,} notes; export fewer decks.")
    return {
        number: _Note(
            str(guid)[:_LONGEST_GUID],
            types.get(kind, _NO_TYPE),
            tuple(str(fields).split(_PARTS)),
        )
        for number, guid, kind, fields in rows
        if isinstance(number, int) and guid
    }


def _log(db: sqlite3.Connection) -> tuple[Mapping[int, list[Row]], int]:
    """The rows of the log by card, oldest first, and how many there are."""
    rows = db.execute("SELECT id, cid, ease, time, type FROM revlog").fetchmany(
        _MOST_GRADES + 1
    )
    if len(rows) > _MOST_GRADES:
        raise Unusable(
            f"It holds more than {_MOST_GRADES:,} grades; export fewer decks."
        )
    log: dict[int, list[Row]] = {}
    for number, card, *values in rows:
        if all(isinstance(v, int) for v in (number, card, *values)):
            log.setdefault(card, []).append(Row(number, *values))
    for group in log.values():
        group.sort(key=lambda row: row.number)
    return log, len(rows)


def _cards(
    db: sqlite3.Connection, notes: Mapping[int, _Note], log: Mapping[int, list[Row]]
) -> Iterator[Found]:
    decks = deck_names(db)
    query = "SELECT id, nid, did, odid, ord, queue, due, data FROM cards"
    rows = db.execute(query).fetchmany(_MOST_CARDS + 1)
    if len(rows) > _MOST_CARDS:
        raise Unusable(f"It holds more than {_MOST_CARDS:,} cards; export fewer decks.")
    words = 0
    for number, note, deck, home, ordinal, queue, due, data in _sound(rows):
        about = notes.get(note)
        if about is None:
            continue
        words += about.size
        if words > _MOST_WORDS:
            raise Unusable("Its cards hold more text than can be taken in at once.")
        retention, aside = _known(data)
        yield Found(
            about.guid,
            ordinal,
            decks.get(home or deck, ""),
            about.kind,
            about.fields,
            tuple(log.get(number, ())),
            queue == _ASIDE,
            retention,
            aside,
            due,
        )


def _sound(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows whose numbers are numbers, each card of a note once."""
    seen: set[tuple[int, int]] = set()
    for row in rows:
        key = row[1], row[4]
        if all(isinstance(v, int) for v in row[:7]) and key not in seen:
            seen.add(key)
            yield row


def _known(data: Any) -> tuple[float | None, Aside]:
    """The recall wanted, and what we wrote ourselves, from the data of a card."""
    try:
        known = json.loads(data or "{}")
        own = json.loads(known.get("cd") or "{}")
        aside = Aside(_natural(own.get("seed")), _natural(own.get("since")))
        wanted = known.get("dr")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None, _NOTHING
    if not isinstance(wanted, float) or not math.isfinite(wanted):
        return None, aside
    return min(_HIGHEST, max(_LOWEST, wanted)), aside


def _natural(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _SEEDS else None
