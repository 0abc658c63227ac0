"""Cards beside the decks: added, left out, brought back."""

from fastapi import APIRouter
from fastapi.responses import RedirectResponse, Response

from app.cards.comeback import comeback_of
from app.cards.names import QUESTION, TERM, parse_card_id, topic_of
from app.cards.store import CardToAdd, add_cards, decline
from app.errors import NotFoundError
from app.flashcards.forms import Chosen
from app.learners.desk import RequestContext, Writer
from app.web.render import is_htmx_request, render_page

router = APIRouter()


@router.post("/{card}/addition")
def choose(desk: Writer, card: str, chosen: Chosen) -> Response:
    """Study a card that is no part of the course's decks, or leave it out.

    A term may be added by anybody; anything else was there before.
    """
    kind, name = parse_card_id(card)
    if kind == TERM and chosen.wanted:
        if name not in desk.library.glossary:
            raise NotFoundError(f"There is no term “{name}”.")
        new = CardToAdd(card, topic_of(desk.library, card))
        add_cards(desk.db, desk.learner.id, [new], desk.day, desk.now)
    done = decline(desk.db, desk.learner.id, card, declined=not chosen.wanted)
    if not done and kind != TERM:
        raise NotFoundError(f"There is no card “{card}” of yours.")
    return _answer(desk, card, wanted=chosen.wanted, back=chosen.back)


def _answer(desk: RequestContext, card: str, *, wanted: bool, back: str) -> Response:
    kind, name = parse_card_id(card)
    if not is_htmx_request(desk.request):
        home = f"/glossary?cards=1#{name}" if kind == TERM else "/flashcards/deck#own"
        return RedirectResponse(back or home, 303)
    if kind == QUESTION:
        comeback = comeback_of(desk.db, desk.learner.id, name, desk.day)
        return render_page(desk.request, "flashcards/_comeback.html", comeback=comeback, back=back)
    term = desk.library.glossary.get(name)
    if term is None:
        return Response(status_code=204)
    return render_page(
        desk.request,
        "flashcards/_term.html",
        term=term,
        studied=wanted,
        pressed=True,
    )
