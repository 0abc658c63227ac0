"""Exam routes: list, start, question, review, submit, report."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from anyio import from_thread
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    WriteContext,
    run_in_read_session,
    run_in_write_transaction,
)
from app.accounts.learner_store import load_sitting_days
from app.clock import to_milliseconds
from app.content.course import Course
from app.content.course_facts import map_objectives_to_domains
from app.content.reading_routes import ReadingRoute, are_essential_sections_read
from app.database.engine import write_during_read_request
from app.errors import ConflictError, NotFoundError
from app.exams import assembly, store
from app.exams.answer_merge import AnswerState
from app.exams.assembly import (
    PaperItem,
    is_exam_of_missed_questions,
    keep_choice_questions,
    list_drawable_questions_by_domain,
)
from app.exams.forms import (
    EVERY_KIND,
    TIME_FACTORS,
    ExamAnswerForm,
    PostedAnswerAgain,
    PostedExamAnswer,
    PostedExamStart,
    StartExamDraft,
    serialize_shown_answer,
)
from app.exams.report import (
    GradedItem,
    PageToReadNext,
    PastSitting,
    build_exam_score_trend,
    build_page_url_by_objective,
    build_score_report,
    choose_page_to_read_next,
    describe_missed_questions_in_cards,
    draw_report_charts,
    list_short_names_by_objective,
)
from app.exams.sitting import (
    NO_CONFLICT,
    AnswerConflictNote,
    Filter,
    SittingRequest,
    Told,
    build_paper_rows,
    close_and_grade_sitting,
    close_sitting_if_past_deadline,
    compute_exam_pace,
    draw_sitting,
    find_incomplete_answers_by_number,
    find_unreadable_answers_by_number,
    is_past_deadline,
    list_solvable_questions,
    load_graded_items,
    replace_with_graded_revision,
    start_sitting,
)
from app.exams.store import AnswerChange, DrawnSitting, SavedAnswer, SittingState
from app.lessons.store import load_anchors_read_by_topic
from app.markup.model import ExamBlueprint
from app.questions import types
from app.questions.grading import build_unanswered_result
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_form import (
    OpenQuestion,
    excerpt_for_title,
    make_question_title,
    make_submission_token,
)
from app.questions.question_type import AnsweredMark, UnreadableResponse
from app.quiz.next_steps import sort_in_course_order
from app.quiz.question_page import (
    AnswerFeedback,
    AnswerFeedbackLinks,
    add_missed_card_to_feedback,
    build_feedback,
    list_questions_excluded_from_practice,
    refuse_if_excluded_from_practice,
)
from app.quiz.store import (
    NewPracticeRun,
    RecordedAttempt,
    load_past_attempts_by_question,
    load_question_in_revision,
    save_run_once,
)
from app.spaced_repetition.added_card_ids_and_faces import (
    build_question_card_id,
    is_source_in_course,
)
from app.spaced_repetition.added_cards import load_added_card_records
from app.study_plan.cards import compute_last_day_for_new_cards
from app.study_plan.loader import (
    build_next_day_list,
    find_planned_route,
    load_calendar,
    load_stored_day_list,
)
from app.web.dependencies import RowNumber
from app.web.formatting import format_date_with_weekday
from app.web.render import is_htmx_request, render_page


@dataclasses.dataclass(frozen=True, slots=True)
class ExamOffer:
    """An exam that can be started, and the questions that it draws from."""

    exam: ExamBlueprint
    drawable_questions: Sequence[Question]


def require_exam_offer(ctx: RequestContext, slug: str) -> ExamOffer:
    """Return the exam in the URL, or the derived one; raises NotFoundError."""
    questions = list_solvable_questions(ctx.course)
    exam = ctx.course.exams.get(slug)
    if exam is None:
        whole_exam = ctx.course.exams.get(assembly.strip_derived_exam_suffix(slug))
        derived = (
            _yield_startable_derived_exams(ctx, whole_exam, _count_all_and_missed_by_domain(ctx))
            if whole_exam
            else ()
        )
        exam = next((derived_exam for derived_exam in derived if derived_exam.slug == slug), None)
    if exam is None:
        raise NotFoundError(f"There is no mock exam “{slug}”.")
    return ExamOffer(
        exam,
        _list_questions_missed_last_time(ctx, questions)
        if assembly.is_exam_of_missed_questions(slug)
        else questions,
    )


def format_exam_title(course: Course, slug: str) -> str:
    """Return the title of an exam, derived ones included."""
    titles = {domain.number: domain.title for domain in course.syllabus.domains}
    return assembly.find_exam_title(slug, course.exams, titles)


def _yield_startable_derived_exams(
    ctx: RequestContext, exam: ExamBlueprint, counts: assembly.DomainQuestionCounts
) -> Iterator[ExamBlueprint]:
    return assembly.yield_exams_derived_from(exam, ctx.course.syllabus.domains, counts)


def _count_all_and_missed_by_domain(ctx: RequestContext) -> assembly.DomainQuestionCounts:
    questions = list_solvable_questions(ctx.course)
    missed = _list_questions_missed_last_time(ctx, questions)
    return assembly.DomainQuestionCounts(
        _count_drawable_by_domain(ctx.course, questions),
        _count_drawable_by_domain(ctx.course, missed),
    )


def _count_drawable_by_domain(course: Course, questions: Iterable[Question]) -> Counter[str]:
    """Return how many of the questions an exam can draw from each domain."""
    drawable = list_drawable_questions_by_domain(questions, map_objectives_to_domains(course))
    return Counter({domain: len(candidates) for domain, candidates in drawable.items()})


def _list_questions_missed_last_time(
    ctx: RequestContext, questions: Iterable[Question]
) -> list[Question]:
    attempts = load_past_attempts_by_question(ctx.db, ctx.learner.id)
    return [q for q in questions if q.id in attempts and attempts[q.id].was_last_missed]


def _build_past_sitting(course: Course, finished: store.FinishedSitting) -> PastSitting:
    sitting = finished.sitting
    used_seconds = ((sitting.closed_at or sitting.deadline) - sitting.started_at).total_seconds()
    return PastSitting(
        sitting_id=sitting.sitting_id,
        title=format_exam_title(course, sitting.exam_slug),
        is_full_exam=sitting.exam_slug in course.exams,
        started_at=sitting.started_at,
        score=finished.score,
        question_count=len(sitting.items),
        answered_count=finished.answer_count,
        minutes=used_seconds / 60,
        ended_by_clock=sitting.closed_by == "time",
    )


router = APIRouter(prefix="/exams", include_in_schema=False)


@router.get("")
def list_exams(ctx: ReadContext) -> HTMLResponse:
    """The mock exams of the course, and the learner's sittings."""
    running = _find_running_sitting(ctx)
    full_exams = sorted(ctx.course.exams.values(), key=lambda e: (-e.question_count, e.slug))
    sittings = store.load_finished_sittings(ctx.db, ctx.learner.id) if ctx.learner.id else []
    finished = [_build_past_sitting(ctx.course, sitting) for sitting in sittings]
    counts = _count_all_and_missed_by_domain(ctx)
    return ctx.render_page(
        "exams/index.html",
        asks_missed=is_exam_of_missed_questions,
        planned=_say_next_planned_mock_day(ctx),
        full_exams=full_exams,
        derived_exams=list(_yield_startable_derived_exams(ctx, full_exams[0], counts))
        if full_exams
        else [],
        missed_count=counts.count_missed_for(full_exams[0]) if full_exams else 0,
        all_missed_count=len(_list_questions_missed_last_time(ctx, ctx.course.questions.values())),
        running=running,
        resume_url=_build_resume_url(ctx, running) if running else "",
        finished=finished,
        trend=build_exam_score_trend(finished, ctx.learner.target, ctx.learner.study_day),
    )


def _say_next_planned_mock_day(ctx: RequestContext) -> str:
    """Return when the next mock exam of the plan is, in words; empty if none is left."""
    sat = load_sitting_days(ctx.db, ctx.learner, ctx.course)
    day, calendar = ctx.study_day, load_calendar(ctx, ctx.study_day)
    is_due = calendar.find_due_mock_exam_day(day, max(sat, default=None))
    if is_due and not calendar.is_day_off(day):
        return "today"
    later = [d for d in calendar.mock_exam_days if d > day and d not in sat]
    return f"on {format_date_with_weekday(min(later))}" if later else ""


@router.get("/{exam}")
def show_exam(ctx: ReadContext, exam: str) -> HTMLResponse:
    """The description of an exam, before the clock starts."""
    offer = require_exam_offer(ctx, exam)
    draft = StartExamDraft(make_submission_token(), kinds=_propose_question_types(ctx, offer))
    return _render_start_page(ctx, offer, draft, [], 200)


def _propose_question_types(ctx: RequestContext, offer: ExamOffer) -> str:
    """Return all kinds if choices alone give a shorter paper, else choices."""
    drawn = _compute_paper_lengths(ctx, offer)
    return EVERY_KIND if drawn.choice_questions < drawn.questions_of_all_types else ""


class PaperLengths(NamedTuple):
    """The length of a paper of single and multiple choices, and of one of all kinds."""

    choice_questions: int
    questions_of_all_types: int


def _compute_paper_lengths(ctx: RequestContext, offer: ExamOffer) -> PaperLengths:
    available = (
        _count_drawable_by_domain(ctx.course, questions)
        for questions in (keep_choice_questions(offer.drawable_questions), offer.drawable_questions)
    )
    wanted = Counter(offer.exam.question_count_by_domain)
    return PaperLengths(*((counts & wanted).total() for counts in available))


def _render_start_page(
    ctx: RequestContext,
    offer: ExamOffer,
    draft: StartExamDraft,
    problems: list[dict[str, str]],
    status: int,
) -> HTMLResponse:
    exam = offer.exam
    running = _find_running_sitting(ctx)
    all_counts = _count_drawable_by_domain(ctx.course, offer.drawable_questions)
    return ctx.render_page(
        "exams/start.html",
        status=status,
        exam=exam,
        is_exam_of_missed=is_exam_of_missed_questions(exam.slug),
        domains=[
            d for d in ctx.course.syllabus.domains if d.number in exam.question_count_by_domain
        ],
        choice_counts=_count_drawable_by_domain(
            ctx.course, keep_choice_questions(offer.drawable_questions)
        ),
        all_counts=all_counts,
        drawable_count=sum(all_counts[domain] for domain in exam.question_count_by_domain),
        leaves_questions_out=not all(q.may_be_asked_in_exams for q in offer.drawable_questions),
        drawn=_compute_paper_lengths(ctx, offer),
        kinds=[("", "Single and multiple choice"), (EVERY_KIND, "All kinds")],
        factors=[(f"{f:g}", _describe_time_limit(f, exam)) for f in TIME_FACTORS],
        resume_url=_build_resume_url(ctx, running) if running else "",
        target_right_answers=_compute_target_right_answers(ctx, exam),
        draft=draft,
        problems=problems,
    )


@router.post("/{exam}/sittings")
async def add_sitting(request: Request, exam: str, typed: PostedExamStart) -> Response:
    """Start the clock, or continue the sitting in progress.

    The paper is drawn before the write transaction, because that reads all earlier papers.
    """
    drawn = await run_in_read_session(
        request, lambda ctx: _draw_sitting_or_respond(ctx, exam, typed)
    )
    if isinstance(drawn, Response):
        return drawn
    sitting_id = await run_in_write_transaction(
        request, lambda ctx: _resume_or_start_sitting(ctx, drawn)
    )
    return RedirectResponse(f"/exams/sittings/{sitting_id}/questions/1", 303)


def _draw_sitting_or_respond(
    ctx: RequestContext, exam: str, typed: StartExamDraft
) -> DrawnSitting | Response:
    """Return a paper to start; or the response, if a sitting is in progress or none can be drawn."""
    offer = require_exam_offer(ctx, exam)
    running = _find_running_sitting(ctx)
    if running is not None:
        return RedirectResponse(_build_resume_url(ctx, running), 303)
    if not ctx.course.questions:
        raise ConflictError("This course has no questions yet.")
    if typed.kinds is None:
        typed = dataclasses.replace(typed, kinds=_propose_question_types(ctx, offer))
    problems = typed.problems
    if not (typed.kinds or problems or is_exam_of_missed_questions(exam)):
        drawn = _compute_paper_lengths(ctx, offer)
        if not drawn.choice_questions and drawn.questions_of_all_types:
            message = "Kinds of questions: this exam has no single or multiple choice. Choose all."
            problems = [{"field": "kinds", "message": message}]
    if problems:
        return _render_start_page(ctx, offer, typed, problems, 422)
    target = _compute_target_right_answers(ctx, offer.exam)
    sitting_request = SittingRequest(
        offer.exam, offer.drawable_questions, typed.validated_form, target
    )
    return draw_sitting(ctx.db, ctx.course, ctx.learner.id, sitting_request)


def _compute_target_right_answers(ctx: RequestContext, exam: ExamBlueprint) -> int | None:
    """Return how many right answers reach the learner's target; None without one."""
    return math.ceil((ctx.learner.target or 0) * exam.question_count / 100) or None


def _resume_or_start_sitting(ctx: RequestContext, sitting: DrawnSitting) -> int:
    """Start the sitting, unless another tab has started one since the paper was drawn."""
    running = store.find_running_sitting(ctx.db, ctx.learner.id)
    if running is not None:
        return running.sitting_id
    return start_sitting(ctx.db, ctx.course, ctx.learner.id, sitting, ctx.now)


def _build_resume_url(ctx: RequestContext, sitting: SittingState) -> str:
    """Return the URL of the first open question of a sitting in progress, or else of its review."""
    answers = store.load_answers_by_number(ctx.db, sitting.sitting_id)
    unreadable = find_unreadable_answers_by_number(ctx.db, ctx.course, sitting, answers)
    incomplete = find_incomplete_answers_by_number(ctx.db, ctx.course, sitting, answers)
    rows = build_paper_rows(sitting.items, answers, {}, unreadable, incomplete)
    number = next((row.question_number for row in rows if not row.is_answered), None)
    return f"/exams/sittings/{sitting.sitting_id}/" + (
        f"questions/{number}" if number else "review"
    )


@router.get("/sittings/{sitting}/questions/{number}")
def show_exam_question(
    ctx: ReadContext, sitting: RowNumber, number: RowNumber, reported: bool = False, told: Told = ""
) -> Response:
    """One question of the paper; with its feedback after the end.

    `told` is the message code about an answer that was just sent.
    """
    state = _load_and_close_overdue_sitting(ctx, sitting)
    slot = _require_paper_item(state, number)
    if state.closed_at is not None:
        return _render_solution(ctx, state, slot, reported=reported)
    frame = _build_exam_template_variables(ctx, state, number, AnswerConflictNote(told))
    return ctx.render_page(
        "exams/question.html",
        open_question=_build_open_exam_question(ctx, state, slot, frame),
        **frame,
    )


@router.post("/sittings/{sitting}/answers/{number}")
def save_answer_form(
    ctx: WriteContext, sitting: RowNumber, number: RowNumber, form: PostedExamAnswer
) -> Response:
    """Save what was changed in a question; after the end nothing changes."""
    state = _load_and_close_overdue_sitting_in_write(ctx, sitting)
    slot = _require_paper_item(state, number)
    if state.closed_at is not None:
        return _respond_exam_closed(ctx, state)
    merged = store.save_answer(ctx.db, state, _build_answer_change(ctx, slot, form), ctx.now)
    saved_at = ctx.learner.local_time(merged.saved_at) if merged.saved_at else None
    note = AnswerConflictNote(merged.message_key, saved_at)
    frame = _build_exam_template_variables(ctx, state, number, note)
    if is_htmx_request(ctx.request):
        status = 409 if merged.kept_newer_answer else 200
        return render_page(ctx.request, "exams/_saved.html", status=status, **frame)
    if merged.replaced_other_answer or merged.kept_newer_answer:
        next_url = f"{_build_next_exam_url(state, number, '')}?told={merged.message_key}"
    elif merged.answer_changed and number in frame["unreadable"]:
        # The question page shows the problem while there is still time.
        next_url = _build_next_exam_url(state, number, "")
    else:
        next_url = _build_next_exam_url(state, number, form.destination)
    return RedirectResponse(next_url, 303)


@router.get("/sittings/{sitting}/review")
def review_answers(ctx: ReadContext, sitting: RowNumber, show: Filter = "all") -> Response:
    """The review screen before the end: what is unanswered, what is flagged."""
    state = _load_and_close_overdue_sitting(ctx, sitting)
    if state.closed_at is not None:
        return RedirectResponse(f"/exams/sittings/{state.sitting_id}/report", 303)
    answers = store.load_answers_by_number(ctx.db, state.sitting_id)
    excerpts = {
        slot.question_number: excerpt_for_title(
            draw_variant(
                load_question_in_revision(ctx.db, ctx.course, slot.question_id, slot.revision),
                slot.seed,
            ).stem
        )
        for slot in state.items
    }
    frame = _build_exam_template_variables(ctx, state, 0)
    rows = build_paper_rows(
        state.items, answers, excerpts, frame["unreadable"], frame["incomplete"]
    )
    return ctx.render_page(
        "exams/review.html",
        show=show,
        rows=[row for row in rows if row.matches(show)],
        **frame,
    )


@router.post("/sittings/{sitting}/submission")
def submit_exam(ctx: WriteContext, sitting: RowNumber) -> Response:
    """Submit the exam; a second submission changes nothing and says so."""
    state = _load_and_close_overdue_sitting_in_write(ctx, sitting)
    if state.closed_at is not None:
        return _respond_exam_closed(ctx, state)
    close_and_grade_sitting(ctx.db, ctx.course, state, "learner", ctx.now)
    return RedirectResponse(f"/exams/sittings/{state.sitting_id}/report", 303)


@router.get("/sittings/{sitting}/report")
def show_score_report(ctx: ReadContext, sitting: RowNumber, late: bool = False) -> Response:
    state = _load_and_close_overdue_sitting(ctx, sitting)
    if state.closed_at is None:
        return RedirectResponse(_build_resume_url(ctx, state), 303)
    paper = load_graded_items(ctx.db, ctx.course, state)
    earlier = [
        finished
        for finished in store.load_finished_sittings(ctx.db, ctx.learner.id)
        if finished.sitting.exam_slug == state.exam_slug
        and finished.sitting.started_at < state.started_at
    ]
    report = build_score_report(paper)
    to_repeat = _sort_in_learning_order(ctx, report.questions_to_repeat)
    numbers_with_card = _list_numbers_with_card(ctx, paper)
    last_reached = max(store.load_answers_by_number(ctx.db, state.sitting_id), default=0)
    if (
        not ctx.learner.missed_questions_become_cards
    ):  # then no question became a card, reached or not
        last_reached = len(paper)
    seeds = {slot.question_id: slot.seed for slot in state.items}
    planned_route = find_planned_route(ctx)
    return ctx.render_page(
        "exams/report.html",
        sitting=state,
        title=format_exam_title(ctx.course, state.exam_slug),
        report=report,
        drawn=draw_report_charts(
            report, paper, state.target_right_answers, state.time_limit_seconds
        ),
        paper=paper,
        numbers_with_card=numbers_with_card,
        last_new_day=compute_last_day_for_new_cards(ctx.learner.plan_calendar_as_of(ctx.study_day)),
        day=ctx.study_day,
        cards_text=describe_missed_questions_in_cards(report, numbers_with_card, last_reached),
        again=to_repeat,
        practicable={
            "missed": len(_list_practicable_questions(ctx, report.missed_items)),
            "open": len(_list_practicable_questions(ctx, report.unanswered_items)),
        },
        titles={
            row.question_id: make_question_title(
                ctx.course.questions[row.question_id], seeds[row.question_id]
            )
            for row in to_repeat
            if row.question_id in ctx.course.questions
        },
        syllabus=ctx.course.syllabus,
        page_urls=build_page_url_by_objective(ctx.course, planned_route),
        names=list_short_names_by_objective(ctx.course),
        to_read_next=_find_page_to_read_next(ctx, paper, planned_route),
        has_first_answers=store.has_first_answers(ctx.db, state),
        earlier=earlier[:5],
        late=late,
        token=make_submission_token(),
    )


def _find_page_to_read_next(
    ctx: RequestContext, paper: Sequence[GradedItem], planned_route: ReadingRoute
) -> PageToReadNext | None:
    days_left = (ctx.learner.exam_day - ctx.study_day).days if ctx.learner.exam_day else None
    if days_left in (0, 1):
        return None  # no list has pages any more
    topics = ctx.course.topics
    anchors, todays = load_anchors_read_by_topic(ctx.db, ctx.learner.id), load_stored_day_list(ctx)
    read = {s for s in topics if are_essential_sections_read(topics[s], anchors.get(s, ()))}
    lists = {"today": todays and todays.day_list, "next": build_next_day_list(ctx)}
    listed = [
        (name, page)
        for name, day_list in lists.items()
        for task in (day_list.tasks if day_list else ())
        for page in task.pages
        if page.slug in topics and page.slug not in read
    ]
    return choose_page_to_read_next(ctx.course, paper, read, listed, planned_route)


@router.post("/sittings/{sitting}/practice")
def practice_questions_of_exam(
    ctx: WriteContext, sitting: RowNumber, form: PostedAnswerAgain
) -> Response:
    """Start a practice run of what was missed, or left open, in a closed exam."""
    state = _load_and_close_overdue_sitting_in_write(ctx, sitting)
    if state.closed_at is None:
        raise ConflictError("This exam is not over yet.", "End it first.")
    report = build_score_report(load_graded_items(ctx.db, ctx.course, state))
    items = _list_practicable_questions(
        ctx, report.missed_items if form.pick == "missed" else report.unanswered_items
    )
    if not items:
        raise ConflictError("None of these questions can be practiced now.")
    token = f"{form.token or make_submission_token()}.{form.pick}"
    run = NewPracticeRun(token, "exam", str(state.sitting_id), items)
    run_id = save_run_once(ctx.db, ctx.learner.id, run, ctx.now)
    return RedirectResponse(f"/quiz/runs/{run_id}", 303)


def _list_practicable_questions(
    ctx: RequestContext, graded_items: Sequence[GradedItem]
) -> list[str]:
    """Return the questions that practice can ask, in learning order."""
    excluded = list_questions_excluded_from_practice(ctx)
    items = sort_in_course_order(ctx.course, [row.question_id for row in graded_items])
    return [item for item in items if item not in excluded]


def _sort_in_learning_order(
    ctx: RequestContext, graded_items: Sequence[GradedItem]
) -> list[GradedItem]:
    """Return the questions in the order in which the course teaches what they ask.

    Those that are no longer in the course come last.
    """
    order = sort_in_course_order(ctx.course, [row.question_id for row in graded_items])
    index_by_item = {item: index for index, item in enumerate(order)}
    return sorted(
        graded_items, key=lambda row: index_by_item.get(row.question_id, len(index_by_item))
    )


def _list_numbers_with_card(ctx: RequestContext, graded_items: Sequence[GradedItem]) -> list[int]:
    """Return the numbers of the missed and open questions that are among the learner's cards."""
    number_by_card = {
        build_question_card_id(m.question_id): m.question_number
        for m in graded_items
        if m.score < 1
    }
    added = load_added_card_records(ctx.db, ctx.learner.id, [*number_by_card]).values()
    return sorted(
        number_by_card[a.card_id]
        for a in added
        if not a.is_suspended_or_declined and is_source_in_course(ctx.course, a.card_id)
    )


def _load_and_close_overdue_sitting(ctx: RequestContext, sitting: int) -> SittingState:
    return _close_if_overdue(ctx, store.load_sitting(ctx.db, ctx.learner.id, sitting))


def _load_and_close_overdue_sitting_in_write(ctx: RequestContext, sitting: int) -> SittingState:
    """Return the sitting for a route that writes, closed if its time is up."""
    state = store.load_sitting(ctx.db, ctx.learner.id, sitting)
    return close_sitting_if_past_deadline(ctx.db, ctx.course, state, ctx.now)


def _find_running_sitting(ctx: RequestContext) -> SittingState | None:
    running = store.find_running_sitting(ctx.db, ctx.learner.id)
    if running is None:
        return None
    running = _close_if_overdue(ctx, running)
    return running if running.closed_at is None else None


def _close_if_overdue(ctx: RequestContext, sitting: SittingState) -> SittingState:
    """Return the sitting, closed if its time is up, for a route that only reads."""
    if sitting.closed_at is not None or not is_past_deadline(sitting.deadline, ctx.now):
        return sitting
    # Not in the current read transaction, whose data may be out of date.
    from_thread.run(
        write_during_read_request,
        ctx.request,
        lambda db: close_sitting_if_past_deadline(db, ctx.course, sitting, ctx.now),
    )
    ctx.db.rollback()
    return store.load_sitting(ctx.db, ctx.learner.id, sitting.sitting_id)


def _require_paper_item(sitting: SittingState, number: int) -> PaperItem:
    if not 1 <= number <= len(sitting.items):
        raise NotFoundError(f"This paper has questions 1 to {len(sitting.items)}, no {number}.")
    return sitting.items[number - 1]


def _describe_time_limit(factor: float, exam: ExamBlueprint) -> str:
    factor_text = "Standard" if factor == 1 else f"{factor:g} times as long"
    return f"{factor_text}, {exam.minutes * factor:g} minutes"


def _build_answer_change(
    ctx: RequestContext, slot: PaperItem, form: ExamAnswerForm
) -> AnswerChange:
    variant = draw_variant(
        load_question_in_revision(ctx.db, ctx.course, slot.question_id, slot.revision), slot.seed
    )
    return AnswerChange(
        question_number=slot.question_number,
        submitted=_build_answer_state(variant, form),
        displayed=_build_answer_state(variant, form.displayed_form)
        if form.displayed_form
        else AnswerState(),
        has_independent_fields=types.question_type_of(variant).is_each_field_an_answer,
        shown_at_ms=form.shown_at_ms,
        waited_ms=form.waited_ms,
    )


def _build_answer_state(variant: Variant, form: ExamAnswerForm) -> AnswerState:
    kind = types.question_type_of(variant)
    raw = (
        kind.apply_button_press(form.raw_response, form.ordering_move)
        if form.ordering_move
        else form.raw_response
    )
    order_confirmed: AnsweredMark = form.order_confirmed if raw == form.raw_response else "yes"
    raw = kind.drop_untouched_fields_on_autosave(variant.answer, raw, order_confirmed)
    return AnswerState(raw, form.flagged, form.struck_options)


def _build_next_exam_url(sitting: SittingState, number: int, destination: str) -> str:
    """Return the URL for the button that was pressed."""
    last = len(sitting.items)
    review_url = f"/exams/sittings/{sitting.sitting_id}/review"
    if destination in ("incomplete", "flagged"):
        return f"{review_url}?show={destination}"
    if destination == "review" or (destination == "next" and number == last):
        return review_url
    target = {"next": number + 1, "previous": number - 1}.get(destination, number)
    if destination.isascii() and destination.isdigit():
        target = int(destination)
    return f"/exams/sittings/{sitting.sitting_id}/questions/{min(max(target, 1), last)}"


def _respond_exam_closed(ctx: RequestContext, sitting: SittingState) -> Response:
    if is_htmx_request(ctx.request):
        return render_page(ctx.request, "exams/_closed.html", status=409, sitting=sitting)
    return RedirectResponse(f"/exams/sittings/{sitting.sitting_id}/report?late=1", 303)


def _build_open_exam_question(
    ctx: RequestContext, sitting: SittingState, slot: PaperItem, frame: Mapping[str, Any]
) -> OpenQuestion:
    saved: SavedAnswer = frame["saved_answer"]
    unreadable: UnreadableResponse | None = frame["unreadable"].get(slot.question_number)
    return OpenQuestion(
        variant=draw_variant(
            load_question_in_revision(ctx.db, ctx.course, slot.question_id, slot.revision),
            slot.seed,
        ),
        submission_token="",
        context="exam",
        position_in_run=slot.question_number,
        first_shown_ms=to_milliseconds(ctx.now),
        typed_fields=saved.raw_response if saved.is_answered else {},
        parse_error=unreadable.message if unreadable else "",
        submit_url=f"/exams/sittings/{sitting.sitting_id}/answers/{slot.question_number}",
    )


def _build_exam_template_variables(
    ctx: RequestContext, sitting: SittingState, number: int, note: AnswerConflictNote = NO_CONFLICT
) -> dict[str, Any]:
    """Return the template variables of the exam bar, the palette and the note of a question."""
    answers = store.load_answers_by_number(ctx.db, sitting.sitting_id)
    unreadable = find_unreadable_answers_by_number(ctx.db, ctx.course, sitting, answers)
    incomplete = find_incomplete_answers_by_number(ctx.db, ctx.course, sitting, answers)
    palette = build_paper_rows(sitting.items, answers, {}, unreadable, incomplete)
    answered = sum(row.is_answered for row in palette)
    saved = answers.get(number) or SavedAnswer(number, {})
    last_saved = max((k.saved_at for k in answers.values() if k.saved_at), default=None)
    return {
        "sitting": sitting,
        "title": format_exam_title(ctx.course, sitting.exam_slug),
        "number": number,
        "palette": palette,
        "answered": answered,
        "unreadable": unreadable,
        "incomplete": incomplete,
        "flagged": sum(row.is_flagged for row in palette),
        "saved": last_saved,
        "saved_local": ctx.learner.local_time(last_saved) if last_saved else None,
        "seconds_left": max(0, int((sitting.deadline - ctx.now).total_seconds())),
        "since": to_milliseconds(ctx.now),
        "pace": compute_exam_pace(sitting, answered, ctx.now),
        "saved_answer": saved,
        "shown_answer": serialize_shown_answer(saved.state),
        "note": note,
    }


def _render_solution(
    ctx: RequestContext, sitting: SittingState, slot: PaperItem, *, reported: bool
) -> HTMLResponse:
    refuse_if_excluded_from_practice(
        ctx, load_question_in_revision(ctx.db, ctx.course, slot.question_id, slot.revision)
    )
    paper = {row.question_number: row for row in load_graded_items(ctx.db, ctx.course, sitting)}
    to_repeat = build_score_report(list(paper.values())).questions_to_repeat
    numbers = [row.question_number for row in _sort_in_learning_order(ctx, to_repeat)]
    index = numbers.index(slot.question_number) if slot.question_number in numbers else -1
    return ctx.render_page(
        "exams/solution.html",
        outcome=add_missed_card_to_feedback(ctx, _build_answer_feedback(ctx, sitting, slot)),
        reported=reported,
        sitting=sitting,
        number=slot.question_number,
        palette=[paper[s.question_number] for s in sitting.items],
        result=paper[slot.question_number].result_text,
        place=index + 1,
        repeat_count=len(numbers),
        next_number=numbers[index + 1] if index + 1 < len(numbers) else 0,
        previous_number=numbers[index - 1] if index > 0 else 0,
    )


def _build_answer_feedback(
    ctx: RequestContext, sitting: SittingState, slot: PaperItem
) -> AnswerFeedback:
    item_score = store.load_scores_by_question(ctx.db, sitting).get(slot.question_id)
    saved = store.load_answers_by_number(ctx.db, sitting.sitting_id).get(
        slot.question_number
    ) or SavedAnswer(slot.question_number, {})
    graded_slot = replace_with_graded_revision(slot, item_score)
    question = load_question_in_revision(
        ctx.db, ctx.course, graded_slot.question_id, graded_slot.revision
    )
    answer = RecordedAttempt(
        item_score.attempt_id if item_score else 0,
        slot.question_id,
        question.topic,
        graded_slot.revision,
        slot.seed,
        saved.raw_response,
        item_score.score if item_score else 0.0,
        None,
        "exam",
        None,
        0,
        was_regraded=item_score is not None and item_score.score_before_regrade is not None,
    )
    url = f"/exams/sittings/{sitting.sitting_id}/questions/{slot.question_number}"
    links = AnswerFeedbackLinks(this_feedback_url=url, submission_token=make_submission_token())
    outcome = build_feedback(ctx.db, ctx.course, answer, links)
    if item_score is None:
        verdict = build_unanswered_result(outcome.variant)
        return dataclasses.replace(outcome, verdict=verdict)
    return outcome
