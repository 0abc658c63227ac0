"""One question: shown, answered, judged, reported."""

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.cards.names import can_be_card
from app.db.engine import read_only_session
from app.errors import NotFoundError
from app.learners.current import write_dependencies
from app.learners.desk import Reader, RequestContext, Writer, desk_of
from app.questions.asking import OpenQuestion
from app.questions.grading import grade, grade_blank
from app.questions.model import Question
from app.questions.verdict import GradeResult, UnreadableResponse
from app.quiz import store
from app.quiz.forms import AskedFor, FlagWished, Posted, Reported, Submission
from app.quiz.outcomes import GradedVariant
from app.quiz.showing import (
    FlagButton,
    RunFrame,
    frame_of,
    once_more,
    open_question,
    question_page,
    recorded_feedback,
    refuse_during_exam,
    tally_of,
    verdict_page,
)
from app.quiz.store import NewAttempt, PracticeRunState, RecordedAttempt
from app.web.course import CurrentLibrary, find_question
from app.web.render import is_htmx_request, render_fragment_or_redirect, render_page

router = APIRouter()


async def read_question(topic: str, question: str, library: CurrentLibrary) -> Question:
    """The question of the address; raises NotFound."""
    found = find_question(library, question)
    if found.topic != topic:
        raise NotFoundError(f"There is no question “{question}” in “{topic}”.")
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class RejectedAnswer:
    """Why an answer does not count, and the status that says so."""

    words: str
    hint: str
    status: int


@dataclasses.dataclass(frozen=True, slots=True)
class SubmitResult:
    """What became of an answer: kept as `given` and judged; or refused."""

    asked: OpenQuestion
    frame: RunFrame | None
    given: RecordedAttempt | None = None
    judged: GradedVariant | None = None
    status: int = 200


Addressed = Annotated[Question, Depends(read_question)]


@router.get("/{topic}/{question}")  # noqa: FAST003 - in Addressed
def show(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The question alone: open, or with the verdict of an attempt."""
    refuse_during_exam(desk, question)
    if not sent.form.attempt:
        asked = open_question(desk, question, sent)
        return question_page(desk, asked, reported=sent.form.reported)
    given = store.load_attempt(desk.db, desk.learner.id, sent.form.attempt)
    if given.item != question.id:
        raise NotFoundError(f"Answer {given.id} belongs to another question.")
    outcome = recorded_feedback(desk, given, None, sent)
    shown = once_more(desk, outcome, sent) or outcome
    return question_page(desk, shown, reported=sent.form.reported)


@router.get("/{topic}/{question}/form")  # noqa: FAST003 - in Addressed
def form(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The open question as a fragment: another hint, a step moved, another try."""
    refuse_during_exam(desk, question)
    asked = _placed(open_question(desk, question, sent), _run(desk, question, sent))
    return render_page(desk.request, "quiz/_question.html", asked=asked)


@router.post("/{topic}/{question}/attempts")  # noqa: FAST003 - in Addressed
async def attempt(request: Request, question: Addressed, sent: Posted) -> Response:
    """Judge an answer and keep it; what cannot be read is refused and not kept.

    The verdict is laid out when the answer is on disk: that takes longer than keeping
    it, and others who write would wait for it.
    """
    sent = _without_answer(sent)
    async with write_dependencies(request) as (db, learner):
        desk = await desk_of(request, learner, db)
        taken = await run_in_threadpool(_take, desk, question, sent)
    async with read_only_session(request) as db:
        after = dataclasses.replace(desk, db=db)
        return await run_in_threadpool(_answer_to, after, taken, sent)


def _take(desk: RequestContext, question: Question, sent: Submission) -> SubmitResult:
    """Keep an answer that can be judged."""
    refuse_during_exam(desk, question)
    run = _run(desk, question, sent)
    asked = _placed(open_question(desk, question, sent), run)
    verdict = _judge(asked, sent)
    if isinstance(verdict, RejectedAnswer):
        shown = dataclasses.replace(asked, refused=verdict.words, hint=verdict.hint)
        return SubmitResult(shown, _frame(desk, question, run), status=verdict.status)
    given = _keep(desk, asked, verdict, sent)
    frame = _frame(desk, question, run, given)
    return SubmitResult(asked, frame, given, GradedVariant(asked.variant, verdict))


@router.post("/{topic}/{question}/flag")  # noqa: FAST003 - in Addressed
def flag(desk: Writer, question: Addressed, sent: FlagWished) -> Response:
    """Flag a question to come back to it, or take the flag away."""
    store.set_flag(desk.db, desk.learner.id, question.id, desk.now, wanted=sent.wanted)
    made = FlagButton(question.topic, question.id, sent.wanted, sent.back)
    where = sent.back or f"/quiz/{question.topic}/{question.id}"
    return render_fragment_or_redirect(desk.request, "quiz/_flag.html", otherwise=where, flag=made)


@router.post("/{topic}/{question}/reports")  # noqa: FAST003 - in Addressed
def report(desk: Writer, question: Addressed, sent: Reported) -> Response:
    """Keep what is wrong with the question, for whoever mends it."""
    store.report(
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


def _without_answer(sent: Submission) -> Submission:
    """Who says that they do not know has chosen nothing, whatever was ticked."""
    return Submission(sent.form, {}) if _gives_up(sent) else sent


def _gives_up(sent: Submission) -> bool:
    """Whether a placement test hears that one does not know; elsewhere it asks on."""
    return sent.form.unknown and sent.form.context == "placement"


def _judge(asked: OpenQuestion, sent: Submission) -> GradeResult | RejectedAnswer:
    """The verdict, or why the answer does not count."""
    if sent.form.revision not in {"", asked.question.revision}:
        words = "This question was edited while it was open. Nothing was counted."
        hint = "Read it again, and answer what it asks now."
        return RejectedAnswer(words, hint, 409)
    if _gives_up(sent):
        return grade_blank(asked.variant)
    verdict = grade(asked.variant, sent.raw)
    if isinstance(verdict, UnreadableResponse):
        return RejectedAnswer(verdict.message, verdict.hint, 422)
    return verdict


def _keep(
    desk: RequestContext, asked: OpenQuestion, verdict: GradeResult, sent: Submission
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
        # A placement test asks before anything was taught: its pages come first.
        missed=desk.learner.missed
        and sent.form.context != "placement"
        and verdict.result != "right"
        and can_be_card(asked.question),
    )
    day = desk.learner.study_day(desk.now)
    number = store.record_attempt(desk.db, desk.learner.id, answer, day, desk.now)
    return store.load_attempt(desk.db, desk.learner.id, number)


def _answer_to(desk: RequestContext, taken: SubmitResult, sent: Submission) -> Response:
    given, frame = taken.given, taken.frame
    if given is None:
        return question_page(desk, taken.asked, frame, status=taken.status)
    if not is_htmx_request(desk.request):
        return RedirectResponse(verdict_page(given, frame, sent), 303)
    outcome = recorded_feedback(desk, given, frame, sent, taken.judged)
    near = once_more(desk, outcome, sent)
    if near is not None:
        near = dataclasses.replace(near, place=frame.place if frame else 0)
    in_text = sent.form.context == "page" and frame is None
    tally = tally_of(desk, outcome.question) if in_text else None
    return question_page(desk, near or outcome, frame, tally=tally)


def _run(desk: RequestContext, question: Question, sent: Submission) -> PracticeRunState | None:
    """The run that the answer belongs to; raises NotFound for another's."""
    if not sent.form.run:
        return None
    run = store.find_run(desk.db, desk.learner.id, sent.form.run)
    if question.id not in run.items:
        raise NotFoundError(f"Question “{question.id}” is not in practice run {run.id}.")
    return run


def _frame(
    desk: RequestContext,
    question: Question,
    run: PracticeRunState | None,
    given: RecordedAttempt | None = None,
) -> RunFrame | None:
    """What stands around the question, with the answer just `given`."""
    if run is None:
        return None
    if given is not None:
        run = run.with_answer(given)
    return frame_of(desk, run, run.items.index(question.id) + 1)


def _placed(asked: OpenQuestion, run: PracticeRunState | None) -> OpenQuestion:
    place = run.items.index(asked.question.id) + 1 if run else 0
    return dataclasses.replace(asked, place=place)
