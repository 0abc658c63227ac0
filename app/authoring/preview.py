"""Try a question without recording it."""

import dataclasses

from sqlmodel import Session

from app.content.course import Course
from app.questions import types
from app.questions.grading import build_unanswered_result, grade_response
from app.questions.model import Question, Variant, draw_variant
from app.questions.question_form import OpenQuestion, make_submission_token
from app.questions.question_type import SubmittedFields, UnreadableResponse
from app.quiz.forms import QuestionSubmission
from app.quiz.question_page import (
    AnswerFeedback,
    AnswerFeedbackLinks,
    GradedVariant,
    build_feedback,
)
from app.quiz.store import RecordedAttempt
from app.web.formatting import format_percent


@dataclasses.dataclass(frozen=True, slots=True)
class SampleResponse:
    """A possible response as text, and its grade.

    `result_name` is right, partly, wrong, near, refused or open; `author_note` says it to the author.
    """

    description: str
    raw: SubmittedFields
    result_name: str
    author_note: str


def grade_sample_responses(variant: Variant) -> list[SampleResponse]:
    """Return the responses worth showing, each once: right, each foreseen one, others."""
    samples: dict[object, SampleResponse] = {}
    for text, raw in types.question_type_of(variant).sample_responses(variant.answer):
        key = tuple(sorted((name, tuple(values)) for name, values in raw.items()))
        if key not in samples:
            samples[key] = _grade_sample(variant, text, raw)
    return list(samples.values())


def _grade_sample(variant: Variant, description: str, raw: SubmittedFields) -> SampleResponse:
    result = grade_response(variant, raw)
    if has_no_graded_field(variant.question, raw):
        return SampleResponse(description, raw, "open", "")
    if isinstance(result, UnreadableResponse):
        return SampleResponse(description, raw, "refused", "refused")
    if result.near_miss_message:
        return SampleResponse(description, raw, "near", "asked again")
    verdicts = {"right": "right", "wrong": "not right"}
    partly = f"{format_percent(result.score)} of the points"
    return SampleResponse(description, raw, result.result, verdicts.get(result.result, partly))


def has_no_graded_field(question: Question, raw: SubmittedFields) -> bool:
    """Return whether a response has nothing that is graded, such as commands of a lab alone."""
    return not raw.keys() - set(types.question_type_of(question).unanswering_form_fields)


def build_author_url(question: Question) -> str:
    return f"/authoring/questions/{question.id}"


def build_unanswered_question(question: Question, submission: QuestionSubmission) -> OpenQuestion:
    """Return the unanswered question, with the response so far and the requested hints."""
    form, raw = submission.hidden_fields, submission.raw_response
    variant = draw_variant(question, form.seed or 0)
    if form.move:
        raw = types.question_type_of(variant).apply_button_press(raw, form.move)
    return OpenQuestion(
        variant=variant,
        submission_token=make_submission_token(),
        context=form.context,
        back_url=form.back,
        shown_hint_count=min(form.hints + form.more, len(variant.hints)),
        certainty=form.certainty,
        typed_fields=raw,
        submit_url=build_author_url(question),
    )


def grade_without_recording(
    db: Session, course: Course, question: Question, submission: QuestionSubmission
) -> OpenQuestion | AnswerFeedback:
    """Return what a learner would see after this response."""
    question_form = build_unanswered_question(question, submission)
    variant, is_dont_know = question_form.variant, submission.hidden_fields.unknown
    result = (
        build_unanswered_result(variant)
        if is_dont_know
        else grade_response(variant, submission.raw_response)
    )
    if isinstance(result, UnreadableResponse):
        return dataclasses.replace(
            question_form, parse_error=result.message, parse_error_hint=result.hint
        )
    if result.near_miss_message and not submission.hidden_fields.asked_again:
        return dataclasses.replace(
            question_form, near_miss_message=result.near_miss_message, is_asked_again=True
        )
    attempt = RecordedAttempt(
        id=0,
        question_id=question.id,
        topic=question.topic,
        revision=question.revision,
        seed=question_form.variant.seed,
        raw_response=submission.raw_response,
        score=result.score,
        certainty=question_form.certainty or None,
        context=question_form.context,
        run_id=None,
        hint_count=question_form.shown_hint_count,
    )
    links = AnswerFeedbackLinks(
        question_form.back_url, submission_token=question_form.submission_token
    )
    feedback = build_feedback(
        db, course, attempt, links, GradedVariant(question_form.variant, result)
    )
    next_url = build_author_url(question)
    if question_form.context != "page":  # the page adds its own query string
        next_url += f"?seed={question_form.variant.seed + 1}"
    return dataclasses.replace(feedback, retry_url=next_url)
