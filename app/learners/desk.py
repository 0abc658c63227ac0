"""What a route works with: request, course, learner, database and the time."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse
from sqlmodel import Session

from app.content.live.library import Library
from app.db.engine import DbSession, read_only_session
from app.learners.current import (
    CurrentLearner,
    EnrolledLearner,
    LearnerProfile,
    read_learner,
    write_dependencies,
)
from app.web.clock import current_time
from app.web.course import current_library
from app.web.render import render_page

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True, slots=True)
class RequestContext:
    """What a route works with; `found` is what was looked up once for this request."""

    request: Request
    library: Library
    learner: LearnerProfile
    db: Session
    now: dt.datetime
    found: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def day(self) -> dt.date:
        """The study day of the learner."""
        return self.learner.study_day(self.now)

    def page(self, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
        """A whole page for the learner."""
        learner = self.learner
        return render_page(self.request, template, status=status, learner=learner, **context)


async def _reading(request: Request, learner: CurrentLearner, db: DbSession) -> RequestContext:
    return await desk_of(request, learner, db)


async def _writing(request: Request, learner: EnrolledLearner, db: DbSession) -> RequestContext:
    return await desk_of(request, learner, db)


async def desk_of(request: Request, learner: LearnerProfile, db: Session) -> RequestContext:
    """The desk of a request; a route that can wait declares `Reader` or `Writer`."""
    # Asked directly: each further dependency costs as much as a question to SQLite.
    library, now = await current_library(request), await current_time(request)
    return RequestContext(request, library, learner, db, now)


Reader = Annotated[RequestContext, Depends(_reading)]
Writer = Annotated[RequestContext, Depends(_writing)]


async def run_reading(request: Request, work: Callable[[RequestContext], Result]) -> Result:
    """Run `work` in a thread with a session that keeps nothing.

    For the costly parts of a POST: what is chosen before the write transaction, and
    the page that is rendered after it or instead of it.
    """
    async with read_only_session(request) as db:
        desk = await desk_of(request, await read_learner(request, db), db)
        return await run_in_threadpool(work, desk)


async def run_writing(request: Request, work: Callable[[RequestContext], Result]) -> Result:
    """Run `work` in a thread within a write transaction; committed on return.

    All other writers wait meanwhile, so it should take a few milliseconds.
    """
    async with write_dependencies(request) as (db, learner):
        desk = await desk_of(request, learner, db)
        return await run_in_threadpool(work, desk)
