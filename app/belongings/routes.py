"""GET everything as an archive; GET and POST the erasure of everything."""

from typing import IO, Annotated

from fastapi import APIRouter, Form, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session
from starlette.background import BackgroundTask

from app.belongings import store
from app.belongings.archive import write_archive
from app.db.engine import DbSession
from app.db.writer import Turn
from app.learners.current import (
    CurrentLearner,
    LearnerProfile,
    find_learner_at_once,
)
from app.learners.desk import RequestContext, run_reading
from app.learners.downloads import Downloads
from app.learners.store import digests_of
from app.upkeep.rotation import MONTHS
from app.web.clock import Now
from app.web.cookies import forget_line
from app.web.render import render_page
from app.web.visitor import FORGET_KEPT

router = APIRouter(prefix="/settings", include_in_schema=False)
WORD = "erase"


@router.get("/export")
async def export(request: Request, now: Now) -> Response:
    learner = await find_learner_at_once(request)
    downloads: Downloads = request.app.state.downloads

    def write(db: Session, file: IO[bytes]) -> None:
        write_archive(db, learner.home, now, file)

    name = f"headroom-{learner.study_day(now).isoformat()}.zip"
    return await downloads.make(request, learner.person, name, write)


@router.get("/erasure")
def ask_before(request: Request, learner: CurrentLearner, db: DbSession) -> HTMLResponse:
    return _question(request, learner, db)


@router.post("/erasure")
async def erase(request: Request, word: Annotated[str, Form(max_length=100)] = "") -> Response:
    """Erase everything, part by part, so that others can write meanwhile."""
    if word.strip().casefold() != WORD:
        return await run_reading(request, lambda desk: _refuse(desk, word))
    home = await run_reading(request, lambda desk: desk.learner.home)
    turn: Turn = request.app.state.turn
    more = bool(home)
    while more:
        async with turn() as db:
            more = await run_in_threadpool(store.erase_part, db, home)
    async with turn() as db:
        sessions = digests_of(db, home) | {request.state.visitor.digest}
        await run_in_threadpool(store.erase, db, home)
    request.app.state.pages.forget(sessions)
    response = RedirectResponse("/settings/erased", 303, headers=FORGET_KEPT)
    # It runs when the transaction was committed, and the answer does not wait for it.
    response.background = BackgroundTask(request.app.state.log_truncation.request)
    response.raw_headers.append((b"set-cookie", forget_line()))
    return response


def _refuse(desk: RequestContext, word: str) -> HTMLResponse:
    message = f"Type “{WORD}” to go on; “{word.strip()}” erases nothing."
    problems = [{"field": "word", "message": message}]
    return _question(desk.request, desk.learner, desk.db, word, problems)


@router.get("/erased")
def erased(request: Request, learner: CurrentLearner) -> HTMLResponse:
    return render_page(
        request,
        "belongings/erased.html",
        learner=learner,
        backup_months=MONTHS,
    )


def _question(
    request: Request,
    learner: LearnerProfile,
    db: DbSession,
    typed: str = "",
    problems: list[dict[str, str]] | None = None,
) -> HTMLResponse:
    return render_page(
        request,
        "belongings/erasure.html",
        status=422 if problems else 200,
        learner=learner,
        counts=store.count(db, learner.home),
        sitting=store.is_sitting(db, learner.home),
        word=WORD,
        backup_months=MONTHS,
        typed=typed,
        problems=problems or [],
    )
