"""GET how a course is written, and what it holds so far."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.authoring.course.coverage import compute_coverage, fresh_papers, heads
from app.authoring.course.cues import cues
from app.authoring.course.reviews import reviews_due
from app.authoring.manual import manual
from app.authors.current import AuthorRoute
from app.errors import NotFoundError
from app.learners.current import CurrentLearner
from app.web.clock import Now
from app.web.course import CurrentLibrary
from app.web.render import render_page

router = APIRouter(route_class=AuthorRoute)


@router.get("/coverage")
def coverage_page(
    request: Request, library: CurrentLibrary, learner: CurrentLearner, now: Now
) -> HTMLResponse:
    """What each objective has, and what the choices of the bank give away."""
    return render_page(
        request,
        "authoring/coverage.html",
        learner=learner,
        heads=heads(),
        rows=compute_coverage(library),
        papers=fresh_papers(library),
        cues=cues(library.questions.values()),
        due=reviews_due(library, now.date()),
    )


@router.get("/help")
def help_page(request: Request, learner: CurrentLearner) -> HTMLResponse:
    """The whole content format, with every problem that the check can name."""
    try:
        found = manual()
    except OSError:
        hint = "See docs/authoring.md of the source."
        raise NotFoundError("The reference is not installed here.", hint) from None
    return render_page(request, "authoring/help.html", learner=learner, manual=found)
