"""SQL: what each day held, cards due on the days ahead, and work left open."""

import dataclasses
import datetime as dt
import json
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import String, bindparam, case, cast, func, literal, select
from sqlmodel import Session

from app.database.engine import GRADED, SCORE
from app.database.tables import TABLES
from app.spaced_repetition.review_log import DayTotals

_MEMORY = TABLES["memory"]
_SITTING = TABLES["sitting"]
_RUN = TABLES["practice_run"]
_ATTEMPT = TABLES["attempt"]
_READING = TABLES["reading"]


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPlacementTest:
    """A started placement test: its run, and how many questions are open."""

    run: int
    left: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenPracticeRun:
    """An unfinished practice run: how many of its questions are open, and of how many."""

    run: int
    left: int
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class OpenSitting:
    """A mock exam in progress, and the minutes left on its clock."""

    number: int
    title: str
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class DueCount:
    """The cards of one study day: all, those whose step is not over, and its next end in ms.

    Added cards that were never reviewed are not counted; they are new.
    """

    cards: int
    waiting: int
    next_at: int | None


def _sum_where(condition: Any, value: Any = 1) -> Any:
    return func.coalesce(func.sum(case((condition, value), else_=0)), 0)


_sibling = _MEMORY.alias()


_answered_notes = select(_sibling.c.note).where(
    _sibling.c.learner_id == bindparam("learner"),
    _sibling.c.last_day == bindparam("day"),
)


_waits = _MEMORY.c.state.in_(("learning", "relearning")) & (_MEMORY.c.due_at > bindparam("now"))


_COMING = (
    select(
        _MEMORY.c.due_day,
        _sum_where(_MEMORY.c.state != "new"),
        _sum_where(_waits),
        func.min(case((_waits, _MEMORY.c.due_at))),
    )
    .where(
        _MEMORY.c.learner_id == bindparam("learner"),
        _MEMORY.c.due_day <= bindparam("last"),
        _MEMORY.c.suspended.is_(False),
        (_MEMORY.c.due_day > bindparam("day"))
        | (_MEMORY.c.state != "review")
        | _MEMORY.c.note.not_in(_answered_notes),
    )
    .group_by(_MEMORY.c.due_day)
)


_COMING_OF_COURSE = _COMING.where(_MEMORY.c.card.not_in(bindparam("gone", expanding=True)))


def load_due_counts(
    db: Session,
    learner_id: int,
    span: tuple[dt.date, dt.date, int],
    gone: Collection[str],
) -> dict[str, DueCount]:
    """Return the cards due on each day up to the end of `span`.

    `span` is the study day, the last day, and the moment in ms; `gone` are cards that left the
    course.
    """
    day, last, now = span
    values: dict[str, Any] = {
        "learner": learner_id,
        "day": day.isoformat(),
        "last": last.isoformat(),
        "now": now,
    }
    statement = _COMING
    if gone:
        statement, values["gone"] = _COMING_OF_COURSE, list(gone)
    rows = db.connection().execute(statement, values)
    return {row[0]: DueCount(row[1], row[2], row[3]) for row in rows}


_LATER = (
    select(_MEMORY.c.due_day, func.count())
    .where(
        _MEMORY.c.learner_id == bindparam("learner"),
        _MEMORY.c.due_day > bindparam("day"),
        _MEMORY.c.due_day <= bindparam("last"),
        _MEMORY.c.suspended.is_(False),
        _MEMORY.c.state != "new",
    )
    .group_by(_MEMORY.c.due_day)
)


_LATER_OF_COURSE = _LATER.where(_MEMORY.c.card.not_in(bindparam("gone", expanding=True)))


def load_later_counts(
    db: Session,
    learner_id: int,
    days: tuple[dt.date, dt.date],
    gone: Collection[str],
) -> dict[str, int]:
    """Return the cards of each day after the first of `days`, up to the last.

    Today's cards are not read again: a backlog can be most of a deck.
    """
    after, last = days
    values: dict[str, Any] = {
        "learner": learner_id,
        "day": after.isoformat(),
        "last": last.isoformat(),
    }
    statement = _LATER
    if gone:
        statement, values["gone"] = _LATER_OF_COURSE, list(gone)
    rows = db.connection().execute(statement, values)
    return {row[0]: row[1] for row in rows}


_RUNNING = (
    select(_SITTING.c.id, _SITTING.c.exam, _SITTING.c.deadline_at)
    .where(
        _SITTING.c.learner_id == bindparam("learner"),
        _SITTING.c.closed_at.is_(None),
        _SITTING.c.deadline_at > bindparam("now"),
    )
    .order_by(_SITTING.c.started_at.desc())
    .limit(1)
)


def find_running_exam(db: Session, learner_id: int, now: int) -> OpenSitting | None:
    """Return the mock exam in progress, with the slug of its blueprint, or None."""
    values = {"learner": learner_id, "now": now}
    row = db.connection().execute(_RUNNING, values).first()
    if row is None:
        return None
    return OpenSitting(row[0], row[1], (row[2] - now) / 60_000)


_OF_PLACING = _RUN.c.mode == "placement"


_NEWEST = select(_RUN.c.id, _RUN.c.mode, _RUN.c["items"].label("asked")).where(
    _RUN.c.id.in_(
        select(func.max(_RUN.c.id))
        .where(_RUN.c.learner_id == bindparam("learner"))
        .group_by(_OF_PLACING)
    )
)


_DONE = select(_ATTEMPT.c.run_id, _ATTEMPT.c.item).where(
    _ATTEMPT.c.run_id.in_(bindparam("runs", expanding=True))
)


def load_unfinished_runs(
    db: Session, learner_id: int, known: Collection[str]
) -> tuple[OpenPlacementTest | None, OpenPracticeRun | None]:
    """Return the placement test and the practice run that have unanswered questions.

    Each is the one started last; a practice run must be newer than the last placement test. `known`
    are the questions that the course still has.
    """
    rows = db.connection().execute(_NEWEST, {"learner": learner_id}).all()
    if not rows:
        return None, None
    asked = db.connection().execute(_DONE, {"runs": [row.id for row in rows]})
    done = {(row.run_id, row.item) for row in asked}
    placing, left_run = None, None
    for row in rows:
        items = [item for item in json.loads(row.asked) if item in known]
        left = sum((row.id, item) not in done for item in items)
        if left and row.mode == "placement":
            placing = OpenPlacementTest(row.id, left)
        elif left and row.id == max(one.id for one in rows):
            left_run = OpenPracticeRun(row.id, left, len(items))
    return placing, left_run


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHistory:
    """The study history: recent days by ISO date, and the totals of those before.

    `first` is the first day with work, `earlier` the number of such days before the weeks that are
    shown day by day.
    """

    recent: Mapping[str, DayTotals] = dataclasses.field(default_factory=dict)
    before: DayTotals = dataclasses.field(default_factory=DayTotals)
    earlier: int = 0
    first: dt.date | None = None

    @property
    def total(self) -> DayTotals:
        """The totals of all days."""
        return sum(self.recent.values(), self.before)

    @property
    def count(self) -> int:
        """How many days had an answer or a review."""
        return self.earlier + sum(day.work > 0 for day in self.recent.values())

    @property
    def counts(self) -> dict[str, int]:
        """Answers and reviews by ISO date."""
        return {day: sums.work for day, sums in self.recent.items()}


_DAY = TABLES["study_day"]


_SUMS = [
    _DAY.c[name]
    for name in (
        "answers",
        "reviews",
        "asked",
        "recalled",
        "expected",
        "milliseconds",
    )
]


_mine = _DAY.c.learner_id == bindparam("learner")


_worked = _DAY.c.answers + _DAY.c.reviews > 0


_RECENT = select(_DAY.c.day, literal(1), *_SUMS).where(
    _mine, _worked, _DAY.c.day >= bindparam("since")
)


_BEFORE = select(func.min(_DAY.c.day), func.count(), *map(func.sum, _SUMS)).where(
    _mine, _worked, _DAY.c.day < bindparam("since")
)


_DAYS = _BEFORE.union_all(_RECENT)


def study_days(db: Session, learner_id: int, since: dt.date) -> StudyHistory:
    """Return what was done on each day from `since` on, and the totals before it."""
    if not learner_id:
        return StudyHistory()
    values = {"learner": learner_id, "since": since.isoformat()}
    (first, earlier, *sums), *rows = db.connection().execute(_DAYS, values).all()
    recent = {day: DayTotals(*rest) for day, _, *rest in rows}
    begun = min(day for day in (first or "9999-12-31", *recent))
    return StudyHistory(
        recent=recent,
        before=DayTotals(*(value or 0 for value in sums)),
        earlier=earlier,
        first=dt.date.fromisoformat(begun) if earlier or recent else None,
    )


_PAGES = (
    select(
        _READING.c.topic,
        func.aggregate_strings(_READING.c.section + "@" + cast(_READING.c.at, String), " "),
        func.max(_READING.c.at).label("at"),
    )
    .where(_READING.c.learner_id == bindparam("learner"))
    .group_by(_READING.c.topic)
    .order_by(func.max(_READING.c.at).desc())
)


@dataclasses.dataclass(frozen=True, slots=True)
class PageProgress:
    """A page that was opened: when each section was read, and when the last one was, in ms."""

    topic: str
    sections: Mapping[str, int]
    at: int


def _parse_moments(text: str) -> dict[str, int]:
    marks = (mark.rpartition("@") for mark in text.split(" "))
    return {section: int(at) for section, _, at in marks}


def load_recent_pages(db: Session, learner_id: int) -> tuple[PageProgress, ...]:
    """Return the pages that this learner has read in, the most recent first."""
    rows = db.connection().execute(_PAGES, {"learner": learner_id})
    return tuple(PageProgress(topic, _parse_moments(text), at) for topic, text, at in rows)


_SURE = (
    select(_ATTEMPT.c.certainty, SCORE >= 1, func.count())
    .select_from(GRADED)
    .where(_ATTEMPT.c.learner_id == bindparam("learner"), _ATTEMPT.c.first.is_(True))
    .group_by(_ATTEMPT.c.certainty, SCORE >= 1)
)


def count_by_certainty(db: Session, learner_id: int) -> dict[tuple[int, bool], int]:
    """Count first answers per certainty (0 for none), fully right or not."""
    rows = db.connection().execute(_SURE, {"learner": learner_id})
    return {(certainty or 0, bool(right)): count for certainty, right, count in rows}
