"""The list of a learner's study day with what is done of it, for pages."""

import dataclasses
import datetime as dt
import logging
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.accounts.current_learner import LearnerProfile, Reader, RequestContext
from app.accounts.plan_calendar import PlanCalendar
from app.clock import round_minutes
from app.content.course_facts import course_facts
from app.content.library import Library
from app.database.engine import write_in_own_transaction
from app.spaced_repetition.todays_queue import ListedCards
from app.study_plan import store
from app.study_plan.day_list import (
    DayList,
    TickedTask,
    count_undone,
    make_day_list,
    tick_tasks,
)
from app.study_plan.facts import LearnerFacts
from app.study_plan.score import ScoreEstimate, damp_fall, estimate_score

_log = logging.getLogger("headroom")


@dataclasses.dataclass(frozen=True, slots=True)
class StudyProgress:
    """What only grows: objectives that were ready once, pages read, cards known."""

    objectives_ready: int
    objectives: int
    pages_read: int
    pages: int
    cards_known: int
    cards: int


@dataclasses.dataclass(frozen=True, slots=True)
class StudyPlan:
    """The plan of a study day: the list with its ticks, the dates, and this morning's estimate.

    `ready` are the objectives that were ready once.
    """

    day: dt.date
    calendar: PlanCalendar
    tasks: tuple[TickedTask, ...]
    estimate: ScoreEstimate | None
    ready: tuple[str, ...]
    progress: StudyProgress

    @property
    def minutes(self) -> int:
        """The minutes of the whole list, as its tasks show them."""
        return sum(round_minutes(task.task.minutes) for task in self.tasks)

    @property
    def minutes_left(self) -> int:
        return sum(round_minutes(task.minutes_left) for task in self.tasks)

    @property
    def is_done(self) -> bool:
        """Whether everything on the list is done; so for an empty list."""
        return all(task.is_done for task in self.tasks)

    @property
    def is_off(self) -> bool:
        return self.calendar.is_off(self.day)


def load_plan(desk: RequestContext) -> StudyPlan | None:
    """Return the plan of the study day; None until the learner has read or answered something.

    A list that is not stored yet is made, but not stored: `ensure_day_list` does that.
    """
    made = _find_or_make(desk)
    if made is None:
        return None
    day_list, estimate = made
    course = course_facts(desk.library)
    done = store.load_day_done(
        desk.db,
        desk.learner,
        desk.library,
        desk.day,
        pages=course.pages,
        exam=day_list.exam,
    )
    return StudyPlan(
        day=desk.day,
        calendar=desk.learner.plan_calendar(desk.day),
        tasks=tick_tasks(day_list.tasks, done),
        estimate=estimate,
        ready=day_list.ready,
        progress=StudyProgress(
            objectives_ready=len(day_list.ready),
            objectives=len(course.objectives),
            pages_read=len(done.pages),
            pages=len(course.pages),
            cards_known=day_list.known_cards,
            cards=len(desk.library.cards),
        ),
    )


def listed_cards(desk: RequestContext) -> ListedCards | None:
    """Return the cards on the stored list of the study day; None without one."""
    if not desk.learner.id:
        return None
    newest = _newest_list(desk)
    if newest is None or newest[0].day != desk.day:
        return None
    by_kind = {task.kind: task.cards for task in newest[0].tasks}
    return ListedCards(by_kind.get("review", ()), by_kind.get("new", ()))


def _tick(
    db: Session, learner: LearnerProfile, library: Library, day_list: DayList
) -> tuple[TickedTask, ...]:
    pages = [page.slug for task in day_list.tasks for page in task.pages]
    done = store.load_day_done(db, learner, library, day_list.day, pages=pages, exam=day_list.exam)
    return tick_tasks(day_list.tasks, done)


def _newest_list(desk: RequestContext) -> tuple[DayList, ScoreEstimate | None] | None:
    """Return the list of the day or the last one before, read once per request."""
    if "newest list" not in desk.found:
        newest = store.load_newest_list(desk.db, desk.learner.id, desk.day)
        desk.found["newest list"] = newest
    found: tuple[DayList, ScoreEstimate | None] | None = desk.found["newest list"]
    return found


def _find_or_make(desk: RequestContext) -> tuple[DayList, ScoreEstimate | None] | None:
    """Return the stored list of the day, or make it from what is known now."""
    db, learner, library, day = desk.db, desk.learner, desk.library, desk.day
    if not learner.id:
        return None
    newest = _newest_list(desk)
    if newest is not None and newest[0].day == day:
        return newest
    facts = store.load_learner_facts(db, learner, library, day)
    if not (facts.readings or facts.answers):
        return None
    if newest is None and store.is_being_placed(db, learner, library, day):
        return None
    if newest is not None:
        last = newest[0]
        undone = count_undone(last.undone, _tick(db, learner, library, last))
        facts = dataclasses.replace(facts, undone=undone)
    day_list, estimate = _make(library, learner, facts, newest)
    known = store.count_known_cards(db, learner.id)
    return dataclasses.replace(day_list, known_cards=known), estimate


def _make(
    library: Library,
    learner: LearnerProfile,
    facts: LearnerFacts,
    newest: tuple[DayList, ScoreEstimate | None] | None,
) -> tuple[DayList, ScoreEstimate | None]:
    course = course_facts(library)
    estimate = estimate_score(course, facts)
    before = newest[1] if newest else None
    if newest and before and estimate and before.questions == estimate.questions:
        since = newest[0].day
        sat = facts.last_sat is not None and facts.last_sat >= since
        if not sat:
            shown = damp_fall(estimate.mean, before.shown, (facts.day - since).days)
            estimate = dataclasses.replace(estimate, shown=shown)
    day_list = make_day_list(
        course,
        facts,
        learner.plan_calendar(facts.day),
        estimate,
        minutes=learner.minutes_on(facts.day),
        amount=learner.card_amount,
        seed=learner.key,
    )
    ready = set(newest[0].ready) if newest else set()
    ready |= {o.number for o in estimate.objectives.values() if o.is_ready} if estimate else set()
    return dataclasses.replace(day_list, ready=tuple(sorted(ready))), estimate


async def ensure_day_list(request: Request, desk: Reader) -> None:
    """Store the list of the study day before the first page that shows it is sent.

    These pages are GET requests. If the list can't be written, the page is shown all the same. Two
    requests at once write one list: the first one stays.
    """
    if not desk.learner.id:
        return
    made = await run_in_threadpool(_make_missing, desk)
    if made is None:
        return
    day_list, estimate = made
    exam = course_facts(desk.library).exam
    try:
        await write_in_own_transaction(
            request,
            lambda db: store.save_day_list(db, desk.learner, day_list, estimate, exam, desk.now),
        )
        # The reader's snapshot is from before; the next query sees the list that stayed.
        desk.db.rollback()
        desk.found.clear()
    except SQLAlchemyError:
        _log.exception("the list of a day could not be written down")


def _make_missing(desk: RequestContext) -> tuple[DayList, ScoreEstimate | None] | None:
    """Return the list to store; None if it is stored already or there is none yet."""
    newest = _newest_list(desk)
    if newest is not None and newest[0].day == desk.day:
        return None
    return _find_or_make(desk)


def renew_untouched_list(desk: RequestContext) -> None:
    """Forget today's list if nothing on it was begun, after the learner changed the plan.

    It is made again at the next request. One that was begun holds until tomorrow.
    """
    newest = store.load_newest_list(desk.db, desk.learner.id, desk.day)
    if newest is None or newest[0].day != desk.day:
        return
    if not any(task.done for task in _tick(desk.db, desk.learner, desk.library, newest[0])):
        store.forget_day_list(desk.db, desk.learner.id, desk.day)


DayListEnsured = Annotated[None, Depends(ensure_day_list)]
