"""Try a question without recording it."""

import dataclasses
from collections.abc import Mapping, Sequence

from sqlmodel import Session

from app.content.library import Library
from app.questions import types
from app.questions.grading import grade, grade_blank
from app.questions.model import Question, Variant
from app.questions.question_form import OpenQuestion, new_token
from app.questions.result import GradeResult, Raw, UnreadableResponse
from app.questions.variants import draw_variant
from app.quiz.forms import QuestionSubmission
from app.quiz.question_page import AnswerFeedback, GradedVariant, NextLinks, build_feedback
from app.quiz.store import RecordedAttempt
from app.web.formatting import format_percent


@dataclasses.dataclass(frozen=True, slots=True)
class SampleResponse:
    """A possible response, in words, and its grade.

    `result` is right, partly, wrong, near or refused.
    """

    words: str
    raw: Raw
    result: str
    said: str


def sample_responses(variant: Variant) -> list[SampleResponse]:
    """Return the responses worth showing, each once: right, each foreseen one, others."""
    made: list[SampleResponse] = []
    seen: set[tuple[tuple[str, tuple[str, ...]], ...]] = set()
    for words, raw in types.type_of(variant).states(variant.answer):
        name = tuple(sorted((k, tuple(v)) for k, v in raw.items()))
        if name not in seen:
            seen.add(name)
            made.append(_judge_sample(variant, words, raw))
    return made


def _judge_sample(variant: Variant, words: str, raw: Raw) -> SampleResponse:
    verdict = grade(variant, raw)
    if isinstance(verdict, UnreadableResponse):
        return SampleResponse(words, raw, "refused", "refused")
    if verdict.near:
        return SampleResponse(words, raw, "near", "asked again")
    said = {"right": "right", "wrong": "not right"}.get(verdict.result, "")
    return SampleResponse(
        words, raw, verdict.result, said or f"{format_percent(verdict.score)} of the points"
    )


def response_pairs(raw: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return a response as query pairs."""
    return [(name, value) for name, values in raw.items() for value in values]


def preview_url(question: Question) -> str:
    """Return the author's URL of a question."""
    return f"/authoring/questions/{question.id}"


def open_question(question: Question, sent: QuestionSubmission) -> OpenQuestion:
    """Return the unanswered question, with the response so far and the requested hints."""
    form, raw = sent.form, sent.raw
    variant = draw_variant(question, form.seed or 0)
    if form.move:
        raw = types.type_of(variant).moved(raw, form.move)
    return OpenQuestion(
        variant=variant,
        token=new_token(),
        context=form.context,
        back=form.back,
        hints=min(form.hints + form.more, len(variant.hints)),
        certainty=form.certainty,
        typed=raw,
        at=preview_url(question),
    )


def try_response(
    db: Session, library: Library, question: Question, sent: QuestionSubmission
) -> OpenQuestion | AnswerFeedback:
    """Return what a learner would see after this response."""
    asked = open_question(question, sent)
    verdict = grade_blank(asked.variant) if sent.form.unknown else grade(asked.variant, sent.raw)
    if isinstance(verdict, UnreadableResponse):
        return dataclasses.replace(asked, refused=verdict.message, hint=verdict.hint)
    if verdict.near:
        return dataclasses.replace(asked, near=verdict.near)
    given = _trial_as_attempt(question, asked, sent, verdict)
    way = NextLinks(asked.back, token=asked.token)
    outcome = build_feedback(db, library, given, way, GradedVariant(asked.variant, verdict))
    again = f"{preview_url(question)}?seed={asked.variant.seed + 1}"
    bare = asked.context == "page"  # the page adds its own query string
    return dataclasses.replace(outcome, again=preview_url(question) if bare else again)


def _trial_as_attempt(
    question: Question, asked: OpenQuestion, sent: QuestionSubmission, verdict: GradeResult
) -> RecordedAttempt:
    return RecordedAttempt(
        id=0,
        item=question.id,
        topic=question.topic,
        revision=question.revision,
        seed=asked.variant.seed,
        raw=sent.raw,
        score=verdict.score,
        certainty=asked.certainty or None,
        context=asked.context,
        run=None,
        hints=asked.hints,
    )
