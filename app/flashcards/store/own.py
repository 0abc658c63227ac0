"""Cards that a learner wrote: their two sides, and what was typed for them."""

import base64
import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Sequence
from html import unescape

from sqlalchemy import func, select, update
from sqlmodel import Session, col

from app.db.insert_once import insert_if_absent
from app.db.quotas import OWN_CARDS, check_quota
from app.db.tables import OwnCard, OwnPicture
from app.questions.faces import CardFaces
from app.questions.phrases import fold_text
from app.web.clock import to_milliseconds

DECK = "My cards"


@dataclasses.dataclass(frozen=True, slots=True)
class OwnCardContent:
    """A card of one's own; `source` is empty for one that came with a file."""

    faces: CardFaces
    source: str


def find_own(db: Session, learner_id: int, card: str) -> OwnCardContent | None:
    """The card of this learner; None for another's as for none."""
    row = db.execute(
        select(col(OwnCard.front), col(OwnCard.back), col(OwnCard.source)).where(
            col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card
        )
    ).first()
    return OwnCardContent(CardFaces(row[0], row[1]), row[2]) if row else None


def write_own(
    db: Session, learner_id: int, card: str, kept: OwnCardContent, now: dt.datetime
) -> None:
    """Write a card down once; sent again it stays as it is.

    Raises Conflict where the learner has as many as one may have.
    """
    values = {"learner_id": learner_id, "card": card, "deck": DECK}
    values |= {"front": kept.faces.front, "back": kept.faces.back}
    values |= {"source": kept.source, "at": to_milliseconds(now)}
    if insert_if_absent(db, OwnCard, values) is not None:
        check_quota(db, OWN_CARDS, col(OwnCard.learner_id) == learner_id)


def change_own(db: Session, learner_id: int, card: str, kept: OwnCardContent) -> None:
    """Put other words on a card; what is remembered of it stays."""
    db.execute(
        update(OwnCard)
        .where(col(OwnCard.learner_id) == learner_id, col(OwnCard.card) == card)
        .values(front=kept.faces.front, back=kept.faces.back, source=kept.source)
    )


_TAG = re.compile(r"<[^<>]*>")
# Inside of a word these are met: a soft hyphen, zero-width signs, a byte order mark.
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


def search_own(db: Session, learner_id: int, words: Sequence[str]) -> Iterator[str]:
    """The own cards on which all `words` stand, newest first.

    The words are those of `split_query`.
    """
    wanted = (
        select(col(OwnCard.card), col(OwnCard.front), col(OwnCard.back), col(OwnCard.tags))
        .where(col(OwnCard.learner_id) == learner_id)
        .order_by(col(OwnCard.id).desc())
    )
    whole = func.lower(col(OwnCard.front) + col(OwnCard.back) + col(OwnCard.tags))
    for sign in _UNSEEN:
        whole = func.replace(whole, sign, "")
    for word in words:
        # SQLite knows the lower case of ASCII alone, and & < > are written otherwise.
        if word.isascii() and word.isalnum():
            wanted = wanted.where(whole.contains(word, autoescape=True))
    for card, front, back, tags in db.execute(wanted).yield_per(100):
        text = unescape(_TAG.sub(" ", f"{front} {back}")) + f" {tags}"
        folded = fold_text(text)
        if all(word in folded for word in words):
            yield card


def find_picture(db: Session, learner_id: int, name: str) -> bytes | None:
    """A picture on a card of this learner's own; None for another's as for none."""
    content = db.scalar(
        select(col(OwnPicture.content)).where(
            col(OwnPicture.learner_id) == learner_id, col(OwnPicture.name) == name
        )
    )
    return base64.b64decode(content) if content else None
