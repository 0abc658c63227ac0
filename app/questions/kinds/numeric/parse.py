"""Numeric answers from the Markdown: each option is one code span with a range."""

import dataclasses
from collections.abc import Mapping

from app.content.numbers import templates
from app.content.numbers.expressions import ExpressionError, Value
from app.questions.kinds.numeric.model import AcceptedRange, NumericAnswer, NumericOption
from app.questions.kinds.numeric.ranges import AnswerRangeError, read_range
from app.questions.options import code_or_report, make_key, text_of
from app.questions.written import AuthoredItem


def parse_numeric(written: AuthoredItem) -> NumericAnswer:
    """Accepted and foreseen numbers; what is wrong with one is reported."""
    made: list[NumericOption] = []
    taken: set[str] = set()
    otherwise: float | None = None
    sheet = written.sheet
    for option in sorted(written.parts.options, key=lambda o: not o.ticked):
        template = code_or_report(option, sheet)
        if template is None:
            continue
        found = None
        if not written.computed:
            try:
                found = read_range(template, otherwise if not option.ticked else None)
            except AnswerRangeError as error:
                place = sheet.find("`", option.line, option.line)
                sheet.report(error.code, *place, str(error), error.hint)
                continue
            if option.ticked and otherwise is None:
                otherwise = _half(found)
        why = text_of(option.feedback, written.scope)
        name = make_key(written.comment.id, option, taken)
        right, credit = option.ticked, option.credit
        made.append(NumericOption(name, template, found, right, why, credit))
    return NumericAnswer(tuple(made))


def ranged(numeric: NumericAnswer, values: Mapping[str, Value]) -> NumericAnswer:
    """The options with numbers; raises BadExpression for one that is none (E47)."""
    otherwise: float | None = None
    made = []
    for option in numeric.options:
        written = templates.fill(option.template, values)
        try:
            found = read_range(written, otherwise if not option.right else None)
        except AnswerRangeError as error:
            raise ExpressionError(error.code, str(error), error.hint) from None
        if option.right and otherwise is None:
            otherwise = _half(found)
        made.append(dataclasses.replace(option, template=written, range=found))
    return NumericAnswer(tuple(made))


def _half(found: AcceptedRange) -> float:
    """Half of the width as a share: the tolerance of what names none."""
    half = (found.high - found.low) / 2
    return half / abs(found.center) if found.center else 0.0
