"""SQL: predictions, exam results, study history, calendar feed URLs, and mail subscriptions."""

import dataclasses
import datetime as dt
import json
from collections.abc import Mapping

from pydantic import TypeAdapter
from sqlalchemy import (
    String,
    and_,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.clock import to_milliseconds
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, NEWEST, REGRADE, SCORE
from app.database.tables import TABLES, CalendarFeed, Learner
from app.progress.predictions import ScorePrediction, SittingResult
from app.spaced_repetition.review_log import DayTotals
from app.study_plan.score import ScoreEstimate

_PREDICTION_TABLE = TABLES["prediction"]
_SITTING = TABLES["sitting"]
_DAY_LIST_TABLE = TABLES["day_list"]
_ESTIMATES = TypeAdapter(ScoreEstimate)

# A list that was stored again after the prediction of its day has the score after a mock exam.
_SELECT_PREDICTIONS = (
    select(
        *_PREDICTION_TABLE.c["exam", "day", "at", "questions", "expected", "low", "high"],
        _DAY_LIST_TABLE.c.estimate,
    )
    .join(
        _DAY_LIST_TABLE,
        and_(
            _DAY_LIST_TABLE.c.learner_id == _PREDICTION_TABLE.c.learner_id,
            _DAY_LIST_TABLE.c.day == _PREDICTION_TABLE.c.day,
            _DAY_LIST_TABLE.c.at > _PREDICTION_TABLE.c.at,
        ),
        isouter=True,
    )
    .where(_PREDICTION_TABLE.c.learner_id == bindparam("learner"))
)


def load_score_predictions(db: Session, learner_id: int) -> tuple[ScorePrediction, ...]:
    rows = db.connection().execute(_SELECT_PREDICTIONS, {"learner": learner_id})
    return tuple(
        ScorePrediction(
            exam=row.exam,
            day=dt.date.fromisoformat(row.day),
            shown_at_ms=row.at,
            question_count=row.questions,
            expected_right_answers=row.expected,
            low=row.low,
            high=row.high,
            later_estimate=_ESTIMATES.validate_json(row.estimate) if row.estimate else None,
        )
        for row in rows
    )


_SELECT_SITTING_RESULTS = (
    select(
        _SITTING.c.id,
        _SITTING.c.exam,
        _SITTING.c.started_at,
        _SITTING.c.paper,
        func.coalesce(func.sum(SCORE), 0.0),
        func.count(ATTEMPT.c.id),
    )
    .join(ATTEMPT, ATTEMPT.c.sitting_id == _SITTING.c.id, isouter=True)
    .join(REGRADE, NEWEST, isouter=True)
    .where(_SITTING.c.learner_id == bindparam("learner"), _SITTING.c.closed_at.is_not(None))
    .group_by(_SITTING.c.id)
    .order_by(_SITTING.c.started_at.desc())
    .limit(bindparam("limit"))
)


def load_closed_sitting_results(
    db: Session, learner_id: int, limit: int
) -> tuple[SittingResult, ...]:
    """Return the last `limit` closed sittings with their scores."""
    values = {"learner": learner_id, "limit": limit}
    rows = db.connection().execute(_SELECT_SITTING_RESULTS, values).all()
    return tuple(
        SittingResult(number, exam, started, score, len(json.loads(paper)), answered)
        for number, exam, started, paper, score, answered in rows
    )


_LISTS_SINCE = (
    select(_DAY_LIST_TABLE.c.day, _DAY_LIST_TABLE.c.tasks)
    .where(
        _DAY_LIST_TABLE.c.learner_id == bindparam("learner"),
        _DAY_LIST_TABLE.c.day >= bindparam("since"),
    )
    .order_by(_DAY_LIST_TABLE.c.day)
)


@dataclasses.dataclass(frozen=True, slots=True)
class PastList:
    """The list of a study day: cards known before it, its tasks, and how many of them were done.

    What was done is known once the next list is made; of the newest one `done_count` is None.
    """

    day: dt.date
    known_card_count: int
    task_count: int
    done_count: int | None


def load_lists_since(db: Session, learner_id: int, since: dt.date) -> tuple[PastList, ...]:
    """Return what became of the lists from `since` on, oldest first."""
    values = {"learner": learner_id, "since": since.isoformat()}
    rows = db.connection().execute(_LISTS_SINCE, values) if learner_id else ()
    days = [(dt.date.fromisoformat(day), json.loads(stored)) for day, stored in rows]
    undone_later = [made.get("undone", {}) for _, made in days[1:]]
    return tuple(
        PastList(
            day,
            made.get("known_cards", 0),
            len(made["tasks"]),
            None if undone is None else sum(not undone.get(t["kind"]) for t in made["tasks"]),
        )
        for (day, made), undone in zip(days, [*undone_later, None], strict=False)
    )


def load_feed_key(db: Session, learner_id: int) -> str:
    """Return the key in the learner's feed URL; empty if there is none."""
    is_own = col(CalendarFeed.learner_id) == learner_id
    return db.scalar(select(col(CalendarFeed.key)).where(is_own)) or ""


@dataclasses.dataclass(frozen=True, slots=True)
class CalendarFeedOwner:
    """The learner of a calendar feed; `change_count` grows with every write of that person."""

    learner_id: int
    change_count: int


def find_feed_owner(db: Session, feed_key: str) -> CalendarFeedOwner | None:
    """Return the feed with this key; None if there is none."""
    writer = aliased(Learner)
    changes = select(func.sum(col(writer.changes))).where(col(writer.person) == col(Learner.person))
    query = (
        select(col(Learner.id), changes.scalar_subquery())
        .join_from(CalendarFeed, Learner, col(Learner.id) == CalendarFeed.learner_id)
        .where(col(CalendarFeed.key) == feed_key)
    )
    row = db.execute(query).first()
    return CalendarFeedOwner(row[0], row[1]) if row else None


def replace_feed_key(db: Session, learner_id: int, new_key_or_empty: str, now: dt.datetime) -> None:
    """Replace the learner's feed key by `new_key_or_empty`; an empty one only ends the feed."""
    is_own = col(CalendarFeed.learner_id) == learner_id
    db.execute(delete(CalendarFeed).where(is_own))
    if new_key_or_empty:
        row = {"learner_id": learner_id, "key": new_key_or_empty, "at": to_milliseconds(now)}
        db.execute(insert(CalendarFeed).values(**row))


@dataclasses.dataclass(frozen=True, slots=True)
class MailSubscription:
    """An address for the weekly summary; `last_mail_day` is an ISO date, empty before a mail."""

    learner_id: int
    address: str
    link_key: str
    confirmed: bool
    last_mail_day: str


_SELECT_MAIL_SUBSCRIPTION = select(
    *(TABLES["learner"].c[n] for n in ("id", "mail", "mail_key", "mail_confirmed", "mailed"))
)


def list_mail_subscriptions(db: Session) -> tuple[MailSubscription, ...]:
    """Return the addresses of all learners who gave one."""
    return tuple(
        MailSubscription(*row)
        for row in db.connection().execute(_SELECT_MAIL_SUBSCRIPTION.where(col(Learner.mail) != ""))
    )


def find_mail_subscription(db: Session, link_key: str) -> MailSubscription | None:
    """Return the address whose mails link to `link_key`; None if there is none."""
    row = (
        db.connection()
        .execute(_SELECT_MAIL_SUBSCRIPTION.where(col(Learner.mail_key) == link_key))
        .first()
        if link_key
        else None
    )
    return MailSubscription(*row) if row else None


def claim_mail_delivery(db: Session, subscription: MailSubscription, day: dt.date) -> bool:
    """Record that a mail goes out; False if another process did so or the subscription changed."""
    is_subscriber = (
        col(Learner.id) == subscription.learner_id,
        col(Learner.mail_key) == subscription.link_key,
    )
    is_unchanged = col(Learner.mailed) == subscription.last_mail_day
    result = db.execute(
        update(Learner).where(*is_subscriber, is_unchanged).values(mailed=day.isoformat())
    )
    return bool(result.rowcount)  # type: ignore[attr-defined] # a cursor result


_CARD_STATES = TABLES["memory"]
_SITTING = TABLES["sitting"]
_ATTEMPT_TABLE = TABLES["attempt"]
_READING_TABLE = TABLES["reading"]


@dataclasses.dataclass(frozen=True, slots=True)
class RunningExam:
    """A mock exam in progress, and the minutes left on its clock."""

    sitting_id: int
    title_or_slug: str
    minutes_left: float


_SELECT_RUNNING_SITTINGS = (
    select(_SITTING.c.id, _SITTING.c.exam, _SITTING.c.deadline_at)
    .where(
        _SITTING.c.learner_id == bindparam("learner"),
        _SITTING.c.closed_at.is_(None),
        _SITTING.c.deadline_at > bindparam("now"),
    )
    .order_by(_SITTING.c.started_at.desc())
    .limit(1)
)


def find_running_exam(db: Session, learner_id: int, now_ms: int) -> RunningExam | None:
    """Return the mock exam in progress, with the slug of its blueprint, or None."""
    values = {"learner": learner_id, "now": now_ms}
    row = db.connection().execute(_SELECT_RUNNING_SITTINGS, values).first()
    if row is None:
        return None
    return RunningExam(row[0], row[1], (row[2] - now_ms) / 60_000)


@dataclasses.dataclass(frozen=True, slots=True)
class DailyStudyTotals:
    """The totals of recent days by ISO date, and the `first_study_day` of all days with work."""

    totals_by_day: Mapping[str, DayTotals] = dataclasses.field(default_factory=dict)
    first_study_day: dt.date | None = None

    @property
    def answers_and_reviews_by_day(self) -> dict[str, int]:
        """Answers and reviews by ISO date."""
        return {day: sums.count_of_answers_and_reviews for day, sums in self.totals_by_day.items()}


_STUDY_DAY_TABLE = TABLES["study_day"]
_DAY_SUM_COLUMNS = [
    _STUDY_DAY_TABLE.c[name]
    for name in ("answers", "reviews", "asked", "recalled", "expected", "milliseconds")
]
_STUDIED_DAYS_OF_LEARNER = (
    _STUDY_DAY_TABLE.c.learner_id == bindparam("learner"),
    _STUDY_DAY_TABLE.c.answers + _STUDY_DAY_TABLE.c.reviews > 0,
)
_SELECT_RECENT_DAYS = select(_STUDY_DAY_TABLE.c.day, *_DAY_SUM_COLUMNS).where(
    *_STUDIED_DAYS_OF_LEARNER, _STUDY_DAY_TABLE.c.day >= bindparam("since")
)
_SELECT_FIRST_DAY = select(func.min(_STUDY_DAY_TABLE.c.day)).where(*_STUDIED_DAYS_OF_LEARNER)


def load_daily_study_totals(db: Session, learner_id: int, since: dt.date) -> DailyStudyTotals:
    """Return what was done on each day from `since` on, and the first day."""
    if not learner_id:
        return DailyStudyTotals()
    values = {"learner": learner_id, "since": since.isoformat()}
    first = db.connection().scalar(_SELECT_FIRST_DAY, values)
    rows = db.connection().execute(_SELECT_RECENT_DAYS, values)
    return DailyStudyTotals(
        totals_by_day={day: DayTotals(*rest) for day, *rest in rows},
        first_study_day=dt.date.fromisoformat(first) if first else None,
    )


_SELECT_READINGS_BY_PAGE = (
    select(
        _READING_TABLE.c.topic,
        func.aggregate_strings(
            _READING_TABLE.c.section + "@" + cast(_READING_TABLE.c.at, String), " "
        ),
        func.max(_READING_TABLE.c.at).label("at"),
    )
    .where(_READING_TABLE.c.learner_id == bindparam("learner"))
    .group_by(_READING_TABLE.c.topic)
    .order_by(func.max(_READING_TABLE.c.at).desc())
)


@dataclasses.dataclass(frozen=True, slots=True)
class OpenedPage:
    """A page that was opened: when each section was read, and when the last one was, in ms."""

    topic: str
    read_ms_by_section: Mapping[str, int]
    last_read_ms: int


def _parse_section_read_times(text: str) -> dict[str, int]:
    entries = (entry.rpartition("@") for entry in text.split(" "))
    return {section: int(read_at) for section, _, read_at in entries}


def load_opened_pages(db: Session, learner_id: int) -> tuple[OpenedPage, ...]:
    """Return the pages that this learner has read in, the most recent first."""
    rows = db.connection().execute(_SELECT_READINGS_BY_PAGE, {"learner": learner_id})
    return tuple(
        OpenedPage(topic, _parse_section_read_times(text), read_at) for topic, text, read_at in rows
    )


_IS_ANSWER_RIGHT = literal_column("1") <= SCORE  # no parameter, which PostgreSQL could not group by
_SELECT_CONFIDENCE_COUNTS = (
    select(_ATTEMPT_TABLE.c.certainty, _IS_ANSWER_RIGHT, func.count())
    .select_from(GRADED_ATTEMPTS)
    .where(_ATTEMPT_TABLE.c.learner_id == bindparam("learner"), _ATTEMPT_TABLE.c.first.is_(True))
    .group_by(_ATTEMPT_TABLE.c.certainty, _IS_ANSWER_RIGHT)
)


def count_first_answers_by_confidence_and_correctness(
    db: Session, learner_id: int
) -> dict[tuple[int, bool], int]:
    """Count first answers per certainty (0 for none), fully right or not."""
    rows = db.connection().execute(_SELECT_CONFIDENCE_COUNTS, {"learner": learner_id})
    return {(certainty or 0, bool(right)): count for certainty, right, count in rows}
