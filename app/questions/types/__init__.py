"""All question types, and lookup of the type of a question."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.questions.question_type import QuestionType
from app.questions.types.choice import (
    ChoiceSpec,
    MultipleChoiceType,
    SingleChoiceType,
    TrueFalseType,
)
from app.questions.types.cloze import ClozeSpec, ClozeType
from app.questions.types.design import DesignSpec, DesignType
from app.questions.types.lab import LabSpec, LabType
from app.questions.types.matching import MatchingType, MatchSpec
from app.questions.types.number_parsing import NumericSpec
from app.questions.types.numeric import NumericType
from app.questions.types.ordering import OrderingType, OrderSpec
from app.questions.types.place import PlaceSpec, PlaceType
from app.questions.types.short_answer import ShortAnswerSpec, ShortAnswerType

Answer = (
    ChoiceSpec
    | NumericSpec
    | ShortAnswerSpec
    | OrderSpec
    | MatchSpec
    | ClozeSpec
    | DesignSpec
    | PlaceSpec
    | LabSpec
)
"""The answer part of a question. Its class determines the type, with `kind` for options."""

_ALL_TYPES: tuple[QuestionType[Any], ...] = (
    SingleChoiceType(),
    MultipleChoiceType(),
    TrueFalseType(),
    NumericType(),
    ShortAnswerType(),
    OrderingType(),
    MatchingType(),
    ClozeType(),
    DesignType(),
    PlaceType(),
    LabType(),
)
QUESTION_TYPES: Mapping[str, QuestionType[Any]] = {kind.name: kind for kind in _ALL_TYPES}
"""The question types by the name that authors write."""
_TYPE_BY_ANSWER_CLASS = {kind.answer_classes[0]: kind for kind in _ALL_TYPES}


class HasAnswer(Protocol):
    @property
    def answer(self) -> Answer:
        """Its answer part."""


def question_type_of(question: HasAnswer) -> QuestionType[Any]:
    return type_of_answer(question.answer)


def type_of_answer(answer: Answer) -> QuestionType[Any]:
    if isinstance(answer, ChoiceSpec):
        return QUESTION_TYPES[answer.kind]
    return _TYPE_BY_ANSWER_CLASS[type(answer)]
