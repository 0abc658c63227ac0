"""GET the audit log; POST that this browser leaves the bench."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from app.authors import store
from app.authors.current import AuthorRoute, CurrentAuthor, forget
from app.db.engine import DbSession
from app.errors import NotFoundError
from app.learners.current import CurrentLearner
from app.web.clock import Now
from app.web.render import render_page

router = APIRouter(route_class=AuthorRoute)
_MOST = 200


@router.get("/audit")
def audit(
    request: Request,
    learner: CurrentLearner,
    author: CurrentAuthor,
    db: DbSession,
    now: Now,
) -> HTMLResponse:
    """What authors did, the newest first, and the browsers that are signed in."""
    return render_page(
        request,
        "authoring/audit.html",
        learner=learner,
        author=author,
        deeds=store.deeds(db, _MOST),
        most=_MOST,
        sessions=store.sessions(db, now),
    )


@router.post("/departure")
def leave(author: CurrentAuthor, db: DbSession, now: Now) -> RedirectResponse:
    """Sign this browser out of the bench."""
    store.revoke(db, [author.id], author.id, now)
    answer = RedirectResponse("/", 303)
    forget(answer)
    return answer


@router.api_route("/{anything:path}", methods=["GET", "POST"])
def nowhere(anything: str) -> HTMLResponse:
    """What is not there is not there for authors; others learn nothing of it."""
    raise NotFoundError(f"There is nothing at /authoring/{anything[:80]}.")
