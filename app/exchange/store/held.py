"""The cards that a learner studies, with every grade of them that stands."""

import base64
import dataclasses
import datetime as dt
import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Row, select
from sqlmodel import Session, SQLModel

from app.cards.store import MEMORY, acted, grade_in, standing_rows
from app.exchange.formats.apkg.history import Aside, Set, Timed
from app.web.clock import moment

LOG = SQLModel.metadata.tables["review"]
ASIDE = SQLModel.metadata.tables["suspension"]
ADDED = SQLModel.metadata.tables["added_card"]
OWN = SQLModel.metadata.tables["own_card"]
PICTURE = SQLModel.metadata.tables["own_picture"]
OWN_TEXT = tuple(
    OWN.c[name] for name in ("deck", "front", "back", "guid", "ordinal", "tags")
)
LOGGED = tuple(
    LOG.c[name]
    for name in (
        "id",
        "card",
        "rating",
        "voids",
        "retention",
        "recall",
        "milliseconds",
        "study_day",
        "at",
        "act",
        "until_day",
    )
)


@dataclasses.dataclass(frozen=True, slots=True)
class OwnText:
    """A card of the learner's own: its deck, and its faces in cleaned HTML.

    One from an Anki note has its GUID, its ordinal and the tags of the note.
    """

    deck: str
    front: str
    back: str
    guid: str = ""
    ordinal: int = 0
    tags: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Studied:
    """All cards of a learner.

    `grades` are those that stand, by card and in order; `added` the cards beside those
    of the course, and `due` the study days on which they come back.
    """

    grades: Mapping[str, list[Timed | Set]]
    suspended: frozenset[str]
    added: Mapping[str, Aside]
    due: Mapping[str, dt.date]
    own: Mapping[str, OwnText]

    @property
    def cards(self) -> tuple[str, ...]:
        """Every card that was begun, put aside or added, each once."""
        return tuple(dict.fromkeys((*self.grades, *self.suspended, *self.added)))

    def without(self, cards: Collection[str]) -> "Studied":
        """All cards but these."""
        return dataclasses.replace(
            self,
            grades={c: timed for c, timed in self.grades.items() if c not in cards},
            suspended=self.suspended.difference(cards),
            added={c: aside for c, aside in self.added.items() if c not in cards},
        )


def studied(db: Session, learner_id: int) -> Studied:
    """What a learner would take along."""
    connection = db.connection()
    log = connection.execute(
        select(*LOGGED)
        .where(LOG.c.learner_id == learner_id)
        .order_by(LOG.c.card, LOG.c.at, LOG.c.id)
    )
    grades = {
        card: timed
        for card, rows in itertools.groupby(log, lambda r: str(r.card))
        if (timed := standing_log(rows))
    }
    aside = connection.execute(select(ASIDE.c.card).where(_mine(ASIDE, learner_id)))
    added = connection.execute(
        select(ADDED.c.card, ADDED.c.seed, ADDED.c.at)
        .where(_mine(ADDED, learner_id), ADDED.c.declined.is_(False))
        .order_by(ADDED.c.id)
    )
    due = connection.execute(
        select(MEMORY.c.card, MEMORY.c.due_day).where(
            _mine(MEMORY, learner_id), MEMORY.c.card.like("%:%")
        )
    )
    return Studied(
        grades,
        frozenset(aside.scalars()),
        {row.card: Aside(row.seed, row.at) for row in added},
        {row.card: dt.date.fromisoformat(row.due_day) for row in due},
        own_texts(db, learner_id),
    )


def own_texts(db: Session, learner_id: int) -> dict[str, OwnText]:
    """The learner's own cards, in the order in which they came."""
    rows = db.connection().execute(
        select(OWN.c.card, *OWN_TEXT).where(_mine(OWN, learner_id)).order_by(OWN.c.id)
    )
    return {card: OwnText(*words) for card, *words in rows}


def own_names(db: Session, learner_id: int) -> frozenset[str]:
    """The names of the learner's own cards."""
    names = select(OWN.c.card).where(_mine(OWN, learner_id))
    return frozenset(db.connection().scalars(names))


def pictures(db: Session, learner_id: int) -> dict[str, bytes]:
    """The pictures on the learner's own cards, by name."""
    rows = db.connection().execute(
        select(PICTURE.c.name, PICTURE.c.content)
        .where(_mine(PICTURE, learner_id))
        .order_by(PICTURE.c.id)
    )
    return {name: base64.b64decode(content) for name, content in rows}


def standing_log(rows: Iterable[Row[Any]]) -> list[Timed | Set]:
    """What stands of rows of the log about one card: grades, and what was set."""
    return [_logged(row) for row in standing_rows(rows)]


def _logged(row: Row[Any]) -> Timed | Set:
    if row.rating:
        return Timed(grade_in(row), row.milliseconds)
    return Set(acted(row), moment(row.at), dt.date.fromisoformat(row.study_day))


def _mine(table: Any, learner_id: int) -> Any:
    return table.c.learner_id == learner_id
