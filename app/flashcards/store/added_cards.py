"""What is kept of cards that were added beside the course's decks."""

import dataclasses
import datetime as dt
import json
from collections.abc import Collection

from sqlalchemy import and_, bindparam, func, select
from sqlmodel import Session

from app.cards.added_cards import LONGEST_FACE
from app.cards.names import question_card_id
from app.db.tables import TABLES
from app.web.clock import from_milliseconds, to_milliseconds

ADDED = TABLES["added_card"]
OWN = TABLES["own_card"]
SITTING = TABLES["sitting"]


@dataclasses.dataclass(frozen=True, slots=True)
class AddedCardDetails:
    """What is kept of an added card.

    `own` is deck, front and back of a card of one's own; `sat` says that its question
    is on the paper of a mock exam that is being sat.
    """

    card: str
    seed: int
    since: dt.datetime
    own: tuple[str, str, str] | None
    sat: bool


_KEPT = (
    select(
        ADDED.c.card,
        ADDED.c.seed,
        ADDED.c.at,
        OWN.c.deck,
        # Longer sides were kept before there was a limit; one more character says so.
        func.substr(OWN.c.front, 1, LONGEST_FACE + 1).label("front"),
        func.substr(OWN.c.back, 1, LONGEST_FACE + 1).label("back"),
        SITTING.c.paper,
    )
    .select_from(
        ADDED.outerjoin(
            OWN,
            and_(OWN.c.learner_id == ADDED.c.learner_id, OWN.c.card == ADDED.c.card),
        ).outerjoin(
            SITTING,
            and_(
                SITTING.c.learner_id == ADDED.c.learner_id,
                SITTING.c.closed_at.is_(None),
                SITTING.c.deadline_at > bindparam("now"),
            ),
        )
    )
    .where(
        ADDED.c.learner_id == bindparam("of_learner"),
        ADDED.c.card.in_(bindparam("cards", expanding=True)),
    )
)


def kept(
    db: Session, learner_id: int, cards: Collection[str], now: dt.datetime
) -> dict[str, AddedCardDetails]:
    """Those of `cards` that the learner ever added, declined or not: one question."""
    if not (learner_id and cards):
        return {}
    values = {"of_learner": learner_id, "cards": [*cards], "now": to_milliseconds(now)}
    found: dict[str, AddedCardDetails] = {}
    for row in db.connection().execute(_KEPT, values):
        own = (row.deck, row.front, row.back) if row.front is not None else None
        sat = row.paper is not None and _asks(row.paper, row.card)
        sat = sat or (row.card in found and found[row.card].sat)
        found[row.card] = AddedCardDetails(
            row.card, row.seed or 0, from_milliseconds(row.at), own, sat
        )
    return found


def _asks(paper: str, card: str) -> bool:
    """Whether a paper, as it is kept, holds the question of a card."""
    return any(question_card_id(slot[1]) == card for slot in json.loads(paper))
