"""GET the statistics of all questions and of one; try one without recording it."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from sqlmodel import Session

from app.authoring import bench, store
from app.authoring.course.authored import AuthoredLibrary
from app.authoring.course.reviews import reviews_due
from app.authoring.forms import StatisticsTableForm, TableAsked
from app.authoring.listing import lines_around
from app.authoring.mending import guess_of, reasons
from app.authoring.states import states_of, typed
from app.authoring.survey import BankStatistics, StatisticsCache
from app.authoring.tasks import tasks_of, unfinished
from app.authoring.trying import address_of, open_question, try_response
from app.authoring.wordings import (
    VariantRow,
    editions,
    one_of_each,
    option_rows,
    sample,
    seen_as,
)
from app.authors.current import AuthorRoute
from app.content.live.library import Library
from app.content.numbers.expressions import ExpressionError
from app.db.engine import DbSession
from app.drawings.option_shares import draw_curves
from app.learners.current import CurrentLearner, LearnerProfile
from app.learners.desk import Reader
from app.questions.asking import OpenQuestion
from app.questions.model import Question
from app.questions.variants import all_variants, combinations, draw_variant
from app.quiz.forms import AskedFor, Posted, Submission
from app.web.course import find_question
from app.web.render import is_htmx_request, render_page
from app.web.words import format_age

router = APIRouter(route_class=AuthorRoute)
_ROWS = 50  # of the table on one page; the CSV has all
_FALLING = {"count", "sd", "guess"}  # what one wants the most of first


async def read_item(item: str, library: AuthoredLibrary) -> Question:
    """The question of the address; raises NotFound."""
    return find_question(library, item)


@dataclasses.dataclass(frozen=True, slots=True)
class TrialAttempt:
    """A question, and the answer that the author tries."""

    question: Question
    sent: Submission


Item = Annotated[Question, Depends(read_item)]


async def read_survey(request: Request) -> BankStatistics | None:
    """The newest statistics; asked before the database is, for they may be awaited."""
    surveyor: StatisticsCache = request.app.state.surveyors[request.state.course]
    return await surveyor.newest()


async def read_trial(question: Item, sent: AskedFor) -> TrialAttempt:
    """The question of the address, and what is tried with it."""
    return TrialAttempt(question, sent)


Surveyed = Annotated[BankStatistics | None, Depends(read_survey)]
Tried = Annotated[TrialAttempt, Depends(read_trial)]


@router.get("/questions")
def table(survey: Surveyed, desk: Reader, wanted: TableAsked) -> Response:
    """The statistics of the bank: a table, what to mend first, the mock exams."""
    if survey is None:
        return _being_computed(desk.request, desk.learner, wanted)
    rows = _rows(desk.request, desk.library, desk.db)
    by, falling = _order(wanted.sort)
    rows = bench.arranged(rows, by, falling=falling)
    if wanted.format == "csv":
        return _csv(bench.as_csv(rows), "questions.csv")
    if wanted.format == "exams-csv":
        return _csv(bench.exams_as_csv(survey.exams), "exams.csv")
    mends = bench.mends_of(desk.library, rows, survey.forgotten)
    parts = _parts(rows, {mend.item for mend in mends})
    chosen = wanted.show or ("look" if parts["look"] else "answered")
    return desk.page(
        "authoring/questions.html",
        library=desk.library,
        mends=mends,
        why={m.item: m.reasons[0].words for m in mends},
        parts={name: len(part) for name, part in parts.items()},
        rows=parts[chosen][wanted.start :][:_ROWS],
        start=wanted.start,
        most=_ROWS,
        shown=chosen,
        sort=(by, falling),
        columns=bench.COLUMNS,
        falling=_FALLING,
        exams=survey.exams,
        age=format_age(survey.at, desk.request.app.state.clock()),
    )


@router.get("/mend")
def mend(survey: Surveyed, desk: Reader) -> HTMLResponse:
    """Check, statistics, reports and reviews due in one order, the worst first."""
    rows = _rows(desk.request, desk.library, desk.db)
    mends = bench.mends_of(desk.library, rows, survey.forgotten if survey else ())
    return desk.page(
        "authoring/mend.html",
        tasks=tasks_of(desk.library.problems, mends, reviews_due(desk.library, desk.now.date())),
        most=_ROWS,
        outdated=desk.library.outdated,
        computed=survey is not None,
        unfinished=unfinished(desk.library),
    )


@router.get("/questions/{item}")  # noqa: FAST003 - in Item
def show(
    request: Request,
    survey: Surveyed,
    library: AuthoredLibrary,
    learner: CurrentLearner,
    db: DbSession,
    tried: Tried,
) -> HTMLResponse:
    """One question: in every state, with all that was answered to it."""
    question, sent = tried.question, tried.sent
    open_ = not sent.raw or sent.form.more or sent.form.move
    seen = open_question(question, sent) if open_ else try_response(db, library, question, sent)
    variant = draw_variant(question, sent.form.seed or 0)
    place = question.place
    folder = request.state.live.folder
    return render_page(
        request,
        "authoring/question.html",
        learner=learner,
        library=library,
        question=question,
        topic=library.topics.get(question.topic),
        address=address_of(question),
        seed=variant.seed,
        asked=seen if isinstance(seen, OpenQuestion) else None,
        outcome=None if isinstance(seen, OpenQuestion) else seen,
        states=states_of(variant),
        given=dict(sent.raw) if not open_ else {},
        query=_query,
        lines=lines_around(folder, place.path, place.line, 14)[-15:],
        problems=[p for p in library.problems if p.item == question.id],
        outdated=place.path in library.outdated,
        seen_as=seen_as(variant),
        samples=_samples(question),
        all_samples=combinations(question.computed) if question.computed else 0,
        reports=store.reports(db, learner.course, settled=True, item=question.id),
        **_measured(db, question, survey),
    )


@router.get("/questions/{item}/form")  # noqa: FAST003 - in Item
def form(request: Request, question: Item, sent: AskedFor) -> HTMLResponse:
    """The open question as a fragment: another hint, a step moved, another try."""
    return render_page(request, "quiz/_question.html", asked=open_question(question, sent))


@router.post("/questions/{item}/attempts")  # noqa: FAST003 - in Item
def attempt(
    request: Request,
    library: AuthoredLibrary,
    db: DbSession,
    question: Item,
    sent: Posted,
) -> Response:
    """Judge an answer of the author; nothing is kept, so no statistics suffer."""
    if not is_htmx_request(request):
        where = f"{address_of(question)}{_query(sent.raw, sent.form.seed or 0)}"
        return RedirectResponse(where, 303)
    seen = try_response(db, library, question, sent)
    if isinstance(seen, OpenQuestion):
        status = 422 if seen.refused else 200
        return render_page(request, "quiz/_question.html", status=status, asked=seen)
    return render_page(request, "quiz/_verdict.html", outcome=seen)


def _being_computed(
    request: Request, learner: LearnerProfile, wanted: StatisticsTableForm
) -> Response:
    """Said until the first statistics are there; the page looks again."""
    if wanted.format == "html":
        return render_page(request, "authoring/computing.html", learner=learner)
    words = "The statistics are being computed. Try again in a few seconds.\n"
    return PlainTextResponse(words, 503, headers={"retry-after": "5"})


def _measured(db: DbSession, question: Question, survey: BankStatistics | None) -> dict[str, Any]:
    answers = survey.answers.get(question.id, ()) if survey else ()
    found = survey.found if survey else {}
    same = survey.stands if survey else {}
    now = found.get((question.id, question.revision))
    interval, curves = bench.closer_look(question, answers, survey.earned if survey else {})
    return {
        "computed": survey is not None,
        "mended": survey.mended.get(question.id, 0) if survey else 0,
        "discrimination_interval": interval,
        "curves": draw_curves(curves) if curves else "",
        "found": now,
        "guess": guess_of(question),
        "why": sorted(reasons(question, now), key=lambda reason: -reason.weight),
        "options": option_rows(question, now),
        "editions": editions(
            question,
            one_of_each(question, store.wordings(db, question.id), same),
            answers,
            found,
        ),
    }


def _samples(question: Question) -> list[VariantRow]:
    """All variants of a computed question, as far as they have an answer."""
    if question.computed is None:
        return []
    made = []
    drawn = all_variants(question)
    while True:
        try:
            made.append(sample(next(drawn)))
        except (StopIteration, ExpressionError):
            return made  # the check names the combination that has no answer


def _order(sort: str) -> tuple[str, bool]:
    falling = sort.startswith("-")
    by = sort.removeprefix("-")
    return (by if by in bench.SORTS else "discrimination"), falling


def _rows(request: Request, library: Library, db: Session) -> list[bench.QuestionStatisticsRow]:
    """Every question with its statistics and the reports about it."""
    course: str = request.state.course
    surveyor: StatisticsCache = request.app.state.surveyors[course]
    return bench.with_reports(surveyor.rows(library), store.reports(db, course))


def _parts(
    rows: Sequence[bench.QuestionStatisticsRow], looked: set[str]
) -> dict[str, list[bench.QuestionStatisticsRow]]:
    return {
        "look": [r for r in rows if r.question.id in looked],
        "answered": [r for r in rows if r.found],
        "all": list(rows),
    }


def _csv(text: str, name: str) -> Response:
    return Response(
        "\ufeff" + text,  # Excel takes UTF-8 without it for something else
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def _query(raw: Any, seed: int) -> str:
    pairs = [*typed(raw), *([("seed", str(seed))] if seed else [])]
    return f"?{urlencode(pairs)}" if pairs else ""
