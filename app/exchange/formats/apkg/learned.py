"""A learner's cards as an Anki package: texts, states, and every grade."""

import dataclasses
import datetime as dt
import sqlite3
from collections.abc import Iterable, Iterator

from app.exchange.formats.apkg.history import CardHistory, state_columns
from app.exchange.formats.apkg.packing import PackageWriter
from app.exchange.formats.apkg.schema import (
    BOTH_WAYS,
    ONE_WAY,
    CollectionCreation,
    collection,
    with_sides,
)
from app.exchange.formats.apkg.writing import (
    add_row,
    new_collection,
    note_columns,
    number_of,
)


@dataclasses.dataclass(frozen=True, slots=True)
class AnkiNote:
    """A note to be written: its lasting name, faces in HTML, and its cards.

    Two faces make one card, or two that are reverses of each other. A note that came
    from Anki has `ordinals`, one for each card, and two faces for each up to the last.
    """

    name: str
    guid: str
    deck: str
    faces: tuple[str, ...]
    cards: tuple[CardHistory, ...]
    tags: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()

    @property
    def model(self) -> int:
        """Its note type."""
        if self.ordinals:
            return with_sides(len(self.faces) // 2)
        return BOTH_WAYS if len(self.cards) > 1 else ONE_WAY

    @property
    def placed(self) -> Iterable[tuple[int, CardHistory]]:
        """Its cards with their ordinals."""
        places = self.ordinals or range(len(self.cards))
        return zip(places, self.cards, strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionDates:
    """The present in seconds since 1970 and as a study day; when the collection began.

    `first` is the day from which the collection counts.
    """

    moment: int
    today: dt.date
    first: dt.date
    birth: CollectionCreation

    def changed(self, card: CardHistory) -> int:
        """When a card was last changed: of a buried one Anki tells the day by it."""
        if card.buried is None or not card.is_buried(self.today):
            return self.moment
        return int(card.buried.at.timestamp())


_LOGGED = """
CREATE TEMP TABLE logged (at, card, place, cid, ease, ivl, last, factor, time, kind)
"""


def write_learned(
    sheets: Iterable[AnkiNote], calendar: CollectionDates, package: PackageWriter
) -> None:
    """Put these notes with their cards and logs into a package, and finish it.

    Each is written before the next is asked for, so `sheets` may be made as they go.
    """
    decks: dict[str, int] = {}
    sides: set[int] = set()
    taken: set[int] = set()
    with new_collection() as (db, path):
        db.execute(_LOGGED)
        for place, sheet in enumerate(sheets):
            decks.setdefault(sheet.deck, number_of(f"deck {sheet.deck}", set()))
            if sheet.ordinals:
                sides.add(len(sheet.faces) // 2)
            note = _add_note(db, sheet, calendar, taken)
            head = decks[sheet.deck], place
            for number, card in _add_cards(db, note, sheet, head, (calendar, taken)):
                _add_log(db, number, card)
        _number_logs(db)
        row = collection(decks, calendar.moment, calendar.birth, sides)
        add_row(db, "col", row)
        db.commit()
        package.finish(path)


def _add_note(
    db: sqlite3.Connection, sheet: AnkiNote, calendar: CollectionDates, taken: set[int]
) -> int:
    """Write a note; returns its number."""
    number = number_of(sheet.name, taken)
    rest = note_columns(sheet.model, sheet.faces, sheet.tags, calendar.moment)
    add_row(db, "notes", (number, sheet.guid, *rest))
    return number


def _add_cards(
    db: sqlite3.Connection,
    note: int,
    sheet: AnkiNote,
    head: tuple[int, int],
    known: tuple[CollectionDates, set[int]],
) -> Iterator[tuple[int, CardHistory]]:
    """Write the cards of a note; yields each with its number."""
    (deck, place), (calendar, taken) = head, known
    for side, card in sheet.placed:
        number = number_of(f"{sheet.name}~{side}", taken)
        first = (number, note, deck, side, calendar.changed(card), -1)
        days = calendar.first, calendar.today
        add_row(db, "cards", (*first, *state_columns(card, days, place)))
        yield number, card


def _add_log(db: sqlite3.Connection, number: int, card: CardHistory) -> None:
    rows = (
        (r.at, card.card, n, number, r.ease, r.ivl, r.last, r.factor, r.time, r.kind)
        for n, r in enumerate(card.log)
    )
    db.executemany("INSERT INTO logged VALUES (?,?,?,?,?,?,?,?,?,?)", rows)


def _number_logs(db: sqlite3.Connection) -> None:
    """Give every row of the logs a number of its own: its moment, or a little later.

    Anki takes the number of a row for the moment of the grade and has each only once.
    """
    rows = db.execute(
        "SELECT at, cid, ease, ivl, last, factor, time, kind FROM logged ORDER BY at, card, place"
    )
    db.executemany("INSERT INTO revlog VALUES (?,?,-1,?,?,?,?,?,?)", _numbered(rows))


def _numbered(rows: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    last = 0
    for at, *rest in rows:
        last = max(at, last + 1)
        yield (last, *rest)
