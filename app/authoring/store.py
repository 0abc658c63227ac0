"""SQL: answers, reports, regrades."""

import dataclasses
import datetime as dt
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, bindparam, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col

from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, REGRADE, REVISION, SCORE
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
from app.spaced_repetition.scheduler import LEECH_LAPSES


@dataclasses.dataclass(frozen=True, slots=True)
class FirstAttempt:
    """A learner's first answer to a question; `score` is 0..1.

    `chosen_option_keys` are the keys of options, empty for other types.
    """

    learner_id: int
    question_id: str
    graded_by_revision: str
    score: float
    chosen_option_keys: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerLogVersion:
    """Numbers that differ if any first answer, regrade or finished sitting was added or erased.

    The sum of the times differs even if as many answers were erased as added and the database
    reuses row ids.
    """

    first_answer_count: int
    sum_of_first_answer_times: int
    regrade_count: int
    newest_regrade_id: int
    finished_sitting_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerReport:
    """A learner's report, without the learner; `is_settled` once it was dealt with."""

    id: int
    question_id: str
    revision: str
    seed: int | None
    text: str
    reported_at: dt.datetime
    is_settled: bool


@dataclasses.dataclass(frozen=True, slots=True)
class CardLapses:
    """How often a card was forgotten, over all learners.

    `leech_learner_count` counts the learners with `LEECH_LAPSES` or more.
    """

    card_id: str
    learner_count: int
    review_count: int
    lapse_count: int
    leech_learner_count: int


@dataclasses.dataclass(frozen=True, slots=True)
class SeenWording:
    """A revision of a question that was shown to a learner, and when first."""

    revision: str
    first_shown: dt.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class FirstFinishedSitting:
    """A learner's first finished sitting of an exam: scores by position on the paper."""

    learner_id: int
    exam_slug: str
    score_by_position: tuple[float, ...]


def _learner_of_course_condition(course_name: str, learner: Any) -> ColumnElement[bool]:
    """Return the condition for learners of one course: another course may use the same ids."""
    learners = select(col(Learner.id)).where(col(Learner.course) == course_name)
    condition: ColumnElement[bool] = col(learner).in_(learners)
    return condition


def read_answer_log_version(db: Session, course_name: str) -> AnswerLogVersion:
    """Return what tells whether the answers changed since the statistics were computed."""
    answers, sum_of_times = db.execute(
        select(func.count(), func.coalesce(func.sum(col(Attempt.at)), 0)).where(
            col(Attempt.first).is_(True),
            _learner_of_course_condition(course_name, Attempt.learner_id),
        )
    ).one()
    regrades, newest_regrade = db.execute(
        select(func.count(), func.coalesce(func.max(col(Regrade.id)), 0)).where(
            _learner_of_course_condition(course_name, Regrade.learner_id)
        )
    ).one()
    sittings = db.execute(
        select(func.count()).where(
            col(Sitting.closed_at).is_not(None),
            _learner_of_course_condition(course_name, Sitting.learner_id),
        )
    ).scalar_one()
    return AnswerLogVersion(answers, int(sum_of_times), regrades, newest_regrade, sittings)


def load_first_attempts(db: Session, course_name: str) -> list[FirstAttempt]:
    """Return first answers of all learners in a course, from practice and exams, in log order."""
    rows = db.execute(
        select(col(Attempt.learner_id), col(Attempt.item), REVISION, SCORE, col(Attempt.parsed))
        .select_from(GRADED_ATTEMPTS)
        .where(col(Attempt.first), _learner_of_course_condition(course_name, Attempt.learner_id))
        .order_by(col(Attempt.id))
    )
    return [
        FirstAttempt(learner, item, revision, score, _parse_chosen_option_keys(parsed))
        for learner, item, revision, score, parsed in rows
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which answers to a question to list; empty fields do not limit.

    Days are in UTC, and both ends are included. `joined_since` and `joined_until` are about the
    day on which a learner began. `context` is page, quiz, practice, placement or exam.
    """

    answered_since: dt.date | None = None
    answered_until: dt.date | None = None
    joined_since: dt.date | None = None
    joined_until: dt.date | None = None
    context: str = ""
    include_repeated: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """An answer as the log has it; `response_json` is the JSON response, `score` the one that counts."""

    learner_id: int
    seed: int
    response_json: str
    score: float
    certainty: int | None
    milliseconds: int | None


def list_logged_answers(
    db: Session, course_name: str, question_id: str, answer_filter: AnswerFilter
) -> list[LoggedAnswer]:
    """Return the answers to a question, in log order; without `include_repeated` only first ones."""
    conditions = [
        col(Attempt.item) == question_id,
        _learner_of_course_condition(course_name, Attempt.learner_id),
    ]
    if not answer_filter.include_repeated:
        conditions.append(col(Attempt.first).is_(True))
    if answer_filter.context:
        conditions.append(col(Attempt.context) == answer_filter.context)
    conditions += _build_day_range_conditions(
        col(Attempt.at), answer_filter.answered_since, answer_filter.answered_until
    )
    joined_since, joined_until = answer_filter.joined_since, answer_filter.joined_until
    if joined_since or joined_until:
        limits = _build_day_range_conditions(col(Learner.created_at), joined_since, joined_until)
        conditions.append(col(Attempt.learner_id).in_(select(col(Learner.id)).where(*limits)))
    rows = db.execute(
        select(
            col(Attempt.learner_id),
            col(Attempt.seed),
            col(Attempt.raw),
            SCORE,
            col(Attempt.certainty),
            col(Attempt.milliseconds),
        )
        .select_from(GRADED_ATTEMPTS)
        .where(*conditions)
        .order_by(col(Attempt.id))
    )
    return [LoggedAnswer(*row) for row in rows]


def _build_day_range_conditions(
    milliseconds_column: Mapped[int], first_day: dt.date | None, last_day: dt.date | None
) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that limit a column of milliseconds to days in UTC."""

    def day_start(day: dt.date) -> int:
        return to_milliseconds(dt.datetime.combine(day, dt.time(), dt.UTC))

    if first_day:
        yield milliseconds_column >= day_start(first_day)
    if last_day:
        yield milliseconds_column < day_start(last_day + dt.timedelta(days=1))


def list_learner_reports(
    db: Session, course_name: str, *, include_settled: bool = False, question_id: str = ""
) -> list[LearnerReport]:
    """Return reports, newest first: open ones, with `include_settled` all; optionally of one question."""
    conditions = [_learner_of_course_condition(course_name, ItemReport.learner_id)]
    if not include_settled:
        conditions.append(col(ItemReport.settled_at).is_(None))
    if question_id:
        conditions.append(col(ItemReport.item) == question_id)
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
        .where(*conditions)
        .order_by(col(ItemReport.at).desc(), col(ItemReport.id).desc())
        .limit(200)
    )
    return [
        LearnerReport(
            report_id, name, revision, seed, text, from_milliseconds(at), bool(is_settled)
        )
        for report_id, name, revision, seed, text, at, is_settled in rows
    ]


def mark_report_settled(db: Session, report_id: int, now: dt.datetime) -> None:
    """Mark a report as settled; raises NotFoundError."""
    result = db.execute(
        update(ItemReport)
        .where(col(ItemReport.id) == report_id)
        .values(settled_at=func.coalesce(ItemReport.settled_at, to_milliseconds(now)))
    )
    if not result.rowcount:  # type: ignore[attr-defined] # a cursor result
        raise NotFoundError(f"There is no report {report_id}.")


def list_lapsed_cards(db: Session, course_name: str) -> list[CardLapses]:
    """Return cards that any learner forgot, with the number of all their reviews."""
    leech = case((col(CardStateRow.lapses) >= LEECH_LAPSES, 1), else_=0)
    rows = db.execute(
        select(
            col(CardStateRow.card),
            func.count(),
            func.sum(col(CardStateRow.reviews)),
            func.sum(col(CardStateRow.lapses)),
            func.sum(leech),
        )
        .where(
            col(CardStateRow.reviews) > 0,
            _learner_of_course_condition(course_name, CardStateRow.learner_id),
        )
        .group_by(col(CardStateRow.card))
        .having(func.sum(col(CardStateRow.lapses)) > 0)
    )
    return [CardLapses(card, *map(int, counts)) for card, *counts in rows]


def list_seen_wordings(db: Session, question_id: str) -> list[SeenWording]:
    """Return the revisions of a question that were shown, oldest first."""
    rows = db.execute(
        select(col(ItemRevision.revision), col(ItemRevision.first_seen))
        .where(col(ItemRevision.item) == question_id)
        .order_by(col(ItemRevision.first_seen), col(ItemRevision.id))
    )
    return [SeenWording(revision, from_milliseconds(at)) for revision, at in rows]


class StoredRevision(NamedTuple):
    question_id: str
    revision: str
    question_json: str


def load_stored_revisions(db: Session) -> list[StoredRevision]:
    """Return the revisions of all questions, oldest first."""
    rows = db.execute(
        select(col(ItemRevision.item), col(ItemRevision.revision), col(ItemRevision.body)).order_by(
            col(ItemRevision.id)
        )
    )
    return [StoredRevision(*row) for row in rows]


def load_first_finished_sittings(db: Session, course_name: str) -> list[FirstFinishedSitting]:
    """Return the first finished sitting of every learner at every exam."""
    rows = db.execute(
        select(col(Sitting.id), col(Sitting.learner_id), col(Sitting.exam), col(Sitting.paper))
        .where(
            col(Sitting.closed_at).is_not(None),
            _learner_of_course_condition(course_name, Sitting.learner_id),
        )
        .order_by(col(Sitting.started_at), col(Sitting.id))
    )
    first_sittings: dict[tuple[int, str], Row[int, int, str, str]] = {}
    for row in rows:
        first_sittings.setdefault((row.learner_id, row.exam), row)
    scores = _load_scores_by_sitting_and_item(db)
    return [
        FirstFinishedSitting(
            row.learner_id, row.exam, _list_scores_by_position(row.paper, scores.get(row.id, {}))
        )
        for row in first_sittings.values()
    ]


def _load_scores_by_sitting_and_item(db: Session) -> dict[int, dict[str, float]]:
    rows = db.execute(
        select(ATTEMPT.c.sitting_id, ATTEMPT.c["item"], SCORE)
        .select_from(GRADED_ATTEMPTS)
        .where(ATTEMPT.c.sitting_id.is_not(None))
    )
    scores: dict[int, dict[str, float]] = {}
    for sitting, item, score in rows:
        scores.setdefault(sitting, {})[item] = score
    return scores


def _list_scores_by_position(paper_json: str, score_by_item: dict[str, float]) -> tuple[float, ...]:
    """Return the scores by position. Unanswered questions have no attempt and score 0."""
    slots: Sequence[Sequence[Any]] = json.loads(paper_json)
    return tuple(score_by_item.get(slot[1], 0.0) for slot in slots)


def _parse_chosen_option_keys(parsed_response_json: str) -> tuple[str, ...]:
    if '"chosen"' not in parsed_response_json:  # most types have none, and parsing costs more
        return ()
    answer = json.loads(parsed_response_json)
    return tuple(answer["chosen"]) if isinstance(answer, dict) else ()


_IN_COURSE = select(col(Learner.id)).where(col(Learner.course) == bindparam("course"))
_GRADED_BY_OTHER_REVISIONS = (
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
    .select_from(GRADED_ATTEMPTS)
    .where(
        ATTEMPT.c["item"] == bindparam("item"),
        bindparam("excluded_revision") != REVISION,
        ATTEMPT.c.learner_id.in_(_IN_COURSE),
    )
    .order_by(ATTEMPT.c.id)
)
_LEARNERS_WHO_ANSWERED = (
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

    `sitting_id` is 0 outside of mock exams, `response_json` is the JSON response. `regrade_id` is that of the
    newest regrade, 0 for none.
    """

    attempt_id: int
    learner_id: int
    sitting_id: int
    is_first: bool
    graded_by_revision: str
    seed: int
    response_json: str
    score: float
    regrade_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class NewScore:
    """The score of an answer by the key of a revision."""

    attempt: RegradableAttempt
    revision: str
    score: float


def load_regradable_attempts(
    db: Session, course_name: str, question_id: str, excluded_revision: str
) -> list[RegradableAttempt]:
    """Return the answers to a question, without those graded by `excluded_revision`."""
    values = {"course": course_name, "item": question_id, "excluded_revision": excluded_revision}
    rows = db.connection().execute(_GRADED_BY_OTHER_REVISIONS, values)
    return [RegradableAttempt(*row) for row in rows]


_SUBMITTED_RESPONSES = (
    select(ATTEMPT.c.seed, ATTEMPT.c.raw)
    .select_from(GRADED_ATTEMPTS)
    .where(
        ATTEMPT.c["item"] == bindparam("item"),
        bindparam("revision") == REVISION,
        ATTEMPT.c.first,
        ATTEMPT.c.learner_id.in_(_IN_COURSE),
    )
    .order_by(ATTEMPT.c.id.desc())
    .limit(500)
)


def load_newest_first_responses(
    db: Session, course_name: str, question_id: str, revision: str
) -> Iterator[tuple[int, Mapping[str, Sequence[str]]]]:
    """Yield the seeds and fields of the newest first answers to a revision, at most 500."""
    values = {"course": course_name, "item": question_id, "revision": revision}
    for seed, raw in db.connection().execute(_SUBMITTED_RESPONSES, values):
        yield seed, json.loads(raw)


def lock_learners_who_answered(db: Session, course_name: str, question_id: str) -> frozenset[int]:
    """Lock the learners who answered a question against erasure in this transaction."""
    values = {"course": course_name, "item": question_id}
    rows = db.connection().execute(_LEARNERS_WHO_ANSWERED, values)
    return frozenset(learner_id for (learner_id,) in rows if learner_id)


def write_regrades_returning_learner_ids(
    db: Session, new_scores: Sequence[NewScore], now: dt.datetime
) -> list[int]:
    """Write regrades; returns the learner of each one that no other transaction wrote first."""
    values = [
        {
            "attempt_id": row.attempt.attempt_id,
            "learner_id": row.attempt.learner_id,
            "after": row.attempt.regrade_id,
            "revision": row.revision,
            "score": row.score,
            "at": to_milliseconds(now),
        }
        for row in new_scores
    ]
    if not values:
        return []
    statement = _insert_regrade_statement(db.connection().dialect.name)
    return list(db.connection().execute(statement, values).scalars())


@functools.cache
def _insert_regrade_statement(dialect: str) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(REGRADE).on_conflict_do_nothing().returning(REGRADE.c.learner_id)
