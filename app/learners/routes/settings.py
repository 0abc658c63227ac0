"""What a learner sets, with the list of their browsers."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.db.engine import DbSession
from app.learners import store
from app.learners.current import CurrentLearner, CurrentLearnerValue, EnrolledLearner
from app.learners.forms import Problems, SettingsForm, zones
from app.scheduling.study_day import zone_of
from app.web.clock import Now
from app.web.render import page

router = APIRouter()
_YEAR = 365 * 24 * 3600


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
    values, problems = typed.read(learner.study_day(now))
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
        age = _YEAR if value else 0
        response.set_cookie(name, value, max_age=age, samesite="lax")
    return response


def settings_page(
    request: Request,
    learner: CurrentLearnerValue,
    db: Session,
    typed: SettingsForm,
    problems: Problems,
) -> HTMLResponse:
    """The page with what was typed, 422 where something is wrong with it."""
    asked = request.query_params
    return page(
        request,
        "learners/settings.html",
        status=422 if problems else 200,
        learner=learner,
        typed=typed,
        problems=problems,
        zones=[(zone, zone.replace("_", " ")) for zone in zones()],
        kept=asked.get("kept") == "yes" and not problems,
        ended=asked.get("ended") == "yes" and not problems,
        zone=zone_of(learner.zone),
        browsers=store.browsers(db, learner.id, request.state.visitor.digest),
        keys_off=request.cookies.get("keys") == "off",
    )


def as_typed(learner: CurrentLearnerValue) -> SettingsForm:
    """The settings as they stand."""
    return SettingsForm(
        name=learner.name,
        exam_day=learner.exam_day.isoformat() if learner.exam_day else "",
        minutes_a_day=str(learner.minutes_a_day),
        zone=learner.zone,
        retention=f"{learner.retention * 100:.0f}",
        target="" if learner.target is None else str(learner.target),
        calendar="yes" if learner.calendar else "no",
        missed="yes" if learner.missed else "no",
    )
