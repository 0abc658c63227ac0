"""The log of reviews, and the memory that is made of it and can be made again."""

import dataclasses
import datetime as dt
import hashlib
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlmodel import Session, SQLModel

from app.content.model import Card
from app.db.once import insert_once
from app.db.tables import Review, Suspension
from app.flashcards.store.tally import chance_of, count, uncount
from app.scheduling import Grade, Standing, after, replay
from app.web.clock import milliseconds, moment

# Statements are made once, and of tables instead of classes: making one costs more
# than running it, and no row becomes an object with a history.
MEMORY = SQLModel.metadata.tables["memory"]
LOG = SQLModel.metadata.tables["review"]
ASIDE = SQLModel.metadata.tables["suspension"]

STANDING = tuple(
    MEMORY.c[name]
    for name in (
        "state",
        "step",
        "stability",
        "difficulty",
        "due_day",
        "due_at",
        "first_day",
        "last_day",
        "last_at",
        "reviews",
        "lapses",
    )
)
_MINE = (
    MEMORY.c.learner_id == bindparam("of_learner"),
    MEMORY.c.card == bindparam("of_card"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """A card as the learner holds it: `standing` None before the first review.

    `turns` counts the rows of the log about it; `known` says that it has a memory
    row, `suspended` that it was put aside.
    """

    card: str
    standing: Standing | None = None
    turns: int = 0
    known: bool = False
    suspended: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Sent:
    """What came with a grade: the token of its form, and the time it took."""

    token: str
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """A grade that was written down: its number, and what it led to."""

    number: int
    standing: Standing
    lapsed: bool


_TURNS = select(func.count()).where(
    LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card")
)
# One question for both: the log is counted only where there is no memory.
_one = select(literal(1).label("one")).subquery()
_FIND = select(
    *STANDING,
    func.coalesce(MEMORY.c.turns, _TURNS.scalar_subquery()).label("turns"),
    MEMORY.c.suspended,
).select_from(_one.outerjoin(MEMORY, and_(*_MINE)))


def find(db: Session, learner_id: int, card: str) -> Held:
    """The card as this learner holds it."""
    row = db.connection().execute(_FIND, _of(learner_id, card)).one()
    if row.state is None:
        return Held(card, turns=row.turns)
    return Held(card, standing_of(row), row.turns, True, row.suspended)


def unseen(db: Session, learner_id: int, card: str) -> Held:
    """A card that has no memory; grades that were all undone may be in its log."""
    if not learner_id:
        return Held(card)
    turns = db.connection().execute(_TURNS, _of(learner_id, card)).scalar()
    return Held(card, turns=turns or 0)


def record(
    db: Session, learner_id: int, card: Card, grade: Grade, sent: Sent
) -> Recorded | None:
    """Write a grade down once; None when this token was used before."""
    held = find(db, learner_id, card.id)
    number = insert_once(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": token_of(learner_id, card.id, sent.token),
            "card": card.id,
            "rating": grade.rating,
            "retention": grade.retention,
            "recall": chance_of(held.standing, grade.day),
            "milliseconds": sent.milliseconds,
            "study_day": grade.day.isoformat(),
            "at": milliseconds(grade.at),
        },
    )
    if number is None:
        return None
    standing = after(held.standing, grade, card.id)
    values = {**_columns(standing), "turns": held.turns + 1}
    if held.known:
        _change(db, learner_id, card.id, values)
    else:
        _add(db, learner_id, card, values)
    count(db, learner_id, held.standing, grade, sent.milliseconds)
    before = held.standing.lapses if held.standing else 0
    return Recorded(number, standing, lapsed=standing.lapses > before)


_other = LOG.alias()
_NEWEST = (
    select(LOG.c.id, LOG.c.card, LOG.c.study_day)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.rating > 0)
    .where(~select(_other.c.id).where(_other.c.voids == LOG.c.id).exists())
    .order_by(LOG.c.id.desc())
    .limit(1)
)


def newest(
    db: Session, learner_id: int, day: dt.date | None = None
) -> tuple[int, str] | None:
    """The last grade that still stands: (number, card); of `day` alone if given."""
    row = db.connection().execute(_NEWEST, {"of_learner": learner_id}).first()
    if row is None or (day is not None and row.study_day != day.isoformat()):
        return None
    return row.id, row.card


def undo(
    db: Session, learner_id: int, number: int, when: tuple[dt.datetime, dt.date]
) -> str | None:
    """Undo the last grade, if it is still `number`; returns its card.

    The grade stays in the log and is pointed at by a row that voids it; undoing the
    same grade again changes nothing.
    """
    last = newest(db, learner_id)
    if last is None or last[0] != number:
        return None
    now, day = when
    done = insert_once(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": token_of(learner_id, "undo", str(number)),
            "card": last[1],
            "rating": 0,
            "voids": number,
            "study_day": day.isoformat(),
            "at": milliseconds(now),
        },
    )
    standing = _replay(db, learner_id, last[1])
    if done is not None:
        uncount(db, learner_id, number, standing)
    return last[1]


_TAKE_UP = delete(ASIDE).where(
    ASIDE.c.learner_id == bindparam("of_learner"), ASIDE.c.card == bindparam("of_card")
)


def suspend(
    db: Session, learner_id: int, card: Card, now: dt.datetime, *, aside: bool
) -> None:
    """Put a card aside, or take it up again where it stood."""
    held = find(db, learner_id, card.id)
    db.connection().execute(_TAKE_UP, _of(learner_id, card.id))
    if aside:
        row = {"learner_id": learner_id, "card": card.id, "at": milliseconds(now)}
        insert_once(db, Suspension, row)
    if held.known and (held.standing is not None or aside):
        _change(db, learner_id, card.id, {"suspended": aside})
    elif held.known:
        _forget(db, learner_id, card.id)
    elif aside:
        _add(db, learner_id, card, {**_NEW, "turns": held.turns, "suspended": True})


def suspended(db: Session, learner_id: int) -> tuple[str, ...]:
    """The cards put aside, the newest first."""
    rows = db.connection().execute(
        select(ASIDE.c.card)
        .where(ASIDE.c.learner_id == learner_id)
        .order_by(ASIDE.c.id.desc())
    )
    return tuple(rows.scalars())


def rebuild(db: Session, learner_id: int, cards: Mapping[str, Card]) -> None:
    """Make the whole memory of a learner again from the log."""
    connection = db.connection()
    connection.execute(delete(MEMORY).where(MEMORY.c.learner_id == learner_id))
    aside = set(suspended(db, learner_id))
    rows = connection.execute(
        select(*_LOGGED)
        .where(LOG.c.learner_id == learner_id)
        .order_by(LOG.c.card, LOG.c.id)
    )
    log = {
        card: list(group) for card, group in itertools.groupby(rows, lambda r: r.card)
    }
    for card in {**log, **dict.fromkeys(aside)}:
        _refill(db, learner_id, card, log.get(card, []), (cards, card in aside))


def token_of(learner_id: int, *parts: str) -> str:
    """A form's token as it is kept: of its own for each learner and card."""
    words = "\0".join((str(learner_id), *parts))
    return hashlib.sha256(words.encode()).hexdigest()


def standing_of(row: Any) -> Standing | None:
    """The standing in a row that begins with the columns of STANDING."""
    state, step, stability, difficulty, due_day, due_at, first, last, at = row[:9]
    if state == "new":
        return None
    day = dt.date.fromisoformat
    return Standing(
        state=state,
        step=step,
        stability=stability,
        difficulty=difficulty,
        due_day=day(due_day),
        due_at=moment(due_at),
        first_day=day(first),
        last_day=day(last),
        last_at=moment(at),
        reviews=row[9],
        lapses=row[10],
    )


_LOGGED = tuple(
    LOG.c[name]
    for name in ("id", "card", "rating", "voids", "at", "study_day", "retention")
)
_NEW: Mapping[str, Any] = {"state": "new", "due_day": "9999-12-31", "due_at": 0}


def _of(learner_id: int, card: str) -> dict[str, Any]:
    return {"of_learner": learner_id, "of_card": card}


def _columns(standing: Standing) -> dict[str, Any]:
    return {
        "state": standing.state,
        "step": standing.step,
        "stability": standing.stability,
        "difficulty": standing.difficulty,
        "due_day": standing.due_day.isoformat(),
        "due_at": milliseconds(standing.due_at),
        "first_day": standing.first_day.isoformat(),
        "last_day": standing.last_day.isoformat(),
        "last_at": milliseconds(standing.last_at),
        "reviews": standing.reviews,
        "lapses": standing.lapses,
    }


_CHANGE = update(MEMORY).where(*_MINE)
_ADD = insert(MEMORY)
_FORGET = delete(MEMORY).where(*_MINE)


def _change(db: Session, learner_id: int, card: str, values: Mapping[str, Any]) -> None:
    db.connection().execute(_CHANGE, {**_of(learner_id, card), **values})


def _add(db: Session, learner_id: int, card: Card, values: Mapping[str, Any]) -> None:
    own = {"learner_id": learner_id, "card": card.id, "topic": card.topic}
    note = min(card.id, card.sibling) if card.sibling else card.id
    db.connection().execute(_ADD, {**own, "note": note, **values})


def _forget(db: Session, learner_id: int, card: str) -> None:
    db.connection().execute(_FORGET, _of(learner_id, card))


def _replay(db: Session, learner_id: int, card: str) -> Standing | None:
    """Make the memory of one card again after its log has changed."""
    rows = (
        db.connection()
        .execute(
            select(*_LOGGED)
            .where(LOG.c.learner_id == learner_id, LOG.c.card == card)
            .order_by(LOG.c.id)
        )
        .all()
    )
    standing = replay(_grades(rows), card)
    if standing is not None:
        values = {**_columns(standing), "turns": len(rows)}
        _change(db, learner_id, card, values)
    elif find(db, learner_id, card).suspended:
        empty = dict.fromkeys(("step", "stability", "difficulty", "last_at"))
        blank = {"first_day": "", "last_day": "", "reviews": 0, "lapses": 0}
        _change(db, learner_id, card, {**_NEW, **empty, **blank, "turns": len(rows)})
    else:
        _forget(db, learner_id, card)
    return standing


def _refill(
    db: Session,
    learner_id: int,
    card: str,
    rows: list[Row[Any]],
    course: tuple[Mapping[str, Card], bool],
) -> None:
    cards, aside = course
    standing = replay(_grades(rows), card)
    if standing is None and not aside:
        return
    values = {
        **(_columns(standing) if standing else _NEW),
        "turns": len(rows),
        "suspended": aside,
    }
    known = cards.get(card)
    if known is not None:
        _add(db, learner_id, known, values)
    else:  # a card that left the course keeps what was learned of it
        own = {"learner_id": learner_id, "card": card, "note": card, "topic": ""}
        db.connection().execute(_ADD, {**own, **values})


def _grades(rows: Iterable[Row[Any]]) -> list[Grade]:
    """The grades that stand, in order."""
    log = list(rows)
    undone = {row.voids for row in log if row.voids}
    return [
        Grade(
            rating=row.rating,
            at=moment(row.at),
            day=dt.date.fromisoformat(row.study_day),
            retention=row.retention,
        )
        for row in log
        if row.rating and row.id not in undone
    ]
