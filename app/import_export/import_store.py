"""SQL: write imported cards, and remove them again."""

import base64
import bisect
import collections
import dataclasses
import datetime as dt
import hashlib
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import (
    ColumnElement,
    Row,
    String,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile
from app.accounts.learner_store import learner_rows_filter
from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import BROUGHT, insert_if_absent
from app.database.quotas import CARD_LOG, OWN_CARDS, check_quota
from app.database.tables import TABLES, OwnPicture
from app.import_export.anki.package_format import find_picture_names
from app.import_export.export_store import (
    ADDED,
    ASIDE,
    LOG,
    LOGGED,
    OWN,
    OWN_TEXT,
    PICTURE,
    OwnCardText,
)
from app.import_export.items import UnusableFileError
from app.spaced_repetition.card_ids import QUESTION, is_added_card, parse_card_id
from app.spaced_repetition.card_rows import MEMORY
from app.spaced_repetition.review_log import (
    bump_manual_edits,
    change_days,
    load_beginnings,
    rebuilt_columns,
    replay_card,
)
from app.spaced_repetition.review_pace import DayCounts, new_cards_allowed

_BATCH_SIZE = 500  # names in one query
Logs = Mapping[str, Sequence[Row[Any]]]
Item = TypeVar("Item")


class HasPlacement(Protocol):
    """The note shared with a card's reverse, and the card's topic."""

    @property
    def note(self) -> str: ...
    @property
    def topic(self) -> str: ...


def rebuild_memory_rows(
    db: Session, learner_id: int, places: Mapping[str, HasPlacement], logs: Logs
) -> None:
    """Rebuild the memory rows of these cards from their logs and starts.

    Cards without a log in `logs` get a row if they have none.
    """
    connection = db.connection()
    for names in split_into_parts(places):
        mine = (MEMORY.c.learner_id == learner_id) & MEMORY.c.card.in_(names)
        there = set(connection.scalars(select(MEMORY.c.card).where(mine)))
        touched = [card for card in names if card in logs or card not in there]
        rows = _memory_rows(db, learner_id, {card: places[card] for card in touched}, logs)
        old = sorted(there.intersection(touched))
        connection.execute(delete(MEMORY).where(mine, MEMORY.c.card.in_(old)))
        if rows:
            connection.execute(insert(MEMORY), rows)


def _memory_rows(
    db: Session, learner_id: int, places: Mapping[str, HasPlacement], logs: Logs
) -> list[dict[str, Any]]:
    put_aside = select(ASIDE.c.card).where(
        ASIDE.c.learner_id == learner_id, ASIDE.c.card.in_(places)
    )
    aside = set(db.connection().scalars(put_aside))
    added = load_beginnings(db, learner_id, places.keys())
    rows = []
    for card, place in places.items():
        log, begin = logs.get(card, ()), added.get(card)
        now = replay_card(card, log, begin)
        values = rebuilt_columns(now, len(log), begin, aside=card in aside)
        if values is not None:
            own = {"learner_id": learner_id, "card": card}
            rows.append({**own, "note": place.note, "topic": place.topic, **values})
    return rows


def load_logs(db: Session, learner_id: int, cards: Iterable[str]) -> dict[str, list[Row[Any]]]:
    """Return the log rows of each card that has any, oldest first."""
    found: dict[str, list[Row[Any]]] = {}
    for names in split_into_parts(cards):
        rows = db.connection().execute(
            select(*LOGGED)
            .where(LOG.c.learner_id == learner_id, LOG.c.card.in_(names))
            .order_by(LOG.c.card, LOG.c.at, LOG.c.id)
        )
        for card, log in itertools.groupby(rows, lambda r: str(r.card)):
            found[card] = list(log)
    return found


def sort_by_time(logs: Logs) -> list[Row[Any]]:
    """Return all rows of some logs, one card after the other."""
    return [row for log in logs.values() for row in log]


def split_by_weight(weighed: Iterable[tuple[Item, int]], most: int) -> Iterator[tuple[Item, ...]]:
    """Yield items in batches of total weight `most`, or of a single heavier item."""
    part: list[Item] = []
    work = 0
    for item, weight in weighed:
        if part and work + weight > most:
            yield tuple(part)
            part, work = [], 0
        part.append(item)
        work += weight
    if part:
        yield tuple(part)


def split_into_parts(cards: Iterable[str]) -> Iterator[Sequence[str]]:
    """Yield names in lists short enough for one query."""
    names = sorted(cards)
    for begin in range(0, len(names), _BATCH_SIZE):
        yield names[begin : begin + _BATCH_SIZE]


MOST_BYTES = 100_000_000
"""Limit for all pictures of one learner in all courses, in bytes."""
MOST_PICTURES = 20_000
TOO_MANY = (
    f"their pictures would make more than {MOST_BYTES // 1_000_000} MB of yours, or "
    f"more than {MOST_PICTURES:,}"
)


class HasImages(Protocol):
    """A card with its pictures, by name."""

    @property
    def pictures(self) -> Mapping[str, bytes]: ...


Card = TypeVar("Card", bound=HasImages)


Sizes = Mapping[tuple[int, str], int]
"""Bytes of pictures by learner row id and picture name."""


def measure_pictures(db: Session, learner_id: int) -> Sizes:
    """Return the size of every picture of a person, in all courses.

    The database reads all of them, so call this before a write transaction.
    """
    return _measure_sizes(db, PICTURE.c.learner_id.in_(learner_rows_filter(learner_id)))


def _measure_sizes(db: Session, which: ColumnElement[bool]) -> Sizes:
    length = func.length(PICTURE.c.content)
    columns = PICTURE.c.learner_id, PICTURE.c.name, length
    rows = db.connection().execute(select(*columns).where(which))
    return {(owner, name): count * 3 // 4 for owner, name, count in rows}


def drop_beyond_room(
    db: Session, learner_id: int, cards: Sequence[Card], measured: Sizes
) -> tuple[Card, ...]:
    """Return the cards without those whose new pictures exceed the limit.

    They are reported as `TOO_MANY`. Of the pictures already `measured` before this transaction,
    only the names are read again.
    """
    if not any(card.pictures for card in cards):
        return tuple(cards)
    sizes = _measure_new(db, learner_id, measured)
    known = {name for owner, name in sizes if owner == learner_id}
    room = MOST_BYTES - sum(sizes.values())
    places = MOST_PICTURES - len(sizes)
    fitting = []
    for card in cards:
        new = {n: len(c) for n, c in card.pictures.items() if n not in known}
        if new and (sum(new.values()) > room or len(new) > places):
            continue
        room -= sum(new.values())
        places -= len(new)
        known |= new.keys()
        fitting.append(card)
    return tuple(fitting)


def _measure_new(db: Session, learner_id: int, measured: Sizes) -> Sizes:
    """Return the current sizes; reads only the pictures not yet measured."""
    names = select(PICTURE.c.learner_id, PICTURE.c.name)
    theirs = names.where(PICTURE.c.learner_id.in_(learner_rows_filter(learner_id)))
    present = {(owner, name) for owner, name in db.connection().execute(theirs)}
    sizes = {key: measured[key] for key in present & measured.keys()}
    for owner, name in present - measured.keys():
        this = (PICTURE.c.learner_id == owner) & (PICTURE.c.name == name)
        sizes |= _measure_sizes(db, this)
    return sizes


def put_pictures(db: Session, learner_id: int, cards: Iterable[HasImages], at: int) -> None:
    """Save the pictures of some cards, each once."""
    kept = {name: content for card in cards for name, content in card.pictures.items()}
    for name, content in kept.items():
        words = base64.b64encode(content).decode()
        row = {"learner_id": learner_id, "name": name, "content": words, "at": at}
        insert_if_absent(db, OwnPicture, row)


def drop_pictures(db: Session, learner_id: int) -> None:
    """Delete the pictures that no card of the learner shows any more."""
    connection, mine = db.connection(), PICTURE.c.learner_id == learner_id
    kept = set(connection.scalars(select(PICTURE.c.name).where(mine)))
    if not kept:
        return
    faces = select(OWN.c.front, OWN.c.back).where(
        OWN.c.learner_id == learner_id,
        OWN.c.front.contains("<img") | OWN.c.back.contains("<img"),
    )
    shown = {n for row in connection.execute(faces) for f in row for n in find_picture_names(f)}
    for name in sorted(kept - shown):
        connection.execute(delete(PICTURE).where(mine, PICTURE.c.name == name))


# A batch holds the write lock for about 30 ms. A card costs as much as some of its reviews, and a
# review as much as some bytes of a picture.
_ROWS_OF_SLICE, _ROWS_OF_CARD, _BYTES_OF_ROW = 300, 3, 10_000
_STORED_ROW = 150  # bytes of a row with its share of the indexes
_ANKI_BEGAN = 1_136_073_600_000  # 2006; a review cannot be older
_SAME = 1000  # ms within which two reviews of a card count as the same
_LONGEST_LOOK = 10 * 60 * 1000
_ALREADY = "in your log already"
_FULL_LOG = f"beyond {CARD_LOG.most:,} entries in the log of one card"
_NO_MOMENT = "in the future, or before there was Anki"
_DAY = 24 * 60 * 60 * 1000
_LATEST = 10 * 366 * _DAY


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedReview:
    """A review in a file: its moment in ms, rating 1..4, and the milliseconds it took.

    Or, without a rating, an `act`: a due date with its study day, burying or forgetting.
    """

    at: int
    rating: int
    time: int
    act: str = ""
    until: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedCard:
    """A card from a file, by our id.

    `origin` identifies it in the file permanently. `own` is the text of an own card, which shows
    `pictures`. `retention`, `seed` and `since` are None if not in the file.
    """

    card: str
    note: str
    topic: str
    origin: str
    log: tuple[ImportedReview, ...] = ()
    own: OwnCardText | None = None
    pictures: Mapping[str, bytes] = dataclasses.field(default_factory=dict)
    suspended: bool = False
    retention: float | None = None
    seed: int | None = None
    since: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many cards are new, changed or unchanged; reviews imported and skipped.

    `waiting` counts cards without a review, a few of which start on each day.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    grades: int = 0
    left: Mapping[str, int] = dataclasses.field(default_factory=dict)
    waiting: int = 0

    def __add__(self, other: "ImportCounts") -> "ImportCounts":
        return ImportCounts(
            new=self.new + other.new,
            changed=self.changed + other.changed,
            same=self.same + other.same,
            grades=self.grades + other.grades,
            left=collections.Counter(self.left) + collections.Counter(other.left),
            waiting=self.waiting + other.waiting,
        )


@dataclasses.dataclass(slots=True)
class _ExistingCards:
    """What a learner already had of some cards: review moments, text, ids."""

    logs: Logs
    moments: dict[tuple[str, int | str], list[int]]
    begun: set[str]
    added: set[str]
    own: dict[str, OwnCardText]


def expect_room(db: Session, learner_id: int, arrivals: Iterable[ImportedCard]) -> None:
    """Raise UnusableFileError if a learner would have too many own cards."""
    mine = select(OWN.c.card).where(OWN.c.learner_id == learner_id)
    own = set(db.connection().scalars(mine))
    if len(own | {a.card for a in arrivals if a.own}) > OWN_CARDS.most:
        raise UnusableFileError(f"You would have more than {OWN_CARDS.most:,} cards of your own.")


def stored_size(arrivals: Iterable[ImportedCard]) -> int:
    """Estimate how many bytes some cards take in the database, as if all were new."""
    return sum(map(_card_size, arrivals))


def _card_size(arrival: ImportedCard) -> int:
    pictures = sum(map(len, arrival.pictures.values())) * 4 // 3  # stored as Base64
    words = arrival.own.front + arrival.own.back if arrival.own else ""
    rows = _ROWS_OF_CARD + len(arrival.log)
    return pictures + len(words.encode()) + rows * _STORED_ROW


def slice_cards(arrivals: Iterable[ImportedCard]) -> Iterator[tuple[ImportedCard, ...]]:
    """Yield cards in batches, each of which holds the write lock only briefly."""
    return split_by_weight(((a, _card_weight(a)) for a in arrivals), _ROWS_OF_SLICE)


def _card_weight(arrival: ImportedCard) -> int:
    """Return the cost of writing a card, in rows."""
    pictures = sum(map(len, arrival.pictures.values()))
    return _ROWS_OF_CARD + len(arrival.log) + pictures // _BYTES_OF_ROW


def import_cards(
    db: Session,
    learner: LearnerProfile,
    arrivals: Sequence[ImportedCard],
    now: dt.datetime,
    waiting: int = 0,
) -> ImportCounts:
    """Write everything that is new, and rebuild memory rows and day totals.

    Importing the same cards again changes nothing. `waiting` cards without a review came before
    them from the same file.
    """
    books = _load_existing(db, learner.id, [a.card for a in arrivals])
    left: collections.Counter[str] = collections.Counter()
    rows = [
        row
        for arrival in arrivals
        for row in _review_rows(arrival, learner, books, (to_milliseconds(now), left))
    ]
    if rows:
        db.connection().execute(insert(LOG), rows)
    if any(row["act"] for row in rows):
        bump_manual_edits(db, learner.id)
    graded = {row["card"]: int(row["at"]) for row in reversed(rows)}
    fresh = _cards_not_there(arrivals, books, graded)
    waited = _add_cards(db, learner, fresh, (to_milliseconds(now), graded, waiting))
    put_pictures(db, learner.id, arrivals, to_milliseconds(now))
    worded = _put_words(db, learner.id, arrivals, books, to_milliseconds(now))
    _put_aside(db, learner.id, fresh, to_milliseconds(now))
    _derive_memory_and_days(db, learner.id, arrivals, (books, graded))
    new = {a.card for a in fresh}
    changed = ({*graded} | worded) - new
    same = len({a.card for a in arrivals} - new - changed)
    grades = sum(row["rating"] > 0 for row in rows)
    return ImportCounts(len(new), len(changed), same, grades, left, waited)


def _derive_memory_and_days(
    db: Session,
    learner_id: int,
    arrivals: Sequence[ImportedCard],
    changed: tuple[_ExistingCards, Mapping[str, int]],
) -> None:
    """Rebuild memory rows and day totals of cards whose logs have grown."""
    books, graded = changed
    after = load_logs(db, learner_id, graded)
    before = {card: books.logs[card] for card in graded if card in books.logs}
    unknown = {c: log for c, log in books.logs.items() if c not in books.begun}
    rebuild_memory_rows(db, learner_id, {a.card: a for a in arrivals}, {**unknown, **after})
    change_days(db, learner_id, sort_by_time(before), sort_by_time(after))


def _load_existing(db: Session, learner_id: int, cards: Sequence[str]) -> _ExistingCards:
    moments = collections.defaultdict[tuple[str, int | str], list[int]](list)
    logs = load_logs(db, learner_id, cards)
    for row in sort_by_time(logs):
        if row.rating > 0 or row.act:
            moments[row.card, row.rating or row.act].append(row.at)
    books = _ExistingCards(logs, moments, set(), set(), {})
    connection = db.connection()
    for names in split_into_parts(cards):
        for table, known in ((MEMORY, books.begun), (ADDED, books.added)):
            mine = (table.c.learner_id == learner_id) & table.c.card.in_(names)
            known.update(connection.scalars(select(table.c.card).where(mine)))
        own = select(OWN.c.card, *OWN_TEXT).where(
            OWN.c.learner_id == learner_id, OWN.c.card.in_(names)
        )
        for card, *words in connection.execute(own):
            books.own[card] = OwnCardText(*words)
    return books


def _review_rows(
    arrival: ImportedCard,
    learner: LearnerProfile,
    books: _ExistingCards,
    present: tuple[int, collections.Counter[str]],
) -> list[dict[str, Any]]:
    """Return the new log rows of a card; the others are counted."""
    now, left = present
    rows: dict[int, dict[str, Any]] = {}
    room = CARD_LOG.most - len(books.logs.get(arrival.card, ()))
    for came in arrival.log:
        times = books.moments.get((arrival.card, came.rating or came.act), [])
        if came.act == "bury" and _is_over(learner, came.at, now):
            continue
        if not _ANKI_BEGAN < came.at <= now:
            left[_NO_MOMENT] += 1
        elif came.at in rows or _is_there(times, came.at):
            left[_ALREADY] += 1
        elif len(rows) >= room:
            left[_FULL_LOG] += 1
        else:
            rows[came.at] = _review_row(arrival, learner, came)
    return list(rows.values())


def _is_over(learner: LearnerProfile, at: int, now: int) -> bool:
    """Return whether a card was buried on an earlier study day: Anki ends that as well."""
    return at < now and learner.study_day(from_milliseconds(at)) < learner.study_day(
        from_milliseconds(now)
    )


def _is_there(times: list[int], at: int) -> bool:
    place = bisect.bisect_left(times, at - _SAME)
    return place < len(times) and times[place] <= at + _SAME


def _review_row(
    arrival: ImportedCard, learner: LearnerProfile, came: ImportedReview
) -> dict[str, Any]:
    what = came.rating or came.act
    words = f"{learner.id}\0{arrival.origin}\0{came.at}\0{what}"
    took = came.time if 0 < came.time <= _LONGEST_LOOK else None
    day = learner.study_day(from_milliseconds(came.at))
    tomorrow = (day + dt.timedelta(days=1)).isoformat()
    return {
        "learner_id": learner.id,
        "token": BROUGHT + hashlib.sha256(words.encode()).hexdigest()[:48],
        "card": arrival.card,
        "rating": came.rating,
        "retention": arrival.retention or learner.retention,
        "milliseconds": took,
        "study_day": day.isoformat(),
        "at": came.at,
        "act": came.act,
        "until_day": tomorrow if came.act == "bury" else came.until,
    }


def _cards_not_there(
    arrivals: Sequence[ImportedCard], books: _ExistingCards, graded: Collection[str]
) -> list[ImportedCard]:
    """Return the cards that are new for the learner: reviewed course cards, all added ones."""
    known = books.begun | books.added
    return [
        a
        for a in arrivals
        if a.card not in known and (a.card in graded or is_added_card(a.card) or a.suspended)
    ]


def _add_cards(
    db: Session,
    learner: LearnerProfile,
    fresh: Sequence[ImportedCard],
    moments: tuple[int, Mapping[str, int], int],
) -> int:
    """Save added cards; those without a review start a few on each day.

    Otherwise a deck of a thousand new cards would all be due today. `moments` are the current one,
    those of the first imported reviews, and how many cards are waiting. Returns how many more are.
    """
    a_day = max(1, new_cards_allowed(learner.minutes_a_day, DayCounts(0, 0, 0)))
    now, graded, before = moments
    rows = []
    waiting = before
    for arrival in fresh:
        if not is_added_card(arrival.card):
            continue
        if arrival.since is not None:
            since = min(arrival.since, now + _LATEST)
        elif arrival.card in graded:
            since = graded[arrival.card]
        else:
            since = now + waiting // a_day * _DAY
            waiting += 1
        rows.append(_added_card_row(learner.id, arrival, since))
    if rows:
        db.connection().execute(insert(ADDED), rows)
    return waiting - before


def _added_card_row(learner_id: int, arrival: ImportedCard, since: int) -> dict[str, Any]:
    seed = arrival.seed
    if seed is None and parse_card_id(arrival.card)[0] == QUESTION:
        seed = 0
    mine = {"learner_id": learner_id, "card": arrival.card}
    return {**mine, "seed": seed, "declined": False, "at": since}


def _put_words(
    db: Session, learner_id: int, arrivals: Sequence[ImportedCard], books: _ExistingCards, at: int
) -> set[str]:
    """Save the text of own cards as in the file; returns those that changed."""
    new, changed = [], set()
    for arrival in arrivals:
        known = books.own.get(arrival.card)
        if arrival.own is None or arrival.own == known:
            continue
        words = dataclasses.asdict(arrival.own)
        if known is None:
            mine = {"learner_id": learner_id, "card": arrival.card, "at": at}
            new.append({**mine, **words})
            continue
        changed.add(arrival.card)
        of_card = (OWN.c.learner_id == learner_id) & (OWN.c.card == arrival.card)
        db.connection().execute(update(OWN).where(of_card).values(**words))
    if new:
        db.connection().execute(insert(OWN), new)
        check_quota(db, OWN_CARDS, OWN.c.learner_id == learner_id)
    return changed


def _put_aside(db: Session, learner_id: int, fresh: Sequence[ImportedCard], at: int) -> None:
    """Suspend new cards that were suspended in the file."""
    names = [a.card for a in fresh if a.suspended]
    mine = (ASIDE.c.learner_id == learner_id) & ASIDE.c.card.in_(names)
    aside = set(db.connection().scalars(select(ASIDE.c.card).where(mine)))
    rows = [
        {"learner_id": learner_id, "card": card, "at": at} for card in names if card not in aside
    ]
    if rows:
        db.connection().execute(insert(ASIDE), rows)


IMPORTS = TABLES["card_import"]
RUNNING, DONE, CANCELLED, STOPPED, FAILED, FULL = (
    "running",
    "done",
    "cancelled",
    "stopped",
    "failed",
    "full",
)
# An import writes several times a second. One silent for this long (ms) ended with its server.
_SILENT = 60_000


@dataclasses.dataclass(frozen=True, slots=True)
class ImportBatch:
    """A matched file: its name, how many cards to write, and what is skipped."""

    file: str
    cards: int
    cards_left: Mapping[str, int]
    grades_left: Mapping[str, int]
    media: int


@dataclasses.dataclass(frozen=True, slots=True)
class ImportProgress:
    """The progress of an import: `seen` of `cards` in the file were written.

    `began_at` tells it from a later one of the same learner.
    """

    file: str
    state: str
    cards: int
    seen: int
    outcome: ImportCounts
    cards_left: Mapping[str, int]
    media: int
    began_at: int

    @property
    def grades_left(self) -> Mapping[str, int]:
        """How many reviews were skipped so far, by reason."""
        return self.outcome.left


def begin_import(db: Session, learner_id: int, batch: ImportBatch, now: dt.datetime) -> int | None:
    """Save the start of an import; returns its id, None if another is running."""
    known = read_import(db, learner_id, now)
    if known is not None and known.state == RUNNING:
        return None
    at = to_milliseconds(now)
    began = max(at, known.began_at + 1) if known else at
    left = {"cards": dict(batch.cards_left), "grades": dict(batch.grades_left)}
    db.connection().execute(delete(IMPORTS).where(IMPORTS.c.learner_id == learner_id))
    row = {
        **dict.fromkeys(("seen", "new", "changed", "same", "grades"), 0),
        "learner_id": learner_id,
        "file": batch.file,
        "state": RUNNING,
        "cards": batch.cards,
        "media": batch.media,
        "refused": json.dumps(left),
        "began_at": began,
        "at": at,
    }
    db.connection().execute(insert(IMPORTS), row)
    return began


def advance_import(
    db: Session, running: tuple[int, int], more: tuple[int, ImportCounts], now: dt.datetime
) -> None:
    """Add the result of a batch to the import `running`."""
    seen, outcome = more
    row = db.connection().execute(select(IMPORTS).where(*_import_filter(running))).one()
    refused = json.loads(row.refused)
    grades = collections.Counter(refused["grades"]) + collections.Counter(outcome.left)
    names = ("new", "changed", "same", "grades")
    counts = {name: IMPORTS.c[name] + getattr(outcome, name) for name in names}
    db.connection().execute(
        update(IMPORTS)
        .where(*_import_filter(running))
        .values(
            seen=IMPORTS.c.seen + seen,
            refused=json.dumps({**refused, "grades": grades}),
            at=to_milliseconds(now),
            **counts,
        )
    )


def is_running(db: Session, running: tuple[int, int]) -> bool:
    """Return whether this import was not canceled, replaced or erased."""
    state = select(IMPORTS.c.state).where(*_import_filter(running))
    return db.connection().scalar(state) == RUNNING


def end_import(db: Session, running: tuple[int, int], state: str) -> None:
    """Save how an import ended, unless it was already ended."""
    still = (*_import_filter(running), IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(*still).values(state=state))


def cancel_import(db: Session, learner_id: int) -> None:
    """Stop a learner's import after the current batch."""
    mine = (IMPORTS.c.learner_id == learner_id) & (IMPORTS.c.state == RUNNING)
    db.connection().execute(update(IMPORTS).where(mine).values(state=CANCELLED))


def read_import(db: Session, learner_id: int, now: dt.datetime) -> ImportProgress | None:
    """Return the last import of a learner; None if there was none."""
    mine = select(IMPORTS).where(IMPORTS.c.learner_id == learner_id)
    row: Any = db.connection().execute(mine).first()
    if row is None:
        return None
    silent = to_milliseconds(now) - row.at > _SILENT
    refused = json.loads(row.refused)
    return ImportProgress(
        file=row.file,
        state=STOPPED if silent and row.state == RUNNING else row.state,
        cards=row.cards,
        seen=row.seen,
        outcome=ImportCounts(row.new, row.changed, row.same, row.grades, refused["grades"]),
        cards_left=refused["cards"],
        media=row.media,
        began_at=row.began_at,
    )


def _import_filter(running: tuple[int, int]) -> tuple[Any, ...]:
    learner_id, began = running
    return IMPORTS.c.learner_id == learner_id, IMPORTS.c.began_at == began


# A batch holds the write lock for about 30 ms.
_REMOVAL_ROWS_OF_SLICE, _REMOVAL_ROWS_OF_CARD = 500, 3


@dataclasses.dataclass(frozen=True, slots=True)
class OwnDeck:
    """An own deck: the number of its cards, and of their reviews."""

    name: str
    cards: int
    grades: int


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedContent:
    """Content from imports: own decks, and reviews of course cards."""

    decks: tuple[OwnDeck, ...]
    grades: int


def list_imported(db: Session, learner_id: int) -> ImportedContent:
    """Return all imported content that still exists."""
    if not learner_id:
        return ImportedContent((), 0)
    given = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    decks = db.connection().execute(
        select(OWN.c.deck, func.count(OWN.c.card.distinct()), func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, given & (LOG.c.rating > 0)))
        .where(OWN.c.learner_id == learner_id)
        .group_by(OWN.c.deck)
        .order_by(OWN.c.deck)
    )
    grades = db.scalar(select(func.count()).where(*_imported_rows_filter(learner_id)))
    return ImportedContent(tuple(OwnDeck(*row) for row in decks), grades or 0)


def list_learner_cards(db: Session, learner_id: int) -> list[str]:
    """Return all cards that a learner has started, suspended or added."""
    if not learner_id:
        return []
    declined = select(ADDED.c.card).where(
        ADDED.c.learner_id == learner_id, ADDED.c.declined.is_(True)
    )
    rows = db.connection().execute(
        select(MEMORY.c.card).where(
            MEMORY.c.learner_id == learner_id, MEMORY.c.card.not_in(declined)
        )
    )
    return list(rows.scalars())


def deck_slices(db: Session, learner_id: int, deck: str) -> list[tuple[str, ...]]:
    """Return the own cards of a deck, in batches to remove."""
    of_card = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    cards = db.connection().execute(
        select(OWN.c.card, func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, of_card))
        .where(OWN.c.learner_id == learner_id, OWN.c.deck == deck)
        .group_by(OWN.c.card)
    )
    return _slice_names(cards)


def slices_with_grades(db: Session, learner_id: int) -> list[tuple[str, ...]]:
    """Return the course cards with imported reviews, in batches to remove."""
    carried = select(LOG.c.card, func.count()).where(*_imported_rows_filter(learner_id))
    return _slice_names(db.connection().execute(carried.group_by(LOG.c.card)))


def _slice_names(cards: Iterable[Row[str, int]]) -> list[tuple[str, ...]]:
    weighed = ((card, _REMOVAL_ROWS_OF_CARD + grades) for card, grades in cards)
    return list(split_by_weight(weighed, _REMOVAL_ROWS_OF_SLICE))


def remove_own(db: Session, learner_id: int, cards: Sequence[str]) -> None:
    """Delete own cards with all their data."""
    before = load_logs(db, learner_id, cards)
    for table in (LOG, MEMORY, ASIDE, ADDED, OWN):
        for names in split_into_parts(cards):
            mine = table.c.learner_id == learner_id
            db.connection().execute(delete(table).where(mine, table.c.card.in_(names)))
    change_days(db, learner_id, sort_by_time(before), ())


def remove_grades(
    db: Session, learner_id: int, cards: Sequence[str], home: Callable[[str], HasPlacement]
) -> None:
    """Delete the imported reviews of course cards.

    A card that was also reviewed here keeps the rows without a rating: open forms count the rows of
    a card, and no number may be used twice.
    """
    connection = db.connection()
    before = load_logs(db, learner_id, cards)
    graded_here = select(LOG.c.card).where(
        LOG.c.learner_id == learner_id,
        LOG.c.card.in_(cards),
        LOG.c.token.not_like(f"{BROUGHT}%"),
    )
    kept = set(connection.scalars(graded_here.distinct()))
    _reset_cards(db, learner_id, kept)
    for names in split_into_parts(set(cards) - kept):
        of_cards = LOG.c.card.in_(names)
        connection.execute(delete(LOG).where(*_imported_rows_filter(learner_id), of_cards))
    after = {**{card: [] for card in cards}, **load_logs(db, learner_id, cards)}
    rebuild_memory_rows(db, learner_id, {c: home(c) for c in cards}, after)
    change_days(db, learner_id, sort_by_time(before), sort_by_time(after))


def _reset_cards(db: Session, learner_id: int, cards: Iterable[str]) -> None:
    gone = literal("gone:") + cast(LOG.c.id, String)
    for names in split_into_parts(cards):
        db.connection().execute(
            update(LOG)
            .where(*_imported_rows_filter(learner_id), LOG.c.card.in_(names))
            .values(rating=0, act="", token=gone)
        )


def _imported_rows_filter(learner_id: int) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for imported log rows of course cards."""
    return (
        LOG.c.learner_id == learner_id,
        LOG.c.token.like(f"{BROUGHT}%"),
        LOG.c.card.not_like("own:%"),
    )
