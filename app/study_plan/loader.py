"""The list of a learner's study day with what is done of it, for pages."""

import dataclasses
import datetime as dt
import logging
from collections.abc import Collection, Sequence
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from app.accounts.current_learner import LearnerProfile, ReadContext, RequestContext
from app.accounts.learner import PlanCalendar
from app.accounts.learner_store import load_sitting_days
from app.clock import round_minutes
from app.content.course_facts import cached_course_facts
from app.content.reading_routes import ReadingRoute
from app.database.engine import write_during_read_request
from app.spaced_repetition.review_log import count_recalled_cards, count_started_cards
from app.spaced_repetition.todays_queue import CardsOnDayList
from app.study_plan import store
from app.study_plan.day_list import (
    DayList,
    TaskProgress,
    choose_route,
    count_unfinished_in_a_row,
    make_day_list,
    measure_task_progress,
)
from app.study_plan.facts import LearnerFacts, ReadingFact
from app.study_plan.score import ScoreEstimate, estimate_score, limit_score_drop

_log = logging.getLogger("headroom")


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPlan:
    """The plan of a study day: the list with what is done of it, and the estimate."""

    tasks: tuple[TaskProgress, ...]
    estimate: ScoreEstimate | None
    ready_objectives: tuple[str, ...]
    questions_answered_today: Collection[str]
    objective_count: int
    read_page_count: int
    page_count: int
    known_card_count: int
    started_card_count: int
    placement_minutes: float

    @property
    def minutes_today(self) -> int:
        """The minutes of the placement test and the whole list, as its tasks show them."""
        parts = (self.placement_minutes, *(progress.task.minutes for progress in self.tasks))
        return sum(map(round_minutes, parts))

    @property
    def minutes_left(self) -> int:
        return sum(round_minutes(task.minutes_left) for task in self.tasks)

    @property
    def is_done(self) -> bool:
        """Whether everything on the list is done; so for an empty list."""
        return all(task.is_done for task in self.tasks)


def load_study_plan(ctx: RequestContext) -> StudyPlan | None:
    """Return the plan of the study day; None until the learner has read or answered something.

    A list that is not stored yet is made, but not stored: `ensure_day_list` does that.
    """
    made = _make_list_to_store(ctx) or load_stored_day_list(ctx)
    if made is None:
        return None
    day_list, course_facts = made.day_list, cached_course_facts(ctx.course)
    done = store.load_day_activity(ctx.db, ctx.learner, ctx.course, day_list)
    return StudyPlan(
        tasks=measure_task_progress(day_list.tasks, done),
        estimate=made.score_estimate,
        ready_objectives=day_list.ready,
        questions_answered_today=done.answered_questions,
        objective_count=len(course_facts.objectives),
        read_page_count=len(course_facts.pages.keys() & done.essentials_read),
        page_count=len(course_facts.pages),
        known_card_count=day_list.known_cards,
        started_card_count=day_list.started_cards,
        placement_minutes=day_list.placement_minutes,
    )


def load_calendar(ctx: RequestContext, day: dt.date) -> PlanCalendar:
    """Return the dates of the plan as of `day`, without mock exams that were taken early."""
    sat = load_sitting_days(ctx.db, ctx.learner, ctx.course) if ctx.learner.mock_days else ()
    return ctx.learner.plan_calendar_as_of(day).without_mock_exams_taken_early(sat)


def find_planned_route(ctx: RequestContext) -> ReadingRoute:
    """Return the route of the day's list, or what it would be for the present plan."""
    learner, day = ctx.learner, ctx.study_day
    made = load_stored_day_list(ctx) or _build_unsaved_list(ctx, day)
    if made and made.day_list.route and made.day_list.made_for == _build_settings_key(learner, day):
        return made.day_list.route
    course_facts, calendar = cached_course_facts(ctx.course), learner.plan_calendar_as_of(day)
    minutes, facts = learner.minutes_ignoring_days_off(day), LearnerFacts(day)
    if learner.id:
        facts = store.load_learner_facts(ctx.db, learner, ctx.course, day)
    return choose_route(course_facts, facts, calendar, minutes, learner.page_route)


def build_next_day_list(ctx: RequestContext, assumed: Sequence[ReadingFact] = ()) -> DayList | None:
    """Return the list of the next day that may have pages, as what is known now would make it.

    What is assumed counts as read, and mock exams until then as sat. None if no such day is left.
    """
    days = load_calendar(ctx, ctx.study_day).list_reading_days_after(ctx.study_day)
    made = _build_unsaved_list(ctx, days[0], assumed) if days else None
    return made.day_list if made else None


def load_stored_day_list(ctx: RequestContext) -> store.ListAndEstimate | None:
    """Return the stored list of the study day; None until it is made."""
    newest = _load_newest_list(ctx)
    return newest if newest and newest.day_list.day == ctx.study_day else None


def load_cards_on_day_list(ctx: RequestContext) -> CardsOnDayList | None:
    """Return the cards on the stored list of the study day; None without one or after the exam."""
    if ctx.learner.is_exam_over(ctx.study_day) or not (todays := load_stored_day_list(ctx)):
        return None
    by_kind = {task.kind: task.cards for task in todays.day_list.tasks}
    return CardsOnDayList(by_kind.get("review", ()), by_kind.get("new", ()))


def _load_task_progress(ctx: RequestContext, day_list: DayList) -> tuple[TaskProgress, ...]:
    done = store.load_day_activity(ctx.db, ctx.learner, ctx.course, day_list)
    return measure_task_progress(day_list.tasks, done)


def _load_newest_list(ctx: RequestContext) -> store.ListAndEstimate | None:
    """Return the list of the day or the last one before, read once per request."""
    if "newest list" not in ctx.lookup_cache:
        learner_id = ctx.learner.id
        newest = store.load_newest_list(ctx.db, learner_id, ctx.study_day) if learner_id else None
        ctx.lookup_cache["newest list"] = newest
    found: store.ListAndEstimate | None = ctx.lookup_cache["newest list"]
    return found


def _build_unsaved_list(
    ctx: RequestContext, day: dt.date, assumed: Sequence[ReadingFact] = ()
) -> store.ListAndEstimate | None:
    """Make the list of `day` from what is known now, after the last one or in its place.

    None until something was read or answered, and while a first placement test is unfinished.
    """
    newest, db, learner, course = _load_newest_list(ctx), ctx.db, ctx.learner, ctx.course
    if not learner.id or (not newest and store.is_placement_finished(db, learner, day) is False):
        return None
    facts = store.load_learner_facts(db, learner, course, day)
    if day > ctx.study_day:
        facts = dataclasses.replace(facts, last_exam_day=day, readings=[*facts.readings, *assumed])
    course_facts = cached_course_facts(course)
    if not (facts.readings or facts.first_answers):
        return None
    estimate, ready = estimate_score(course_facts, facts), set[str]()
    length, made_for = learner.page_route, _build_settings_key(learner, day)
    if newest is not None:
        last, before, is_tested, has_exam = newest
        ready.update(last.ready)
        progress = _load_task_progress(ctx, last) if last.day < day else ()
        unfinished = count_unfinished_in_a_row(last.undone, progress)
        facts = dataclasses.replace(facts, unfinished_by_kind=unfinished)
        same_time = last.made_for.rpartition(" ")[0] == made_for.rpartition(" ")[0]
        if last.route == "short" and same_time:
            length = "short"  # to change it from day to day, or with the cards, would take longer
        if before and estimate and before.questions == estimate.questions:
            if last.day == day and not has_exam and (last.placement_minutes or not is_tested):
                estimate = before  # on its day, only a placement test or mock exam counts
            elif not has_exam:
                shown = limit_score_drop(estimate.mean, before.shown, (day - last.day).days)
                estimate = dataclasses.replace(estimate, shown=shown)
    if estimate is not None:
        ready.update(o.number for o in estimate.objectives.values() if o.is_ready)
    day_list = make_day_list(
        course_facts,
        facts,
        load_calendar(ctx, day),
        estimate,
        day_minutes=learner.minutes_ignoring_days_off(day),
        amount=learner.card_amount,
        length=length,
        seed=learner.key,
    )
    known, begun = count_recalled_cards(db, learner.id), count_started_cards(db, learner.id)
    day_list = dataclasses.replace(
        day_list, ready=(*sorted(ready),), known_cards=known, started_cards=begun, made_for=made_for
    )
    return store.ListAndEstimate(day_list, estimate)


def _build_settings_key(learner: LearnerProfile, day: dt.date) -> str:
    """Return the choices that a list is made for, cards last; if they change, it may be made again."""
    return f"{learner.minutes_ignoring_days_off(day)} {learner.page_route} {learner.plan_calendar_as_of(day)} {learner.card_amount}"


def _make_list_to_store(ctx: RequestContext) -> store.ListAndEstimate | None:
    """Return the list to store; None if that of the day is stored already, or there is none.

    One on which nothing was begun is made again after a change of the plan or a placement test.
    After a mock exam any other one is stored again with a new score.
    """
    if (todays := load_stored_day_list(ctx)) is not None:
        made = todays.day_list
        same = made.made_for == _build_settings_key(ctx.learner, ctx.study_day)
        if same and todays.has_placement_answers and made.tasks and not made.placement_minutes:
            same = not store.is_placement_finished(ctx.db, ctx.learner, ctx.study_day)
        if same or any(t.done_count or t.begun_count for t in _load_task_progress(ctx, made)):
            has_exam = todays.has_later_exam_answers
            new = _build_unsaved_list(ctx, ctx.study_day) if has_exam else None
            return new and new._replace(
                day_list=dataclasses.replace(made, ready=new.day_list.ready)
            )
    return _build_unsaved_list(ctx, ctx.study_day)


async def ensure_day_list(request: Request, ctx: ReadContext) -> None:
    """Store the list of the study day before the first page that shows it is sent.

    If it can't be written, the page is shown all the same. Of two requests at once, the first wins.
    """
    if (made := await run_in_threadpool(_make_list_to_store, ctx)) is None:
        return
    exam = cached_course_facts(ctx.course).main_exam_slug
    try:
        await write_during_read_request(
            request, lambda db: store.save_day_list(db, ctx.learner, made, exam, ctx.now)
        )
        # The reader's snapshot is from before; the next query sees the list that stayed.
        ctx.db.rollback()
        ctx.lookup_cache.clear()
    except SQLAlchemyError:
        _log.exception("the list of a day could not be written down")


DayListEnsured = Annotated[None, Depends(ensure_day_list)]
