"""Cards of one's own: written, and changed."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.cards.added_cards import card_of_own
from app.cards.names import OWN
from app.cards.store import CardToAdd, add_cards
from app.errors import ConflictError, NotFoundError
from app.flashcards.store import own
from app.flashcards.writing import (
    OwnCardDraft,
    Problems,
    RenderedCard,
    render_card,
    typed_of,
)
from app.learners.current import count_stored, expect_storage
from app.learners.desk import Reader, RequestContext, run_reading, run_writing
from app.questions.asking import new_token

router = APIRouter()
_Words = Annotated[str, Form()]


_PICTURES = {"jpg": "image/jpeg"}
_A_YEAR = 31_536_000


@router.get("/pictures/{name}")
def picture(desk: Reader, name: str) -> Response:
    """A picture on a card of one's own; under its name there is never another."""
    content = own.find_picture(desk.db, desk.learner.id, name)
    if content is None:
        raise NotFoundError("There is no such picture on a card of yours.")
    ending = name.rpartition(".")[2]
    return Response(
        content,
        media_type=_PICTURES.get(ending, f"image/{ending}"),
        headers={"cache-control": f"private, max-age={_A_YEAR}, immutable"},
    )


@router.get("/own")
def write(desk: Reader) -> HTMLResponse:
    """An empty card."""
    return _form(desk, OwnCardDraft(""))


def render_sent(front: _Words = "", back: _Words = "") -> RenderedCard:
    """The card that was sent. FastAPI runs this in a thread, before the route."""
    sides = (text.replace("\r\n", "\n").strip() for text in (front, back))
    return render_card(OwnCardDraft(*sides))


SentCard = Annotated[RenderedCard, Depends(render_sent)]


@router.post("/own", dependencies=[Depends(expect_storage)])
async def add(request: Request, sent: SentCard, token: _Words = "") -> Response:
    """Keep a new card; it is asked from today on."""
    if sent.problems:
        return await run_reading(
            request, lambda desk: _refuse(desk, sent, sent.problems, token=token)
        )
    try:
        await run_writing(request, lambda desk: _keep(desk, sent, token))
    except ConflictError as error:
        problem = {"field": "front", "message": f"{error.message} {error.hint}"}
        return await run_reading(request, lambda desk: _refuse(desk, sent, [problem], token=token))
    count_stored(request, sent.size)
    return RedirectResponse("/flashcards/own?kept=yes", 303)


def _keep(desk: RequestContext, sent: RenderedCard, token: str) -> None:
    words = f"{desk.learner.key}:{token or new_token()}"
    card = f"{OWN}:{hashlib.sha256(words.encode()).hexdigest()[:32]}"
    kept = own.OwnCardContent(sent.faces, sent.typed.kept)
    own.write_own(desk.db, desk.learner.id, card, kept, desk.now)
    add_cards(desk.db, desk.learner.id, [CardToAdd(card)], desk.day, desk.now)


@router.get("/own/{card}")
def edit(desk: Reader, card: str) -> HTMLResponse:
    """The card as it was typed; of one that came with a file its words."""
    kept = _find(desk, card)
    typed = typed_of(kept.source, kept.faces)
    if typed is not None:
        return _form(desk, typed, card)
    plain = card_of_own(card, kept.faces)
    return _form(desk, OwnCardDraft(plain.front.plain, plain.back.plain), card, bare=True)


@router.post("/own/{card}", dependencies=[Depends(expect_storage)])
async def change(request: Request, card: str, sent: SentCard) -> Response:
    """Put other words on a card."""
    if sent.problems:
        return await run_reading(request, lambda desk: _refuse(desk, sent, sent.problems, card))
    await run_writing(request, lambda desk: _change(desk, card, sent))
    count_stored(request, sent.size)
    return RedirectResponse("/flashcards/deck#own", 303)


def _change(desk: RequestContext, card: str, sent: RenderedCard) -> None:
    _find(desk, card)
    kept = own.OwnCardContent(sent.faces, sent.typed.kept)
    own.change_own(desk.db, desk.learner.id, card, kept)


def _find(desk: RequestContext, card: str) -> own.OwnCardContent:
    kept = own.find_own(desk.db, desk.learner.id, card) if desk.learner.id else None
    if kept is None:
        raise NotFoundError(f"There is no card “{card}” of yours.")
    return kept


def _refuse(
    desk: RequestContext, sent: RenderedCard, problems: Problems, card: str = "", token: str = ""
) -> HTMLResponse:
    """The form with everything that was typed, and what is wrong with it."""
    if card:
        _find(desk, card)
    status = 422 if sent.problems else 409
    more = {"problems": problems, "token": token or new_token()}
    return _form(desk, sent.typed, card, status=status, **more)


def _form(
    desk: RequestContext, typed: OwnCardDraft, card: str = "", *, status: int = 200, **more: Any
) -> HTMLResponse:
    empty = {"bare": False, "problems": [], "token": new_token()}
    return desk.page(
        "flashcards/own.html",
        status=status,
        typed=typed,
        card=card,
        kept=desk.request.query_params.get("kept") == "yes",
        **{**empty, **more},
    )
