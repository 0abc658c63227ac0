"""The pictures on cards of a learner's own: kept once, removed with the last card."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, delete, func, select
from sqlmodel import Session

from app.db.insert_once import insert_if_absent
from app.db.tables import OwnPicture
from app.exchange.formats.apkg.pictures import names_in
from app.exchange.store.held import OWN, PICTURE
from app.learners.store import rows_of

MOST_BYTES = 100_000_000
"""Bytes of all pictures of one learner, in whatever course."""
MOST_PICTURES = 20_000
TOO_MANY = (
    f"their pictures would make more than {MOST_BYTES // 1_000_000} MB of yours, or "
    f"more than {MOST_PICTURES:,}"
)


class HasImages(Protocol):
    """A card that comes with its pictures, by name."""

    @property
    def pictures(self) -> Mapping[str, bytes]: ...


Card = TypeVar("Card", bound=HasImages)


Sizes = Mapping[tuple[int, str], int]
"""Bytes of pictures by the learner's row and the name of the picture."""


def measure_pictures(db: Session, learner_id: int) -> Sizes:
    """The size of every picture of a person, in whatever course.

    The database reads all of them for that, so it belongs before a transaction that
    writes.
    """
    return _measure(db, PICTURE.c.learner_id.in_(rows_of(learner_id)))


def _measure(db: Session, which: ColumnElement[bool]) -> Sizes:
    length = func.length(PICTURE.c.content)
    columns = PICTURE.c.learner_id, PICTURE.c.name, length
    rows = db.connection().execute(select(*columns).where(which))
    return {(owner, name): count * 3 // 4 for owner, name, count in rows}


def drop_beyond_room(
    db: Session, learner_id: int, cards: Sequence[Card], measured: Sizes
) -> tuple[Card, ...]:
    """The cards without those whose new pictures are more than are kept of a learner.

    What is left out is said to be `TOO_MANY`. Of the pictures that were `measured`
    before this transaction only the names are read again.
    """
    if not any(card.pictures for card in cards):
        return tuple(cards)
    sizes = _measure_new(db, learner_id, measured)
    known = {name for owner, name in sizes if owner == learner_id}
    room = MOST_BYTES - sum(sizes.values())
    places = MOST_PICTURES - len(sizes)
    fitting = []
    for card in cards:
        new = {n: len(c) for n, c in card.pictures.items() if n not in known}
        if new and (sum(new.values()) > room or len(new) > places):
            continue
        room -= sum(new.values())
        places -= len(new)
        known |= new.keys()
        fitting.append(card)
    return tuple(fitting)


def _measure_new(db: Session, learner_id: int, measured: Sizes) -> Sizes:
    """The sizes as they are now; only those that were not measured are read."""
    names = select(PICTURE.c.learner_id, PICTURE.c.name)
    theirs = names.where(PICTURE.c.learner_id.in_(rows_of(learner_id)))
    present = {(owner, name) for owner, name in db.connection().execute(theirs)}
    sizes = {key: measured[key] for key in present & measured.keys()}
    for owner, name in present - measured.keys():
        this = (PICTURE.c.learner_id == owner) & (PICTURE.c.name == name)
        sizes |= _measure(db, this)
    return sizes


def put_pictures(db: Session, learner_id: int, cards: Iterable[HasImages], at: int) -> None:
    """Keep the pictures of some cards, each once."""
    kept = {name: content for card in cards for name, content in card.pictures.items()}
    for name, content in kept.items():
        words = base64.b64encode(content).decode()
        row = {"learner_id": learner_id, "name": name, "content": words, "at": at}
        insert_if_absent(db, OwnPicture, row)


def drop_pictures(db: Session, learner_id: int) -> None:
    """Delete the pictures that no card of the learner shows any more."""
    connection, mine = db.connection(), PICTURE.c.learner_id == learner_id
    kept = set(connection.scalars(select(PICTURE.c.name).where(mine)))
    if not kept:
        return
    faces = select(OWN.c.front, OWN.c.back).where(
        OWN.c.learner_id == learner_id,
        OWN.c.front.contains("<img") | OWN.c.back.contains("<img"),
    )
    shown = {n for row in connection.execute(faces) for f in row for n in names_in(f)}
    for name in sorted(kept - shown):
        connection.execute(delete(PICTURE).where(mine, PICTURE.c.name == name))
