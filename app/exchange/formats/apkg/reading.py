"""What a package of Anki holds: cards with their words, states and logs."""

import dataclasses
import datetime as dt
import json
import math
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from app.exchange.formats.apkg.history import AddedCardInfo
from app.exchange.formats.apkg.notetypes import NoteType, deck_names, note_types
from app.exchange.formats.apkg.opening import media_of, open_package
from app.exchange.formats.apkg.showing import pictures_in, render_card_sides
from app.exchange.items import UnusableFileError

MOST_NOTES = 20_000
_MOST_CARDS = 40_000
_MOST_GRADES = 200_000
_MOST_WORDS = 40_000_000  # characters that all cards together are made of
_LONGEST_GUID = 100
_LONGEST_TAGS = 1000
BY_HAND = 4
"""The kind of a row that no grade made."""
_ASIDE = -1
_BURIED = -2, -3  # as a sibling of a card that was asked, and by hand
_NEW, _REVIEW = 0, 2
_LOWEST, _HIGHEST = 0.7, 0.97  # the recall that a learner may ask for
_SEEDS = 2**53
_LATEST = 4_000_000_000  # seconds since 1970
_FAR = 40_000  # days
_PARTS = "\x1f"  # between the fields of a note
_NOTHING = AddedCardInfo()
_NO_TYPE = NoteType("", (), {})


@dataclasses.dataclass(frozen=True, slots=True)
class RevlogEntry:
    """A row of the revlog: its number is the moment in milliseconds since 1970.

    One of the kind `BY_HAND` says what was set; without interval and `factor` it made
    the card new.
    """

    number: int
    ease: int
    time: int
    kind: int
    interval: int = 0
    factor: int = 0

    @property
    def forgets(self) -> bool:
        """Whether the card was made new here."""
        return self.kind == BY_HAND and not (self.ease or self.interval or self.factor)


@dataclasses.dataclass(frozen=True, slots=True)
class PackageCard:
    """A card of a package. Its faces are raw HTML, for `faces` alone renders them.

    `retention` is the recall that was wanted last, `aside` what we wrote beside it
    ourselves; `place` orders new cards. `due` is the day of one in review; `buried` the
    moment in ms at which it was put off to the next day.
    """

    guid: str
    ordinal: int
    deck: str
    kind: NoteType
    fields: tuple[str, ...]
    log: tuple[RevlogEntry, ...] = ()
    suspended: bool = False
    retention: float | None = None
    aside: AddedCardInfo = _NOTHING
    place: int = 0
    tags: str = ""
    is_new: bool = False
    due: dt.date | None = None
    buried: int | None = None

    @property
    def faces(self) -> tuple[str, str]:
        """Front and back as the note type shows them; not cleaned."""
        return render_card_sides(self.kind, self.fields, self.ordinal)


@dataclasses.dataclass(frozen=True, slots=True)
class AnkiPackage:
    """All cards of a package, and how many rows of its log belong to none.

    `media` are the files that its notes show as pictures, by name.
    """

    notes: int
    cards: tuple[PackageCard, ...]
    stray: int = 0
    media: Mapping[str, bytes] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class _PackageNote:
    guid: str
    kind: NoteType
    fields: tuple[str, ...]
    tags: str = ""

    @property
    def size(self) -> int:
        """How many characters a card of it is made of."""
        return sum(map(len, self.fields)) + self.kind.size


def read_package(file: IO[bytes]) -> AnkiPackage:
    """Read an .apkg or .colpkg; raises Unusable with a sentence why not."""
    with (
        tempfile.TemporaryDirectory(prefix="headroom-") as folder,
        open_package(file, Path(folder)) as db,
    ):
        notes = _notes(db)
        log, total = _log(db)
        cards = tuple(_cards(db, notes, log))
    carried = sum(len(card.log) for card in cards)
    shown = {name for note in notes.values() for name in pictures_in(note.fields)}
    file.seek(0)
    return AnkiPackage(len(notes), cards, total - carried, media_of(file, shown))


def _notes(db: sqlite3.Connection) -> dict[int, _PackageNote]:
    types = note_types(db)
    rows = db.execute("SELECT id, guid, mid, flds, tags FROM notes").fetchmany(MOST_NOTES + 1)
    if not rows:
        raise UnusableFileError("It holds no notes.")
    if len(rows) > MOST_NOTES:
        raise UnusableFileError(f"It holds more than {MOST_NOTES:,} notes; export fewer decks.")
    return {
        number: _PackageNote(
            str(guid)[:_LONGEST_GUID],
            types.get(kind, _NO_TYPE),
            tuple(str(fields).split(_PARTS)),
            " ".join(str(tags).split())[:_LONGEST_TAGS],
        )
        for number, guid, kind, fields, tags in rows
        if isinstance(number, int) and guid
    }


def _log(db: sqlite3.Connection) -> tuple[Mapping[int, list[RevlogEntry]], int]:
    """The rows of the log by card, oldest first, and how many there are."""
    query = "SELECT id, cid, ease, time, type, ivl, factor FROM revlog"
    rows = db.execute(query).fetchmany(_MOST_GRADES + 1)
    if len(rows) > _MOST_GRADES:
        raise UnusableFileError(f"It holds more than {_MOST_GRADES:,} grades; export fewer decks.")
    log: dict[int, list[RevlogEntry]] = {}
    for number, card, *values in rows:
        if all(isinstance(v, int) for v in (number, card, *values)):
            log.setdefault(card, []).append(RevlogEntry(number, *values))
    for group in log.values():
        group.sort(key=lambda row: row.number)
    return log, len(rows)


def _cards(
    db: sqlite3.Connection, notes: Mapping[int, _PackageNote], log: Mapping[int, list[RevlogEntry]]
) -> Iterator[PackageCard]:
    decks, born = deck_names(db), _born(db)
    rows = db.execute(_CARDS).fetchmany(_MOST_CARDS + 1)
    if len(rows) > _MOST_CARDS:
        raise UnusableFileError(f"It holds more than {_MOST_CARDS:,} cards; export fewer decks.")
    words = 0
    for row in _sound(rows):
        number, note, deck, home, ordinal, queue, due, kind, before, mod, data = row
        about = notes.get(note)
        if about is None:
            continue
        words += about.size
        if words > _MOST_WORDS:
            raise UnusableFileError("Its cards hold more text than can be taken in at once.")
        retention, aside = _known(data)
        yield PackageCard(
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
            about.tags,
            kind == _NEW,
            _day(born, before if home else due) if kind == _REVIEW else None,
            mod * 1000 if queue in _BURIED else None,
        )


# Burying is the last change of a card that is buried: `mod` is its moment in seconds.
_CARDS = "SELECT id, nid, did, odid, ord, queue, due, type, odue, mod, data FROM cards"


def _born(db: sqlite3.Connection) -> dt.date | None:
    """The day from which the collection counts; days turn at four in its zone.

    Told by the clock of the zone that it names, or else by UTC, where it lies within
    half a day of the true one.
    """
    rows = db.execute("SELECT crt, conf FROM col LIMIT 1").fetchall()
    if not rows or not isinstance(rows[0][0], int) or not 0 <= rows[0][0] < _LATEST:
        return None
    try:
        west = json.loads(rows[0][1] or "{}").get("creationOffset", 0)
    except (ValueError, TypeError, AttributeError, RecursionError):
        west = 0
    west = west if isinstance(west, int) and abs(west) <= 24 * 60 else 0
    moment = dt.datetime.fromtimestamp(rows[0][0], dt.UTC)
    return (moment - dt.timedelta(minutes=west)).date()


def _day(born: dt.date | None, number: int) -> dt.date | None:
    if born is None or not -_FAR < number < _FAR:
        return None
    return born + dt.timedelta(days=number)


def _sound(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows whose numbers are numbers, each card of a note once."""
    seen: set[tuple[int, int]] = set()
    for row in rows:
        key = row[1], row[4]
        if all(isinstance(v, int) for v in row[:10]) and key not in seen:
            seen.add(key)
            yield row


def _known(data: Any) -> tuple[float | None, AddedCardInfo]:
    """The recall wanted, and what we wrote ourselves, from the data of a card."""
    try:
        known = json.loads(data or "{}")
        own = json.loads(known.get("cd") or "{}")
        aside = AddedCardInfo(_natural(own.get("seed")), _natural(own.get("since")))
        wanted = known.get("dr")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None, _NOTHING
    if not isinstance(wanted, float) or not math.isfinite(wanted):
        return None, aside
    return min(_HIGHEST, max(_LOWEST, wanted)), aside


def _natural(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _SEEDS else None
