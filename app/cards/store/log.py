"""The log of reviews, and the memory that is made of it and can be made again."""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    Row,
    and_,
    bindparam,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlmodel import Session

from app.cards.names import is_added_card
from app.cards.store.additions import decline
from app.cards.store.memory import MEMORY, STANDING, blank, card_state_from_row, columns
from app.cards.store.memory_rows import (
    MINE,
    add,
    change,
    forget,
    of,
)
from app.cards.store.replaying import beginning_of, remembered, replay_card
from app.cards.store.tally import count, retrievability_before, uncount
from app.content.model import Flashcard
from app.db.insert_once import BROUGHT, insert_if_absent
from app.db.quotas import CARD_LOG
from app.db.tables import TABLES, Review, Suspension
from app.scheduling import CardState, ReviewEvent, apply_review
from app.web.clock import to_milliseconds

LOG = TABLES["review"]
ASIDE = TABLES["suspension"]
LEARNER = TABLES["learner"]
# Grades count in the order in which they were given: a file may bring older ones.
IN_TIME = (LOG.c.at, LOG.c.id)


@dataclasses.dataclass(frozen=True, slots=True)
class CardRecord:
    """A card as the learner holds it: `standing` None before the first review.

    `turns` counts the rows of the log about it; `known` says that it has a memory
    row, `suspended` that it was put aside.
    """

    card: str
    standing: CardState | None = None
    turns: int = 0
    known: bool = False
    suspended: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class GradeSubmission:
    """What came with a grade: the token of its form, and the time it took."""

    token: str
    milliseconds: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedReview:
    """A grade that was written down: its number, and what it led to."""

    number: int
    standing: CardState
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
).select_from(_one.outerjoin(MEMORY, and_(*MINE)))
_COUNT_TURNS = _TURNS


def load_card(db: Session, learner_id: int, card: str) -> CardRecord:
    """The card as this learner holds it."""
    row = db.connection().execute(_FIND, of(learner_id, card)).one()
    if row.state is None:
        return CardRecord(card, turns=row.turns)
    return CardRecord(card, card_state_from_row(row), row.turns, True, row.suspended)


def unseen(db: Session, learner_id: int, card: str) -> CardRecord:
    """A card that has no memory; grades that were all undone may be in its log."""
    if not learner_id:
        return CardRecord(card)
    turns = db.connection().execute(_COUNT_TURNS, of(learner_id, card)).one()[0]
    return CardRecord(card, turns=turns)


_RATING = select(LOG.c.rating).where(LOG.c.token == bindparam("of_token"))


def find_rating(db: Session, learner_id: int, card: str, token: str) -> int:
    """The grade that this showing of a card has already; 0 where it has none."""
    kept = token_of(learner_id, card, token)
    return db.connection().execute(_RATING, {"of_token": kept}).scalar() or 0


def record_review(
    db: Session, learner_id: int, card: Flashcard, grade: ReviewEvent, sent: GradeSubmission
) -> RecordedReview | None:
    """Write a grade down once; None when this token was used before.

    Raises Conflict where the log of the card is full.
    """
    held = load_card(db, learner_id, card.id)
    number = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": token_of(learner_id, card.id, sent.token),
            "card": card.id,
            "rating": grade.rating,
            "retention": grade.retention,
            "recall": retrievability_before(held.standing, grade.day),
            "milliseconds": sent.milliseconds,
            "study_day": grade.day.isoformat(),
            "at": to_milliseconds(grade.at),
        },
    )
    if number is None:
        return None
    CARD_LOG.check(held.turns + 1)
    standing = apply_review(held.standing, grade, card.id)
    if held.standing is not None and grade.at < held.standing.last_at:
        # The clock was set back: the grade takes its place in the order of the log.
        standing = rebuild_card_state(db, learner_id, card) or standing
    values = {**columns(standing), "turns": held.turns + 1}
    _keep(db, learner_id, card, values, known=held.known)
    count(db, learner_id, held.standing, grade, sent.milliseconds)
    lapsed = standing.lapses > (held.standing.lapses if held.standing else 0)
    return RecordedReview(number, standing, lapsed=lapsed)


def _keep(
    db: Session, learner_id: int, card: Flashcard, values: Mapping[str, Any], *, known: bool
) -> None:
    if known:
        change(db, learner_id, card.id, values)
    else:
        add(db, learner_id, card, values)


_other = LOG.alias()
_NEWEST = (
    select(LOG.c.id, LOG.c.card, LOG.c.study_day, LOG.c.rating)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.voids.is_(None))
    .where((LOG.c.rating > 0) | (LOG.c.act != ""))
    .where(LOG.c.token.not_like(f"{BROUGHT}%"))
    .where(~select(_other.c.id).where(_other.c.voids == LOG.c.id).exists())
    .order_by(LOG.c.id.desc())
    .limit(1)
)


def last_undoable(
    db: Session, learner_id: int, day: dt.date | None = None
) -> tuple[int, str] | None:
    """The last grade or act that was given here and still stands: (number, card).

    Of `day` alone if given. What came with a file was given elsewhere.
    """
    row = _newest(db, learner_id)
    if row is None or (day is not None and row.study_day != day.isoformat()):
        return None
    return row.id, row.card


def _newest(db: Session, learner_id: int) -> Row[Any, Any, Any, Any] | None:
    return db.connection().execute(_NEWEST, {"of_learner": learner_id}).first()


def undo_review(
    db: Session,
    learner_id: int,
    number: int,
    when: tuple[dt.datetime, dt.date],
    cards: Mapping[str, Flashcard] = MappingProxyType({}),
) -> str | None:
    """Undo the last grade or act, if it is still `number`; returns its card.

    It stays in the log and is pointed at by a row that voids it; undoing the same
    again changes nothing. `cards` of the course are those that may have to be
    remembered again.
    """
    last = _newest(db, learner_id)
    if last is None or last.id != number:
        return None
    now, day = when
    graded = last.rating > 0
    done = insert_if_absent(
        db,
        Review,
        {
            "learner_id": learner_id,
            "token": token_of(learner_id, "undo", str(number)),
            "card": last.card,
            "rating": 0,
            "voids": number,
            "study_day": day.isoformat(),
            "at": to_milliseconds(now),
            "act": "" if graded else "undo",
        },
    )
    card: str = last.card
    standing = rebuild_card_state(db, learner_id, cards.get(card, card))
    if done is not None and graded:
        uncount(db, learner_id, number, standing)
    elif done is not None:
        bump_manual_edits(db, learner_id)
    return card


_ACTED = (
    update(LEARNER).where(LEARNER.c.id == bindparam("of_learner")).values(acts=LEARNER.c.acts + 1)
)


def bump_manual_edits(db: Session, learner_id: int) -> None:
    """Note that something was set by hand: the plan of the day is made anew."""
    db.connection().execute(_ACTED, {"of_learner": learner_id})


_TAKE_UP = delete(ASIDE).where(
    ASIDE.c.learner_id == bindparam("of_learner"), ASIDE.c.card == bindparam("of_card")
)


def set_suspended(
    db: Session, learner_id: int, card: Flashcard, now: dt.datetime, *, aside: bool
) -> None:
    """Put a card aside, or take it up again where it stood."""
    if is_added_card(card.id) and not aside:
        decline(db, learner_id, card.id, declined=False)
        return
    held = load_card(db, learner_id, card.id)
    db.connection().execute(_TAKE_UP, of(learner_id, card.id))
    if aside:
        row = {"learner_id": learner_id, "card": card.id, "at": to_milliseconds(now)}
        insert_if_absent(db, Suspension, row)
    if held.known and (held.standing is not None or aside):
        change(db, learner_id, card.id, {"suspended": aside})
    elif held.known:
        rebuild_card_state(db, learner_id, card, aside=False)
    elif aside:
        add(
            db,
            learner_id,
            card,
            {**blank(None), "turns": held.turns, "suspended": True},
        )


def suspended(db: Session, learner_id: int) -> tuple[str, ...]:
    """The cards put aside, the newest first."""
    rows = db.connection().execute(
        select(ASIDE.c.card).where(ASIDE.c.learner_id == learner_id).order_by(ASIDE.c.id.desc())
    )
    return tuple(rows.scalars())


def token_of(learner_id: int, *parts: str) -> str:
    """A form's token as it is kept: of its own for each learner and card."""
    words = "\0".join((str(learner_id), *parts))
    return hashlib.sha256(words.encode()).hexdigest()


LOGGED = tuple(
    LOG.c[name]
    for name in (
        "id",
        "card",
        "rating",
        "voids",
        "at",
        "study_day",
        "retention",
        "act",
        "until_day",
    )
)
_ALL = (
    select(*LOGGED)
    .where(LOG.c.learner_id == bindparam("of_learner"), LOG.c.card == bindparam("of_card"))
    .order_by(*IN_TIME)
)


def rebuild_card_state(
    db: Session, learner_id: int, card: Flashcard | str, *, aside: bool | None = None
) -> CardState | None:
    """Make the memory of one card again after its log has changed.

    `aside` says whether it is put aside, where that has changed as well.
    """
    name = card if isinstance(card, str) else card.id
    rows = db.connection().execute(_ALL, of(learner_id, name)).all()
    begin = beginning_of(db, learner_id, name) if is_added_card(name) else None
    now = replay_card(name, rows, begin)
    held = load_card(db, learner_id, name)
    away = held.suspended if aside is None else aside
    values = remembered(now, len(rows), begin, aside=away)
    if values is None:
        forget(db, learner_id, name)
    elif held.known:
        change(db, learner_id, name, values)
    else:
        add(db, learner_id, card, values)
    return now.standing
