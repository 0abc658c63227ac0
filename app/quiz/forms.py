"""Forms of the question pages: hidden fields and the response."""

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast

from fastapi import Depends, Form, Request
from pydantic import BaseModel, BeforeValidator, Field, field_validator

from app.errors import InvalidInputError
from app.questions.question_type import SubmittedFields
from app.questions.types import QUESTION_TYPES
from app.quiz.selection import MODES, Mode, PracticeRequest
from app.web.dependencies import LAST_ROW, Address, validate_form

_ANSWER_FIELD_NAMES = {name for kind in QUESTION_TYPES.values() for name in kind.form_fields}
_ANSWER_FIELD_PREFIXES = tuple(name for name in _ANSWER_FIELD_NAMES if name.endswith("."))
_MOST_FIELDS = 60
_MOST_VALUES = 40
_MAX_VALUE_LENGTH = 400
_MOST_CHARACTERS = 20_000  # total length of all values; each answer is stored permanently
_LONGEST_RUN = 100  # questions


def _or_zero(value: Any) -> Any:
    return value or 0


Row = Annotated[int, BeforeValidator(_or_zero), Field(ge=0, le=LAST_ROW)]
Count = Annotated[int, BeforeValidator(_or_zero), Field(ge=0, le=2**53)]


class HiddenQuestionFields(BaseModel):
    """The hidden fields of a question, in a form or in a query string."""

    seed: int | None = Field(None, ge=0, lt=2**53)
    token: str = Field("", max_length=64)
    revision: str = Field("", max_length=64)
    context: Literal["page", "quiz", "practice", "placement"] = "quiz"
    back: Address = ""
    run: Row = 0
    hints: Annotated[int, BeforeValidator(_or_zero), Field(ge=0, le=50)] = 0
    more: Annotated[int, BeforeValidator(_or_zero), Field(ge=0, le=1)] = 0
    since: Count = 0
    certainty: Annotated[int, BeforeValidator(_or_zero), Field(ge=0, le=3)] = 0
    attempt: Row = 0
    move: str = Field("", max_length=200)
    unknown: bool = False
    asked_again: bool = False
    reported: bool = False
    review: bool = False


class PracticeForm(BaseModel):
    pick: str = Field("mixed", max_length=140)
    """The mode and its scope, e.g. “topic:kv-cache”; for some modes only the mode, “mixed”."""
    count: int = 10
    token: str = Field("", max_length=64)

    @field_validator("pick")
    @classmethod
    def _check_mode_known(cls, pick: str) -> str:
        if pick.partition(":")[0] not in MODES:
            raise ValueError(f"choose one of {', '.join(MODES)}")
        return pick

    @field_validator("count")
    @classmethod
    def _check_count_in_range(cls, count: int) -> int:
        if not 1 <= count <= _LONGEST_RUN:
            raise ValueError(f"enter 1 to {_LONGEST_RUN}")
        return count

    @property
    def practice_request(self) -> PracticeRequest:
        mode, _, scope = self.pick.partition(":")
        return PracticeRequest(cast("Mode", mode), scope, self.count)


class FlagForm(BaseModel):
    wanted: bool
    back: Address = ""


class ReportForm(BaseModel):
    words: str = Field(min_length=1, max_length=2000)
    token: str = Field("", max_length=64)
    seed: int | None = Field(None, ge=0, lt=2**53)
    back: Address = ""


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionSubmission:
    """One request: the hidden fields, and the raw response."""

    hidden_fields: HiddenQuestionFields
    raw_response: SubmittedFields


def parse_submission_fields(pairs: Iterable[tuple[str, Any]]) -> QuestionSubmission:
    """Split the fields of a request into form and response.

    Raises RequestValidationError or InvalidInputError.
    """
    fields: dict[str, str] = {}
    raw: dict[str, list[str]] = {}
    for name, value in pairs:
        if not isinstance(value, str):
            continue
        if name in _ANSWER_FIELD_NAMES or name.startswith(_ANSWER_FIELD_PREFIXES):
            if len(raw) < _MOST_FIELDS or name in raw:
                raw.setdefault(name, []).append(value[:_MAX_VALUE_LENGTH])
        else:
            fields[name] = value
    raw = {name: values[:_MOST_VALUES] for name, values in raw.items()}
    length = sum(len(value) for values in raw.values() for value in values)
    if length > _MOST_CHARACTERS:
        limit_text = f"An answer may have {_MOST_CHARACTERS:,} characters in all"
        raise InvalidInputError(f"{limit_text}; this has {length:,}.", "answer")
    return QuestionSubmission(validate_form(HiddenQuestionFields, fields), raw)


async def read_posted_submission(request: Request) -> QuestionSubmission:
    return parse_submission_fields((await request.form()).multi_items())


async def read_query_submission(request: Request) -> QuestionSubmission:
    return parse_submission_fields(request.query_params.multi_items())


PostedSubmission = Annotated[QuestionSubmission, Depends(read_posted_submission)]
QueriedSubmission = Annotated[QuestionSubmission, Depends(read_query_submission)]
PostedReport = Annotated[ReportForm, Form()]
PostedRunRequest = Annotated[PracticeForm, Form()]
PostedFlag = Annotated[FlagForm, Form()]
