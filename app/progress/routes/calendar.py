"""GET the plan as a calendar; POST a new address for it, or the end of it."""

import secrets
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from app.db.engine import DbSession
from app.errors import NotFound
from app.learners.current import EnrolledLearner, learner_of
from app.learners.desk import Desk
from app.progress import store
from app.progress.calendar_file import calendar_of
from app.progress.planning import whole_plan
from app.progress.snapshot import snapshot_of
from app.web.clock import Now
from app.web.course import CurrentLibrary

router = APIRouter()


@router.get("/calendar/{key}.ics")
def calendar(
    request: Request, key: str, library: CurrentLibrary, db: DbSession, now: Now
) -> Response:
    """The days until the exam, for whoever knows the address."""
    owner = store.feed_owner(db, key)
    learner = learner_of(db, owner) if owner else None
    if learner and learner.course != request.state.course and learner.course:
        return RedirectResponse(f"../../{learner.course}/calendar/{key}.ics", 307)
    if learner is None or learner.course != request.state.course:
        raise NotFound(
            "There is no calendar at this address. It may have been renewed."
        )
    desk = Desk(request, library, learner, db, now)
    held = store.held_cards(db, learner.id, library, desk.day)
    snapshot = snapshot_of(library, learner, db, now)
    days = store.study_days(db, learner.id, desk.day)
    plan = whole_plan(desk, snapshot, held, days).study
    name = library.syllabus.exam or library.syllabus.title
    text = calendar_of(plan, name, learner.key, now)
    return Response(text, media_type="text/calendar; charset=utf-8")


@router.post("/plan/calendar")
def renew(
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    wish: Annotated[Literal["new", "end"], Form()],
) -> Response:
    """A new address, with which the old one ends; or none."""
    key = secrets.token_urlsafe(32) if wish == "new" else ""
    store.renew_feed(db, learner.id, key, now)
    return RedirectResponse("/plan#calendar", 303)
