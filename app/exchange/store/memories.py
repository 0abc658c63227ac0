"""The memory of cards whose log has changed by a file, made again by replay."""

import dataclasses
import datetime as dt
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Table, delete, insert, select
from sqlmodel import Session

from app.content.added import QUESTION, is_added, origin
from app.exchange.store.held import (
    ADDED,
    ASIDE,
    LOG,
    LOGGED,
    MEMORY,
    standing_grades,
)
from app.learners.current import CurrentLearnerValue
from app.learners.store import blank, due_day
from app.scheduling import Standing, replay
from app.web.clock import milliseconds, moment

_AT_ONCE = 500  # names in one question


class Place(Protocol):
    """Where a card belongs: the name shared with its reverse, and its topic."""

    @property
    def note(self) -> str: ...
    @property
    def topic(self) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """What beside the log decides how cards stand."""

    zone: str
    aside: frozenset[str]
    added: Mapping[str, tuple[int, bool]]


def remember(
    db: Session,
    learner_id: int,
    zone: str,
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
    known = _known(db, learner_id, zone)
    rows = []
    for card, log in _logs(db, learner_id, touched):
        values = _values(card, log, known)
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


def _known(db: Session, learner_id: int, zone: str) -> _Known:
    connection = db.connection()

    def of(table: Table) -> ColumnElement[bool]:
        return table.c.learner_id == learner_id

    aside = connection.execute(select(ASIDE.c.card).where(of(ASIDE))).scalars()
    added = connection.execute(
        select(ADDED.c.card, ADDED.c.at, ADDED.c.declined).where(of(ADDED))
    )
    return _Known(
        zone,
        frozenset(aside),
        {row.card: (row.at, row.declined) for row in added},
    )


def _values(card: str, log: Sequence[Any], known: _Known) -> dict[str, Any] | None:
    """The columns of a memory; None where there is nothing to remember."""
    begin = known.added.get(card) if is_added(card) else None
    aside = card in known.aside or (begin is not None and begin[1])
    standing = replay((timed.grade for timed in standing_grades(log)), card)
    held = {"turns": len(log), "suspended": aside}
    first = _first_day(card, begin[0], known.zone) if begin else None
    if standing is None:
        return {**blank(first), **held} if aside or begin else None
    if begin and first and _is_missed_since(card, begin[0], standing):
        due = min(standing.due_day, first)
        standing = dataclasses.replace(standing, due_day=due)
    return {**_columns(standing), **held}


def _is_missed_since(card: str, since: int, standing: Standing) -> bool:
    """Whether a question was missed again after its card was graded last."""
    return origin(card)[0] == QUESTION and moment(since) > standing.last_at


def _first_day(card: str, since: int, zone: str) -> dt.date:
    day = CurrentLearnerValue("", zone=zone).study_day(moment(since))
    return due_day(card, day)


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
