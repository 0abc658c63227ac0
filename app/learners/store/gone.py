"""Cards that a learner has begun and the course no longer holds."""

import collections
import weakref

from sqlalchemy import Engine, bindparam, select
from sqlmodel import Session, SQLModel

from app.content.added import still_there
from app.content.library import Library

MEMORY = SQLModel.metadata.tables["memory"]
_CARDS = select(MEMORY.c.card).where(MEMORY.c.learner_id == bindparam("learner"))
_LEARNERS = 2000
_kept: weakref.WeakKeyDictionary[
    Engine, collections.OrderedDict[int, tuple[str, frozenset[str]]]
] = weakref.WeakKeyDictionary()


def gone_cards(db: Session, learner_id: int, library: Library) -> frozenset[str]:
    """The cards that are gone, looked for once for each state of the course.

    Within one state none appear: only cards that are there can be begun.
    """
    engine = db.get_bind().engine
    if not learner_id:
        return frozenset()
    kept = _kept.setdefault(engine, collections.OrderedDict())
    known = kept.get(learner_id)
    if known is not None and known[0] == library.version:
        return known[1]
    cards = db.connection().execute(_CARDS, {"learner": learner_id}).scalars()
    gone = frozenset(card for card in cards if not still_there(library, card))
    kept[learner_id] = (library.version, gone)
    kept.move_to_end(learner_id)
    while len(kept) > _LEARNERS:
        kept.popitem(last=False)
    return gone
