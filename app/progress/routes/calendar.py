"""GET the plan as a calendar; POST a new address for it, or the end of it."""

import hashlib
import secrets
import threading
from collections.abc import Callable
from typing import Annotated, Literal

from cachetools import LRUCache, cached
from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from app.db.engine import DbSession
from app.errors import NotFoundError
from app.learners.current import EnrolledLearner, learner_of
from app.learners.desk import RequestContext
from app.progress import store
from app.progress.calendar_file import calendar_of
from app.progress.planning import whole_plan
from app.progress.snapshot import snapshot_of
from app.web.clock import Now
from app.web.course import CurrentLibrary

router = APIRouter()
_BYTES = 8 * 1024 * 1024  # of all calendars in memory


@router.get("/calendar/{key}.ics")
def calendar(
    request: Request, key: str, library: CurrentLibrary, db: DbSession, now: Now
) -> Response:
    """The days until the exam, for whoever knows the address."""
    feed = store.find_feed(db, key)
    learner = learner_of(db, feed.learner_id) if feed else None
    if learner and learner.course != request.state.course and learner.course:
        return RedirectResponse(f"../../{learner.course}/calendar/{key}.ics", 307)
    if feed is None or learner is None or learner.course != request.state.course:
        raise NotFoundError("There is no calendar at this address. It may have been renewed.")
    desk = RequestContext(request, library, learner, db, now)
    # Programs ask again and again, and the plan changes only when one of these does.
    known = f"{key} {feed.changes} {desk.day} {library.version}"
    tag = f'W/"{hashlib.sha256(known.encode()).hexdigest()[:32]}"'
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": tag})
    text = _kept(tag, lambda: _text(desk))
    return Response(text, media_type="text/calendar; charset=utf-8", headers={"etag": tag})


@cached(LRUCache(_BYTES, getsizeof=len), key=lambda tag, _make: tag, lock=threading.Lock())
def _kept(_tag: str, make: Callable[[], str]) -> str:
    """The calendar of this tag, made where it is not in memory."""
    return make()


def _text(desk: RequestContext) -> str:
    learner, library, db = desk.learner, desk.library, desk.db
    held = store.held_cards(db, learner.id, library, desk.day)
    snapshot = snapshot_of(library, learner, db, desk.now)
    days = store.study_days(db, learner.id, desk.day)
    plan = whole_plan(desk, snapshot, held, days).study
    name = library.syllabus.exam or library.syllabus.title
    return calendar_of(plan, name, learner.key, desk.now)


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
