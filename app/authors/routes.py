"""GET and POST the link that lets a browser onto the author's bench."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.authors import store
from app.authors.current import set_author_cookie
from app.authors.links import new_token
from app.authors.store import State
from app.db.engine import DbSession
from app.web.clock import Now
from app.web.cookies import AUTHOR
from app.web.devices import describe_user_agent
from app.web.render import render_page
from app.web.visitor import hash_session_key

router = APIRouter(prefix="/authoring/enter", include_in_schema=False)
_REASONS: dict[State, str] = {
    "used": "This link was used already. Each link works once. If it was not you who "
    "used it, run `headroom author revoke all`.",
    "expired": "This link is more than 15 minutes old.",
    "unknown": "This link is not one of this server, or it was not copied as a whole.",
}


@router.get("")
def ask_before(
    request: Request, db: DbSession, now: Now, token: Annotated[str, Query()] = ""
) -> HTMLResponse:
    """Only a button: what fetches a link to preview it must not use it up."""
    state = store.state_of(db, hash_session_key(token), now)
    if state != "good":
        return _refused(request, state)
    return _unkept(render_page(request, "authors/enter.html", token=token))


@router.post("")
def enter(
    request: Request, db: DbSession, now: Now, token: Annotated[str, Form()] = ""
) -> Response:
    """Use the link up and let this browser in."""
    digest = hash_session_key(token)
    if not store.use_link(db, digest, now):
        return _refused(request, store.state_of(db, digest, now))
    former = store.find(db, hash_session_key(request.cookies.get(AUTHOR, "")), now)
    key = new_token()
    device = describe_user_agent(request.headers.get("user-agent", ""))
    author = store.begin_session(db, hash_session_key(key), device, now)
    if former is not None:  # its cookie is about to go
        store.revoke(db, [former.id], author, now)
    answer = RedirectResponse("/authoring", 303)
    set_author_cookie(answer, key)
    return answer


def _refused(request: Request, state: State) -> HTMLResponse:
    reason = _REASONS[state]
    return _unkept(render_page(request, "authors/closed.html", status=403, reason=reason))


def _unkept(answer: HTMLResponse) -> HTMLResponse:
    answer.headers["cache-control"] = "no-store"
    return answer
