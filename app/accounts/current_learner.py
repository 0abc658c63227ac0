"""The learner of the request, and the request context."""

import contextlib
import dataclasses
import datetime as dt
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import event
from sqlmodel import Session

from app.accounts.learner import LearnerProfile as LearnerProfile
from app.accounts.learner_store import (
    BrowserVisit,
    derive_learner_key,
    find_learner_by_session,
    increment_change_counter,
    insert_learner_with_session,
    summarize_person_data_in_all_courses,
    update_session_last_seen,
)
from app.accounts.learner_store import load_learner_by_id as load_learner_by_id
from app.clock import Now, current_time, from_milliseconds
from app.content.course import Course
from app.database.engine import (
    DbSession,
    OpenWriteSession,
    open_read_only_session,
    run_in_thread_unless_sqlite,
)
from app.database.quotas import DailyByteQuota, StorageLimit
from app.web.dependencies import current_course
from app.web.render import render_page
from app.web.request_limits import RateLimiter, client_address_or_network_of_scope
from app.web.visitor import CLEAR_SITE_DATA, SessionCookies, Visitor, describe_user_agent

_A_DAY = dt.timedelta(days=1)


async def get_current_learner(request: Request, db: DbSession) -> LearnerProfile:
    """Return the learner of the session cookie; a revoked session makes a new visitor."""
    visitor: Visitor = request.state.visitor
    course_name: str = request.state.course_name
    learner = await run_in_thread_unless_sqlite(
        db, lambda: find_learner_by_session(db, visitor.session_key_digest, course_name)
    )
    if learner is not None and not learner.is_session_revoked:
        return learner
    if learner is not None:
        cookies: SessionCookies = request.app.state.session_cookies
        visitor = cookies.copy_with_new_session_key(visitor)
        request.state.visitor = visitor
    return _create_unsaved_profile(visitor, course_name, visitor.time_zone or "UTC")


def _create_unsaved_profile(visitor: Visitor, course_name: str, zone: str) -> LearnerProfile:
    person = derive_person_key(visitor.session_key)
    return LearnerProfile(
        derive_learner_key(person, course_name), person=person, course_name=course_name, zone=zone
    )


async def load_learner_in_separate_db_session(request: Request) -> LearnerProfile:
    """Return the current learner, without a reader slot while the route waits afterwards."""
    async with open_read_only_session(request) as db:
        return await get_current_learner(request, db)


def derive_person_key(session_key: str) -> str:
    """Return the person key of a new session. The session key cannot be derived from it."""
    return hashlib.sha256(f"learner:{session_key}".encode()).hexdigest()[:32]


def build_browser_visit(
    request: Request, session_key_digest: str, now: dt.datetime
) -> BrowserVisit:
    device = describe_user_agent(request.headers.get("user-agent", ""))
    return BrowserVisit(session_key_digest, device, now)


def redirect_with_cookie_clearing_site_data(url: str, cookie_line: bytes) -> Response:
    """Redirect a browser that begins as another learner, without what it stored of the last."""
    response = RedirectResponse(url, 303, headers=CLEAR_SITE_DATA)
    response.raw_headers.append((b"set-cookie", cookie_line))
    return response


async def get_or_create_learner_for_write(
    request: Request,
    learner: Annotated[LearnerProfile, Depends(get_current_learner)],
    db: DbSession,
    now: Now,
) -> LearnerProfile:
    """Return the learner with a row to write for; it also makes their cached pages invalid."""
    if not learner.row_id_in_any_course:  # rows are permanent, so creating them is rate limited
        visitor: Visitor = request.state.visitor
        rates: RateLimiter = request.app.state.rates
        rate_limit_key = (
            "learners",
            client_address_or_network_of_scope(request.scope),
            visitor.sent_key_digest,
        )
        rates.raise_if_over_limit(*rate_limit_key)
        # A request that fails later, e.g. on a form error, creates no row and is not
        # counted.
        event.listen(
            db, "after_commit", lambda _db: rates.count_request(*rate_limit_key), once=True
        )
    return await run_in_thread_unless_sqlite(
        db, lambda: _insert_if_new_and_mark_changed(db, learner, request, now)
    )


def _insert_if_new_and_mark_changed(
    db: Session, learner: LearnerProfile, request: Request, now: dt.datetime
) -> LearnerProfile:
    visitor: Visitor = request.state.visitor
    visit = build_browser_visit(request, visitor.session_key_digest, now)
    if learner.id and increment_change_counter(db, learner.id):
        if learner.study_day(from_milliseconds(learner.last_seen)) != learner.study_day(now):
            update_session_last_seen(db, visit)
        return learner
    # The first write, or another request has just erased the learner.
    new_learner = learner
    if learner.id:
        new_learner = _create_unsaved_profile(visitor, learner.course_name, learner.zone)
    learner_id = insert_learner_with_session(db, new_learner, visit)
    increment_change_counter(db, learner_id)
    return dataclasses.replace(
        new_learner,
        id=learner_id,
        row_id_in_any_course=new_learner.row_id_in_any_course or learner_id,
    )


async def refuse_cards_when_storage_or_quota_full(request: Request, now: Now) -> None:
    """Raise StorageFullError, or QuotaExceededError for a client, before a route adds cards."""
    quota: DailyByteQuota = request.app.state.daily_quota
    quota.raise_if_used_up(client_address_or_network_of_scope(request.scope))
    limit: StorageLimit = request.app.state.storage
    is_known = True
    if await run_in_threadpool(limit.is_only_reserve_left):
        async with open_read_only_session(request) as db:
            learner = await get_current_learner(request, db)
            is_known = bool(learner.row_id_in_any_course) and (
                now - summarize_person_data_in_all_courses(db, learner.row_id_in_any_course).created
                > _A_DAY
            )
    await run_in_threadpool(limit.raise_if_full_for_cards, is_known_learner=is_known)


def count_bytes_toward_quota(request: Request, size_bytes: int) -> None:
    quota: DailyByteQuota = request.app.state.daily_quota
    quota.add_stored_bytes(client_address_or_network_of_scope(request.scope), size_bytes)


CurrentLearner = Annotated[LearnerProfile, Depends(get_current_learner)]
EnrolledLearner = Annotated[LearnerProfile, Depends(get_or_create_learner_for_write)]
"""For routes that write; all others use `CurrentLearner`."""

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class RequestContext:
    request: Request
    course: Course
    learner: LearnerProfile
    db: Session
    now: dt.datetime
    lookup_cache: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def study_day(self) -> dt.date:
        return self.learner.study_day(self.now)

    @property
    def visitor(self) -> Visitor:
        visitor: Visitor = self.request.state.visitor
        return visitor

    @property
    def cookies(self) -> SessionCookies:
        cookies: SessionCookies = self.request.app.state.session_cookies
        return cookies

    def render_page(self, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
        learner = self.learner
        return render_page(self.request, template, status=status, learner=learner, **context)


async def build_request_context(
    request: Request, learner: CurrentLearner, db: DbSession
) -> RequestContext:
    """Build the request context; a route that can wait declares `ReadContext` or `WriteContext`."""
    # Called directly: each further dependency costs as much as an SQLite query.
    course, now = await current_course(request), await current_time(request)
    return RequestContext(request, course, learner, db, now)


async def _build_write_context(
    request: Request, learner: EnrolledLearner, db: DbSession
) -> RequestContext:
    return await build_request_context(request, learner, db)


ReadContext = Annotated[RequestContext, Depends(build_request_context)]
"""In a POST route it can write, but a new visitor gets no row."""
WriteContext = Annotated[RequestContext, Depends(_build_write_context)]


@contextlib.asynccontextmanager
async def open_write_context(request: Request) -> AsyncIterator[RequestContext]:
    """Yield what `WriteContext` gives to a route.

    For frequent routes, where resolving dependencies takes noticeable time. The writes
    are on disk once the block exits without an exception.
    """
    write_session: OpenWriteSession = request.app.state.open_write_session
    async with write_session() as db:
        learner = await get_current_learner(request, db)
        learner = await get_or_create_learner_for_write(
            request, learner, db, await current_time(request)
        )
        yield await build_request_context(request, learner, db)


async def run_in_read_session(request: Request, work: Callable[[RequestContext], Result]) -> Result:
    """Run `work` in a thread with a read-only session.

    For the slow parts of a POST: selecting before the write transaction, and rendering
    the page after it or instead of it.
    """
    async with open_read_only_session(request) as db:
        ctx = await build_request_context(request, await get_current_learner(request, db), db)
        return await run_in_threadpool(work, ctx)


async def run_in_write_transaction(
    request: Request, work: Callable[[RequestContext], Result]
) -> Result:
    """Run `work` in a thread and commit; all writers wait, so it may take a few milliseconds."""
    async with open_write_context(request) as ctx:
        return await run_in_threadpool(work, ctx)
