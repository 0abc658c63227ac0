"""What comes after something was done on the desk: the next card."""

import dataclasses
from urllib.parse import urlencode

from fastapi.responses import RedirectResponse, Response

from app.flashcards import store
from app.flashcards.finding import ResolvedCard
from app.flashcards.review_table import GRADES, ReviewFilter, build_review_page, can_be_shown
from app.learners.desk import RequestContext
from app.web.course import find_topic
from app.web.render import is_htmx_request, render_page


def wish_of(desk: RequestContext, topic: str, more: int, card: str = "") -> ReviewFilter:
    """The wish as sent; raises NotFound for a topic that is not in the course."""
    if topic:
        find_topic(desk.library, topic)
    return ReviewFilter(topic, more, card if card and can_be_shown(desk, card) else "")


def next_card_response(
    desk: RequestContext,
    wish: ReviewFilter,
    *,
    undo: int = 0,
    leech: ResolvedCard | None = None,
    graded: int = 0,
) -> Response:
    """The next card: as a fragment, or by going to the page of it.

    `graded` is the grade that the showing had already which was graded once more.
    """
    if not is_htmx_request(desk.request):
        pairs = {
            "card": wish.card,
            "leech": leech.card.id if leech else "",
            "graded": graded or "",
        }
        more = urlencode({name: value for name, value in pairs.items() if value})
        join = "&" if wish.query else "?"
        address = f"/flashcards{wish.query}{join}{more}" if more else wish.address
        return RedirectResponse(address, 303)
    table = dataclasses.replace(
        build_review_page(desk, wish),
        undo=undo or undoable(desk),
        leech=leech,
        already=grade_words(graded),
    )
    status = 409 if graded else 200
    response = render_page(
        desk.request, "flashcards/_desk.html", status=status, table=table, wish=wish
    )
    if graded:  # whatever part of the desk had asked
        response.headers["HX-Retarget"] = "#desk"
    return response


def grade_words(rating: int) -> str:
    """The name of a grade; empty for none."""
    return GRADES[rating - 1] if rating else ""


def undoable(desk: RequestContext) -> int:
    """The number of the last grade of this study day; 0 where there is none."""
    if not desk.learner.id:
        return 0
    last = store.last_undoable(desk.db, desk.learner.id, desk.day)
    return last[0] if last else 0
