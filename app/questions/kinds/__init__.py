"""Every kind of question, and the one place where everybody asks for it."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.questions.choosing import Choices
from app.questions.kind import Kind
from app.questions.kinds.cloze import Cloze, ClozeKind
from app.questions.kinds.design import DesignKind
from app.questions.kinds.design.model import Design
from app.questions.kinds.match import Match, MatchKind
from app.questions.kinds.multiple import Multiple
from app.questions.kinds.numeric import NumericKind
from app.questions.kinds.numeric.model import Numeric
from app.questions.kinds.order import Order, OrderKind
from app.questions.kinds.place import Figure, PlaceKind
from app.questions.kinds.short import Short, ShortKind
from app.questions.kinds.single import Single
from app.questions.kinds.true_false import TrueFalse

Answer = Choices | Numeric | Short | Order | Match | Cloze | Design | Figure
"""The answer part of a question; its type says the kind, for options their `kind`."""

_ALL: tuple[Kind[Any], ...] = (
    Single(),
    Multiple(),
    TrueFalse(),
    NumericKind(),
    ShortKind(),
    OrderKind(),
    MatchKind(),
    ClozeKind(),
    DesignKind(),
    PlaceKind(),
)
KINDS: Mapping[str, Kind[Any]] = {kind.name: kind for kind in _ALL}
"""The kinds by the type that an author writes."""
_BY_MODEL = {kind.models[0]: kind for kind in _ALL}


class Asked(Protocol):
    """A question, or a variant of one."""

    @property
    def answer(self) -> Answer:
        """Its answer part."""


def of(asked: Asked) -> Kind[Any]:
    """The kind of a question or of a variant."""
    return of_answer(asked.answer)


def of_answer(answer: Answer) -> Kind[Any]:
    """The kind that an answer part belongs to."""
    if isinstance(answer, Choices):
        return KINDS[answer.kind]
    return _BY_MODEL[type(answer)]
