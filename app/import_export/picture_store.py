"""SQL: the pictures of a learner's own cards."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, delete, func, select
from sqlmodel import Session

from app.accounts.learner_store import learner_rows_filter
from app.database.engine import insert_if_absent
from app.database.tables import OwnPicture
from app.import_export.anki.package_format import find_picture_names
from app.import_export.export_store import OWN, PICTURE

MOST_BYTES = 100_000_000
"""Limit for all pictures of one learner in all courses, in bytes."""
MOST_PICTURES = 20_000
TOO_MANY = (
    f"your pictures would take more than {MOST_BYTES // 1_000_000} MB, or "
    f"more than {MOST_PICTURES:,}"
)


class HasImages(Protocol):
    """A card with its pictures, by name."""

    @property
    def pictures(self) -> Mapping[str, bytes]: ...


Card = TypeVar("Card", bound=HasImages)
Sizes = Mapping[tuple[int, str], int]
"""Bytes of pictures by learner row id and picture name."""


def measure_pictures(db: Session, learner_id: int) -> Sizes:
    """Return the size of every picture of a person, in all courses.

    The database reads all of them, so call this before a write transaction.
    """
    return _measure_sizes(db, PICTURE.c.learner_id.in_(learner_rows_filter(learner_id)))


def _measure_sizes(db: Session, which: ColumnElement[bool]) -> Sizes:
    length = func.length(PICTURE.c.content)
    columns = PICTURE.c.learner_id, PICTURE.c.name, length
    rows = db.connection().execute(select(*columns).where(which))
    return {(owner, name): count * 3 // 4 for owner, name, count in rows}


def drop_beyond_room(
    db: Session, learner_id: int, cards: Sequence[Card], measured: Sizes
) -> tuple[Card, ...]:
    """Return the cards without those whose new pictures exceed the limit.

    They are reported as `TOO_MANY`. Of the pictures already `measured` before this transaction,
    only the names are read again.
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
    """Return the current sizes; reads only the pictures not yet measured."""
    names = select(PICTURE.c.learner_id, PICTURE.c.name)
    theirs = names.where(PICTURE.c.learner_id.in_(learner_rows_filter(learner_id)))
    present = {(owner, name) for owner, name in db.connection().execute(theirs)}
    sizes = {key: measured[key] for key in present & measured.keys()}
    for owner, name in present - measured.keys():
        this = (PICTURE.c.learner_id == owner) & (PICTURE.c.name == name)
        sizes |= _measure_sizes(db, this)
    return sizes


def put_pictures(db: Session, learner_id: int, cards: Iterable[HasImages], at: int) -> None:
    """Save the pictures of some cards, each once."""
    pictures = {name: content for card in cards for name, content in card.pictures.items()}
    for name, content in pictures.items():
        encoded = base64.b64encode(content).decode()
        row = {"learner_id": learner_id, "name": name, "content": encoded, "at": at}
        insert_if_absent(db, OwnPicture, row)


def drop_pictures(db: Session, learner_id: int) -> None:
    """Delete the pictures that no card of the learner shows any more."""
    connection, mine = db.connection(), PICTURE.c.learner_id == learner_id
    stored = set(connection.scalars(select(PICTURE.c.name).where(mine)))
    if not stored:
        return
    faces = select(OWN.c.front, OWN.c.back).where(
        OWN.c.learner_id == learner_id,
        OWN.c.front.contains("<img") | OWN.c.back.contains("<img"),
    )
    used = {n for row in connection.execute(faces) for f in row for n in find_picture_names(f)}
    for name in sorted(stored - used):
        connection.execute(delete(PICTURE).where(mine, PICTURE.c.name == name))
