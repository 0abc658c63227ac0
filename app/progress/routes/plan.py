"""GET the plan until the exam; POST what it is made from."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.db.engine import DbSession
from app.flashcards.desk import Desk, plan_of, stack_of
from app.learners.current import CurrentLearner, EnrolledLearner
from app.learners.settings_page import as_typed, settings_page
from app.learners.store import change_settings
from app.progress import store
from app.progress.ahead import Ahead, ahead_of, asked_of, pace_words
from app.progress.figures.plan import plan_figure
from app.scheduling import card_seconds
from app.scheduling.outlook import HORIZON, WHOLE
from app.web.clock import Now
from app.web.course import CurrentLibrary
from app.web.page_cache import keep
from app.web.render import page

router = APIRouter()


@router.get("/plan")
def plan(
    request: Request,
    learner: CurrentLearner,
    library: CurrentLibrary,
    db: DbSession,
    now: Now,
) -> HTMLResponse:
    keep(request, learner.next_study_day(now), strangers=True)
    day, exam = learner.study_day(now), learner.exam_day
    ahead, pace = None, ""
    seconds = card_seconds(learner.minutes_a_day)
    held = store.held_cards(db, learner.id, library, day)
    if exam is not None:
        asked = asked_of(held, exam, seconds, day, learner.retention)
        desk = Desk(request, library, learner, db, now)
        ahead = ahead_of(held, asked, stack_of(desk).left)
        today = plan_of(desk)
        pace = pace_words(today.outline) if today else ""
    return page(
        request,
        "progress/plan.html",
        learner=learner,
        days_left=(exam - day).days if exam else None,
        horizon=HORIZON,
        whole=WHOLE,
        held=held,
        cards=len(held.begun) + held.unseen,
        **_shown(ahead, seconds, pace),
    )


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


def _shown(ahead: Ahead | None, seconds: float, pace: str) -> dict[str, Any]:
    if ahead is None:
        return {"ahead": None, "figure": None}
    return {"ahead": ahead, "figure": plan_figure(ahead.outlook, seconds, pace)}
