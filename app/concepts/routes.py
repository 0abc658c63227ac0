"""GET the course, a page, the glossary, the sources; POST what was read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from app.concepts import store
from app.concepts.outline import outline
from app.concepts.sheets import Sheet, Sheets
from app.concepts.terms import entries
from app.db.engine import DbSession
from app.errors import NotFound, Problem
from app.learners.current import CurrentLearner, EnrolledLearner
from app.web.clock import Now
from app.web.keeping import keep
from app.web.render import page, reply
from app.web.shelf import CurrentLibrary, find_topic

router = APIRouter(include_in_schema=False)
_PICTURES = {".svg", ".png", ".jpg", ".jpeg", ".webp", ".gif"}


async def read_sheet(request: Request, topic: str, library: CurrentLibrary) -> Sheet:
    """The page of the address; raises NotFound. `async`: a thread would cost more."""
    sheets: Sheets = request.app.state.sheets
    return sheets.of(library, find_topic(library, topic))


@router.get("/course")
def course(
    request: Request, library: CurrentLibrary, learner: CurrentLearner, db: DbSession
) -> HTMLResponse:
    keep(request)
    return page(
        request,
        "concepts/index.html",
        learner=learner,
        syllabus=library.syllabus,
        outline=outline(library),
        read=store.read_by_topic(db, learner.id),
        answered=store.answered_by_topic(db, learner.id),
    )


@router.get("/concepts/{topic}")
def show(
    request: Request,
    sheet: Annotated[Sheet, Depends(read_sheet)],
    learner: CurrentLearner,
    db: DbSession,
) -> HTMLResponse:
    keep(request)
    read = store.sections_read(db, learner.id, sheet.topic.slug)
    return page(
        request,
        "concepts/show.html",
        learner=learner,
        sheet=sheet,
        topic=sheet.topic,
        read=read,
        minutes=_minutes(sheet, read),
    )


@router.post("/concepts/{topic}/readings")
def add_reading(
    request: Request,
    sheet: Annotated[Sheet, Depends(read_sheet)],
    learner: EnrolledLearner,
    db: DbSession,
    now: Now,
    section: Annotated[str, Form()] = "",
) -> Response:
    slug = sheet.topic.slug
    anchors = [s.anchor for s in sheet.named] or [""]
    if section and section not in anchors:
        raise Problem(f"This page has no section “{section}”.", "section")
    passed = [section] if section else anchors
    store.record_reading(db, learner.id, slug, passed, now)
    db.flush()
    read = store.sections_read(db, learner.id, slug)
    return reply(
        request,
        "concepts/_toc.html",
        otherwise=f"/concepts/{slug}#end",
        sheet=sheet,
        topic=sheet.topic,
        read=read,
        minutes=_minutes(sheet, read),
    )


@router.get("/concepts/{topic}/files/{name}")
def picture(
    request: Request, topic: str, name: str, library: CurrentLibrary
) -> FileResponse:
    """A picture that lies beside the page."""
    slug = find_topic(library, topic).slug
    folder = (request.app.state.library.folder / "topics" / slug).resolve()
    file = (folder / name).resolve()
    if file.parent != folder or file.suffix not in _PICTURES or not file.is_file():
        raise NotFound(f"There is no picture “{name}”.")
    return FileResponse(file)


@router.get("/glossary")
def glossary(
    request: Request, library: CurrentLibrary, learner: CurrentLearner
) -> HTMLResponse:
    keep(request)
    return page(
        request, "concepts/glossary.html", learner=learner, terms=entries(library)
    )


@router.get("/sources")
def sources(
    request: Request, library: CurrentLibrary, learner: CurrentLearner
) -> HTMLResponse:
    keep(request)
    cited = {
        key: [t for t in library.topics.values() if key in t.sources]
        for key in library.sources
    }
    return page(
        request,
        "concepts/sources.html",
        learner=learner,
        sources=sorted(library.sources.values(), key=lambda s: s.title.casefold()),
        cited=cited,
    )


def _minutes(sheet: Sheet, read: frozenset[str]) -> int:
    """Minutes of the page that lie behind the reader, rounded."""
    opening = sum(s.minutes for s in sheet.sections if not s.anchor)
    behind = sum(s.minutes for s in sheet.sections if s.anchor and s.anchor in read)
    return round(behind + (opening if read else 0))
