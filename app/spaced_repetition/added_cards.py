"""SQL: cards beside the course's decks (missed questions, terms, the learner's own).

An added card has a row of its own and a memory in state new, so that the queue finds
it like any other. One that is declined keeps both and is asked no more.
"""

import base64
import dataclasses
import datetime as dt
import functools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import unescape
from typing import Any

from sqlalchemy import Insert, String, and_, bindparam, case, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import insert_if_absent
from app.database.quotas import OWN_CARDS, check_quota
from app.database.tables import TABLES, OwnCard, OwnPicture
from app.questions.question_type import CardFaces
from app.questions.result import fold_text
from app.spaced_repetition.card_ids import LONGEST_FACE, QUESTION, parse_card_id, question_card_id
from app.spaced_repetition.card_rows import MEMORY, blank
from app.web.formatting import format_date_with_year

ADDED = TABLES["added_card"]
ASIDE = TABLES["suspension"]


@dataclasses.dataclass(frozen=True, slots=True)
class CardToAdd:
    """A card to be added; `seed` chose the numbers of a question that was missed."""

    card: str
    topic: str = ""
    seed: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardRecord:
    """An added card as it lies in the tables.

    `since` is the moment of the first reason for it after its last answer; `due` the
    study day from which it is asked, None where it has no memory; `aside` says that it
    is not asked, be it put aside or declined. `state` and `lapses` are those of its
    memory.
    """

    card: str
    seed: int | None
    declined: bool
    since: dt.datetime
    due: dt.date | None
    aside: bool
    state: str
    lapses: int


def due_day(card: str, day: dt.date) -> dt.date:
    """The study day on which a card added on `day` is first asked.

    A question that was missed was just explained, so it comes back the day after.
    """
    return day + dt.timedelta(days=parse_card_id(card)[0] == QUESTION)


def add_cards(
    db: Session,
    learner_id: int,
    wanted: Collection[CardToAdd],
    day: dt.date,
    now: dt.datetime,
) -> frozenset[str]:
    """Add cards; returns those that were not there before, declined ones included.

    Two statements, however many cards.
    """
    if not wanted:
        return frozenset()
    into_added, into_memory = _inserts(db.connection().dialect.name)
    rows = [
        {"learner_id": learner_id, "card": w.card, "seed": w.seed, "declined": False}
        | {"at": to_milliseconds(now)}
        for w in wanted
    ]
    added = frozenset(db.connection().execute(into_added, rows).scalars())
    fresh = [
        {
            "learner_id": learner_id,
            "card": w.card,
            "note": w.card,
            "topic": w.topic,
            **blank(due_day(w.card, day)),
        }
        for w in wanted
        if w.card in added
    ]
    if fresh:
        db.connection().execute(into_memory, fresh)
    return added


def readd_missed_questions(
    db: Session,
    learner_id: int,
    missed: Collection[CardToAdd],
    day: dt.date,
    now: dt.datetime,
) -> None:
    """Let questions that were missed come back tomorrow, unless they were declined.

    One that is studied already and was missed again comes back tomorrow too, with the
    numbers of now.
    """
    added = add_cards(db, learner_id, missed, day, now)
    again = [w for w in missed if w.card not in added]
    if not again:
        return
    rows = [
        {"of_learner": learner_id, "of_card": w.card, "numbers": w.seed}
        | {"now": to_milliseconds(now)}
        for w in again
    ]
    db.connection().execute(_MISSED_AGAIN, rows)
    values = {
        "of_learner": learner_id,
        "cards": [w.card for w in again],
        "tomorrow": due_day(again[0].card, day).isoformat(),
    }
    db.connection().execute(_SOONER, values)


def decline(db: Session, learner_id: int, card: str, *, declined: bool) -> bool:
    """Leave an added card out, or bring it back; False where it was never added."""
    connection = db.connection()
    mine = {"of_learner": learner_id, "of_card": card}
    done = connection.execute(_DECLINE, {**mine, "declined": declined})
    if not done.rowcount:
        return False
    connection.execute(_TAKE_UP, mine)
    connection.execute(_HOLD, {**mine, "suspended": declined})
    return True


def added_cards(db: Session, learner_id: int, cards: Sequence[str]) -> dict[str, AddedCardRecord]:
    """Those of `cards` that were ever added by this learner."""
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": list(cards)}
    rows = db.connection().execute(_AMONG, values)
    return {row.card: _added(row) for row in rows}


def added_page(db: Session, learner_id: int, *, most: int, after: int) -> list[AddedCardRecord]:
    """Every added card, the newest first: `most` of them, behind the first `after`."""
    if not learner_id:
        return []
    statement = _ALL.order_by(ADDED.c.id.desc()).limit(most).offset(after)
    return [_added(r) for r in db.connection().execute(statement, _of(learner_id))]


def added_count(db: Session, learner_id: int) -> int:
    """How many cards were ever added."""
    if not learner_id:
        return 0
    return db.connection().execute(_COUNT, _of(learner_id)).scalar() or 0


def studied(db: Session, learner_id: int, kind: str) -> frozenset[str]:
    """The cards of a kind that were added and not declined."""
    if not learner_id:
        return frozenset()
    values = {"of_learner": learner_id, "begin": f"{kind}:"}
    return frozenset(db.connection().execute(_STUDIED, values).scalars())


_MINE = (
    ADDED.c.learner_id == bindparam("of_learner"),
    ADDED.c.card == bindparam("of_card"),
)
_KEPT = (ADDED.c.learner_id == bindparam("of_learner"), ADDED.c.declined.is_(False))
_waiting = (
    select(MEMORY.c.last_at)
    .where(MEMORY.c.learner_id == ADDED.c.learner_id, MEMORY.c.card == ADDED.c.card)
    .where(MEMORY.c.last_at < ADDED.c.at)
    .exists()
)
# A card that waits since an earlier miss keeps the moment of it, and the day it comes.
_MISSED_AGAIN = (
    update(ADDED)
    .where(*_MINE, ADDED.c.declined.is_(False))
    .values(
        seed=bindparam("numbers"),
        at=case((_waiting, ADDED.c.at), else_=bindparam("now")),
    )
)
_SOONER = (
    update(MEMORY)
    .where(
        MEMORY.c.learner_id == bindparam("of_learner"),
        (MEMORY.c.due_day > bindparam("tomorrow")) | (MEMORY.c.state == "new"),
        MEMORY.c.card.in_(
            select(ADDED.c.card).where(*_KEPT, ADDED.c.card.in_(bindparam("cards", expanding=True)))
        ),
    )
    .values(due_day=bindparam("tomorrow"), set_day="")
)
_DECLINE = update(ADDED).where(*_MINE)
_TAKE_UP = delete(ASIDE).where(
    ASIDE.c.learner_id == bindparam("of_learner"), ASIDE.c.card == bindparam("of_card")
)
_HOLD = update(MEMORY).where(
    MEMORY.c.learner_id == bindparam("of_learner"),
    MEMORY.c.card == bindparam("of_card"),
)
_ALL = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.declined,
        ADDED.c.at,
        MEMORY.c.due_day,
        MEMORY.c.suspended,
        MEMORY.c.state,
        MEMORY.c.lapses,
    )
    .select_from(
        ADDED.outerjoin(
            MEMORY,
            (MEMORY.c.learner_id == ADDED.c.learner_id) & (MEMORY.c.card == ADDED.c.card),
        )
    )
    .where(ADDED.c.learner_id == bindparam("of_learner"))
)
_COUNT = select(func.count()).where(ADDED.c.learner_id == bindparam("of_learner"))
_AMONG = _ALL.where(ADDED.c.card.in_(bindparam("cards", expanding=True)))
_begin: Any = bindparam("begin", type_=String)
_STUDIED = select(ADDED.c.card).where(
    # Not by < and >, for PostgreSQL compares words as its locale says.
    *_KEPT,
    func.substr(ADDED.c.card, 1, func.length(_begin)) == _begin,
)


def _of(learner_id: int) -> Mapping[str, Any]:
    return {"of_learner": learner_id}


def _added(row: Any) -> AddedCardRecord:
    return AddedCardRecord(
        card=row.card,
        seed=row.seed,
        declined=row.declined,
        since=from_milliseconds(row.at),
        due=dt.date.fromisoformat(row.due_day) if row.due_day else None,
        aside=row.declined or bool(row.suspended),
        state=row.state or "new",
        lapses=row.lapses or 0,
    )


@functools.cache
def _inserts(dialect: str) -> tuple[Any, Insert]:
    # Built once: making a statement costs more than running it.
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    into_added = insert(ADDED).on_conflict_do_nothing().returning(ADDED.c.card)
    return into_added, insert(MEMORY).on_conflict_do_nothing()


@dataclasses.dataclass(frozen=True, slots=True)
class MissedQuestionCard:
    """A question among the learner's cards; `due` is a study day, `day` today's.

    `declined` says that it was left out, `aside` that its card was put aside.
    """

    card: str
    due: dt.date
    day: dt.date
    declined: bool
    aside: bool

    @property
    def item(self) -> str:
        """The question."""
        return parse_card_id(self.card)[1]

    @property
    def when(self) -> str:
        """The day in words."""
        days = (self.due - self.day).days
        if days <= 0:
            return "today"
        return "tomorrow" if days == 1 else f"on {format_date_with_year(self.due)}"


def comeback_of(db: Session, learner_id: int, item: str, day: dt.date) -> MissedQuestionCard | None:
    """Whether a question comes back to a learner; None where it was never missed."""
    card = question_card_id(item)
    added = added_cards(db, learner_id, [card]).get(card)
    if added is None:
        return None
    aside = added.aside and not added.declined
    return MissedQuestionCard(card, added.due or day, day, added.declined, aside)


OWN = TABLES["own_card"]
SITTING = TABLES["sitting"]


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardDetails:
    """What is kept of an added card.

    `own` is deck, front and back of a card of one's own; `sat` says that its question
    is on the paper of a mock exam that is being sat.
    """

    card: str
    seed: int
    since: dt.datetime
    own: tuple[str, str, str] | None
    sat: bool


_ADDED_CARDS_KEPT = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.at,
        OWN.c.deck,
        # Longer sides were kept before there was a limit; one more character says so.
        func.substr(OWN.c.front, 1, LONGEST_FACE + 1).label("front"),
        func.substr(OWN.c.back, 1, LONGEST_FACE + 1).label("back"),
        SITTING.c.paper,
    )
    .select_from(
        ADDED.outerjoin(
            OWN,
            and_(OWN.c.learner_id == ADDED.c.learner_id, OWN.c.card == ADDED.c.card),
        ).outerjoin(
            SITTING,
            and_(
                SITTING.c.learner_id == ADDED.c.learner_id,
                SITTING.c.closed_at.is_(None),
                SITTING.c.deadline_at > bindparam("now"),
            ),
        )
    )
    .where(
        ADDED.c.learner_id == bindparam("of_learner"),
        ADDED.c.card.in_(bindparam("cards", expanding=True)),
    )
)


def kept(
    db: Session, learner_id: int, cards: Collection[str], now: dt.datetime
) -> dict[str, AddedCardDetails]:
    """Those of `cards` that the learner ever added, declined or not: one question."""
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": [*cards], "now": to_milliseconds(now)}
    found: dict[str, AddedCardDetails] = {}
    for row in db.connection().execute(_ADDED_CARDS_KEPT, values):
        own = (row.deck, row.front, row.back) if row.front is not None else None
        sat = row.paper is not None and _asks(row.paper, row.card)
        sat = sat or (row.card in found and found[row.card].sat)
        found[row.card] = AddedCardDetails(
            row.card, row.seed or 0, from_milliseconds(row.at), own, sat
        )
    return found


def _asks(paper: str, card: str) -> bool:
    """Whether a paper, as it is kept, holds the question of a card."""
    return any(question_card_id(slot[1]) == card for slot in json.loads(paper))


DECK = "My cards"


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardContent:
    """A card of one's own; `source` is empty for one that came with a file."""

    faces: CardFaces
    source: str


def find_own(db: Session, learner_id: int, card: str) -> OwnCardContent | None:
    """The card of this learner; None for another's as for none."""
    row = db.execute(
        select(col(OwnCard.front), col(OwnCard.back), col(OwnCard.source)).where(
            col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card
        )
    ).first()
    return OwnCardContent(CardFaces(row[0], row[1]), row[2]) if row else None


def write_own(
    db: Session, learner_id: int, card: str, kept: OwnCardContent, now: dt.datetime
) -> None:
    """Write a card down once; sent again it stays as it is.

    Raises Conflict where the learner has as many as one may have.
    """
    values = {"learner_id": learner_id, "card": card, "deck": DECK}
    values |= {"front": kept.faces.front, "back": kept.faces.back}
    values |= {"source": kept.source, "at": to_milliseconds(now)}
    if insert_if_absent(db, OwnCard, values) is not None:
        check_quota(db, OWN_CARDS, col(OwnCard.learner_id) == learner_id)


def change_own(db: Session, learner_id: int, card: str, kept: OwnCardContent) -> None:
    """Put other words on a card; what is remembered of it stays."""
    db.execute(
        update(OwnCard)
        .where(col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card)
        .values(front=kept.faces.front, back=kept.faces.back, source=kept.source)
    )


_TAG = re.compile(r"<[^<>]*>")
# Inside of a word these are met: a soft hyphen, zero-width signs, a byte order mark.
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


def search_own(db: Session, learner_id: int, words: Sequence[str]) -> Iterator[str]:
    """The own cards on which all `words` stand, newest first.

    The words are those of `split_query`.
    """
    wanted = (
        select(col(OwnCard.card), col(OwnCard.front), col(OwnCard.back), col(OwnCard.tags))
        .where(col(OwnCard.learner_id) == learner_id)
        .order_by(col(OwnCard.id).desc())
    )
    whole = func.lower(col(OwnCard.front) + col(OwnCard.back) + col(OwnCard.tags))
    for sign in _UNSEEN:
        whole = func.replace(whole, sign, "")
    for word in words:
        # SQLite knows the lower case of ASCII alone, and & < > are written otherwise.
        if word.isascii() and word.isalnum():
            wanted = wanted.where(whole.contains(word, autoescape=True))
    for card, front, back, tags in db.execute(wanted).yield_per(100):
        text = unescape(_TAG.sub(" ", f"{front} {back}")) + f" {tags}"
        folded = fold_text(text)
        if all(word in folded for word in words):
            yield card


def find_picture(db: Session, learner_id: int, name: str) -> bytes | None:
    """A picture on a card of this learner's own; None for another's as for none."""
    content = db.scalar(
        select(col(OwnPicture.content)).where(
            col(OwnPicture.learner_id) == learner_id, col(OwnPicture.name) == name
        )
    )
    return base64.b64decode(content) if content else None
