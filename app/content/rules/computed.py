"""Rules for numbers: accepted ranges, and every combination of a computed question."""

import ast
import math
from collections.abc import Mapping

from app.content import templates
from app.content.expressions import BadExpression, Value, compile_expression
from app.content.limits import A_COMBINATION, price_of
from app.content.manuscript import Manuscript
from app.content.model import Computed
from app.content.parse.metadata import Comment
from app.content.quantities import Quantity, kind, read, show
from app.content.templates import PLACEHOLDER, each_text
from app.questions import variants
from app.questions.model import Choices, Numeric, NumericOption, Question

Option = NumericOption


def check_numeric(question: Question, line: int, sheet: Manuscript) -> None:
    """E42, E43 for a numeric question without parameters."""
    answer = question.answer
    if not isinstance(answer, Numeric):
        return
    clash = clashing(answer)
    if clash:
        place = sheet.find(f"`{clash[1].template}`", line, line + 60)
        sheet.report("E43", *place, _said(clash), "Narrow the tolerance, or delete it.")
    _check_units(answer, line, sheet)


def _said(clash: tuple[Option, Option]) -> str:
    right, wrong = clash
    return f"The wrong answer {wrong.template} lies within {right.template}."


def clashing(answer: Numeric) -> tuple[Option, Option] | None:
    """A right and a wrong option of which the wrong one would be accepted."""
    wrongs = [o for o in answer.options if not o.right and o.range]
    for right in answer.options:
        if not right.right or not right.range:
            continue
        for wrong in wrongs:
            if (
                wrong.range
                and right.range.low <= wrong.range.centre <= right.range.high
            ):
                return right, wrong
    return None


def _check_units(answer: Numeric, line: int, sheet: Manuscript) -> None:
    units = [(o, o.range.unit) for o in answer.options if o.range]
    for option, unit in units[1:]:
        first = units[0][1]
        if kind(unit) != kind(first):
            place = sheet.find(f"`{option.template}`", line, line + 60)
            message = f"“{option.template}” does not measure what “{first}” measures."
            sheet.report("E42", *place, message, "Use units of one kind.")


def check_computed(question: Question, comment: Comment, sheet: Manuscript) -> None:
    """E46, E47, W48, and the numeric rules for every combination."""
    computed = question.computed
    if computed is None:
        return
    if not _check_names(question, computed, comment, sheet):
        return
    sheet.spend(_effort(question, computed))
    told: set[str] = set()
    for index in variants.indices(question):
        chosen = variants.combination(computed, index)
        for code, message, hint in _faults(question, computed, chosen):
            if code in told:
                continue
            told.add(code)
            given = ", ".join(f"{n} = {_word(v)}" for n, v in chosen.items())
            place = comment.place("params")
            sheet.report(code, *place, f"With {given}: {message}", hint)
        if len(told) >= 3:
            return


def _effort(question: Question, computed: Computed) -> float:
    """What it costs to try every combination."""
    each = A_COMBINATION + 0.05 * sum(map(len, _all_templates(question)))
    if isinstance(question.answer, Numeric | Choices):
        each += 0.2 * len(question.answer.options) ** 2
    for _, text in computed.lets:
        each += len(text)
        each += sum(price_of(_called(c)) for c in compile_expression(text).calls)
    return each * len(variants.indices(question))


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else show(value)


def _check_names(
    question: Question, computed: Computed, comment: Comment, sheet: Manuscript
) -> bool:
    """E46: every placeholder is defined, every parameter is used."""
    known = {*computed.params, *(n for n, _ in computed.lets)}
    used: set[str] = set()
    fine = True
    where = (question.place.line, 10**6)
    for text in _all_templates(question):
        for name, spec in dict.fromkeys(templates.placeholders(text)):
            used.add(name)
            if name not in known:
                place = sheet.find(f"{{{name}", *where)
                message = f"The placeholder {{{name}}} is not defined."
                sheet.report(
                    "E46", *place, message, f"Known: {', '.join(sorted(known))}."
                )
                fine = False
            elif not _formats(spec):
                place = sheet.find(f"{{{name}:{spec}", *where)
                message = f"“{spec}” is not a number format."
                sheet.report("E46", *place, message, "Use , or .2f or .3g.")
                fine = False
    expressions = " ".join(text for _, text in computed.lets)
    for name in computed.params:
        if name not in used and not _mentions(expressions, name):
            message = f"The parameter “{name}” is never used."
            sheet.report("E46", *comment.place("params"), message, "Use or delete it.")
            fine = False
    return fine


def _mentions(expressions: str, name: str) -> bool:
    words = "".join(c if c.isalnum() or c == "_" else " " for c in expressions)
    return name in words.split()


def _formats(spec: str) -> bool:
    try:
        show(1.5, spec)
    except ValueError:
        return False
    return True


def _all_templates(question: Question) -> list[str]:
    found: list[str] = []
    each_text(question, lambda t: (found.append(t.plain), t)[1])  # type: ignore[func-returns-value]
    if isinstance(question.answer, Numeric):
        found += [o.template for o in question.answer.options]
    return found


def _faults(
    question: Question, computed: Computed, chosen: Mapping[str, str | float]
) -> list[tuple[str, str, str]]:
    """What is wrong with one combination, as (code, message, hint)."""
    try:
        values = variants.resolve(computed, chosen)
        answer = question.answer
        if isinstance(answer, Numeric):
            numeric = variants.ranged(answer, values)
            return _numeric_faults(numeric) + _display_faults(question, values)
        answer = variants.filled(answer, values)
    except BadExpression as error:
        code = error.code if error.code in {"E41", "E42", "E44"} else "E47"
        return [(code, error.message, error.hint)]
    return _choice_faults(answer) if isinstance(answer, Choices) else []


def _numeric_faults(answer: Numeric) -> list[tuple[str, str, str]]:
    found = []
    for option in answer.options:
        centre = option.range.centre if option.range else math.nan
        if option.right and (not math.isfinite(centre) or centre < 0):
            found.append(("E47", f"the answer {option.template} is negative.", ""))
    clash = clashing(answer)
    if clash:
        right, wrong = clash
        message = f"the wrong answer {wrong.template} lies within {right.template}."
        found.append(("E47", message, "Narrow the tolerance or change the values."))
    return found


def _choice_faults(answer: Choices) -> list[tuple[str, str, str]]:
    seen: dict[str, str] = {}
    for option in answer.options:
        words = " ".join(option.text.plain.split())
        if words in seen:
            return [("E47", f"two options read “{words[:50]}”.", "Change the values.")]
        seen[words] = option.key
    return []


def _display_faults(
    question: Question, values: Mapping[str, Value]
) -> list[tuple[str, str, str]]:
    """W48: a number of the stem that is rounded more than the answer allows."""
    for match in PLACEHOLDER.finditer(question.stem.plain):
        value = values.get(match[1])
        if not match[2] or not isinstance(value, Quantity) or not value.value:
            continue
        shown = read(show(value.value, match[2]))
        if shown and abs(shown.value - value.value) > 0.005 * abs(value.value):
            message = f"the stem shows {show(shown.value)} for {show(value.value)}."
            return [("W48", message, "Show more digits, or round the parameter.")]
    return []
