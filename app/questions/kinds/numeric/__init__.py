"""Numeric: a number to be typed, with tolerance and unit."""

from collections.abc import Iterator, Mapping, Sequence

from app.content.model import RichText
from app.content.numbers.expressions import Value
from app.questions.faces import CardFaces
from app.questions.kind import CountedOption, Gap, QuestionType, State, Typed, VariantFault
from app.questions.kinds.numeric.form import UnitChoices, faces_of, states_of, units_of
from app.questions.kinds.numeric.grade import grade_numeric
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer, NumericOption
from app.questions.kinds.numeric.parse import parse_numeric, ranged
from app.questions.kinds.numeric.rules import (
    check_numeric,
    display_faults,
    numeric_faults,
)
from app.questions.option_rules import check_any_right, check_doubles, check_feedback
from app.questions.options import ParsedOption, code_of
from app.questions.verdict import GradeResult, Raw, UnreadableResponse
from app.questions.written import AuthoredItem


class NumericType(QuestionType[NumericAnswer]):
    """A number, told apart from the same number in another unit."""

    name = "numeric"
    models = (NumericAnswer, NumericOption, AcceptedRange)
    template = "questions/numeric.html"
    fields = ("answer", "unit")
    listed = "options"
    weighed = True
    begins = True

    def told_by_options(self, options: Sequence[ParsedOption]) -> str:
        """Each is a number in code, and one has its tolerance."""
        spans = [code_of(option) or "" for option in options]
        numbers = all(s[:1].isdigit() for s in spans) and any("±" in s for s in spans)
        return "its options are numbers with a tolerance" if numbers else ""

    def parse(self, written: AuthoredItem) -> NumericAnswer:
        """Accepted and foreseen numbers."""
        return parse_numeric(written)

    def check(self, answer: NumericAnswer, written: AuthoredItem, *, exam: bool) -> None:
        """The rules of options, and those of ranges once they are known."""
        del exam
        options, sheet = written.parts.options, written.sheet
        check_any_right(options, written.line, sheet)
        check_doubles(options, sheet)
        check_feedback(options, sheet)
        if not written.computed:
            check_numeric(answer, written.line, sheet)

    def options(self, answer: NumericAnswer) -> tuple[CountedOption, ...]:
        """Every option as it is written."""
        return tuple(CountedOption(o.key, o.template, o.right, o.credit) for o in answer.options)

    def right_words(self, answer: NumericAnswer) -> list[str]:
        """The right numbers without their tolerance."""
        return [o.template.split("±")[0] for o in answer.options if o.right]

    def templates(self, answer: NumericAnswer) -> list[str]:
        """The ranges, which are no texts."""
        return [o.template for o in answer.options]

    def effort(self, answer: NumericAnswer) -> float:
        """Each option is compared with each."""
        return 0.2 * len(answer.options) ** 2

    def faults(
        self, answer: NumericAnswer, stem: RichText, values: Mapping[str, Value]
    ) -> list[VariantFault]:
        """Ranges that clash, and numbers that the stem rounds too much."""
        return numeric_faults(ranged(answer, values)) + display_faults(stem, values)

    def filled(self, answer: NumericAnswer, values: Mapping[str, Value]) -> NumericAnswer:
        """The answer with its ranges read."""
        return ranged(super().filled(answer, values), values)

    def shown(self, answer: NumericAnswer, typed: Typed) -> UnitChoices:
        """The unit asked for, and those to choose from."""
        del typed
        return units_of(answer)

    def grade(
        self, answer: NumericAnswer, raw: Raw, partial: str
    ) -> GradeResult | UnreadableResponse:
        """Judge a typed quantity."""
        return grade_numeric(answer, raw, partial)

    def faces(self, answer: NumericAnswer, gap: Gap) -> CardFaces:
        """The unit, then the number."""
        del gap
        return faces_of(answer)

    def states(self, answer: NumericAnswer) -> Iterator[State]:
        """Each option, other units, other numbers."""
        return states_of(answer)
