"""One question: shown, graded, explained."""

import dataclasses
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.accounts.current_learner import (
    ReadContext,
    RequestContext,
    WriteContext,
    open_write_context,
)
from app.accounts.learner_store import (
    list_question_ids_in_past_exams,
    list_question_ids_in_running_exam,
)
from app.clock import to_milliseconds
from app.content.course import Course
from app.content.course_facts import find_unseen_exam_only_question_ids
from app.database.engine import open_read_only_session
from app.errors import ConflictError, NotFoundError
from app.estimator import registry
from app.markup.model import CitedSource, Topic
from app.questions import types
from app.questions.grading import build_unanswered_result, build_unreadable_result, grade_response
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_form import (
    OpenQuestion,
    compute_seed_of_next_attempt,
    make_submission_token,
)
from app.questions.question_type import (
    GradeResult,
    QuestionType,
    ResultColumnTitles,
    UnreadableResponse,
    classify_score,
)
from app.quiz import store
from app.quiz.forms import (
    PostedFlag,
    PostedReport,
    PostedSubmission,
    QueriedSubmission,
    QuestionSubmission,
)
from app.quiz.next_steps import find_sentence_sharing_rarest_words
from app.quiz.store import NewAttempt, PracticeRunState, RecordedAttempt
from app.spaced_repetition.added_card_ids_and_faces import is_usable_as_card
from app.spaced_repetition.added_cards import MissedQuestionCard, find_missed_question_card
from app.web.dependencies import (
    CurrentCourse,
    collect_course_link_targets,
    require_question,
    require_topic,
)
from app.web.render import is_htmx_request, render_fragment_or_redirect, render_page
from app.widgets.calculator_form import build_calculator_form
from app.widgets.estimate_view import EstimateView


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """What `quiz/_verdict.html` shows: the grade, the explanation, and links.

    `estimate_view` is the calculator with the numbers of this attempt, None for questions without
    one. `was_question_edited_since` says that the question was edited since. `retry_url` leads to
    another try, `next_url` to the next step with its label, `this_feedback_url` to this feedback.
    `missed_question_card` is None if the question is not among the learner's cards.
    """

    variant: Variant
    verdict: GradeResult
    attempt: RecordedAttempt
    sources: tuple[CitedSource, ...]
    page_url: str
    estimate_view: EstimateView | None
    back_url: str
    retry_url: str
    next_url: str
    next_label: str
    this_feedback_url: str
    submission_token: str
    was_question_edited_since: bool = False
    missed_question_card: MissedQuestionCard | None = None

    @property
    def question(self) -> Question:
        return self.variant.question

    @property
    def confidence_note(self) -> str:
        """What the confidence adds to the verdict; empty if the two agree."""
        notes = {("right", 1): ", though you guessed", ("wrong", 3): ", and you were sure"}
        return notes.get((self.verdict.result, self.attempt.certainty or 0), "")

    @property
    def question_type(self) -> QuestionType[Any]:
        return types.question_type_of(self.variant)

    @property
    def column_titles(self) -> ResultColumnTitles:
        return self.question_type.result_column_titles(self.variant.answer)

    @property
    def calculator_url(self) -> str:
        """URL of the calculator with this attempt's numbers, or with the chosen plan."""
        return _build_calculator_url(self.variant, self.verdict)


@dataclasses.dataclass(frozen=True, slots=True)
class GradedVariant:
    variant: Variant
    verdict: GradeResult


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFeedbackLinks:
    back_url: str = ""
    next_url: str = ""
    next_label: str = ""
    this_feedback_url: str = ""
    submission_token: str = ""


def build_feedback(
    db: Session,
    course: Course,
    attempt: RecordedAttempt,
    links: AnswerFeedbackLinks,
    graded: GradedVariant | None = None,
) -> AnswerFeedback:
    """Return the feedback to an answer: `graded` now, or graded as it was at the time."""
    seen = graded or _load_variant_as_answered(db, course, attempt)
    variant, verdict = seen.variant, seen.verdict
    question = variant.question
    topic = course.topics.get(question.topic)
    current = course.questions.get(question.id)
    return AnswerFeedback(
        variant=variant,
        verdict=verdict,
        attempt=attempt,
        sources=tuple(course.sources[k] for k in question.sources if k in course.sources),
        page_url=_find_page_url_at_answer(topic, variant, verdict, links.back_url) if topic else "",
        estimate_view=_build_estimate_view(_build_calculator_url(variant, verdict), course),
        back_url=links.back_url,
        retry_url=f"/quiz/{question.topic}/{question.id}" if current else "",
        next_url=links.next_url,
        next_label=links.next_label,
        this_feedback_url=links.this_feedback_url,
        submission_token=links.submission_token,
        was_question_edited_since=current is None or current.revision != attempt.revision,
    )


def _find_page_url_at_answer(
    topic: Topic, variant: Variant, verdict: GradeResult, back_url: str
) -> str:
    """Return the URL of the sentence on the page that answers the question.

    If the learner came from that page (`back_url`), it stays on its route.
    """
    right = (mark.text.plain for mark in verdict.part_results if mark.should_be_chosen)
    answer = " ".join((verdict.right_answer, variant.explanation.plain, *right))
    passage = find_sentence_sharing_rarest_words(topic, variant.stem.plain, answer)
    page = f"/concepts/{topic.slug}"
    page += "?route=short" if back_url.startswith(f"{page}?route=short") else ""
    return f"{page}{passage.url_fragment if passage else ''}"


def _load_variant_as_answered(
    db: Session, course: Course, attempt: RecordedAttempt
) -> GradedVariant:
    variant = draw_variant(
        store.load_question_in_revision(db, course, attempt.question_id, attempt.revision),
        attempt.seed,
    )
    if not attempt.raw_response:
        return GradedVariant(variant, build_unanswered_result(variant))
    verdict = grade_response(variant, attempt.raw_response)
    if isinstance(verdict, UnreadableResponse) and attempt.score:  # the grading rules changed since
        verdict = GradeResult(score=attempt.score, parsed_response={})
    elif isinstance(
        verdict, UnreadableResponse
    ):  # from an exam, which could not ask for a readable answer
        verdict = build_unreadable_result(variant, attempt.raw_response, verdict)
    return GradedVariant(variant, verdict)


def _build_calculator_url(variant: Variant, verdict: GradeResult) -> str:
    planned = types.question_type_of(variant).calculator_url(
        variant.answer, verdict.parsed_response
    )
    return planned or variant.calculator_url


def _build_estimate_view(calculator_address: str, course: Course) -> EstimateView | None:
    """Return the estimate behind a question, with the numbers of the attempt."""
    address = urlsplit(calculator_address)
    entry = registry.find_estimate(address.path.rpartition("/")[2]) if address.path else None
    if entry is None:
        return None
    inputs = dict(parse_qsl(address.query))
    return build_calculator_form(
        entry, inputs, link_targets=collect_course_link_targets(course), is_short_block=True
    ).estimate


_PAGE_LINK_TEXT, _PRACTICE_LINK_TEXT, _CARDS_LINK_TEXT = "the page", "your practice", "your cards"
_BACK_LINK_TEXT_BY_PATH = {"/flashcards": _CARDS_LINK_TEXT, "/quiz/runs/": _PRACTICE_LINK_TEXT}


@dataclasses.dataclass(frozen=True, slots=True)
class FlagButton:
    """The flag button of a question; `back_url` is the page that contains it."""

    topic: str
    item: str
    is_flagged: bool
    back_url: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class RunProgress:
    """The run around a question: its place, and the scores so far.

    `scores` has one entry per question, None for unanswered ones, and `result_keys` their keys in
    `VERDICT_ICONS`. `is_placement_test` says that it is a placement test. `places_to_review` has
    the places to look at again, if that is what the learner does.
    """

    run_id: int
    place_in_run: int
    scores: tuple[float | None, ...]
    result_keys: tuple[str, ...]
    is_placement_test: bool = False
    places_to_review: tuple[int, ...] = ()

    @property
    def question_count(self) -> int:
        return len(self.scores)

    @property
    def answered_count(self) -> int:
        return sum(score is not None for score in self.scores)

    @property
    def right_count(self) -> int:
        return sum(score is not None and score >= 1 for score in self.scores)

    @property
    def resume_url(self) -> str:
        """URL that continues the run at its next unanswered question."""
        return f"/quiz/runs/{self.run_id}"

    @property
    def next_url(self) -> str:
        """URL of the next question to look at again, or else of the next unanswered one.

        Later unanswered questions come first. When none is left, it is the URL of the result.
        """
        if self.place_in_run in self.places_to_review[:-1]:
            return f"{self.resume_url}/{self.places_to_review[self.places_to_review.index(self.place_in_run) + 1]}?review=yes"
        if self.places_to_review:
            return f"{self.resume_url}/result"
        for place in (
            *range(self.place_in_run + 1, self.question_count + 1),
            *range(1, self.place_in_run),
        ):
            if self.scores[place - 1] is None:
                return f"{self.resume_url}/{place}"
        return f"{self.resume_url}/result"


def build_run_progress(run: PracticeRunState, place_in_run: int) -> RunProgress:
    scores = tuple(
        run.last_answer_by_question[item].score if item in run.last_answer_by_question else None
        for item in run.question_ids
    )
    results = tuple(
        "unknown"
        if item in run.questions_not_known
        else ""
        if score is None
        else classify_score(score)
        for item, score in zip(run.question_ids, scores, strict=True)
    )
    return RunProgress(
        run.id, place_in_run, scores, results, is_placement_test=run.mode == "placement"
    )


def refuse_if_excluded_from_practice(ctx: RequestContext, question: Question) -> None:
    """Raise ConflictError if the question is in a mock exam in progress."""
    if question.id in list_question_ids_in_running_exam(ctx.db, ctx.learner.id, ctx.now):
        raise ConflictError(
            "This question is in the mock exam that you are sitting.",
            "Finish the exam first; then it can be practiced.",
        )
    if question.id in list_questions_excluded_from_practice(ctx):
        raise ConflictError(
            "This question is kept for mock exams.",
            "Once a mock exam has asked it, it can be practiced.",
        )


def list_questions_excluded_from_practice(ctx: RequestContext) -> frozenset[str]:
    """Return the questions that practice must not show now.

    Those of a mock exam in progress, and those reserved for future ones.
    """
    db, learner = ctx.db, ctx.learner.id
    kept = find_unseen_exam_only_question_ids(
        ctx.course, list_question_ids_in_past_exams(db, learner, ctx.now)
    )
    return kept | list_question_ids_in_running_exam(db, learner, ctx.now)


def build_open_question_of_request(
    ctx: RequestContext,
    question: Question,
    submission: QuestionSubmission,
    run: PracticeRunState | None = None,
) -> OpenQuestion:
    """Return the question for this request: its seed, the response so far, its place in a run."""
    form, raw = submission.hidden_fields, submission.raw_response
    seed = form.seed
    if seed is None:
        before = store.load_seeds_newest_first(ctx.db, ctx.learner.id, question.id)
        seed = compute_seed_of_next_attempt(question, ctx.learner.key, before)
    variant = draw_variant(question, seed)
    if form.move:
        raw = types.question_type_of(variant).apply_button_press(raw, form.move)
    return OpenQuestion(
        variant=variant,
        submission_token=form.token or make_submission_token(),
        context=form.context,
        back_url=form.back,
        run_id=form.run,
        position_in_run=run.question_ids.index(question.id) + 1 if run else 0,
        shown_hint_count=min(form.hints + form.more, len(variant.hints)),
        first_shown_ms=form.since or to_milliseconds(ctx.now),
        certainty=form.certainty,
        typed_fields=raw,
        is_asked_again=form.asked_again,
    )


def build_feedback_with_next_links(
    ctx: RequestContext,
    attempt: RecordedAttempt,
    run_progress: RunProgress | None,
    submission: QuestionSubmission,
    graded: GradedVariant | None = None,
) -> AnswerFeedback:
    back = submission.hidden_fields.back
    if run_progress is not None:
        back, onward = run_progress.resume_url, run_progress.next_url
        last = onward.endswith("result")
        words = (
            "See the result"
            if last
            else "Next missed"
            if run_progress.places_to_review
            else "Next question"
        )
    elif submission.hidden_fields.context == "page":
        onward = "" if is_htmx_request(ctx.request) else back
        words = f"Back to {_PAGE_LINK_TEXT}"
    elif (home := _describe_back_link(back)) in {_PRACTICE_LINK_TEXT, _CARDS_LINK_TEXT}:
        onward, words = back, f"Back to {home}"
    else:
        question = ctx.course.questions.get(attempt.question_id)
        onward = f"/quiz/{question.topic}" if question else "/quiz"
        words = "All questions of this topic"
    here = build_feedback_url(attempt, run_progress, submission)
    links = AnswerFeedbackLinks(back, onward, words, here, make_submission_token())
    outcome = build_feedback(ctx.db, ctx.course, attempt, links, graded)
    return add_missed_card_to_feedback(ctx, outcome)


def add_missed_card_to_feedback(ctx: RequestContext, feedback: AnswerFeedback) -> AnswerFeedback:
    day = ctx.learner.study_day(ctx.now)
    item = feedback.question.id
    comeback = None
    if item in ctx.course.questions:
        comeback = find_missed_question_card(ctx.db, ctx.learner.id, item, day)
    return dataclasses.replace(feedback, missed_question_card=comeback)


def _describe_back_link(back_url: str) -> str:
    """Return the name of the page that a question was opened from; `back_url` is its URL."""
    return next(
        (name for at, name in _BACK_LINK_TEXT_BY_PATH.items() if back_url.startswith(at)),
        _PAGE_LINK_TEXT,
    )


def build_feedback_url(
    attempt: RecordedAttempt, run_progress: RunProgress | None, submission: QuestionSubmission
) -> str:
    """Return the URL of the feedback for a browser without htmx."""
    if run_progress is not None:
        return f"/quiz/runs/{run_progress.run_id}/{run_progress.place_in_run}"
    query: dict[str, object] = {"attempt": attempt.id, "context": submission.hidden_fields.context}
    if submission.hidden_fields.back:
        query["back"] = submission.hidden_fields.back
    return f"/quiz/{attempt.topic}/{attempt.question_id}?{urlencode(query)}"


def render_question_page(
    ctx: RequestContext,
    view: OpenQuestion | AnswerFeedback,
    run_progress: RunProgress | None = None,
    *,
    status: int = 200,
    reported: bool = False,
    attempt_count_in_lesson: int = 0,
) -> HTMLResponse:
    """The page of one question; for an htmx request, only the fragment it replaces.

    With `attempt_count_in_lesson`, of a question in a lesson, the fragment also updates the line above it.
    """
    outcome = view if isinstance(view, AnswerFeedback) else None
    template = "quiz/show.html"
    if ctx.request.method == "POST" and is_htmx_request(ctx.request):
        alone = "quiz/_verdict.html" if outcome else "quiz/_question.html"
        template = "quiz/_question_area.html" if run_progress else alone
        template = "quiz/_inline_answer.html" if attempt_count_in_lesson else template
    question = view.question
    return ctx.render_page(
        template,
        home=_describe_back_link(view.back_url),
        status=status,
        topic=ctx.course.topics.get(question.topic),
        objectives=[
            f"{objective.number} {objective.name}"
            for domain in ctx.course.syllabus.domains
            for objective in domain.objectives
            if objective.number in question.objectives
        ],
        open_question=view if isinstance(view, OpenQuestion) else None,
        outcome=outcome,
        run=run_progress,
        reported=reported,
        attempt_count=attempt_count_in_lesson,
        flag=_build_flag_button(ctx, view, run_progress),
    )


def _build_flag_button(
    ctx: RequestContext, view: OpenQuestion | AnswerFeedback, run_progress: RunProgress | None
) -> FlagButton | None:
    """Return the flag button, or None if the surrounding page shows its own."""
    if view.question.id not in ctx.course.questions:
        return None
    question = view.question
    back = f"/quiz/{question.topic}/{question.id}"
    if isinstance(view, AnswerFeedback):
        back = view.this_feedback_url
    elif run_progress:
        back = f"/quiz/runs/{run_progress.run_id}/{run_progress.place_in_run}"
    elif view.back_url:
        back += f"?{urlencode({'context': view.context, 'back': view.back_url})}"
    on = question.id in store.load_flagged_questions(ctx.db, ctx.learner.id)
    return FlagButton(question.topic, question.id, on, back)


router = APIRouter()


async def get_question_in_url(topic: str, question: str, course: CurrentCourse) -> Question:
    """Return the question in the URL; raises NotFoundError."""
    requested = require_question(course, question)
    if requested.topic != topic:
        require_topic(course, topic)
        raise NotFoundError(f"There is no question “{question}” in “{topic}”.")
    return requested


@dataclasses.dataclass(frozen=True, slots=True)
class RejectedAnswer:
    """Why an answer was not accepted, and the HTTP status."""

    message: str
    hint: str
    status: int


@dataclasses.dataclass(frozen=True, slots=True)
class SubmitResult:
    """The result of a submission: saved as `attempt` and graded, or asked again or rejected."""

    open_question: OpenQuestion
    run_progress: RunProgress | None
    attempt: RecordedAttempt | None = None
    graded: GradedVariant | None = None
    status: int = 200


QuestionOfPath = Annotated[Question, Depends(get_question_in_url)]


@router.get("/{topic}/{question}")  # noqa: FAST003 - in Addressed
def show_quiz_question(
    ctx: ReadContext, question: QuestionOfPath, submission: QueriedSubmission
) -> HTMLResponse:
    """The page of a question: unanswered, or with the feedback to an attempt."""
    refuse_if_excluded_from_practice(ctx, question)
    if not submission.hidden_fields.attempt:
        asked = build_open_question_of_request(ctx, question, submission)
        return render_question_page(ctx, asked, reported=submission.hidden_fields.reported)
    given = store.load_attempt(ctx.db, ctx.learner.id, submission.hidden_fields.attempt)
    if given.question_id != question.id:
        raise NotFoundError(f"Answer {given.id} belongs to another question.")
    outcome = build_feedback_with_next_links(ctx, given, None, submission)
    return render_question_page(ctx, outcome, reported=submission.hidden_fields.reported)


@router.get("/{topic}/{question}/form")  # noqa: FAST003 - in Addressed
def show_question_fragment(
    ctx: ReadContext, question: QuestionOfPath, submission: QueriedSubmission
) -> HTMLResponse:
    """The unanswered question as a fragment: another hint, a step moved, another try."""
    refuse_if_excluded_from_practice(ctx, question)
    run = _find_run_of_answer(ctx, question, submission)
    asked = build_open_question_of_request(ctx, question, submission, run)
    return render_page(ctx.request, "quiz/_question.html", open_question=asked)


@router.post("/{topic}/{question}/attempts")  # noqa: FAST003 - in Addressed
async def submit_attempt(
    request: Request, question: QuestionOfPath, submission: PostedSubmission
) -> Response:
    """Grade a response and save it; an unreadable one is rejected and not saved.

    The feedback is rendered after the commit: that takes longer than saving, and other writers
    would have to wait for it.
    """
    if submission.hidden_fields.unknown:
        submission = QuestionSubmission(submission.hidden_fields, {})
    async with open_write_context(request) as ctx:
        taken = await run_in_threadpool(_grade_and_save_answer, ctx, question, submission)
    async with open_read_only_session(request) as db:
        after = dataclasses.replace(ctx, db=db)
        return await run_in_threadpool(_respond_to_attempt, after, taken, submission)


def _grade_and_save_answer(
    ctx: RequestContext, question: Question, submission: QuestionSubmission
) -> SubmitResult:
    """Grade a response, and save it unless it is rejected.

    A number in the wrong unit is asked for once more before it counts.
    """
    refuse_if_excluded_from_practice(ctx, question)
    run = _find_run_of_answer(ctx, question, submission)
    asked = build_open_question_of_request(ctx, question, submission, run)
    verdict = _grade_or_reject(asked, submission)
    if isinstance(verdict, RejectedAnswer):
        shown = dataclasses.replace(
            asked, parse_error=verdict.message, parse_error_hint=verdict.hint
        )
        return SubmitResult(
            shown, _build_run_progress_with_attempt(question, run), status=verdict.status
        )
    if verdict.near_miss_message and not asked.is_asked_again:
        shown = dataclasses.replace(
            asked, near_miss_message=verdict.near_miss_message, is_asked_again=True
        )
        return SubmitResult(shown, _build_run_progress_with_attempt(question, run))
    given = _save_attempt(ctx, asked, verdict, submission)
    frame = _build_run_progress_with_attempt(question, run, given)
    return SubmitResult(asked, frame, given, GradedVariant(asked.variant, verdict))


@router.post("/{topic}/{question}/flag")  # noqa: FAST003 - in Addressed
def flag_question(ctx: WriteContext, question: QuestionOfPath, form: PostedFlag) -> Response:
    store.set_question_flag(ctx.db, ctx.learner.id, question.id, ctx.now, wanted=form.wanted)
    flag_button = FlagButton(question.topic, question.id, form.wanted, form.back)
    where = form.back or f"/quiz/{question.topic}/{question.id}"
    return render_fragment_or_redirect(
        ctx.request, "quiz/_flag.html", redirect_url=where, flag=flag_button
    )


@router.post("/{topic}/{question}/reports")  # noqa: FAST003 - in Addressed
def report_question(ctx: WriteContext, question: QuestionOfPath, form: PostedReport) -> Response:
    store.save_report_once(
        ctx.db,
        ctx.learner.id,
        {
            "item": question.id,
            "revision": question.revision,
            "seed": form.seed,
            "words": form.words.strip(),
            "token": form.token,
        },
        ctx.now,
    )
    where = form.back or f"/quiz/{question.topic}/{question.id}"
    sign = "&" if "?" in where else "?"
    return render_fragment_or_redirect(
        ctx.request, "quiz/_reported.html", redirect_url=f"{where}{sign}reported=1"
    )


def _grade_or_reject(
    open_question: OpenQuestion, submission: QuestionSubmission
) -> GradeResult | RejectedAnswer:
    if submission.hidden_fields.revision not in {"", open_question.question.revision}:
        words = "This question was edited while it was open. Nothing was counted."
        hint = "Read it again, and answer what it asks now."
        return RejectedAnswer(words, hint, 409)
    if submission.hidden_fields.unknown:
        return build_unanswered_result(open_question.variant)
    verdict = grade_response(open_question.variant, submission.raw_response)
    if isinstance(verdict, UnreadableResponse):
        return RejectedAnswer(verdict.message, verdict.hint, 422)
    variant = open_question.variant
    missing = open_question.question_type.describe_missing_input(
        variant.answer, submission.raw_response, variant.stem
    )
    if missing:
        return RejectedAnswer(missing, "Nothing was counted.", 422)
    return verdict


def _save_attempt(
    ctx: RequestContext,
    open_question: OpenQuestion,
    verdict: GradeResult,
    submission: QuestionSubmission,
) -> RecordedAttempt:
    answer = NewAttempt(
        question=open_question.question,
        seed=open_question.variant.seed,
        raw_response=submission.raw_response,
        verdict=verdict,
        submission_token=open_question.submission_token,
        context=submission.hidden_fields.context,
        run_id=submission.hidden_fields.run or None,
        certainty=submission.hidden_fields.certainty or None,
        hint_count=open_question.shown_hint_count,
        milliseconds=store.compute_answer_milliseconds(submission.hidden_fields.since, ctx.now),
        # A placement test comes before the pages, so its questions do not become cards.
        becomes_card=ctx.learner.missed_questions_become_cards
        and submission.hidden_fields.context != "placement"
        and verdict.result != "right"
        and is_usable_as_card(open_question.question),
    )
    day = ctx.learner.study_day(ctx.now)
    number = store.save_attempt_once(ctx.db, ctx.learner.id, answer, day, ctx.now)
    return store.load_attempt(ctx.db, ctx.learner.id, number)


def _respond_to_attempt(
    ctx: RequestContext, result: SubmitResult, submission: QuestionSubmission
) -> Response:
    given, frame = result.attempt, result.run_progress
    if given is None:
        return render_question_page(ctx, result.open_question, frame, status=result.status)
    if not is_htmx_request(ctx.request):
        return RedirectResponse(build_feedback_url(given, frame, submission), 303)
    outcome = build_feedback_with_next_links(ctx, given, frame, submission, result.graded)
    in_text = submission.hidden_fields.context == "page" and frame is None
    past = store.load_past_attempts_by_question(ctx.db, ctx.learner.id) if in_text else {}
    attempt_count = past[outcome.question.id].attempt_count if in_text else 0
    return render_question_page(ctx, outcome, frame, attempt_count_in_lesson=attempt_count)


def _find_run_of_answer(
    ctx: RequestContext, question: Question, submission: QuestionSubmission
) -> PracticeRunState | None:
    """Return the run that the answer belongs to; raises NotFoundError for another learner's run."""
    if not submission.hidden_fields.run:
        return None
    run = store.find_run(ctx.db, ctx.learner.id, submission.hidden_fields.run)
    if question.id not in run.question_ids:
        raise NotFoundError(f"Question “{question.id}” is not in practice run {run.id}.")
    return run


def _build_run_progress_with_attempt(
    question: Question, run: PracticeRunState | None, attempt: RecordedAttempt | None = None
) -> RunProgress | None:
    """Return the run frame of the question, with the answer just `attempt`."""
    if run is None:
        return None
    if attempt is not None:
        run = run.with_answer(attempt)
    return build_run_progress(run, run.question_ids.index(question.id) + 1)
