"""The pictures on cards of a learner's own: kept once, removed with the last card."""

import base64
from collections.abc import Iterable, Mapping
from typing import Protocol

from sqlalchemy import delete, func, select
from sqlmodel import Session

from app.db.insert_once import insert_once
from app.db.tables import OwnPicture
from app.exchange.formats.apkg.pictures import names_in
from app.exchange.items import Unusable
from app.exchange.store.held import OWN, PICTURE

MOST_BYTES = 60_000_000


class Illustrated(Protocol):
    """A card that comes with its pictures, by name."""

    @property
    def pictures(self) -> Mapping[str, bytes]: ...


def expect_pictures(db: Session, learner_id: int, cards: Iterable[Illustrated]) -> None:
    """Raise Unusable when a learner would have more pictures than are kept of one."""
    new = {name: len(content) for c in cards for name, content in c.pictures.items()}
    if not new:
        return
    mine = PICTURE.c.learner_id == learner_id
    length = func.length(PICTURE.c.content)
    rows = db.connection().execute(select(PICTURE.c.name, length).where(mine))
    old = {name: count * 3 // 4 for name, count in rows}
    if sum({**new, **old}.values()) > MOST_BYTES:
        most = MOST_BYTES // 1_000_000
        raise Unusable(f"The pictures on your own cards would be more than {most} MB.")


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
