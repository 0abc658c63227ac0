"""The pictures on cards of a learner's own: kept once, removed with the last card."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import delete, func, select
from sqlmodel import Session

from app.db.insert_once import insert_once
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


class Illustrated(Protocol):
    """A card that comes with its pictures, by name."""

    @property
    def pictures(self) -> Mapping[str, bytes]: ...


Card = TypeVar("Card", bound=Illustrated)


def drop_beyond_room(
    db: Session, learner_id: int, cards: Sequence[Card]
) -> tuple[Card, ...]:
    """The cards without those whose new pictures are more than are kept of a learner.

    What is left out is said to be `TOO_MANY`.
    """
    if not any(card.pictures for card in cards):
        return tuple(cards)
    length = func.length(PICTURE.c.content)
    wanted = select(PICTURE.c.learner_id, PICTURE.c.name, length)
    theirs = PICTURE.c.learner_id.in_(rows_of(learner_id))
    rows = db.connection().execute(wanted.where(theirs)).all()
    known = {name for owner, name, _ in rows if owner == learner_id}
    room = MOST_BYTES - sum(count * 3 // 4 for _, _, count in rows)
    places = MOST_PICTURES - len(rows)
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


def put_pictures(
    db: Session, learner_id: int, cards: Iterable[Illustrated], at: int
) -> None:
    """Keep the pictures of some cards, each once."""
    kept = {name: content for card in cards for name, content in card.pictures.items()}
    for name, content in kept.items():
        words = base64.b64encode(content).decode()
        row = {"learner_id": learner_id, "name": name, "content": words, "at": at}
        insert_once(db, OwnPicture, row)


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
