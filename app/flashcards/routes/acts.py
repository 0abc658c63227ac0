"""What is set to a card by hand: bury it, forget it, give it a due date."""

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.cards.store import record_manual_edit
from app.errors import InvalidInputError
from app.flashcards.about import about
from app.flashcards.forms import Acted, ManualEditForm
from app.flashcards.onward import next_card_response, wish_of
from app.flashcards.review_table import find_card
from app.learners.desk import Reader, RequestContext, run_reading, run_writing
from app.scheduling import ManualEdit, due_date_error

router = APIRouter()


@router.get("/{card}/more")
def show(desk: Reader, card: str, done: Annotated[str, Query(max_length=8)] = "") -> HTMLResponse:
    """How a card stands, what was done to it, and what can be done."""
    return desk.page(
        "flashcards/about.html",
        about=about(desk, card),
        done=done,
    )


@router.post("/{card}/acts")
async def act(request: Request, card: str, sent: Acted) -> Response:
    """Write down what is set; undo takes it back like a grade.

    The next card is looked for when that is on disk: the plan of the day is made anew,
    which takes long, and others who write would wait for it.
    """
    number = await run_writing(request, lambda desk: _write(desk, card, sent))
    if sent.page:
        return RedirectResponse(f"/flashcards/{card}/more?done={sent.act}", 303)

    def answer(desk: RequestContext) -> Response:
        return next_card_response(desk, wish_of(desk, sent.topic, sent.more), undo=number)

    return await run_reading(request, answer)


def _write(desk: RequestContext, card: str, sent: ManualEditForm) -> int:
    """Keep the act; returns its number in the log, 0 where it was there already."""
    found = find_card(desk, card).card
    wish_of(desk, sent.topic, sent.more)  # refused before anything is kept
    when = (desk.now, desk.day, sent.token)
    return record_manual_edit(desk.db, desk.learner.id, found, _act(desk, sent), when) or 0


def _act(desk: RequestContext, sent: ManualEditForm) -> ManualEdit:
    """What was sent; raises Problem for a day that cannot be set."""
    if sent.act == "forget":
        return ManualEdit("forget")
    if sent.act == "bury":
        return ManualEdit("bury", desk.day + dt.timedelta(days=1))
    try:
        day = dt.date.fromisoformat(sent.day)
    except ValueError:
        said = "Choose the day on which the card is due, as YYYY-MM-DD."
        raise InvalidInputError(said, "day") from None
    why = due_date_error(day, desk.day, desk.learner.exam_day)
    if why:
        raise InvalidInputError(why, "day")
    return ManualEdit("due", day)
