"""GET the problems of the course and the reports; POST that a report was settled."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from app.authoring import store
from app.authoring.forms import ListingAsked
from app.authoring.listing import ProblemFilter, lines_around, listing, name_of, topic_of
from app.authors.current import AuthorRoute, CurrentAuthor
from app.authors.store import AuditRecord, record
from app.db.engine import DbSession
from app.learners.desk import Reader
from app.web.addresses import RowNumber
from app.web.clock import Now
from app.web.course import CurrentLibrary

router = APIRouter(route_class=AuthorRoute)
_MOST = 300


@router.get("")
def index(desk: Reader, wanted: ListingAsked) -> HTMLResponse:
    """Everything wrong in the content, with the source of one problem."""
    found = listing(desk.library, ProblemFilter(wanted.severity, wanted.file), wanted.at)
    chosen = found.chosen
    folder = desk.request.state.live.folder
    return desk.page(
        "authoring/index.html",
        library=desk.library,
        found=found,
        shown=found.problems[:_MOST],
        chosen=chosen,
        lines=lines_around(folder, chosen.path, chosen.line) if chosen else [],
        wanted=wanted,
        name_of=name_of,
        topic_of=topic_of,
        reports=store.reports(desk.db, desk.learner.course),
    )


@router.get("/changes")
async def changes(library: CurrentLibrary) -> PlainTextResponse:
    """The version of the course: an open page asks, and loads itself anew."""
    return PlainTextResponse(library.version, headers={"cache-control": "no-store"})


@router.post("/reports/{report}/settlement")
def settle(report: RowNumber, author: CurrentAuthor, db: DbSession, now: Now) -> RedirectResponse:
    """Take a report off the list; it stays with its question."""
    store.settle(db, report, now)
    record(db, AuditRecord(now, author.id, "report settled", f"report {report}"))
    return RedirectResponse("/authoring#reports", 303)
