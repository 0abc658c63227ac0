"""Another browser comes in with a code; any of them can be signed out."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.db.engine import DbSession
from app.errors import NotFound
from app.learners import store
from app.learners.codes import LENGTH, LIFE, new_code, plain
from app.learners.current import CurrentLearner, CurrentLearnerValue, EnrolledLearner
from app.learners.forms import Problems
from app.learners.settings_page import as_typed, settings_page
from app.learners.store import Arrival
from app.web.addresses import public
from app.web.clock import Now
from app.web.cookies import forget_line
from app.web.devices import device_of
from app.web.front.rate_counting import Rates, client_of
from app.web.render import page
from app.web.visitor import (
    FORGET_KEPT,
    Doorkeeper,
    Visitor,
    digest_of,
    new_key,
)

router = APIRouter()
_MOST = 2**31 - 1  # of a row's number, with either database
_LONGEST = 40  # characters of a code, whatever stands between them
Number = Annotated[int, Path(ge=1, le=_MOST)]


@router.post("/settings/codes")
def make_code(
    request: Request, learner: EnrolledLearner, db: DbSession, now: Now
) -> HTMLResponse:
    """Shown in the answer and nowhere else: the database keeps a digest."""
    code = new_code()
    digest = _doorkeeper(request).digest(plain(code))
    store.add_code(db, learner.id, digest, now + LIFE)
    address = f"{public(request)}/continue"
    return page(
        request, "learners/code.html", learner=learner, code=code, address=address
    )


@router.get("/continue")
def enter_code(
    request: Request,
    learner: CurrentLearner,
    code: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> HTMLResponse:
    return _entry(request, learner, [], 200, code)


@router.post("/continue")
def use_code(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    code: Annotated[str, Form()] = "",
    leave: Annotated[str, Form()] = "",
) -> Response:
    if len(plain(code)) != LENGTH:
        given = f"“{code[:_LONGEST]}” is not a code." if code else "Enter a code."
        message = (
            f"{given} A code has {LENGTH} letters and digits, none of 0, 1, I, L, O, U."
        )
        return _entry(request, learner, [_problem("code", message)], 422, code)
    rates: Rates = request.app.state.rates
    who = client_of(request.scope), _visitor(request).known_digest
    if seconds := rates.seconds_to_wait("codes", *who):
        message = f"Too many wrong codes. Wait {seconds} seconds, then try again."
        answer = _entry(request, learner, [_problem("code", message)], 429, code)
        answer.headers["retry-after"] = str(seconds)
        return answer
    digest = _doorkeeper(request).digest(plain(code))
    unasked = bool(learner.home) and leave != "yes"
    if unasked and store.code_works(db, digest, now):
        message = "Tick the box: what was done in this browser will be left behind."
        return _entry(request, learner, [_problem("leave", message)], 422, code)
    found = None if unasked else store.use_code(db, digest, now)
    if found is None:
        rates.admit("codes", *who)
        message = "This code is not valid. A code works once, for ten minutes."
        return _entry(request, learner, [_problem("code", message)], 422)
    store.leave(db, _visitor(request).digest, now)
    key = new_key()
    device = device_of(request.headers.get("user-agent", ""))
    store.begin_session(db, found, Arrival(digest_of(key), device, now))
    return _with_cookie(_doorkeeper(request).line(key))


@router.post("/settings/sessions/{session}/revocation")
def sign_out(
    request: Request, session: Number, learner: CurrentLearner, db: DbSession, now: Now
) -> Response:
    """Sign one browser of the learner out; it may be the one that asks."""
    digest = store.revoke(db, learner.home, session, now)
    if digest is None:
        raise NotFound("This browser is signed out already, or it is not yours.")
    store.void_codes(db, learner.home)
    if digest == _visitor(request).digest:
        return _with_cookie(forget_line())
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/sessions/revocation")
def sign_others_out(
    request: Request, learner: CurrentLearner, db: DbSession, now: Now
) -> Response:
    """Sign every browser of the learner out but the one that asks."""
    store.revoke_others(db, learner.home, _visitor(request).digest, now)
    store.void_codes(db, learner.home)
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/departure")
def leave_device(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    leave: Annotated[str, Form()] = "",
) -> Response:
    if leave != "yes":
        message = "Tick the box first: without a code there is no way back."
        problems = [_problem("leave", message)]
        return settings_page(request, learner, db, as_typed(learner), problems)
    store.leave(db, _visitor(request).digest, now)
    return _with_cookie(forget_line())


def _entry(
    request: Request,
    learner: CurrentLearnerValue,
    problems: Problems,
    status: int,
    code: str = "",
) -> HTMLResponse:
    return page(
        request,
        "learners/continue.html",
        status=status,
        learner=learner,
        problems=problems,
        code=code,
    )


def _problem(field: str, message: str) -> dict[str, str]:
    return {"field": field, "message": message}


def _doorkeeper(request: Request) -> Doorkeeper:
    keeper: Doorkeeper = request.app.state.doorkeeper
    return keeper


def _visitor(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor


def _with_cookie(line: bytes) -> Response:
    response = RedirectResponse("/", 303, headers=FORGET_KEPT)
    response.raw_headers.append((b"set-cookie", line))
    return response
