"""Every kind of question, and the one place where everybody asks for it."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.questions.choosing import ChoiceAnswer
from app.questions.kind import QuestionType
from app.questions.kinds.cloze import ClozeAnswer, ClozeType
from app.questions.kinds.design import DesignType
from app.questions.kinds.design.model import DesignAnswer
from app.questions.kinds.match import MatchAnswer, MatchingType
from app.questions.kinds.multiple import MultipleChoiceType
from app.questions.kinds.numeric import NumericType
from app.questions.kinds.numeric.model import NumericAnswer
from app.questions.kinds.order import OrderAnswer, OrderingType
from app.questions.kinds.place import HotspotAnswer, HotspotType
from app.questions.kinds.short import ShortAnswer, ShortAnswerType
from app.questions.kinds.single import SingleChoiceType
from app.questions.kinds.true_false import TrueFalseType

Answer = (
    ChoiceAnswer
    | NumericAnswer
    | ShortAnswer
    | OrderAnswer
    | MatchAnswer
    | ClozeAnswer
    | DesignAnswer
    | HotspotAnswer
)
"""The answer part of a question; its type says the kind, for options their `kind`."""

_ALL: tuple[QuestionType[Any], ...] = (
    SingleChoiceType(),
    MultipleChoiceType(),
    TrueFalseType(),
    NumericType(),
    ShortAnswerType(),
    OrderingType(),
    MatchingType(),
    ClozeType(),
    DesignType(),
    HotspotType(),
)
KINDS: Mapping[str, QuestionType[Any]] = {kind.name: kind for kind in _ALL}
"""The kinds by the type that an author writes."""
_BY_MODEL = {kind.models[0]: kind for kind in _ALL}


class HasAnswer(Protocol):
    """A question, or a variant of one."""

    @property
    def answer(self) -> Answer:
        """Its answer part."""


def type_of(asked: HasAnswer) -> QuestionType[Any]:
    """The kind of a question or of a variant."""
    return of_answer(asked.answer)


def of_answer(answer: Answer) -> QuestionType[Any]:
    """The kind that an answer part belongs to."""
    if isinstance(answer, ChoiceAnswer):
        return KINDS[answer.kind]
    return _BY_MODEL[type(answer)]
