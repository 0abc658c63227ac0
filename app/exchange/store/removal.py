"""What came with files, and how it goes again."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy import (
    ColumnElement,
    Row,
    String,
    cast,
    delete,
    func,
    literal,
    select,
    update,
)
from sqlmodel import Session

from app.cards.store import MEMORY, change_days
from app.db.insert_once import BROUGHT
from app.exchange.store.held import ADDED, ASIDE, LOG, OWN
from app.exchange.store.memories import (
    HasPlacement,
    in_parts,
    in_slices,
    in_time,
    logs_of,
    remember,
)

# A slice holds the writers' turn for about thirty milliseconds.
_ROWS_OF_SLICE, _ROWS_OF_CARD = 500, 3


@dataclasses.dataclass(frozen=True, slots=True)
class OwnDeck:
    """A deck of the learner's own: how many cards, and how many grades of them."""

    name: str
    cards: int
    grades: int


@dataclasses.dataclass(frozen=True, slots=True)
class ImportedContent:
    """What files brought: own decks, and grades of cards that the course has."""

    decks: tuple[OwnDeck, ...]
    grades: int


def brought(db: Session, learner_id: int) -> ImportedContent:
    """Everything that came with files and is still here."""
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
    grades = db.scalar(select(func.count()).where(*_carried(learner_id)))
    return ImportedContent(tuple(OwnDeck(*row) for row in decks), grades or 0)


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


def slices_of_deck(db: Session, learner_id: int, deck: str) -> list[tuple[str, ...]]:
    """The own cards of a deck, in parts that are removed at one stroke."""
    of_card = (LOG.c.learner_id == OWN.c.learner_id) & (LOG.c.card == OWN.c.card)
    cards = db.connection().execute(
        select(OWN.c.card, func.count(LOG.c.id))
        .select_from(OWN.outerjoin(LOG, of_card))
        .where(OWN.c.learner_id == learner_id, OWN.c.deck == deck)
        .group_by(OWN.c.card)
    )
    return _slices(cards)


def slices_with_grades(db: Session, learner_id: int) -> list[tuple[str, ...]]:
    """The cards of the course to which files brought grades, in such parts."""
    carried = select(LOG.c.card, func.count()).where(*_carried(learner_id))
    return _slices(db.connection().execute(carried.group_by(LOG.c.card)))


def _slices(cards: Iterable[Row[str, int]]) -> list[tuple[str, ...]]:
    weighed = ((card, _ROWS_OF_CARD + grades) for card, grades in cards)
    return list(in_slices(weighed, _ROWS_OF_SLICE))


def remove_own(db: Session, learner_id: int, cards: Sequence[str]) -> None:
    """Erase own cards with all that is known of them."""
    before = logs_of(db, learner_id, cards)
    for table in (LOG, MEMORY, ASIDE, ADDED, OWN):
        for names in in_parts(cards):
            mine = table.c.learner_id == learner_id
            db.connection().execute(delete(table).where(mine, table.c.card.in_(names)))
    change_days(db, learner_id, in_time(before), ())


def remove_grades(
    db: Session, learner_id: int, cards: Sequence[str], home: Callable[[str], HasPlacement]
) -> None:
    """Take out the grades that files brought to some cards of the course.

    A card that was also graded here keeps their rows, without a grade: the forms that
    are open count the rows of a card, and no number may come twice.
    """
    connection = db.connection()
    before = logs_of(db, learner_id, cards)
    graded_here = select(LOG.c.card).where(
        LOG.c.learner_id == learner_id,
        LOG.c.card.in_(cards),
        LOG.c.token.not_like(f"{BROUGHT}%"),
    )
    kept = set(connection.scalars(graded_here.distinct()))
    _blank(db, learner_id, kept)
    for names in in_parts(set(cards) - kept):
        of_cards = LOG.c.card.in_(names)
        connection.execute(delete(LOG).where(*_carried(learner_id), of_cards))
    after = {**{card: [] for card in cards}, **logs_of(db, learner_id, cards)}
    remember(db, learner_id, {c: home(c) for c in cards}, after)
    change_days(db, learner_id, in_time(before), in_time(after))


def _blank(db: Session, learner_id: int, cards: Iterable[str]) -> None:
    gone = literal("gone:") + cast(LOG.c.id, String)
    for names in in_parts(cards):
        db.connection().execute(
            update(LOG)
            .where(*_carried(learner_id), LOG.c.card.in_(names))
            .values(rating=0, act="", token=gone)
        )


def _carried(learner_id: int) -> tuple[ColumnElement[bool], ...]:
    """Rows that came with a file, of cards that are not the learner's own."""
    return (
        LOG.c.learner_id == learner_id,
        LOG.c.token.like(f"{BROUGHT}%"),
        LOG.c.card.not_like("own:%"),
    )
