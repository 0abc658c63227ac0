"""GET the search, and its results alone for whoever is still typing."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.learners.current import CurrentLearner
from app.search.index import EVERY, find
from app.web.course import CurrentLibrary
from app.web.render import render_page

router = APIRouter(include_in_schema=False)
Typed = Annotated[str, Query(max_length=400)]


@router.get("/search")
def search(
    request: Request,
    library: CurrentLibrary,
    learner: CurrentLearner,
    q: Typed = "",
    *,
    whole: bool = False,
) -> HTMLResponse:
    return render_page(
        request,
        "search/index.html",
        learner=learner,
        typed=q,
        found=find(library, q, EVERY) if whole else find(library, q),
    )


@router.get("/search/results")
def results(request: Request, library: CurrentLibrary, q: Typed = "") -> HTMLResponse:
    """An address of its own, so that no cache takes the part for the whole."""
    return render_page(request, "search/_results.html", typed=q, found=find(library, q))
