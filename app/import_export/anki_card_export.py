"""A learner's cards as Anki notes."""

import dataclasses
import datetime as dt
import html
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from app.content.course import Course
from app.import_export.anki.card_templates import CardSides
from app.import_export.anki.package_format import (
    CollectionStart,
    PackageArchiveWriter,
    build_package_picture_name,
    build_stored_picture_name_or_empty,
    find_stored_picture_names,
    replace_picture_urls_with_package_names,
)
from app.import_export.anki.package_writer import (
    AddedCardInfo,
    AnkiNote,
    CardHistory,
    CollectionDates,
    build_card_history,
    make_note_guid,
    write_notes_and_finish_package,
)
from app.import_export.course_files import load_shown_pictures_into_item
from app.import_export.course_markdown import read_items_of_course_file
from app.import_export.export_store import AnkiOrigin, CardStudyData, LearnerCards
from app.import_export.html_sanitizer import make_html_portable_without_pictures
from app.import_export.items import Item, decode_image_or_empty, rename_or_drop_images
from app.import_export.markdown_to_html import convert_markdown_to_html_with_pictures
from app.markup.expressions import ExpressionError
from app.markup.model import Flashcard
from app.questions.grading import render_question_card_faces
from app.questions.model import draw_variant
from app.spaced_repetition.added_card_ids_and_faces import (
    OWN,
    PICTURES,
    QUESTION,
    TERM,
    is_source_in_course,
    is_usable_as_card,
    parse_card_id,
)

_ROLLOVER_TIME = dt.time(4)
_MOST_SIDES = 30  # of a note that returns to Anki as it came
_NOTES_AT_ONCE = 50


@dataclasses.dataclass(frozen=True, slots=True)
class ExportedCourse:
    course: Course
    folder: Path

    @property
    def title(self) -> str:
        """The name of its exam, or of its folder."""
        return self.course.syllabus.exam or self.folder.resolve().name


def write_learner_cards_to_anki_package(
    exported: ExportedCourse,
    learner_cards: LearnerCards,
    package: PackageArchiveWriter,
    learner_local_now: dt.datetime,
) -> None:
    """Write all cards of a learner that still have text, a few notes at a time.

    `learner_local_now` is the present in the learner's time zone.
    """
    first_study_day = learner_cards.find_first_review_day() or learner_local_now.date()
    today = learner_local_now.date() - dt.timedelta(days=learner_local_now.time() < _ROLLOVER_TIME)
    start = dt.datetime.combine(first_study_day, _ROLLOVER_TIME, learner_local_now.tzinfo)
    minutes_west = -round((start.utcoffset() or dt.timedelta()).total_seconds() / 60)
    collection_start = CollectionStart(int(start.timestamp()), minutes_west)
    dates = CollectionDates(
        int(learner_local_now.timestamp()), today, first_study_day, collection_start
    )
    pictures = _PicturePacker(learner_cards.read_picture, package)
    notes = _NoteBuilder(exported, pictures.of_course)
    write_notes_and_finish_package(
        map(pictures.add_pictures_and_rewrite_urls, notes.build_notes(learner_cards)),
        dates,
        package,
    )


def can_card_still_be_shown(course: Course, own_card_ids: Collection[str], card_id: str) -> bool:
    """Return whether a card can still be shown; `own_card_ids` are the learner's own cards."""
    kind, name = parse_card_id(card_id)
    if kind == OWN:
        return card_id in own_card_ids
    question = course.questions.get(name) if kind == QUESTION else None
    return is_source_in_course(course, card_id) and (
        question is None or is_usable_as_card(question)
    )


def group_cards_by_note(
    course: Course, card_ids: Collection[str], origin_by_card: Mapping[str, AnkiOrigin]
) -> dict[str, tuple[str, ...]]:
    """Group cards into notes, by note name.

    A reverse shares the note of its card. Own cards from one Anki note return as cards of one note,
    because Anki would otherwise contain each card twice.
    """
    cards_by_guid: dict[str, dict[int, str]] = {}
    for card in card_ids:
        origin = origin_by_card.get(card, AnkiOrigin())
        if _can_return_to_anki_note(origin.guid, origin.ordinal):
            cards_by_guid.setdefault(origin.guid, {})[origin.ordinal] = card
    notes: dict[str, tuple[str, ...]] = {}
    for card in card_ids:
        group = cards_by_guid.get(origin_by_card.get(card, AnkiOrigin()).guid)
        if group:
            names = tuple(name for _, name in sorted(group.items()))
            notes[min(names)] = names
        else:
            course_card = course.cards.get(card)
            names = (card, course_card.sibling) if course_card and course_card.sibling else (card,)
            notes[min(names)] = tuple(sorted(names))
    return notes


def _can_return_to_anki_note(guid: str, ordinal: int) -> bool:
    return bool(guid) and 0 <= ordinal < _MOST_SIDES


class _PicturePacker:
    """Adds the pictures of notes to the package, each once."""

    def __init__(
        self, read_picture: Callable[[str], bytes | None], package: PackageArchiveWriter
    ) -> None:
        self._read_picture = read_picture
        self._package = package
        self._packed: set[str] = set()
        self.of_course: dict[str, bytes] = {}

    def add_pictures_and_rewrite_urls(self, note: AnkiNote) -> AnkiNote:
        """Return the note with pictures as package files, and add these files."""
        for name in (name for face in note.faces_html for name in find_stored_picture_names(face)):
            if name not in self._packed:
                self._packed.add(name)
                content = self.of_course.get(name) or self._read_picture(name)
                if content:
                    self._package.add_media(build_package_picture_name(name), content)
        return dataclasses.replace(
            note, faces_html=tuple(map(replace_picture_urls_with_package_names, note.faces_html))
        )


class _NoteBuilder:
    """Builds notes; each authored file is read once.

    `pictures` collects those of the course, by stored name.
    """

    def __init__(self, exported: ExportedCourse, picture_by_stored_name: dict[str, bytes]) -> None:
        self._exported = exported
        self._course = exported.course
        self._pictures = picture_by_stored_name
        self._studied = CardStudyData({}, frozenset(), {}, {}, {})
        self._sides_by_file: dict[str, dict[str, CardSides]] = {}

    def build_notes(self, cards: LearnerCards) -> Iterator[AnkiNote]:
        origins = cards.map_own_cards_to_anki_origins()
        available_cards = [
            c for c in cards.list_card_ids() if can_card_still_be_shown(self._course, origins, c)
        ]
        notes = list(group_cards_by_note(self._course, available_cards, origins).items())
        for begin in range(0, len(notes), _NOTES_AT_ONCE):
            batch = notes[begin : begin + _NOTES_AT_ONCE]
            self._studied = cards.read_study_data([name for _, names in batch for name in names])
            for note, names in batch:
                anki_note = self._build_note_or_none(note, names)
                if anki_note is not None:
                    yield anki_note

    def _build_note_or_none(self, note_name: str, card_ids: tuple[str, ...]) -> AnkiNote | None:
        """Return the note with its cards; None if its text no longer exists."""
        kind, name = parse_card_id(note_name)
        if kind == OWN:
            return self._build_own_note(note_name, card_ids)
        if kind == QUESTION:
            return self._build_missed_question_note(note_name, name)
        if kind == TERM:
            term = self._course.glossary[name]
            sides = CardSides(
                html.escape(term.name), make_html_portable_without_pictures(term.meaning.html)
            )
            return self._build_note((note_name,), "terms", sides)
        card = self._course.cards[note_name]
        own_text = self._studied.own_text_by_card.get(note_name)
        if own_text is None:
            sides = self._render_course_card(card)
        else:
            sides = CardSides(own_text.front, own_text.back)
        anki_note = self._build_note(card_ids, card.topic, sides)
        tags = (*card.tags, *(f"objective::{o}" for o in card.objectives))
        return dataclasses.replace(anki_note, tags=tags)

    def _build_own_note(self, note_name: str, card_ids: tuple[str, ...]) -> AnkiNote:
        """Return the note of an own card, with the cards of the same Anki note."""
        own = self._studied.own_text_by_card[note_name]
        deck = self._make_deck_name(f"own::{own.deck}" if own.deck else "own")
        tags = tuple(own.tags.split())
        histories = tuple(self._build_card_history(card) for card in card_ids)
        if not _can_return_to_anki_note(own.guid, own.ordinal):
            return AnkiNote(note_name, note_name, deck, (own.front, own.back), histories, tags)
        texts = {
            text.ordinal: text
            for text in (self._studied.own_text_by_card[card] for card in card_ids)
        }
        faces: list[str] = []
        for ordinal in range(max(texts) + 1):
            text = texts.get(ordinal)
            faces += (text.front, text.back) if text else ("", "")
        ordinals = tuple(sorted(texts))
        return AnkiNote(note_name, own.guid, deck, tuple(faces), histories, tags, ordinals)

    def _build_missed_question_note(self, card_id: str, question_id: str) -> AnkiNote | None:
        seed = self._studied.added_info_by_card.get(card_id, AddedCardInfo()).seed or 0
        try:
            variant = draw_variant(self._course.questions[question_id], seed)
        except (ExpressionError, ArithmeticError):
            return None
        faces = render_question_card_faces(variant, lambda hint: f"[{hint or '…'}]")
        sides = CardSides(
            make_html_portable_without_pictures(faces.front),
            make_html_portable_without_pictures(faces.back),
        )
        return self._build_note((card_id,), "missed questions", sides)

    def _build_note(
        self, card_ids: tuple[str, ...], subdeck_name: str, sides: CardSides
    ) -> AnkiNote:
        note, histories = card_ids[0], tuple(self._build_card_history(name) for name in card_ids)
        return AnkiNote(
            note, make_note_guid(note), self._make_deck_name(subdeck_name), sides, histories
        )

    def _build_card_history(self, card_id: str) -> CardHistory:
        history = build_card_history(
            card_id,
            self._studied.log_by_card.get(card_id, ()),
            is_suspended=card_id in self._studied.suspended_card_ids,
            added_info=self._studied.added_info_by_card.get(card_id),
        )
        due_day = self._studied.due_day_by_added_card.get(card_id)
        if history.state is None or due_day is None:
            return history
        # A question that was missed again is due earlier than its reviews alone would say.
        state = dataclasses.replace(history.state, due_day=due_day)
        return dataclasses.replace(history, state=state)

    def _make_deck_name(self, subdeck_name: str) -> str:
        return f"Headroom::{self._exported.title}::{subdeck_name}"

    def _render_course_card(self, card: Flashcard) -> CardSides:
        """Return the text as `headroom export apkg` writes it, from the author's file."""
        path = card.place.path
        if path not in self._sides_by_file:
            self._sides_by_file[path] = self._render_cards_of_file(path)
        return self._sides_by_file[path].get(card.id) or CardSides(
            make_html_portable_without_pictures(card.front.html),
            make_html_portable_without_pictures(card.back.html),
        )

    def _render_cards_of_file(self, path: str) -> dict[str, CardSides]:
        """Return the sides of the cards in a file by card id; empty if it cannot be read."""
        file = self._exported.folder / path
        try:
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return {}
        return {
            item.name: self._render_item(load_shown_pictures_into_item(file.parent, item))
            for item in read_items_of_course_file(text, path).items
            if item.kind == "card"
        }

    def _render_item(self, card: Item) -> CardSides:
        """Return both sides as HTML; pictures are named as on own cards."""
        contents = {p.name: decode_image_or_empty(p) for p in card.pictures}
        names = {
            name: stored_name
            for name, content in contents.items()
            if (stored_name := build_stored_picture_name_or_empty(content))
        }
        self._pictures |= {stored_name: contents[name] for name, stored_name in names.items()}
        card = rename_or_drop_images(card, {name: name for name in names})
        urls = {name: f"{PICTURES}{stored_name}" for name, stored_name in names.items()}
        return CardSides(
            convert_markdown_to_html_with_pictures(card.stem, urls),
            convert_markdown_to_html_with_pictures(card.text, urls),
        )
