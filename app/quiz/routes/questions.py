"""One question: shown, answered, judged, reported."""

import dataclasses
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.content.added import comes_back
from app.errors import NotFound
from app.questions.model import Question
from app.quiz import store
from app.quiz.forms import AskedFor, Posted, Reported, Sent
from app.quiz.grading import Unreadable, Verdict, grade
from app.quiz.routes.showing import (
    Desk,
    Reader,
    RunFrame,
    Writer,
    frame_of,
    judged,
    not_in_exam,
    once_more,
    put,
    question_page,
    tally_of,
    verdict_page,
)
from app.quiz.store import Answer, Given
from app.web.asking import Asked
from app.web.render import is_htmx, page, reply
from app.web.shelf import CurrentLibrary, find_question

router = APIRouter()


async def read_question(topic: str, question: str, library: CurrentLibrary) -> Question:
    """The question of the address; raises NotFound."""
    found = find_question(library, question)
    if found.topic != topic:
        raise NotFound(f"There is no question “{question}” in “{topic}”.")
    return found


Addressed = Annotated[Question, Depends(read_question)]


@router.get("/{topic}/{question}")  # noqa: FAST003 - in Addressed
def show(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The question alone: open, or with the verdict of an attempt."""
    not_in_exam(desk, question)
    if not sent.form.attempt:
        asked = put(desk, question, sent)
        return question_page(desk, asked, reported=sent.form.reported)
    given = store.find(desk.db, desk.learner.id, sent.form.attempt)
    if given.item != question.id:
        raise NotFound(f"Answer {given.id} belongs to another question.")
    outcome = judged(desk, given, None, sent)
    shown = once_more(desk, outcome, sent) or outcome
    return question_page(desk, shown, reported=sent.form.reported)


@router.get("/{topic}/{question}/form")  # noqa: FAST003 - in Addressed
def form(desk: Reader, question: Addressed, sent: AskedFor) -> HTMLResponse:
    """The open question as a fragment: another hint, a step moved, another try."""
    not_in_exam(desk, question)
    asked = _placed(desk, put(desk, question, sent), sent)
    return page(desk.request, "quiz/_question.html", asked=asked)


@router.post("/{topic}/{question}/attempts")  # noqa: FAST003 - in Addressed
def attempt(desk: Writer, question: Addressed, sent: Posted) -> Response:
    """Judge an answer and keep it; what cannot be read is refused and not kept."""
    not_in_exam(desk, question)
    frame = _frame(desk, question, sent)
    asked = dataclasses.replace(
        put(desk, question, sent), place=frame.place if frame else 0
    )
    refusal = _refusal(asked, question, sent)
    if refusal is not None:
        refused, status = refusal
        return question_page(desk, refused, frame, status=status)
    verdict = grade(asked.variant, sent.raw)
    assert isinstance(verdict, Verdict)  # noqa: S101 - anything else was refused
    given = _keep(desk, asked, verdict, sent)
    return _answer_to(desk, given, _frame(desk, question, sent), sent)


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
    return reply(
        desk.request, "quiz/_reported.html", otherwise=f"{where}{sign}reported=1"
    )


def _refusal(asked: Asked, question: Question, sent: Sent) -> tuple[Asked, int] | None:
    """The question shown again with the reason, where the answer does not count."""
    if sent.form.revision not in {"", question.revision}:
        words = "This question was edited while it was open. Nothing was counted."
        hint = "Read it again, and answer what it asks now."
        return dataclasses.replace(asked, refused=words, hint=hint), 409
    verdict = grade(asked.variant, sent.raw)
    if isinstance(verdict, Unreadable):
        words, hint = verdict.message, verdict.hint
        return dataclasses.replace(asked, refused=words, hint=hint), 422
    return None


def _keep(desk: Desk, asked: Asked, verdict: Verdict, sent: Sent) -> Given:
    answer = Answer(
        question=asked.question,
        seed=asked.variant.seed,
        raw=sent.raw,
        verdict=verdict,
        token=asked.token,
        context=sent.form.context,
        run=sent.form.run or None,
        certainty=sent.form.certainty or None,
        hints=asked.hints,
        milliseconds=store.waited(sent.form.since, desk.now),
        missed=desk.learner.missed
        and verdict.result != "right"
        and comes_back(asked.question),
    )
    day = desk.learner.study_day(desk.now)
    number = store.record(desk.db, desk.learner.id, answer, day, desk.now)
    return store.find(desk.db, desk.learner.id, number)


def _answer_to(
    desk: Desk, given: Given, frame: RunFrame | None, sent: Sent
) -> Response:
    if not is_htmx(desk.request):
        return RedirectResponse(verdict_page(given, frame, sent), 303)
    outcome = judged(desk, given, frame, sent)
    near = once_more(desk, outcome, sent)
    if near is not None:
        near = dataclasses.replace(near, place=frame.place if frame else 0)
    in_text = sent.form.context == "page" and frame is None
    tally = tally_of(desk, outcome.question) if in_text else None
    return question_page(desk, near or outcome, frame, tally=tally)


def _frame(desk: Desk, question: Question, sent: Sent) -> RunFrame | None:
    """The run that the answer belongs to; raises NotFound for another's."""
    if not sent.form.run:
        return None
    run = store.find_run(desk.db, desk.learner.id, sent.form.run)
    if question.id not in run.items:
        raise NotFound(f"Question “{question.id}” is not in practice run {run.id}.")
    return frame_of(desk, run, run.items.index(question.id) + 1)


def _placed(desk: Desk, asked: Asked, sent: Sent) -> Asked:
    frame = _frame(desk, asked.question, sent)
    return dataclasses.replace(asked, place=frame.place if frame else 0)
