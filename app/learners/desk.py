"""What a route works with: request, course, learner, database and the time."""

import dataclasses
import datetime as dt
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from sqlmodel import Session

from app.content.live.library import Library
from app.db.engine import DbSession
from app.learners.current import CurrentLearner, CurrentLearnerValue, EnrolledLearner
from app.web.clock import read_clock
from app.web.course import read_library
from app.web.render import page


@dataclasses.dataclass(frozen=True, slots=True)
class Desk:
    """What a route works with; `found` is what was looked up once for this request."""

    request: Request
    library: Library
    learner: CurrentLearnerValue
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
        return page(self.request, template, status=status, learner=learner, **context)


async def _reading(request: Request, learner: CurrentLearner, db: DbSession) -> Desk:
    return await desk_of(request, learner, db)


async def _writing(request: Request, learner: EnrolledLearner, db: DbSession) -> Desk:
    return await desk_of(request, learner, db)


async def desk_of(request: Request, learner: CurrentLearnerValue, db: Session) -> Desk:
    """The desk of a request; a route that can wait declares `Reader` or `Writer`."""
    # Asked directly: each further dependency costs as much as a question to SQLite.
    library, now = await read_library(request), await read_clock(request)
    return Desk(request, library, learner, db, now)


Reader = Annotated[Desk, Depends(_reading)]
Writer = Annotated[Desk, Depends(_writing)]
