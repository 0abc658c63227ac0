"""GET a page as its readers see it, with what is wrong in its files beside it."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.authoring.course.authored import AuthoredLibrary
from app.authoring.listing import name_of, problems_of_topic
from app.authoring.trying import address_of
from app.authors.current import AuthorRoute
from app.concepts.finished_pages import RenderedPage, RenderedPageCache
from app.content.live.library import Library
from app.errors import NotFoundError
from app.learners.current import CurrentLearner
from app.questions.asking import OpenQuestion, new_token, title_of
from app.questions.variants import draw_variant
from app.web.render import render_page

router = APIRouter(route_class=AuthorRoute)


@router.get("/pages/{topic}")
def preview(
    request: Request, topic: str, library: AuthoredLibrary, learner: CurrentLearner
) -> HTMLResponse:
    """The page of a topic; one that cannot be read yet has its problems only."""
    problems = problems_of_topic(library.problems, topic)
    known = library.topics.get(topic)
    if known is None and not problems:
        raise NotFoundError(f"There is no topic “{topic}”.")
    # What is not live must never come among the finished pages of learners.
    sheets = RenderedPageCache(request.app.state.templates)
    sheet = sheets.of(library, known) if known else None
    questions = [library.questions[i] for i in known.questions] if known else []
    return render_page(
        request,
        "authoring/page.html",
        learner=learner,
        slug=topic,
        topic=known,
        sheet=sheet,
        library=library,
        problems=problems,
        outdated=known is not None and known.place.path in library.outdated,
        name_of=name_of,
        asked=_asked(library, sheet) if sheet else {},
        questions=[(q, title_of(q)) for q in questions],
        cards=[library.cards[i] for i in known.cards] if known else [],
    )


def _asked(library: Library, sheet: RenderedPage) -> dict[str, OpenQuestion]:
    """The questions of the page, answered to the bench and not to the records."""
    return {
        item: OpenQuestion(
            draw_variant(library.questions[item], 0),
            new_token(),
            "page",
            back=f"/authoring/pages/{sheet.topic.slug}",
            at=address_of(library.questions[item]),
        )
        for item in sheet.asked
        if item in library.questions
    }
