"""GET the plan until the exam; POST what it is made from."""

import datetime as dt
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.db.engine import DbSession
from app.learners.current import EnrolledLearner
from app.learners.desk import RequestContext
from app.learners.settings_page import as_typed, settings_page
from app.learners.store import change_settings
from app.progress import store
from app.progress.calendar_file import card_words
from app.progress.figures import StudyHistory
from app.progress.figures.plan import plan_figure
from app.progress.planning import CardForecast, whole_plan
from app.progress.snapshot import CurrentSnapshot, LearnerSnapshot, main_exam
from app.scheduling import card_seconds
from app.scheduling.outlook import HORIZON, WHOLE
from app.web.addresses import public_base_url
from app.web.clock import Now, from_milliseconds
from app.web.page_cache import allow_caching
from app.web.render import render_page

router = APIRouter()
_DAY = dt.timedelta(days=1)


@router.get("/plan")
def plan(request: Request, snapshot: CurrentSnapshot, db: DbSession) -> HTMLResponse:
    allow_caching(request, snapshot.until, strangers=True)
    learner, exam, day = snapshot.learner, snapshot.learner.exam_day, snapshot.day
    seconds = card_seconds(learner.minutes_a_day)
    held = store.held_cards(db, learner.id, snapshot.library, day)
    desk = RequestContext(request, snapshot.library, learner, db, snapshot.now)
    days = store.study_days(db, learner.id, day - _DAY)
    made = whole_plan(desk, snapshot, held, days)
    key = store.feed_key(db, learner.id) if learner.id else ""
    return render_page(
        request,
        "progress/plan.html",
        learner=learner,
        exam=main_exam(snapshot.library),
        day=day,
        days_left=(exam - day).days if exam else None,
        horizon=HORIZON,
        whole=WHOLE,
        beyond=any(topic.level for topic in snapshot.library.topics.values()),
        held=held,
        cards=held.cards,
        study=made.study,
        card_words=card_words,
        missed=None if learner.is_off(day - _DAY) else _missed_yesterday(snapshot, days),
        feed=f"{public_base_url(request)}/calendar/{key}.ics" if key else "",
        **_shown(made.cards, seconds),
    )


def _missed_yesterday(snapshot: LearnerSnapshot, days: StudyHistory) -> dt.date | None:
    """Yesterday, where nothing was done on it by one who had begun before.

    What was read counts as much as what was answered or reviewed.
    """
    yesterday = snapshot.day - _DAY
    begun = days.first is not None and days.first < yesterday
    if not begun or yesterday.isoformat() in days.recent:
        return None
    moments = (at for page in snapshot.pages for at in page.sections.values())
    read = any(snapshot.learner.study_day(from_milliseconds(at)) == yesterday for at in moments)
    return None if read else yesterday


@router.post("/plan")
def set_exam_day(
    request: Request,
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    exam_day: Annotated[str, Form()] = "",
    minutes_a_day: Annotated[str, Form()] = "",
) -> Response:
    """Set what a plan is made from; all other settings stay as they are."""
    changed = {"exam_day": exam_day, "minutes_a_day": minutes_a_day}
    typed = as_typed(learner).model_copy(update=changed)
    values, problems = typed.read(learner.study_day(now), learner.exam_day)
    if problems:
        return settings_page(request, learner, db, typed, problems)
    change_settings(db, learner.id, values)
    return RedirectResponse("/plan" if exam_day else "/", 303)


def _shown(coming: CardForecast, seconds: float) -> dict[str, Any]:
    ahead = coming.ahead
    if ahead is None:
        return {"ahead": None, "figure": None, "over": ""}
    figure = plan_figure(ahead.outlook, seconds, coming.pace)
    return {"ahead": ahead, "figure": figure, "over": coming.over}
