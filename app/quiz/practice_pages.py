"""Practice home, practice runs."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    run_in_read_session,
    run_in_write_transaction,
)
from app.accounts.learner_store import list_question_ids_in_past_exams
from app.clock import to_milliseconds
from app.content.course import Course
from app.content.course_facts import (
    cached_course_facts,
    find_unseen_exam_only_question_ids,
    list_questions_of_objective,
    list_questions_of_topic,
    map_objectives_to_domains,
)
from app.content.reading_routes import ESSENTIAL_SHARE
from app.errors import ConflictError, NotFoundError
from app.markup.model import Domain, Objective
from app.questions.model import Question
from app.questions.question_form import (
    compute_seed_of_next_attempt,
    excerpt_first_line,
    make_question_title,
    make_submission_token,
)
from app.quiz import store
from app.quiz.forms import PostedRunRequest, PracticeForm, QueriedSubmission, QuestionSubmission
from app.quiz.next_steps import build_task_views, summarize_run
from app.quiz.question_page import (
    build_feedback_with_next_links,
    build_open_question_of_request,
    build_run_progress,
    list_questions_excluded_from_practice,
    refuse_if_excluded_from_practice,
    render_question_page,
)
from app.quiz.selection import (
    PLACEMENT_HELPS_BELOW,
    PastAttempts,
    PracticeRequest,
    choose_practice_questions,
    draw_placement_test,
    load_objectives_by_exam_gain,
    load_questions_on_day_list,
)
from app.quiz.store import NewPracticeRun, PracticeRunState
from app.spaced_repetition.added_card_ids_and_faces import build_question_card_id
from app.spaced_repetition.added_cards import load_added_card_records
from app.study_plan.cards import compute_last_day_for_new_cards
from app.study_plan.day_list import PageToRead, Task
from app.study_plan.facts import ReadingFact, sum_readings_by_page
from app.study_plan.loader import DayListEnsured, StudyPlan, build_next_day_list, load_study_plan
from app.study_plan.store import load_learner_facts
from app.web.dependencies import LAST_ROW, RowNumber, require_topic

router = APIRouter()
Count = Annotated[int, Query(ge=1, le=100)]


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionCounts:
    """Question counts: all, answered at least once, last answered correctly."""

    all_count: int
    answered_count: int
    last_right_count: int

    @property
    def last_missed_count(self) -> int:
        """How many were last answered wrong or only partly right."""
        return self.answered_count - self.last_right_count

    @property
    def unseen_count(self) -> int:
        return self.all_count - self.answered_count


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectivePractice:
    objective: Objective
    counts: QuestionCounts


@dataclasses.dataclass(frozen=True, slots=True)
class DomainPractice:
    """A domain with its objectives; a question of two objectives counts once."""

    domain: Domain
    objectives: tuple[ObjectivePractice, ...]
    counts: QuestionCounts


class TopicPractice(NamedTuple):
    slug: str
    title: str
    counts: QuestionCounts


@router.get("")
def show_practice(ctx: ReadContext) -> HTMLResponse:
    """The practice home: every way to practice, with its number of questions."""
    past = store.load_past_attempts_by_question(ctx.db, ctx.learner.id)
    questions = list(ctx.course.questions.values())
    kept = _list_questions_still_reserved_for_exams(ctx)
    newest = store.load_newest_run(ctx.db, ctx.learner.id)
    ranks = load_objectives_by_exam_gain(ctx) if past else []
    names = {o.number: o for d in ctx.course.syllabus.domains for o in d.objectives}
    placement = store.find_placement_test(ctx.db, ctx.learner.id, ctx.course.questions)
    tally, placement_count = _count_questions(questions, past), 0
    if placement is None and tally.answered_count < PLACEMENT_HELPS_BELOW:
        placement_count = len(draw_placement_test(questions, ctx.course.syllabus.domains, past, ""))
    return ctx.render_page(
        "quiz/index.html",
        all=tally,
        placement_count=placement_count,
        reserved_count=len(kept),
        new_count=sum(q.id not in past and q.id not in kept for q in questions),
        topics=_list_topic_practices(ctx, past),
        topics_beyond_exam=sum(
            bool(topic.level) for topic in ctx.course.topics.values() if topic.questions
        ),
        domains=_list_domain_practices(ctx, past),
        labs=[
            _build_question_row(q, excerpt_first_line(q), past)
            for q in questions
            if q.type == "console"
        ],
        weakest=ranks[0] if ranks else None,
        weakest_objective=names[ranks[0].number] if ranks else None,
        run=build_run_progress(newest, 0) if newest and newest.is_resumable else None,
        flagged=len(
            store.load_flagged_questions(ctx.db, ctx.learner.id) & ctx.course.questions.keys()
        ),
        token=make_submission_token(),
    )


@router.get("/objectives/{number}")
def show_objective_practice(ctx: ReadContext, number: str, count: Count = 10) -> HTMLResponse:
    """The questions of one objective from all pages, and a form to start a run of them."""
    goals = (o for d in ctx.course.syllabus.domains for o in d.objectives)
    objective = next((goal for goal in goals if goal.number == number), None)
    if objective is None:
        raise NotFoundError(f"This course has no objective “{number}”.")
    title = f"{objective.number} {objective.name}"
    questions = list_questions_of_objective(ctx.course, number)
    return _render_question_list(ctx, title, f"objective:{number}", questions, count)


@router.get("/{topic}")
def show_topic_practice(ctx: ReadContext, topic: str, count: Count = 10) -> HTMLResponse:
    """The questions of one topic with their results, and a form to start a run of them."""
    title = require_topic(ctx.course, topic).title
    questions = list_questions_of_topic(ctx.course, topic)
    return _render_question_list(ctx, title, f"topic:{topic}", questions, count)


def _render_question_list(
    ctx: RequestContext, title: str, run_source: str, questions: Iterable[Question], count: int
) -> HTMLResponse:
    """The page with questions and results; a run of `count` of them starts with `run_source`."""
    mode, _, scope = run_source.partition(":")
    past = store.load_past_attempts_by_question(ctx.db, ctx.learner.id)
    kept, hidden = (
        _list_questions_still_reserved_for_exams(ctx),
        list_questions_excluded_from_practice(ctx),
    )
    rows = [
        _build_question_row(q, _format_title_as_asked(ctx, q, use_last_seed=False), past)
        for q in sorted(questions, key=lambda q: q.level)
        if q.id not in hidden
    ]
    return ctx.render_page(
        "quiz/topic.html",
        title=title,
        run_source=run_source,
        page=scope if mode == "topic" else "",
        all=_count_questions(questions, past),
        rows=rows,
        count=min(len(rows), count),
        reserved_count=sum(q.id in kept for q in questions),
        token=make_submission_token(),
    )


def _build_question_row(
    question: Question, title: str, past_by_question: Mapping[str, PastAttempts]
) -> dict[str, Any]:
    """Return a question as a row of a list: URL, title, last result."""
    address = f"/quiz/{question.topic}/{question.id}"
    last = past_by_question.get(question.id)
    return {"address": address, "words": title, "past": last, "level": question.level}


def _format_title_as_asked(ctx: RequestContext, question: Question, *, use_last_seed: bool) -> str:
    """Return the title with the numbers that its page shows: of the last answer, or the next."""
    if question.computed is None:
        return make_question_title(question)
    before = store.load_seeds_newest_first(ctx.db, ctx.learner.id, question.id)
    seed = (
        before[0]
        if use_last_seed and before
        else compute_seed_of_next_attempt(question, ctx.learner.key, before)
    )
    return make_question_title(question, seed)


def _list_questions_still_reserved_for_exams(ctx: RequestContext) -> frozenset[str]:
    met = list_question_ids_in_past_exams(ctx.db, ctx.learner.id, ctx.now)
    return find_unseen_exam_only_question_ids(ctx.course, met)


def _count_questions(
    questions: Iterable[Question], past_by_question: Mapping[str, PastAttempts]
) -> QuestionCounts:
    pool = list(questions)
    seen = [past_by_question[q.id] for q in pool if q.id in past_by_question]
    return QuestionCounts(len(pool), len(seen), sum(not p.was_last_missed for p in seen))


def _list_topic_practices(
    ctx: RequestContext, past_by_question: Mapping[str, PastAttempts]
) -> list[TopicPractice]:
    """Return the topics with questions, in reading order."""
    course = ctx.course
    order = [s for s in course.syllabus.topics if s in course.topics]
    return [
        TopicPractice(slug, course.topics[slug].title, _count_questions(pool, past_by_question))
        for slug in dict.fromkeys([*order, *course.topics])
        if (pool := list_questions_of_topic(course, slug))
    ]


def _list_domain_practices(
    ctx: RequestContext, past_by_question: Mapping[str, PastAttempts]
) -> list[DomainPractice]:
    parts, domains = [], map_objectives_to_domains(ctx.course)
    questions = ctx.course.questions.values()
    for domain in ctx.course.syllabus.domains:
        goals = [
            ObjectivePractice(objective, _count_questions(pool, past_by_question))
            for objective in domain.objectives
            if (pool := list_questions_of_objective(ctx.course, objective.number))
        ]
        mine = [q for q in questions if q.find_domain(domains) == domain.number]
        parts.append(DomainPractice(domain, tuple(goals), _count_questions(mine, past_by_question)))
    return [part for part in parts if part.objectives]


runs_router = APIRouter()
_NOTHING_TO_PRACTICE = {
    "missed": "You have no missed questions.",
    "retry": "You got every question of that run right.",
    "flagged": "No question is flagged.",
    "topic": "This topic has no questions.",
    "objective": "This objective has no questions yet.",
    "today": "No questions are on today\N{RIGHT SINGLE QUOTATION MARK}s list.",
}


@runs_router.post("/runs")
async def begin_practice_run(request: Request, wanted: PostedRunRequest) -> Response:
    """Choose the questions of a run, save it, and redirect to the first one.

    They are chosen before the write transaction, because that reads the learner's whole history.
    """
    items = await run_in_read_session(
        request, lambda ctx: _choose_questions_or_refuse(ctx, wanted.practice_request)
    )
    run = await run_in_write_transaction(request, lambda ctx: _save_run(ctx, wanted, items))
    return RedirectResponse(f"/quiz/runs/{run}", 303)


def _choose_questions_or_refuse(
    ctx: RequestContext, practice_request: PracticeRequest
) -> tuple[str, ...]:
    """Return the questions of a run; raises ConflictError if there are none."""
    choose = (
        _list_unsolved_questions_of_run if practice_request.mode == "retry" else _choose_questions
    )
    items = choose(ctx, practice_request)
    if not items:
        words = _NOTHING_TO_PRACTICE.get(practice_request.mode, "This course has no questions yet.")
        raise ConflictError(words, "Choose another way to practice.")
    return items


def _save_run(ctx: RequestContext, form: PracticeForm, items: tuple[str, ...]) -> int:
    wish = form.practice_request
    # The buttons of a page share its token, and each starts a run of its own.
    token, scope = (
        f"{form.token or make_submission_token()}.{form.pick}.{form.count}",
        wish.topic_or_objective_or_run,
    )
    if wish.mode == "today":  # from whichever tab and however often, a list has one run
        token = f"today.{ctx.learner.key}.{ctx.study_day}.{' '.join(items)}"
        scope = ctx.study_day.isoformat()
    run = NewPracticeRun(token, wish.mode, scope, items)
    return store.save_run_once(ctx.db, ctx.learner.id, run, ctx.now)


@runs_router.get("/runs/{run}")
def resume_run(ctx: ReadContext, run: RowNumber) -> Response:
    """Redirect to the first unanswered question of a run."""
    state = _require_run(ctx, run)
    return RedirectResponse(build_run_progress(state, 0).next_url, 303)


@runs_router.get("/runs/{run}/result")
def show_run_result(ctx: ReadContext, run: RowNumber, _ensured: DayListEnsured) -> HTMLResponse:
    """How a run went; of a placement test, on its day, also the first pages that follow from it."""
    state = _require_run(ctx, run)
    scores = _list_scores_by_question(state)
    rows = [
        {
            "place": place,
            "words": _format_title_as_asked(
                ctx, ctx.course.questions[item], use_last_seed=item in scores
            ),
        }
        for place, item in enumerate(state.question_ids, 1)
    ]
    right = [item for item, score in scores.items() if score >= 1]
    missed = [build_question_card_id(item) for item in scores if item not in right]
    added = load_added_card_records(ctx.db, ctx.learner.id, missed).values()
    plan = load_study_plan(ctx)
    # Of an unfinished test the plan knows nothing yet; later, the plan has moved on.
    is_new = (
        not state.has_unanswered_question
        and store.load_last_day_of_run(ctx.db, state.id) == ctx.study_day
    )
    # A placement test counts from the next list on, unless today's was made after it.
    counts = plan is not None and plan.placement_minutes > 0
    coming, pages = None, list[PageToRead]()
    if plan is not None and state.mode == "placement" and is_new:
        if not counts:
            coming = build_next_day_list(ctx, _list_todays_pages_as_read(plan, ctx))
        if counts or coming:
            tasks = coming.tasks if coming else [progress.task for progress in plan.tasks]
            pages = _list_first_three_pages(tasks, ctx.course)
    named = {page.slug for page in pages}
    summary = summarize_run(ctx.course, scores, list(state.question_ids))
    return ctx.render_page(
        "quiz/result.html",
        plan=plan,
        tasks=build_task_views(plan, ctx.course),
        estimate=plan.estimate if plan and is_new else None,
        guessing=cached_course_facts(ctx.course).describe_guessing_score(),
        run=build_run_progress(state, 0),
        answered_while_reading=sum(task.on_page_count for task in plan.tasks)
        if plan and state.mode == "today" and state.scope == ctx.study_day.isoformat()
        else 0,
        rows=rows,
        summary=summary,
        missed_by_title=collections.Counter(q.topic_title for q in summary.missed_questions),
        topics=ctx.course.topics,
        counts=counts,
        days_to_list=(coming.day - ctx.study_day).days if coming else 0,
        day_of_list=coming.day if coming else ctx.study_day,
        pages=pages,
        later_pages=len(_find_unread_pages_with_misses(ctx, scores) - named) if pages else 0,
        no_longer_missed=store.count_missed_before_run(ctx.db, ctx.learner.id, state.id, right),
        is_after_exam=ctx.learner.is_exam_over(ctx.study_day),
        last_day_for_new_cards=compute_last_day_for_new_cards(
            ctx.learner.plan_calendar_as_of(ctx.study_day)
        )
        or ctx.study_day,
        day=ctx.study_day,
        returning=sum(not card.is_suspended_or_declined for card in added),
        token=make_submission_token(),
    )


def _list_todays_pages_as_read(plan: StudyPlan, ctx: RequestContext) -> list[ReadingFact]:
    """Return the unread pages of today's list as if they were read now."""
    at = to_milliseconds(ctx.now)
    return [
        ReadingFact(page.slug, ESSENTIAL_SHARE if page.short else 1.0, ctx.study_day, at, 1.0)
        for task in plan.tasks
        for page in task.unread_pages
    ]


def _list_first_three_pages(tasks: Iterable[Task], course: Course) -> list[PageToRead]:
    return [page for task in tasks for page in task.pages if page.slug in course.topics][:3]


def _find_unread_pages_with_misses(ctx: RequestContext, scores: Mapping[str, float]) -> set[str]:
    """Return the pages of the exam with a missed question whose essentials aren't read."""
    facts = load_learner_facts(ctx.db, ctx.learner, ctx.course, ctx.study_day)
    read = sum_readings_by_page(facts.readings)
    missed = {ctx.course.questions[item].topic for item, score in scores.items() if score < 1}
    return {
        slug
        for slug in missed & cached_course_facts(ctx.course).pages.keys()
        if not read[slug].covers_essential_sections
    }


def _list_scores_by_question(run: PracticeRunState) -> dict[str, float]:
    return {
        item: run.last_answer_by_question[item].score
        for item in run.question_ids
        if item in run.last_answer_by_question
    }


@runs_router.get("/runs/{run}/{place}")
def show_run_question(
    ctx: ReadContext, run: RowNumber, place: RowNumber, submission: QueriedSubmission
) -> HTMLResponse:
    """A question of a run: unanswered, or with the feedback to its answer."""
    state = _require_run(ctx, run)
    if not 1 <= place <= len(state.question_ids):
        raise NotFoundError(f"This run has questions 1 to {len(state.question_ids)}.")
    frame = build_run_progress(state, place)
    if submission.hidden_fields.review:
        summary = summarize_run(
            ctx.course, _list_scores_by_question(state), list(state.question_ids)
        )
        review = tuple(question.place_in_run for question in summary.missed_questions)
        frame = dataclasses.replace(frame, places_to_review=review)
    question = ctx.course.questions[state.question_ids[place - 1]]
    kind = "placement" if state.mode == "placement" else "practice"
    form = submission.hidden_fields.model_copy(update={"run": state.id, "context": kind})
    submission = QuestionSubmission(form, submission.raw_response)
    refuse_if_excluded_from_practice(ctx, question)
    answered = state.last_answer_by_question.get(question.id)
    if answered is None:
        return render_question_page(
            ctx, build_open_question_of_request(ctx, question, submission, state), frame
        )
    given = store.load_attempt(ctx.db, ctx.learner.id, answered.attempt_id)
    given = dataclasses.replace(given, context=kind)  # it may be from another page of today
    outcome = build_feedback_with_next_links(ctx, given, frame, submission)
    return render_question_page(ctx, outcome, frame, reported=submission.hidden_fields.reported)


def _require_run(ctx: RequestContext, number: int) -> PracticeRunState:
    """Return the run, limited to questions that are still in the course."""
    run = store.find_run(ctx.db, ctx.learner.id, number)
    left = tuple(item for item in run.question_ids if item in ctx.course.questions)
    if not left:
        raise NotFoundError("The questions of this run are no longer in the course.")
    return dataclasses.replace(run, question_ids=left)


def _choose_questions(ctx: RequestContext, practice_request: PracticeRequest) -> tuple[str, ...]:
    hidden = list_questions_excluded_from_practice(ctx)
    questions = [q for q in ctx.course.questions.values() if q.id not in hidden]
    past = store.load_past_attempts_by_question(ctx.db, ctx.learner.id)
    seed = f"{ctx.learner.key}:{ctx.now.timestamp()}"
    if practice_request.mode == "today":
        return tuple(q for q in load_questions_on_day_list(ctx) if q not in hidden)
    if practice_request.mode == "placement":
        return draw_placement_test(questions, ctx.course.syllabus.domains, past, seed)
    if practice_request.mode == "flagged":
        marked = store.load_flagged_questions(ctx.db, ctx.learner.id)
        questions = [q for q in questions if q.id in marked]
    weakest = (
        [rank.number for rank in load_objectives_by_exam_gain(ctx)]
        if practice_request.mode == "weakest"
        else []
    )
    return choose_practice_questions(questions, past, practice_request, seed, weakest)


def _list_unsolved_questions_of_run(
    ctx: RequestContext, practice_request: PracticeRequest
) -> tuple[str, ...]:
    """Return the questions of an earlier run that were not answered right."""
    plain = (
        practice_request.topic_or_objective_or_run.isascii()
        and practice_request.topic_or_objective_or_run.isdigit()
    )
    if not plain or int(practice_request.topic_or_objective_or_run) > LAST_ROW:
        raise NotFoundError(
            f"There is no practice run “{practice_request.topic_or_objective_or_run}” of yours."
        )
    run = _require_run(ctx, int(practice_request.topic_or_objective_or_run))
    hidden = list_questions_excluded_from_practice(ctx)
    return tuple(
        item
        for item in run.question_ids
        if item not in hidden
        and (item not in run.last_answer_by_question or run.last_answer_by_question[item].score < 1)
    )
