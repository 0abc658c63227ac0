"""Pages to pair a device with a code, and to sign devices out."""

import datetime as dt
import secrets
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.accounts import learner_store
from app.accounts.current_learner import CurrentLearner, EnrolledLearner, LearnerProfile
from app.accounts.learner_store import BrowserVisit, LearnerDataSummary
from app.accounts.settings_page import CodeForm, render_settings_page, settings_as_typed
from app.clock import Now
from app.database.engine import DbSession
from app.errors import NotFoundError
from app.web.dependencies import public_base_url
from app.web.render import render_page
from app.web.request_limits import RateLimiter, client_of_scope
from app.web.visitor import (
    CLEAR_SITE_DATA,
    SessionCookies,
    Visitor,
    create_session_key,
    describe_user_agent,
    hash_session_key,
)

CODE_LIFETIME = dt.timedelta(minutes=10)
_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # no characters that are easily confused
CODE_LENGTH = 8


def new_device_code() -> str:
    """Return a new code for display, e.g. “7KQ2-M9TD”: 39 bits, enough for ten minutes."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def normalize_device_code(typed: str) -> str:
    """Return the code for comparison: uppercase, without other characters."""
    return "".join(c for c in typed.upper() if c in _LETTERS)


router = APIRouter()
_MAX_ROW_ID = 2**31 - 1  # largest row id, on either database
_MAX_CODE_LENGTH = 40  # characters of a code, separators included
Number = Annotated[int, Path(ge=1, le=_MAX_ROW_ID)]
_NOT_VALID = "This code is not valid. A code works once, for ten minutes."


class _CodeError(Exception):
    """A rejected code. The message says why."""

    def __init__(
        self, message: str, status: int = 422, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


@router.post("/settings/codes")
def create_device_code(
    request: Request, learner: EnrolledLearner, db: DbSession, now: Now
) -> HTMLResponse:
    """Create a device code. Only this response shows it: the database stores a hash."""
    code = new_device_code()
    learner_store.replace_device_code(
        db, learner.id, _device_code_digest(request, code), now + CODE_LIFETIME
    )
    address = f"{public_base_url(request)}/continue"
    return render_page(request, "accounts/code.html", learner=learner, code=code, address=address)


@router.get("/continue")
def show_code_entry(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    code: Annotated[str, Query(max_length=_MAX_CODE_LENGTH)] = "",
) -> HTMLResponse:
    """Ask for a device code, or show whose data the code in the URL gives access to."""
    if not code or not _is_opened_by_person(request):
        return _render_code_entry(request, learner, code)
    try:
        owner_summary = _verify_code_and_summarize_owner(request, learner, db, now, code)
    except _CodeError as error:
        return _render_code_entry(request, learner, code, error)
    return _render_code_confirmation(request, learner, db, CodeForm(code=code), owner_summary)


@router.post("/continue")
def sign_in_with_code(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    form: Annotated[CodeForm, Form()],
) -> Response:
    """Show whose data it is. After confirmation, sign this browser in as that learner."""
    code = form.code
    try:
        owner_summary = _verify_code_and_summarize_owner(request, learner, db, now, code)
        if not form.confirm or (learner.home and not form.leave):
            return _render_code_confirmation(request, learner, db, form, owner_summary)
    except _CodeError as error:
        return _render_code_entry(request, learner, code, error)
    owner = learner_store.use_device_code(db, _device_code_digest(request, code), now)
    if owner is None:  # another browser used it first
        return _render_code_entry(request, learner, code, _CodeError(_NOT_VALID))
    learner_store.revoke_own_session(db, _current_visitor(request).digest, now)
    session_key = create_session_key()
    device = describe_user_agent(request.headers.get("user-agent", ""))
    learner_store.insert_browser_session(
        db, owner, BrowserVisit(hash_session_key(session_key), device, now)
    )
    return _redirect_home_with_cookie(
        _session_cookies(request).format_session_cookie(_current_visitor(request), session_key)
    )


@router.post("/settings/sessions/{session}/revocation")
def sign_out_device(
    request: Request, session: Number, learner: CurrentLearner, db: DbSession, now: Now
) -> Response:
    digest = learner_store.revoke_session_returning_digest(db, learner.home, session, now)
    if digest is None:
        raise NotFoundError("This browser is signed out already, or it is not yours.")
    learner_store.void_device_codes(db, learner.home)
    if digest == _current_visitor(request).digest:
        return _redirect_home_with_cookie(
            _session_cookies(request).format_cookie_deletion(_current_visitor(request))
        )
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/sessions/revocation")
def sign_out_other_devices(
    request: Request, learner: CurrentLearner, db: DbSession, now: Now
) -> Response:
    learner_store.revoke_other_sessions(db, learner.home, _current_visitor(request).digest, now)
    learner_store.void_device_codes(db, learner.home)
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/departure")
def sign_out_without_code(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
    leave: Annotated[str, Form()] = "",
) -> Response:
    if leave != "yes":
        message = "Tick the box first: without a code there is no way back."
        problems = [_field_problem("leave", message)]
        return render_settings_page(request, learner, db, settings_as_typed(learner), problems)
    learner_store.revoke_own_session(db, _current_visitor(request).digest, now)
    return _redirect_home_with_cookie(
        _session_cookies(request).format_cookie_deletion(_current_visitor(request))
    )


def _is_opened_by_person(request: Request) -> bool:
    """Return whether a person opened the page.

    Requests that other sites make in the background must not count as wrong codes.
    """
    site = request.headers.get("sec-fetch-site", "none")
    is_document = request.headers.get("sec-fetch-dest") == "document"
    return is_document or site in {"none", "same-origin"}


def _verify_code_and_summarize_owner(
    request: Request, learner: LearnerProfile, db: Session, now: dt.datetime, code: str
) -> LearnerDataSummary:
    """Return whose data a code gives access to. Raises _CodeError, and counts wrong codes."""
    if len(normalize_device_code(code)) != CODE_LENGTH:
        problem = f"“{code[:_MAX_CODE_LENGTH]}” is not a code." if code else "Enter a code."
        raise _CodeError(
            f"{problem} A code has {CODE_LENGTH} letters and digits, none of 0, 1, I, L, O, U."
        )
    rates: RateLimiter = request.app.state.rates
    rate_limit_key = client_of_scope(request.scope), _current_visitor(request).sent_key_digest
    if seconds := rates.seconds_until_allowed("codes", *rate_limit_key):
        message = f"Too many wrong codes. Wait {seconds} seconds, then try again."
        raise _CodeError(message, 429, {"retry-after": str(seconds)})
    owner = learner_store.find_code_owner(db, _device_code_digest(request, code), now)
    if owner is None:
        rates.check_and_count("codes", *rate_limit_key)
        raise _CodeError(_NOT_VALID)
    owner_summary = learner_store.summarize_learner_data(db, owner)
    if owner_summary.person == learner.person:
        raise _CodeError("This code leads to the records that are here already.", 409)
    return owner_summary


def _render_code_entry(
    request: Request, learner: LearnerProfile, code: str, error: _CodeError | None = None
) -> HTMLResponse:
    response = render_page(
        request,
        "accounts/continue.html",
        status=error.status if error else 200,
        learner=learner,
        problems=[_field_problem("code", str(error))] if error else [],
        code=code,
    )
    response.headers.update(error.headers if error else {})
    return response


def _render_code_confirmation(
    request: Request,
    learner: LearnerProfile,
    db: Session,
    form: CodeForm,
    owner_summary: LearnerDataSummary,
) -> HTMLResponse:
    """Show whose data it is; 422 if it was confirmed without ticking the box."""
    message = "Tick the box first: this browser has records of its own."
    return render_page(
        request,
        "accounts/confirmation.html",
        status=422 if form.confirm else 200,
        learner=learner,
        code=form.code,
        records=owner_summary,
        own=learner_store.summarize_learner_data(db, learner.home) if learner.home else None,
        problems=[_field_problem("leave", message)] if form.confirm else [],
    )


def _field_problem(field: str, message: str) -> dict[str, str]:
    return {"field": field, "message": message}


def _device_code_digest(request: Request, code: str) -> str:
    return _session_cookies(request).hash_short_code(normalize_device_code(code))


def _session_cookies(request: Request) -> SessionCookies:
    cookies: SessionCookies = request.app.state.session_cookies
    return cookies


def _current_visitor(request: Request) -> Visitor:
    visitor: Visitor = request.state.visitor
    return visitor


def _redirect_home_with_cookie(line: bytes) -> Response:
    response = RedirectResponse("/", 303, headers=CLEAR_SITE_DATA)
    response.raw_headers.append((b"set-cookie", line))
    return response
