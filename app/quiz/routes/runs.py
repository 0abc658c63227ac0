"""Practice runs: begun, worked through question by question, summed up."""

import dataclasses

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import ConflictError, NotFoundError
from app.learners.desk import Reader, RequestContext, run_reading, run_writing
from app.mastery.bank import domain_of
from app.questions.asking import new_token, title_of
from app.quiz import store
from app.quiz.forms import AskedFor, PracticeForm, RunWished, ScoreWished, Submission
from app.quiz.placement import draw_placement
from app.quiz.practice import PracticeRequest, select_questions
from app.quiz.showing import (
    excluded_questions,
    frame_of,
    once_more,
    open_question,
    question_page,
    recorded_feedback,
    refuse_during_exam,
)
from app.quiz.store import NewPracticeRun, PracticeRunState
from app.quiz.weakest import weakest_of
from app.web.addresses import LAST_ROW, RowNumber
from app.web.cookies import YEAR

router = APIRouter()
_NOTHING = {
    "missed": "Nothing is left to retry: every last answer was right.",
    "retry": "Every question of that run was answered rightly.",
    "flagged": "No question is flagged.",
    "topic": "This topic has no questions.",
    "objective": "No question serves this objective yet.",
}


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementResult:
    """What a placement test showed of a domain."""

    title: str
    count: int
    right: int


@router.post("/runs")
async def begin(request: Request, wanted: RunWished) -> Response:
    """Choose the questions of a run and go to the first.

    They are chosen before the write transaction: everything that was ever answered is
    looked at for it.
    """
    items = await run_reading(request, lambda desk: _choose(desk, wanted.wish))
    run = await run_writing(request, lambda desk: _begin(desk, wanted, items))
    return RedirectResponse(f"/quiz/runs/{run}", 303)


def _choose(desk: RequestContext, wish: PracticeRequest) -> tuple[str, ...]:
    """The questions of a run; raises Conflict where there are none."""
    items = _missed_of(desk, wish) if wish.mode == "retry" else _chosen(desk, wish)
    if not items:
        words = _NOTHING.get(wish.mode, "This course has no questions yet.")
        raise ConflictError(words, "Choose another way to practice.")
    return items


def _begin(desk: RequestContext, wanted: PracticeForm, items: tuple[str, ...]) -> int:
    wish = wanted.wish
    run = NewPracticeRun(wanted.token or new_token(), wish.mode, wish.scope, items)
    return store.begin_run(desk.db, desk.learner.id, run, desk.now)


@router.post("/score")
def score(wanted: ScoreWished) -> Response:
    """Show the running score, or keep it out of sight."""
    answer = RedirectResponse(wanted.back, 303)
    value = "hidden" if wanted.hidden else "shown"
    answer.set_cookie("score", value, max_age=YEAR, samesite="lax", httponly=True)
    return answer


@router.get("/runs/{run}")
def resume(desk: Reader, run: RowNumber) -> Response:
    """Go to the first open question of a run."""
    found = _find(desk, run)
    return RedirectResponse(frame_of(desk, found, 0).onward, 303)


@router.get("/runs/{run}/result")
def result(desk: Reader, run: RowNumber) -> HTMLResponse:
    """The run summed up."""
    found = _find(desk, run)
    rows = [
        {
            "place": place,
            "words": title_of(desk.library.questions[item]),
            "score": found.answers[item][1] if item in found.answers else None,
        }
        for place, item in enumerate(found.items, 1)
    ]
    return desk.page(
        "quiz/result.html",
        run=frame_of(desk, found, 0),
        rows=rows,
        placed=_placed(desk, found) if found.mode == "placement" else None,
        pick=f"{found.mode}:{found.scope}",
        token=new_token(),
    )


def _placed(desk: RequestContext, run: PracticeRunState) -> list[PlacementResult]:
    """A placement test by domain."""
    there = domain_of(desk.library)
    home = {i: desk.library.questions[i].home(there) for i in run.items}
    return [
        PlacementResult(
            domain.title,
            sum(home[item] == domain.number for item in run.items),
            sum(
                home[item] == domain.number and score >= 1
                for item, (_, score) in run.answers.items()
                if item in home
            ),
        )
        for domain in desk.library.syllabus.domains
    ]


@router.get("/runs/{run}/{place}")
def show(desk: Reader, run: RowNumber, place: RowNumber, sent: AskedFor) -> HTMLResponse:
    """A question of a run: open, or with the verdict of its answer."""
    found = _find(desk, run)
    if not 1 <= place <= len(found.items):
        raise NotFoundError(f"This run has questions 1 to {len(found.items)}.")
    frame = frame_of(desk, found, place)
    question = desk.library.questions[found.items[place - 1]]
    kind = "placement" if found.mode == "placement" else "practice"
    form = sent.form.model_copy(update={"run": found.id, "context": kind})
    sent = Submission(form, sent.raw)
    refuse_during_exam(desk, question)
    answered = found.answers.get(question.id)
    if answered is None:
        asked = open_question(desk, question, sent)
        return question_page(desk, dataclasses.replace(asked, place=place), frame)
    outcome = recorded_feedback(
        desk, store.load_attempt(desk.db, desk.learner.id, answered[0]), frame, sent
    )
    near = once_more(desk, outcome, sent)
    shown = dataclasses.replace(near, place=place) if near else outcome
    return question_page(desk, shown, frame, reported=sent.form.reported)


def _find(desk: RequestContext, number: int) -> PracticeRunState:
    """The run with the questions that the course still has."""
    run = store.find_run(desk.db, desk.learner.id, number)
    left = tuple(item for item in run.items if item in desk.library.questions)
    if not left:
        raise NotFoundError("The questions of this run are no longer in the course.")
    return dataclasses.replace(run, items=left)


def _chosen(desk: RequestContext, wish: PracticeRequest) -> tuple[str, ...]:
    hidden = excluded_questions(desk)
    questions = [q for q in desk.library.questions.values() if q.id not in hidden]
    past = store.history(desk.db, desk.learner.id)
    seed = f"{desk.learner.key}:{desk.now.timestamp()}"
    if wish.mode == "placement":
        return draw_placement(questions, desk.library.syllabus.domains, past, seed)
    if wish.mode == "flagged":
        marked = store.flagged(desk.db, desk.learner.id)
        questions = [q for q in questions if q.id in marked]
    order = weakest_of(desk) if wish.mode == "weakest" else ()
    weakest = [weak.standing.objective.number for weak in order]
    return select_questions(questions, past, wish, seed, weakest)


def _missed_of(desk: RequestContext, wish: PracticeRequest) -> tuple[str, ...]:
    """The questions of an earlier run that were not answered rightly."""
    plain = wish.scope.isascii() and wish.scope.isdigit()
    if not plain or int(wish.scope) > LAST_ROW:
        raise NotFoundError(f"There is no practice run “{wish.scope}” of yours.")
    run = _find(desk, int(wish.scope))
    hidden = excluded_questions(desk)
    return tuple(
        item for item in run.items if item not in hidden and run.answers.get(item, (0, 0.0))[1] < 1
    )
