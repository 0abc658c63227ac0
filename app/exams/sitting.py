"""Start, resume, close and grade a sitting."""

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

from app.accounts.learner_store import lock_learner
from app.content.course_facts import cache_by_library, map_objectives_to_domains
from app.content.courses import SINGLE_COURSE, CourseRegistry
from app.content.library import Library, LiveLibrary
from app.database.engine import WRITING
from app.exams import store
from app.exams.assembly import (
    PaperItem,
    assemble_paper,
    exam_minutes,
    is_exam_of_missed_questions,
    is_past_deadline,
    keep_common_exam_types,
)
from app.exams.forms import StartExamForm
from app.exams.report import GradedItem
from app.exams.store import DrawnSitting, GradedAnswer, ItemScore, SavedAnswer, SittingState
from app.markup.expressions import ExpressionError
from app.markup.model import ExamBlueprint
from app.questions import types
from app.questions.grading import grade
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse
from app.quiz import store as quiz_store
from app.spaced_repetition.added_cards import CardToAdd
from app.spaced_repetition.card_ids import is_usable_as_card, question_card_id
from app.web.formatting import format_time_of_day


@dataclasses.dataclass(frozen=True, slots=True)
class SittingRequest:
    """An exam to start: the questions it draws from, and the learner's options.

    `target` is in questions, None if the learner has none.
    """

    exam: ExamBlueprint
    questions: Sequence[Question]
    start_form: StartExamForm
    target: int | None = None


def draw_sitting(
    db: Session, library: Library, learner_id: int, sitting_request: SittingRequest
) -> DrawnSitting:
    """Draw a paper. Start it in a separate, shorter transaction."""
    seed = secrets.randbits(48)
    blueprint, form = sitting_request.exam, sitting_request.start_form
    domain_of = map_objectives_to_domains(library)
    questions: Sequence[Question] = list(filter(has_solvable_variant, sitting_request.questions))
    if not form.all_question_types and not is_exam_of_missed_questions(blueprint.slug):
        questions = keep_common_exam_types(questions)
    seen = store.load_items_seen_anywhere(db, learner_id)
    paper = assemble_paper(
        blueprint, domain_of, questions, seen.times_seen, seed, seen.on_newest_paper
    )
    return DrawnSitting(
        token=form.token or secrets.token_urlsafe(9),
        exam=blueprint.slug,
        seed=seed,
        paper=paper,
        factor=form.time_factor,
        target=sitting_request.target,
        minutes=exam_minutes(blueprint, paper, form.time_factor),
    )


def start_sitting(
    db: Session, library: Library, learner_id: int, sitting: DrawnSitting, now: dt.datetime
) -> int:
    """Start the clock of a paper; returns the sitting, also if sent twice."""
    # Save the revisions, so that an edit during the exam changes nothing on this paper. Insert them
    # in item order, so that two learners starting at once cannot deadlock.
    for slot in sorted(sitting.paper.slots, key=lambda s: s.item):
        quiz_store.store_revision(db, library.questions[slot.item], now)
    started = dataclasses.replace(sitting, token=f"{learner_id}-{sitting.token}")
    return store.insert_sitting(db, learner_id, started, now)


def close_if_past_deadline(
    db: Session, library: Library, sitting: SittingState, now: dt.datetime
) -> SittingState:
    """Return the sitting, closed if its time is up."""
    if sitting.closed_at is None and is_past_deadline(sitting.deadline, now):
        return close_sitting(db, library, sitting, "time", sitting.deadline)
    return sitting


def close_sitting(
    db: Session, library: Library, sitting: SittingState, closed_by: str, closed_at: dt.datetime
) -> SittingState:
    """Close a sitting and grade its answers; a second call changes nothing."""
    lock_learner(db, sitting.learner_id)  # lock first, as every other write for this learner does
    if store.close_sitting(db, sitting, closed_by, closed_at):
        answers = store.load_answers(db, sitting.id)
        graded = [
            _grade_slot(
                quiz_store.load_exact_revision(db, library, slot.item, slot.revision),
                slot,
                answers[slot.number],
            )
            for slot in sitting.slots
            if slot.number in answers and answers[slot.number].answered
        ]
        store.record_graded_answers(db, sitting, graded, closed_at)
        missed = _cards_of_missed_questions(library, sitting, graded, max(answers, default=0))
        store.schedule_missed_questions_if_wanted(db, sitting, missed, closed_at)
        store.increment_change_counter(db, sitting.learner_id)
    return store.load_sitting(db, sitting.learner_id, sitting.id)


def _cards_of_missed_questions(
    library: Library, sitting: SittingState, graded: Sequence[GradedAnswer], last_reached: int
) -> list[CardToAdd]:
    """Return the questions of a paper that were left unanswered or not fully right, as cards.

    Questions after `last_reached` do not count as missed, so that a paper submitted early does not
    fill the next day.
    """
    right_numbers = {answer.slot.number for answer in graded if answer.score >= 1}
    slots = [slot for slot in sitting.slots if slot.number <= last_reached]
    missed = [slot for slot in slots if slot.number not in right_numbers]
    return [
        CardToAdd(question_card_id(slot.item), question.topic, slot.seed)
        for slot in missed
        if (question := library.questions.get(slot.item)) and is_usable_as_card(question)
    ]


def load_graded_items(db: Session, library: Library, sitting: SittingState) -> list[GradedItem]:
    """Return each question of a closed sitting with its score."""
    item_scores = store.load_item_scores(db, sitting)
    answers = store.load_answers(db, sitting.id)
    rows = []
    for slot in sitting.slots:
        item_score = item_scores.get(slot.item)
        graded_slot = slot_in_graded_revision(slot, item_score)
        question = quiz_store.load_exact_revision(
            db, library, graded_slot.item, graded_slot.revision
        )
        saved = answers.get(slot.number) or SavedAnswer(slot.number, {})
        rows.append(
            GradedItem(
                number=slot.number,
                item=slot.item,
                domain=slot.domain,
                objective=question.objectives[0] if question.objectives else "",
                score=item_score.score if item_score else 0.0,
                answered=item_score is not None,
                seconds=saved.milliseconds / 1000,
                score_before_change=_first_answer_score(question, slot, saved),
                score_before_regrade=item_score.score_before_regrade if item_score else None,
                is_unreadable=_unreadable_response(question, slot, saved) is not None,
            )
        )
    return rows


def slot_in_graded_revision(slot: PaperItem, item_score: ItemScore | None) -> PaperItem:
    """Return the paper item in the revision it was graded with; its key may have been corrected."""
    return dataclasses.replace(slot, revision=item_score.revision) if item_score else slot


def _first_answer_score(question: Question, slot: PaperItem, saved: SavedAnswer) -> float | None:
    """Return what the first answer would have scored; None if it was not changed later.

    Only for single choice. Other answers are entered in several steps, so their first state says
    nothing.
    """
    kind = types.question_type_of(question)
    if (
        not kind.response_names_options
        or kind.has_several_right_options
        or saved.first_response in (None, saved.raw)
    ):
        return None
    first = dataclasses.replace(saved, raw=saved.first_response or {})
    return _grade_slot(question, slot, first).score


@cache_by_library
def solvable_questions(library: Library) -> tuple[Question, ...]:
    """Return the questions of a course that have an answer."""
    return tuple(filter(has_solvable_variant, library.questions.values()))


def has_solvable_variant(question: Question) -> bool:
    """Return whether any combination of a computed question has an answer."""
    if question.computed is None:
        return True
    try:
        draw_variant(question, 0)
    except ExpressionError:
        return False
    return True


def find_unreadable_answers(
    db: Session, library: Library, sitting: SittingState, answers: Mapping[int, SavedAnswer]
) -> dict[int, UnreadableResponse]:
    """Return the answers so far that cannot be parsed, with the reason, by number."""
    unreadable = {
        slot.number: _unreadable_response(
            quiz_store.load_exact_revision(db, library, slot.item, slot.revision),
            slot,
            answers[slot.number],
        )
        for slot in sitting.slots
        if slot.number in answers and answers[slot.number].answered
    }
    return {number: reason for number, reason in unreadable.items() if reason}


def _unreadable_response(
    question: Question, slot: PaperItem, saved: SavedAnswer
) -> UnreadableResponse | None:
    """Return why a response cannot be parsed; None if it can, or if it is empty.

    Choices from a list can always be parsed.
    """
    if not saved.answered or types.question_type_of(question).response_names_options:
        return None
    try:
        verdict = grade(draw_variant(question, slot.seed), saved.raw)
    except ExpressionError:
        return None
    return verdict if isinstance(verdict, UnreadableResponse) else None


def _grade_slot(question: Question, slot: PaperItem, saved: SavedAnswer) -> GradedAnswer:
    try:
        verdict = grade(draw_variant(question, slot.seed), saved.raw)
    except ExpressionError as error:  # the estimator changed during the exam
        verdict = UnreadableResponse(error.message)
    if isinstance(
        verdict, UnreadableResponse
    ):  # the learner can no longer correct it, so it scores 0
        verdict = GradeResult(score=0.0, parsed={"unreadable": verdict.message})
    return GradedAnswer(
        slot=slot,
        topic=question.topic,
        raw=saved.raw,
        parsed=verdict.parsed,
        score=verdict.score,
        milliseconds=saved.milliseconds,
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
    def when(self) -> str:
        return (
            f"at {format_time_of_day(self.saved_at)} {self.saved_at:%Z}"
            if self.saved_at
            else "meanwhile"
        )


NO_CONFLICT = AnswerConflictNote()


@dataclasses.dataclass(frozen=True, slots=True)
class PaperRow:
    """One question of the palette and the review screen.

    A question whose answer cannot be parsed counts as unanswered.
    """

    number: int
    excerpt: str
    answered: bool
    flagged: bool
    unreadable_reason: str = ""

    @property
    def label(self) -> str:
        """The state in words, for screen readers."""
        return f"{self.number}, {self.state}{', flagged' if self.flagged else ''}"

    @property
    def state(self) -> str:
        if self.unreadable_reason:
            return "can\u2019t be read"
        return "answered" if self.answered else "unanswered"

    def matches(self, show: Filter) -> bool:
        if show == "incomplete":
            return not self.answered
        return show == "all" or self.flagged


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPace:
    """Time used and questions answered, as shares 0..1, and the difference in words."""

    time_share: float
    answered_share: float
    text: str


def build_paper_rows(
    slots: Sequence[PaperItem],
    answers: Mapping[int, SavedAnswer],
    question_excerpts: Mapping[int, str],
    unreadable: Mapping[int, UnreadableResponse],
) -> list[PaperRow]:
    unanswered = SavedAnswer(0, {})
    return [
        PaperRow(
            slot.number,
            question_excerpts.get(slot.number, ""),
            answers.get(slot.number, unanswered).answered and slot.number not in unreadable,
            answers.get(slot.number, unanswered).flagged,
            unreadable[slot.number].message if slot.number in unreadable else "",
        )
        for slot in slots
    ]


def compute_exam_pace(sitting: SittingState, answered: int, now: dt.datetime) -> ExamPace:
    """Compare the time used with the questions answered."""
    limit_seconds = sitting.time_limit_seconds or 1.0
    time_share = min(1.0, max(0.0, (now - sitting.started_at).total_seconds() / limit_seconds))
    question_count = len(sitting.slots) or 1
    ahead = round(answered - time_share * question_count)
    if ahead == 0:
        difference = "even with the clock"
    else:
        noun = "question" if abs(ahead) == 1 else "questions"
        difference = f"{abs(ahead)} {noun} {'ahead' if ahead > 0 else 'behind'}"
    return ExamPace(time_share, answered / question_count, difference)


_SECONDS_BETWEEN_CHECKS = 30.0
_PAUSE_SECONDS = 0.003
_log = logging.getLogger("headroom")


@contextlib.asynccontextmanager
async def run_sitting_closer(
    engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """Close overdue sittings in the background while the server runs.

    Several processes may run this at once; each sitting is closed only once.
    """
    watch = asyncio.create_task(_watch_deadlines(engine, courses, clock))
    try:
        yield
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


def close_overdue_sittings(
    engine: Engine, library: LiveLibrary, now: dt.datetime, course: str = SINGLE_COURSE
) -> int:
    """Close every overdue sitting of a course; returns how many.

    Each in its own transaction, with a pause after it for other writers, because many sittings may
    end at the same moment.
    """
    with Session(engine) as db:
        overdue = store.load_overdue_sittings(db, now, course)
    for sitting in overdue:
        with Session(engine) as db:
            db.connection(execution_options=WRITING)
            close_sitting(db, library.get_current_library(), sitting, "time", sitting.deadline)
            db.commit()
        time.sleep(_PAUSE_SECONDS)
    return len(overdue)


async def _watch_deadlines(
    engine: Engine, courses: CourseRegistry, clock: Callable[[], dt.datetime]
) -> None:
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
        try:
            for name, live in courses.libraries.items():
                await asyncio.to_thread(close_overdue_sittings, engine, live, clock(), name)
        except SQLAlchemyError:
            # The next round tries again. A locked database must not stop the task.
            _log.exception("overdue papers could not be closed")
