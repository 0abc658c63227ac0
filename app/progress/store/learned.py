"""The begun cards of each topic, added up where they lie, and only after reviews.

Adding up thousands of cards takes longer than the rest of a page. Cards change with
reviews, which are only ever added, and with being put aside: so the newest review and
the number of cards put aside tell whether the sums of before still hold.
"""

import collections
import dataclasses
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Engine, bindparam, case, func, select
from sqlmodel import Session, SQLModel

from app.progress.mastery.standing import TopicCards

_MEMORY = SQLModel.metadata.tables["memory"]
_REVIEW = SQLModel.metadata.tables["review"]
_SUSPENSION = SQLModel.metadata.tables["suspension"]
_DAY = 24 * 60 * 60 * 1000.0
_LEARNERS = 500
_mine: BindParameter[int] = bindparam("learner")

_newest = (
    select(_REVIEW.c.id, _REVIEW.c.token)
    .where(_REVIEW.c.learner_id == _mine)
    .order_by(_REVIEW.c.id.desc())
    .limit(1)
    .subquery()
)
_STATE = select(
    select(_newest.c.id).scalar_subquery(),
    select(_newest.c.token).scalar_subquery(),
    select(func.count()).where(_SUSPENSION.c.learner_id == _mine).scalar_subquery(),
)
_known = func.sum(case((_MEMORY.c.state == "review", 1), else_=0))
# A card in state new has neither a last answer nor a stability, and sums pass over it.
_SUMS = (
    select(
        _MEMORY.c.topic,
        func.count(),
        func.count(_MEMORY.c.last_at),
        _known,
        func.sum(_MEMORY.c.last_at),
        func.sum(1 / func.nullif(_MEMORY.c.stability, 0)),
    )
    # Added cards are no part of what the course has to learn: see `content.added`.
    .where(_MEMORY.c.learner_id == _mine, _MEMORY.c.card.not_like("%:%"))
    .group_by(_MEMORY.c.topic)
)

State = tuple[Any, ...]
Sums = Sequence[Any]
_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[
    Engine, collections.OrderedDict[int, tuple[State, Sums]]
] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True, slots=True)
class Learned:
    """The cards of the course by topic: as evidence, and how many were touched."""

    cards: Mapping[str, TopicCards] = dataclasses.field(default_factory=dict)
    touched: Mapping[str, int] = dataclasses.field(default_factory=dict)


def learned(db: Session, learner_id: int, now: int) -> Learned:
    """The begun cards of each topic; `now` is the moment (ms) days are counted to."""
    sums = _sums(db, learner_id)
    return Learned(
        {
            topic: TopicCards(
                begun, known, float(begun * now - at) / _DAY, float(losses or 0)
            )
            for topic, _, begun, known, at, losses in sums
            if begun
        },
        {row[0]: row[1] for row in sums},
    )


def _sums(db: Session, learner_id: int) -> Sums:
    values = {"learner": learner_id}
    state: State = tuple(db.connection().execute(_STATE, values).one())
    bind = db.get_bind()
    # Before the first review there is nothing to add up, nor to tell states apart by.
    engine = bind if isinstance(bind, Engine) and state[0] is not None else None
    known = _find(engine, learner_id) if engine else None
    if known is not None and known[0] == state:
        return known[1]
    found = db.connection().execute(_SUMS, values).all()
    if engine:
        _keep(engine, learner_id, (state, found))
    return found


def _find(engine: Engine, learner_id: int) -> tuple[State, Sums] | None:
    with _lock:
        kept = _kept.get(engine)
        return kept.get(learner_id) if kept else None


def _keep(engine: Engine, learner_id: int, sums: tuple[State, Sums]) -> None:
    with _lock:
        kept = _kept.setdefault(engine, collections.OrderedDict())
        kept[learner_id] = sums
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)
