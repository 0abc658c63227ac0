"""Forms of the exam pages: start, answer, flags."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Form, Request
from pydantic import BaseModel, Field

from app.exams.answer_merge import AnswerState, is_response_entered
from app.questions.question_type import AnsweredMark
from app.quiz.forms import parse_submission_fields

TIME_FACTORS = (1.0, 1.25, 1.5, 2.0, 3.0)
EVERY_KIND = "all"
_MOST_STRUCK = 40  # options of one question
_MOST_FIELDS = 500  # fields of a form in `shown`
_FACTOR_BY_TEXT = {f"{f:g}": f for f in TIME_FACTORS}


@dataclasses.dataclass(frozen=True, slots=True)
class StartExamForm:
    """A request to start an exam, with the question types of the real exam or all."""

    submission_token: str
    time_factor: float
    all_question_types: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class StartExamDraft:
    """What was sent to start an exam; `kinds` is None where the form does not ask for them."""

    submission_token: str = ""
    factor: str = "1"
    kinds: str | None = ""

    @property
    def problems(self) -> list[dict[str, str]]:
        """The invalid fields."""
        messages = []
        if self.factor not in _FACTOR_BY_TEXT:
            message = f"Time factor: “{self.factor}” is not one of {', '.join(_FACTOR_BY_TEXT)}."
            messages.append({"field": "factor", "message": message})
        if self.kinds not in {"", EVERY_KIND}:
            message = f"Kinds of questions: “{self.kinds}” is neither empty nor all."
            messages.append({"field": "kinds", "message": message})
        return messages

    @property
    def validated_form(self) -> StartExamForm:
        """The validated form. Call only without problems."""
        return StartExamForm(
            self.submission_token, _FACTOR_BY_TEXT[self.factor], self.kinds == EVERY_KIND
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ExamAnswerForm:
    """One question as the browser holds it, and where to go from it.

    `destination` is next, previous, review, incomplete or flagged (those of the review), a number,
    or empty to stay. `shown_at_ms` is 0 if unknown. `waited_ms` is how long the change waited in
    the browser, 0 if it was sent at once. `order_confirmed` says whether the learner confirmed the
    order of an ordering question: yes, no, or empty if only the order can tell. `displayed_form`
    is the form as it was shown or last saved; None if not sent.
    """

    raw_response: Mapping[str, Sequence[str]]
    flagged: bool
    struck_options: tuple[str, ...]
    destination: str
    ordering_move: str
    shown_at_ms: int
    waited_ms: int = 0
    order_confirmed: AnsweredMark = ""
    displayed_form: "ExamAnswerForm | None" = None


class PracticeQuestionsOfExamForm(BaseModel):
    """A request to practice what was missed in an exam, or what was left open."""

    pick: Literal["missed", "open"]
    token: str = Field("", max_length=64)


async def _parse_start_form(request: Request) -> StartExamDraft:
    fields = await request.form()
    return StartExamDraft(
        submission_token=str(fields.get("token", ""))[:64],
        factor=str(fields.get("factor", "1"))[:40],
        kinds=str(fields["kinds"])[:40] if "kinds" in fields else None,
    )


async def _parse_answer_form(request: Request) -> ExamAnswerForm:
    return parse_answer_fields((await request.form()).multi_items())


def parse_answer_fields(pairs: Sequence[tuple[str, Any]]) -> ExamAnswerForm:
    """Split the submitted fields into form fields and response."""
    field_names = {"flag", "strike", "go", "since", "move", "age", "settled", "shown"}
    raw = parse_submission_fields((k, v) for k, v in pairs if k not in field_names).raw_response
    fields = {k: v for k, v in pairs if isinstance(v, str)}
    struck = [v[:40] for k, v in pairs if k == "strike" and isinstance(v, str)]
    return ExamAnswerForm(
        raw_response=raw,
        flagged=fields.get("flag") == "yes",
        struck_options=tuple(struck[:_MOST_STRUCK]),
        destination=fields.get("go", "")[:12],
        ordering_move=fields.get("move", "")[:200],
        shown_at_ms=_parse_milliseconds_or_zero(fields.get("since", "")),
        waited_ms=_parse_milliseconds_or_zero(fields.get("age", "")),
        order_confirmed=_parse_order_confirmed([str(v) for k, v in pairs if k == "settled"]),
        displayed_form=_parse_shown_answer(fields["shown"]) if "shown" in fields else None,
    )


def serialize_shown_answer(state: AnswerState) -> str:
    """Return the value of the field `shown`: what the form would send unchanged."""
    pairs = [(name, value) for name, values in state.raw_response.items() for value in values]
    pairs += [("strike", key) for key in state.struck_options]
    pairs += [("flag", "yes")] * state.flagged
    pairs += [("settled", "yes")] * is_response_entered(state.raw_response)
    return urlencode(pairs)


def _parse_shown_answer(encoded_form: str) -> ExamAnswerForm | None:
    try:
        pairs = parse_qsl(encoded_form, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:  # none of our forms has that many fields
        return None
    return parse_answer_fields([(k, v) for k, v in pairs if k != "shown"])


def _parse_order_confirmed(values: Sequence[str]) -> AnsweredMark:
    # An unticked box sends only the hidden field before it.
    return "yes" if "yes" in values else "no" if "no" in values else ""


def _parse_milliseconds_or_zero(field_value: str) -> int:
    return int(field_value[:16]) if field_value.isascii() and field_value.isdigit() else 0


PostedExamStart = Annotated[StartExamDraft, Depends(_parse_start_form)]
PostedAnswerAgain = Annotated[PracticeQuestionsOfExamForm, Form()]
PostedExamAnswer = Annotated[ExamAnswerForm, Depends(_parse_answer_form)]
