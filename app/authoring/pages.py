"""Author routes: problems, statistics, question, regrading, guide, audit log."""

import functools
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from app.accounts import author_store
from app.accounts.author_access import AuthorOnlyRoute, CurrentAuthor, delete_author_cookie
from app.accounts.author_store import AuditRecord, record_audit_entry
from app.accounts.current_learner import CurrentLearner, ReadContext, RequestContext
from app.authoring import statistics_tables, store
from app.authoring.answers_page import answers_router
from app.authoring.course_report import (
    COVERAGE_COLUMN_TITLES,
    CourseWithDrafts,
    compute_coverage,
    count_disjoint_papers_by_title,
    list_due_content_reviews,
    measure_answer_cues,
)
from app.authoring.preview import (
    build_author_url,
    build_unanswered_question,
    grade_sample_responses,
    grade_without_recording,
    has_no_graded_field,
)
from app.authoring.regrading import RegradePolicy, preview_regrade, write_regrades_of_preview
from app.authoring.statistics_tables import (
    BankStatistics,
    CurrentStatistics,
    QuestionRevision,
    VariantRow,
)
from app.authoring.to_do import (
    assign_option_letters,
    build_author_tasks,
    build_problem_list,
    compute_blind_guess_percent,
    find_fix_reasons_in_statistics,
    find_topic_slug_of_path,
    list_problems_of_topic,
    list_unpublished_content,
    make_problem_key_for_url,
    read_authoring_guide,
    read_lines_around,
)
from app.clock import Now
from app.content.course import Course
from app.database.engine import DbSession, OpenWriteSession, open_read_only_session
from app.errors import ConflictError, NotFoundError
from app.lessons.page_renderer import RenderedPage, RenderedPageCache
from app.markup.expressions import ExpressionError
from app.markup.problems import PROBLEM_CODES
from app.questions import types
from app.questions.grading import RegradeRefusal
from app.questions.model import (
    Question,
    count_combinations,
    draw_variant,
    iterate_variants_up_to_limit,
)
from app.questions.question_form import OpenQuestion, make_question_title, make_submission_token
from app.questions.question_type import SubmittedResponse
from app.quiz.forms import PostedSubmission, QueriedSubmission
from app.web.dependencies import CurrentCourse, RowNumber, require_question
from app.web.formatting import format_time_ago
from app.web.render import is_htmx_request, render_page

authoring_router = APIRouter(
    prefix="/authoring", include_in_schema=False, route_class=AuthorOnlyRoute
)
authoring_router.include_router(answers_router)
_MAX_AUDIT_ROWS = 200


@authoring_router.get("/audit")
def show_audit_log(
    request: Request, learner: CurrentLearner, author: CurrentAuthor, db: DbSession, now: Now
) -> HTMLResponse:
    """What authors did, newest first, and the signed-in browsers."""
    return render_page(
        request,
        "authoring/audit.html",
        learner=learner,
        author=author,
        records=author_store.list_audit_records(db, _MAX_AUDIT_ROWS),
        max_rows=_MAX_AUDIT_ROWS,
        sessions=author_store.list_author_sessions(db, now),
    )


@authoring_router.post("/departure")
def sign_author_out(
    request: Request, author: CurrentAuthor, db: DbSession, now: Now
) -> RedirectResponse:
    author_store.revoke_author_sessions(db, [author.id], author.id, now)
    response = RedirectResponse("/", 303)
    delete_author_cookie(request, response)
    return response


@authoring_router.get("/pages/{topic}")
def preview_topic(
    request: Request, topic: str, course: CourseWithDrafts, learner: CurrentLearner
) -> HTMLResponse:
    """The preview of a page; one that cannot be parsed yet shows only its problems."""
    problems = list_problems_of_topic(course.problems, topic)
    topic_page = course.topics.get(topic)
    if topic_page is None and not problems:
        raise NotFoundError(f"There is no topic “{topic}”.")
    # Drafts must never enter the page cache of the learners.
    cache = RenderedPageCache(request.app.state.templates)
    rendered = cache.get_or_render(course, topic_page, "full") if topic_page else None
    questions = [course.questions[i] for i in topic_page.questions] if topic_page else []
    return render_page(
        request,
        "authoring/page.html",
        learner=learner,
        slug=topic,
        topic=topic_page,
        page=rendered,
        course=course,
        problems=problems,
        outdated=topic_page is not None and topic_page.place.path in course.outdated_paths,
        name_of=make_problem_key_for_url,
        open_questions=_build_open_questions_of_page(course, rendered) if rendered else {},
        questions=[(q, make_question_title(q)) for q in questions],
        cards=[course.cards[i] for i in topic_page.cards] if topic_page else [],
    )


def _build_open_questions_of_page(course: Course, page: RenderedPage) -> dict[str, OpenQuestion]:
    """Return the questions of the page, with forms that try answers without recording them."""
    return {
        item: OpenQuestion(
            draw_variant(course.questions[item], 0),
            make_submission_token(),
            "page",
            back_url=f"/authoring/pages/{page.topic.slug}",
            submit_url=build_author_url(course.questions[item]),
        )
        for item in page.embedded_question_ids
        if item in course.questions
    }


class ProblemFilterForm(BaseModel):
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


class RegradeForm(BaseModel):
    """Which answers to regrade, and which score then counts."""

    reworded: bool = False
    policy: RegradePolicy = RegradePolicy.KEY


class RegradePreviewForm(RegradeForm):
    """`graded` says how many answers were just regraded."""

    graded: int = Field(0, ge=0, le=2**31)


class RegradeConfirmForm(RegradeForm):
    """Confirms regrading by the revision that the author saw."""

    revision: str = Field(max_length=64)


_MAX_PROBLEMS = 300


@authoring_router.get("")
def show_problem_list(
    context: ReadContext, query: Annotated[ProblemFilterForm, Query()]
) -> HTMLResponse:
    """The problems in the content, with the source of the selected one."""
    listing = build_problem_list(context.course, query.severity, query.file, query.at)
    selected_problem = listing.selected_problem
    folder = context.request.state.live.folder
    return context.render_page(
        "authoring/index.html",
        course=context.course,
        listing=listing,
        listed_problems=listing.problems[:_MAX_PROBLEMS],
        selected_problem=selected_problem,
        lines=read_lines_around(folder, selected_problem.path, selected_problem.line)
        if selected_problem
        else [],
        query=query,
        name_of=make_problem_key_for_url,
        topic_of=find_topic_slug_of_path,
        reports=store.list_learner_reports(context.db, context.learner.course_name),
    )


@authoring_router.get("/changes")
async def show_course_version(course: CurrentCourse) -> PlainTextResponse:
    """The version of the course. An open page polls it and reloads itself."""
    return PlainTextResponse(course.version, headers={"cache-control": "no-store"})


@authoring_router.post("/reports/{report}/settlement")
def settle_report(
    report: RowNumber, author: CurrentAuthor, db: DbSession, now: Now
) -> RedirectResponse:
    """Mark a report as settled; it stays with its question."""
    store.mark_report_settled(db, report, now)
    record_audit_entry(db, AuditRecord(now, author.id, "report settled", f"report {report}"))
    return RedirectResponse("/authoring#reports", 303)


_ROWS_PER_PAGE = 50  # rows of one page of the table; the CSV has all
_DESCENDING_FIRST = {"count", "guess"}  # columns that a first click sorts descending


async def require_question_in_url(item: str, course: CourseWithDrafts) -> Question:
    return require_question(course, item)


QuestionInUrl = Annotated[Question, Depends(require_question_in_url)]


@authoring_router.get("/questions")
def show_statistics(
    statistics: CurrentStatistics,
    context: ReadContext,
    query: Annotated[StatisticsTableForm, Query()],
) -> Response:
    """The statistics of the bank: the table, what to fix first, the mock exams."""
    rows = _list_question_rows_with_report_counts(statistics, context)
    descending = query.sort.startswith("-")
    sort_column = query.sort.removeprefix("-")
    sort_column = sort_column if sort_column in statistics_tables.SORT_COLUMNS else "discrimination"
    rows = statistics_tables.sort_question_rows(rows, sort_column, descending=descending)
    if query.format == "csv":
        return _build_csv_response(statistics_tables.write_questions_as_csv(rows), "questions.csv")
    if query.format == "exams-csv":
        return _build_csv_response(
            statistics_tables.write_exams_as_csv(statistics.exam_rows), "exams.csv"
        )
    items = statistics_tables.list_items_to_fix(context.course, rows, statistics.lapsed_cards)
    reasons = {item.item_id: item.reasons[0].text for item in items}
    groups = {
        "look": [row for row in rows if row.question.id in reasons],
        "answered": [row for row in rows if row.statistics],
        "all": rows,
    }
    group = query.show or ("look" if groups["look"] else "answered")
    return context.render_page(
        "authoring/questions.html",
        course=context.course,
        items=items,
        reasons=reasons,
        group_sizes={name: len(group) for name, group in groups.items()},
        rows=groups[group][query.start :][:_ROWS_PER_PAGE],
        start=query.start,
        page_size=_ROWS_PER_PAGE,
        group=group,
        by=sort_column,
        descending=descending,
        columns=statistics_tables.COLUMNS,
        descending_first=_DESCENDING_FIRST,
        exams=statistics.exam_rows,
        age=format_time_ago(statistics.computed_at, context.request.app.state.clock()),
    )


@authoring_router.get("/mend")
def show_to_do(statistics: CurrentStatistics, context: ReadContext) -> HTMLResponse:
    """Problems, statistics, reports and overdue reviews in one list, worst first."""
    course = context.course
    rows = _list_question_rows_with_report_counts(statistics, context)
    items = statistics_tables.list_items_to_fix(course, rows, statistics.lapsed_cards)
    due = list_due_content_reviews(course, context.now.date())
    return context.render_page(
        "authoring/to_do.html",
        tasks=build_author_tasks(course.problems, items, due),
        max_rows=_ROWS_PER_PAGE,
        outdated=course.outdated_paths,
        unfinished=list_unpublished_content(course),
    )


@authoring_router.get("/questions/{item}")  # noqa: FAST003 - in QuestionInUrl
def show_question(
    statistics: CurrentStatistics,
    context: ReadContext,
    course: CourseWithDrafts,
    question: QuestionInUrl,
    submission: QueriedSubmission,
) -> HTMLResponse:
    """One question in every state, with the statistics of its answers."""
    db, location = context.db, question.place
    pressed_button = submission.hidden_fields.more or submission.hidden_fields.move
    is_open = has_no_graded_field(question, submission.raw_response) or pressed_button
    outcome = (
        build_unanswered_question(question, submission)
        if is_open
        else grade_without_recording(db, course, question, submission)
    )
    variant = draw_variant(question, submission.hidden_fields.seed or 0)
    current_statistics = statistics.statistics_by_revision.get(
        QuestionRevision(question.id, question.revision)
    )
    seen_wordings = store.list_seen_wordings(db, question.id)
    return context.render_page(
        "authoring/question.html",
        course=course,
        question=question,
        topic=course.topics.get(question.topic),
        url=build_author_url(question),
        seed=variant.seed,
        open_question=outcome if isinstance(outcome, OpenQuestion) else None,
        outcome=None if isinstance(outcome, OpenQuestion) else outcome,
        samples=grade_sample_responses(variant),
        response={} if pressed_button else dict(submission.raw_response),
        query=_encode_answer_and_seed_as_query,
        lines=read_lines_around(
            context.request.state.live.folder, location.path, location.line, 14
        )[-15:],
        problems=[p for p in course.problems if p.item == question.id],
        outdated=location.path in course.outdated_paths,
        displayed_letters=assign_option_letters(variant),
        variants=_list_variant_rows_until_unsolvable(question),
        variant_count=count_combinations(question.computed) if question.computed else 0,
        reports=store.list_learner_reports(
            db, context.learner.course_name, include_settled=True, question_id=question.id
        ),
        unregraded=statistics.unregraded_count_by_question.get(question.id, 0),
        statistics=current_statistics,
        guess=compute_blind_guess_percent(question),
        reasons=sorted(
            find_fix_reasons_in_statistics(question, current_statistics),
            key=lambda reason: -reason.severity_weight,
        ),
        options=statistics_tables.build_option_rows(question, current_statistics),
        tallies=_count_commonest_response_patterns(context, question),
        wordings=statistics_tables.list_wording_statistics(
            question,
            statistics_tables.merge_equal_wordings(
                question, seen_wordings, statistics.canonical_revision_by_revision
            ),
            statistics.statistics_by_revision,
        ),
    )


@authoring_router.get("/questions/{item}/form")  # noqa: FAST003 - in QuestionInUrl
def show_question_fragment(
    request: Request, question: QuestionInUrl, submission: QueriedSubmission
) -> HTMLResponse:
    """The unanswered question as a fragment: another hint, a step moved, another try."""
    return render_page(
        request,
        "quiz/_question.html",
        open_question=build_unanswered_question(question, submission),
    )


@authoring_router.post("/questions/{item}/attempts")  # noqa: FAST003 - in QuestionInUrl
def grade_trial_answer(
    request: Request,
    course: CourseWithDrafts,
    db: DbSession,
    question: QuestionInUrl,
    submission: PostedSubmission,
) -> Response:
    """Grade a response of the author; nothing is saved, so the statistics stay clean."""
    if not is_htmx_request(request):
        seed = submission.hidden_fields.seed or 0
        query = _encode_answer_and_seed_as_query(submission.raw_response, seed)
        return RedirectResponse(f"{build_author_url(question)}{query}", 303)
    outcome = grade_without_recording(db, course, question, submission)
    if isinstance(outcome, OpenQuestion):
        status = 422 if outcome.parse_error else 200
        return render_page(request, "quiz/_question.html", status=status, open_question=outcome)
    return render_page(request, "quiz/_verdict.html", outcome=outcome)


class _ResponsePatternCount(NamedTuple):
    pattern_text: str
    learner_count: int


def _count_commonest_response_patterns(
    context: RequestContext, question: Question
) -> dict[str, list[_ResponsePatternCount]]:
    """Return what learners did in a question, by title, most frequent first."""
    newest_responses = store.load_newest_first_responses(
        context.db, context.learner.course_name, question.id, question.revision
    )
    responses = (
        SubmittedResponse(draw_variant(question, seed).answer, fields)
        for seed, fields in newest_responses
    )
    tallies = types.question_type_of(question).count_response_patterns(responses)
    return {
        title: [_ResponsePatternCount(*counted) for counted in counts.most_common(12)]
        for title, counts in tallies.items()
    }


def _list_variant_rows_until_unsolvable(question: Question) -> list[VariantRow]:
    if question.computed is None:
        return []
    rows = []
    variants = iterate_variants_up_to_limit(question)
    while True:
        try:
            rows.append(statistics_tables.build_variant_row(next(variants)))
        except (StopIteration, ExpressionError):
            return rows  # the course check names the combination without an answer


def _list_question_rows_with_report_counts(
    statistics: BankStatistics, context: RequestContext
) -> list[statistics_tables.QuestionStatisticsRow]:
    """Return every question with its statistics and the number of open reports about it."""
    reports = store.list_learner_reports(context.db, context.learner.course_name)
    return statistics_tables.add_report_counts(statistics.question_rows, reports)


def _build_csv_response(text: str, file_name: str) -> Response:
    return Response(
        "\ufeff" + text,  # without a byte order mark Excel does not read UTF-8
        media_type="text/csv; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{file_name}"'},
    )


def _encode_answer_and_seed_as_query(raw: Any, seed: int) -> str:
    query = urlencode({**raw, **({"seed": seed} if seed else {})}, doseq=True)
    return f"?{query}" if query else ""


@authoring_router.get("/coverage")
def show_coverage(
    request: Request, course: CurrentCourse, learner: CurrentLearner, now: Now
) -> HTMLResponse:
    """What each objective has, and what the options of the bank give away."""
    return render_page(
        request,
        "authoring/coverage.html",
        learner=learner,
        heads=COVERAGE_COLUMN_TITLES.values(),
        rows=compute_coverage(course),
        papers=count_disjoint_papers_by_title(course),
        answer_cues=measure_answer_cues(course.questions.values()),
        due=list_due_content_reviews(course, now.date()),
    )


@authoring_router.get("/help")
def show_authoring_guide(request: Request, learner: CurrentLearner) -> HTMLResponse:
    """The content format, with every problem that the check can report."""
    try:
        guide = read_authoring_guide()
    except OSError:
        hint = "See docs/authoring.md of the source."
        raise NotFoundError("The reference is not installed here.", hint) from None
    return render_page(
        request, "authoring/help.html", learner=learner, guide=guide, rules=PROBLEM_CODES
    )


class _PolicyText(NamedTuple):
    title: str
    effect: str


_POLICY_TEXTS = {
    RegradePolicy.KEY: _PolicyText("Current key", "Scores go up or down as the current key says."),
    RegradePolicy.BOTH: _PolicyText(
        "Credit both", "What the current key or an earlier one accepts is right."
    ),
    RegradePolicy.NEVER_LOWER: _PolicyText(
        "Never lower", "Scores go up by the current key, and never down."
    ),
    RegradePolicy.DROP: _PolicyText("Drop", "Everyone who answered gets full marks."),
    RegradePolicy.UNDO: _PolicyText("Undo", "Takes “credit both”, “never lower” and “drop” back."),
}


@authoring_router.get("/questions/{item}/regrading")
def show_regrading(
    context: ReadContext, item: str, query: Annotated[RegradePreviewForm, Query()]
) -> HTMLResponse:
    question = require_question(context.course, item)
    return context.render_page(
        "authoring/regrading.html",
        question=question,
        url=build_author_url(question),
        title=make_question_title(question),
        right=types.question_type_of(question).right_answer_texts(question.answer),
        regrading=preview_regrade(
            context.db,
            context.learner.course_name,
            question,
            accept_rewording=query.reworded,
            policy=query.policy,
        ),
        query=query,
        policies=_POLICY_TEXTS,
        other_words=RegradeRefusal.WORDS,
    )


@authoring_router.post("/questions/{item}/regrading")
async def confirm_regrading(
    request: Request,
    item: str,
    course: CurrentCourse,
    author: CurrentAuthor,
    now: Now,
    form: Annotated[RegradeConfirmForm, Form()],
) -> RedirectResponse:
    """Regrade earlier answers by the current key.

    They are graded before the write transaction starts, because that can take longer than other
    writers can wait.
    """
    question = require_question(course, item)
    if form.revision != question.revision:
        raise ConflictError(
            "The question was edited while this page was open. Nothing was graded.",
            "Look again at what its key changes now.",
        )
    course_name: str = request.state.course_name
    async with open_read_only_session(request) as db:
        regrading = await run_in_threadpool(
            functools.partial(
                preview_regrade,
                db,
                course_name,
                question,
                accept_rewording=form.reworded,
                policy=form.policy,
            )
        )
    write_session: OpenWriteSession = request.app.state.open_write_session
    async with write_session() as db:
        count = await run_in_threadpool(
            write_regrades_of_preview, db, course_name, regrading, author.id, now
        )
    query = f"graded={count}&policy={form.policy}{'&reworded=true' if form.reworded else ''}"
    return RedirectResponse(f"/authoring/questions/{quote(item)}/regrading?{query}", 303)


# Must be last: it matches everything else.
@authoring_router.api_route("/{anything:path}", methods=["GET", "POST"])
def refuse_unknown_author_page(anything: str) -> HTMLResponse:
    """Status 404 for unknown author URLs. Only authors get this answer."""
    raise NotFoundError(f"There is nothing at /authoring/{anything[:80]}.")
