"""One question: shown, graded, explained."""

import dataclasses
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.accounts.current_learner import (
    Reader,
    RequestContext,
    Writer,
    build_request_context,
    write_dependencies,
)
from app.accounts.learner_store import questions_in_past_exams, questions_in_running_exam
from app.clock import to_milliseconds
from app.content.blueprint import reserved_for_exams
from app.content.library import Library
from app.database.engine import read_only_session
from app.errors import ConflictError, NotFoundError
from app.estimator import registry
from app.markup.model import CitedSource, QuestionBlock, Topic
from app.questions import types
from app.questions.grading import grade, grade_blank, grade_unreadable
from app.questions.model import Question, Variant
from app.questions.question_form import OpenQuestion, new_token, seed_for
from app.questions.question_type import QuestionType
from app.questions.result import GradeResult, UnreadableResponse
from app.questions.variants import draw_variant
from app.quiz import store
from app.quiz.forms import AskedFor, FlagWished, Posted, QuestionSubmission, Reported
from app.quiz.passages import find_passage
from app.quiz.store import NewAttempt, PracticeRunState, RecordedAttempt
from app.spaced_repetition.added_cards import MissedQuestionCard, find_comeback
from app.spaced_repetition.card_ids import can_be_card
from app.web.dependencies import CurrentLibrary, course_links, find_question, find_topic
from app.web.render import is_htmx_request, render_fragment_or_redirect, render_page
from app.widgets.calculator_form import build_calculator_form
from app.widgets.estimate_view import EstimateView


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """What `quiz/_verdict.html` shows: the grade, the explanation, and links.

    `reading` is the calculator with the numbers of this attempt, None for questions without one.
    `old` says that the question was edited since. `again` leads to another try, `onward` to the
    next step with its label, `here` to this feedback. `comeback` is None if the question is not
    among the learner's cards.
    """

    variant: Variant
    verdict: GradeResult
    given: RecordedAttempt
    sources: tuple[CitedSource, ...]
    page: str
    reading: EstimateView | None
    back: str
    again: str
    onward: str
    onward_words: str
    here: str
    token: str
    old: bool = False
    comeback: MissedQuestionCard | None = None

    @property
    def question(self) -> Question:
        """The question in the revision that was answered."""
        return self.variant.question

    @property
    def confidence_note(self) -> str:
        """What the confidence adds to the verdict; empty if the two agree."""
        notes = {("right", 1): ", though you guessed", ("wrong", 3): ", and you were sure"}
        return notes.get((self.verdict.result, self.given.certainty or 0), "")

    @property
    def kind(self) -> QuestionType[Any]:
        return types.type_of(self.variant)

    @property
    def columns(self) -> tuple[str, str]:
        """The column titles: the prompt, and the right answer."""
        return self.kind.columns(self.variant.answer)

    @property
    def calculator(self) -> str:
        """URL of the calculator with this attempt's numbers, or with the chosen plan."""
        return _calculator_address(self.variant, self.verdict)


@dataclasses.dataclass(frozen=True, slots=True)
class GradedVariant:
    """The variant, and the grade of its answer."""

    variant: Variant
    verdict: GradeResult


@dataclasses.dataclass(frozen=True, slots=True)
class NextLinks:
    """Where the learner came from, and where to go next."""

    back: str = ""
    onward: str = ""
    words: str = ""
    here: str = ""
    token: str = ""


def build_feedback(
    db: Session,
    library: Library,
    given: RecordedAttempt,
    way: NextLinks,
    judged: GradedVariant | None = None,
) -> AnswerFeedback:
    """Return the feedback to an answer: `judged` now, or graded as it was at the time."""
    seen = judged or _variant_as_answered(db, library, given)
    variant, verdict = seen.variant, seen.verdict
    question = variant.question
    topic = library.topics.get(question.topic)
    current = library.questions.get(question.id)
    return AnswerFeedback(
        variant=variant,
        verdict=verdict,
        given=given,
        sources=_cited_sources(library, question),
        page=_passage_address(topic, variant, verdict) if topic else "",
        reading=_estimate_reading(_calculator_address(variant, verdict), library),
        back=way.back,
        again=f"/quiz/{question.topic}/{question.id}" if current else "",
        onward=way.onward,
        onward_words=way.words,
        here=way.here,
        token=way.token,
        old=current is None or current.revision != given.revision,
    )


def _passage_address(topic: Topic, variant: Variant, verdict: GradeResult) -> str:
    """Return the URL of the sentence on the page that answers the question."""
    right = (mark.text.plain for mark in verdict.marks if mark.wanted_chosen)
    answer = " ".join((verdict.wanted, variant.explanation.plain, *right))
    passage = find_passage(topic, variant.stem.plain, answer)
    return f"/concepts/{topic.slug}{passage.fragment if passage else ''}"


def _variant_as_answered(db: Session, library: Library, given: RecordedAttempt) -> GradedVariant:
    variant = draw_variant(_question_as_answered(db, library, given), given.seed)
    if not given.raw:
        return GradedVariant(variant, grade_blank(variant))
    verdict = grade(variant, given.raw)
    if isinstance(verdict, UnreadableResponse) and given.score:  # the grading rules changed since
        verdict = GradeResult(score=given.score, parsed={})
    elif isinstance(
        verdict, UnreadableResponse
    ):  # from an exam, which could not ask for a readable answer
        verdict = grade_unreadable(variant, given.raw, verdict)
    return GradedVariant(variant, verdict)


def _question_as_answered(db: Session, library: Library, given: RecordedAttempt) -> Question:
    current = library.questions.get(given.item)
    if current is not None and current.revision == given.revision:
        return current
    kept = store.load_wording(db, given.item, given.revision)
    assert kept is not None  # noqa: S101 - saved with the first answer to it
    return kept


def _cited_sources(library: Library, question: Question) -> tuple[CitedSource, ...]:
    return tuple(library.sources[k] for k in question.sources if k in library.sources)


def _calculator_address(variant: Variant, verdict: GradeResult) -> str:
    planned = types.type_of(variant).calculator(variant.answer, verdict.parsed)
    return planned or variant.calculator


def _estimate_reading(calculator: str, library: Library) -> EstimateView | None:
    """Return the estimate behind a question, with the numbers of the attempt."""
    address = urlsplit(calculator)
    entry = registry.find_estimate(address.path.rpartition("/")[2]) if address.path else None
    if entry is None:
        return None
    inputs = dict(parse_qsl(address.query))
    return build_calculator_form(entry, inputs, course=course_links(library), block=True).estimate


_PAGE, _PRACTICE = "the page", "your practice"
_HOMES = {"/flashcards": "your cards", "/quiz/runs/": _PRACTICE}


@dataclasses.dataclass(frozen=True, slots=True)
class FlagButton:
    """The flag button of a question; `back` is the page that contains it."""

    topic: str
    item: str
    on: bool
    back: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class RunFrame:
    """The run around a question: its place, and the scores so far.

    `scores` has one entry per question, None for unanswered ones. `placing` says that it is a
    placement test. `review` has the places to look at again, if that is what the learner does.
    """

    id: int
    place: int
    scores: tuple[float | None, ...]
    placing: bool = False
    review: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return len(self.scores)

    @property
    def answered(self) -> int:
        return sum(score is not None for score in self.scores)

    @property
    def right(self) -> int:
        """How many are fully right."""
        return sum(score is not None and score >= 1 for score in self.scores)

    @property
    def address(self) -> str:
        """URL that continues the run at its next unanswered question."""
        return f"/quiz/runs/{self.id}"

    @property
    def onward(self) -> str:
        """URL of the next question to look at again, or else of the next unanswered one.

        Later unanswered questions come first. When none is left, it is the URL of the result.
        """
        if self.place in self.review[:-1]:
            return f"{self.address}/{self.review[self.review.index(self.place) + 1]}?review=yes"
        if self.review:
            return f"{self.address}/result"
        for place in (*range(self.place + 1, self.count + 1), *range(1, self.place)):
            if self.scores[place - 1] is None:
                return f"{self.address}/{place}"
        return f"{self.address}/result"


@dataclasses.dataclass(frozen=True, slots=True)
class PageQuestionCount:
    """Counts of a page's questions: `tries` of one, `answered` of `count`."""

    item: str
    tries: int
    answered: int
    count: int


def page_question_count(desk: RequestContext, question: Question) -> PageQuestionCount | None:
    """Return the counts of the page whose text contains the question; None if none does."""
    topic = desk.library.topics.get(question.topic)
    asked = [
        piece.question
        for section in (topic.sections if topic else ())
        for piece in section.pieces
        if isinstance(piece, QuestionBlock)
    ]
    if question.id not in asked:
        return None
    past = store.load_history(desk.db, desk.learner.id)
    tries = past[question.id].tries if question.id in past else 0
    return PageQuestionCount(question.id, tries, sum(item in past for item in asked), len(asked))


def run_frame(run: PracticeRunState, place: int) -> RunFrame:
    """Return the frame of question `place` of a run."""
    scores = tuple(run.answers[item][1] if item in run.answers else None for item in run.items)
    return RunFrame(run.id, place, scores, placing=run.mode == "placement")


def refuse_during_exam(desk: RequestContext, question: Question) -> None:
    """Raise ConflictError if the question is in a mock exam in progress."""
    if question.id in questions_in_running_exam(desk.db, desk.learner.id, desk.now):
        raise ConflictError(
            "This question is in the mock exam that you are sitting.",
            "Finish the exam first; then it can be practiced.",
        )
    if question.id in excluded_questions(desk):
        raise ConflictError(
            "This question is kept for mock exams.",
            "Once a mock exam has asked it, it can be practiced.",
        )


def excluded_questions(desk: RequestContext) -> frozenset[str]:
    """Return the questions that practice must not show now.

    Those of a mock exam in progress, and those reserved for future ones.
    """
    db, learner = desk.db, desk.learner.id
    kept = reserved_for_exams(desk.library, questions_in_past_exams(db, learner, desk.now))
    return kept | questions_in_running_exam(db, learner, desk.now)


def open_question(
    desk: RequestContext, question: Question, sent: QuestionSubmission
) -> OpenQuestion:
    """Return the question for this request: its seed, and the response so far."""
    form, raw = sent.form, sent.raw
    seed = form.seed
    if seed is None:
        before = store.load_seeds(desk.db, desk.learner.id, question.id)
        seed = seed_for(question, desk.learner.key, before)
    variant = draw_variant(question, seed)
    if form.move:
        raw = types.type_of(variant).moved(raw, form.move)
    return OpenQuestion(
        variant=variant,
        token=form.token or new_token(),
        context=form.context,
        back=form.back,
        run=form.run,
        hints=min(form.hints + form.more, len(variant.hints)),
        since=form.since or to_milliseconds(desk.now),
        certainty=form.certainty,
        typed=raw,
    )


def recorded_feedback(
    desk: RequestContext,
    given: RecordedAttempt,
    frame: RunFrame | None,
    sent: QuestionSubmission,
    seen: GradedVariant | None = None,
) -> AnswerFeedback:
    """Return the feedback to a saved answer, with links to the next step."""
    if frame is not None:
        last = frame.onward.endswith("result")
        words = "See the result" if last else "Next missed" if frame.review else "Next question"
        way = NextLinks(frame.address, frame.onward, words)
    elif sent.form.context == "page":
        way = NextLinks(sent.form.back)
    elif _home_words(sent.form.back) == _PRACTICE:
        way = NextLinks(sent.form.back, sent.form.back, f"Back to {_PRACTICE}")
    else:
        topic = desk.library.questions.get(given.item)
        onward = f"/quiz/{topic.topic}" if topic else "/quiz"
        way = NextLinks(sent.form.back, onward, "All questions of this topic")
    here = verdict_page(given, frame, sent)
    way = dataclasses.replace(way, here=here, token=new_token())
    outcome = build_feedback(desk.db, desk.library, given, way, seen)
    return add_comeback(desk, outcome)


def add_comeback(desk: RequestContext, outcome: AnswerFeedback) -> AnswerFeedback:
    """Return the feedback with the question's card, if it has one."""
    day = desk.learner.study_day(desk.now)
    item = outcome.question.id
    found = None
    if item in desk.library.questions:
        found = find_comeback(desk.db, desk.learner.id, item, day)
    return dataclasses.replace(outcome, comeback=found)


def _home_words(back: str) -> str:
    """Return the name of the page that a question was opened from; `back` is its URL."""
    return next((name for at, name in _HOMES.items() if back.startswith(at)), _PAGE)


def verdict_page(given: RecordedAttempt, frame: RunFrame | None, sent: QuestionSubmission) -> str:
    """Return the URL of the feedback for a browser without htmx."""
    if frame is not None:
        return f"/quiz/runs/{frame.id}/{frame.place}"
    query: dict[str, object] = {"attempt": given.id, "context": sent.form.context}
    if sent.form.back:
        query["back"] = sent.form.back
    return f"/quiz/{given.topic}/{given.item}?{urlencode(query)}"


def ask_again_in_unit(
    desk: RequestContext, outcome: AnswerFeedback, sent: QuestionSubmission
) -> OpenQuestion | None:
    """Return the same variant again if only the unit was wrong; otherwise None."""
    near = outcome.verdict.near
    if not near or outcome.old:
        return None
    asked = open_question(desk, outcome.question, QuestionSubmission(sent.form, outcome.given.raw))
    return dataclasses.replace(asked, variant=outcome.variant, token=new_token(), near=near)


def question_page(
    desk: RequestContext,
    shown: OpenQuestion | AnswerFeedback,
    frame: RunFrame | None = None,
    *,
    status: int = 200,
    reported: bool = False,
    tally: PageQuestionCount | None = None,
) -> HTMLResponse:
    """The page of one question; for an htmx request, only the fragment it replaces.

    With a `tally` the fragment also updates the counts on the surrounding page.
    """
    asked = shown if isinstance(shown, OpenQuestion) else None
    outcome = shown if isinstance(shown, AnswerFeedback) else None
    template = "quiz/show.html"
    if desk.request.method == "POST" and is_htmx_request(desk.request):
        alone = "quiz/_verdict.html" if outcome else "quiz/_question.html"
        template = "quiz/_desk.html" if frame else alone
        template = "quiz/_judged.html" if tally else template
    question = shown.question
    return desk.page(
        template,
        home=_home_words(shown.back),
        status=status,
        topic=desk.library.topics.get(question.topic),
        objectives=objective_titles(desk.library, question),
        asked=asked,
        outcome=outcome,
        run=frame,
        reported=reported,
        tally=tally,
        flag=_flag_button(desk, shown, frame),
    )


def _flag_button(
    desk: RequestContext, shown: OpenQuestion | AnswerFeedback, frame: RunFrame | None
) -> FlagButton | None:
    """Return the flag button, or None if the surrounding page shows its own."""
    if shown.question.id not in desk.library.questions:
        return None
    question = shown.question
    alone = f"/quiz/{question.topic}/{question.id}"
    back = f"/quiz/runs/{frame.id}/{frame.place}" if frame else alone
    if isinstance(shown, AnswerFeedback) and frame is None:
        back = f"{alone}?attempt={shown.given.id}"
    on = question.id in store.flagged_questions(desk.db, desk.learner.id)
    return FlagButton(question.topic, question.id, on, back)


def objective_titles(library: Library, question: Question) -> list[str]:
    """Return the objectives of a question with their numbers, for the line above it."""
    return [
        f"{objective.number} {objective.name}"
        for domain in library.syllabus.domains
        for objective in domain.objectives
        if objective.number in question.objectives
    ]


router = APIRouter()


async def read_question(topic: str, question: str, library: CurrentLibrary) -> Question:
    """Return the question in the URL; raises NotFoundError."""
    found = find_question(library, question)
    if found.topic != topic:
        find_topic(library, topic)
        raise NotFoundError(f"There is no question “{question}” in “{topic}”.")
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class RejectedAnswer:
    """Why an answer was not accepted, and the HTTP status."""

    words: str
    hint: str
    status: int


@dataclasses.dataclass(frozen=True, slots=True)
class SubmitResult:
    """The result of a submission: saved as `given` and graded, or rejected."""

    asked: OpenQuestion
    frame: RunFrame | None
    given: RecordedAttempt | None = None
    judged: GradedVariant | None = None
    status: int = 200


Addressed = Annotated[Question, Depends(read_question)]


@router.get("/{topic}/{question}")  # noqa: FAST003 - in Addressed
def show_quiz_question(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The page of a question: unanswered, or with the feedback to an attempt."""
    refuse_during_exam(desk, question)
    if not sent.form.attempt:
        asked = open_question(desk, question, sent)
        return question_page(desk, asked, reported=sent.form.reported)
    given = store.load_attempt(desk.db, desk.learner.id, sent.form.attempt)
    if given.item != question.id:
        raise NotFoundError(f"Answer {given.id} belongs to another question.")
    outcome = recorded_feedback(desk, given, None, sent)
    shown = ask_again_in_unit(desk, outcome, sent) or outcome
    return question_page(desk, shown, reported=sent.form.reported)


@router.get("/{topic}/{question}/form")  # noqa: FAST003 - in Addressed
def quiz_question_fragment(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The unanswered question as a fragment: another hint, a step moved, another try."""
    refuse_during_exam(desk, question)
    asked = _place_in_run(
        open_question(desk, question, sent), _find_answered_run(desk, question, sent)
    )
    return render_page(desk.request, "quiz/_question.html", asked=asked)


@router.post("/{topic}/{question}/attempts")  # noqa: FAST003 - in Addressed
async def submit_attempt(request: Request, question: Addressed, sent: Posted) -> Response:
    """Grade a response and save it; an unreadable one is rejected and not saved.

    The feedback is rendered after the commit: that takes longer than saving, and other writers
    would have to wait for it.
    """
    sent = _clear_answer(sent)
    async with write_dependencies(request) as (db, learner):
        desk = await build_request_context(request, learner, db)
        taken = await run_in_threadpool(_submit_answer, desk, question, sent)
    async with read_only_session(request) as db:
        after = dataclasses.replace(desk, db=db)
        return await run_in_threadpool(_respond_to_attempt, after, taken, sent)


def _submit_answer(
    desk: RequestContext, question: Question, sent: QuestionSubmission
) -> SubmitResult:
    """Grade a response, and save it unless it is rejected."""
    refuse_during_exam(desk, question)
    run = _find_answered_run(desk, question, sent)
    asked = _place_in_run(open_question(desk, question, sent), run)
    verdict = _judge_submission(asked, sent)
    if isinstance(verdict, RejectedAnswer):
        shown = dataclasses.replace(asked, refused=verdict.words, hint=verdict.hint)
        return SubmitResult(shown, _frame_around(question, run), status=verdict.status)
    given = _save_attempt(desk, asked, verdict, sent)
    frame = _frame_around(question, run, given)
    return SubmitResult(asked, frame, given, GradedVariant(asked.variant, verdict))


@router.post("/{topic}/{question}/flag")  # noqa: FAST003 - in Addressed
def flag_question(desk: Writer, question: Addressed, sent: FlagWished) -> Response:
    """Flag a question, or remove the flag."""
    store.set_flag(desk.db, desk.learner.id, question.id, desk.now, wanted=sent.wanted)
    made = FlagButton(question.topic, question.id, sent.wanted, sent.back)
    where = sent.back or f"/quiz/{question.topic}/{question.id}"
    return render_fragment_or_redirect(desk.request, "quiz/_flag.html", otherwise=where, flag=made)


@router.post("/{topic}/{question}/reports")  # noqa: FAST003 - in Addressed
def report_question(desk: Writer, question: Addressed, sent: Reported) -> Response:
    """Save a report about the question for the author."""
    store.save_report(
        desk.db,
        desk.learner.id,
        {
            "item": question.id,
            "revision": question.revision,
            "seed": sent.seed,
            "words": sent.words.strip(),
            "token": sent.token,
        },
        desk.now,
    )
    where = sent.back or f"/quiz/{question.topic}/{question.id}"
    sign = "&" if "?" in where else "?"
    return render_fragment_or_redirect(
        desk.request, "quiz/_reported.html", otherwise=f"{where}{sign}reported=1"
    )


def _clear_answer(sent: QuestionSubmission) -> QuestionSubmission:
    """Return the submission without a response if the learner chose “I don't know”."""
    return QuestionSubmission(sent.form, {}) if sent.form.unknown else sent


def _judge_submission(
    asked: OpenQuestion, sent: QuestionSubmission
) -> GradeResult | RejectedAnswer:
    """Return the grade result, or why the answer is not accepted."""
    if sent.form.revision not in {"", asked.question.revision}:
        words = "This question was edited while it was open. Nothing was counted."
        hint = "Read it again, and answer what it asks now."
        return RejectedAnswer(words, hint, 409)
    if sent.form.unknown:
        return grade_blank(asked.variant)
    verdict = grade(asked.variant, sent.raw)
    if isinstance(verdict, UnreadableResponse):
        return RejectedAnswer(verdict.message, verdict.hint, 422)
    variant = asked.variant
    missing = asked.kind.left_to_do(variant.answer, sent.raw, variant.stem)
    if missing:
        return RejectedAnswer(missing, "Nothing was counted.", 422)
    return verdict


def _save_attempt(
    desk: RequestContext, asked: OpenQuestion, verdict: GradeResult, sent: QuestionSubmission
) -> RecordedAttempt:
    answer = NewAttempt(
        question=asked.question,
        seed=asked.variant.seed,
        raw=sent.raw,
        verdict=verdict,
        token=asked.token,
        context=sent.form.context,
        run=sent.form.run or None,
        certainty=sent.form.certainty or None,
        hints=asked.hints,
        milliseconds=store.elapsed_milliseconds(sent.form.since, desk.now),
        # A placement test comes before the pages, so its questions do not become cards.
        missed=desk.learner.missed
        and sent.form.context != "placement"
        and verdict.result != "right"
        and can_be_card(asked.question),
    )
    day = desk.learner.study_day(desk.now)
    number = store.record_attempt(desk.db, desk.learner.id, answer, day, desk.now)
    return store.load_attempt(desk.db, desk.learner.id, number)


def _respond_to_attempt(
    desk: RequestContext, taken: SubmitResult, sent: QuestionSubmission
) -> Response:
    given, frame = taken.given, taken.frame
    if given is None:
        return question_page(desk, taken.asked, frame, status=taken.status)
    if not is_htmx_request(desk.request):
        return RedirectResponse(verdict_page(given, frame, sent), 303)
    outcome = recorded_feedback(desk, given, frame, sent, taken.judged)
    near = ask_again_in_unit(desk, outcome, sent)
    if near is not None:
        near = dataclasses.replace(near, place=frame.place if frame else 0)
    in_text = sent.form.context == "page" and frame is None
    tally = page_question_count(desk, outcome.question) if in_text else None
    return question_page(desk, near or outcome, frame, tally=tally)


def _find_answered_run(
    desk: RequestContext, question: Question, sent: QuestionSubmission
) -> PracticeRunState | None:
    """Return the run that the answer belongs to; raises NotFoundError for another learner's run."""
    if not sent.form.run:
        return None
    run = store.find_run(desk.db, desk.learner.id, sent.form.run)
    if question.id not in run.items:
        raise NotFoundError(f"Question “{question.id}” is not in practice run {run.id}.")
    return run


def _frame_around(
    question: Question,
    run: PracticeRunState | None,
    given: RecordedAttempt | None = None,
) -> RunFrame | None:
    """Return the run frame of the question, with the answer just `given`."""
    if run is None:
        return None
    if given is not None:
        run = run.with_answer(given)
    return run_frame(run, run.items.index(question.id) + 1)


def _place_in_run(asked: OpenQuestion, run: PracticeRunState | None) -> OpenQuestion:
    place = run.items.index(asked.question.id) + 1 if run else 0
    return dataclasses.replace(asked, place=place)
