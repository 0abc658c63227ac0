"""Design exercises: the learner chooses calculator inputs, and the estimator grades them."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from app.estimator.inputs import InvalidInputsError, format_input, input_specs, parse_inputs
from app.estimator.registry import EstimateSpec
from app.estimator.units import format_value
from app.markup import expressions, strict_yaml
from app.markup.expressions import ExpressionError, FigureError, Value, require_estimate
from app.markup.ids import did_you_mean
from app.markup.problems import AN_ESTIMATE, SourceFile, estimate_price
from app.markup.quantities import Quantity
from app.markup.strict_yaml import YamlMapping
from app.questions.question_type import AuthoredItem, ItemComment, QuestionType, State, Typed
from app.questions.result import (
    MAX_RESPONSE_LENGTH,
    GradeResult,
    PartResult,
    Raw,
    UnreadableResponse,
    fraction,
    single_value,
    typed_text,
)
from app.questions.types.design_solver import (
    MOST_PLANS,
    ConditionResult,
    DesignAnswer,
    DesignTask,
    OpenDesign,
    PlanCondition,
    can_be_met,
    design_task,
    judge_condition,
    judge_conditions,
    read_condition,
    starting_plan,
)

_WORDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def condition_pairs(design: DesignAnswer) -> tuple[tuple[str, str], ...]:
    """Return each condition as (output, requirement).

    Raises FigureError or ExpressionError; exercises with such errors do not pass `check`.
    """
    labels = {o.name: o.label for o in require_estimate(design.estimate).outputs}
    return tuple(
        (condition_subject(condition, labels), condition_limit(condition, labels))
        for condition in map(read_condition, design.accept)
    )


def describe_conditions(design: DesignAnswer) -> tuple[tuple[str, str], ...]:
    """Return `conditions_of`, or the conditions as written if they cannot be read."""
    try:
        return condition_pairs(design)
    except (FigureError, ExpressionError):
        return tuple((text, "") for text in design.accept)


def condition_subject(condition: PlanCondition, labels: dict[str, str]) -> str:
    """Return what a condition is about, e.g. “Time to first token, 95th percentile”."""
    text = condition.left.text.strip()
    return labels.get(text, text)


def condition_limit(condition: PlanCondition, labels: dict[str, str]) -> str:
    """Return the requirement, e.g. “at most 1 s” or “at most 1.2 × the best possible”."""
    if condition.right is None:
        return "yes"
    words = condition.right.text.strip()
    for name in condition.bests:
        words = words.replace(f"best_of_{name}", "the best possible")
    words = words.replace("*", "×")
    for name, label in labels.items():
        words = words.replace(f" {name} ", f" {label} ")
    return f"{_WORDS.get(condition.operator, 'exactly')} {words}"


def grade_design(answer: DesignAnswer, raw: Raw, partial: str) -> GradeResult | UnreadableResponse:
    """Grade a plan; `choose.INPUT` in the response contains each chosen input.

    Each condition counts the same, unless the item is all or nothing. An input that the
    estimate rejects is unreadable, with its range as hint.
    """
    plan = {name: single_value(raw, f"choose.{name}") for name in answer.choose}
    plan = {name: words for name, words in plan.items() if words}
    if not plan:
        return UnreadableResponse("Nothing is chosen.", "Choose a value for each input.")
    if any(len(words) > MAX_RESPONSE_LENGTH for words in plan.values()):
        return UnreadableResponse(f"A value is longer than {MAX_RESPONSE_LENGTH} characters.")
    refused = _refuse_plan(answer, plan)
    if refused is not None:
        return refused
    try:
        found = judge_conditions(design_task(answer), plan)
    except (FigureError, ExpressionError) as error:
        return UnreadableResponse(f"The plan cannot be judged: {error}", error.hint)
    why = _plan_verdict(answer, plan)
    marks = tuple(
        _mark_condition(f"c{number}", judgment, what, why)
        for number, (judgment, what) in enumerate(
            zip(found, describe_conditions(answer), strict=True)
        )
    )
    met = sum(mark.good for mark in marks)
    score = float(met == len(marks)) if partial == "off" else fraction(met, len(marks))
    return GradeResult(
        score=score,
        parsed={"plan": plan, "met": [mark.good for mark in marks]},
        marks=marks,
        said=f"{met} of {len(marks)} conditions met",
    )


def _refuse_plan(answer: DesignAnswer, plan: dict[str, str]) -> UnreadableResponse | None:
    try:
        entry = expressions.require_estimate(answer.estimate)
        parse_inputs(entry.inputs, {**answer.given, **plan})
    except FigureError as error:
        return UnreadableResponse(error.message, error.hint)
    except InvalidInputsError as error:
        first = error.problems[0]
        field = input_specs(entry.inputs).get(first.field)
        label = f"{field.label}: " if field else ""
        return UnreadableResponse(f"{label}{first.message}", "Change it and check again.")
    return None


def _plan_verdict(answer: DesignAnswer, plan: dict[str, str]) -> str:
    """Return the estimator's own verdict on the plan, with its figures."""
    verdict = expressions.compute_estimate(answer.estimate, {**answer.given, **plan}).verdict
    return f"{verdict.lead} {verdict.text}".strip()


def _mark_condition(
    key: str, judgment: ConditionResult, words: tuple[str, str], why: str
) -> PartResult:
    subject, wanted = words
    if judgment.limit is not None and judgment.condition.bests:
        bound = _WORDS.get(judgment.condition.operator, "exactly")
        share = wanted.removeprefix(bound).strip()
        wanted = f"{bound} {_value_words(judgment.limit)} ({share})"
    return PartResult(
        key=key,
        label=subject,
        text=typed_text(subject),
        chosen=True,
        wanted_chosen=True,
        good=judgment.met,
        given=typed_text(_value_words(judgment.value)),
        wanted=typed_text(wanted),
        feedback=typed_text(_missed_by_text(judgment, why)),
    )


def _missed_by_text(judgment: ConditionResult, why: str) -> str:
    """Return by how much a condition was missed, e.g. “4.2 GB short of it”.

    A failed yes-or-no condition has no distance, so the estimator's sentence `why` is used.
    """
    value, limit = judgment.value, judgment.limit
    if value is False:
        return why
    if judgment.met or limit is None or not isinstance(value, Quantity):
        return ""
    gap = format_value(abs(value.value - limit.value), value.unit or "")
    above = judgment.condition.operator.startswith("<")
    return f"{gap} over the limit." if above else f"{gap} short of it."


def _value_words(value: Value) -> str:
    if isinstance(value, Quantity):
        return format_value(value.value, value.unit or "")
    return format_value(value)


_NONE = YamlMapping({}, {}, 1, 1)
_EXAMPLES = {
    "estimate": "estimate: and the name of one, such as inference-memory",
    "choose": "choose: and the inputs that are left open, such as [gpu]",
    "accept": "accept: and what has to hold, such as [fits]",
}


def read_design(comment: ItemComment) -> DesignAnswer:
    """Read a design exercise from its comment."""
    values = comment.fields.values
    given = values.get("given")
    fixed: Mapping[str, str] = (
        {n: strict_yaml.single_text(v) for n, v in given.values.items()}
        if isinstance(given, YamlMapping)
        else {}
    )
    chosen = tuple(w.text for w in strict_yaml.text_list(values.get("choose")))
    accept = tuple(w.text for w in strict_yaml.text_list(values.get("accept")))
    return DesignAnswer(comment.word("estimate"), fixed, chosen, accept)


def check_design(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> None:
    """Report unknown and duplicate names (E80, E81, E11, E13); note the estimate."""
    for name in ("estimate", "choose", "accept"):
        node = comment.fields.values.get(name)
        if not node or not any(word.text for word in strict_yaml.text_list(node)):
            message = f"A design exercise needs “{name}”."
            place = comment.place(name) if node else (comment.line, comment.column)
            sheet.report("E13", *place, message, f"Write {_EXAMPLES[name]}.")
            return
    if not isinstance(comment.fields.values.get("given", _NONE), YamlMapping):
        message = "“given” is not a list of inputs with their values."
        hint = "Write given: {model: 70B, context: 8192}."
        sheet.report("E13", *comment.place("given"), message, hint)
    try:
        entry = require_estimate(made.estimate)
    except FigureError as error:
        place = comment.place("estimate")
        sheet.report(error.code, *place, error.message, error.hint)
        return
    sheet.add_mention("calculator", entry.name, *comment.place("estimate"))
    _check_inputs(made, entry, comment, sheet)
    for text in made.accept:
        _check_condition(text, entry, comment, sheet)


def _check_inputs(
    made: DesignAnswer, entry: EstimateSpec, comment: ItemComment, sheet: SourceFile
) -> None:
    fields = input_specs(entry.inputs)
    named = [(n, "given") for n in made.given] + [(n, "choose") for n in made.choose]
    for name, where in named:
        if name not in fields:
            message = f"“{name}” is not an input of {entry.name}."
            hint = did_you_mean(name, fields)
            sheet.report("E81", *comment.place(where), message, hint)
        elif where == "choose" and name in made.given:
            message = f"“{name}” is given and to be chosen."
            hint = "Take it out of one of the two."
            sheet.report("E11", *comment.place(where), message, hint)
    for name in dict.fromkeys(n for n in made.choose if made.choose.count(n) > 1):
        message = f"“{name}” is to be chosen twice."
        sheet.report("E11", *comment.place("choose"), message, "Name it once.")


def _check_condition(
    text: str, entry: EstimateSpec, comment: ItemComment, sheet: SourceFile
) -> None:
    """Parse a condition and evaluate it on sample outputs with the value 1."""
    place = comment.place("accept")
    sample: dict[str, Value] = {
        o.name: Quantity(1.0, o.unit) if o.unit else Quantity(1.0, None) for o in entry.outputs
    }
    try:
        condition = read_condition(text)
        unknown = sorted(condition.names - set(sample))
        if unknown:
            message = f"“{unknown[0]}” is not an output of {entry.name}."
            hint = did_you_mean(unknown[0], sample)
            sheet.report("E81", *place, message, hint)
            return
        best = {n: v for n, v in sample.items() if isinstance(v, Quantity)}
        judge_condition(condition, sample, {n: best[n] for n in condition.bests})
    except ExpressionError as error:
        sheet.report(error.code, *place, error.message, error.hint)


def check_plans(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> None:
    """Check the given values, and that plans can be right and wrong (E80, E84, W92, W93).

    Requires that every name is known.
    """
    if _check_given(made, comment, sheet) or estimate_price(made.estimate) > AN_ESTIMATE:
        return
    problem = design_task(made)
    sheet.spend_effort(MOST_PLANS * AN_ESTIMATE, repr(problem))
    place = comment.place("accept")
    if not can_be_met(problem):
        message = f"No plan was found that meets {', '.join(made.accept)[:120]}."
        hint = "Relax a condition, change what is given, or let more be chosen."
        sheet.report("W92", *place, message, hint)
    elif not starting_plan(problem) and _start_meets_all(problem):
        message = "The exercise is solved before anything is chosen."
        hint = "Tighten a condition, so that what the form begins with misses it."
        sheet.report("W93", *place, message, hint)


def _check_given(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> bool:
    """Report given values that cannot be used; return whether there are any."""
    inputs = expressions.require_estimate(made.estimate).inputs
    try:
        parse_inputs(inputs, made.given)
    except InvalidInputsError as error:
        fields, node = input_specs(inputs), comment.fields.values.get("given")
        for wrong in error.problems:
            field = fields.get(wrong.field)
            named = field is not None and field.kind in expressions.CATALOGUED
            place = comment.place("given")
            if isinstance(node, YamlMapping) and wrong.field in node.keys:
                at = node.values[wrong.field]
                place = at.line, at.column
            hint = "Everybody who answers would be refused: write a value that fits."
            sheet.report("E80" if named else "E84", *place, wrong.message, hint)
        return True
    return False


def _start_meets_all(problem: DesignTask) -> bool:
    """Return whether the calculator's default inputs meet every condition."""
    try:
        return all(judgment.met for judgment in judge_conditions(problem, {}))
    except (FigureError, ExpressionError):
        return False


class DesignType(QuestionType[DesignAnswer]):
    """Inputs of an estimate; any choice that meets the conditions is right.

    Mock exams leave it out, because a plan takes longer than a question may. Cards leave it
    out, because many plans are right, so a back could not show whether the learner's is.
    """

    name = "design"
    models = (DesignAnswer,)
    template = "questions/design.html"
    boxed = False
    in_parts = True
    keys = ("estimate", "given", "choose", "accept")
    fields = ("choose.",)
    in_exams = False
    as_card = False
    estimates = True

    def parse(self, written: AuthoredItem) -> DesignAnswer:
        """Read what is given, what is chosen, and the conditions."""
        return read_design(written.comment)

    def check(self, answer: DesignAnswer, written: AuthoredItem, *, exam: bool) -> None:
        """Check every name, then the plans (E80, E81, E11, E13)."""
        del exam
        before = len(written.sheet.problems)
        check_design(answer, written.comment, written.sheet)
        if len(written.sheet.problems) == before:
            check_plans(answer, written.comment, written.sheet)

    def key_words(self, answer: DesignAnswer) -> list[str]:
        """Return what decides which plans are right: the estimate, given values, conditions."""
        return [answer.estimate, self.read_before(answer)]

    def shown(self, answer: DesignAnswer, typed: Typed) -> OpenDesign:
        """Return the current plan, and its conditions."""
        fields = {name: f"choose.{name}" for name in answer.choose}
        chosen = {n: (typed.get(sent) or ("",))[0] for n, sent in fields.items()}
        begun = {n: words for n, words in chosen.items() if words}
        values = {**answer.given, **(begun or starting_plan(design_task(answer)))}
        given = {name: name for name in answer.given}
        return OpenDesign(answer.estimate, values, fields, given, describe_conditions(answer))

    def grade(
        self, answer: DesignAnswer, raw: Raw, partial: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a plan with the estimator."""
        return grade_design(answer, raw, partial)

    def columns(self, answer: DesignAnswer) -> tuple[str, str]:
        """Return the titles of conditions and limits."""
        del answer
        return "Condition", "Limit"

    def calculator(self, answer: DesignAnswer, parsed: Mapping[str, Any]) -> str:
        """Return the URL of the calculator with the chosen plan."""
        if not parsed.get("plan"):
            return ""
        return expressions.calculator_address(answer.estimate, {**answer.given, **parsed["plan"]})

    def read_before(self, answer: DesignAnswer) -> str:
        """Return the given values, the inputs to choose, and the conditions."""
        given = (f"{name} {words}" for name, words in answer.given.items())
        return " ".join([*given, *answer.choose, *answer.accept])

    def states(self, answer: DesignAnswer) -> Iterator[State]:
        """Yield the plan that the form starts with."""
        try:
            entry = expressions.require_estimate(answer.estimate)
        except FigureError:
            return
        defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs)}
        inputs = input_specs(entry.inputs)
        plan = {
            f"choose.{name}": [format_input(inputs[name], defaults[name])]
            for name in answer.choose
            if defaults.get(name) is not None
        }
        yield "The plan as it stands", plan
