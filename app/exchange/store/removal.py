"""What came with files, and how it goes again."""

import dataclasses
from collections.abc import Callable, Iterable

from sqlalchemy import (
    ColumnElement,
    String,
    cast,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlmodel import Session

from app.db.once import BROUGHT
from app.exchange.store.held import ADDED, ASIDE, LOG, OWN
from app.exchange.store.memories import Place, in_parts, remember
from app.learners.current import CurrentLearnerValue
from app.learners.store import MEMORY, rebuild_days


@dataclasses.dataclass(frozen=True, slots=True)
class OwnDeck:
    """A deck of the learner's own: how many cards, and how many grades of them."""

    name: str
    cards: int
    grades: int


@dataclasses.dataclass(frozen=True, slots=True)
class Brought:
    """What files brought: own decks, and grades of cards that the course has."""

    decks: tuple[OwnDeck, ...]
    grades: int


def brought(db: Session, learner_id: int) -> Brought:
    """Everything that came with files and is still here."""
    if not learner_id:
        return Brought((), 0)
    given = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    decks = db.connection().execute(
        select(OWN.c.deck, func.count(OWN.c.card.distinct()), func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, given & (LOG.c.rating > 0)))
        .where(OWN.c.learner_id == learner_id)
        .group_by(OWN.c.deck)
        .order_by(OWN.c.deck)
    )
    grades = db.scalar(select(func.count()).where(*_carried(learner_id)))
    return Brought(tuple(OwnDeck(*row) for row in decks), grades or 0)


def held_cards(db: Session, learner_id: int) -> list[str]:
    """The names of all cards that a learner has begun, put aside or added."""
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


def remove_deck(db: Session, learner: CurrentLearnerValue, deck: str) -> int:
    """Erase the own cards of a deck with all that is known of them; their number."""
    cards = (
        db.connection()
        .execute(
            select(OWN.c.card).where(OWN.c.learner_id == learner.id, OWN.c.deck == deck)
        )
        .scalars()
        .all()
    )
    for table in (LOG, MEMORY, ASIDE, ADDED, OWN):
        for names in in_parts(cards):
            mine = table.c.learner_id == learner.id
            db.connection().execute(delete(table).where(mine, table.c.card.in_(names)))
    rebuild_days(db, learner.id)
    return len(cards)


def remove_grades(
    db: Session, learner: CurrentLearnerValue, home: Callable[[str], Place]
) -> int:
    """Take out the grades that files brought to cards of the course; their number.

    A card that was also graded here keeps their rows, without a grade: the forms that
    are open count the rows of a card, and no number may come twice.
    """
    connection = db.connection()
    carried = connection.execute(
        select(LOG.c.id, LOG.c.card).where(*_carried(learner.id))
    )
    rows = carried.all()
    cards = {row.card for row in rows}
    graded_here = connection.execute(
        select(LOG.c.card)
        .where(LOG.c.learner_id == learner.id, LOG.c.token.not_like(f"{BROUGHT}%"))
        .distinct()
    )
    kept = cards.intersection(graded_here.scalars())
    _blank(db, learner.id, kept)
    for names in in_parts(cards - kept):
        of_cards = LOG.c.card.in_(names)
        connection.execute(delete(LOG).where(*_carried(learner.id), of_cards))
    remember(db, learner.id, {c: home(c) for c in cards}, cards)
    rebuild_days(db, learner.id)
    return len(rows)


def _blank(db: Session, learner_id: int, cards: Iterable[str]) -> None:
    gone = literal("gone:") + cast(LOG.c.id, String)
    for names in in_parts(cards):
        db.connection().execute(
            update(LOG)
            .where(*_carried(learner_id), LOG.c.card.in_(names))
            .values(rating=0, token=gone)
        )


def _carried(learner_id: int) -> tuple[ColumnElement[bool], ...]:
    """Rows that came with a file, of cards that are not the learner's own."""
    return (
        LOG.c.learner_id == learner_id,
        LOG.c.token.like(f"{BROUGHT}%"),
        LOG.c.card.not_like("own:%"),
    )
