"""Author sign-in: the guard of the author pages and the page that uses an author link."""

import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError

from app.accounts import author_store
from app.accounts.author_store import (
    RENEWAL_INTERVAL,
    SESSION_LIFETIME,
    AuthorLinkState,
    SignedInAuthor,
    generate_author_token,
)
from app.clock import Now, current_time
from app.database.engine import (
    DbSession,
    open_read_only_session,
    run_in_thread_unless_sqlite,
    write_during_read_request,
)
from app.errors import ForbiddenError
from app.web.render import is_htmx_request, render_page
from app.web.visitor import SessionCookies, describe_user_agent, hash_session_key

_log = logging.getLogger("headroom")


class AuthorOnlyRoute(APIRoute):
    """A route of the author pages. Refuses other browsers before it reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            author = await _find_signed_in_author(request)
            if author is None:
                return _refuse_browser_without_session(request)
            request.state.author = author
            renewed = await _renew_session_if_due(request, author)
            response = await handle(request)
            if renewed:
                _set_author_cookie(request, response, request.state.visitor.author_token)
            return response

        return guarded


async def _get_author_from_request_state(request: Request) -> SignedInAuthor:
    author: SignedInAuthor = request.state.author
    return author


CurrentAuthor = Annotated[SignedInAuthor, Depends(_get_author_from_request_state)]
"""The signed-in author. Only for routes of the class `AuthorOnlyRoute`."""


def _set_author_cookie(request: Request, response: Response, token: str) -> None:
    response.set_cookie(
        _cookie_name(request),
        token,
        max_age=int(SESSION_LIFETIME.total_seconds()),
        httponly=True,
        samesite="lax",
    )


def delete_author_cookie(request: Request, response: Response) -> None:
    response.delete_cookie(_cookie_name(request))


def _cookie_name(request: Request) -> str:
    cookies: SessionCookies = request.app.state.session_cookies
    return cookies.author_cookie_name(request.state.visitor)


async def _find_signed_in_author(request: Request) -> SignedInAuthor | None:
    token: str = request.state.visitor.author_token
    if not token:
        return None
    digest, now = hash_session_key(token), await current_time(request)
    async with open_read_only_session(request) as db:
        return await run_in_thread_unless_sqlite(
            db, lambda: author_store.find_author_session(db, digest, now)
        )


async def _renew_session_if_due(request: Request, author: SignedInAuthor) -> bool:
    """Update the session's last use once a day. Returns False if it was not due or failed."""
    now = await current_time(request)
    if now - author.last_used < RENEWAL_INTERVAL:
        return False
    work = functools.partial(author_store.renew_author_session, session_id=author.id, now=now)
    try:
        await write_during_read_request(request, work)
    except SQLAlchemyError:
        _log.exception("the last use of author session %d was not noted", author.id)
        return False
    return True


def _refuse_browser_without_session(request: Request) -> Response:
    if is_htmx_request(request):
        raise ForbiddenError(
            "This is for authors, and this browser is not signed in as one.",
            "Run `headroom author link` where the server runs, and open the link here.",
        )
    response = _render_author_link_needed_page(request, "")
    delete_author_cookie(request, response)
    return response


router = APIRouter(prefix="/authoring/enter", include_in_schema=False)
_MESSAGE_BY_LINK_STATE: dict[AuthorLinkState, str] = {
    "used": "This link was used already. Each link works once. If it was not you who "
    "used it, run `headroom author revoke all`.",
    "expired": "This link is more than 15 minutes old.",
    "unknown": "This link is not one of this server, or it was not copied as a whole.",
}


@router.get("")
def show_author_sign_in_button(
    request: Request, db: DbSession, now: Now, token: Annotated[str, Query()] = ""
) -> HTMLResponse:
    """Show only a button, so that a link preview does not use up the link."""
    state = author_store.find_author_link_state(db, hash_session_key(token), now)
    if state != "good":
        return _render_author_link_needed_page(request, _MESSAGE_BY_LINK_STATE[state])
    return _forbid_caching(render_page(request, "accounts/author_entry.html", token=token))


@router.post("")
def sign_in_with_author_link(
    request: Request, db: DbSession, now: Now, token: Annotated[str, Form()] = ""
) -> Response:
    """Use up the link and sign this browser in."""
    digest = hash_session_key(token)
    if not author_store.redeem_author_link(db, digest, now):
        state = author_store.find_author_link_state(db, digest, now)
        # A clock that is set back makes an expired link good again after it was refused.
        return _render_author_link_needed_page(
            request, _MESSAGE_BY_LINK_STATE.get(state, _MESSAGE_BY_LINK_STATE["expired"])
        )
    previous_session = author_store.find_author_session(
        db, hash_session_key(request.state.visitor.author_token), now
    )
    session_token = generate_author_token()
    device = describe_user_agent(request.headers.get("user-agent", ""))
    session_id = author_store.insert_author_session(
        db, hash_session_key(session_token), device, now
    )
    if previous_session is not None:  # the new cookie replaces its cookie
        author_store.revoke_author_sessions(db, [previous_session.id], session_id, now)
    response = RedirectResponse("/authoring", 303)
    _set_author_cookie(request, response, session_token)
    return response


def _render_author_link_needed_page(request: Request, why_last_link_failed: str) -> HTMLResponse:
    """Return the page that says how to get a link; `why_last_link_failed` says why the last one failed."""
    return _forbid_caching(
        render_page(request, "accounts/link_expired.html", status=403, reason=why_last_link_failed)
    )


def _forbid_caching(response: HTMLResponse) -> HTMLResponse:
    response.headers["cache-control"] = "no-store"
    return response
