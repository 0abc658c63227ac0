"""A learner's cards as Anki notes."""

import dataclasses
import datetime as dt
import html
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from app.content.library import Library
from app.import_export.anki.package_format import (
    CollectionStart,
    PackageWriter,
    find_stored_picture_names,
    name_package_picture,
    name_picture_or_empty,
    point_to_package_files,
)
from app.import_export.anki.package_writer import (
    AddedCardInfo,
    AnkiNote,
    CardHistory,
    CollectionDates,
    note_guid,
    replay_for_anki,
    write_notes_to_package,
)
from app.import_export.course_files import attach_pictures
from app.import_export.course_items import read_authored_items
from app.import_export.export_store import LearnerCards, StudiedCards
from app.import_export.html_sanitizer import portable_html
from app.import_export.items import Item, image_bytes, rename_images
from app.import_export.markdown_to_html import to_html_with_pictures
from app.markup.expressions import ExpressionError
from app.markup.model import Flashcard
from app.questions.grading import question_card_faces
from app.questions.model import draw_variant
from app.spaced_repetition.card_ids import (
    OWN,
    PICTURES,
    QUESTION,
    TERM,
    is_source_in_course,
    is_usable_as_card,
    parse_card_id,
)

_ROLLOVER = dt.time(4)
_MOST_SIDES = 30  # of a note that returns to Anki as it came
_NOTES_AT_ONCE = 50


@dataclasses.dataclass(frozen=True, slots=True)
class ExportCourse:
    """The course whose cards are exported, and the folder of its files."""

    library: Library
    folder: Path

    @property
    def title(self) -> str:
        """The name of its exam, or of its folder."""
        return self.library.syllabus.exam or self.folder.resolve().name


def write_learner_cards(
    course: ExportCourse, cards: LearnerCards, package: PackageWriter, learner_time: "LearnerTime"
) -> None:
    """Write all cards of a learner that still have text, a few notes at a time."""
    calendar = learner_time.collection_dates(cards.first_day())
    pictures = _PicturePacker(cards.read_picture, package)
    notes = _NoteBuilder(course, pictures.of_course)
    write_notes_to_package(map(pictures.pack_pictures, notes.build_notes(cards)), calendar, package)


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerTime:
    """The current moment, and the zone of the learner."""

    now: dt.datetime
    zone: dt.tzinfo

    def collection_dates(self, first_study_day: dt.date | None) -> CollectionDates:
        """Return the dates of the collection, counted from `first_study_day` or from today."""
        local_now = self.now.astimezone(self.zone)
        first_study_day = first_study_day or local_now.date()
        today = local_now.date() - dt.timedelta(days=local_now.time() < _ROLLOVER)
        start = dt.datetime.combine(first_study_day, _ROLLOVER, self.zone)
        minutes_west = -round((start.utcoffset() or dt.timedelta()).total_seconds() / 60)
        collection_start = CollectionStart(int(start.timestamp()), minutes_west)
        return CollectionDates(int(self.now.timestamp()), today, first_study_day, collection_start)


def is_card_available(library: Library, own_card_ids: Collection[str], card: str) -> bool:
    """Return whether a card can still be shown; `own_card_ids` are the learner's own cards."""
    kind, name = parse_card_id(card)
    if kind == OWN:
        return card in own_card_ids
    question = library.questions.get(name) if kind == QUESTION else None
    return is_source_in_course(library, card) and (question is None or is_usable_as_card(question))


AnkiOrigins = Mapping[str, tuple[str, int]]


def group_cards_by_note(
    library: Library, cards: Collection[str], origins: AnkiOrigins
) -> dict[str, tuple[str, ...]]:
    """Group cards into notes, by note name.

    A reverse shares the note of its card. Own cards from one Anki note return as cards of one note,
    because Anki would otherwise contain each card twice.
    """
    cards_by_guid: dict[str, dict[int, str]] = {}
    for card in cards:
        guid, ordinal = origins.get(card, ("", 0))
        if can_return_to_anki_note(guid, ordinal):
            cards_by_guid.setdefault(guid, {})[ordinal] = card
    notes: dict[str, tuple[str, ...]] = {}
    for card in cards:
        group = cards_by_guid.get(origins.get(card, ("", 0))[0])
        if group:
            names = tuple(name for _, name in sorted(group.items()))
            notes[min(names)] = names
        else:
            course_card = library.cards.get(card)
            names = (card, course_card.sibling) if course_card and course_card.sibling else (card,)
            notes[min(names)] = tuple(sorted(names))
    return notes


def can_return_to_anki_note(guid_: str, ordinal: int) -> bool:
    """Return whether an own card came from an Anki note and can return as a card of it."""
    return bool(guid_) and 0 <= ordinal < _MOST_SIDES


class _PicturePacker:
    """Adds the pictures of notes to the package, each once."""

    def __init__(self, find: Callable[[str], bytes | None], package: PackageWriter) -> None:
        self._find = find
        self._package = package
        self._packed: set[str] = set()
        self.of_course: dict[str, bytes] = {}

    def pack_pictures(self, note: AnkiNote) -> AnkiNote:
        """Return the note with pictures as package files, and add these files."""
        for name in (name for face in note.faces for name in find_stored_picture_names(face)):
            if name not in self._packed:
                self._packed.add(name)
                content = self.of_course.get(name) or self._find(name)
                if content:
                    self._package.add_media(name_package_picture(name), content)
        return dataclasses.replace(note, faces=tuple(map(point_to_package_files, note.faces)))


class _NoteBuilder:
    """Builds notes; each authored file is read once.

    `pictures` collects those of the course, by stored name.
    """

    def __init__(self, course: ExportCourse, pictures: dict[str, bytes]) -> None:
        self._course = course
        self._library = course.library
        self._pictures = pictures
        self._studied = StudiedCards({}, frozenset(), {}, {}, {})
        self._read: dict[str, dict[str, tuple[str, str]]] = {}

    def build_notes(self, cards: LearnerCards) -> Iterator[AnkiNote]:
        """Yield all notes of a learner."""
        origins = cards.note_origins()
        available_cards = [
            c for c in cards.list_card_ids() if is_card_available(self._library, origins, c)
        ]
        notes = list(group_cards_by_note(self._library, available_cards, origins).items())
        for begin in range(0, len(notes), _NOTES_AT_ONCE):
            batch = notes[begin : begin + _NOTES_AT_ONCE]
            self._studied = cards.read_study_data([name for _, names in batch for name in names])
            for note, names in batch:
                anki_note = self._build_by_kind(note, names)
                if anki_note is not None:
                    yield anki_note

    def _build_by_kind(self, note: str, cards: tuple[str, ...]) -> AnkiNote | None:
        """Return the note with its cards; None if its text no longer exists."""
        kind, name = parse_card_id(note)
        if kind == OWN:
            return self._own_note(note, cards)
        if kind == QUESTION:
            return self._question_note(note, name)
        if kind == TERM:
            term = self._library.glossary[name]
            faces = html.escape(term.name), portable_html(term.meaning.html)
            return self._build_note((note,), "terms", faces)
        card = self._library.cards[note]
        anki_note = self._build_note(cards, card.topic, self._card_faces(card))
        tags = (*card.tags, *(f"objective::{o}" for o in card.objectives))
        return dataclasses.replace(anki_note, tags=tags)

    def _own_note(self, note: str, cards: tuple[str, ...]) -> AnkiNote:
        """Return the note of an own card, with the cards of the same Anki note."""
        own = self._studied.own[note]
        deck = self._deck_name(f"own::{own.deck}" if own.deck else "own")
        tags = tuple(own.tags.split())
        histories = tuple(self._card_history(card) for card in cards)
        if not can_return_to_anki_note(own.guid, own.ordinal):
            return AnkiNote(note, note, deck, (own.front, own.back), histories, tags)
        texts = {text.ordinal: text for text in (self._studied.own[card] for card in cards)}
        faces: list[str] = []
        for ordinal in range(max(texts) + 1):
            text = texts.get(ordinal)
            faces += (text.front, text.back) if text else ("", "")
        ordinals = tuple(sorted(texts))
        return AnkiNote(note, own.guid, deck, tuple(faces), histories, tags, ordinals)

    def _question_note(self, note: str, name: str) -> AnkiNote | None:
        seed = self._studied.added_info.get(note, AddedCardInfo()).seed or 0
        try:
            variant = draw_variant(self._library.questions[name], seed)
        except (ExpressionError, ArithmeticError):
            return None
        faces = question_card_faces(variant, _gap_text)
        front, back = portable_html(faces.front), portable_html(faces.back)
        return self._build_note((note,), "missed questions", (front, back))

    def _build_note(self, cards: tuple[str, ...], deck: str, faces: tuple[str, str]) -> AnkiNote:
        note, histories = cards[0], tuple(self._card_history(name) for name in cards)
        return AnkiNote(note, note_guid(note), self._deck_name(deck), faces, histories)

    def _card_history(self, card: str) -> CardHistory:
        history = replay_for_anki(
            card,
            self._studied.grades.get(card, ()),
            suspended=card in self._studied.suspended,
            added_info=self._studied.added_info.get(card),
        )
        due = self._studied.due.get(card)
        if history.standing is None or due is None:
            return history
        # A question that was missed again is due earlier than its reviews alone would say.
        state = dataclasses.replace(history.standing, due_day=due)
        return dataclasses.replace(history, standing=state)

    def _deck_name(self, name: str) -> str:
        return f"Headroom::{self._course.title}::{name}"

    def _card_faces(self, card: Flashcard) -> tuple[str, str]:
        """Return the text as `headroom export apkg` writes it, from the author's file."""
        path = card.place.path
        if path not in self._read:
            self._read[path] = dict(self._authored_faces(self._course.folder / path, path))
        faces = card.front.html, card.back.html
        return self._read[path].get(card.id) or (portable_html(faces[0]), portable_html(faces[1]))

    def _authored_faces(self, file: Path, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield the faces of the cards in a file, by card id."""
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return
        for item in read_authored_items(text, path).items:
            if item.kind == "card":
                yield item.name, self._item_faces(attach_pictures(file.parent, item))

    def _item_faces(self, card: Item) -> tuple[str, str]:
        """Return both sides as HTML; pictures are named as on own cards."""
        contents = {p.name: image_bytes(p) for p in card.pictures}
        names = {
            name: stored_name
            for name, content in contents.items()
            if (stored_name := name_picture_or_empty(content))
        }
        self._pictures |= {stored_name: contents[name] for name, stored_name in names.items()}
        card = rename_images(card, {name: name for name in names})
        front, back = to_html_with_pictures(card.stem), to_html_with_pictures(card.text)
        for name, stored_name in names.items():
            old, new = f'src="{html.escape(name)}"', f'src="{PICTURES}{stored_name}"'
            front, back = front.replace(old, new), back.replace(old, new)
        return front, back


def _gap_text(hint: str) -> str:
    """Return a gap to fill in, as text."""
    return f"[{hint or '…'}]"
