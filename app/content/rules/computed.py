"""Rules for computed questions: every combination of their numbers has an answer."""

import ast
import re
from collections.abc import Mapping

from app.content.limits import A_COMBINATION, price_of
from app.content.model import ComputedParameters
from app.content.numbers import templates
from app.content.numbers.expressions import ExpressionError, compile_expression
from app.content.numbers.quantities import show
from app.content.numbers.templates import map_texts
from app.content.source_file import SourceFile
from app.questions import kinds, variants
from app.questions.kind import VariantFault
from app.questions.model import Question
from app.questions.written import ItemComment

_QUOTED = re.compile(r"“(\w+)”")
_WORDS = re.compile(r"\w+")
_LINES = 1_000  # in which an item ends


def check_computed(question: Question, comment: ItemComment, sheet: SourceFile) -> None:
    """E46, E47, W48, W49, and the rules of its kind for every combination."""
    computed = question.computed
    if computed is None:
        return
    if not _check_names(question, computed, comment, sheet):
        return
    sheet.spend(_effort(question, computed))
    if not _check_combinations(question, computed, (comment, sheet)):
        return
    places = variants.indices(question)
    rights = (_rights(question, computed, variants.combination(computed, i)) for i in places)
    first = next(rights, ())
    if first and len(places) > 1 and all(other == first for other in rights):
        message = f"Whatever the parameters, the answer is {', '.join(first)[:60]}."
        hint = "Correct the expression, or ask without parameters."
        sheet.report("W49", *comment.place("let"), message, hint)


def _check_combinations(
    question: Question, computed: ComputedParameters, where: tuple[ItemComment, SourceFile]
) -> bool:
    """Whether every combination has an answer; three faults are enough to know."""
    comment, sheet = where
    told: set[str] = set()
    for index in variants.indices(question):
        chosen = variants.combination(computed, index)
        for code, message, hint in _faults(question, computed, chosen):
            if code in told:
                continue
            told.add(code)
            given = ", ".join(f"{n} = {_word(v)}" for n, v in chosen.items())
            place = comment.place("params")
            if code != "W48":  # which a parameter brings, not an answer
                place = _place(message, question, computed, where)
            sheet.report(code, *place, f"With {given}: {message}", hint)
        if len(told) >= 3:
            break
    return not told


def _place(
    message: str,
    question: Question,
    computed: ComputedParameters,
    where: tuple[ItemComment, SourceFile],
) -> tuple[int, int]:
    """The expression that a message quotes; else the last computed answer."""
    comment, sheet = where
    quoted = [text for _, text in computed.lets if f"“{text}”" in message]
    words = set(_QUOTED.findall(message)) if not quoted else set()
    quoted += [text for _, text in computed.lets if words & set(_WORDS.findall(text))]
    kind = kinds.type_of(question)
    answers = [option.words for option in kind.options(question.answer)]
    answers += kind.templates(question.answer)
    computes = [t for t in answers if templates.PLACEHOLDER.search(t)]
    for text in (*quoted, *reversed(computes)):
        place = sheet.find(text, question.place.line, question.place.line + _LINES)
        if place != (question.place.line, 1):
            return place
    return comment.place("params")


def _rights(
    question: Question, computed: ComputedParameters, chosen: Mapping[str, str | float]
) -> tuple[str, ...]:
    """The right answers of one combination, where they are computed."""
    kind = kinds.type_of(question)
    if not any(map(templates.PLACEHOLDER.search, kind.right_words(question.answer))):
        return ()
    try:
        answer = kind.filled(question.answer, variants.resolve(computed, chosen))
    except ExpressionError:
        return ()
    return tuple(kind.right_words(answer))


def _effort(question: Question, computed: ComputedParameters) -> float:
    """What it costs to try every combination."""
    each = A_COMBINATION + 0.05 * sum(map(len, _all_templates(question)))
    each += kinds.type_of(question).effort(question.answer)
    for _, text in computed.lets:
        each += len(text)
        each += sum(price_of(_called(c)) for c in compile_expression(text).calls)
    return each * len(variants.indices(question))


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else show(value)


def _check_names(
    question: Question, computed: ComputedParameters, comment: ItemComment, sheet: SourceFile
) -> bool:
    """E46: every placeholder is defined, every parameter is used."""
    known = {*computed.params, *(n for n, _ in computed.lets)}
    used: set[str] = set()
    fine = True
    where = (question.place.line, 10**6)
    for text in _all_templates(question):
        fine = _check_broken(text, known, where, sheet) and fine
        for name, spec in dict.fromkeys(templates.placeholders(text)):
            used.add(name)
            if name not in known:
                place = sheet.find(f"{{{name}", *where)
                message = f"The placeholder {{{name}}} is not defined."
                sheet.report("E46", *place, message, f"Known: {', '.join(sorted(known))}.")
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


def _check_broken(text: str, known: set[str], where: tuple[int, int], sheet: SourceFile) -> bool:
    """E46: what begins like a placeholder is one."""
    broken = templates.broken(text, known)
    for words in broken:
        message = f"“{words[:40]}” is not a placeholder, and is shown as it is."
        hint = "Write {name} or {name:.3g}, and compute in let."
        sheet.report("E46", *sheet.find(words, *where), message, hint)
    return not broken


def _formats(spec: str) -> bool:
    try:
        show(1.5, spec)
    except ValueError:
        return False
    return True


def _all_templates(question: Question) -> list[str]:
    found: list[str] = []
    map_texts(question, lambda t: (found.append(t.plain), t)[1])  # type: ignore[func-returns-value]
    return found + kinds.type_of(question).templates(question.answer)


def _faults(
    question: Question, computed: ComputedParameters, chosen: Mapping[str, str | float]
) -> list[VariantFault]:
    """What is wrong with one combination."""
    try:
        values = variants.resolve(computed, chosen)
        return kinds.type_of(question).faults(question.answer, question.stem, values)
    except ExpressionError as error:
        code = error.code if error.code in {"E41", "E42", "E44"} else "E47"
        return [VariantFault(code, error.message, error.hint)]
