"""Write notes, cards and revlog."""

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

from app.clock import RETENTION
from app.import_export.anki.package_format import (
    BOTH_WAYS,
    ONE_WAY,
    TABLES,
    CollectionCreation,
    PackageWriter,
    collection,
    with_sides,
)
from app.import_export.images import content_of
from app.import_export.items import ExportResult, Item, ItemImage, ItemRemark, label
from app.import_export.markdown_to_html import illustrated
from app.spaced_repetition.scheduler import (
    CardState,
    ManualEdit,
    ReplayedCard,
    ReviewEvent,
    SchedulerPolicy,
    apply_manual_edit,
    apply_review,
)

_FIRST_NUMBER = 1_500_000_000_000  # numbers look like milliseconds, as Anki expects
_NUMBERS = 200_000_000_000


def write_apkg(items: tuple[Item, ...], title: str, moment: int) -> ExportResult:
    """A package of the cards among `items`; `moment` in seconds since 1970.

    The GUID of a note comes from the id of its card alone, and `moment` is when it was
    last changed: a later package updates the notes of an earlier one and leaves what
    was learned as it is.
    """
    cards = tuple(i for i in items if i.kind == "card")
    refused = tuple(
        ItemRemark(label(i), i.line, "an Anki package takes cards only")
        for i in items
        if i.kind != "card"
    )
    names = {i.topic: "::".join(p for p in ("Headroom", title, i.topic) if p) for i in cards}
    decks = {name: number_of(f"deck {name}", set()) for name in names.values()}
    folders = {i.topic: decks[names[i.topic]] for i in cards}
    media = {_file_of(picture): content_of(picture) for card in cards for picture in card.pictures}
    out = io.BytesIO()
    package = PackageWriter(out, modern=False)
    for name, content in media.items():
        package.add_media(name, content)
    with new_collection() as (db, path):
        add_row(db, "col", collection(decks, moment))
        _add(db, cards, folders, moment)
        db.commit()
        package.finish(path)
    return ExportResult(out.getvalue(), len(cards), refused)


@contextlib.contextmanager
def new_collection() -> Iterator[tuple[sqlite3.Connection, Path]]:
    """The tables of a collection in a temporary file, and where it lies."""
    with tempfile.TemporaryDirectory(prefix="headroom-") as folder:
        path = Path(folder) / "collection.anki2"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.executescript(TABLES)
            yield connection, path


def add_row(connection: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    """Write a row of a collection, with all of its columns."""
    marks = ",".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} VALUES ({marks})",  # noqa: S608 - a table of ours
        values,
    )


def _add(
    connection: sqlite3.Connection,
    cards: tuple[Item, ...],
    decks: dict[str, int],
    moment: int,
) -> None:
    taken: set[int] = set()
    for place, card in enumerate(cards):
        note = number_of(card.name, taken)
        add_row(connection, "notes", (note, *_note(card, moment)))
        for side in range(1 + card.reverse):
            number = number_of(f"{card.name}~{side}", taken)
            values = (number, note, decks[card.topic], side, moment, -1, 0, 0, place)
            add_row(connection, "cards", (*values, *[0] * 8, ""))


def _note(card: Item, moment: int) -> tuple[object, ...]:
    tags = [*card.tags, *(f"objective::{o}" for o in card.objectives)]
    model = BOTH_WAYS if card.reverse else ONE_WAY
    faces = (_face(card, card.stem), _face(card, card.text))
    return guid(card.name), *note_columns(model, faces, tags, moment)


def _face(card: Item, text: str) -> str:
    """A side as HTML, whose pictures are files of the package."""
    face = illustrated(text)
    for picture in card.pictures:
        shown = f'src="{html.escape(picture.name)}"'
        face = face.replace(shown, f'src="{_file_of(picture)}"')
    return face


def _file_of(picture: ItemImage) -> str:
    """A name of a file that no other package has for another picture."""
    ending = picture.name.rpartition(".")[2].lower()
    digest = hashlib.sha256(content_of(picture)).hexdigest()[:32]
    return f"headroom-{digest}.{ending}"


def note_columns(
    model: int, faces: tuple[str, ...], tags: Iterable[str], moment: int
) -> tuple[object, ...]:
    """The columns of a note after its number and GUID; `faces` are HTML."""
    words = html.unescape(re.sub(r"<[^>]*>", "", faces[0]))
    checksum = int(hashlib.sha1(words.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    joined = " ".join(re.sub(r"\s+", "-", t) for t in tags)
    written = f" {joined} " if joined else ""
    return model, moment, -1, written, "\x1f".join(faces), words, checksum, 0, ""


def guid(name: str) -> str:
    """The lasting name of a note, from the id of its card."""
    digest = hashlib.sha256(f"headroom card {name}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:12]).decode()


def number_of(name: str, taken: set[int]) -> int:
    """A number for a row that is the same in every package."""
    digest = hashlib.sha256(name.encode()).digest()
    number = _FIRST_NUMBER + int.from_bytes(digest[:8]) % _NUMBERS
    while number in taken:
        number += 1
    taken.add(number)
    return number


_POLICY = SchedulerPolicy()
_EASE = 2500  # per mille; asked for by the older scheduler alone
_KINDS: Mapping[str, int] = {"learning": 1, "review": 2, "relearning": 3}
_LOG_KINDS: Mapping[str, int] = {"learning": 0, "review": 1, "relearning": 2}
_ASIDE, _BURIED = -1, -3
_BY_HAND = 4


@dataclasses.dataclass(frozen=True, slots=True)
class TimedReview:
    """A grade that stands, and the milliseconds it took where they were measured."""

    grade: ReviewEvent
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DatedEdit:
    """An act that stands, with its moment and its study day."""

    act: ManualEdit
    at: dt.datetime
    day: dt.date


@dataclasses.dataclass(frozen=True, slots=True)
class NewRevlogEntry:
    """A row of the revlog that has no number yet; `at` is the moment in ms.

    `ivl` and `last` are days, or seconds below zero in (re)learning steps; `factor`
    is the difficulty 1..10 as 100..1100, for 0 would mean that a card was reset.
    """

    at: int
    ease: int
    ivl: int
    last: int
    factor: int
    time: int
    kind: int


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardInfo:
    """What only we know of a card that was added to those of the course.

    `seed` chose the numbers of a question; `since` is the moment in ms from which the
    card is asked.
    """

    seed: int | None = None
    since: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CardHistory:
    """A card with its standing (None before the first grade) and its log.

    `buried` is the act that put it off, where nothing came after it.
    """

    card: str
    standing: CardState | None
    retention: float
    log: tuple[NewRevlogEntry, ...]
    suspended: bool = False
    aside: AddedCardInfo | None = None
    buried: DatedEdit | None = None

    def is_buried(self, day: dt.date) -> bool:
        """Whether it is not asked any more on this study day."""
        act = self.buried and self.buried.act
        return bool(act and act.until and act.until > day)


def learned(
    card: str,
    rows: Iterable[TimedReview | DatedEdit],
    *,
    suspended: bool = False,
    aside: AddedCardInfo | None = None,
) -> CardHistory:
    """Replay the log of a card, in order, into what Anki keeps of it."""
    now = ReplayedCard()
    log: list[NewRevlogEntry] = []
    retention = RETENTION
    row = None
    for row in rows:
        before = now.standing
        if isinstance(row, DatedEdit):
            now = apply_manual_edit(now, row.act)
            log += _set(before, now.standing, row)
            continue
        standing = apply_review(before, row.grade, card)
        log.append(_logged(before, standing, row))
        now, retention = ReplayedCard(standing), row.grade.retention
    buried = row if isinstance(row, DatedEdit) and row.act.kind == "bury" else None
    return CardHistory(card, now.standing, retention, tuple(log), suspended, aside, buried)


def _set(
    before: CardState | None, now: CardState | None, row: DatedEdit
) -> Iterable[NewRevlogEntry]:
    """The row of an act, where Anki has one: of a card that was begun."""
    if before is None or row.act.kind == "bury":
        return
    at, last = round(row.at.timestamp() * 1000), _interval(before)
    if now is None:
        yield NewRevlogEntry(at, 0, 0, last, 0, 0, _BY_HAND)
    else:
        days = max(1, (now.due_day - row.day).days)
        yield NewRevlogEntry(at, 0, days, last, _factor(now), 0, _BY_HAND)


def _factor(standing: CardState) -> int:
    return round(((standing.difficulty - 1) / 9 + 0.1) * 1000)


def _logged(before: CardState | None, now: CardState, timed: TimedReview) -> NewRevlogEntry:
    return NewRevlogEntry(
        at=round(timed.grade.at.timestamp() * 1000),
        ease=timed.grade.rating,
        ivl=_interval(now),
        last=_interval(before) if before else 0,
        factor=_factor(now),
        time=timed.milliseconds or 0,
        kind=_LOG_KINDS[before.state] if before else 0,
    )


def _interval(standing: CardState) -> int:
    """Days until the card is due; seconds, below zero, in (re)learning steps."""
    if standing.state == "review":
        return max(1, (standing.due_day - standing.last_day).days)
    return -max(1, round((standing.due_at - standing.last_at).total_seconds()))


def state_columns(
    card: CardHistory, days: tuple[dt.date, dt.date], place: int
) -> tuple[object, ...]:
    """The columns of a card from `type` on.

    `days` are the one from which the collection counts, and the study day of now;
    `place` is the card's place among new ones.
    """
    standing, (born, today) = card.standing, days
    buried = card.is_buried(today)
    off = _ASIDE if card.suspended else _BURIED if buried else None
    if standing is None:
        return 0, off or 0, place, 0, 0, 0, 0, 0, 0, 0, 0, _data(card)
    # In steps a card has a moment; with a day set by hand it is a review on that day.
    set_day = standing.due_day > standing.last_day and not buried
    stepping = standing.state != "review" and not set_day
    queue = 1 if stepping else 2
    due = (standing.due_day - born).days
    left = max(1, _steps(standing) - (standing.step or 0)) if stepping else 0
    return (
        _KINDS[standing.state if stepping else "review"],
        off or queue,
        round(standing.due_at.timestamp()) if stepping else due,
        0 if stepping and standing.state == "learning" else max(1, _interval(standing)),
        _EASE,
        standing.reviews,
        standing.lapses,
        left * 1001,  # how many steps are left today, and how many at all
        0,
        0,
        0,
        _data(card),
    )


def _steps(standing: CardState) -> int:
    relearns = standing.state == "relearning"
    return len(_POLICY.relearning_steps if relearns else _POLICY.learning_steps)


def _data(card: CardHistory) -> str:
    """The memory as FSRS has it, and what only we know of the card."""
    known: dict[str, Any] = {}
    if card.standing is not None:
        known = {
            "s": round(card.standing.stability, 4),
            "d": round(card.standing.difficulty, 3),
            "dr": card.retention,
            "lrt": int(card.standing.last_at.timestamp()),
        }
    if card.aside is not None:
        own = {"seed": card.aside.seed, "since": card.aside.since}
        kept = {name: value for name, value in own.items() if value is not None}
        known["cd"] = json.dumps(kept, separators=(",", ":"))
    return json.dumps(known, separators=(",", ":"))


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
