"""Start, resume, close and grade a sitting, and keep its time limit.

The deadline is stored when a sitting starts (`store.save_sitting_once`). A request after it closes the sitting, and
so does `close_overdue_sittings_in_background` in the background.
"""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Literal

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.accounts.learner_store import lock_learner_row
from app.content.course import Course
from app.content.course_facts import cache_by_course, map_objectives_to_domains
from app.content.live_courses import SINGLE_COURSE, CourseRegistry, LiveCourse
from app.database.engine import WRITE_OPTIONS
from app.exams import store
from app.exams.assembly import (
    PaperItem,
    assemble_paper,
    compute_exam_minutes,
    is_exam_of_missed_questions,
    keep_choice_questions,
)
from app.exams.forms import StartExamForm
from app.exams.report import GradedItem
from app.exams.store import DrawnSitting, GradedAnswer, ItemScore, SavedAnswer, SittingState
from app.markup.expressions import ExpressionError
from app.markup.model import ExamBlueprint
from app.questions import types
from app.questions.grading import grade_response
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse
from app.quiz import store as quiz_store
from app.spaced_repetition.added_card_ids_and_faces import build_question_card_id, is_usable_as_card
from app.spaced_repetition.added_cards import CardToAdd
from app.web.formatting import format_time_of_day


@dataclasses.dataclass(frozen=True, slots=True)
class SittingRequest:
    """An exam to start: the questions it draws from, and the learner's options.

    `target_right_answers` is in questions, None if the learner has none.
    """

    exam: ExamBlueprint
    drawable_questions: Sequence[Question]
    start_form: StartExamForm
    target_right_answers: int | None = None


def draw_sitting(
    db: Session, course: Course, learner_id: int, sitting_request: SittingRequest
) -> DrawnSitting:
    """Draw a paper. Start it in a separate, shorter transaction."""
    seed = secrets.randbits(48)
    blueprint, form = sitting_request.exam, sitting_request.start_form
    domain_of = map_objectives_to_domains(course)
    questions: Sequence[Question] = list(
        filter(has_solvable_variant, sitting_request.drawable_questions)
    )
    if not form.all_question_types and not is_exam_of_missed_questions(blueprint.slug):
        questions = keep_choice_questions(questions)
    seen = store.load_questions_seen(db, learner_id)
    paper = assemble_paper(
        blueprint, domain_of, questions, seen.times_seen_by_question, seed, seen.on_newest_paper
    )
    return DrawnSitting(
        submission_token=form.submission_token or secrets.token_urlsafe(9),
        exam_slug=blueprint.slug,
        seed=seed,
        paper=paper,
        time_factor=form.time_factor,
        target_right_answers=sitting_request.target_right_answers,
        minutes=compute_exam_minutes(blueprint, paper, form.time_factor),
    )


def start_sitting(
    db: Session, course: Course, learner_id: int, sitting: DrawnSitting, now: dt.datetime
) -> int:
    """Start the clock of a paper; returns the sitting, also if sent twice."""
    # Save the revisions, so that an edit during the exam changes nothing on this paper. Insert them
    # in item order, so that two learners starting at once cannot deadlock.
    for slot in sorted(sitting.paper.items, key=lambda s: s.question_id):
        quiz_store.save_revision_once(db, course.questions[slot.question_id], now)
    started = dataclasses.replace(
        sitting, submission_token=f"{learner_id}-{sitting.submission_token}"
    )
    return store.save_sitting_once(db, learner_id, started, now)


def is_past_deadline(deadline: dt.datetime, now: dt.datetime) -> bool:
    """Return whether the time of a sitting is up; the deadline itself is still in time."""
    return now > deadline


def close_sitting_if_past_deadline(
    db: Session, course: Course, sitting: SittingState, now: dt.datetime
) -> SittingState:
    """Return the sitting, closed if its time is up."""
    if sitting.closed_at is None and is_past_deadline(sitting.deadline, now):
        return close_and_grade_sitting(db, course, sitting, "time", sitting.deadline)
    return sitting


def close_and_grade_sitting(
    db: Session, course: Course, sitting: SittingState, closed_by: str, closed_at: dt.datetime
) -> SittingState:
    """Close a sitting and grade its answers; a second call changes nothing."""
    lock_learner_row(
        db, sitting.learner_id
    )  # lock first, as every other write for this learner does
    if store.mark_sitting_closed(db, sitting, closed_by, closed_at):
        answers = store.load_answers_by_number(db, sitting.sitting_id)
        graded = [
            _grade_paper_item_unreadable_as_zero(
                quiz_store.load_question_in_revision(db, course, slot.question_id, slot.revision),
                slot,
                answers[slot.question_number],
            )
            for slot in sitting.items
            if slot.question_number in answers and answers[slot.question_number].is_answered
        ]
        store.record_graded_answers(db, sitting, graded, closed_at)
        missed = _list_cards_of_missed_questions(course, sitting, graded, max(answers, default=0))
        store.schedule_missed_questions_if_wanted(db, sitting, missed, closed_at)
        store.increment_learner_change_counter(db, sitting.learner_id)
    return store.load_sitting(db, sitting.learner_id, sitting.sitting_id)


def _list_cards_of_missed_questions(
    course: Course, sitting: SittingState, graded: Sequence[GradedAnswer], last_reached: int
) -> list[CardToAdd]:
    """Return the questions of a paper that were left unanswered or not fully right, as cards.

    Questions after `last_reached` do not count as missed, so that a paper submitted early does not
    fill the next day.
    """
    right_numbers = {answer.item.question_number for answer in graded if answer.score >= 1}
    slots = [slot for slot in sitting.items if slot.question_number <= last_reached]
    missed = [slot for slot in slots if slot.question_number not in right_numbers]
    return [
        CardToAdd(build_question_card_id(slot.question_id), question.topic, slot.seed)
        for slot in missed
        if (question := course.questions.get(slot.question_id)) and is_usable_as_card(question)
    ]


def load_graded_items(db: Session, course: Course, sitting: SittingState) -> list[GradedItem]:
    """Return each question of a closed sitting with its score."""
    item_scores = store.load_scores_by_question(db, sitting)
    answers = store.load_answers_by_number(db, sitting.sitting_id)
    rows = []
    for slot in sitting.items:
        item_score = item_scores.get(slot.question_id)
        graded_slot = replace_with_graded_revision(slot, item_score)
        question = quiz_store.load_question_in_revision(
            db, course, graded_slot.question_id, graded_slot.revision
        )
        saved = answers.get(slot.question_number) or SavedAnswer(slot.question_number, {})
        rows.append(
            GradedItem(
                question_number=slot.question_number,
                question_id=slot.question_id,
                domain_number=slot.domain_number,
                objective_number=question.objectives[0] if question.objectives else "",
                score=item_score.score if item_score else 0.0,
                is_answered=item_score is not None,
                seconds_spent=saved.milliseconds_spent / 1000,
                score_of_first_answer=_grade_first_answer(question, slot, saved),
                score_before_regrade=item_score.score_before_regrade if item_score else None,
                is_unreadable=_find_unreadable_response(question, slot, saved) is not None,
            )
        )
    return rows


def replace_with_graded_revision(slot: PaperItem, item_score: ItemScore | None) -> PaperItem:
    """Return the paper item in the revision it was graded with; its key may have been corrected."""
    return dataclasses.replace(slot, revision=item_score.revision) if item_score else slot


def _grade_first_answer(question: Question, slot: PaperItem, saved: SavedAnswer) -> float | None:
    """Return what the first answer would have scored; None if it was not changed later.

    Only for single choice. Other answers are entered in several steps, so their first state says
    nothing.
    """
    kind = types.question_type_of(question)
    if (
        not kind.responses_are_option_keys
        or kind.has_several_right_options
        or saved.first_response in (None, saved.raw_response)
    ):
        return None
    first = dataclasses.replace(saved, raw_response=saved.first_response or {})
    return _grade_paper_item_unreadable_as_zero(question, slot, first).score


@cache_by_course
def list_solvable_questions(course: Course) -> tuple[Question, ...]:
    """Return the questions of a course that have an answer."""
    return tuple(filter(has_solvable_variant, course.questions.values()))


def has_solvable_variant(question: Question) -> bool:
    """Return whether any combination of a computed question has an answer."""
    if question.computed is None:
        return True
    try:
        draw_variant(question, 0)
    except ExpressionError:
        return False
    return True


def find_unreadable_answers_by_number(
    db: Session, course: Course, sitting: SittingState, answers: Mapping[int, SavedAnswer]
) -> dict[int, UnreadableResponse]:
    """Return the answers so far that cannot be parsed, with the reason, by number."""
    unreadable = {
        slot.question_number: _find_unreadable_response(
            quiz_store.load_question_in_revision(db, course, slot.question_id, slot.revision),
            slot,
            answers[slot.question_number],
        )
        for slot in sitting.items
        if slot.question_number in answers and answers[slot.question_number].is_answered
    }
    return {number: reason for number, reason in unreadable.items() if reason}


def find_incomplete_answers_by_number(
    db: Session, course: Course, sitting: SittingState, answers: Mapping[int, SavedAnswer]
) -> dict[int, str]:
    """Return the answers so far that lack a part, such as “1 of 3 chosen”, by number."""
    incomplete = {}
    for slot in sitting.items:
        saved = answers.get(slot.question_number)
        if saved and saved.is_answered:
            question = quiz_store.load_question_in_revision(
                db, course, slot.question_id, slot.revision
            )
            incomplete[slot.question_number] = types.question_type_of(
                question
            ).describe_incomplete_response(question.answer, saved.raw_response, question.stem)
    return {number: parts for number, parts in incomplete.items() if parts}


def _find_unreadable_response(
    question: Question, slot: PaperItem, saved: SavedAnswer
) -> UnreadableResponse | None:
    """Return why a response cannot be parsed; None if it can, or if it is empty.

    Choices from a list can always be parsed.
    """
    if not saved.is_answered or types.question_type_of(question).responses_are_option_keys:
        return None
    try:
        verdict = grade_response(draw_variant(question, slot.seed), saved.raw_response)
    except ExpressionError:
        return None
    return verdict if isinstance(verdict, UnreadableResponse) else None


def _grade_paper_item_unreadable_as_zero(
    question: Question, slot: PaperItem, saved: SavedAnswer
) -> GradedAnswer:
    try:
        verdict = grade_response(draw_variant(question, slot.seed), saved.raw_response)
    except ExpressionError as error:  # the estimator changed during the exam
        verdict = UnreadableResponse(error.message)
    if isinstance(
        verdict, UnreadableResponse
    ):  # the learner can no longer correct it, so it scores 0
        verdict = GradeResult(score=0.0, parsed_response={"unreadable": verdict.message})
    return GradedAnswer(
        item=slot,
        topic=question.topic,
        raw_response=saved.raw_response,
        parsed_response=verdict.parsed_response,
        score=verdict.score,
        milliseconds_spent=saved.milliseconds_spent,
    )


Filter = Literal["all", "incomplete", "flagged"]
Told = Literal["", "replaced", "refused", "stale"]


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerConflictNote:
    """The message about a form if another page had changed the same question.

    `message_key` is that of `MergedAnswer`; `saved_at` is the time of the other change, if known,
    in the learner's time zone.
    """

    message_key: Told = ""
    saved_at: dt.datetime | None = None

    @property
    def saved_at_text(self) -> str:
        return (
            f"at {format_time_of_day(self.saved_at)} {self.saved_at:%Z}"
            if self.saved_at
            else "meanwhile"
        )


NO_CONFLICT = AnswerConflictNote()


@dataclasses.dataclass(frozen=True, slots=True)
class PaperRow:
    """One question of the palette and the review screen.

    A question whose answer is incomplete or cannot be parsed counts as unanswered.
    """

    question_number: int
    excerpt: str
    is_answered: bool
    is_flagged: bool
    unreadable_reason: str = ""
    incomplete_parts: str = ""

    @property
    def state_label(self) -> str:
        """The state in words, for screen readers."""
        parts = f" ({self.incomplete_parts})" if self.state_key == "incomplete" else ""
        flagged = ", flagged" if self.is_flagged else ""
        return f"{self.question_number}, {self.state_key}{parts}{flagged}"

    @property
    def state_key(self) -> str:
        if self.unreadable_reason:
            return "can\u2019t be read"
        if self.incomplete_parts:
            return "incomplete"
        return "answered" if self.is_answered else "unanswered"

    def matches(self, show: Filter) -> bool:
        if show == "incomplete":
            return not self.is_answered
        return show == "all" or self.is_flagged


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPace:
    """Time used and questions answered, as shares 0..1, and the difference in words."""

    time_share: float
    answered_share: float
    difference_text: str


def build_paper_rows(
    items: Sequence[PaperItem],
    answer_by_number: Mapping[int, SavedAnswer],
    excerpt_by_number: Mapping[int, str],
    unreadable_by_number: Mapping[int, UnreadableResponse],
    incomplete_by_number: Mapping[int, str],
) -> list[PaperRow]:
    unanswered = SavedAnswer(0, {})
    return [
        PaperRow(
            slot.question_number,
            excerpt_by_number.get(slot.question_number, ""),
            answer_by_number.get(slot.question_number, unanswered).is_answered
            and slot.question_number not in unreadable_by_number
            and slot.question_number not in incomplete_by_number,
            answer_by_number.get(slot.question_number, unanswered).is_flagged,
            unreadable_by_number[slot.question_number].message
            if slot.question_number in unreadable_by_number
            else "",
            incomplete_by_number.get(slot.question_number, ""),
        )
        for slot in items
    ]


def compute_exam_pace(sitting: SittingState, answered_count: int, now: dt.datetime) -> ExamPace:
    """Compare the time used with the questions answered."""
    limit_seconds = sitting.time_limit_seconds or 1.0
    time_share = min(1.0, max(0.0, (now - sitting.started_at).total_seconds() / limit_seconds))
    question_count = len(sitting.items) or 1
    ahead = round(answered_count - time_share * question_count)
    if ahead == 0:
        difference = "even with the clock"
    else:
        noun = "question" if abs(ahead) == 1 else "questions"
        difference = f"{abs(ahead)} {noun} {'ahead' if ahead > 0 else 'behind'}"
    return ExamPace(time_share, answered_count / question_count, difference)


_SECONDS_BETWEEN_CHECKS = 30.0
_PAUSE_SECONDS = 0.003
_log = logging.getLogger("headroom")


@contextlib.asynccontextmanager
async def close_overdue_sittings_in_background(
    engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """Close overdue sittings in the background while the server runs.

    Several processes may run this at once; each sitting is closed only once.
    """
    watch = asyncio.create_task(_close_overdue_sittings_repeatedly(engine, courses, clock))
    try:
        yield
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


def close_overdue_sittings(
    engine: Engine, live_course: LiveCourse, now: dt.datetime, course_name: str = SINGLE_COURSE
) -> int:
    """Close every overdue sitting of a course; returns how many.

    Each in its own transaction, with a pause after it for other writers, because many sittings may
    end at the same moment.
    """
    with Session(engine) as db:
        overdue = store.load_overdue_sittings(db, now, course_name)
    for sitting in overdue:
        with Session(engine) as db:
            db.connection(execution_options=WRITE_OPTIONS)
            close_and_grade_sitting(
                db, live_course.get_current_course(), sitting, "time", sitting.deadline
            )
            db.commit()
        time.sleep(_PAUSE_SECONDS)
    return len(overdue)


async def _close_overdue_sittings_repeatedly(
    engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]
) -> None:
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
        try:
            for name, live in courses.live_courses.items():
                await asyncio.to_thread(close_overdue_sittings, engine, live, clock(), name)
        except SQLAlchemyError:
            # The next round tries again. A locked database must not stop the task.
            _log.exception("overdue papers could not be closed")
