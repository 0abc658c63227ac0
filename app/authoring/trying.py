"""A question put to its author: asked and judged as for a learner, never recorded."""

import dataclasses

from sqlmodel import Session

from app.content.live.library import Library
from app.questions import kinds
from app.questions.asking import OpenQuestion, new_token
from app.questions.grading import grade
from app.questions.model import Question
from app.questions.variants import draw_variant
from app.questions.verdict import GradeResult, UnreadableResponse
from app.quiz.forms import Submission
from app.quiz.outcomes import AnswerFeedback, GradedVariant, NextLinks, build_feedback
from app.quiz.store import RecordedAttempt


def address_of(question: Question) -> str:
    """Where the author looks at a question."""
    return f"/authoring/questions/{question.id}"


def open_question(question: Question, sent: Submission) -> OpenQuestion:
    """The open question, with what is typed so far and the hints asked for."""
    form, raw = sent.form, sent.raw
    variant = draw_variant(question, form.seed or 0)
    if form.move:
        raw = kinds.type_of(variant).moved(raw, form.move)
    return OpenQuestion(
        variant=variant,
        token=new_token(),
        context=form.context,
        back=form.back,
        hints=min(form.hints + form.more, len(variant.hints)),
        certainty=form.certainty,
        typed=raw,
        at=address_of(question),
    )


def try_response(
    db: Session, library: Library, question: Question, sent: Submission
) -> OpenQuestion | AnswerFeedback:
    """What a learner would see after this answer."""
    asked = open_question(question, sent)
    verdict = grade(asked.variant, sent.raw)
    if isinstance(verdict, UnreadableResponse):
        return dataclasses.replace(asked, refused=verdict.message, hint=verdict.hint)
    if verdict.near:
        return dataclasses.replace(asked, near=verdict.near)
    given = _given(question, asked, sent, verdict)
    way = NextLinks(asked.back, token=asked.token)
    outcome = build_feedback(db, library, given, way, GradedVariant(asked.variant, verdict))
    again = f"{address_of(question)}?seed={asked.variant.seed + 1}"
    bare = asked.context == "page"  # the page adds its own query
    return dataclasses.replace(outcome, again=address_of(question) if bare else again)


def _given(
    question: Question, asked: OpenQuestion, sent: Submission, verdict: GradeResult
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
