"""Who is at the bench: each of its routes asks before it does anything else."""

import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.authors import store
from app.authors.links import RENEWAL, STAY
from app.authors.store import SignedInAuthor
from app.db.engine import write_in_own_transaction
from app.errors import ForbiddenError
from app.web.clock import current_time
from app.web.cookies import AUTHOR
from app.web.render import is_htmx_request, render_page
from app.web.visitor import hash_session_key

_log = logging.getLogger("headroom")


class AuthorRoute(APIRoute):
    """A route of the bench: closed, before its body is read, to who was not let in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            author = await _read_author(request)
            if author is None:
                return _closed(request)
            request.state.author = author
            renewed = await _renew(request, author)
            answer = await handle(request)
            if renewed:
                set_author_cookie(answer, request.cookies[AUTHOR])
            return answer

        return guarded


async def _author(request: Request) -> SignedInAuthor:
    author: SignedInAuthor = request.state.author
    return author


CurrentAuthor = Annotated[SignedInAuthor, Depends(_author)]
"""For routes of the class `AuthorRoute` alone."""


def set_author_cookie(answer: Response, token: str) -> None:
    """Leave the session in the browser, for as long as it will be accepted."""
    answer.set_cookie(
        AUTHOR,
        token,
        max_age=int(STAY.total_seconds()),
        httponly=True,
        samesite="lax",
    )


def forget(answer: Response) -> None:
    """Take the session out of the browser."""
    answer.delete_cookie(AUTHOR)


async def _read_author(request: Request) -> SignedInAuthor | None:
    token = request.cookies.get(AUTHOR)
    if not token:
        return None
    now = await current_time(request)
    engine = request.app.state.engine

    def ask() -> SignedInAuthor | None:
        with Session(engine) as db:
            return store.find(db, hash_session_key(token), now)

    async with request.app.state.reading_room:
        if engine.dialect.name == "sqlite":
            return ask()
        return await run_in_threadpool(ask)


async def _renew(request: Request, author: SignedInAuthor) -> bool:
    """Note once a day that the session is in use; a failure to write is no reason."""
    now = await current_time(request)
    if now - author.last_used < RENEWAL:
        return False
    work = functools.partial(store.renew, number=author.id, now=now)
    try:
        await write_in_own_transaction(request, work)
    except SQLAlchemyError:
        _log.exception("the last use of author session %d was not noted", author.id)
        return False
    return True


def _closed(request: Request) -> Response:
    if is_htmx_request(request):
        raise ForbiddenError(
            "This is for authors, and this browser is not signed in as one.",
            "Run `headroom author link` where the server runs, and open the link here.",
        )
    answer = render_page(request, "authors/closed.html", status=403, reason="")
    answer.headers["cache-control"] = "no-store"
    forget(answer)
    return answer
