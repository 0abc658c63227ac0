"""Read the evidence.

The answer log only grows, and a long-time learner has thousands of rows. So each process caches the
first answers of the learners it served last, and loads only rows since the newest cached one. That
row is loaded again to prove that the log is still the same. With several writers a lower id may be
committed later, so the total row count proves that none was missed; SQLite has one writer. If
answers were regraded since, all rows are read again.

Adding up thousands of cards takes longer than the rest of a page. Cards change with reviews, which
are only ever appended, and with suspension. So the newest review and the names of the suspended
cards tell whether the cached sums are still valid. After a few more reviews only the topics of
their cards are added up again. Any other change to the log, such as an import that was removed,
shows in the review count of the days; then, and on each new study day, everything is added up
again.

A long history has hundreds of reading marks, and most visits add none. A mark is made, moved to a
later moment or removed, so the number of marks and their moments tell whether any changed.
"""

import collections
import dataclasses
import datetime as dt
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Engine, String, bindparam, case, cast, func, select
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile
from app.clock import to_milliseconds
from app.database.engine import ATTEMPT, GRADED, REGRADE, SCORE
from app.database.tables import TABLES
from app.mastery.evidence import AnswerHistory
from app.mastery.objectives import NOTHING, AnswerHistories, LearnerEvidence, TopicCards

_mine = ATTEMPT.c.learner_id == bindparam("learner")
_ROW = ("id", "token", "at")
_ANSWER = ("item", "first", "study_day", "hints", "certainty")
_regraded = REGRADE.alias()
_REGRADES = [
    select(number)
    .where(_regraded.c.learner_id == bindparam("learner"))
    .scalar_subquery()
    .label(name)
    for name, number in (
        ("regrades", func.count(_regraded.c.id)),
        ("last_regrade", func.max(_regraded.c.id)),
    )
]
# This scans only the index; only new rows are looked up.
_SINCE = (
    select(
        *(ATTEMPT.c[name] for name in (*_ROW, *_ANSWER)),
        SCORE.label("score"),
        *_REGRADES,
    )
    .select_from(GRADED)
    .where(_mine, ATTEMPT.c.id >= bindparam("since"))
    .order_by(ATTEMPT.c.id)
)
_ALL = select(func.count()).where(_mine)
_LEARNERS = 500


@dataclasses.dataclass(frozen=True, slots=True)
class CachedAnswers:
    """The first answers of a learner by question, up to row `last` of the log.

    `rows` is the number of all answers up to it; `last` is id, token and moment. `regrades` is how
    many of them were regraded, and the id of the newest regrade.
    """

    answers: AnswerHistories = dataclasses.field(default_factory=AnswerHistories)
    rows: int = 0
    last: tuple[int, str, int] = (0, "", 0)
    regrades: tuple[int, int | None] = (0, None)


_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[Engine, collections.OrderedDict[int, CachedAnswers]] = (
    weakref.WeakKeyDictionary()
)


def load_first_answers(db: Session, learner_id: int) -> AnswerHistories:
    """Return first answers by question; those of a mock exam appear once it is closed.

    The same mapping is returned until a question is answered or regraded.
    """
    engine = db.get_bind().engine
    with _lock:
        kept = _kept.setdefault(engine, collections.OrderedDict())
        known = kept.get(learner_id, CachedAnswers())
    found = _add_new_answers(db, learner_id, known)
    with _lock:
        kept[learner_id] = found
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)
    return found.answers


def _add_new_answers(db: Session, learner_id: int, known: CachedAnswers) -> CachedAnswers:
    """Return the cached answers plus new rows, or all answers if the log was replaced."""
    values = {"learner": learner_id, "since": known.last[0]}
    rows = db.connection().execute(_SINCE, values).all()
    if known.rows:
        if not rows or _split_row(rows[0]) != (known.last, known.regrades):
            return _add_new_answers(db, learner_id, CachedAnswers())
        rows = rows[1:]
        if _is_short(db, learner_id, known.rows + len(rows)):
            return _add_new_answers(db, learner_id, CachedAnswers())
    if not rows:
        return known
    added = _changed_histories(rows, known.answers)
    last, regrades = _split_row(rows[-1])
    return CachedAnswers(
        answers=known.answers.merged_with(added) if added else known.answers,
        rows=known.rows + len(rows),
        last=last,
        regrades=regrades,
    )


def _is_short(db: Session, learner_id: int, rows: int) -> bool:
    """Return whether the log has more rows than were read incrementally."""
    connection = db.connection()
    if connection.dialect.name == "sqlite":
        return False
    return connection.execute(_ALL, {"learner": learner_id}).scalar() != rows


def _split_row(row: Any) -> tuple[tuple[int, str, int], tuple[int, int | None]]:
    return (row.id, row.token, row.at), (row.regrades, row.last_regrade)


def _changed_histories(
    rows: Sequence[Any], known: Mapping[str, AnswerHistory]
) -> dict[str, AnswerHistory]:
    """Return the questions of these rows, with first and later answers updated."""
    days = {text: dt.date.fromisoformat(text) for text in {r.study_day for r in rows}}
    found: dict[str, AnswerHistory] = {}
    for row in rows:
        day, before = days[row.study_day], found.get(row.item, known.get(row.item))
        if row.first:
            found[row.item] = AnswerHistory(row.score, day, row.hints, row.certainty or 0)
        elif before is not None:
            found[row.item] = before.again(row.score, day, row.hints)
    return found


_MEMORY = TABLES["memory"]
_REVIEW = TABLES["review"]
_SUSPENSION = TABLES["suspension"]
_STUDIED = TABLES["study_day"]
_DAY = 24 * 60 * 60 * 1000.0
_learned_mine: BindParameter[int] = bindparam("learner")

_newest = (
    select(_REVIEW.c.id, _REVIEW.c.token)
    .where(_REVIEW.c.learner_id == _learned_mine)
    .order_by(_REVIEW.c.id.desc())
    .limit(1)
    .subquery()
)
_STATE = select(
    select(_newest.c.id).scalar_subquery(),
    select(_newest.c.token).scalar_subquery(),
    # By name, because one card may be unsuspended and another suspended. They are few and indexed.
    select(func.aggregate_strings(_SUSPENSION.c.card, " "))
    .where(_SUSPENSION.c.learner_id == _learned_mine)
    .scalar_subquery(),
    select(func.coalesce(func.sum(_STUDIED.c.reviews), 0))
    .where(_STUDIED.c.learner_id == _learned_mine)
    .scalar_subquery(),
)
_BATCH_SIZE = 50
# The newest known review is loaded too. It proves that the log is still the same.
_LEARNED_SINCE = (
    select(*(_REVIEW.c[name] for name in ("id", "token", "card", "rating", "voids")))
    .where(_REVIEW.c.learner_id == _learned_mine, _REVIEW.c.id >= bindparam("since"))
    .order_by(_REVIEW.c.id)
    .limit(_BATCH_SIZE)
)
_known = func.sum(case((_MEMORY.c.state == "review", 1), else_=0))
# A card in state new has neither a last answer nor a stability, and sums skip NULL.
_SUMS = (
    select(
        _MEMORY.c.topic,
        func.count(_MEMORY.c.last_at),
        _known,
        func.sum(_MEMORY.c.last_at),
        func.sum(1 / func.nullif(_MEMORY.c.stability, 0)),
    )
    # Added cards do not count as course cards; see `card_ids.is_added_card`.
    .where(_MEMORY.c.learner_id == _learned_mine, _MEMORY.c.card.not_like("%:%"))
    .group_by(_MEMORY.c.topic)
)
_graded = select(_MEMORY.c.topic).where(
    _MEMORY.c.learner_id == _learned_mine,
    _MEMORY.c.card.in_(bindparam("cards", expanding=True)),
)
_SUMS_OF_GRADED = _SUMS.where(_MEMORY.c.topic.in_(_graded))

State = tuple[Any, ...]
Sums = Mapping[str, Any]
_learned_lock = threading.Lock()
_learned_kept: weakref.WeakKeyDictionary[
    Engine, collections.OrderedDict[int, tuple[State, Sums]]
] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True, slots=True)
class TopicCardTotals:
    """The course cards by topic, as evidence."""

    cards: Mapping[str, TopicCards] = dataclasses.field(default_factory=dict)


def load_card_totals(db: Session, learner_id: int, now: int) -> TopicCardTotals:
    """Return the begun cards of each topic; `now` is the moment (ms) to which days are counted."""
    sums = _load_sums(db, learner_id, now)
    return TopicCardTotals(
        {
            topic: TopicCards(begun, known, float(begun * now - at) / _DAY, float(losses or 0))
            for topic, begun, known, at, losses in sums.values()
            if begun
        }
    )


def _load_sums(db: Session, learner_id: int, now: int) -> Sums:
    values = {"learner": learner_id}
    state: State = (*db.connection().execute(_STATE, values).one(), now)
    bind = db.get_bind()
    # Before the first review there is nothing to add up, and no state to compare.
    engine = bind if isinstance(bind, Engine) and state[0] is not None else None
    known = _find_cached(engine, learner_id) if engine else None
    if known is not None and known[0] == state:
        return known[1]
    graded = _graded_since(db, learner_id, known[0], state) if known else None
    if known is None or graded is None:
        found = _rows_by_topic(db.connection().execute(_SUMS, values))
    else:
        of_graded = {**values, "cards": graded}
        changed = db.connection().execute(_SUMS_OF_GRADED, of_graded)
        found = {**known[1], **_rows_by_topic(changed)}
    if engine:
        _cache_sums(engine, learner_id, (state, found))
    return found


def _rows_by_topic(rows: Iterable[Any]) -> Sums:
    return {row[0]: row for row in rows}


def _graded_since(db: Session, learner_id: int, known: State, state: State) -> list[str] | None:
    """Return the cards reviewed between two states if only a few reviews differ; None otherwise."""
    newest, token, aside, grades, day = known
    if (aside, day) != (state[2], state[4]):
        return None
    rows = db.connection().execute(_LEARNED_SINCE, {"learner": learner_id, "since": newest}).all()
    if not rows or (rows[0].id, rows[0].token) != (newest, token):
        return None
    more = rows[1:]
    plain = all(row.rating and row.voids is None for row in more)
    if len(rows) == _BATCH_SIZE or not plain or state[3] != grades + len(more):
        return None
    return sorted({row.card for row in more})


def _find_cached(engine: Engine, learner_id: int) -> tuple[State, Sums] | None:
    with _learned_lock:
        kept = _learned_kept.get(engine)
        return kept.get(learner_id) if kept else None


def _cache_sums(engine: Engine, learner_id: int, sums: tuple[State, Sums]) -> None:
    with _learned_lock:
        kept = _learned_kept.setdefault(engine, collections.OrderedDict())
        kept[learner_id] = sums
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)


_READING = TABLES["reading"]
_reading_mine = _READING.c.learner_id == bindparam("learner")
_READING_STATE = select(
    func.count().label("marks"), func.max(_READING.c.at), func.sum(_READING.c.at)
).where(_reading_mine)
# Section names contain neither space nor @. A page without sections has an empty one.
_PAGES = (
    select(
        _READING.c.topic,
        func.aggregate_strings(_READING.c.section + "@" + cast(_READING.c.at, String), " "),
        func.max(_READING.c.at).label("at"),
        func.count(),
        func.sum(_READING.c.at),
    )
    .where(_reading_mine)
    .group_by(_READING.c.topic)
    .order_by(func.max(_READING.c.at).desc())
)


@dataclasses.dataclass(frozen=True, slots=True)
class PageProgress:
    """A page that was opened: when each section was read, and when the last one was, in ms."""

    topic: str
    sections: Mapping[str, int]
    at: int


Pages = Sequence[PageProgress]
_reading_lock = threading.Lock()
_reading_kept: weakref.WeakKeyDictionary[
    Engine, collections.OrderedDict[int, tuple[State, Pages]]
] = weakref.WeakKeyDictionary()


def load_pages_read(db: Session, learner_id: int) -> Pages:
    """Return the pages that this learner has read in, the most recent first."""
    engine = db.get_bind().engine
    with _reading_lock:
        kept = _reading_kept.setdefault(engine, collections.OrderedDict())
        known = kept.get(learner_id)
    if (
        known is not None
        and known[0] == db.connection().execute(_READING_STATE, {"learner": learner_id}).first()
    ):
        return known[1]
    found = _read_pages(db, learner_id)
    with _reading_lock:
        kept[learner_id] = found
        kept.move_to_end(learner_id)
        while len(kept) > _LEARNERS:
            kept.popitem(last=False)
    return found[1]


def _read_pages(db: Session, learner_id: int) -> tuple[State, Pages]:
    """Return the pages, and the state they belong to, from one query."""
    rows = db.connection().execute(_PAGES, {"learner": learner_id}).all()
    made = tuple(PageProgress(topic, _parse_moments(text), at) for topic, text, at, *_ in rows)
    if not rows:
        return (0, None, None), made
    marks, moments = sum(row[3] for row in rows), sum(row[4] for row in rows)
    return (marks, rows[0].at, moments), made


def _parse_moments(text: str) -> dict[str, int]:
    marks = (mark.rpartition("@") for mark in text.split(" "))
    return {section: int(at) for section, _, at in marks}


_HALF_A_DAY = dt.timedelta(hours=12)


@dataclasses.dataclass(frozen=True, slots=True)
class MasteryData:
    """The record that beliefs are computed from, with the cards and pages it was built from."""

    record: LearnerEvidence = NOTHING
    cards: TopicCardTotals = dataclasses.field(default_factory=TopicCardTotals)
    pages: Pages = ()


def load_mastery_data(db: Session, learner: LearnerProfile, now: dt.datetime) -> MasteryData:
    """Load the mastery data with three queries, or none for a learner without a row."""
    if not learner.id:
        return MasteryData()
    # Counted from the middle of the study day, so that the hour changes nothing.
    noon = to_milliseconds(learner.next_study_day(now) - _HALF_A_DAY)
    cards, read = load_card_totals(db, learner.id, noon), load_pages_read(db, learner.id)
    sections = {row.topic: frozenset(row.sections) for row in read}
    record = LearnerEvidence(load_first_answers(db, learner.id), cards.cards, sections)
    return MasteryData(record, cards, read)
