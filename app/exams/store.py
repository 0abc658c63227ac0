"""SQL: sittings and their answers."""

import dataclasses
import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, func, update
from sqlalchemy import select as plain_select
from sqlmodel import Session, col, select

from app.accounts.current_learner import LearnerProfile
from app.clock import from_milliseconds, to_milliseconds
from app.database.engine import (
    ATTEMPT,
    GRADED_ATTEMPTS,
    NEWEST,
    REGRADE,
    REVISION,
    SCORE,
    insert_if_absent,
)
from app.database.quotas import SITTINGS, raise_if_row_quota_exceeded
from app.database.tables import Attempt, Learner, Sitting, SittingAnswer
from app.errors import NotFoundError
from app.exams.answer_merge import AnswerState, MergedAnswer, is_response_entered, merge_answers
from app.exams.assembly import ExamPaper, PaperItem
from app.spaced_repetition.added_cards import CardToAdd, schedule_missed_questions_for_tomorrow
from app.spaced_repetition.review_log import DayTotals, add_to_day_totals

_MAX_MILLISECONDS = 60 * 60 * 1000
_ITEM_SCORES = (
    plain_select(
        ATTEMPT.c["item"],
        ATTEMPT.c.id,
        SCORE,
        REVISION,
        case((REGRADE.c.id.is_not(None), ATTEMPT.c.score)),
    )
    .select_from(GRADED_ATTEMPTS)
    .where(ATTEMPT.c.sitting_id == bindparam("sitting"))
)


@dataclasses.dataclass(frozen=True, slots=True)
class SittingState:
    """A sitting; `closed_at` is None while it is in progress."""

    sitting_id: int
    learner_id: int
    exam_slug: str
    items: tuple[PaperItem, ...]
    time_factor: float
    target_right_answers: int | None
    started_at: dt.datetime
    deadline: dt.datetime
    closed_at: dt.datetime | None
    closed_by: str

    @property
    def time_limit_seconds(self) -> float:
        """The time limit of the whole paper, in seconds."""
        return (self.deadline - self.started_at).total_seconds()


@dataclasses.dataclass(frozen=True, slots=True)
class SavedAnswer:
    """What is saved of one question: response, flag, struck options, time, first response."""

    question_number: int
    raw_response: Mapping[str, Sequence[str]]
    is_flagged: bool = False
    struck_options: tuple[str, ...] = ()
    milliseconds_spent: int = 0
    saved_at: dt.datetime | None = None
    first_response: Mapping[str, Sequence[str]] | None = None

    @property
    def is_answered(self) -> bool:
        return is_response_entered(self.raw_response)

    @property
    def state(self) -> AnswerState:
        """The part that a form can change."""
        return AnswerState(self.raw_response, self.is_flagged, self.struck_options)


@dataclasses.dataclass(frozen=True, slots=True)
class DrawnSitting:
    submission_token: str
    exam_slug: str
    seed: int
    paper: ExamPaper
    time_factor: float
    target_right_answers: int | None
    minutes: float


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerChange:
    """One change to one question of a sitting in progress: the form as it was sent.

    `displayed` is the form as it was before. `shown_at_ms` is 0 if unknown. `waited_ms` is how
    long the change waited in the browser, 0 if it was sent at once.
    """

    question_number: int
    submitted: AnswerState
    displayed: AnswerState = AnswerState()  # noqa: RUF009 - cannot be changed
    has_independent_fields: bool = False
    shown_at_ms: int = 0
    waited_ms: int = 0

    def milliseconds_spent(self, previous_change_ms: int, now_ms: int) -> int:
        """Return the milliseconds since showing, or since the last change at `previous_change_ms`.

        A form sent twice, or from two tabs at once, counts once.
        """
        passed = now_ms - max(self.shown_at_ms, previous_change_ms)
        return passed if self.shown_at_ms and 0 <= passed <= _MAX_MILLISECONDS else 0


@dataclasses.dataclass(frozen=True, slots=True)
class GradedAnswer:
    """One answered question of a sitting, graded."""

    item: PaperItem
    topic: str
    raw_response: Mapping[str, Sequence[str]]
    parsed_response: Mapping[str, Any]
    score: float
    milliseconds_spent: int


@dataclasses.dataclass(frozen=True, slots=True)
class ItemScore:
    """The score of an answered question: its attempt, the score that counts.

    `revision` is the one whose key gave the score; `score_before_regrade` is the score by the
    key of the exam, if the answer was regraded since.
    """

    attempt_id: int
    score: float
    revision: str
    score_before_regrade: float | None


def save_sitting_once(db: Session, learner_id: int, sitting: DrawnSitting, now: dt.datetime) -> int:
    """Start a sitting, or return the one with this token.

    Raises ConflictError if the learner has too many.
    """
    earlier = db.exec(
        select(Sitting.id).where(
            Sitting.token == sitting.submission_token, Sitting.learner_id == learner_id
        )
    ).first()
    if earlier:
        return earlier
    deadline = now + dt.timedelta(minutes=sitting.minutes)
    row = Sitting(
        learner_id=learner_id,
        token=sitting.submission_token,
        exam=sitting.exam_slug,
        seed=sitting.seed,
        paper=json.dumps([dataclasses.astuple(s) for s in sitting.paper.items]),
        factor=sitting.time_factor,
        target=sitting.target_right_answers,
        started_at=to_milliseconds(now),
        deadline_at=to_milliseconds(deadline),
    )
    db.add(row)
    db.flush()
    raise_if_row_quota_exceeded(db, SITTINGS, col(Sitting.learner_id) == learner_id)
    assert row.id is not None  # noqa: S101 - set by the flush
    return row.id


def load_sitting(db: Session, learner_id: int, sitting_id: int) -> SittingState:
    """Return the learner's sitting; raises NotFoundError, also for another learner's."""
    row = db.exec(
        select(Sitting).where(Sitting.id == sitting_id, Sitting.learner_id == learner_id)
    ).first()
    if row is None:
        raise NotFoundError(f"There is no mock exam {sitting_id} of yours.")
    return _sitting_from_row(row)


def find_running_sitting(db: Session, learner_id: int) -> SittingState | None:
    """Return the sitting in progress, or None."""
    row = db.exec(
        select(Sitting)
        .where(Sitting.learner_id == learner_id, col(Sitting.closed_at).is_(None))
        .order_by(col(Sitting.started_at).desc())
    ).first()
    return _sitting_from_row(row) if row else None


def load_overdue_sittings(db: Session, now: dt.datetime, course_name: str) -> list[SittingState]:
    """Return every open sitting of a course whose time is up."""
    rows = db.exec(
        select(Sitting)
        .join(Learner, col(Learner.id) == col(Sitting.learner_id))
        .where(
            col(Sitting.closed_at).is_(None),
            Sitting.deadline_at < to_milliseconds(now),
            Learner.course == course_name,
        )
        .order_by(col(Sitting.learner_id))
    )
    return [_sitting_from_row(row) for row in rows]


class FinishedSitting(NamedTuple):
    sitting: SittingState
    score: float
    answer_count: int


def load_finished_sittings(db: Session, learner_id: int) -> list[FinishedSitting]:
    """Return closed sittings, newest first."""
    total_score = func.coalesce(func.sum(SCORE), 0.0)
    rows = db.exec(
        select(Sitting, total_score, func.count(ATTEMPT.c.id))
        .join(ATTEMPT, ATTEMPT.c.sitting_id == col(Sitting.id), isouter=True)
        .join(REGRADE, NEWEST, isouter=True)
        .where(Sitting.learner_id == learner_id, col(Sitting.closed_at).is_not(None))
        .group_by(col(Sitting.id))
        .order_by(col(Sitting.started_at).desc())
    )
    return [
        FinishedSitting(_sitting_from_row(row), float(score), answers)
        for row, score, answers in rows
    ]


def count_attempts_by_question(db: Session, learner_id: int) -> Counter[str]:
    """Return how often the learner answered each question, in practice and in exams."""
    rows = db.exec(
        select(Attempt.item, func.count())
        .where(Attempt.learner_id == learner_id)
        .group_by(Attempt.item)
    )
    return Counter(dict(rows.all()))


class SeenQuestions(NamedTuple):
    """The questions of the newest paper, and how often each question was seen at all."""

    on_newest_paper: frozenset[str]
    times_seen_by_question: Mapping[str, int]


def load_questions_seen(db: Session, learner_id: int) -> SeenQuestions:
    """Return what a learner saw; questions on a paper count as seen, answered or not."""
    rows = db.exec(
        select(Sitting.paper)
        .where(Sitting.learner_id == learner_id)
        .order_by(col(Sitting.started_at).desc())
    )
    papers = [frozenset(slot[1] for slot in json.loads(paper)) for paper in rows]
    times_seen = count_attempts_by_question(db, learner_id)
    for item in frozenset().union(*papers):
        times_seen[item] = max(times_seen[item], 1)
    return SeenQuestions(next(iter(papers), frozenset()), times_seen)


def load_answers_by_number(db: Session, sitting_id: int) -> dict[int, SavedAnswer]:
    rows = db.exec(select(SittingAnswer).where(SittingAnswer.sitting_id == sitting_id))
    return {row.number: _saved_answer_from_row(row) for row in rows}


def save_answer(
    db: Session, sitting: SittingState, change: AnswerChange, now: dt.datetime
) -> MergedAnswer:
    """Save what was changed in a form, as of the moment at which it was changed.

    An answer that waited in a browser while a newer one was saved is refused.
    """
    row = db.exec(
        select(SittingAnswer).where(
            SittingAnswer.sitting_id == sitting.sitting_id,
            SittingAnswer.number == change.question_number,
        )
    ).first() or SittingAnswer(sitting_id=sitting.sitting_id, number=change.question_number, at=0)
    changed_at = max(to_milliseconds(sitting.started_at), to_milliseconds(now) - change.waited_ms)
    merged = merge_answers(
        _saved_answer_from_row(row).state,
        change.displayed,
        change.submitted,
        form_is_newer=changed_at >= row.at,
        merge_each_field=change.has_independent_fields,
    )
    row.raw = json.dumps({name: list(v) for name, v in merged.state.raw_response.items()})
    if not row.first and is_response_entered(merged.state.raw_response):
        row.first = row.raw
    row.flagged = merged.state.flagged
    row.struck = json.dumps(merged.state.struck_options)
    row.milliseconds += change.milliseconds_spent(row.at, changed_at)
    saved_at = from_milliseconds(row.at) if row.at else None
    row.at = max(row.at, changed_at)
    db.add(row)
    db.flush()
    return dataclasses.replace(merged, saved_at=saved_at)


def mark_sitting_closed(
    db: Session, sitting: SittingState, closed_by: str, closed_at: dt.datetime
) -> bool:
    """Close a sitting once; returns False if it was already closed."""
    result = db.execute(
        update(Sitting)
        .where(col(Sitting.id) == sitting.sitting_id, col(Sitting.closed_at).is_(None))
        .values(closed_at=to_milliseconds(closed_at), closed_by=closed_by)
    )
    return bool(result.rowcount)  # type: ignore[attr-defined] # a cursor result


def record_graded_answers(
    db: Session, sitting: SittingState, graded: Sequence[GradedAnswer], now: dt.datetime
) -> None:
    """Write the graded answers of a closed sitting into the attempt log, once."""
    times_answered = count_attempts_by_question(db, sitting.learner_id)
    zone = db.exec(select(Learner.zone).where(Learner.id == sitting.learner_id)).first()
    day = LearnerProfile("", zone=zone or "UTC").study_day(now).isoformat()
    totals = DayTotals()
    for answer in graded:
        values = {
            "learner_id": sitting.learner_id,
            "token": f"sitting-{sitting.sitting_id}-{answer.item.question_number}",
            "item": answer.item.question_id,
            "revision": answer.item.revision,
            "topic": answer.topic,
            "seed": answer.item.seed,
            "context": "exam",
            "sitting_id": sitting.sitting_id,
            "raw": json.dumps({k: list(v) for k, v in answer.raw_response.items()}),
            "parsed": json.dumps(answer.parsed_response, ensure_ascii=False),
            "score": answer.score,
            "first": not times_answered[answer.item.question_id],
            "hints": 0,
            "milliseconds": answer.milliseconds_spent or None,
            "study_day": day,
            "at": to_milliseconds(now),
        }
        if insert_if_absent(db, Attempt, values) is not None:
            totals += DayTotals(answers=1, milliseconds=answer.milliseconds_spent)
    if totals.answers:
        add_to_day_totals(db, sitting.learner_id, day, totals)


def schedule_missed_questions_if_wanted(
    db: Session, sitting: SittingState, missed: Sequence[CardToAdd], now: dt.datetime
) -> None:
    """Make the questions missed in a closed sitting due again, if the learner wants that."""
    query = select(Learner.missed, Learner.zone).where(Learner.id == sitting.learner_id)
    row = db.exec(query).first()
    if row is not None and row[0]:
        day = LearnerProfile("", zone=row[1]).study_day(now)
        schedule_missed_questions_for_tomorrow(db, sitting.learner_id, missed, day, now)


def load_scores_by_question(db: Session, sitting: SittingState) -> dict[str, ItemScore]:
    """Return the score of each answered question, after the end."""
    rows = db.connection().execute(_ITEM_SCORES, {"sitting": sitting.sitting_id})
    return {item: ItemScore(*values) for item, *values in rows}


def has_first_answers(db: Session, sitting: SittingState) -> bool:
    """Return whether a closed sitting asked something that the learner hadn't answered before."""
    firsts = select(Attempt.id).where(Attempt.sitting_id == sitting.sitting_id, col(Attempt.first))
    return db.exec(firsts.limit(1)).first() is not None


def increment_learner_change_counter(db: Session, learner_id: int) -> None:
    """Count a change that no request of the learner made."""
    db.execute(
        update(Learner).where(col(Learner.id) == learner_id).values(changes=Learner.changes + 1)
    )


def _sitting_from_row(row: Sitting) -> SittingState:
    assert row.id is not None  # noqa: S101 - it was loaded from the database
    return SittingState(
        sitting_id=row.id,
        learner_id=row.learner_id,
        exam_slug=row.exam,
        items=tuple(PaperItem(*slot) for slot in json.loads(row.paper)),
        time_factor=row.factor,
        target_right_answers=row.target,
        started_at=from_milliseconds(row.started_at),
        deadline=from_milliseconds(row.deadline_at),
        closed_at=from_milliseconds(row.closed_at) if row.closed_at is not None else None,
        closed_by=row.closed_by,
    )


def _saved_answer_from_row(row: SittingAnswer) -> SavedAnswer:
    return SavedAnswer(
        question_number=row.number,
        raw_response=json.loads(row.raw),
        is_flagged=row.flagged,
        struck_options=tuple(json.loads(row.struck)),
        milliseconds_spent=row.milliseconds,
        saved_at=from_milliseconds(row.at),
        first_response=json.loads(row.first) if row.first else None,
    )
