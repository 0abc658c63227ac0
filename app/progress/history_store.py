"""SQL: totals of each study day, opened pages, and unfinished work."""

import dataclasses
import datetime as dt
from collections.abc import Mapping

from sqlalchemy import String, bindparam, cast, func, literal_column, select
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
class RunningExam:
    """A mock exam in progress, and the minutes left on its clock."""

    sitting_id: int
    title_or_slug: str
    minutes_left: float


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


def find_running_exam(db: Session, learner_id: int, now_ms: int) -> RunningExam | None:
    """Return the mock exam in progress, with the slug of its blueprint, or None."""
    values = {"learner": learner_id, "now": now_ms}
    row = db.connection().execute(_RUNNING, values).first()
    if row is None:
        return None
    return RunningExam(row[0], row[1], (row[2] - now_ms) / 60_000)


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHistory:
    """The totals of recent days by ISO date, and the `first_study_day` of all days with work."""

    totals_by_day: Mapping[str, DayTotals] = dataclasses.field(default_factory=dict)
    first_study_day: dt.date | None = None

    @property
    def answers_and_reviews_by_day(self) -> dict[str, int]:
        """Answers and reviews by ISO date."""
        return {day: sums.count_of_answers_and_reviews for day, sums in self.totals_by_day.items()}


_DAY = TABLES["study_day"]
_SUMS = [
    _DAY.c[name] for name in ("answers", "reviews", "asked", "recalled", "expected", "milliseconds")
]
_MINE = (_DAY.c.learner_id == bindparam("learner"), _DAY.c.answers + _DAY.c.reviews > 0)
_RECENT = select(_DAY.c.day, *_SUMS).where(*_MINE, _DAY.c.day >= bindparam("since"))
_FIRST = select(func.min(_DAY.c.day)).where(*_MINE)


def load_daily_study_history(db: Session, learner_id: int, since: dt.date) -> StudyHistory:
    """Return what was done on each day from `since` on, and the first day."""
    if not learner_id:
        return StudyHistory()
    values = {"learner": learner_id, "since": since.isoformat()}
    first = db.connection().scalar(_FIRST, values)
    rows = db.connection().execute(_RECENT, values)
    return StudyHistory(
        totals_by_day={day: DayTotals(*rest) for day, *rest in rows},
        first_study_day=dt.date.fromisoformat(first) if first else None,
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
    rows = db.connection().execute(_PAGES, {"learner": learner_id})
    return tuple(
        OpenedPage(topic, _parse_section_read_times(text), read_at) for topic, text, read_at in rows
    )


_RIGHT = literal_column("1") <= SCORE  # no parameter, which PostgreSQL could not group by
_SURE = (
    select(_ATTEMPT.c.certainty, _RIGHT, func.count())
    .select_from(GRADED)
    .where(_ATTEMPT.c.learner_id == bindparam("learner"), _ATTEMPT.c.first.is_(True))
    .group_by(_ATTEMPT.c.certainty, _RIGHT)
)


def count_first_answers_by_level_and_right(
    db: Session, learner_id: int
) -> dict[tuple[int, bool], int]:
    """Count first answers per certainty (0 for none), fully right or not."""
    rows = db.connection().execute(_SURE, {"learner": learner_id})
    return {(certainty or 0, bool(right)): count for certainty, right, count in rows}
