"""SQL: answers, reports, regrades."""

import dataclasses
import datetime as dt
import functools
import json
import sys
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import ATTEMPT, GRADED, REGRADE, REVISION, SCORE
from app.database.tables import (
    Attempt,
    CardStateRow,
    ItemReport,
    ItemRevision,
    Learner,
    Regrade,
    Sitting,
)
from app.errors import NotFoundError

LEECH = 8  # lapses of one learner at one card from which it counts as a leech


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAttempt:
    """A learner's first answer to a question; `score` is 0..1.

    `chosen` are the keys of the chosen options, empty for other types.
    """

    learner: int
    item: str
    revision: str
    score: float
    chosen: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class AttemptLogExtent:
    """How many first answers there are, and the sum of their times.

    The sum differs even if as many answers were erased as added and the database reuses row ids.
    `regrades` is how many answers were regraded, and the id of the newest regrade.
    """

    answers: int = 0
    moments: int = 0
    regrades: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class AttemptBatch:
    """Answers in log order, the id of the last row, and the sum of their times."""

    answers: list[FirstAttempt]
    last: int
    moments: int


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerReport:
    """A learner's report, without the learner; `settled` once it was dealt with."""

    id: int
    item: str
    revision: str
    seed: int | None
    words: str
    at: dt.datetime
    settled: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CardLapses:
    """How often a card was forgotten, over all learners.

    `leeches` counts the learners with `LEECH` or more lapses.
    """

    card: str
    learners: int
    reviews: int
    lapses: int
    leeches: int


@dataclasses.dataclass(frozen=True, slots=True)
class SeenWording:
    """A revision of a question that was shown to a learner, and when first."""

    revision: str
    since: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class FirstSitting:
    """A learner's first finished sitting of an exam: scores by position on the paper."""

    learner: int
    exam: str
    points: tuple[float, ...]


def _rows_of_course_learners(course: str, learner: Any) -> ColumnElement[bool]:
    """Return the condition for learners of one course: another course may use the same ids."""
    mine = select(col(Learner.id)).where(col(Learner.course) == course)
    found: ColumnElement[bool] = col(learner).in_(mine)
    return found


def attempt_log_extent(db: Session, course: str, last: int | None = None) -> AttemptLogExtent:
    """Return the extent of the first answers, up to the row `last` if given."""
    wanted = [col(Attempt.first).is_(True), _rows_of_course_learners(course, Attempt.learner_id)]
    if last is not None:
        wanted.append(col(Attempt.id) <= last)
    count, moments = db.execute(
        select(func.count(), func.sum(col(Attempt.at))).where(*wanted)
    ).one()
    return AttemptLogExtent(count, int(moments or 0), count_regraded(db, course))


def count_regraded(db: Session, course: str) -> tuple[int, int]:
    """Return how many answers of a course were regraded, and the id of the newest regrade."""
    numbers = func.count(), func.coalesce(func.max(col(Regrade.id)), 0)
    wanted = select(*numbers).where(_rows_of_course_learners(course, Regrade.learner_id))
    count, newest = db.execute(wanted).one()
    return count, newest


def count_finished_sittings(db: Session, course: str) -> int:
    """Return how many sittings are finished."""
    closed = (
        col(Sitting.closed_at).is_not(None),
        _rows_of_course_learners(course, Sitting.learner_id),
    )
    return int(db.execute(select(func.count()).where(*closed)).scalar_one())


def load_first_answers(db: Session, course: str, after: int, most: int) -> AttemptBatch:
    """Return first answers of all learners in a course, from practice and exams.

    At most `most` of those after the row `after`, in log order.
    """
    rows = db.execute(
        select(
            col(Attempt.id),
            col(Attempt.learner_id),
            col(Attempt.item),
            REVISION,
            SCORE,
            col(Attempt.parsed),
            col(Attempt.at),
        )
        .select_from(GRADED)
        .where(
            col(Attempt.first),
            col(Attempt.id) > after,
            _rows_of_course_learners(course, Attempt.learner_id),
        )
        .order_by(col(Attempt.id))
        .limit(most)
    ).all()
    answers = [
        FirstAttempt(r[1], sys.intern(r[2]), sys.intern(r[3]), r[4], _chosen_options(r[5]))
        for r in rows
    ]
    return AttemptBatch(answers, rows[-1][0] if rows else after, sum(r[6] for r in rows))


def list_learner_reports(
    db: Session, course: str, *, settled: bool = False, item: str = ""
) -> list[LearnerReport]:
    """Return reports, newest first: open ones, with `settled` all; optionally of one question."""
    wanted = [_rows_of_course_learners(course, ItemReport.learner_id)]
    if not settled:
        wanted.append(col(ItemReport.settled_at).is_(None))
    if item:
        wanted.append(col(ItemReport.item) == item)
    rows = db.execute(
        select(
            col(ItemReport.id),
            col(ItemReport.item),
            col(ItemReport.revision),
            col(ItemReport.seed),
            col(ItemReport.words),
            col(ItemReport.at),
            col(ItemReport.settled_at).is_not(None),
        )
        .where(*wanted)
        .order_by(col(ItemReport.at).desc(), col(ItemReport.id).desc())
        .limit(200)
    )
    return [
        LearnerReport(number, name, revision, seed, words, from_milliseconds(at), bool(done))
        for number, name, revision, seed, words, at, done in rows
    ]


def settle_report(db: Session, report: int, now: dt.datetime) -> None:
    """Mark a report as settled; raises NotFoundError."""
    done = db.execute(
        update(ItemReport)
        .where(col(ItemReport.id) == report)
        .values(settled_at=func.coalesce(ItemReport.settled_at, to_milliseconds(now)))
    )
    if not done.rowcount:  # type: ignore[attr-defined] # a cursor result
        raise NotFoundError(f"There is no report {report}.")


def list_lapsed_cards(db: Session, course: str) -> list[CardLapses]:
    """Return cards that any learner forgot, with the number of all their reviews."""
    leech = case((col(CardStateRow.lapses) >= LEECH, 1), else_=0)
    rows = db.execute(
        select(
            col(CardStateRow.card),
            func.count(),
            func.sum(col(CardStateRow.reviews)),
            func.sum(col(CardStateRow.lapses)),
            func.sum(leech),
        )
        .where(
            col(CardStateRow.reviews) > 0, _rows_of_course_learners(course, CardStateRow.learner_id)
        )
        .group_by(col(CardStateRow.card))
        .having(func.sum(col(CardStateRow.lapses)) > 0)
    )
    return [CardLapses(card, *map(int, counts)) for card, *counts in rows]


def list_seen_wordings(db: Session, item: str) -> list[SeenWording]:
    """Return the revisions of a question that were shown, oldest first."""
    rows = db.execute(
        select(col(ItemRevision.revision), col(ItemRevision.first_seen))
        .where(col(ItemRevision.item) == item)
        .order_by(col(ItemRevision.first_seen), col(ItemRevision.id))
    )
    return [SeenWording(revision, from_milliseconds(at)) for revision, at in rows]


def load_revision_bodies(db: Session, after: int) -> list[tuple[int, str, str, str]]:
    """Return (row id, question, revision, JSON body) of the revisions after the row `after`."""
    rows = db.execute(
        select(
            col(ItemRevision.id),
            col(ItemRevision.item),
            col(ItemRevision.revision),
            col(ItemRevision.body),
        )
        .where(col(ItemRevision.id) > after)
        .order_by(col(ItemRevision.id))
    )
    return [(number, item, revision, body) for number, item, revision, body in rows]


def first_exam_sittings(db: Session, course: str) -> list[FirstSitting]:
    """Return the first finished sitting of every learner at every exam."""
    rows = db.execute(
        select(
            col(Sitting.id),
            col(Sitting.learner_id),
            col(Sitting.exam),
            col(Sitting.paper),
        )
        .where(
            col(Sitting.closed_at).is_not(None),
            _rows_of_course_learners(course, Sitting.learner_id),
        )
        .order_by(col(Sitting.started_at), col(Sitting.id))
    )
    first: dict[tuple[int, str], tuple[int, str]] = {}
    for sitting, learner, exam, paper in rows:
        first.setdefault((learner, exam), (sitting, paper))
    points = _points_by_sitting(db)
    return [
        FirstSitting(learner, exam, _score_by_position(paper, points.get(sitting, {})))
        for (learner, exam), (sitting, paper) in first.items()
    ]


def _points_by_sitting(db: Session) -> dict[int, dict[str, float]]:
    rows = db.execute(
        select(ATTEMPT.c.sitting_id, ATTEMPT.c["item"], SCORE)
        .select_from(GRADED)
        .where(ATTEMPT.c.sitting_id.is_not(None))
    )
    found: dict[int, dict[str, float]] = {}
    for sitting, item, score in rows:
        found.setdefault(sitting, {})[item] = score
    return found


def _score_by_position(paper: str, points: dict[str, float]) -> tuple[float, ...]:
    """Return the scores by position. Unanswered questions have no attempt and score 0."""
    slots: Sequence[Sequence[Any]] = json.loads(paper)
    return tuple(points.get(slot[1], 0.0) for slot in slots)


def _chosen_options(parsed: str) -> tuple[str, ...]:
    if '"chosen"' not in parsed:  # most types have none, and parsing costs more
        return ()
    found = json.loads(parsed)
    return _share_equal_tuple(tuple(found["chosen"])) if isinstance(found, dict) else ()


@functools.lru_cache(maxsize=4096)
def _share_equal_tuple(chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Return one shared tuple for equal ones, because many thousands are kept in memory."""
    return chosen


_IN_COURSE = select(col(Learner.id)).where(col(Learner.course) == bindparam("course"))
_ANSWERED = (
    select(
        ATTEMPT.c.id,
        ATTEMPT.c.learner_id,
        func.coalesce(ATTEMPT.c.sitting_id, 0),
        ATTEMPT.c.first,
        REVISION,
        ATTEMPT.c.seed,
        ATTEMPT.c.raw,
        SCORE,
        func.coalesce(REGRADE.c.id, 0),
    )
    .select_from(GRADED)
    .where(
        ATTEMPT.c["item"] == bindparam("item"),
        bindparam("revision") != REVISION,
        ATTEMPT.c.learner_id.in_(_IN_COURSE),
    )
    .order_by(ATTEMPT.c.id)
)
_THEIRS = (
    _IN_COURSE.where(
        col(Learner.id).in_(
            select(ATTEMPT.c.learner_id).where(ATTEMPT.c["item"] == bindparam("item"))
        )
    )
    .order_by(col(Learner.id))
    .with_for_update(read=True, key_share=True)
)


@dataclasses.dataclass(frozen=True, slots=True)
class RegradableAttempt:
    """An answer with the score that counts, and the revision behind the score.

    `sitting` is 0 outside of mock exams, `raw` is the JSON response. `regrade` is the id of the
    newest regrade, 0 for none.
    """

    attempt: int
    learner: int
    sitting: int
    first: bool
    revision: str
    seed: int
    raw: str
    score: float
    regrade: int


@dataclasses.dataclass(frozen=True, slots=True)
class NewScore:
    """The score of an answer by the key of a revision."""

    answer: RegradableAttempt
    revision: str
    score: float


def regradable_attempts(
    db: Session, course: str, item: str, revision: str
) -> list[RegradableAttempt]:
    """Return the answers to a question that were graded by another revision."""
    values = {"course": course, "item": item, "revision": revision}
    return [RegradableAttempt(*row) for row in db.connection().execute(_ANSWERED, values)]


def lock_answerers(db: Session, course: str, item: str) -> frozenset[int]:
    """Lock the learners who answered a question against erasure in this transaction."""
    values = {"course": course, "item": item}
    rows = db.connection().execute(_THEIRS, values)
    return frozenset(number for (number,) in rows if number)


def add_regrades(db: Session, rows: Sequence[NewScore], now: dt.datetime) -> list[int]:
    """Write regrades; returns the learner of each one that no other transaction wrote first."""
    values = [
        {
            "attempt_id": row.answer.attempt,
            "learner_id": row.answer.learner,
            "after": row.answer.regrade,
            "revision": row.revision,
            "score": row.score,
            "at": to_milliseconds(now),
        }
        for row in rows
    ]
    if not values:
        return []
    statement = _insert_statement(db.connection().dialect.name)
    return list(db.connection().execute(statement, values).scalars())


@functools.cache
def _insert_statement(dialect: str) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(REGRADE).on_conflict_do_nothing().returning(REGRADE.c.learner_id)
