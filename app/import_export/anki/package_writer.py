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
    BOTH_WAYS,
    ONE_WAY,
    TABLES,
    CollectionStart,
    PackageWriter,
    build_collection_row,
    build_package_picture_name,
    note_type_id_for_card_count,
)
from app.import_export.items import (
    ExportResult,
    Item,
    ItemImage,
    ItemRemark,
    decode_image_or_empty,
    item_label,
)
from app.import_export.markdown_to_html import to_html_with_pictures
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


def _insert_row(db: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    marks = ",".join("?" * len(values))
    db.execute(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - a constant name


def _build_note_columns_after_guid(note: "AnkiNote", now_seconds: int) -> tuple[object, ...]:
    text = html.unescape(re.sub(r"<[^>]*>", "", note.faces[0]))
    checksum = int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    joined_tags = " ".join(re.sub(r"\s+", "-", t) for t in note.tags)
    tags_column = f" {joined_tags} " if joined_tags else ""
    fields = "\x1f".join(note.faces)
    return note.note_type_id, now_seconds, -1, tags_column, fields, text, checksum, 0, ""


def make_note_guid(card_id: str) -> str:
    """Return the stable GUID of a note, from the id of its card."""
    digest = hashlib.sha256(f"headroom card {card_id}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


def _make_stable_row_id(name: str, taken_ids: set[int]) -> int:
    """Return a row id that is the same in every package."""
    digest = hashlib.sha256(name.encode()).digest()
    number = _FIRST_ID + int.from_bytes(digest[:8]) % _ID_RANGE
    while number in taken_ids:
        number += 1
    taken_ids.add(number)
    return number


_EASE = 2500  # per mille; only the older scheduler needs it
_KINDS: Mapping[str, int] = {"learning": 1, "review": 2, "relearning": 3}
_LOG_KINDS: Mapping[str, int] = {"learning": 0, "review": 1, "relearning": 2}
_SUSPENDED, _BURIED = -1, -3
_BY_HAND = 4


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewWithDuration:
    """A review that was not undone, and the milliseconds it took, if measured."""

    review: ReviewEvent
    took_ms: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DatedEdit:
    """A manual edit that was not undone, with its moment and study day."""

    edit: ManualEdit
    edited_at: dt.datetime
    study_day: dt.date


class NewRevlogEntry(NamedTuple):
    """A revlog row without an id yet.

    Intervals are days, or negative seconds in (re)learning steps. `factor` is the difficulty
    1..10 as 100..1100, because 0 would mean that the card was reset.
    """

    at_ms: int
    ease: int
    interval: int
    last_interval: int
    factor: int
    took_ms: int
    kind: int


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

    card: str
    state: CardState | None
    retention: float
    log: tuple[NewRevlogEntry, ...]
    suspended: bool = False
    added_info: AddedCardInfo | None = None
    bury_edit: DatedEdit | None = None

    def is_buried(self, day: dt.date) -> bool:
        """Return whether it is buried for the rest of this study day."""
        edit = self.bury_edit and self.bury_edit.edit
        return bool(edit and edit.until_day and edit.until_day > day)


def build_card_history(
    card: str,
    log_entries: Iterable[ReviewWithDuration | DatedEdit],
    *,
    suspended: bool,
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
        state = apply_review(previous_state, entry.review, card)
        log.append(_build_review_revlog_entry(previous_state, state, entry))
        replayed, retention = ReplayedCard(state), entry.review.retention
    buried = entry if isinstance(entry, DatedEdit) and entry.edit.kind == "bury" else None
    return CardHistory(
        card, replayed.card_state, retention, tuple(log), suspended, added_info, buried
    )


def _build_manual_revlog_entry(
    before: CardState, now: CardState | None, dated: DatedEdit
) -> NewRevlogEntry:
    return NewRevlogEntry(
        at_ms=round(dated.edited_at.timestamp() * 1000),
        ease=0,
        interval=max(1, (now.due_day - dated.study_day).days) if now else 0,
        last_interval=_interval_for_anki(before),
        factor=_difficulty_as_ease_factor(now) if now else 0,
        took_ms=0,
        kind=_BY_HAND,
    )


def _difficulty_as_ease_factor(state: CardState) -> int:
    return round(((state.difficulty - 1) / 9 + 0.1) * 1000)


def _build_review_revlog_entry(
    before: CardState | None, now: CardState, timed: ReviewWithDuration
) -> NewRevlogEntry:
    return NewRevlogEntry(
        at_ms=round(timed.review.rated_at.timestamp() * 1000),
        ease=timed.review.rating,
        interval=_interval_for_anki(now),
        last_interval=_interval_for_anki(before) if before else 0,
        factor=_difficulty_as_ease_factor(now),
        took_ms=timed.took_ms or 0,
        kind=_LOG_KINDS[before.state] if before else 0,
    )


def _interval_for_anki(state: CardState) -> int:
    """Return days until the card is due; negative seconds in (re)learning steps."""
    if state.state == "review":
        return max(1, (state.due_day - state.last_day).days)
    return -max(1, round((state.due_at - state.last_at).total_seconds()))


def _build_card_columns_from_type(
    card: CardHistory, dates: "CollectionDates", new_card_position: int
) -> tuple[object, ...]:
    """Return the columns of a card from `type` on: its state."""
    state, buried = card.state, card.is_buried(dates.today)
    off_queue = _SUSPENDED if card.suspended else _BURIED if buried else None
    if state is None:
        return 0, off_queue or 0, new_card_position, 0, 0, 0, 0, 0, 0, 0, 0, _card_data_json(card)
    # A card in steps has a due moment. With a manually set day it is a review on that day.
    set_day = state.due_day > state.last_day and not buried
    stepping = state.state != "review" and not set_day
    queue = 1 if stepping else 2
    due = (state.due_day - dates.first_day).days
    steps = RELEARNING_STEPS if state.state == "relearning" else LEARNING_STEPS
    steps_left = max(1, len(steps) - (state.step or 0)) if stepping else 0
    return (
        _KINDS[state.state if stepping else "review"],
        off_queue or queue,
        round(state.due_at.timestamp()) if stepping else due,
        0 if stepping and state.state == "learning" else max(1, _interval_for_anki(state)),
        _EASE,
        state.reviews,
        state.lapses,
        steps_left * 1001,  # steps left today, and steps left in all
        0,
        0,
        0,
        _card_data_json(card),
    )


def _card_data_json(card: CardHistory) -> str:
    """Return the FSRS state and our own data of the card as JSON."""
    card_json: dict[str, Any] = {}
    if card.state is not None:
        card_json = {
            "s": round(card.state.stability, 4),
            "d": round(card.state.difficulty, 3),
            "dr": card.retention,
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
    `ordinals`, one for each card, and two faces for each ordinal up to the last.
    """

    name: str
    guid: str
    deck: str
    faces: tuple[str, ...]
    cards: tuple[CardHistory, ...]
    tags: tuple[str, ...] = ()
    ordinals: tuple[int, ...] = ()

    @property
    def note_type_id(self) -> int:
        if self.ordinals:
            return note_type_id_for_card_count(len(self.faces) // 2)
        return BOTH_WAYS if len(self.cards) > 1 else ONE_WAY


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionDates:
    """The present as a moment and as a study day, and the day from which the collection counts."""

    now_seconds: int
    today: dt.date
    first_day: dt.date
    collection_start: CollectionStart | None

    def card_modified_at(self, card: CardHistory) -> int:
        """Return when a card was last changed; Anki derives the day of a bury from it."""
        if card.bury_edit is None or not card.is_buried(self.today):
            return self.now_seconds
        return int(card.bury_edit.edited_at.timestamp())


_COLLECTION = "collection.anki2"
_LOGGED = """
CREATE TEMP TABLE logged (at, card, place, cid, ease, ivl, last, factor, time, kind);
"""


def write_notes_to_package(
    notes: Iterable[AnkiNote], dates: CollectionDates, package: PackageWriter
) -> None:
    """Write these notes with their cards and logs to a package, and finish it.

    Each is written before the next is taken from `notes`, so a generator saves memory.
    """
    decks: dict[str, int] = {}
    card_counts: set[int] = set()
    taken_ids: set[int] = set()
    with (
        tempfile.TemporaryDirectory(prefix="headroom-") as folder,
        contextlib.closing(sqlite3.connect(Path(folder) / _COLLECTION)) as db,
    ):
        db.executescript(f"{TABLES}{_LOGGED}")
        for position, note in enumerate(notes):
            decks.setdefault(note.deck, _make_stable_row_id(f"deck {note.deck}", set()))
            if note.ordinals:
                card_counts.add(len(note.faces) // 2)
            note_id = _make_stable_row_id(note.name, taken_ids)
            columns = _build_note_columns_after_guid(note, dates.now_seconds)
            _insert_row(db, "notes", (note_id, note.guid, *columns))
            ordinals = note.ordinals or range(len(note.cards))
            for ordinal, card in zip(ordinals, note.cards, strict=True):
                card_id = _make_stable_row_id(f"{note.name}~{ordinal}", taken_ids)
                ids = (card_id, note_id, decks[note.deck], ordinal)
                state = _build_card_columns_from_type(card, dates, position)
                _insert_row(db, "cards", (*ids, dates.card_modified_at(card), -1, *state))
                _stage_log_rows(db, card_id, card)
        _write_revlog_with_unique_ids(db)
        row = build_collection_row(decks, dates.now_seconds, dates.collection_start, card_counts)
        _insert_row(db, "col", row)
        db.commit()
        package.finish(Path(folder) / _COLLECTION)


def _stage_log_rows(db: sqlite3.Connection, card_row_id: int, card: CardHistory) -> None:
    rows = (
        (entry.at_ms, card.card, position, card_row_id, *entry[1:])
        for position, entry in enumerate(card.log)
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


def write_apkg(items: tuple[Item, ...], title: str, moment: int) -> ExportResult:
    """Return a package of the cards among `items`; `moment` in seconds since 1970.

    The GUID of a note depends only on the id of its card, and `moment` is its modification time. A
    later package updates the notes of an earlier one and keeps their scheduling.
    """
    cards = tuple(i for i in items if i.kind == "card")
    refused = tuple(
        ItemRemark(item_label(i), i.line, "an Anki package takes cards only")
        for i in items
        if i.kind != "card"
    )
    out = io.BytesIO()
    package = PackageWriter(out, newer_format=False)
    pictures = {
        _package_picture_name(picture): decode_image_or_empty(picture)
        for card in cards
        for picture in card.pictures
    }
    for name, content in pictures.items():
        package.add_media(name, content)
    dates = CollectionDates(moment, dt.date.min, dt.date.min, None)
    write_notes_to_package((_build_new_note(card, title) for card in cards), dates, package)
    return ExportResult(out.getvalue(), len(cards), refused)


def _build_new_note(card: Item, title: str) -> AnkiNote:
    """Return the note of a card of the course, not studied yet."""
    urls = {picture.name: _package_picture_name(picture) for picture in card.pictures}
    return AnkiNote(
        card.name,
        make_note_guid(card.name),
        "::".join(part for part in ("Headroom", title, card.topic) if part),
        (to_html_with_pictures(card.stem, urls), to_html_with_pictures(card.text, urls)),
        (CardHistory(card.name, None, DEFAULT_RETENTION, ()),) * (1 + card.reverse),
        (*card.tags, *(f"objective::{o}" for o in card.objectives)),
    )


def _package_picture_name(picture: ItemImage) -> str:
    """Return a file name that no other package uses for another picture."""
    ending = picture.name.rpartition(".")[2].lower()
    digest = hashlib.sha256(decode_image_or_empty(picture)).hexdigest()[:32]
    return build_package_picture_name(f"{digest}.{ending}")
