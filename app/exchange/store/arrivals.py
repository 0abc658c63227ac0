"""Cards that came with a file, written into a learner's tables at one stroke."""

import bisect
import collections
import dataclasses
import datetime as dt
import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlmodel import Session

from app.content.added import QUESTION, is_added, origin
from app.db.once import BROUGHT
from app.exchange.items import Unusable
from app.exchange.store.held import ADDED, ASIDE, LOG, OWN, OwnText
from app.exchange.store.memories import remember
from app.learners.current import CurrentLearnerValue
from app.learners.store import MEMORY, rebuild_days
from app.scheduling import Day, new_left
from app.web.clock import milliseconds, moment

MOST_OWN = 50_000
_ANKI_BEGAN = 1_136_073_600_000  # 2006; an earlier moment is no moment of a grade
_SAME = 1000  # ms within which a grade of the same card is the same grade
_LONGEST_LOOK = 10 * 60 * 1000
_ALREADY = "in your log already"
_NO_MOMENT = "in the future, or before there was Anki"
_DAY = 24 * 60 * 60 * 1000
_LATEST = 10 * 366 * _DAY


@dataclasses.dataclass(frozen=True, slots=True)
class Came:
    """A grade in a file: its moment in ms, 1..4, and the milliseconds it took."""

    at: int
    rating: int
    time: int


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """A card that came with a file, by its name with us.

    `origin` names it in the file for ever; `own` are the words of a card of the
    learner's own; `retention`, `seed` and `since` are none where the file is silent.
    """

    card: str
    note: str
    topic: str
    origin: str
    log: tuple[Came, ...] = ()
    own: OwnText | None = None
    suspended: bool = False
    retention: float | None = None
    seed: int | None = None
    since: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How many cards are new, changed or as they were; grades carried and left out."""

    new: int
    changed: int
    same: int
    grades: int
    left: Mapping[str, int]


@dataclasses.dataclass(slots=True)
class _Books:
    """What a learner had before: the moments of grades, cards, words."""

    moments: dict[tuple[str, int], list[int]]
    begun: set[str]
    added: set[str]
    own: dict[str, OwnText]


def take_in(
    db: Session,
    learner: CurrentLearnerValue,
    arrivals: Sequence[Arrival],
    now: dt.datetime,
    most: int = MOST_OWN,
) -> Outcome:
    """Write everything that is new, then make memory and days again.

    The same file taken in again changes nothing. Raises Unusable, before anything is
    written, when the learner would have more than `most` cards of their own.
    """
    books = _books(db, learner.id)
    if len(books.own.keys() | {a.card for a in arrivals if a.own}) > most:
        raise Unusable(f"You would have more than {most:,} cards of your own.")
    left: collections.Counter[str] = collections.Counter()
    rows = [
        row
        for arrival in arrivals
        for row in _rows(arrival, learner, books, (milliseconds(now), left))
    ]
    if rows:
        db.connection().execute(insert(LOG), rows)
    graded = {row["card"]: int(row["at"]) for row in reversed(rows)}
    fresh = _fresh(arrivals, books, graded)
    _add(db, learner, fresh, (milliseconds(now), graded))
    worded = _put_words(db, learner.id, arrivals, books, milliseconds(now))
    _put_aside(db, learner.id, fresh, milliseconds(now))
    remember(db, learner.id, {a.card: a for a in arrivals}, graded)
    rebuild_days(db, learner.id)
    new = {a.card for a in fresh}
    changed = ({*graded} | worded) - new
    same = len({a.card for a in arrivals} - new - changed)
    return Outcome(len(new), len(changed), same, len(rows), left)


def _books(db: Session, learner_id: int) -> _Books:
    connection = db.connection()
    moments: dict[tuple[str, int], list[int]] = collections.defaultdict(list)
    log = select(LOG.c.card, LOG.c.rating, LOG.c.at).where(
        LOG.c.learner_id == learner_id, LOG.c.rating > 0
    )
    for card, rating, at in connection.execute(log):
        moments[card, rating].append(at)
    for times in moments.values():
        times.sort()
    begun = connection.execute(
        select(MEMORY.c.card).where(MEMORY.c.learner_id == learner_id)
    )
    added = connection.execute(
        select(ADDED.c.card).where(ADDED.c.learner_id == learner_id)
    )
    own = connection.execute(
        select(OWN.c.card, OWN.c.deck, OWN.c.front, OWN.c.back).where(
            OWN.c.learner_id == learner_id
        )
    )
    return _Books(
        moments,
        set(begun.scalars()),
        set(added.scalars()),
        {row.card: OwnText(row.deck, row.front, row.back) for row in own},
    )


def _rows(
    arrival: Arrival,
    learner: CurrentLearnerValue,
    books: _Books,
    present: tuple[int, collections.Counter[str]],
) -> list[dict[str, Any]]:
    """The rows of the log that a card brings; the others are counted."""
    now, left = present
    rows = {}
    for came in arrival.log:
        times = books.moments.get((arrival.card, came.rating), [])
        if not _ANKI_BEGAN < came.at <= now:
            left[_NO_MOMENT] += 1
        elif came.at in rows or _is_there(times, came.at):
            left[_ALREADY] += 1
        else:
            rows[came.at] = _row(arrival, learner, came)
    return list(rows.values())


def _is_there(times: list[int], at: int) -> bool:
    place = bisect.bisect_left(times, at - _SAME)
    return place < len(times) and times[place] <= at + _SAME


def _row(arrival: Arrival, learner: CurrentLearnerValue, came: Came) -> dict[str, Any]:
    words = f"{learner.id}\0{arrival.origin}\0{came.at}\0{came.rating}"
    took = came.time if 0 < came.time <= _LONGEST_LOOK else None
    return {
        "learner_id": learner.id,
        "token": BROUGHT + hashlib.sha256(words.encode()).hexdigest()[:48],
        "card": arrival.card,
        "rating": came.rating,
        "retention": arrival.retention or learner.retention,
        "milliseconds": took,
        "study_day": learner.study_day(moment(came.at)).isoformat(),
        "at": came.at,
    }


def _fresh(
    arrivals: Sequence[Arrival], books: _Books, graded: Collection[str]
) -> list[Arrival]:
    """Cards that the learner did not have: graded ones of the course, all added."""
    known = books.begun | books.added
    return [
        a
        for a in arrivals
        if a.card not in known and (a.card in graded or is_added(a.card) or a.suspended)
    ]


def _add(
    db: Session,
    learner: CurrentLearnerValue,
    fresh: Sequence[Arrival],
    moments: tuple[int, Mapping[str, int]],
) -> None:
    """Write added cards down; those without a grade begin a few on each day.

    A deck of a thousand new cards would otherwise be due today as a whole. `moments`
    are that of now, and those of the first grades that came.
    """
    a_day = max(1, new_left(learner.minutes_a_day, Day(0, 0, 0)))
    now, graded = moments
    rows = []
    waiting = 0
    for arrival in fresh:
        if not is_added(arrival.card):
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


def _added(learner_id: int, arrival: Arrival, since: int) -> dict[str, Any]:
    seed = arrival.seed
    if seed is None and origin(arrival.card)[0] == QUESTION:
        seed = 0
    mine = {"learner_id": learner_id, "card": arrival.card}
    return {**mine, "seed": seed, "declined": False, "at": since}


def _put_words(
    db: Session, learner_id: int, arrivals: Sequence[Arrival], books: _Books, at: int
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
    return changed


def _put_aside(db: Session, learner_id: int, fresh: Sequence[Arrival], at: int) -> None:
    """Cards that were suspended in the file and are new here stay suspended."""
    aside = set(
        db.connection()
        .execute(select(ASIDE.c.card).where(ASIDE.c.learner_id == learner_id))
        .scalars()
    )
    rows = [
        {"learner_id": learner_id, "card": a.card, "at": at}
        for a in fresh
        if a.suspended and a.card not in aside
    ]
    if rows:
        db.connection().execute(insert(ASIDE), rows)
