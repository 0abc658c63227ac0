"""The learner of the request, their study habits, and the request context."""

import contextlib
import dataclasses
import datetime as dt
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from sqlalchemy import event
from sqlmodel import Session

from app.accounts.learner_store import (
    BrowserVisit,
    LearnerRecord,
    NewLearnerSettings,
    bump_change_counter,
    derive_course_key,
    describe_records,
    enroll_learner,
    find_learner,
    learner_numbered,
    touch_session,
)
from app.accounts.plan_calendar import (
    CardAmount,
    PlanCalendar,
    read_card_amount,
)
from app.clock import RETENTION, Now, current_time, from_milliseconds, study_day_at, study_day_start
from app.content.library import Library
from app.database.engine import DbSession, read_only_session, run_query
from app.database.quotas import DailyQuota, StorageLimit
from app.database.write_queue import Turn
from app.web.dependencies import current_library
from app.web.rate_limits import RateLimiter, client_key
from app.web.render import render_page
from app.web.visitor import SessionCookies, Visitor, describe_user_agent

LAST_WEEK = 7
"""Days before the exam on which the study time may be doubled."""


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHabits:
    """A learner's choices for the study plan.

    `double` doubles the minutes in the last week, `off` are the weekdays without study time
    (Monday is 0).
    """

    double: bool = False
    off: frozenset[int] = frozenset()


DEFAULT_HABITS = StudyHabits()

_A_DAY = dt.timedelta(days=1)


@dataclasses.dataclass(frozen=True, slots=True)
class LearnerProfile:
    """The learner of a request. `id` is 0 until something is saved in this course.

    `key` seeds draws and is the same in all of the learner's browsers. `calendar` shows
    the study log; `missed` turns missed questions into cards. `last_seen` is when this
    browser was last recorded, in milliseconds. `acts` counts manual edits of cards.
    `person` is shared by the learner's rows in all courses. `home` is the id of their
    row in any course, 0 for a new visitor.
    """

    key: str
    id: int = 0
    name: str = ""
    zone: str = "UTC"
    exam_day: dt.date | None = None
    minutes_a_day: int = 30
    retention: float = RETENTION
    target: int | None = None
    calendar: bool = True
    missed: bool = True
    habits: StudyHabits = DEFAULT_HABITS
    last_seen: int = 0
    acts: int = 0
    person: str = ""
    course: str = ""
    home: int = 0
    plan_begun: dt.date | None = None
    mock_days: tuple[dt.date, ...] = ()
    card_amount: CardAmount = "normal"
    reminder_hour: int | None = None
    exam_result: str = ""

    def plan_calendar(self, day: dt.date) -> PlanCalendar:
        """Return the dates of the plan as of a study day; without an exam day if it is over."""
        if self.exam_day is None or self.exam_day < day:
            return PlanCalendar(day, off=self.habits.off)
        begin = self.plan_begun or day
        return PlanCalendar(begin, self.exam_day, self.mock_days, self.habits.off)

    def study_day(self, now: dt.datetime) -> dt.date:
        """Return the learner's study day at `now`. It changes at 04:00 local time."""
        return study_day_at(now, self.zone)

    def is_off(self, day: dt.date) -> bool:
        """Return whether nothing is planned for a day: a day off before the exam."""
        exam = self.exam_day
        return exam is not None and day < exam and day.weekday() in self.habits.off

    def minutes_on(self, day: dt.date) -> int:
        """Return the minutes of a study day. A day off counts like any other day."""
        last_week = self.exam_day is not None and 0 <= (self.exam_day - day).days <= LAST_WEEK
        return self.minutes_a_day * (2 if self.habits.double and last_week else 1)

    def next_study_day(self, now: dt.datetime) -> dt.datetime:
        """Return when the study day after `now` begins."""
        return study_day_start(self.study_day(now) + dt.timedelta(days=1), self.zone)


async def read_learner(request: Request, db: DbSession) -> LearnerProfile:
    """Return the learner of the session cookie.

    A browser with a revoked session becomes a new visitor.
    """
    visitor: Visitor = request.state.visitor
    course: str = request.state.course
    found = await run_query(db, lambda: find_learner(db, visitor.digest, course))
    if found is not None and found.revoked_at is None:
        return _learner_from_row(found)
    if found is not None:
        keeper: SessionCookies = request.app.state.doorkeeper
        visitor = keeper.newcomer(visitor)
        request.state.visitor = visitor
    person = learner_key(visitor.key)
    return LearnerProfile(
        derive_course_key(person, course),
        zone=visitor.zone or "UTC",
        person=person,
        course=course,
    )


async def find_learner_at_once(request: Request) -> LearnerProfile:
    """Return the learner of the session cookie, for a route that waits afterwards.

    Does not hold a reader slot while the route waits.
    """
    async with read_only_session(request) as db:
        return await read_learner(request, db)


def load_learner_by_id(db: Session, learner_id: int) -> LearnerProfile | None:
    """Return a learner by id, without a browser; None if there is no such row."""
    found = learner_numbered(db, learner_id)
    return _learner_from_row(found) if found else None


def learner_key(session_key: str) -> str:
    """Return the person key of a new session. The session key cannot be derived from it."""
    return hashlib.sha256(f"learner:{session_key}".encode()).hexdigest()[:32]


def describe_browser_visit(request: Request, now: dt.datetime) -> BrowserVisit:
    """Return the requesting browser, as its session will be listed."""
    device = describe_user_agent(request.headers.get("user-agent", ""))
    return BrowserVisit(request.state.visitor.digest, device, now)


def _learner_from_row(row: LearnerRecord) -> LearnerProfile:
    return LearnerProfile(
        key=row.key,
        id=row.id,
        name=row.name,
        zone=row.zone,
        exam_day=dt.date.fromisoformat(row.exam_day) if row.exam_day else None,
        minutes_a_day=row.minutes_a_day,
        retention=row.retention,
        target=row.target,
        calendar=row.calendar,
        missed=row.missed,
        habits=StudyHabits(row.double_last_week, frozenset(map(int, row.days_off))),
        last_seen=row.last_seen,
        acts=row.acts,
        person=row.person,
        course=row.course,
        home=row.home,
        plan_begun=dt.date.fromisoformat(row.plan_begun) if row.plan_begun else None,
        mock_days=tuple(map(dt.date.fromisoformat, row.mock_days.split())),
        card_amount=read_card_amount(row.card_amount),
        reminder_hour=row.reminder_hour,
        exam_result=row.exam_result,
    )


async def enrolled_learner(
    request: Request,
    learner: Annotated[LearnerProfile, Depends(read_learner)],
    db: DbSession,
    now: Now,
) -> LearnerProfile:
    """Return the learner with a row to write for. Every POST route depends on this.

    It also increments the change counter, so that cached pages become invalid.
    """
    if not learner.home:  # rows are permanent, so creating them is rate limited
        visitor: Visitor = request.state.visitor
        rates: RateLimiter = request.app.state.rates
        new = "learners", client_key(request.scope), visitor.known_digest
        rates.check(*new)
        # A request that fails later, e.g. on a form error, creates no row and is not
        # counted.
        event.listen(db, "after_commit", lambda _db: rates.count(*new), once=True)
    return await run_query(db, lambda: _enroll_if_new(db, learner, request, now))


@contextlib.asynccontextmanager
async def write_dependencies(
    request: Request,
) -> AsyncIterator[tuple[Session, LearnerProfile]]:
    """Yield what `DbSession` and `EnrolledLearner` give to a route.

    For frequent routes, where resolving dependencies takes noticeable time. The writes
    are on disk once the block exits without an exception.
    """
    turn: Turn = request.app.state.turn
    async with turn() as db:
        learner = await read_learner(request, db)
        yield db, await enrolled_learner(request, learner, db, await current_time(request))


def _enroll_if_new(
    db: Session, learner: LearnerProfile, request: Request, now: dt.datetime
) -> LearnerProfile:
    if learner.id and bump_change_counter(db, learner.id):
        if learner.study_day(from_milliseconds(learner.last_seen)) != learner.study_day(now):
            touch_session(db, describe_browser_visit(request, now))
        return learner
    # The first write, or another request has just erased the learner.
    new = learner
    if learner.id:
        person = learner_key(request.state.visitor.key)
        key = derive_course_key(person, learner.course)
        new = LearnerProfile(key, zone=learner.zone, person=person, course=learner.course)
    arrival = describe_browser_visit(request, now)
    number = enroll_learner(
        db, NewLearnerSettings(new.person, new.course, new.name, new.zone, arrival)
    )
    bump_change_counter(db, number)
    return dataclasses.replace(new, id=number, home=new.home or number)


async def expect_storage(request: Request, now: Now) -> None:
    """Refuse a route that adds cards if the server is full, or nearly so.

    Raises StorageFullError, or QuotaExceededError for the quota of one client.
    """
    quota: DailyQuota = request.app.state.daily_quota
    quota.check(client_key(request.scope))
    limit: StorageLimit = request.app.state.storage
    is_known = True
    if await run_in_threadpool(limit.is_reserved):
        async with read_only_session(request) as db:
            learner = await read_learner(request, db)
            is_known = bool(learner.home) and (
                now - describe_records(db, learner.home).since > _A_DAY
            )
    await run_in_threadpool(limit.expect_room, is_known=is_known)


def count_stored(request: Request, size: int) -> None:
    """Count bytes of cards and pictures toward the client's daily quota."""
    quota: DailyQuota = request.app.state.daily_quota
    quota.count(client_key(request.scope), size)


CurrentLearner = Annotated[LearnerProfile, Depends(read_learner)]
EnrolledLearner = Annotated[LearnerProfile, Depends(enrolled_learner)]
"""For routes that write; all others use `CurrentLearner`."""

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class RequestContext:
    """What a route works with. `found` caches lookups for this request."""

    request: Request
    library: Library
    learner: LearnerProfile
    db: Session
    now: dt.datetime
    found: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def day(self) -> dt.date:
        """The learner's study day."""
        return self.learner.study_day(self.now)

    def page(self, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
        """Render a whole page for the learner."""
        learner = self.learner
        return render_page(self.request, template, status=status, learner=learner, **context)


async def _reader_context(
    request: Request, learner: CurrentLearner, db: DbSession
) -> RequestContext:
    return await build_request_context(request, learner, db)


async def _writer_context(
    request: Request, learner: EnrolledLearner, db: DbSession
) -> RequestContext:
    return await build_request_context(request, learner, db)


async def build_request_context(
    request: Request, learner: LearnerProfile, db: Session
) -> RequestContext:
    """Build the request context; a route that can wait declares `Reader` or `Writer`."""
    # Called directly: each further dependency costs as much as an SQLite query.
    library, now = await current_library(request), await current_time(request)
    return RequestContext(request, library, learner, db, now)


Reader = Annotated[RequestContext, Depends(_reader_context)]
Writer = Annotated[RequestContext, Depends(_writer_context)]


async def run_reading(request: Request, work: Callable[[RequestContext], Result]) -> Result:
    """Run `work` in a thread with a read-only session.

    For the slow parts of a POST: selecting before the write transaction, and rendering
    the page after it or instead of it.
    """
    async with read_only_session(request) as db:
        desk = await build_request_context(request, await read_learner(request, db), db)
        return await run_in_threadpool(work, desk)


async def run_writing(request: Request, work: Callable[[RequestContext], Result]) -> Result:
    """Run `work` in a thread within a write transaction, which commits on return.

    All other writers wait in the meantime, so it should take a few milliseconds.
    """
    async with write_dependencies(request) as (db, learner):
        desk = await build_request_context(request, learner, db)
        return await run_in_threadpool(work, desk)
