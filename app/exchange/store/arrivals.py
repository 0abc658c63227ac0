"""Cards that came with a file, written into a learner's tables slice by slice."""

import bisect
import collections
import dataclasses
import datetime as dt
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlmodel import Session

from app.cards.names import QUESTION, is_added_card, parse_card_id
from app.cards.store import MEMORY, bump_manual_edits, change_days
from app.db.insert_once import BROUGHT
from app.db.quotas import CARD_LOG, OWN_CARDS, check_quota
from app.exchange.items import UnusableFileError
from app.exchange.store.held import ADDED, ASIDE, LOG, OWN, OWN_TEXT, OwnCardText
from app.exchange.store.memories import (
    Logs,
    in_parts,
    in_slices,
    in_time,
    logs_of,
    remember,
)
from app.exchange.store.pictures import put_pictures
from app.learners.current import LearnerProfile
from app.scheduling import DayCounts, new_cards_allowed
from app.web.clock import from_milliseconds, to_milliseconds

# A slice holds the writers' turn for about thirty milliseconds. A card costs as much as
# some of its grades, and a grade as much as some bytes of a picture.
_ROWS_OF_SLICE, _ROWS_OF_CARD, _BYTES_OF_ROW = 300, 3, 10_000
_STORED_ROW = 150  # bytes of a row with its part of the indexes
_ANKI_BEGAN = 1_136_073_600_000  # 2006; an earlier moment is no moment of a grade
_SAME = 1000  # ms within which a grade of the same card is the same grade
_LONGEST_LOOK = 10 * 60 * 1000
_ALREADY = "in your log already"
_FULL_LOG = f"beyond {CARD_LOG.most:,} entries in the log of one card"
_NO_MOMENT = "in the future, or before there was Anki"
_DAY = 24 * 60 * 60 * 1000
_LATEST = 10 * 366 * _DAY


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedReview:
    """A grade in a file: its moment in ms, 1..4, and the milliseconds it took.

    Or, without a grade, an `act`: a due date with its study day, burying or forgetting.
    """

    at: int
    rating: int
    time: int
    act: str = ""
    until: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedCard:
    """A card that came with a file, by its name with us.

    `origin` names it in the file for ever; `own` are the words of a card of the
    learner's own, on which there are `pictures`; `retention`, `seed` and `since` are
    none where the file is silent.
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
    """How many cards are new, changed or as they were; grades carried and left out.

    `waiting` counts cards without a grade, which begin a few on each day.
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
    """What a learner had before of some cards: moments of grades, words, names."""

    logs: Logs
    moments: dict[tuple[str, int | str], list[int]]
    begun: set[str]
    added: set[str]
    own: dict[str, OwnCardText]


def expect_room(db: Session, learner_id: int, arrivals: Iterable[ImportedCard]) -> None:
    """Raise Unusable when a learner would have too many cards of their own."""
    mine = select(OWN.c.card).where(OWN.c.learner_id == learner_id)
    own = set(db.connection().scalars(mine))
    if len(own | {a.card for a in arrivals if a.own}) > OWN_CARDS.most:
        raise UnusableFileError(f"You would have more than {OWN_CARDS.most:,} cards of your own.")


def stored_size(arrivals: Iterable[ImportedCard]) -> int:
    """About how many bytes some cards take in the database, as if all were new."""
    return sum(map(_size, arrivals))


def _size(arrival: ImportedCard) -> int:
    pictures = sum(map(len, arrival.pictures.values())) * 4 // 3  # they lie in base64
    words = arrival.own.front + arrival.own.back if arrival.own else ""
    rows = _ROWS_OF_CARD + len(arrival.log)
    return pictures + len(words.encode()) + rows * _STORED_ROW


def slices_of(arrivals: Iterable[ImportedCard]) -> Iterator[tuple[ImportedCard, ...]]:
    """Cards in parts that are written at one stroke: a blink of the writers' turn."""
    return in_slices(((a, _weight(a)) for a in arrivals), _ROWS_OF_SLICE)


def _weight(arrival: ImportedCard) -> int:
    """How many rows would take as long to write."""
    pictures = sum(map(len, arrival.pictures.values()))
    return _ROWS_OF_CARD + len(arrival.log) + pictures // _BYTES_OF_ROW


def import_cards(
    db: Session,
    learner: LearnerProfile,
    arrivals: Sequence[ImportedCard],
    now: dt.datetime,
    waiting: int = 0,
) -> ImportCounts:
    """Write everything that is new, and make memory and days of these cards again.

    The same cards taken in again change nothing. `waiting` cards without a grade came
    before them with the same file.
    """
    books = _books(db, learner.id, [a.card for a in arrivals])
    left: collections.Counter[str] = collections.Counter()
    rows = [
        row
        for arrival in arrivals
        for row in _rows(arrival, learner, books, (to_milliseconds(now), left))
    ]
    if rows:
        db.connection().execute(insert(LOG), rows)
    if any(row["act"] for row in rows):
        bump_manual_edits(db, learner.id)
    graded = {row["card"]: int(row["at"]) for row in reversed(rows)}
    fresh = _fresh(arrivals, books, graded)
    waited = _add(db, learner, fresh, (to_milliseconds(now), graded, waiting))
    put_pictures(db, learner.id, arrivals, to_milliseconds(now))
    worded = _put_words(db, learner.id, arrivals, books, to_milliseconds(now))
    _put_aside(db, learner.id, fresh, to_milliseconds(now))
    _derive(db, learner.id, arrivals, (books, graded))
    new = {a.card for a in fresh}
    changed = ({*graded} | worded) - new
    same = len({a.card for a in arrivals} - new - changed)
    grades = sum(row["rating"] > 0 for row in rows)
    return ImportCounts(len(new), len(changed), same, grades, left, waited)


def _derive(
    db: Session,
    learner_id: int,
    arrivals: Sequence[ImportedCard],
    changed: tuple[_ExistingCards, Mapping[str, int]],
) -> None:
    """Make memory and days again where the logs have grown."""
    books, graded = changed
    after = logs_of(db, learner_id, graded)
    before = {card: books.logs[card] for card in graded if card in books.logs}
    unknown = {c: log for c, log in books.logs.items() if c not in books.begun}
    remember(db, learner_id, {a.card: a for a in arrivals}, {**unknown, **after})
    change_days(db, learner_id, in_time(before), in_time(after))


def _books(db: Session, learner_id: int, cards: Sequence[str]) -> _ExistingCards:
    moments = collections.defaultdict[tuple[str, int | str], list[int]](list)
    logs = logs_of(db, learner_id, cards)
    for row in in_time(logs):
        if row.rating > 0 or row.act:
            moments[row.card, row.rating or row.act].append(row.at)
    books = _ExistingCards(logs, moments, set(), set(), {})
    connection = db.connection()
    for names in in_parts(cards):
        for table, known in ((MEMORY, books.begun), (ADDED, books.added)):
            mine = (table.c.learner_id == learner_id) & table.c.card.in_(names)
            known.update(connection.scalars(select(table.c.card).where(mine)))
        own = select(OWN.c.card, *OWN_TEXT).where(
            OWN.c.learner_id == learner_id, OWN.c.card.in_(names)
        )
        for card, *words in connection.execute(own):
            books.own[card] = OwnCardText(*words)
    return books


def _rows(
    arrival: ImportedCard,
    learner: LearnerProfile,
    books: _ExistingCards,
    present: tuple[int, collections.Counter[str]],
) -> list[dict[str, Any]]:
    """The rows of the log that a card brings; the others are counted."""
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
            rows[came.at] = _row(arrival, learner, came)
    return list(rows.values())


def _is_over(learner: LearnerProfile, at: int, now: int) -> bool:
    """Whether a card was buried on an earlier study day: Anki lets it go as well."""
    return at < now and learner.study_day(from_milliseconds(at)) < learner.study_day(
        from_milliseconds(now)
    )


def _is_there(times: list[int], at: int) -> bool:
    place = bisect.bisect_left(times, at - _SAME)
    return place < len(times) and times[place] <= at + _SAME


def _row(arrival: ImportedCard, learner: LearnerProfile, came: ImportedReview) -> dict[str, Any]:
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


def _fresh(
    arrivals: Sequence[ImportedCard], books: _ExistingCards, graded: Collection[str]
) -> list[ImportedCard]:
    """Cards that the learner did not have: graded ones of the course, all added."""
    known = books.begun | books.added
    return [
        a
        for a in arrivals
        if a.card not in known and (a.card in graded or is_added_card(a.card) or a.suspended)
    ]


def _add(
    db: Session,
    learner: LearnerProfile,
    fresh: Sequence[ImportedCard],
    moments: tuple[int, Mapping[str, int], int],
) -> int:
    """Write added cards down; those without a grade begin a few on each day.

    A deck of a thousand new cards would otherwise be due today as a whole. `moments`
    are that of now, those of the first grades that came, and how many cards wait.
    Returns how many more do.
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
        rows.append(_added(learner.id, arrival, since))
    if rows:
        db.connection().execute(insert(ADDED), rows)
    return waiting - before


def _added(learner_id: int, arrival: ImportedCard, since: int) -> dict[str, Any]:
    seed = arrival.seed
    if seed is None and parse_card_id(arrival.card)[0] == QUESTION:
        seed = 0
    mine = {"learner_id": learner_id, "card": arrival.card}
    return {**mine, "seed": seed, "declined": False, "at": since}


def _put_words(
    db: Session, learner_id: int, arrivals: Sequence[ImportedCard], books: _ExistingCards, at: int
) -> set[str]:
    """Keep the words of own cards as the file has them; returns those that changed."""
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
    """Cards that were suspended in the file and are new here stay suspended."""
    names = [a.card for a in fresh if a.suspended]
    mine = (ASIDE.c.learner_id == learner_id) & ASIDE.c.card.in_(names)
    aside = set(db.connection().scalars(select(ASIDE.c.card).where(mine)))
    rows = [
        {"learner_id": learner_id, "card": card, "at": at} for card in names if card not in aside
    ]
    if rows:
        db.connection().execute(insert(ASIDE), rows)
