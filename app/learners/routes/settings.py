"""GET and POST what a learner sets."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.db.engine import DbSession
from app.learners import store
from app.learners.current import CurrentLearner, EnrolledLearner
from app.learners.forms import SettingsForm
from app.learners.settings_page import as_typed, settings_page
from app.web.clock import Now
from app.web.cookies import YEAR

router = APIRouter()


@router.get("/settings")
def settings(request: Request, learner: CurrentLearner, db: DbSession) -> HTMLResponse:
    return settings_page(request, learner, db, as_typed(learner), [])


@router.post("/settings")
def change_settings(
    request: Request,
    typed: Annotated[SettingsForm, Form()],
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
) -> Response:
    values, problems = typed.read(learner.study_day(now), learner.exam_day)
    if problems:
        return settings_page(request, learner, db, typed, problems)
    store.change_settings(db, learner.id, values)
    return RedirectResponse("/settings?kept=yes", 303)


@router.post("/settings/appearance")
def change_appearance(
    theme: Annotated[str, Form()] = "", keys: Annotated[str, Form()] = ""
) -> Response:
    """Kept in this browser and not with the learner: a screen is not a person."""
    response = RedirectResponse("/settings?kept=yes", 303)
    for name, value in (
        ("theme", theme if theme in {"light", "dark"} else ""),
        ("keys", "off" if keys == "off" else ""),
    ):
        age = YEAR if value else 0
        response.set_cookie(name, value, max_age=age, samesite="lax")
    return response
