"""The begun cards of each topic, added up where they lie, and only after reviews.

Adding up thousands of cards takes longer than the rest of a page. Cards change with
reviews, which are only ever added, and with being put aside: so the newest review and
the names of the cards put aside tell whether the sums of before still hold. After a few
more reviews only the topics of their cards are added up again. Whatever else has been
at the log, such as a file whose grades were taken out again, shows in the number of
grades that the days hold; then, and on each new study day, everything is.
"""

import collections
import dataclasses
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import BindParameter, Engine, bindparam, case, func, select
from sqlmodel import Session

from app.db.tables import TABLES
from app.mastery.standing import TopicCards

_MEMORY = TABLES["memory"]
_REVIEW = TABLES["review"]
_SUSPENSION = TABLES["suspension"]
_STUDIED = TABLES["study_day"]
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
    # By name, for one may be taken up and another put aside: few, and in an index.
    select(func.aggregate_strings(_SUSPENSION.c.card, " "))
    .where(_SUSPENSION.c.learner_id == _mine)
    .scalar_subquery(),
    select(func.coalesce(func.sum(_STUDIED.c.reviews), 0))
    .where(_STUDIED.c.learner_id == _mine)
    .scalar_subquery(),
)
_AT_ONCE = 50
# The newest review that is known comes along: it proves that the log is the same one.
_SINCE = (
    select(*(_REVIEW.c[name] for name in ("id", "token", "card", "rating", "voids")))
    .where(_REVIEW.c.learner_id == _mine, _REVIEW.c.id >= bindparam("since"))
    .order_by(_REVIEW.c.id)
    .limit(_AT_ONCE)
)
_known = func.sum(case((_MEMORY.c.state == "review", 1), else_=0))
# A card in state new has neither a last answer nor a stability, and sums pass over it.
_SUMS = (
    select(
        _MEMORY.c.topic,
        func.count(_MEMORY.c.last_at),
        _known,
        func.sum(_MEMORY.c.last_at),
        func.sum(1 / func.nullif(_MEMORY.c.stability, 0)),
    )
    # Added cards are no part of what the course has to learn: see `cards.names`.
    .where(_MEMORY.c.learner_id == _mine, _MEMORY.c.card.not_like("%:%"))
    .group_by(_MEMORY.c.topic)
)
_graded = select(_MEMORY.c.topic).where(
    _MEMORY.c.learner_id == _mine,
    _MEMORY.c.card.in_(bindparam("cards", expanding=True)),
)
_SUMS_OF_GRADED = _SUMS.where(_MEMORY.c.topic.in_(_graded))

State = tuple[Any, ...]
Sums = Mapping[str, Any]
_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[Engine, collections.OrderedDict[int, tuple[State, Sums]]] = (
    weakref.WeakKeyDictionary()
)


@dataclasses.dataclass(frozen=True, slots=True)
class TopicCardTotals:
    """The cards of the course by topic, as evidence."""

    cards: Mapping[str, TopicCards] = dataclasses.field(default_factory=dict)


def learned(db: Session, learner_id: int, now: int) -> TopicCardTotals:
    """The begun cards of each topic; `now` is the moment (ms) days are counted to."""
    sums = _sums(db, learner_id, now)
    return TopicCardTotals(
        {
            topic: TopicCards(begun, known, float(begun * now - at) / _DAY, float(losses or 0))
            for topic, begun, known, at, losses in sums.values()
            if begun
        }
    )


def _sums(db: Session, learner_id: int, now: int) -> Sums:
    values = {"learner": learner_id}
    state: State = (*db.connection().execute(_STATE, values).one(), now)
    bind = db.get_bind()
    # Before the first review there is nothing to add up, nor to tell states apart by.
    engine = bind if isinstance(bind, Engine) and state[0] is not None else None
    known = _find(engine, learner_id) if engine else None
    if known is not None and known[0] == state:
        return known[1]
    graded = _graded_since(db, learner_id, known[0], state) if known else None
    if known is None or graded is None:
        found = _by_topic(db.connection().execute(_SUMS, values))
    else:
        of_graded = {**values, "cards": graded}
        changed = db.connection().execute(_SUMS_OF_GRADED, of_graded)
        found = {**known[1], **_by_topic(changed)}
    if engine:
        _keep(engine, learner_id, (state, found))
    return found


def _by_topic(rows: Iterable[Any]) -> Sums:
    return {row[0]: row for row in rows}


def _graded_since(db: Session, learner_id: int, known: State, state: State) -> list[str] | None:
    """The cards of a few reviews that alone lie between two states; None otherwise."""
    newest, token, aside, grades, day = known
    if (aside, day) != (state[2], state[4]):
        return None
    rows = db.connection().execute(_SINCE, {"learner": learner_id, "since": newest}).all()
    if not rows or (rows[0].id, rows[0].token) != (newest, token):
        return None
    more = rows[1:]
    plain = all(row.rating and row.voids is None for row in more)
    if len(rows) == _AT_ONCE or not plain or state[3] != grades + len(more):
        return None
    return sorted({row.card for row in more})


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
