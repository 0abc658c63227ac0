"""A learner's cards on their way out to Anki, and back in from it."""

import datetime as dt
from collections.abc import Mapping
from typing import IO, Annotated, Literal

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.content.added import question_card
from app.content.library import Library, LiveLibrary
from app.db.engine import DbSession
from app.errors import NotFound
from app.exchange import store
from app.exchange.apkg import read_package
from app.exchange.arrivals import Sorted, home_of, sort_out
from app.exchange.decks import Course, has_words, pack, write_luggage
from app.exchange.items import Unusable
from app.learners.current import CurrentLearner, CurrentLearnerValue, EnrolledLearner
from app.learners.store.sitting import in_running_exam
from app.learners.study_day import zone_of
from app.web.clock import Now
from app.web.render import page
from app.web.shelf import CurrentLibrary

router = APIRouter(prefix="/settings", include_in_schema=False)
UPLOADS: Mapping[str, int] = {"/settings/cards": 21 * 1024 * 1024}
"""How many bytes may be sent to an address that takes files."""
_LARGEST = 20 * 1024 * 1024
_WANTED = "An .apkg or .colpkg file of Anki with at most 20 MB is wanted."
What = Literal["deck", "grades"]


@router.get("/cards.apkg")
def take_cards(
    request: Request,
    library: CurrentLibrary,
    learner: CurrentLearner,
    db: DbSession,
    now: Now,
) -> Response:
    """Every card that the learner has begun or added, with all of its grades.

    The cards of questions in a mock exam that is being sat stay until it is over.
    """
    studied = store.studied(db, learner.id).without(_sat(db, learner, now))
    luggage = pack(_course(request, library), studied)
    day = learner.study_day(now).isoformat()
    return Response(
        write_luggage(luggage, now, zone_of(learner.zone)),
        media_type="application/octet-stream",
        headers={
            "content-disposition": f'attachment; filename="headroom-{day}.apkg"',
            "cache-control": "no-store",
        },
    )


@router.get("/cards")
def show_cards(
    request: Request, library: CurrentLibrary, learner: CurrentLearner, db: DbSession
) -> HTMLResponse:
    """What can be taken along, what can be brought, and what was brought."""
    return _page(request, library, learner, db)


def read_upload(
    library: CurrentLibrary, file: Annotated[UploadFile | None, File()] = None
) -> Sorted | str:
    """What an uploaded package brings, or a sentence why it cannot be used.

    Asked before the database is: reading a large file must not keep writers waiting.
    """
    if file is None or not file.filename:
        return f"Choose a file first. {_WANTED}"
    name = " ".join(file.filename.split())[:80]
    if (file.size or 0) > _LARGEST:
        return f"“{name}” is larger than 20 MB. {_WANTED}"
    content: IO[bytes] = file.file
    try:
        return sort_out(read_package(content), library)
    except Unusable as error:
        return f"“{name}” cannot be used. {error} {_WANTED}"


@router.post("/cards")
def bring_cards(
    request: Request,
    upload: Annotated[Sorted | str, Depends(read_upload)],
    library: CurrentLibrary,
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
) -> HTMLResponse:
    """Take a package in, all of it or nothing; the answer says what was carried."""
    if isinstance(upload, str):
        return _page(request, library, learner, db, upload)
    try:
        outcome = store.take_in(db, learner, upload.arrivals, now)
    except Unusable as error:
        return _page(request, library, learner, db, f"The file was not taken: {error}")
    return page(
        request,
        "exchange/arrived.html",
        learner=learner,
        outcome=outcome,
        cards_left=upload.cards_left,
        grades_left={**upload.grades_left, **outcome.left},
        media=upload.media,
    )


@router.get("/cards/removal")
def ask_before(
    request: Request,
    learner: CurrentLearner,
    db: DbSession,
    what: Annotated[What, Query()],
    deck: Annotated[str, Query(max_length=120)] = "",
) -> HTMLResponse:
    brought = store.brought(db, learner.id)
    found = next((d for d in brought.decks if d.name == deck), None)
    if what == "deck" and found is None:
        raise NotFound(f"There is no deck “{deck}” among your own cards.")
    return page(
        request,
        "exchange/removal.html",
        learner=learner,
        what=what,
        deck=found,
        grades=brought.grades,
    )


@router.post("/cards/removal")
def remove_cards(
    library: CurrentLibrary,
    learner: EnrolledLearner,
    db: DbSession,
    what: Annotated[What, Form()],
    deck: Annotated[str, Form(max_length=120)] = "",
) -> Response:
    """Remove a deck of own cards, or the grades that files brought to the course's."""
    if what == "deck":
        store.remove_deck(db, learner, deck)
    else:
        store.remove_grades(db, learner, lambda card: home_of(library, card))
    return RedirectResponse("/settings/cards?removed=yes", 303)


def _page(
    request: Request,
    library: Library,
    learner: CurrentLearnerValue,
    db: Session,
    refused: str = "",
) -> HTMLResponse:
    own = store.own_texts(db, learner.id) if learner.id else {}
    held = store.held_cards(db, learner.id)
    away = _sat(db, learner, request.app.state.clock())
    cards = [card for card in held if card not in away]
    shown = sum(has_words(library, own, card) for card in cards)
    return page(
        request,
        "exchange/cards.html",
        status=422 if refused else 200,
        learner=learner,
        shown=shown,
        gone=len(cards) - shown,
        sat=len(held) - len(cards),
        brought=store.brought(db, learner.id),
        problems=[{"field": "file", "message": refused}] if refused else [],
        removed=request.query_params.get("removed") == "yes" and not refused,
    )


def _sat(db: Session, learner: CurrentLearnerValue, now: dt.datetime) -> set[str]:
    """The cards of questions in a mock exam that is being sat."""
    return {question_card(item) for item in in_running_exam(db, learner.id, now)}


def _course(request: Request, library: Library) -> Course:
    live: LiveLibrary = request.app.state.library
    return Course(library, live.folder)
