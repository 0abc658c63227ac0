"""The review queue: its SQL, the seconds that a review takes, and new cards that a day allows."""

import collections
import dataclasses
import datetime as dt
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from cachetools import LRUCache
from sqlalchemy import (
    ColumnElement,
    Engine,
    Float,
    bindparam,
    case,
    cast,
    distinct,
    func,
    or_,
    select,
    true,
)
from sqlmodel import Session

from app.content.course import Course
from app.database.engine import IMPORTED_REVIEW_PREFIX
from app.database.tables import TABLES
from app.spaced_repetition.added_card_ids_and_faces import (
    QUESTION,
    is_added_card_id,
    is_source_in_course,
)
from app.spaced_repetition.card_rows import CARD_STATE_COLUMNS, CARD_STATES, card_state_from_row
from app.spaced_repetition.review_log import CardRecord
from app.spaced_repetition.scheduler import CardState

LOOK_SECONDS = 10.0
"""Seconds to read a card, recall the answer and rate it; a lapse takes as long again."""
NEW_SECONDS = 60.0
"""Seconds for a new card: about three reviews on its first day, the first one slower."""

# The assumed time counts as much as this many of the learner's own reviews.
_ASSUMED_TIME_REVIEW_COUNT = 20
# times the usual: cards graded unread, pages left open
_MIN_TIMES_USUAL, _MAX_TIMES_USUAL = 0.5, 4.0


@dataclasses.dataclass(frozen=True, slots=True)
class SecondsPerCard:
    """Seconds for a new card's first day, and for a later review."""

    new_card_seconds: float = NEW_SECONDS
    review_seconds: float = LOOK_SECONDS

    @property
    def review_ratio_to_usual(self) -> float:
        """The learner's seconds per review divided by the usual ones."""
        return self.review_seconds / LOOK_SECONDS


USUAL_SECONDS_PER_CARD = SecondsPerCard()


def shrink_mean_toward_usual(total_seconds: float, count: int, usual_seconds: float) -> float:
    """Return the mean of a log, pulled toward the usual value while the log is short.

    >>> shrink_mean_toward_usual(0, 0, 60.0), shrink_mean_toward_usual(30 * 980, 980, 60.0)
    (60.0, 30.6)
    """
    mean = (total_seconds + _ASSUMED_TIME_REVIEW_COUNT * usual_seconds) / (
        count + _ASSUMED_TIME_REVIEW_COUNT
    )
    return min(_MAX_TIMES_USUAL * usual_seconds, max(_MIN_TIMES_USUAL * usual_seconds, mean))


_SHARE_OF_CARDS = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class StudyDayCardCounts:
    """Counts of a study day so far: cards still due, reviewed, and begun today.

    A card begun today does not count as due while it is in its steps. Those are part of the time
    that a new card takes.
    """

    cards_still_due: int
    cards_reviewed: int
    new_cards_begun: int


def count_new_cards_still_allowed(
    study_minutes: int,
    day_counts: StudyDayCardCounts,
    extra_cards: int = 0,
    seconds_per_card: SecondsPerCard = USUAL_SECONDS_PER_CARD,
) -> int:
    """Return how many more new cards may be started on a study day.

    Half of the learner's minutes is for cards. Cards due and reviewed take 10 seconds each and a
    new card takes 60, or what the log shows. New cards get the time that reviews leave. `extra_cards` are
    added on top.

    >>> count_new_cards_still_allowed(30, StudyDayCardCounts(0, 0, 0))
    15
    >>> count_new_cards_still_allowed(30, StudyDayCardCounts(60, 0, 0))
    5
    """
    seconds = study_minutes * 60 * _SHARE_OF_CARDS
    seconds -= seconds_per_card.review_seconds * (
        day_counts.cards_still_due + day_counts.cards_reviewed - day_counts.new_cards_begun
    )
    allowed = max(0, int(seconds // seconds_per_card.new_card_seconds))
    return max(0, allowed + extra_cards - day_counts.new_cards_begun)


_CACHED_LEARNERS = 2000
Version = TypeVar("Version")
Value = TypeVar("Value")


class LearnerCache(Generic[Version, Value]):
    """Cache of one value per learner, which holds for one version: a study day or a course."""

    def __init__(self) -> None:
        self._cached: weakref.WeakKeyDictionary[
            Engine, LRUCache[int, _CachedValue[Version, Value]]
        ] = weakref.WeakKeyDictionary()

    def get_or_load(
        self, db: Session, learner_id: int, version: Version, load: Callable[[], Value]
    ) -> Value:
        """Return a learner's value for a version, calling `load` if it is not cached."""
        cached = self._cached.setdefault(db.get_bind().engine, LRUCache(_CACHED_LEARNERS))
        known = cached.get(learner_id)
        if known is None or known.version != version:
            known = cached[learner_id] = _CachedValue(version, load())
        return known.value


class _CachedValue(NamedTuple, Generic[Version, Value]):
    version: Version
    value: Value


ONE_DAY = dt.timedelta(days=1)


class TopicChange(NamedTuple):
    """The topic of a card state row, and the card's topic now; empty if it left the course."""

    old_topic: str
    new_topic: str


@dataclasses.dataclass(frozen=True, slots=True)
class GoneAndMovedCards:
    """Cards whose card state row does not fit the current course.

    `gone_card_ids` have left the course, and `topic_change_by_card` changed their topic. Course cards
    that are gone are in both.
    """

    gone_card_ids: frozenset[str] = frozenset()
    topic_change_by_card: Mapping[str, TopicChange] = dataclasses.field(default_factory=dict)


NONE_GONE_OR_MOVED = GoneAndMovedCards()


@dataclasses.dataclass(frozen=True, slots=True)
class QueueScope:
    """What to load: the study day, the moment, and one topic or all."""

    day: dt.date
    now_ms: int
    topic: str = ""
    gone_and_moved_cards: GoneAndMovedCards = NONE_GONE_OR_MOVED

    def sql_parameters(self, learner_id: int) -> dict[str, Any]:
        return {
            "learner": learner_id,
            "day": self.day.isoformat(),
            "now": self.now_ms,
            "topic": self.topic,
            "gone": list(self.gone_and_moved_cards.gone_card_ids),
        }


@dataclasses.dataclass(frozen=True, slots=True)
class ReviewQueue:
    """The cards due for the learner.

    `first_card` is the most urgent card seen before, `first_card_kind` learning, review or
    waiting (in a learning step that is not over). The counts cover the requested cards;
    `day_counts` covers the day over all topics.
    """

    first_card: CardRecord | None
    first_card_kind: str
    learning_count: int
    review_count: int
    waiting_count: int
    finished_count: int
    day_counts: StudyDayCardCounts
    due_never_reviewed_count: int = 0


_EMPTY_QUEUE = ReviewQueue(None, "", 0, 0, 0, 0, StudyDayCardCounts(0, 0, 0))
_QUEUE_ORDER_KINDS = ("learning", "review", "waiting")


def _count_rows_if(condition: Any) -> Any:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


_mine = (bindparam("topic") == "") | (CARD_STATES.c.topic == bindparam("topic"))
_learner = CARD_STATES.c.learner_id == bindparam("learner")
# Added cards (their ids contain a colon) do not count as course cards; see
# `card_ids.is_added_card_id`.
_of_course = CARD_STATES.c.card.not_like("%:%")

_COUNT_CARDS_OF_TODAY = select(
    _count_rows_if(_mine & (CARD_STATES.c.due_day > bindparam("day"))).label("finished"),
    func.count().label("answered"),
    _count_rows_if((CARD_STATES.c.first_day == bindparam("day")) & _of_course).label("begun"),
).where(_learner, CARD_STATES.c.last_day == bindparam("day"))

_still_there = CARD_STATES.c.card.not_in(bindparam("gone", expanding=True))
# A card whose reverse was reviewed today is buried until tomorrow.
_sibling = CARD_STATES.alias()
_answered_notes = select(_sibling.c.note).where(
    _sibling.c.learner_id == bindparam("learner"), _sibling.c.last_day == bindparam("day")
)
_rank = case(
    ((CARD_STATES.c.state == "review") | (CARD_STATES.c.state == "new"), 1),
    (CARD_STATES.c.due_at <= bindparam("now"), 0),
    else_=2,
)
# Retrievability falls with days ÷ stability. The card with the largest ratio is the one most likely
# forgotten, so the database needs no power function. An added card that was never reviewed ranks
# with cards that reach 90% today.
_DAY_MILLISECONDS = 24 * 60 * 60 * 1000.0
_fading = func.coalesce(
    cast(bindparam("now") - CARD_STATES.c.last_at, Float) / CARD_STATES.c.stability,
    _DAY_MILLISECONDS,
)
_due = (
    select(
        *CARD_STATE_COLUMNS,
        CARD_STATES.c.card,
        CARD_STATES.c.turns,
        _mine.label("mine"),
        _rank.label("rank"),
        case((_rank == 1, -_fading), else_=cast(CARD_STATES.c.due_at, Float)).label("urgency"),
    )
    .where(_learner, CARD_STATES.c.due_day <= bindparam("day"))
    .where(CARD_STATES.c.suspended.is_(False))
    .where((CARD_STATES.c.state != "review") | CARD_STATES.c.note.not_in(_answered_notes))
    .where(_still_there)
)


def _count_matches_in_whole_result(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0)).over()


# One query for the day's counts and the most urgent card, if any.
_cards = _due.subquery()
_first_card = (
    select(
        *_cards.c,
        _count_matches_in_whole_result(_cards.c.mine & (_cards.c.rank == 0)).label("learning"),
        _count_matches_in_whole_result(_cards.c.mine & (_cards.c.state == "review")).label(
            "review"
        ),
        _count_matches_in_whole_result(_cards.c.mine & (_cards.c.state == "new")).label("added"),
        _count_matches_in_whole_result(_cards.c.mine & (_cards.c.rank == 2)).label("waiting"),
        _count_matches_in_whole_result(_cards.c.first_day != bindparam("day")).label("all_due"),
    )
    .order_by(_cards.c.mine.desc(), _cards.c.rank, _cards.c.urgency, _cards.c.card)
    .limit(1)
    .subquery()
)
_counts = _COUNT_CARDS_OF_TODAY.subquery()
_COUNTS_AND_FIRST_CARD = select(*_first_card.c, *_counts.c).select_from(
    _counts.outerjoin(_first_card, true())
)


def load_review_queue(db: Session, learner_id: int, scope: QueueScope) -> ReviewQueue:
    """Load the queue of a learner in one narrow read, however many cards there are."""
    if not learner_id:
        return _EMPTY_QUEUE
    values = scope.sql_parameters(learner_id)
    row = db.connection().execute(_COUNTS_AND_FIRST_CARD, values).one()
    day = StudyDayCardCounts(row.all_due or 0, row.answered, row.begun)
    if row.card is None:
        return dataclasses.replace(_EMPTY_QUEUE, finished_count=row.finished, day_counts=day)
    return ReviewQueue(
        first_card=card_record_from_row(row) if row.mine else None,
        first_card_kind=_QUEUE_ORDER_KINDS[row.rank] if row.mine else "",
        learning_count=row.learning,
        review_count=row.review,
        waiting_count=row.waiting,
        finished_count=row.finished,
        day_counts=day,
        due_never_reviewed_count=row.added,
    )


_SELECT_UPCOMING_CARDS = (
    select(_cards)
    .where(_cards.c.mine)
    .order_by(_cards.c.rank, _cards.c.urgency, _cards.c.card)
    .limit(bindparam("most"))
)


def load_cards_due_on_day(
    db: Session, learner_id: int, scope: QueueScope, limit: int
) -> list[CardRecord]:
    """Return the first `limit` cards due on a study day, in queue order."""
    values = {**scope.sql_parameters(learner_id), "most": limit}
    return [
        card_record_from_row(row) for row in db.connection().execute(_SELECT_UPCOMING_CARDS, values)
    ]


def card_record_from_row(row: Any) -> CardRecord:
    return CardRecord(row.card, card_state_from_row(row), row.turns, has_card_state_row=True)


_SEEN_COUNT = (
    select(CARD_STATES.c.topic, func.count())
    .where(_learner, _of_course)
    .group_by(CARD_STATES.c.topic)
)
_today = CARD_STATES.c.last_day == bindparam("day")
_SELECT_SEEN_CARDS = select(CARD_STATES.c.card, CARD_STATES.c.note, _today.label("today")).where(
    _learner, or_(CARD_STATES.c.topic == bindparam("topic"), _today)
)


def count_unseen_cards_by_topic(
    db: Session,
    learner_id: int,
    course: Course,
    scope: QueueScope,
    *,
    begun_first: bool = False,
) -> dict[str, int]:
    """Return how many cards of each topic were never seen, topics in reading order.

    With `begun_first` those of which a card was seen come first: their pages are read.
    """
    topics = [scope.topic] if scope.topic else _list_topics_in_queue_order(course)
    counts = collections.Counter[str]()
    if learner_id:
        rows = db.connection().execute(_SEEN_COUNT, {"learner": learner_id}).all()
        counts = collections.Counter({row[0]: row[1] for row in rows})
    for moved in scope.gone_and_moved_cards.topic_change_by_card.values():
        counts[moved.old_topic] -= 1
        if moved.new_topic:
            counts[moved.new_topic] += 1
    size = {topic: len(course.topics[topic].cards) for topic in topics if topic in course.topics}
    left = {topic: cards - counts[topic] for topic, cards in size.items() if cards > counts[topic]}
    if begun_first:
        return dict(sorted(left.items(), key=lambda item: item[1] == size[item[0]]))
    return left


def yield_unseen_cards(
    db: Session, learner_id: int, course: Course, scope: QueueScope, topics: Iterable[str]
) -> Iterator[str]:
    """Yield all such cards in order. Each topic is queried only when it is reached."""
    values = {"learner": learner_id, "day": scope.day.isoformat()}
    for topic in topics:
        rows = db.connection().execute(_SELECT_SEEN_CARDS, {**values, "topic": topic}).all()
        seen = {row.card for row in rows}.union(scope.gone_and_moved_cards.topic_change_by_card)
        notes = {row.note for row in rows if row.today}
        mine = course.topics[topic].cards
        for card in sorted(mine, key=lambda card: course.cards[card].level):
            if card not in seen and find_note_id_of_card(course, card) not in notes:
                yield card


def find_note_id_of_card(course: Course, card: str) -> str:
    sibling = course.cards[card].sibling
    return min(card, sibling) if sibling else card


_NEXT_DUE = (
    select(CARD_STATES.c.due_day, func.count())
    .where(_learner, _mine, _still_there, CARD_STATES.c.due_day > bindparam("day"))
    .where(CARD_STATES.c.suspended.is_(False))
    .group_by(CARD_STATES.c.due_day)
    .order_by(CARD_STATES.c.due_day)
    .limit(1)
)


class NextDueDay(NamedTuple):
    day: dt.date
    card_count: int


def find_next_due_day(db: Session, learner_id: int, scope: QueueScope) -> NextDueDay | None:
    row = db.connection().execute(_NEXT_DUE, scope.sql_parameters(learner_id)).first()
    return NextDueDay(dt.date.fromisoformat(row[0]), row[1]) if row else None


_is_question = CARD_STATES.c.card.like(f"{QUESTION}:%")
_WAITING = select(
    func.count().filter(_is_question),
    func.count().filter(~_is_question, CARD_STATES.c.due_day <= bindparam("day")),
).where(
    _learner,
    CARD_STATES.c.card.like("%:%"),
    CARD_STATES.c.state == "new",
    CARD_STATES.c.suspended.is_(False),
    _still_there,
)


class WaitingCards(NamedTuple):
    """Added cards that were never reviewed: missed questions, and own cards and terms due by now."""

    missed_questions: int = 0
    own_cards_and_terms: int = 0


def count_waiting_added_cards(db: Session, learner_id: int, scope: QueueScope) -> WaitingCards:
    """Return how many added cards of all topics wait for a list that takes them."""
    return WaitingCards(*db.connection().execute(_WAITING, scope.sql_parameters(learner_id)).one())


class CardStatus(NamedTuple):
    """The state of a card, None if it is new, and whether it is suspended."""

    state: CardState | None = None
    is_suspended: bool = False


def load_statuses_of_topic_by_card(
    db: Session, learner_id: int, topic: str
) -> dict[str, CardStatus]:
    return _load_card_statuses_where(db, learner_id, CARD_STATES.c.topic == topic)


def load_statuses_by_card(
    db: Session, learner_id: int, cards: Sequence[str]
) -> dict[str, CardStatus]:
    return _load_card_statuses_where(db, learner_id, CARD_STATES.c.card.in_(cards))


def _load_card_statuses_where(
    db: Session, learner_id: int, condition: ColumnElement[bool]
) -> dict[str, CardStatus]:
    columns = select(*CARD_STATE_COLUMNS, CARD_STATES.c.card, CARD_STATES.c.suspended)
    rows = db.connection().execute(columns.where(CARD_STATES.c.learner_id == learner_id, condition))
    return {row.card: CardStatus(card_state_from_row(row), row.suspended) for row in rows}


_GONE_AND_MOVED: LearnerCache[str, GoneAndMovedCards] = LearnerCache()


def find_gone_and_moved_cards(db: Session, learner_id: int, course: Course) -> GoneAndMovedCards:
    """Return the orphaned cards of a learner, computed once per state of the course.

    Reviews are only of cards in the course, so no new ones appear within one state.
    """
    if not learner_id:
        return NONE_GONE_OR_MOVED
    return _GONE_AND_MOVED.get_or_load(
        db,
        learner_id,
        course.version,
        lambda: _compute_gone_and_moved_cards(db, learner_id, course),
    )


def _compute_gone_and_moved_cards(
    db: Session, learner_id: int, course: Course
) -> GoneAndMovedCards:
    rows = db.connection().execute(
        select(CARD_STATES.c.card, CARD_STATES.c.topic).where(
            CARD_STATES.c.learner_id == learner_id
        )
    )
    gone, moved = set(), {}
    for card, topic in rows:
        if is_added_card_id(card):
            if not is_source_in_course(course, card):
                gone.add(card)
            continue
        known = course.cards.get(card)
        if known is None:
            gone.add(card)
            moved[card] = TopicChange(topic, "")
        elif known.topic != topic:
            moved[card] = TopicChange(topic, known.topic)
    return GoneAndMovedCards(frozenset(gone), moved)


def _list_topics_in_queue_order(course: Course) -> Iterable[str]:
    first = [s for s in course.syllabus.topics if s in course.topics]
    every = [*first, *(s for s in course.topics if s not in first)]
    return sorted(every, key=lambda slug: course.topics[slug].level)


_REVIEW_TABLE = TABLES["review"]
_MOST_LOOK = 120_000  # the page was left open
_graded = (
    _REVIEW_TABLE.c.learner_id == bindparam("learner"),
    _REVIEW_TABLE.c.rating > 0,
    _REVIEW_TABLE.c.milliseconds.between(1, _MOST_LOOK),
    _REVIEW_TABLE.c.study_day < bindparam("day"),
    # An import during the day must not change the day's limits.
    _REVIEW_TABLE.c.token.not_like(f"{IMPORTED_REVIEW_PREFIX}%"),
)
# A card in its first learning steps has no recall value yet. Those reviews are the first ones.
_first = (*_graded, _REVIEW_TABLE.c.recall.is_(None))
_pace_later = (*_graded, _REVIEW_TABLE.c.recall.is_not(None))


def _scalar_subquery(value: Any, *conditions: Any) -> Any:
    return select(value).where(*conditions).scalar_subquery()


_SELECT_TIME_SPENT = select(
    _scalar_subquery(func.sum(_REVIEW_TABLE.c.milliseconds), *_first).label("new_card_time"),
    _scalar_subquery(func.count(distinct(_REVIEW_TABLE.c.card)), *_first).label("new_cards"),
    _scalar_subquery(func.sum(_REVIEW_TABLE.c.milliseconds), *_pace_later).label("review_time"),
    _scalar_subquery(func.count(_REVIEW_TABLE.c.id), *_pace_later).label("reviews"),
)
_PACE_CACHE: LearnerCache[dt.date, SecondsPerCard] = LearnerCache()


def load_seconds_per_card(db: Session, learner_id: int, day: dt.date) -> SecondsPerCard:
    """Return the learner's pace as of the start of a study day."""
    if not learner_id:
        return SecondsPerCard()
    return _PACE_CACHE.get_or_load(
        db, learner_id, day, lambda: _query_seconds_per_card(db, learner_id, day)
    )


def _query_seconds_per_card(db: Session, learner_id: int, day: dt.date) -> SecondsPerCard:
    values = {"learner": learner_id, "day": day.isoformat()}
    row = db.connection().execute(_SELECT_TIME_SPENT, values).one()
    return SecondsPerCard(
        shrink_mean_toward_usual((row.new_card_time or 0) / 1000, row.new_cards, NEW_SECONDS),
        shrink_mean_toward_usual((row.review_time or 0) / 1000, row.reviews, LOOK_SECONDS),
    )
