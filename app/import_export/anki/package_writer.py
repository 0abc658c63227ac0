"""Write Anki notes, cards and revlog."""

import base64
import contextlib
import dataclasses
import datetime as dt
import hashlib
import html
import io
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from app.import_export.anki.package_format import (
    BOTH_WAYS_NOTE_TYPE_ID,
    COLLECTION_SCHEMA,
    ONE_WAY_NOTE_TYPE_ID,
    CollectionStart,
    PackageArchiveWriter,
    build_collection_row,
    build_package_picture_name,
    find_note_type_id_for_card_count,
)
from app.import_export.items import (
    ExportResult,
    Item,
    ItemImage,
    ItemRemark,
    decode_image_or_empty,
    make_item_label,
)
from app.import_export.markdown_to_html import convert_markdown_to_html_with_pictures
from app.learner_defaults import DEFAULT_RETENTION
from app.spaced_repetition.scheduler import (
    LEARNING_STEPS,
    RELEARNING_STEPS,
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    apply_manual_edit,
    apply_review,
)

_FIRST_ID = 1_500_000_000_000  # ids look like milliseconds, as Anki expects
_ID_RANGE = 200_000_000_000


def _insert_row(db: sqlite3.Connection, table: str, column_values: Sequence[object]) -> None:
    marks = ",".join("?" * len(column_values))
    db.execute(f"INSERT INTO {table} VALUES ({marks})", column_values)  # noqa: S608 - a constant name


def _build_note_columns_after_guid(note: "AnkiNote", now_seconds: int) -> tuple[object, ...]:
    text = html.unescape(re.sub(r"<[^>]*>", "", note.faces_html[0]))
    checksum = int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    joined_tags = " ".join(re.sub(r"\s+", "-", t) for t in note.tags)
    tags_column = f" {joined_tags} " if joined_tags else ""
    fields = "\x1f".join(note.faces_html)
    return note.note_type_id, now_seconds, -1, tags_column, fields, text, checksum, 0, ""


def make_note_guid(card_id: str) -> str:
    """Return the stable GUID of a note, from the id of its card."""
    digest = hashlib.sha256(f"headroom card {card_id}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


def _take_stable_row_id(name: str, taken_ids: set[int]) -> int:
    """Return a row id that is the same in every package."""
    digest = hashlib.sha256(name.encode()).digest()
    number = _FIRST_ID + int.from_bytes(digest[:8]) % _ID_RANGE
    while number in taken_ids:
        number += 1
    taken_ids.add(number)
    return number


_EASE_PER_MILLE = 2500  # per mille; only the older scheduler needs it
_CARD_TYPE_BY_STATE: Mapping[str, int] = {"learning": 1, "review": 2, "relearning": 3}
_REVLOG_KIND_BY_STATE: Mapping[str, int] = {"learning": 0, "review": 1, "relearning": 2}
_SUSPENDED_QUEUE, _BURIED_QUEUE = -1, -3
_BY_HAND = 4


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewWithDuration:
    """A review that was not undone, and the milliseconds it took, if measured."""

    review: ReviewEvent
    duration_ms: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DatedEdit:
    """A manual edit that was not undone, with its moment and study day."""

    edit: ManualEdit
    edited_at: dt.datetime
    study_day: dt.date


class NewRevlogEntry(NamedTuple):
    """A revlog row without an id yet.

    Intervals are days, or negative seconds in (re)learning steps. `difficulty_factor` is the difficulty
    1..10 as 100..1100, because 0 would mean that the card was reset.
    """

    at_ms: int
    rating_or_zero: int
    interval_days_or_minus_seconds: int
    last_interval_days_or_minus_seconds: int
    difficulty_factor: int
    duration_ms: int
    revlog_kind: int


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardInfo:
    """Our own data of an added card; `seed` chose the numbers of a question."""

    seed: int | None = None
    due_since_ms: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CardHistory:
    """A card with its state (None before the first review) and its log.

    `bury_edit` is the edit that buried it, if nothing came after it.
    """

    card_id: str
    state: CardState | None
    desired_retention: float
    revlog: tuple[NewRevlogEntry, ...]
    is_suspended: bool = False
    added_info: AddedCardInfo | None = None
    bury_edit: DatedEdit | None = None

    def is_buried(self, day: dt.date) -> bool:
        """Return whether it is buried for the rest of this study day."""
        edit = self.bury_edit and self.bury_edit.edit
        return bool(edit and edit.until_day and edit.until_day > day)


def build_card_history(
    card_id: str,
    log_entries: Iterable[ReviewWithDuration | DatedEdit],
    *,
    is_suspended: bool,
    added_info: AddedCardInfo | None,
) -> CardHistory:
    """Replay the log of a card, in order, into what Anki stores about it."""
    replayed = ReplayedCard()
    log: list[NewRevlogEntry] = []
    retention = DEFAULT_RETENTION
    entry = None
    for entry in log_entries:
        previous_state = replayed.card_state
        if isinstance(entry, DatedEdit):
            replayed = apply_manual_edit(replayed, entry.edit)
            # Anki has no log row for burying a card, nor for a card that was not started.
            if previous_state is not None and entry.edit.kind != "bury":
                log.append(_build_manual_revlog_entry(previous_state, replayed.card_state, entry))
            continue
        state = apply_review(previous_state, entry.review, card_id)
        log.append(_build_review_revlog_entry(previous_state, state, entry))
        replayed, retention = ReplayedCard(state), entry.review.desired_retention
    buried = entry if isinstance(entry, DatedEdit) and entry.edit.kind == "bury" else None
    return CardHistory(
        card_id, replayed.card_state, retention, tuple(log), is_suspended, added_info, buried
    )


def _build_manual_revlog_entry(
    state_before: CardState, state_after: CardState | None, dated_edit: DatedEdit
) -> NewRevlogEntry:
    return NewRevlogEntry(
        at_ms=round(dated_edit.edited_at.timestamp() * 1000),
        rating_or_zero=0,
        interval_days_or_minus_seconds=max(1, (state_after.due_day - dated_edit.study_day).days)
        if state_after
        else 0,
        last_interval_days_or_minus_seconds=_compute_anki_interval(state_before),
        difficulty_factor=_convert_difficulty_to_ease_factor(state_after) if state_after else 0,
        duration_ms=0,
        revlog_kind=_BY_HAND,
    )


def _convert_difficulty_to_ease_factor(card_state: CardState) -> int:
    return round(((card_state.difficulty - 1) / 9 + 0.1) * 1000)


def _build_review_revlog_entry(
    state_before: CardState | None, state_after: CardState, timed_review: ReviewWithDuration
) -> NewRevlogEntry:
    return NewRevlogEntry(
        at_ms=round(timed_review.review.rated_at.timestamp() * 1000),
        rating_or_zero=timed_review.review.rating,
        interval_days_or_minus_seconds=_compute_anki_interval(state_after),
        last_interval_days_or_minus_seconds=_compute_anki_interval(state_before)
        if state_before
        else 0,
        difficulty_factor=_convert_difficulty_to_ease_factor(state_after),
        duration_ms=timed_review.duration_ms or 0,
        revlog_kind=_REVLOG_KIND_BY_STATE[state_before.state] if state_before else 0,
    )


def _compute_anki_interval(card_state: CardState) -> int:
    """Return days until the card is due; negative seconds in (re)learning steps."""
    if card_state.state == "review":
        return max(1, (card_state.due_day - card_state.last_day).days)
    return -max(1, round((card_state.due_at - card_state.last_at).total_seconds()))


def _build_card_state_columns(
    card: CardHistory, dates: "CollectionDates", new_card_position: int
) -> tuple[object, ...]:
    """Return the columns of a card from `type` on: its state."""
    state, buried = card.state, card.is_buried(dates.today)
    off_queue = _SUSPENDED_QUEUE if card.is_suspended else _BURIED_QUEUE if buried else None
    if state is None:
        return (
            0,
            off_queue or 0,
            new_card_position,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            _build_card_data_json(card),
        )
    # A card in steps has a due moment. With a manually set day it is a review on that day.
    set_day = state.due_day > state.last_day and not buried
    stepping = state.state != "review" and not set_day
    queue = 1 if stepping else 2
    due = (state.due_day - dates.collection_start_day).days
    steps = RELEARNING_STEPS if state.state == "relearning" else LEARNING_STEPS
    steps_left = max(1, len(steps) - (state.step or 0)) if stepping else 0
    return (
        _CARD_TYPE_BY_STATE[state.state if stepping else "review"],
        off_queue or queue,
        round(state.due_at.timestamp()) if stepping else due,
        0 if stepping and state.state == "learning" else max(1, _compute_anki_interval(state)),
        _EASE_PER_MILLE,
        state.reviews,
        state.lapses,
        steps_left * 1001,  # steps left today, and steps left in all
        0,
        0,
        0,
        _build_card_data_json(card),
    )


def _build_card_data_json(card: CardHistory) -> str:
    """Return the FSRS state and our own data of the card as JSON."""
    card_json: dict[str, Any] = {}
    if card.state is not None:
        card_json = {
            "s": round(card.state.stability, 4),
            "d": round(card.state.difficulty, 3),
            "dr": card.desired_retention,
            "lrt": int(card.state.last_at.timestamp()),
        }
    if card.added_info is not None:
        own_json = {"seed": card.added_info.seed, "since": card.added_info.due_since_ms}
        stored = {name: value for name, value in own_json.items() if value is not None}
        card_json["cd"] = json.dumps(stored, separators=(",", ":"))
    return json.dumps(card_json, separators=(",", ":")) if card_json else ""


@dataclasses.dataclass(frozen=True, slots=True)
class AnkiNote:
    """A note to write: its stable name, faces in HTML, and its cards.

    Two faces make one card, or two that are reverses of each other. A note imported from Anki has
    `card_ordinals`, one for each card, and two faces for each ordinal up to the last.
    """

    name: str
    guid: str
    deck_name: str
    faces_html: tuple[str, ...]
    card_histories: tuple[CardHistory, ...]
    tags: tuple[str, ...] = ()
    card_ordinals: tuple[int, ...] = ()

    @property
    def note_type_id(self) -> int:
        if self.card_ordinals:
            return find_note_type_id_for_card_count(len(self.faces_html) // 2)
        return BOTH_WAYS_NOTE_TYPE_ID if len(self.card_histories) > 1 else ONE_WAY_NOTE_TYPE_ID


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionDates:
    """The present as a moment and as a study day, and the day from which the collection counts."""

    now_seconds: int
    today: dt.date
    collection_start_day: dt.date
    collection_start: CollectionStart | None

    def card_modified_at_seconds(self, card: CardHistory) -> int:
        """Return when a card was last changed: when it was buried if that was today, else now.

        Anki derives the day of a bury from it.
        """
        if card.bury_edit is None or not card.is_buried(self.today):
            return self.now_seconds
        return int(card.bury_edit.edited_at.timestamp())


_COLLECTION_FILE_NAME = "collection.anki2"
_CREATE_LOGGED_TABLE = """
CREATE TEMP TABLE logged (at, card, place, cid, ease, ivl, last, factor, time, kind);
"""


def write_notes_and_finish_package(
    notes: Iterable[AnkiNote], dates: CollectionDates, package: PackageArchiveWriter
) -> None:
    """Write these notes with their cards and logs to a package, and finish it.

    Each is written before the next is taken from `notes`, so a generator saves memory.
    """
    decks: dict[str, int] = {}
    card_counts: set[int] = set()
    taken_ids: set[int] = set()
    with (
        tempfile.TemporaryDirectory(prefix="headroom-") as folder,
        contextlib.closing(sqlite3.connect(Path(folder) / _COLLECTION_FILE_NAME)) as db,
    ):
        db.executescript(f"{COLLECTION_SCHEMA}{_CREATE_LOGGED_TABLE}")
        for position, note in enumerate(notes):
            decks.setdefault(note.deck_name, _take_stable_row_id(f"deck {note.deck_name}", set()))
            if note.card_ordinals:
                card_counts.add(len(note.faces_html) // 2)
            note_id = _take_stable_row_id(note.name, taken_ids)
            columns = _build_note_columns_after_guid(note, dates.now_seconds)
            _insert_row(db, "notes", (note_id, note.guid, *columns))
            ordinals = note.card_ordinals or range(len(note.card_histories))
            for ordinal, card in zip(ordinals, note.card_histories, strict=True):
                card_id = _take_stable_row_id(f"{note.name}~{ordinal}", taken_ids)
                ids = (card_id, note_id, decks[note.deck_name], ordinal)
                state = _build_card_state_columns(card, dates, position)
                _insert_row(db, "cards", (*ids, dates.card_modified_at_seconds(card), -1, *state))
                _stage_revlog_rows(db, card_id, card)
        _write_revlog_with_unique_ids(db)
        row = build_collection_row(decks, dates.now_seconds, dates.collection_start, card_counts)
        _insert_row(db, "col", row)
        db.commit()
        package.write_collection_and_finish(Path(folder) / _COLLECTION_FILE_NAME)


def _stage_revlog_rows(db: sqlite3.Connection, card_row_id: int, card: CardHistory) -> None:
    rows = (
        (entry.at_ms, card.card_id, position, card_row_id, *entry[1:])
        for position, entry in enumerate(card.revlog)
    )
    db.executemany("INSERT INTO logged VALUES (?,?,?,?,?,?,?,?,?,?)", rows)


def _write_revlog_with_unique_ids(db: sqlite3.Connection) -> None:
    """Give every log row a unique id: its moment, or a little later.

    Anki reads the id of a row as the moment of the review.
    """
    last_id = 0
    for at, *others in db.execute(
        "SELECT at, cid, -1, ease, ivl, last, factor, time, kind FROM logged"
        " ORDER BY at, card, place"
    ):
        last_id = max(at, last_id + 1)
        _insert_row(db, "revlog", (last_id, *others))


def write_cards_as_apkg(
    course_items: tuple[Item, ...], deck_title: str, modified_at_seconds: int
) -> ExportResult:
    """Return a package of the cards among `course_items`; `modified_at_seconds` in seconds since 1970.

    The GUID of a note depends only on the id of its card, and `modified_at_seconds` is its modification time. A
    later package updates the notes of an earlier one and keeps their scheduling.
    """
    cards = tuple(i for i in course_items if i.kind == "card")
    refused = tuple(
        ItemRemark(make_item_label(i), i.line, "an Anki package takes cards only")
        for i in course_items
        if i.kind != "card"
    )
    out = io.BytesIO()
    package = PackageArchiveWriter(out, newer_format=False)
    pictures = {
        _make_package_picture_name_from_hash(picture): decode_image_or_empty(picture)
        for card in cards
        for picture in card.pictures
    }
    for name, content in pictures.items():
        package.add_media(name, content)
    dates = CollectionDates(modified_at_seconds, dt.date.min, dt.date.min, None)
    write_notes_and_finish_package(
        (_build_unstudied_note(card, deck_title) for card in cards), dates, package
    )
    return ExportResult(out.getvalue(), len(cards), refused)


def _build_unstudied_note(card_item: Item, deck_title: str) -> AnkiNote:
    """Return the note of a card of the course, not studied yet."""
    urls = {
        picture.name: _make_package_picture_name_from_hash(picture)
        for picture in card_item.pictures
    }
    return AnkiNote(
        card_item.name,
        make_note_guid(card_item.name),
        "::".join(part for part in ("Headroom", deck_title, card_item.topic) if part),
        (
            convert_markdown_to_html_with_pictures(card_item.stem, urls),
            convert_markdown_to_html_with_pictures(card_item.text, urls),
        ),
        (CardHistory(card_item.name, None, DEFAULT_RETENTION, ()),) * (1 + card_item.reverse),
        (*card_item.tags, *(f"objective::{o}" for o in card_item.objectives)),
    )


def _make_package_picture_name_from_hash(picture: ItemImage) -> str:
    """Return a file name that no other package uses for another picture."""
    ending = picture.name.rpartition(".")[2].lower()
    digest = hashlib.sha256(decode_image_or_empty(picture)).hexdigest()[:32]
    return build_package_picture_name(f"{digest}.{ending}")
