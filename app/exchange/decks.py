"""A learner's cards as notes for Anki: the words of each, its deck, its history."""

import dataclasses
import datetime as dt
import html
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from app.cards.names import (
    OWN,
    PICTURES,
    QUESTION,
    TERM,
    comes_back,
    origin,
    still_there,
)
from app.content.live.library import Library
from app.content.model import Card
from app.content.numbers.expressions import BadExpression
from app.exchange.course.authored import read_authored
from app.exchange.course.files import with_pictures
from app.exchange.formats.apkg.history import Aside, Learned, learned
from app.exchange.formats.apkg.learned import Calendar, Sheet, write_learned
from app.exchange.formats.apkg.pictures import as_files, file_of, name_of, names_in
from app.exchange.formats.apkg.schema import Birth
from app.exchange.formats.apkg.writing import guid
from app.exchange.items import Item
from app.exchange.markup.cleaning import portable
from app.exchange.markup.pictures import content_of, renamed
from app.exchange.markup.rendering import illustrated
from app.exchange.store import OwnText, Studied
from app.questions.cards import question_faces
from app.questions.variants import draw

_TURN = dt.time(4)
_MOST_SIDES = 30  # of a note that goes back to Anki as it came


@dataclasses.dataclass(frozen=True, slots=True)
class Course:
    """The course whose cards are taken along, and the folder of its files."""

    library: Library
    folder: Path

    @property
    def title(self) -> str:
        """The exam that it prepares for, or the name of its folder."""
        return self.library.syllabus.exam or self.folder.resolve().name


@dataclasses.dataclass(frozen=True, slots=True)
class Luggage:
    """The notes of a learner, and how many cards have no words any more.

    `pictures` are those of the course on them, by the names under which they are kept.
    """

    sheets: tuple[Sheet, ...]
    missing: int
    pictures: Mapping[str, bytes]

    @property
    def cards(self) -> int:
        """How many cards are taken along."""
        return sum(len(sheet.cards) for sheet in self.sheets)


def pack(course: Course, studied: Studied) -> Luggage:
    """Everything that a learner studies and that still has words."""
    cards = [c for c in studied.cards if has_words(course.library, studied.own, c)]
    held = {card: own for card in cards if (own := studied.own.get(card))}
    together = _of_one_note(held)
    notes = dict.fromkeys(
        min(together.get(_guid(held, card), [_note(course.library, card)]))
        for card in cards
    )
    sheets = _Sheets(course, studied, together)
    made = tuple(sheet for note in notes if (sheet := sheets.of(note)) is not None)
    return Luggage(made, len(studied.cards) - len(cards), sheets.pictures)


def has_words(library: Library, own: Collection[str], card: str) -> bool:
    """Whether a card can still be shown; `own` are those that a learner brought."""
    kind, name = origin(card)
    if kind == OWN:
        return card in own
    question = library.questions.get(name) if kind == QUESTION else None
    return still_there(library, card) and (question is None or comes_back(question))


def write_luggage(
    luggage: Luggage,
    now: dt.datetime,
    zone: dt.tzinfo,
    pictures: Mapping[str, bytes],
    *,
    modern: bool,
) -> bytes:
    """The notes as a package whose days are counted in the learner's zone."""
    days = [c.standing.first_day for s in luggage.sheets for c in s.cards if c.standing]
    here = now.astimezone(zone)
    first = min(days, default=here.date())
    today = here.date() - dt.timedelta(days=here.time() < _TURN)
    born = dt.datetime.combine(first, _TURN, zone)
    west = -round((born.utcoffset() or dt.timedelta()).total_seconds() / 60)
    birth = Birth(int(born.timestamp()), west)
    calendar = Calendar(int(now.timestamp()), today, first, birth)
    shown = {n for s in luggage.sheets for face in s.faces for n in names_in(face)}
    held = {**luggage.pictures, **pictures}
    media = {file_of(n): held[n] for n in sorted(shown) if n in held}
    sheets = [
        dataclasses.replace(sheet, faces=tuple(map(as_files, sheet.faces)))
        for sheet in luggage.sheets
    ]
    return write_learned(sheets, calendar, media, modern=modern)


def _note(library: Library, card: str) -> str:
    """The name of the note that a card belongs to: a reverse shares its card's."""
    known = library.cards.get(card)
    return min(card, known.sibling) if known and known.sibling else card


def _guid(held: Mapping[str, OwnText], card: str) -> str:
    return held[card].guid if card in held else ""


def _of_one_note(held: Mapping[str, OwnText]) -> dict[str, list[str]]:
    """The own cards that came from each note of Anki, by its GUID.

    They go back as the cards of one note, or Anki would have each twice.
    """
    found: dict[str, dict[int, str]] = {}
    for card, own in held.items():
        if own.guid and 0 <= own.ordinal < _MOST_SIDES:
            found.setdefault(own.guid, {})[own.ordinal] = card
    return {guid: [c for _, c in sorted(g.items())] for guid, g in found.items()}


class _Sheets:
    """Makes the note of a name; the authored words of a file are read once."""

    def __init__(
        self, course: Course, studied: Studied, together: Mapping[str, list[str]]
    ) -> None:
        self._together = together
        self._course = course
        self._library = course.library
        self._studied = studied
        self._read: dict[str, dict[str, tuple[str, str]]] = {}
        self.pictures: dict[str, bytes] = {}

    def of(self, note: str) -> Sheet | None:
        """The note with its one or two cards."""
        kind, name = origin(note)
        if kind == OWN:
            return self._own(note)
        if kind == QUESTION:
            return self._question(note, name)
        if kind == TERM:
            term = self._library.glossary[name]
            faces = html.escape(term.name), portable(term.meaning.html)
            return self._sheet(note, "terms", faces)
        card = self._library.cards[note]
        sheet = self._sheet(note, card.topic, self._faces(card), card.sibling)
        tags = (*card.tags, *(f"objective::{o}" for o in card.objectives))
        return dataclasses.replace(sheet, tags=tags)

    def _own(self, note: str) -> Sheet:
        """A card of the learner's own; with those that came from the same note."""
        own = self._studied.own[note]
        deck = self._deck(f"own::{own.deck}" if own.deck else "own")
        tags = tuple(own.tags.split())
        cards = self._together.get(own.guid, []) if own.guid else []
        made = tuple(self._learned(card) for card in cards or [note])
        if note not in cards:
            return Sheet(note, note, deck, (own.front, own.back), made, tags)
        texts = {
            text.ordinal: text for text in (self._studied.own[card] for card in cards)
        }
        faces: list[str] = []
        for ordinal in range(max(texts) + 1):
            text = texts.get(ordinal)
            faces += (text.front, text.back) if text else ("", "")
        ordinals = tuple(sorted(texts))
        return Sheet(note, own.guid, deck, tuple(faces), made, tags, ordinals)

    def _question(self, note: str, name: str) -> Sheet | None:
        seed = self._studied.added.get(note, Aside()).seed or 0
        try:
            variant = draw(self._library.questions[name], seed)
        except (BadExpression, ArithmeticError):
            return None
        faces = question_faces(variant, _gap)
        front, back = portable(faces.front), portable(faces.back)
        return self._sheet(note, "missed questions", (front, back))

    def _sheet(
        self, note: str, deck: str, faces: tuple[str, str], sibling: str = ""
    ) -> Sheet:
        names = (note, sibling) if sibling else (note,)
        cards = tuple(self._learned(name) for name in names)
        return Sheet(note, guid(note), self._deck(deck), faces, cards)

    def _learned(self, card: str) -> Learned:
        made = learned(
            card,
            self._studied.grades.get(card, ()),
            suspended=card in self._studied.suspended,
            aside=self._studied.added.get(card),
        )
        due = self._studied.due.get(card)
        if made.standing is None or due is None:
            return made
        # A question that was missed again is due before its grades alone would say.
        standing = dataclasses.replace(made.standing, due_day=due)
        return dataclasses.replace(made, standing=standing)

    def _deck(self, name: str) -> str:
        return f"Headroom::{self._course.title}::{name}"

    def _faces(self, card: Card) -> tuple[str, str]:
        """The words as `headroom export apkg` writes them, from the author's file."""
        path = card.place.path
        if path not in self._read:
            self._read[path] = dict(self._authored(self._course.folder / path, path))
        words = card.front.html, card.back.html
        return self._read[path].get(card.id) or (portable(words[0]), portable(words[1]))

    def _authored(self, file: Path, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """The faces of the cards in a file, by their names."""
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return
        for item in read_authored(text, path).items:
            if item.kind == "card":
                yield item.name, self._shown(with_pictures(file.parent, item))

    def _shown(self, card: Item) -> tuple[str, str]:
        """Both sides as HTML; pictures are named as those on own cards are."""
        held = {p.name: content_of(p) for p in card.pictures}
        names = {name: kept for name, c in held.items() if (kept := name_of(c))}
        self.pictures |= {kept: held[name] for name, kept in names.items()}
        card = renamed(card, {name: name for name in names})
        front, back = illustrated(card.stem), illustrated(card.text)
        for name, kept in names.items():
            was, now = f'src="{html.escape(name)}"', f'src="{PICTURES}{kept}"'
            front, back = front.replace(was, now), back.replace(was, now)
        return front, back


def _gap(hint: str) -> str:
    """A gap to fill, where nothing draws a line."""
    return f"[{hint or '…'}]"
