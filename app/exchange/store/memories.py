"""The memory of cards whose log has changed by a file, made again by replay."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Row, delete, insert, select
from sqlmodel import Session

from app.cards.store import MEMORY, beginnings, remembered, replay_card
from app.exchange.store.held import ASIDE, LOG, LOGGED

_AT_ONCE = 500  # names in one question
Logs = Mapping[str, Sequence[Row[Any]]]
Item = TypeVar("Item")


class HasPlacement(Protocol):
    """Where a card belongs: the name shared with its reverse, and its topic."""

    @property
    def note(self) -> str: ...
    @property
    def topic(self) -> str: ...


def remember(db: Session, learner_id: int, places: Mapping[str, HasPlacement], logs: Logs) -> None:
    """Make the memory rows of these cards again, from their logs and beginnings.

    Cards without a log in `logs` get a row if they have none.
    """
    connection = db.connection()
    for names in in_parts(places):
        mine = (MEMORY.c.learner_id == learner_id) & MEMORY.c.card.in_(names)
        there = set(connection.scalars(select(MEMORY.c.card).where(mine)))
        touched = [card for card in names if card in logs or card not in there]
        rows = _memories(db, learner_id, {card: places[card] for card in touched}, logs)
        old = sorted(there.intersection(touched))
        connection.execute(delete(MEMORY).where(mine, MEMORY.c.card.in_(old)))
        if rows:
            connection.execute(insert(MEMORY), rows)


def _memories(
    db: Session, learner_id: int, places: Mapping[str, HasPlacement], logs: Logs
) -> list[dict[str, Any]]:
    put_aside = select(ASIDE.c.card).where(
        ASIDE.c.learner_id == learner_id, ASIDE.c.card.in_(places)
    )
    aside = set(db.connection().scalars(put_aside))
    added = beginnings(db, learner_id, places.keys())
    rows = []
    for card, place in places.items():
        log, begin = logs.get(card, ()), added.get(card)
        now = replay_card(card, log, begin)
        values = remembered(now, len(log), begin, aside=card in aside)
        if values is not None:
            own = {"learner_id": learner_id, "card": card}
            rows.append({**own, "note": place.note, "topic": place.topic, **values})
    return rows


def logs_of(db: Session, learner_id: int, cards: Iterable[str]) -> dict[str, list[Row[Any]]]:
    """The rows of the log about each of the cards that has some, in order of time."""
    found: dict[str, list[Row[Any]]] = {}
    for names in in_parts(cards):
        rows = db.connection().execute(
            select(*LOGGED)
            .where(LOG.c.learner_id == learner_id, LOG.c.card.in_(names))
            .order_by(LOG.c.card, LOG.c.at, LOG.c.id)
        )
        for card, log in itertools.groupby(rows, lambda r: str(r.card)):
            found[card] = list(log)
    return found


def in_time(logs: Logs) -> list[Row[Any]]:
    """All rows of some logs, one card after the other."""
    return [row for log in logs.values() for row in log]


def in_slices(weighed: Iterable[tuple[Item, int]], most: int) -> Iterator[tuple[Item, ...]]:
    """Items in parts whose weights add up to `most`, or of one that is heavier."""
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


def in_parts(cards: Iterable[str]) -> Iterator[Sequence[str]]:
    """Names in lists that are short enough for one question."""
    names = sorted(cards)
    for begin in range(0, len(names), _AT_ONCE):
        yield names[begin : begin + _AT_ONCE]
