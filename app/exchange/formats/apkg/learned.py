"""A learner's cards as an Anki package: texts, states, and every grade."""

import dataclasses
import datetime as dt
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from app.exchange.formats.apkg.history import Learned, numbered, state_columns
from app.exchange.formats.apkg.schema import (
    BOTH_WAYS,
    ONE_WAY,
    Birth,
    collection,
    with_sides,
)
from app.exchange.formats.apkg.writing import note_columns, number_of, packed


@dataclasses.dataclass(frozen=True, slots=True)
class Sheet:
    """A note to be written: its lasting name, faces in HTML, and its cards.

    Two faces make one card, or two that are reverses of each other. A note that came
    from Anki has `ordinals`, one for each card, and two faces for each up to the last.
    """

    name: str
    guid: str
    deck: str
    faces: tuple[str, ...]
    cards: tuple[Learned, ...]
    tags: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()

    @property
    def model(self) -> int:
        """Its note type."""
        if self.ordinals:
            return with_sides(len(self.faces) // 2)
        return BOTH_WAYS if len(self.cards) > 1 else ONE_WAY

    @property
    def placed(self) -> Iterable[tuple[int, Learned]]:
        """Its cards with their ordinals."""
        places = self.ordinals or range(len(self.cards))
        return zip(places, self.cards, strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Calendar:
    """The present in seconds since 1970 and as a study day; when the collection began.

    `first` is the day from which the collection counts.
    """

    moment: int
    today: dt.date
    first: dt.date
    birth: Birth

    def changed(self, card: Learned) -> int:
        """When a card was last changed: of a buried one Anki tells the day by it."""
        if card.buried is None or not card.is_buried(self.today):
            return self.moment
        return int(card.buried.at.timestamp())


def write_learned(
    sheets: Sequence[Sheet],
    calendar: Calendar,
    media: Mapping[str, bytes],
    *,
    modern: bool,
) -> bytes:
    """A package of these notes with their cards, logs and pictures."""
    decks = {s.deck: number_of(f"deck {s.deck}", set()) for s in sheets}

    def fill(db: sqlite3.Connection) -> None:
        numbers = _add_sheets(db, sheets, decks, calendar)
        cards = [card for sheet in sheets for card in sheet.cards]
        db.executemany(
            "INSERT INTO revlog VALUES (?,?,-1,?,?,?,?,?,?)",
            (
                (n, numbers[card], r.ease, r.ivl, r.last, r.factor, r.time, r.kind)
                for n, card, r in numbered(cards)
            ),
        )

    sides = [len(sheet.faces) // 2 for sheet in sheets if sheet.ordinals]
    row = collection(decks, calendar.moment, calendar.birth, sides)
    return packed(row, fill, media, modern=modern)


def _add_sheets(
    db: sqlite3.Connection,
    sheets: Sequence[Sheet],
    decks: Mapping[str, int],
    calendar: Calendar,
) -> dict[str, int]:
    """Write notes and cards; the number of each card by its name."""
    taken: set[int] = set()
    numbers: dict[str, int] = {}
    for place, sheet in enumerate(sheets):
        note = number_of(sheet.name, taken)
        rest = note_columns(sheet.model, sheet.faces, sheet.tags, calendar.moment)
        marks = ",".join("?" * (len(rest) + 2))
        db.execute(
            f"INSERT INTO notes VALUES ({marks})",  # noqa: S608 - question marks only
            (note, sheet.guid, *rest),
        )
        for side, card in sheet.placed:
            number = numbers[card.card] = number_of(f"{sheet.name}~{side}", taken)
            head = (number, note, decks[sheet.deck], side, calendar.changed(card), -1)
            days = calendar.first, calendar.today
            values = (*head, *state_columns(card, days, place))
            marks = ",".join("?" * len(values))
            db.execute(
                f"INSERT INTO cards VALUES ({marks})",  # noqa: S608 - question marks only
                values,
            )
    return numbers
