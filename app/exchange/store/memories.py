"""The memory of cards whose log has changed by a file, made again by replay."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import delete, insert, select
from sqlmodel import Session

from app.exchange.store.held import ASIDE, LOG, LOGGED
from app.learners.store import MEMORY, beginnings, remembered, replayed

_AT_ONCE = 500  # names in one question


class Place(Protocol):
    """Where a card belongs: the name shared with its reverse, and its topic."""

    @property
    def note(self) -> str: ...
    @property
    def topic(self) -> str: ...


def remember(
    db: Session,
    learner_id: int,
    places: Mapping[str, Place],
    graded: Collection[str],
) -> None:
    """Make the memory rows of these cards again, from the log and the added cards.

    `graded` are those whose log has changed; the others get a row if they have none.
    """
    connection = db.connection()
    mine = MEMORY.c.learner_id == learner_id
    there = set(connection.execute(select(MEMORY.c.card).where(mine)).scalars())
    touched = {card for card in places if card in graded or card not in there}
    put_aside = select(ASIDE.c.card).where(ASIDE.c.learner_id == learner_id)
    aside = set(connection.execute(put_aside).scalars())
    added = beginnings(db, learner_id)
    rows = []
    for card, log in _logs(db, learner_id, touched):
        begin = added.get(card)
        standing = replayed(card, log, begin)
        values = remembered(standing, len(log), begin, aside=card in aside)
        if values is not None:
            place = places[card]
            own = {"learner_id": learner_id, "card": card}
            rows.append({**own, "note": place.note, "topic": place.topic, **values})
    for names in in_parts(touched & there):
        connection.execute(delete(MEMORY).where(mine, MEMORY.c.card.in_(names)))
    if rows:
        connection.execute(insert(MEMORY), rows)


def in_parts(cards: Iterable[str]) -> Iterator[Sequence[str]]:
    """Names in lists that are short enough for one question."""
    names = sorted(cards)
    for begin in range(0, len(names), _AT_ONCE):
        yield names[begin : begin + _AT_ONCE]


def _logs(
    db: Session, learner_id: int, cards: Collection[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Each of the cards with its rows of the log in the order of time."""
    rows = db.connection().execute(
        select(*LOGGED)
        .where(LOG.c.learner_id == learner_id)
        .order_by(LOG.c.card, LOG.c.at, LOG.c.id)
    )
    found: set[str] = set()
    for card, log in itertools.groupby(rows, lambda r: str(r.card)):
        if card in cards:
            found.add(card)
            yield card, list(log)
    for card in sorted(set(cards) - found):
        yield card, []
