"""Settings, another device, leaving this one."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.db.engine import DbSession
from app.learners import store
from app.learners.codes import LIFE, Patience, new_code, plain
from app.learners.current import CurrentLearner, CurrentLearnerValue, EnrolledLearner
from app.learners.forms import Problems, SettingsForm, zones
from app.web.clock import Now
from app.web.render import page
from app.web.visitor import FORGET_KEPT, Doorkeeper, forget_line

router = APIRouter(include_in_schema=False)
_YEAR = 365 * 24 * 3600


@router.get("/settings")
def settings(request: Request, learner: CurrentLearner) -> HTMLResponse:
    return _settings_page(request, learner, _as_typed(learner), [], 200)


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
        return _settings_page(request, learner, typed, problems, 422)
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


@router.post("/settings/codes")
def make_code(
    request: Request, learner: EnrolledLearner, db: DbSession, now: Now
) -> HTMLResponse:
    """Shown in the answer and nowhere else: the database keeps a digest."""
    code = new_code()
    digest = _doorkeeper(request).digest(plain(code))
    store.add_code(db, learner.id, digest, now + LIFE)
    return page(request, "learners/code.html", learner=learner, code=code)


@router.get("/continue")
def enter_code(request: Request, learner: CurrentLearner) -> HTMLResponse:
    return _entry(request, learner, [], 200)


@router.post("/continue")
def use_code(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    code: Annotated[str, Form()] = "",
    leave: Annotated[str, Form()] = "",
) -> Response:
    if learner.id and leave != "yes":
        message = "Tick the box: what was done in this browser will be left behind."
        return _entry(request, learner, [_problem("leave", message)], 422)
    patience: Patience = request.app.state.patience
    address = request.client.host if request.client else ""
    if patience.is_out(address, now.timestamp()):
        message = "Too many wrong codes. Wait a minute, then try again."
        return _entry(request, learner, [_problem("code", message)], 429)
    key = store.use_code(db, _doorkeeper(request).digest(plain(code)), now)
    if key is None:
        patience.note(address, now.timestamp())
        message = "This code is not valid. A code works once, for ten minutes."
        return _entry(request, learner, [_problem("code", message)], 422)
    return _with_cookie(_doorkeeper(request).line(key))


@router.post("/settings/departure")
def leave_device(
    request: Request, learner: CurrentLearner, leave: Annotated[str, Form()] = ""
) -> Response:
    if leave != "yes":
        message = "Tick the box first: without a code there is no way back."
        typed = _as_typed(learner)
        problems = [_problem("leave", message)]
        return _settings_page(request, learner, typed, problems, 422)
    return _with_cookie(forget_line())


def _settings_page(
    request: Request,
    learner: CurrentLearnerValue,
    typed: SettingsForm,
    problems: Problems,
    status: int,
) -> HTMLResponse:
    return page(
        request,
        "learners/settings.html",
        status=status,
        learner=learner,
        typed=typed,
        problems=problems,
        zones=[(zone, zone.replace("_", " ")) for zone in zones()],
        kept=request.query_params.get("kept") == "yes" and not problems,
        keys_off=request.cookies.get("keys") == "off",
    )


def _as_typed(learner: CurrentLearnerValue) -> SettingsForm:
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


def _entry(
    request: Request, learner: CurrentLearnerValue, problems: Problems, status: int
) -> HTMLResponse:
    return page(
        request,
        "learners/continue.html",
        status=status,
        learner=learner,
        problems=problems,
    )


def _problem(field: str, message: str) -> dict[str, str]:
    return {"field": field, "message": message}


def _doorkeeper(request: Request) -> Doorkeeper:
    keeper: Doorkeeper = request.app.state.doorkeeper
    return keeper


def _with_cookie(line: bytes) -> Response:
    response = RedirectResponse("/", 303, headers=FORGET_KEPT)
    response.raw_headers.append((b"set-cookie", line))
    return response
