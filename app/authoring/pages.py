"""Author routes: problems, statistics, question, regrading, guide, audit log."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from pydantic import BaseModel, Field
from sqlmodel import Session

from app.accounts import author_store
from app.accounts.author_access import AuthorRoute, CurrentAuthor, forget_author_cookie
from app.accounts.author_store import AuditRecord, record_audit_entry
from app.accounts.current_learner import CurrentLearner, LearnerProfile, Reader
from app.authoring import statistics_tables, store
from app.authoring.course_report import (
    AuthoredLibrary,
    compute_coverage,
    count_disjoint_papers,
    coverage_column_titles,
    measure_answer_cues,
    reviews_due,
)
from app.authoring.preview import (
    open_question,
    preview_url,
    response_pairs,
    sample_responses,
    try_response,
)
from app.authoring.problem_list import (
    ProblemFilter,
    build_problem_list,
    lines_around,
    problem_key,
    problems_of_topic,
    read_authoring_guide,
    topic_of_path,
)
from app.authoring.regrading import confirm_regrade, preview_regrade
from app.authoring.statistics_cache import BankStatistics, StatisticsCache
from app.authoring.statistics_tables import (
    VariantRow,
    displayed_letters,
    option_rows,
    unique_wordings,
    variant_row,
    wording_statistics,
)
from app.authoring.to_do import (
    blind_guess_percent,
    build_author_tasks,
    list_unfinished,
    statistics_reasons,
)
from app.clock import Now
from app.content.library import Library
from app.database.engine import DbSession, read_only_session
from app.database.write_queue import Turn
from app.errors import ConflictError, NotFoundError
from app.lessons.page_renderer import RenderedPage, RenderedPageCache
from app.markup.expressions import ExpressionError
from app.questions import types
from app.questions.grading import RegradeRefusal
from app.questions.model import Question
from app.questions.question_form import OpenQuestion, new_token, question_title
from app.questions.variants import all_variants, count_combinations, draw_variant
from app.quiz.forms import AskedFor, Posted, QuestionSubmission
from app.web.dependencies import CurrentLibrary, RowNumber, find_question
from app.web.formatting import format_age
from app.web.render import is_htmx_request, render_page
from app.widgets.line_charts import draw_curves

router = APIRouter(route_class=AuthorRoute)
_MAX_AUDIT_ROWS = 200


@router.get("/audit")
def show_audit_log(
    request: Request,
    learner: CurrentLearner,
    author: CurrentAuthor,
    db: DbSession,
    now: Now,
) -> HTMLResponse:
    """What authors did, newest first, and the signed-in browsers."""
    return render_page(
        request,
        "authoring/audit.html",
        learner=learner,
        author=author,
        deeds=author_store.list_audit_records(db, _MAX_AUDIT_ROWS),
        most=_MAX_AUDIT_ROWS,
        sessions=author_store.list_author_sessions(db, now),
    )


@router.post("/departure")
def sign_author_out(
    request: Request, author: CurrentAuthor, db: DbSession, now: Now
) -> RedirectResponse:
    """Sign this browser out of the author pages."""
    author_store.revoke_author_sessions(db, [author.id], author.id, now)
    answer = RedirectResponse("/", 303)
    forget_author_cookie(request, answer)
    return answer


@router.api_route("/{anything:path}", methods=["GET", "POST"])
def unknown_author_page(anything: str) -> HTMLResponse:
    """Status 404 for unknown author URLs. Only authors get this answer."""
    raise NotFoundError(f"There is nothing at /authoring/{anything[:80]}.")


pages_router = APIRouter(route_class=AuthorRoute)


@pages_router.get("/pages/{topic}")
def preview_topic(
    request: Request, topic: str, library: AuthoredLibrary, learner: CurrentLearner
) -> HTMLResponse:
    """The preview of a page; one that cannot be parsed yet shows only its problems."""
    problems = problems_of_topic(library.problems, topic)
    known = library.topics.get(topic)
    if known is None and not problems:
        raise NotFoundError(f"There is no topic “{topic}”.")
    # Drafts must never enter the page cache of the learners.
    sheets = RenderedPageCache(request.app.state.templates)
    sheet = sheets.of(library, known) if known else None
    questions = [library.questions[i] for i in known.questions] if known else []
    return render_page(
        request,
        "authoring/page.html",
        learner=learner,
        slug=topic,
        topic=known,
        sheet=sheet,
        library=library,
        problems=problems,
        outdated=known is not None and known.place.path in library.outdated,
        name_of=problem_key,
        asked=_open_page_questions(library, sheet) if sheet else {},
        questions=[(q, question_title(q)) for q in questions],
        cards=[library.cards[i] for i in known.cards] if known else [],
    )


def _open_page_questions(library: Library, sheet: RenderedPage) -> dict[str, OpenQuestion]:
    """Return the questions of the page, with forms that try answers without recording them."""
    return {
        item: OpenQuestion(
            draw_variant(library.questions[item], 0),
            new_token(),
            "page",
            back=f"/authoring/pages/{sheet.topic.slug}",
            at=preview_url(library.questions[item]),
        )
        for item in sheet.asked
        if item in library.questions
    }


class ProblemFilterForm(BaseModel):
    """Which problems to show, and which one is selected."""

    severity: Literal["", "error", "warning"] = ""
    file: str = Field("", max_length=200)
    at: str = Field("", max_length=300)


class StatisticsTableForm(BaseModel):
    """Which questions to show, the sort order (a leading − is descending), and the format.

    `start` is the index of the first row shown, from 0.
    """

    show: Literal["", "look", "answered", "all"] = ""
    sort: str = Field("discrimination", max_length=20)
    start: int = Field(0, ge=0, le=100_000)
    format: Literal["html", "csv", "exams-csv"] = "html"


class RegradePreviewForm(BaseModel):
    """Which answers to regrade; `graded` says how many were just regraded."""

    reworded: bool = False
    graded: int = Field(0, ge=0, le=2**31)


class RegradeConfirmForm(BaseModel):
    """Confirms regrading by the revision that the author saw."""

    reworded: bool = False
    revision: str = Field(max_length=64)


ListingAsked = Annotated[ProblemFilterForm, Query()]
TableAsked = Annotated[StatisticsTableForm, Query()]
RegradingAsked = Annotated[RegradePreviewForm, Query()]
Confirmed = Annotated[RegradeConfirmForm, Form()]

problems_router = APIRouter(route_class=AuthorRoute)
_MAX_PROBLEMS = 300


@problems_router.get("")
def show_problem_list(desk: Reader, wanted: ListingAsked) -> HTMLResponse:
    """The problems in the content, with the source of the selected one."""
    found = build_problem_list(desk.library, ProblemFilter(wanted.severity, wanted.file), wanted.at)
    chosen = found.chosen
    folder = desk.request.state.live.folder
    return desk.page(
        "authoring/index.html",
        library=desk.library,
        found=found,
        shown=found.problems[:_MAX_PROBLEMS],
        chosen=chosen,
        lines=lines_around(folder, chosen.path, chosen.line) if chosen else [],
        wanted=wanted,
        name_of=problem_key,
        topic_of=topic_of_path,
        reports=store.list_learner_reports(desk.db, desk.learner.course),
    )


@problems_router.get("/changes")
async def course_version(library: CurrentLibrary) -> PlainTextResponse:
    """The version of the course. An open page polls it and reloads itself."""
    return PlainTextResponse(library.version, headers={"cache-control": "no-store"})


@problems_router.post("/reports/{report}/settlement")
def settle_report(
    report: RowNumber, author: CurrentAuthor, db: DbSession, now: Now
) -> RedirectResponse:
    """Mark a report as settled; it stays with its question."""
    store.settle_report(db, report, now)
    record_audit_entry(db, AuditRecord(now, author.id, "report settled", f"report {report}"))
    return RedirectResponse("/authoring#reports", 303)


questions_router = APIRouter(route_class=AuthorRoute)
_ROWS = 50  # rows of one page of the table; the CSV has all
_FALLING = {"count", "sd", "guess"}  # columns sorted descending first


async def read_item(item: str, library: AuthoredLibrary) -> Question:
    """Return the question in the URL; raises NotFoundError."""
    return find_question(library, item)


@dataclasses.dataclass(frozen=True, slots=True)
class TrialAttempt:
    """A question, and the response that the author tries."""

    question: Question
    sent: QuestionSubmission


Item = Annotated[Question, Depends(read_item)]


async def read_survey(request: Request) -> BankStatistics | None:
    """Return the newest statistics. Awaits them before a database session is opened."""
    surveyor: StatisticsCache = request.app.state.surveyors[request.state.course]
    return await surveyor.newest()


async def read_trial(question: Item, sent: AskedFor) -> TrialAttempt:
    """Return the question in the URL, and the response to try."""
    return TrialAttempt(question, sent)


Surveyed = Annotated[BankStatistics | None, Depends(read_survey)]
Tried = Annotated[TrialAttempt, Depends(read_trial)]


@questions_router.get("/questions")
def show_statistics(survey: Surveyed, desk: Reader, wanted: TableAsked) -> Response:
    """The statistics of the bank: the table, what to fix first, the mock exams."""
    if survey is None:
        return _render_waiting_page(desk.request, desk.learner, wanted)
    rows = _statistics_rows(desk.request, desk.library, desk.db)
    by, falling = _parse_sort_order(wanted.sort)
    rows = statistics_tables.sort_rows(rows, by, falling=falling)
    if wanted.format == "csv":
        return _csv_response(statistics_tables.format_csv(rows), "questions.csv")
    if wanted.format == "exams-csv":
        return _csv_response(statistics_tables.exams_as_csv(survey.exams), "exams.csv")
    mends = statistics_tables.items_to_fix(desk.library, rows, survey.forgotten)
    parts = _group_rows(rows, {mend.item for mend in mends})
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
        columns=statistics_tables.COLUMNS,
        falling=_FALLING,
        exams=survey.exams,
        age=format_age(survey.at, desk.request.app.state.clock()),
    )


@questions_router.get("/mend")
def show_to_do(survey: Surveyed, desk: Reader) -> HTMLResponse:
    """Problems, statistics, reports and overdue reviews in one list, worst first."""
    rows = _statistics_rows(desk.request, desk.library, desk.db)
    mends = statistics_tables.items_to_fix(desk.library, rows, survey.forgotten if survey else ())
    return desk.page(
        "authoring/mend.html",
        tasks=build_author_tasks(
            desk.library.problems, mends, reviews_due(desk.library, desk.now.date())
        ),
        most=_ROWS,
        outdated=desk.library.outdated,
        computed=survey is not None,
        unfinished=list_unfinished(desk.library),
    )


@questions_router.get("/questions/{item}")  # noqa: FAST003 - in Item
def show_question(
    request: Request,
    survey: Surveyed,
    library: AuthoredLibrary,
    learner: CurrentLearner,
    db: DbSession,
    tried: Tried,
) -> HTMLResponse:
    """One question in every state, with the statistics of its answers."""
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
        address=preview_url(question),
        seed=variant.seed,
        asked=seen if isinstance(seen, OpenQuestion) else None,
        outcome=None if isinstance(seen, OpenQuestion) else seen,
        states=sample_responses(variant),
        given=dict(sent.raw) if not open_ else {},
        query=_response_query,
        lines=lines_around(folder, place.path, place.line, 14)[-15:],
        problems=[p for p in library.problems if p.item == question.id],
        outdated=place.path in library.outdated,
        seen_as=displayed_letters(variant),
        samples=_sample_variants(question),
        all_samples=count_combinations(question.computed) if question.computed else 0,
        reports=store.list_learner_reports(db, learner.course, settled=True, item=question.id),
        **_measured_context(db, question, survey),
    )


@questions_router.get("/questions/{item}/form")  # noqa: FAST003 - in Item
def question_fragment(request: Request, question: Item, sent: AskedFor) -> HTMLResponse:
    """The unanswered question as a fragment: another hint, a step moved, another try."""
    return render_page(request, "quiz/_question.html", asked=open_question(question, sent))


@questions_router.post("/questions/{item}/attempts")  # noqa: FAST003 - in Item
def try_answer(
    request: Request,
    library: AuthoredLibrary,
    db: DbSession,
    question: Item,
    sent: Posted,
) -> Response:
    """Grade a response of the author; nothing is saved, so the statistics stay clean."""
    if not is_htmx_request(request):
        where = f"{preview_url(question)}{_response_query(sent.raw, sent.form.seed or 0)}"
        return RedirectResponse(where, 303)
    seen = try_response(db, library, question, sent)
    if isinstance(seen, OpenQuestion):
        status = 422 if seen.refused else 200
        return render_page(request, "quiz/_question.html", status=status, asked=seen)
    return render_page(request, "quiz/_verdict.html", outcome=seen)


def _render_waiting_page(
    request: Request, learner: LearnerProfile, wanted: StatisticsTableForm
) -> Response:
    """Shown until the first statistics are ready; the page reloads itself."""
    if wanted.format == "html":
        return render_page(request, "authoring/computing.html", learner=learner)
    words = "The statistics are being computed. Try again in a few seconds.\n"
    return PlainTextResponse(words, 503, headers={"retry-after": "5"})


def _measured_context(
    db: DbSession, question: Question, survey: BankStatistics | None
) -> dict[str, Any]:
    answers = survey.answers.get(question.id, ()) if survey else ()
    found = survey.found if survey else {}
    same = survey.stands if survey else {}
    now = found.get((question.id, question.revision))
    interval, curves = statistics_tables.add_detailed_statistics(
        question, answers, survey.earned if survey else {}
    )
    return {
        "computed": survey is not None,
        "mended": survey.mended.get(question.id, 0) if survey else 0,
        "discrimination_interval": interval,
        "curves": draw_curves(curves) if curves else "",
        "found": now,
        "guess": blind_guess_percent(question),
        "why": sorted(statistics_reasons(question, now), key=lambda reason: -reason.weight),
        "options": option_rows(question, now),
        "editions": wording_statistics(
            question,
            unique_wordings(question, store.list_seen_wordings(db, question.id), same),
            answers,
            found,
        ),
    }


def _sample_variants(question: Question) -> list[VariantRow]:
    """Return all variants of a computed question that have an answer."""
    if question.computed is None:
        return []
    made = []
    drawn = all_variants(question)
    while True:
        try:
            made.append(variant_row(next(drawn)))
        except (StopIteration, ExpressionError):
            return made  # the course check names the combination without an answer


def _parse_sort_order(sort: str) -> tuple[str, bool]:
    falling = sort.startswith("-")
    by = sort.removeprefix("-")
    return (by if by in statistics_tables.SORTS else "discrimination"), falling


def _statistics_rows(
    request: Request, library: Library, db: Session
) -> list[statistics_tables.QuestionStatisticsRow]:
    """Return every question with its statistics and the reports about it."""
    course: str = request.state.course
    surveyor: StatisticsCache = request.app.state.surveyors[course]
    return statistics_tables.add_report_counts(
        surveyor.rows(library), store.list_learner_reports(db, course)
    )


def _group_rows(
    rows: Sequence[statistics_tables.QuestionStatisticsRow], looked: set[str]
) -> dict[str, list[statistics_tables.QuestionStatisticsRow]]:
    return {
        "look": [r for r in rows if r.question.id in looked],
        "answered": [r for r in rows if r.found],
        "all": list(rows),
    }


def _csv_response(text: str, name: str) -> Response:
    return Response(
        "\ufeff" + text,  # without a byte order mark Excel does not read UTF-8
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def _response_query(raw: Any, seed: int) -> str:
    pairs = [*response_pairs(raw), *([("seed", str(seed))] if seed else [])]
    return f"?{urlencode(pairs)}" if pairs else ""


reference_router = APIRouter(route_class=AuthorRoute)


@reference_router.get("/coverage")
def coverage_page(
    request: Request, library: CurrentLibrary, learner: CurrentLearner, now: Now
) -> HTMLResponse:
    """What each objective has, and what the options of the bank give away."""
    return render_page(
        request,
        "authoring/coverage.html",
        learner=learner,
        heads=coverage_column_titles(),
        rows=compute_coverage(library),
        papers=count_disjoint_papers(library),
        cues=measure_answer_cues(library.questions.values()),
        due=reviews_due(library, now.date()),
    )


@reference_router.get("/help")
def help_page(request: Request, learner: CurrentLearner) -> HTMLResponse:
    """The content format, with every problem that the check can report."""
    try:
        found = read_authoring_guide()
    except OSError:
        hint = "See docs/authoring.md of the source."
        raise NotFoundError("The reference is not installed here.", hint) from None
    return render_page(request, "authoring/help.html", learner=learner, manual=found)


regrading_router = APIRouter(route_class=AuthorRoute)


@regrading_router.get("/questions/{item}/regrading")
def show_regrading(desk: Reader, item: str, wanted: RegradingAsked) -> HTMLResponse:
    """The changes if earlier answers were regraded."""
    question = find_question(desk.library, item)
    return desk.page(
        "authoring/regrading.html",
        question=question,
        address=preview_url(question),
        title=question_title(question),
        right=types.type_of(question).right_words(question.answer),
        regrading=preview_regrade(desk.db, desk.learner.course, question, reworded=wanted.reworded),
        wanted=wanted,
        other_words=RegradeRefusal.WORDS,
    )


@regrading_router.post("/questions/{item}/regrading")
async def grade_again(
    request: Request,
    item: str,
    library: CurrentLibrary,
    author: CurrentAuthor,
    now: Now,
    wanted: Confirmed,
) -> RedirectResponse:
    """Regrade earlier answers by the current key.

    They are graded before the write transaction starts, because that can take longer than other
    writers can wait.
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
            preview_regrade, db, course, question, reworded=wanted.reworded
        )
    turn: Turn = request.app.state.turn
    async with turn() as db:
        count = await run_in_threadpool(confirm_regrade, db, course, regrading, author.id, now)
    where = f"/authoring/questions/{quote(item)}/regrading"
    more = "&reworded=true" if wanted.reworded else ""
    return RedirectResponse(f"{where}?graded={count}{more}", 303)


authoring_router = APIRouter(include_in_schema=False)
authoring_router.include_router(problems_router, prefix="/authoring")
authoring_router.include_router(questions_router, prefix="/authoring")
authoring_router.include_router(regrading_router, prefix="/authoring")
authoring_router.include_router(pages_router, prefix="/authoring")
authoring_router.include_router(reference_router, prefix="/authoring")
authoring_router.include_router(
    router, prefix="/authoring"
)  # must be last: it matches everything else
