"""Pages to pair a device with a code, and to sign devices out."""

import datetime as dt
import secrets
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts import learner_store
from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    WriteContext,
    build_browser_visit,
    redirect_with_cookie_clearing_site_data,
)
from app.accounts.learner_store import PersonDataSummary
from app.accounts.settings_page import DeviceCodeForm, build_settings_form, render_settings_page
from app.errors import NotFoundError
from app.web.dependencies import RowNumber, public_base_url
from app.web.request_limits import RateLimiter, client_address_or_network_of_scope
from app.web.visitor import create_session_key, hash_session_key

CODE_LIFETIME = dt.timedelta(minutes=10)
_DEVICE_CODE_LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # no characters that are easily confused
CODE_LENGTH = 8


def generate_device_code() -> str:
    """Return a new code for display, e.g. “7KQ2-M9TD”: 39 bits, enough for ten minutes."""
    letters = "".join(secrets.choice(_DEVICE_CODE_LETTERS) for _ in range(CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def normalize_device_code(typed: str) -> str:
    """Return the code for comparison: uppercase, without other characters."""
    return "".join(c for c in typed.upper() if c in _DEVICE_CODE_LETTERS)


router = APIRouter()
_MAX_CODE_LENGTH = 40  # characters of a code, separators included
_NOT_VALID = "This code is not valid. A code works once, for ten minutes."


class _DeviceCodeError(Exception):
    """A rejected code. The message says why."""

    def __init__(
        self, message: str, status: int = 422, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


@router.post("/settings/codes")
def create_device_code(ctx: WriteContext) -> HTMLResponse:
    """Create a device code. Only this response shows it: the database stores a hash."""
    code = generate_device_code()
    learner_store.replace_device_code(
        ctx.db, ctx.learner.id, _device_code_digest(ctx, code), ctx.now + CODE_LIFETIME
    )
    address = f"{public_base_url(ctx.request)}/continue"
    return ctx.render_page("accounts/code.html", code=code, address=address)


@router.get("/continue")
def show_device_code_form(
    ctx: ReadContext, code: Annotated[str, Query(max_length=_MAX_CODE_LENGTH)] = ""
) -> HTMLResponse:
    """Ask for a device code, or show whose data the code in the URL gives access to."""
    if not code or not _is_navigation_or_same_origin(ctx.request):
        return _render_device_code_form(ctx, code)
    try:
        owner_summary = _verify_code_and_summarize_owner(ctx, code)
    except _DeviceCodeError as error:
        return _render_device_code_form(ctx, code, error)
    return _render_device_sign_in_confirmation(ctx, DeviceCodeForm(code=code), owner_summary)


@router.post("/continue")
def confirm_or_sign_in_with_code(
    ctx: ReadContext, form: Annotated[DeviceCodeForm, Form()]
) -> Response:
    """Show whose data it is. After confirmation, sign this browser in as that learner."""
    try:
        owner_summary = _verify_code_and_summarize_owner(ctx, form.code)
        if not form.confirm or (ctx.learner.row_id_in_any_course and not form.leave):
            return _render_device_sign_in_confirmation(ctx, form, owner_summary)
    except _DeviceCodeError as error:
        return _render_device_code_form(ctx, form.code, error)
    owner = learner_store.redeem_device_code(ctx.db, _device_code_digest(ctx, form.code), ctx.now)
    if owner is None:  # another browser used it first
        return _render_device_code_form(ctx, form.code, _DeviceCodeError(_NOT_VALID))
    learner_store.revoke_session_by_digest(ctx.db, ctx.visitor.session_key_digest, ctx.now)
    session_key = create_session_key()
    visit = build_browser_visit(ctx.request, hash_session_key(session_key), ctx.now)
    learner_store.insert_browser_session(ctx.db, owner, visit)
    return redirect_with_cookie_clearing_site_data(
        "/", ctx.cookies.format_session_cookie(ctx.visitor, session_key)
    )


@router.post("/settings/sessions/{session}/revocation")
def sign_out_device(ctx: ReadContext, session: RowNumber) -> Response:
    home = ctx.learner.row_id_in_any_course
    digest = learner_store.revoke_session_and_return_digest(ctx.db, home, session, ctx.now)
    if digest is None:
        raise NotFoundError("This browser is signed out already, or it is not yours.")
    learner_store.delete_device_codes_of_person(ctx.db, home)
    if digest == ctx.visitor.session_key_digest:
        return redirect_with_cookie_clearing_site_data(
            "/", ctx.cookies.format_session_cookie_deletion(ctx.visitor)
        )
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/sessions/revocation")
def sign_out_other_devices(ctx: ReadContext) -> Response:
    learner_store.revoke_other_sessions(
        ctx.db, ctx.learner.row_id_in_any_course, ctx.visitor.session_key_digest, ctx.now
    )
    learner_store.delete_device_codes_of_person(ctx.db, ctx.learner.row_id_in_any_course)
    return RedirectResponse("/settings?ended=yes#devices", 303)


@router.post("/settings/departure")
def sign_out_this_browser(ctx: ReadContext, leave: Annotated[str, Form()] = "") -> Response:
    if leave != "yes":
        message = "Check the box first: without a code there is no way back."
        problems = [{"field": "leave", "message": message}]
        return render_settings_page(ctx, build_settings_form(ctx.learner), problems)
    learner_store.revoke_session_by_digest(ctx.db, ctx.visitor.session_key_digest, ctx.now)
    return redirect_with_cookie_clearing_site_data(
        "/", ctx.cookies.format_session_cookie_deletion(ctx.visitor)
    )


def _is_navigation_or_same_origin(request: Request) -> bool:
    """Return False for what other sites request in the background: no wrong code counts there."""
    site = request.headers.get("sec-fetch-site", "none")
    is_document = request.headers.get("sec-fetch-dest") == "document"
    return is_document or site in {"none", "same-origin"}


def _verify_code_and_summarize_owner(ctx: RequestContext, code: str) -> PersonDataSummary:
    """Return whose data a code gives access to. Raises _DeviceCodeError, and counts wrong codes."""
    if len(normalize_device_code(code)) != CODE_LENGTH:
        problem = f"“{code[:_MAX_CODE_LENGTH]}” is not a code." if code else "Enter a code."
        raise _DeviceCodeError(
            f"{problem} A code has {CODE_LENGTH} letters and digits, none of 0, 1, I, L, O, U."
        )
    rates: RateLimiter = ctx.request.app.state.rates
    rate_limit_key = (
        client_address_or_network_of_scope(ctx.request.scope),
        ctx.visitor.sent_key_digest,
    )
    if seconds := rates.seconds_until_allowed("codes", *rate_limit_key):
        message = f"Too many wrong codes. Wait {seconds} seconds, then try again."
        raise _DeviceCodeError(message, 429, {"retry-after": str(seconds)})
    owner = learner_store.find_device_code_owner(ctx.db, _device_code_digest(ctx, code), ctx.now)
    if owner is None:
        rates.raise_if_over_limit_else_count("codes", *rate_limit_key)
        raise _DeviceCodeError(_NOT_VALID)
    owner_summary = learner_store.summarize_person_data_in_all_courses(ctx.db, owner)
    if owner_summary.person == ctx.learner.person:
        raise _DeviceCodeError("This code leads to the records that are here already.", 409)
    return owner_summary


def _render_device_code_form(
    ctx: RequestContext, code: str, error: _DeviceCodeError | None = None
) -> HTMLResponse:
    response = ctx.render_page(
        "accounts/continue.html",
        status=error.status if error else 200,
        problems=[{"field": "code", "message": str(error)}] if error else [],
        code=code,
    )
    response.headers.update(error.headers if error else {})
    return response


def _render_device_sign_in_confirmation(
    ctx: RequestContext, form: DeviceCodeForm, owner_summary: PersonDataSummary
) -> HTMLResponse:
    """Show whose data it is; 422 if it was confirmed without ticking the box."""
    home, message = (
        ctx.learner.row_id_in_any_course,
        "Check the box first: this browser has records of its own.",
    )
    return ctx.render_page(
        "accounts/confirmation.html",
        status=422 if form.confirm else 200,
        code=form.code,
        records=owner_summary,
        own=learner_store.summarize_person_data_in_all_courses(ctx.db, home) if home else None,
        problems=[{"field": "leave", "message": message}] if form.confirm else [],
    )


def _device_code_digest(ctx: RequestContext, code: str) -> str:
    return ctx.cookies.hash_short_code(normalize_device_code(code))
