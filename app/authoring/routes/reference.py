"""GET how a course is written: the reference of the documents, on the bench."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.authoring.manual import manual
from app.authors.current import AuthorRoute
from app.errors import NotFound
from app.learners.current import CurrentLearner
from app.web.render import page

router = APIRouter(route_class=AuthorRoute)


@router.get("/help")
def help_page(request: Request, learner: CurrentLearner) -> HTMLResponse:
    """The whole content format, with every problem that the check can name."""
    try:
        found = manual()
    except OSError:
        hint = "See docs/authoring.md of the source."
        raise NotFound("The reference is not installed here.", hint) from None
    return page(request, "authoring/help.html", learner=learner, manual=found)
