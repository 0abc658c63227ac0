"""SQL: attempts, practice runs, reports, flags."""

import dataclasses
import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import and_, delete, func, or_, select
from sqlmodel import Session, col

from app.clock import to_milliseconds
from app.content.course import Course
from app.database.engine import ATTEMPT, GRADED_ATTEMPTS, REGRADE, REVISION, SCORE, insert_if_absent
from app.database.quotas import MOST_RUNS, OPEN_REPORTS, raise_if_row_quota_exceeded
from app.database.tables import Attempt, ItemReport, ItemRevision, PracticeRun, QuestionFlag
from app.errors import NotFoundError
from app.questions.model import Question
from app.questions.question_type import GradeResult, SubmittedFields
from app.quiz.selection import PastAttempts
from app.spaced_repetition.added_card_ids_and_faces import build_question_card_id
from app.spaced_repetition.added_cards import CardToAdd, schedule_missed_questions_for_tomorrow
from app.spaced_repetition.review_log import DayTotals, add_to_day_totals, hash_submission_token

QUESTION = TypeAdapter(Question)
_MOST_SEEDS = 50
_LONGEST_WAIT = 60 * 60 * 1000
_ATTEMPT_COLUMNS = (
    ATTEMPT.c.id,
    ATTEMPT.c["item"],
    ATTEMPT.c.topic,
    REVISION,
    ATTEMPT.c.seed,
    ATTEMPT.c.raw,
    SCORE,
    ATTEMPT.c.certainty,
    ATTEMPT.c.context,
    ATTEMPT.c.run_id,
    ATTEMPT.c.hints,
    REGRADE.c.id.is_not(None),
)


@dataclasses.dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """A saved answer, with the score that counts and the revision it is based on.

    `was_regraded` says that this is not the revision that was answered.
    """

    id: int
    question_id: str
    topic: str
    revision: str
    seed: int
    raw_response: SubmittedFields
    score: float
    certainty: int | None
    context: str
    run_id: int | None
    hint_count: int
    was_regraded: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class NewAttempt:
    """The values of a new attempt.

    `becomes_card` says that the question becomes a card.
    """

    question: Question
    seed: int
    raw_response: SubmittedFields
    verdict: GradeResult
    submission_token: str
    context: str
    run_id: int | None = None
    certainty: int | None = None
    hint_count: int = 0
    milliseconds: int | None = None
    becomes_card: bool = False


class LastAnswer(NamedTuple):
    attempt_id: int
    score: float


@dataclasses.dataclass(frozen=True, slots=True)
class PracticeRunState:
    """A practice run; `last_answer_by_question` has the last attempt at each question.

    `questions_not_known` are the questions that were answered “I don't know”.
    """

    id: int
    mode: str
    scope: str
    question_ids: tuple[str, ...]
    last_answer_by_question: Mapping[str, LastAnswer]
    questions_not_known: frozenset[str] = frozenset()

    @property
    def is_resumable(self) -> bool:
        """Whether it was left in the middle; a placement test also before its first answer."""
        is_begun = bool(self.last_answer_by_question) or self.mode == "placement"
        return is_begun and self.has_unanswered_question

    @property
    def has_unanswered_question(self) -> bool:
        return len(self.last_answer_by_question) < len(self.question_ids)

    def with_answer(self, attempt: RecordedAttempt) -> "PracticeRunState":
        """Return the run with one more answer; sending one again changes nothing."""
        answer = LastAnswer(attempt.id, attempt.score)
        newest = max(answer, self.last_answer_by_question.get(attempt.question_id, answer))
        unknown = (
            self.questions_not_known - {attempt.question_id}
            if attempt.raw_response
            else self.questions_not_known | {attempt.question_id}
        )
        answers = {**self.last_answer_by_question, attempt.question_id: newest}
        return dataclasses.replace(
            self, last_answer_by_question=answers, questions_not_known=unknown
        )


@dataclasses.dataclass(frozen=True, slots=True)
class NewPracticeRun:
    submission_token: str
    mode: str
    scope: str
    question_ids: Sequence[str]


def load_seeds_newest_first(db: Session, learner_id: int, item: str) -> tuple[int, ...]:
    """Return the seeds of the learner's attempts at a question, newest first."""
    if not learner_id:
        return ()
    rows = db.execute(
        select(col(Attempt.seed))
        .where(col(Attempt.learner_id) == learner_id, col(Attempt.item) == item)
        .order_by(col(Attempt.at).desc(), col(Attempt.id).desc())
        .limit(_MOST_SEEDS)
    )
    return tuple(seed for (seed,) in rows)


def save_attempt_once(
    db: Session, learner_id: int, attempt: NewAttempt, day: dt.date, now: dt.datetime
) -> int:
    """Save an answer once; returns the id of the attempt.

    If the same form sends the same answer again, returns the existing attempt.
    """
    raw = json.dumps({k: list(v) for k, v in attempt.raw_response.items()}, ensure_ascii=False)
    token = hash_submission_token(learner_id, attempt.question.id, attempt.submission_token, raw)
    first = not load_seeds_newest_first(db, learner_id, attempt.question.id)
    row = {"learner_id": learner_id, "token": token, "raw": raw, "first": first}
    row |= _attempt_columns(attempt) | {"study_day": day.isoformat(), "at": to_milliseconds(now)}
    number = insert_if_absent(db, Attempt, row)
    if number is None:
        return db.scalars(select(col(Attempt.id)).where(col(Attempt.token) == token)).one() or 0
    work = DayTotals(answers=1, milliseconds=attempt.milliseconds or 0)
    add_to_day_totals(db, learner_id, day.isoformat(), work)
    save_revision_once(db, attempt.question, now)
    if attempt.becomes_card:
        item = attempt.question
        card = CardToAdd(build_question_card_id(item.id), item.topic, attempt.seed)
        schedule_missed_questions_for_tomorrow(db, learner_id, [card], day, now)
    return number


def _attempt_columns(attempt: NewAttempt) -> dict[str, Any]:
    question = attempt.question
    return {
        "item": question.id,
        "revision": question.revision,
        "topic": question.topic,
        "seed": attempt.seed,
        "context": attempt.context,
        "run_id": attempt.run_id,
        "parsed": json.dumps(attempt.verdict.parsed_response, ensure_ascii=False),
        "score": attempt.verdict.score,
        "certainty": attempt.certainty,
        "hints": attempt.hint_count,
        "milliseconds": attempt.milliseconds,
    }


def compute_answer_milliseconds(shown_at_ms: int, now: dt.datetime) -> int | None:
    """Return the milliseconds from showing to answering; None if not plausible."""
    passed = to_milliseconds(now) - shown_at_ms
    return passed if shown_at_ms and 0 <= passed <= _LONGEST_WAIT else None


def load_attempt(db: Session, learner_id: int, attempt_id: int) -> RecordedAttempt:
    """Return an attempt of this learner; raises NotFoundError if it has no such attempt."""
    row = db.execute(
        select(*_ATTEMPT_COLUMNS)
        .select_from(GRADED_ATTEMPTS)
        .where(
            col(Attempt.id) == attempt_id,
            col(Attempt.learner_id) == learner_id,
            col(Attempt.sitting_id).is_(None),
        )
    ).first()
    if row is None:
        raise NotFoundError(f"There is no answer {attempt_id} of yours.")
    number, item, topic, revision, seed, raw, *rest = row
    return RecordedAttempt(number, item, topic, revision, seed, json.loads(raw), *rest)


def load_question_if_stored(db: Session, item: str, revision: str) -> Question | None:
    body = db.scalar(
        select(col(ItemRevision.body)).where(
            col(ItemRevision.item) == item, col(ItemRevision.revision) == revision
        )
    )
    return QUESTION.validate_json(body) if body else None


def load_question_in_revision(db: Session, course: Course, item: str, revision: str) -> Question:
    """Return a question in a revision that was saved when it was drawn or first answered."""
    current = course.questions.get(item)
    if current is not None and current.revision == revision:
        return current
    earlier = load_question_if_stored(db, item, revision)
    assert earlier is not None  # noqa: S101
    return earlier


def load_past_attempts_by_question(db: Session, learner_id: int) -> dict[str, PastAttempts]:
    """Return the learner's attempts at each question, one entry per question."""
    if not learner_id:
        return {}
    newest = (
        select(func.max(col(Attempt.id)).label("newest"), func.count().label("tries"))
        .where(col(Attempt.learner_id) == learner_id)
        .group_by(col(Attempt.item))
        .subquery()
    )
    rows = db.execute(
        select(ATTEMPT.c["item"], newest.c.tries, SCORE, ATTEMPT.c.at).select_from(
            GRADED_ATTEMPTS.join(newest, ATTEMPT.c.id == newest.c.newest)
        )
    )
    return {item: PastAttempts(tries, score, at) for item, tries, score, at in rows}


def save_run_once(db: Session, learner_id: int, run: NewPracticeRun, now: dt.datetime) -> int:
    """Save a new practice run once; returns its id.

    If the learner has too many runs, the oldest are deleted. Their answers stay. Only a few runs
    are deleted at a time, however many there are.
    """
    token = hash_submission_token(learner_id, "run", run.submission_token, "")
    number = insert_if_absent(
        db,
        PracticeRun,
        {
            "learner_id": learner_id,
            "token": token,
            "mode": run.mode,
            "scope": run.scope,
            "items": json.dumps(list(run.question_ids)),
            "at": to_milliseconds(now),
        },
    )
    if number is None:
        statement = select(col(PracticeRun.id)).where(col(PracticeRun.token) == token)
        return db.scalars(statement).one() or 0
    mine = select(col(PracticeRun.id)).where(col(PracticeRun.learner_id) == learner_id)
    oldest = mine.order_by(col(PracticeRun.id).desc()).limit(10).offset(MOST_RUNS)
    db.execute(delete(PracticeRun).where(col(PracticeRun.id).in_(oldest)))
    return number


def find_run(db: Session, learner_id: int, run_id: int) -> PracticeRunState:
    """Return a run of this learner with its answers; raises NotFoundError.

    A question of a day's list counts as answered wherever it was answered on that day.
    """
    row = db.execute(
        select(col(PracticeRun.mode), col(PracticeRun.scope), col(PracticeRun.items))
        .where(col(PracticeRun.id) == run_id)
        .where(col(PracticeRun.learner_id) == learner_id)
    ).first()
    if row is None:
        raise NotFoundError(f"There is no practice run {run_id} of yours.")
    items, of_run = tuple(json.loads(row[2])), ATTEMPT.c.run_id == run_id
    if row[0] == "today":
        elsewhere = ATTEMPT.c.study_day == row[1], ATTEMPT.c["item"].in_(items)
        of_run = or_(of_run, and_(ATTEMPT.c.learner_id == learner_id, *elsewhere))
    rows = db.execute(
        select(ATTEMPT.c["item"], ATTEMPT.c.id, SCORE, ATTEMPT.c.raw)
        .select_from(GRADED_ATTEMPTS)
        .where(of_run)
        .order_by(func.coalesce(ATTEMPT.c.run_id, 0) == run_id, ATTEMPT.c.id)  # its own win
    )
    given, raw = {}, {}
    for item, attempt, score, sent in rows:
        given[item], raw[item] = LastAnswer(attempt, score), sent
    unknown = frozenset(item for item, sent in raw.items() if not json.loads(sent))
    return PracticeRunState(run_id, row[0], row[1], items, given, unknown)


def count_missed_before_run(db: Session, learner_id: int, run_id: int, items: Sequence[str]) -> int:
    """Return how many of the questions were not fully right when last answered before a run."""
    began = select(func.min(ATTEMPT.c.id)).where(ATTEMPT.c.run_id == run_id).scalar_subquery()
    newest = (
        select(func.max(ATTEMPT.c.id))
        .where(ATTEMPT.c.learner_id == learner_id, ATTEMPT.c["item"].in_(items))
        .where(ATTEMPT.c.id < began)
        .group_by(ATTEMPT.c["item"])
    )
    earlier = select(SCORE).select_from(GRADED_ATTEMPTS).where(ATTEMPT.c.id.in_(newest))
    return sum(score < 1 for score in db.scalars(earlier))


def load_last_day_of_run(db: Session, run_id: int) -> dt.date | None:
    """Return the study day of the last answer to a run; None before the first one."""
    day = db.scalar(select(func.max(ATTEMPT.c.study_day)).where(ATTEMPT.c.run_id == run_id))
    return dt.date.fromisoformat(day) if day else None


def load_newest_run(db: Session, learner_id: int) -> PracticeRunState | None:
    """Return the run started last; None if there is none."""
    if not learner_id:
        return None
    number = db.scalar(
        select(func.max(col(PracticeRun.id))).where(col(PracticeRun.learner_id) == learner_id)
    )
    return find_run(db, learner_id, number) if number else None


@dataclasses.dataclass(frozen=True, slots=True)
class StartedPlacementTest:
    """A started placement test: its run, and how many questions are open."""

    run_id: int
    unanswered_count: int


def find_placement_test(
    db: Session, learner_id: int, course_questions: Collection[str]
) -> StartedPlacementTest | None:
    """Return the placement test started last, with its open questions that the course still has."""
    row = db.execute(
        select(col(PracticeRun.id), col(PracticeRun.items))
        .where(col(PracticeRun.learner_id) == learner_id, col(PracticeRun.mode) == "placement")
        .order_by(col(PracticeRun.id).desc())
    ).first()
    if row is None:
        return None
    answered = set(db.scalars(select(ATTEMPT.c["item"]).where(ATTEMPT.c.run_id == row[0])))
    asked = [item for item in json.loads(row[1]) if item in course_questions]
    return StartedPlacementTest(row[0], sum(item not in answered for item in asked))


def save_report_once(
    db: Session, learner_id: int, column_values: Mapping[str, Any], now: dt.datetime
) -> None:
    """Save a learner's report about a question, once.

    Raises ConflictError if the learner has too many open reports.
    """
    token = hash_submission_token(
        learner_id, column_values["item"], column_values["token"], column_values["words"]
    )
    kept = {**column_values, "token": token, "learner_id": learner_id}
    if insert_if_absent(db, ItemReport, {**kept, "at": to_milliseconds(now)}) is not None:
        still_open = col(ItemReport.settled_at).is_(None)
        mine = col(ItemReport.learner_id) == learner_id
        raise_if_row_quota_exceeded(db, OPEN_REPORTS, mine, still_open)


def save_revision_once(db: Session, question: Question, now: dt.datetime) -> None:
    known = db.scalar(
        select(col(ItemRevision.id)).where(
            col(ItemRevision.item) == question.id, col(ItemRevision.revision) == question.revision
        )
    )
    if known is None:
        values = {
            "item": question.id,
            "revision": question.revision,
            "body": QUESTION.dump_json(question).decode(),
            "first_seen": to_milliseconds(now),
        }
        insert_if_absent(db, ItemRevision, values)


def load_flagged_questions(db: Session, learner_id: int) -> frozenset[str]:
    if not learner_id:
        return frozenset()
    mine = col(QuestionFlag.learner_id) == learner_id
    return frozenset(db.scalars(select(col(QuestionFlag.item)).where(mine)))


def set_question_flag(
    db: Session, learner_id: int, item: str, now: dt.datetime, *, wanted: bool
) -> None:
    """Flag a question, or remove the flag; has no effect if it is already so."""
    if wanted:
        values = {"learner_id": learner_id, "item": item, "at": to_milliseconds(now)}
        insert_if_absent(db, QuestionFlag, values)
        return
    db.execute(
        delete(QuestionFlag).where(
            col(QuestionFlag.learner_id) == learner_id, col(QuestionFlag.item) == item
        )
    )
