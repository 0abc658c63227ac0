"""GET and POST the notes of a page; GET all of them, also as Markdown."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from app.content.model import Topic
from app.db.engine import DbSession
from app.errors import InvalidInputError
from app.learners.current import CurrentLearner
from app.learners.desk import Reader, Writer
from app.notes import store
from app.notes.forms import LONGEST, NoteForm
from app.notes.listing import NotedSection, found_in, leaves, markdown, places_of
from app.web.addresses import public_base_url
from app.web.course import CurrentLibrary, find_topic
from app.web.page_cache import allow_caching
from app.web.render import render_fragment_or_redirect, render_page

router = APIRouter(include_in_schema=False)


async def read_topic(topic: str, library: CurrentLibrary) -> Topic:
    """The topic of the address; raises NotFound."""
    return find_topic(library, topic)


@router.get("/notes")
def all_notes(desk: Reader, q: Annotated[str, Query(max_length=200)] = "") -> HTMLResponse:
    allow_caching(desk.request)
    listed = leaves(desk.library, store.notes(desk.db, desk.learner.id))
    return desk.page(
        "notes/index.html",
        leaves=found_in(listed, q),
        written=bool(listed),
        q=q,
    )


@router.get("/notes.md")
def as_markdown(desk: Reader) -> Response:
    listed = leaves(desk.library, store.notes(desk.db, desk.learner.id))
    return Response(
        markdown(listed, public_base_url(desk.request)),
        media_type="text/markdown; charset=utf-8",
        headers={"content-disposition": 'attachment; filename="headroom-notes.md"'},
    )


def _beside(request: Request, topic: Topic, place: NotedSection) -> Response:
    """The note as it stands in the text."""
    return render_fragment_or_redirect(
        request,
        "notes/_beside.html",
        otherwise=f"{place.address.partition('#')[0]}#n-{place.note.section}",
        slug=topic.slug,
        anchor=place.note.section,
        title=place.title,
        note=place.note,
        kept=True,
    )


@router.get("/concepts/{topic}/notes")
def notes_of(
    request: Request,
    found: Annotated[Topic, Depends(read_topic)],
    learner: CurrentLearner,
    db: DbSession,
) -> HTMLResponse:
    allow_caching(request)
    return render_page(
        request,
        "notes/topic.html",
        learner=learner,
        topic=found,
        longest=LONGEST,
        kept=False,
        places=places_of(found, store.notes(db, learner.id, found.slug)),
    )


@router.post("/concepts/{topic}/notes")
def write(
    noted: Annotated[NoteForm, Form()],
    found: Annotated[Topic, Depends(read_topic)],
    desk: Writer,
) -> Response:
    kept = {n.section: n.words for n in store.notes(desk.db, desk.learner.id, found.slug)}
    note = noted.read(found.slug, kept.get(noted.section, ""))
    known = {*kept}
    known |= {s.anchor for s in found.sections if s.anchor}
    if note.section not in known:
        raise InvalidInputError(f"This page has no section “{note.section}”.", "section")
    if len(note.words) > LONGEST:
        message = f"A note has at most {LONGEST:,} characters; this has {{}}."
        raise InvalidInputError(message.format(f"{len(note.words):,}"), "words")
    store.write(desk.db, desk.learner.id, note, desk.now)
    places = places_of(found, [note])
    if noted.beside:
        return _beside(desk.request, found, next(p for p in places if p.note == note))
    return render_fragment_or_redirect(
        desk.request,
        "notes/_note.html",
        otherwise=f"/concepts/{found.slug}/notes#n-{note.section}",
        topic=found,
        longest=LONGEST,
        place=next(p for p in places if p.note.section == note.section),
        kept=True,
    )
