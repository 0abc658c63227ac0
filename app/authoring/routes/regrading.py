"""GET what the mended key of a question changes; POST that it is to count."""

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from app.authoring.forms import Confirmed, RegradingAsked
from app.authoring.regrading import confirm, regrading_of
from app.authoring.trying import address_of
from app.authors.current import AuthorRoute, CurrentAuthor
from app.db.engine import read_only_session
from app.db.writer import Turn
from app.errors import ConflictError
from app.learners.desk import Reader
from app.questions import kinds
from app.questions.asking import title_of
from app.questions.regrading import RegradeRefusal
from app.web.clock import Now
from app.web.course import CurrentLibrary, find_question

router = APIRouter(route_class=AuthorRoute)


@router.get("/questions/{item}/regrading")
def show(desk: Reader, item: str, wanted: RegradingAsked) -> HTMLResponse:
    """What would change for whom, where the answers given before are graded again."""
    question = find_question(desk.library, item)
    return desk.page(
        "authoring/regrading.html",
        question=question,
        address=address_of(question),
        title=title_of(question),
        right=kinds.type_of(question).right_words(question.answer),
        regrading=regrading_of(desk.db, desk.learner.course, question, reworded=wanted.reworded),
        wanted=wanted,
        other_words=RegradeRefusal.WORDS,
    )


@router.post("/questions/{item}/regrading")
async def grade_again(
    request: Request,
    item: str,
    library: CurrentLibrary,
    author: CurrentAuthor,
    now: Now,
    wanted: Confirmed,
) -> RedirectResponse:
    """Let the key of now count for the answers given before.

    They are graded before the turn to write begins: that may take longer than others
    who write can wait.
    """
    question = find_question(library, item)
    if wanted.revision != question.revision:
        raise ConflictError(
            "The question was edited while this page was open. Nothing was graded.",
            "Look again at what its key changes now.",
        )
    course: str = request.state.course
    async with read_only_session(request) as db:
        regrading = await run_in_threadpool(
            regrading_of, db, course, question, reworded=wanted.reworded
        )
    turn: Turn = request.app.state.turn
    async with turn() as db:
        count = await run_in_threadpool(confirm, db, course, regrading, author.id, now)
    where = f"/authoring/questions/{quote(item)}/regrading"
    more = "&reworded=true" if wanted.reworded else ""
    return RedirectResponse(f"{where}?graded={count}{more}", 303)
