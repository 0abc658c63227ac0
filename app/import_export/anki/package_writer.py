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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.import_export.anki.package_format import (
    BOTH_WAYS,
    ONE_WAY,
    TABLES,
    CollectionStart,
    PackageWriter,
    collection_row,
    note_type_id_for_card_count,
)
from app.import_export.items import (
    ExportResult,
    Item,
    ItemImage,
    ItemRemark,
    image_bytes,
    item_label,
)
from app.import_export.markdown_to_html import to_html_with_pictures
from app.learner_defaults import DEFAULT_RETENTION
from app.spaced_repetition.scheduler import (
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    SchedulerConfig,
    apply_manual_edit,
    apply_review,
)

_FIRST_NUMBER = 1_500_000_000_000  # ids look like milliseconds, as Anki expects
_NUMBERS = 200_000_000_000


@contextlib.contextmanager
def new_collection() -> Iterator[tuple[sqlite3.Connection, Path]]:
    """Create the tables of a collection in a temporary file; yields it with its path."""
    with tempfile.TemporaryDirectory(prefix="headroom-") as folder:
        path = Path(folder) / "collection.anki2"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(TABLES)
            yield connection, path


def add_row(connection: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    """Insert a row with all of its columns."""
    marks = ",".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - the table name is a constant
        values,
    )


def note_columns_after_guid(
    note_type_id: int, faces: tuple[str, ...], tags: Iterable[str], moment: int
) -> tuple[object, ...]:
    """Return the columns of a note after its id and GUID; `faces` are HTML."""
    text = html.unescape(re.sub(r"<[^>]*>", "", faces[0]))
    checksum = int(hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    joined_tags = " ".join(re.sub(r"\s+", "-", t) for t in tags)
    tags_column = f" {joined_tags} " if joined_tags else ""
    return note_type_id, moment, -1, tags_column, "\x1f".join(faces), text, checksum, 0, ""


def note_guid(card_id: str) -> str:
    """Return the stable GUID of a note, from the id of its card."""
    digest = hashlib.sha256(f"headroom card {card_id}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


def stable_row_id(name: str, taken_ids: set[int]) -> int:
    """Return a row id that is the same in every package."""
    digest = hashlib.sha256(name.encode()).digest()
    number = _FIRST_NUMBER + int.from_bytes(digest[:8]) % _NUMBERS
    while number in taken_ids:
        number += 1
    taken_ids.add(number)
    return number


_POLICY = SchedulerConfig()
_EASE = 2500  # per mille; only the older scheduler needs it
_KINDS: Mapping[str, int] = {"learning": 1, "review": 2, "relearning": 3}
_LOG_KINDS: Mapping[str, int] = {"learning": 0, "review": 1, "relearning": 2}
_ASIDE, _BURIED = -1, -3
_BY_HAND = 4


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewWithDuration:
    """A review that was not undone, and the milliseconds it took, if measured."""

    grade: ReviewEvent
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DatedEdit:
    """A manual edit that was not undone, with its moment and study day."""

    act: ManualEdit
    at: dt.datetime
    day: dt.date


@dataclasses.dataclass(frozen=True, slots=True)
class NewRevlogEntry:
    """A revlog row without an id yet; `at` is the moment in ms.

    `ivl` and `last` are days, or negative seconds in (re)learning steps. `factor` is the difficulty
    1..10 as 100..1100, because 0 would mean that the card was reset.
    """

    at: int
    ease: int
    interval: int
    last: int
    factor: int
    time: int
    kind: int


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardInfo:
    """Our own data of an added card.

    `seed` chose the numbers of a question; `since` is the moment in ms from which the card is due.
    """

    seed: int | None = None
    since: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CardHistory:
    """A card with its state (None before the first review) and its log.

    `buried` is the edit that buried it, if nothing came after it.
    """

    card: str
    standing: CardState | None
    retention: float
    log: tuple[NewRevlogEntry, ...]
    suspended: bool = False
    aside: AddedCardInfo | None = None
    bury_edit: DatedEdit | None = None

    def is_buried(self, day: dt.date) -> bool:
        """Return whether it is buried for the rest of this study day."""
        edit = self.bury_edit and self.bury_edit.act
        return bool(edit and edit.until and edit.until > day)


def replay_for_anki(
    card: str,
    rows: Iterable[ReviewWithDuration | DatedEdit],
    *,
    suspended: bool = False,
    added_info: AddedCardInfo | None = None,
) -> CardHistory:
    """Replay the log of a card, in order, into what Anki stores about it."""
    replayed = ReplayedCard()
    log: list[NewRevlogEntry] = []
    retention = DEFAULT_RETENTION
    row = None
    for row in rows:
        previous_state = replayed.standing
        if isinstance(row, DatedEdit):
            replayed = apply_manual_edit(replayed, row.act)
            log += _manual_revlog_entries(previous_state, replayed.standing, row)
            continue
        state = apply_review(previous_state, row.grade, card)
        log.append(_graded_revlog_entry(previous_state, state, row))
        replayed, retention = ReplayedCard(state), row.grade.retention
    buried = row if isinstance(row, DatedEdit) and row.act.kind == "bury" else None
    return CardHistory(
        card, replayed.standing, retention, tuple(log), suspended, added_info, buried
    )


def _manual_revlog_entries(
    before: CardState | None, now: CardState | None, row: DatedEdit
) -> Iterable[NewRevlogEntry]:
    """Yield the revlog row of a manual edit, if Anki has one: only for started cards."""
    if before is None or row.act.kind == "bury":
        return
    at_ms, last_interval = round(row.at.timestamp() * 1000), _interval_for_anki(before)
    if now is None:
        yield NewRevlogEntry(at_ms, 0, 0, last_interval, 0, 0, _BY_HAND)
    else:
        days = max(1, (now.due_day - row.day).days)
        yield NewRevlogEntry(
            at_ms, 0, days, last_interval, _difficulty_as_ease_factor(now), 0, _BY_HAND
        )


def _difficulty_as_ease_factor(state: CardState) -> int:
    return round(((state.difficulty - 1) / 9 + 0.1) * 1000)


def _graded_revlog_entry(
    before: CardState | None, now: CardState, timed: ReviewWithDuration
) -> NewRevlogEntry:
    return NewRevlogEntry(
        at=round(timed.grade.at.timestamp() * 1000),
        ease=timed.grade.rating,
        interval=_interval_for_anki(now),
        last=_interval_for_anki(before) if before else 0,
        factor=_difficulty_as_ease_factor(now),
        time=timed.milliseconds or 0,
        kind=_LOG_KINDS[before.state] if before else 0,
    )


def _interval_for_anki(state: CardState) -> int:
    """Return days until the card is due; negative seconds in (re)learning steps."""
    if state.state == "review":
        return max(1, (state.due_day - state.last_day).days)
    return -max(1, round((state.due_at - state.last_at).total_seconds()))


def state_columns(
    card: CardHistory, calendar: "CollectionDates", new_card_position: int
) -> tuple[object, ...]:
    """Return the columns of a card from `type` on; `new_card_position` is its position among new ones."""
    state, buried = card.standing, card.is_buried(calendar.today)
    off_queue = _ASIDE if card.suspended else _BURIED if buried else None
    if state is None:
        return 0, off_queue or 0, new_card_position, 0, 0, 0, 0, 0, 0, 0, 0, _card_data_json(card)
    # A card in steps has a due moment. With a manually set day it is a review on that day.
    set_day = state.due_day > state.last_day and not buried
    stepping = state.state != "review" and not set_day
    queue = 1 if stepping else 2
    due = (state.due_day - calendar.first).days
    steps_left = max(1, _count_configured_steps(state) - (state.step or 0)) if stepping else 0
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


def _count_configured_steps(state: CardState) -> int:
    relearns = state.state == "relearning"
    return len(_POLICY.relearning_steps if relearns else _POLICY.learning_steps)


def _card_data_json(card: CardHistory) -> str:
    """Return the FSRS state and our own data of the card as JSON."""
    card_json: dict[str, Any] = {}
    if card.standing is not None:
        card_json = {
            "s": round(card.standing.stability, 4),
            "d": round(card.standing.difficulty, 3),
            "dr": card.retention,
            "lrt": int(card.standing.last_at.timestamp()),
        }
    if card.aside is not None:
        own_json = {"seed": card.aside.seed, "since": card.aside.since}
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
        """The id of its note type."""
        if self.ordinals:
            return note_type_id_for_card_count(len(self.faces) // 2)
        return BOTH_WAYS if len(self.cards) > 1 else ONE_WAY

    @property
    def cards_with_ordinals(self) -> Iterable[tuple[int, CardHistory]]:
        """Its cards with their ordinals."""
        ordinals = self.ordinals or range(len(self.cards))
        return zip(ordinals, self.cards, strict=True)


@dataclasses.dataclass(frozen=True, slots=True)
class CollectionDates:
    """The present in seconds since 1970 and as a study day, and the collection's first day.

    `first` is the day from which the collection counts.
    """

    now_seconds: int
    today: dt.date
    first: dt.date
    collection_start: CollectionStart | None

    def card_modified_at(self, card: CardHistory) -> int:
        """Return when a card was last changed; Anki derives the day of a bury from it."""
        if card.bury_edit is None or not card.is_buried(self.today):
            return self.now_seconds
        return int(card.bury_edit.at.timestamp())


_LOGGED = """
CREATE TEMP TABLE logged (at, card, place, cid, ease, ivl, last, factor, time, kind)
"""


def write_notes_to_package(
    notes: Iterable[AnkiNote], calendar: CollectionDates, package: PackageWriter
) -> None:
    """Write these notes with their cards and logs to a package, and finish it.

    Each is written before the next is taken from `notes`, so a generator saves memory.
    """
    decks: dict[str, int] = {}
    card_counts: set[int] = set()
    taken_ids: set[int] = set()
    with new_collection() as (db, path):
        db.execute(_LOGGED)
        for position, note in enumerate(notes):
            decks.setdefault(note.deck, stable_row_id(f"deck {note.deck}", set()))
            if note.ordinals:
                card_counts.add(len(note.faces) // 2)
            note_id = stable_row_id(note.name, taken_ids)
            columns = note_columns_after_guid(
                note.note_type_id, note.faces, note.tags, calendar.now_seconds
            )
            add_row(db, "notes", (note_id, note.guid, *columns))
            for ordinal, card in note.cards_with_ordinals:
                card_id = stable_row_id(f"{note.name}~{ordinal}", taken_ids)
                leading_columns = (
                    card_id,
                    note_id,
                    decks[note.deck],
                    ordinal,
                    calendar.card_modified_at(card),
                    -1,
                )
                add_row(db, "cards", (*leading_columns, *state_columns(card, calendar, position)))
                _stage_log_rows(db, card_id, card)
        _write_revlog_with_unique_ids(db)
        row = collection_row(decks, calendar.now_seconds, calendar.collection_start, card_counts)
        add_row(db, "col", row)
        db.commit()
        package.finish(path)


def _stage_log_rows(db: sqlite3.Connection, card_row_id: int, card: CardHistory) -> None:
    rows = (
        (r.at, card.card, n, card_row_id, r.ease, r.interval, r.last, r.factor, r.time, r.kind)
        for n, r in enumerate(card.log)
    )
    db.executemany("INSERT INTO logged VALUES (?,?,?,?,?,?,?,?,?,?)", rows)


def _write_revlog_with_unique_ids(db: sqlite3.Connection) -> None:
    """Give every log row a unique id: its moment, or a little later.

    Anki reads the id of a row as the moment of the review.
    """
    rows = db.execute(
        "SELECT at, cid, ease, ivl, last, factor, time, kind FROM logged ORDER BY at, card, place"
    )
    db.executemany("INSERT INTO revlog VALUES (?,?,-1,?,?,?,?,?,?)", _make_ids_unique(rows))


def _make_ids_unique(rows: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    last_id = 0
    for at, *rest in rows:
        last_id = max(at, last_id + 1)
        yield (last_id, *rest)


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
    package = PackageWriter(out, modern=False)
    pictures = {
        _package_picture_name(picture): image_bytes(picture)
        for card in cards
        for picture in card.pictures
    }
    for name, content in pictures.items():
        package.add_media(name, content)
    calendar = CollectionDates(moment, dt.date.min, dt.date.min, None)
    write_notes_to_package((_authored_note(card, title) for card in cards), calendar, package)
    return ExportResult(out.getvalue(), len(cards), refused)


def _authored_note(card: Item, title: str) -> AnkiNote:
    """Return the note of a card of the course, not studied yet."""
    return AnkiNote(
        card.name,
        note_guid(card.name),
        "::".join(part for part in ("Headroom", title, card.topic) if part),
        (_side_html(card, card.stem), _side_html(card, card.text)),
        (CardHistory(card.name, None, DEFAULT_RETENTION, ()),) * (1 + card.reverse),
        (*card.tags, *(f"objective::{o}" for o in card.objectives)),
    )


def _side_html(card: Item, text: str) -> str:
    """Return a side as HTML, with pictures as package files."""
    face = to_html_with_pictures(text)
    for picture in card.pictures:
        attribute = f'src="{html.escape(picture.name)}"'
        face = face.replace(attribute, f'src="{_package_picture_name(picture)}"')
    return face


def _package_picture_name(picture: ItemImage) -> str:
    """Return a file name that no other package uses for another picture."""
    ending = picture.name.rpartition(".")[2].lower()
    digest = hashlib.sha256(image_bytes(picture)).hexdigest()[:32]
    return f"headroom-{digest}.{ending}"
