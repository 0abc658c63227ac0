"""Cards of one's own: written, and changed."""

import hashlib
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.cards.added_cards import card_of_own
from app.cards.names import OWN
from app.cards.store import Addition, add_cards
from app.db.storage_limit import expect_storage
from app.errors import NotFound
from app.flashcards.store import own
from app.flashcards.writing import Typed, faces_of, typed_of
from app.learners.desk import Desk, Reader, Writer
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
        raise NotFound("There is no such picture on a card of yours.")
    ending = name.rpartition(".")[2]
    return Response(
        content,
        media_type=_PICTURES.get(ending, f"image/{ending}"),
        headers={"cache-control": f"private, max-age={_A_YEAR}, immutable"},
    )


@router.get("/own")
def write(desk: Reader) -> HTMLResponse:
    """An empty card."""
    return _form(desk, Typed(""))


@router.post("/own", dependencies=[Depends(expect_storage)])
def add(
    desk: Writer, front: _Words = "", back: _Words = "", token: _Words = ""
) -> Response:
    """Keep a new card; it is asked from today on."""
    typed = _typed(front, back)
    if typed.problems:
        return _form(desk, typed, token=token)
    words = f"{desk.learner.key}:{token or new_token()}"
    card = f"{OWN}:{hashlib.sha256(words.encode()).hexdigest()[:32]}"
    kept = own.Kept(faces_of(typed), typed.kept)
    own.write_own(desk.db, desk.learner.id, card, kept, desk.now)
    add_cards(desk.db, desk.learner.id, [Addition(card)], desk.day, desk.now)
    return RedirectResponse("/flashcards/own?kept=yes", 303)


@router.get("/own/{card}")
def edit(desk: Reader, card: str) -> HTMLResponse:
    """The card as it was typed; of one that came with a file its words."""
    kept = _find(desk, card)
    typed = typed_of(kept.source, kept.faces)
    if typed is not None:
        return _form(desk, typed, card)
    plain = card_of_own(card, kept.faces)
    return _form(desk, Typed(plain.front.plain, plain.back.plain), card, bare=True)


@router.post("/own/{card}")
def change(desk: Writer, card: str, front: _Words = "", back: _Words = "") -> Response:
    """Put other words on a card."""
    _find(desk, card)
    typed = _typed(front, back)
    if typed.problems:
        return _form(desk, typed, card)
    kept = own.Kept(faces_of(typed), typed.kept)
    own.change_own(desk.db, desk.learner.id, card, kept)
    return RedirectResponse("/flashcards/deck#own", 303)


def _typed(front: str, back: str) -> Typed:
    """What was sent, with the line ends of this side."""
    return Typed(*(text.replace("\r\n", "\n").strip() for text in (front, back)))


def _find(desk: Desk, card: str) -> own.Kept:
    kept = own.find_own(desk.db, desk.learner.id, card) if desk.learner.id else None
    if kept is None:
        raise NotFound(f"There is no card “{card}” of yours.")
    return kept


def _form(
    desk: Desk, typed: Typed, card: str = "", *, token: str = "", bare: bool = False
) -> HTMLResponse:
    sent = desk.request.method == "POST"
    problems = typed.problems if sent else []
    return desk.page(
        "flashcards/own.html",
        status=422 if problems else 200,
        typed=typed,
        card=card,
        bare=bare,
        problems=problems,
        kept=desk.request.query_params.get("kept") == "yes",
        token=token or new_token(),
    )
