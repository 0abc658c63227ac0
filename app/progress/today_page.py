"""The Today page: days left, the expected score, the list of the day; the first visit."""

import dataclasses
import datetime as dt
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from app.accounts.current_learner import ReadContext, RequestContext, WriteContext
from app.accounts.learner_store import load_sitting_days, update_learner_columns
from app.clock import from_milliseconds, to_milliseconds
from app.content.course import Course
from app.content.course_facts import cached_course_facts, find_main_exam
from app.content.reading_routes import ReadingRoute, sum_reading_minutes_on_route
from app.errors import ConflictError
from app.lessons.course_pages import build_domain_progress, find_next_page_across_day_lists
from app.markup.model import ExamBlueprint, Topic
from app.progress import store as progress_store
from app.progress.plan_page import does_unread_reading_fit
from app.progress.predictions import ScoreChange, build_score_trend, draw_score_trend
from app.progress.store import RunningExam
from app.progress.study_record import (
    StudyRecord,
    build_week_days,
    list_days_missed_before,
    load_study_record,
    summarize_last_seven_days,
)
from app.questions.question_form import make_submission_token
from app.quiz.next_steps import build_task_views
from app.quiz.selection import PLACEMENT_HELPS_BELOW, draw_placement_test
from app.quiz.store import find_placement_test
from app.spaced_repetition.todays_queue import load_todays_queue
from app.study_plan.day_list import PLACEMENT_QUESTION_MINUTES
from app.study_plan.loader import (
    DayListEnsured,
    StudyPlan,
    find_planned_route,
    load_calendar,
    load_cards_on_day_list,
    load_study_plan,
)
from app.web.formatting import format_points_rounded
from app.web.render import render_page
from app.widgets.svg import build_svg_element, draw_rect_in_percent


@dataclasses.dataclass(frozen=True, slots=True)
class FirstVisitOffer:
    """What a new learner is offered: a placement test, or the first page.

    `route` is that of the plan, on which the page takes `first_page_minutes`; it `is_shortened` if
    that is less than in full.
    """

    exam: ExamBlueprint | None
    placement_questions: int
    placement_minutes: float
    first_page: Topic | None
    route: ReadingRoute
    first_page_minutes: float
    is_shortened: bool


def build_first_visit_offer(
    course: Course, exam: ExamBlueprint | None, seed: str, reading_route: ReadingRoute
) -> FirstVisitOffer:
    """Return the placement test and the first page of the course."""
    placement = draw_placement_test(
        list(course.questions.values()), course.syllabus.domains, {}, seed
    )
    topics = [course.topics[s] for s in course.syllabus.topics if s in course.topics]
    first_topic = topics[0] if topics else None
    whole, planned = (
        sum_reading_minutes_on_route(first_topic, length) if first_topic else 0.0
        for length in ("full", reading_route)
    )
    return FirstVisitOffer(
        exam=exam,
        placement_questions=len(placement),
        placement_minutes=len(placement) * PLACEMENT_QUESTION_MINUTES,
        first_page=first_topic,
        route=reading_route,
        first_page_minutes=planned,
        is_shortened=planned < whole,
    )


_LEAST_BAR_SHARE = 0.05  # of the drawing, for a task of a minute


def draw_task_progress_in_minutes(plan: StudyPlan) -> Markup:
    """Draw the minutes of the list: a bar for each task, filled as far as it is done."""
    parts = [(plan.placement_minutes, 0.0)]
    parts += [(task.task.minutes, task.minutes_left) for task in plan.tasks]
    parts = [(minutes, minutes_left) for minutes, minutes_left in parts if minutes]
    # On a phone, less of the width can't be seen beside its edges.
    least = _LEAST_BAR_SHARE * sum(minutes for minutes, _ in parts)
    total = sum(max(minutes, least) for minutes, _ in parts) or 1
    marks, x = [], 0.0
    for minutes, minutes_left in parts:
        width = 100 * max(minutes, least) / total
        done_width = width * (1 - minutes_left / minutes)
        marks.append(draw_rect_in_percent("bg", x, 0, width, 10))
        if done_width:
            marks.append(draw_rect_in_percent("won", x, 0, done_width, 10))
        x += width
    label = f"{plan.minutes_left} of {plan.minutes_today} minutes are left"
    return build_svg_element(marks, 10, label, "g cells")


def has_listed_page_longer_than(plan: StudyPlan, minutes: int) -> bool:
    """Return whether a page on the list takes longer than the minutes of the day."""
    return any(page.minutes > minutes for task in plan.tasks for page in task.task.pages)


class MockExamOfToday(NamedTuple):
    """A mock exam that was taken today: its address, the score in words, and its report."""

    url: str
    score: str
    report_url: str


router = APIRouter()


@router.get("/", name="today")
def show_today(
    request: Request, ctx: ReadContext, _ensured: DayListEnsured, kept: str = ""
) -> HTMLResponse:
    course, learner = ctx.course, ctx.learner
    running, placement = None, None
    if learner.id:
        running = _find_running_exam_with_title(ctx)
        placement = find_placement_test(ctx.db, learner.id, course.questions)
    plan = load_study_plan(ctx)
    exam = learner.exam_day
    context: dict[str, Any] = {
        "learner": learner,
        "course": course,
        "syllabus": course.syllabus,
        "day": ctx.study_day,
        "days_left": (exam - ctx.study_day).days if exam else None,
        "is_after_exam": learner.is_exam_over(ctx.study_day),
        "plan": plan,
        "running": running,
        "placement_test": placement if placement and placement.unanswered_count else None,
        "offers_placement": placement is None
        and bool(plan and plan.estimate and plan.estimate.answers < PLACEMENT_HELPS_BELOW),
        "exam": find_main_exam(course),
        "estimate": plan.estimate if plan else None,
        "change": ScoreChange(),
        "trend": "",
        "token": make_submission_token(),
        "saved": kept == "yes",
    }
    if plan is None and running is None:
        welcome = build_first_visit_offer(
            course, find_main_exam(course), learner.key, find_planned_route(ctx)
        )
        return render_page(request, "progress/first_visit.html", welcome=welcome, **context)
    record = load_study_record(ctx)
    tasks, mock = build_task_views(plan, course), _find_todays_mock_exam(ctx, plan)
    is_mock_listed = mock is not None and mock.url in {task.url for task in tasks}
    if mock is not None and is_mock_listed:
        tasks = [
            dataclasses.replace(task, detail=mock.score, report_url=mock.report_url)
            if task.is_done and task.url == mock.url
            else task
            for task in tasks
        ]
    if plan is not None:
        context |= _progress_context(ctx, plan, record)
    return render_page(
        request,
        "progress/today.html",
        tasks=tasks,
        mock_beside_list=None if is_mock_listed else mock,
        minutes_drawn=draw_task_progress_in_minutes(plan) if plan else "",
        has_long_page=plan is not None
        and has_listed_page_longer_than(plan, learner.minutes_ignoring_days_off(ctx.study_day)),
        waiting=_count_cards_due_later_today(ctx, plan),
        cards_left=load_todays_queue(ctx, None).cards_left
        if learner.is_exam_over(ctx.study_day)
        else None,
        further=find_next_page_across_day_lists(ctx, find_planned_route(ctx))
        if plan and plan.is_done
        else None,
        target_questions=compute_target_right_answers(plan, learner.target),
        **context,
    )


def _progress_context(
    ctx: RequestContext, plan: StudyPlan, record: StudyRecord
) -> Mapping[str, Any]:
    scores = progress_store.load_score_predictions(ctx.db, ctx.learner.id)
    trend = build_score_trend(scores, cached_course_facts(ctx.course).main_exam_slug, plan.estimate)
    calendar = load_calendar(ctx, ctx.study_day)
    missed_days = list_days_missed_before(ctx.study_day, calendar, record)
    return {
        "change": trend.change_since_first(),
        "trend": draw_score_trend(trend, None, height=50),
        "week": build_week_days(ctx.study_day, calendar, record, is_list_done=plan.is_done),
        "missed_days": missed_days,
        "has_pages_that_may_not_fit": bool(missed_days)
        and not does_unread_reading_fit(ctx, calendar, plan),
        "mock_days": calendar.mock_exam_days,
        "sitting_days": load_sitting_days(ctx.db, ctx.learner, ctx.course)
        if ctx.learner.mock_days
        else (),
        "summary": summarize_last_seven_days(ctx, plan, record),
        "domains": build_domain_progress(
            ctx.course,
            plan.ready_objectives,
            plan.estimate,
            record.opened_topics,
            record.essentials_read_day_by_topic,
            plan.questions_answered_today,
        ),
    }


def compute_target_right_answers(plan: StudyPlan | None, target_percent: int | None) -> int | None:
    """Return how many right answers reach the learner's target (percent)."""
    if plan is None or plan.estimate is None or target_percent is None:
        return None
    return math.ceil(target_percent * plan.estimate.questions / 100)


def _count_cards_due_later_today(ctx: RequestContext, plan: StudyPlan | None) -> int:
    """Return how many cards are due later today, once the list is done; 0 before."""
    if plan is None or not plan.is_done:
        return 0
    remaining = load_todays_queue(ctx, load_cards_on_day_list(ctx)).cards_left
    return 0 if remaining.due_now or remaining.new_cards else remaining.waiting_for_step


def _find_running_exam_with_title(ctx: RequestContext) -> RunningExam | None:
    running = progress_store.find_running_exam(ctx.db, ctx.learner.id, to_milliseconds(ctx.now))
    if running is None:
        return None
    exam = ctx.course.exams.get(running.title_or_slug)
    return dataclasses.replace(running, title_or_slug=exam.title if exam else "Mock exam")


_LAST_SITTINGS = 20


def _find_todays_mock_exam(ctx: RequestContext, plan: StudyPlan | None) -> MockExamOfToday | None:
    """Return the last full mock exam that was started today and is over, if one is planned at all."""
    is_on_list = plan is not None and any(t.kind == "mock" and t.is_done for t in plan.tasks)
    has_answers = plan is not None and ctx.learner.mock_days and plan.questions_answered_today
    if not (is_on_list or has_answers):
        return None
    for result in progress_store.load_closed_sitting_results(
        ctx.db, ctx.learner.id, _LAST_SITTINGS
    ):
        day = ctx.learner.study_day(from_milliseconds(result.started_at_ms))
        if result.exam in ctx.course.exams and day == ctx.study_day and result.answered_count:
            score = f"{format_points_rounded(result.score)} of {result.question_count}"
            url = f"/exams/sittings/{result.sitting_id}/report"
            return MockExamOfToday(f"/exams/{result.exam}", score, url)
    return None


@router.post("/exam-result")
def save_real_exam_result(
    ctx: WriteContext,
    result: Annotated[Literal["passed", "failed", ""], Form()] = "",
    day: Annotated[dt.date | None, Form()] = None,
) -> Response:
    """Save the result of the real exam; an empty one deletes it, with a `day` that of an earlier exam."""
    if day is not None and not result:
        left = (past.as_text for past in ctx.learner.past_exams if past.day != day)
        update_learner_columns(ctx.db, ctx.learner.id, {"past_exams": " ".join(left)})
        return RedirectResponse("/plan", 303)
    exam = ctx.learner.exam_day
    if exam is None or exam > ctx.study_day:
        raise ConflictError("Your exam day is not over yet. The result can be saved after it.")
    update_learner_columns(ctx.db, ctx.learner.id, {"exam_result": result})
    return RedirectResponse("/", 303)
