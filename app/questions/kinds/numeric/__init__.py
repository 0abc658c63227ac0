"""Numeric: a number to be typed, with tolerance and unit."""

from collections.abc import Iterator, Mapping, Sequence

from app.content.model import Text
from app.content.numbers.expressions import Value
from app.questions.faces import Faces
from app.questions.kind import Counted, Fault, Gap, Kind, State, Typed
from app.questions.kinds.numeric.form import Units, faces_of, states_of, units_of
from app.questions.kinds.numeric.grade import grade_numeric
from app.questions.kinds.numeric.model import Numeric, NumericOption, Range
from app.questions.kinds.numeric.parse import parse_numeric, ranged
from app.questions.kinds.numeric.rules import (
    check_numeric,
    display_faults,
    numeric_faults,
)
from app.questions.option_rules import check_any_right, check_doubles, check_feedback
from app.questions.options import Option, code_of
from app.questions.verdict import Raw, Unreadable, Verdict
from app.questions.written import Written


class NumericKind(Kind[Numeric]):
    """A number, told apart from the same number in another unit."""

    name = "numeric"
    models = (Numeric, NumericOption, Range)
    template = "questions/numeric.html"
    fields = ("answer", "unit")
    listed = "options"
    weighed = True
    begins = True

    def told_by_options(self, options: Sequence[Option]) -> str:
        """Each is a number in code, and one has its tolerance."""
        spans = [code_of(option) or "" for option in options]
        numbers = all(s[:1].isdigit() for s in spans) and any("±" in s for s in spans)
        return "its options are numbers with a tolerance" if numbers else ""

    def parse(self, written: Written) -> Numeric:
        """Accepted and foreseen numbers."""
        return parse_numeric(written)

    def check(self, answer: Numeric, written: Written, *, exam: bool) -> None:
        """The rules of options, and those of ranges once they are known."""
        del exam
        options, sheet = written.parts.options, written.sheet
        check_any_right(options, written.line, sheet)
        check_doubles(options, sheet)
        check_feedback(options, sheet)
        if not written.computed:
            check_numeric(answer, written.line, sheet)

    def options(self, answer: Numeric) -> tuple[Counted, ...]:
        """Every option as it is written."""
        return tuple(Counted(o.key, o.template, o.right, o.credit) for o in answer.options)

    def right_words(self, answer: Numeric) -> list[str]:
        """The right numbers without their tolerance."""
        return [o.template.split("±")[0] for o in answer.options if o.right]

    def templates(self, answer: Numeric) -> list[str]:
        """The ranges, which are no texts."""
        return [o.template for o in answer.options]

    def effort(self, answer: Numeric) -> float:
        """Each option is compared with each."""
        return 0.2 * len(answer.options) ** 2

    def faults(self, answer: Numeric, stem: Text, values: Mapping[str, Value]) -> list[Fault]:
        """Ranges that clash, and numbers that the stem rounds too much."""
        return numeric_faults(ranged(answer, values)) + display_faults(stem, values)

    def filled(self, answer: Numeric, values: Mapping[str, Value]) -> Numeric:
        """The answer with its ranges read."""
        return ranged(super().filled(answer, values), values)

    def shown(self, answer: Numeric, typed: Typed) -> Units:
        """The unit asked for, and those to choose from."""
        del typed
        return units_of(answer)

    def grade(self, answer: Numeric, raw: Raw, partial: str) -> Verdict | Unreadable:
        """Judge a typed quantity."""
        return grade_numeric(answer, raw, partial)

    def faces(self, answer: Numeric, gap: Gap) -> Faces:
        """The unit, then the number."""
        del gap
        return faces_of(answer)

    def states(self, answer: Numeric) -> Iterator[State]:
        """Each option, other units, other numbers."""
        return states_of(answer)
