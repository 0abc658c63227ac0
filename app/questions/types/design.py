"""Design exercises: the learner chooses calculator inputs, and the estimator grades them.

A condition may refer to the best value of an output, `cost <= 1.2 * best(cost)`. A search over
plans finds it. It changes one choice at a time, then two together, from three starts.
"""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from app.estimator.hardware import catalog
from app.estimator.inputs import (
    InputSpec,
    InvalidInputsError,
    format_value_as_typed,
    input_specs,
    parse_inputs,
)
from app.estimator.units import format_value
from app.markup import expressions, lenient_yaml, quantities
from app.markup.expressions import (
    MOST_CHARACTERS,
    Expression,
    ExpressionError,
    FigureError,
    Value,
    compile_expression,
    evaluate_expression,
    require_estimate_spec,
)
from app.markup.lenient_yaml import YamlMapping
from app.markup.problems import ESTIMATE_EFFORT, TextPosition, parsing_effort_of_estimate
from app.markup.quantities import Quantity
from app.markup.text import shorten_with_ellipsis, write_hint_for_unknown_word
from app.questions.option_parsing import ParsedOption
from app.questions.question_type import (
    MAX_RESPONSE_LENGTH,
    AuthoredItem,
    DraftFields,
    GradeResult,
    ItemComment,
    LabeledResponse,
    PartResult,
    QuestionType,
    ResultColumnTitles,
    SubmittedFields,
    UnreadableResponse,
    escape_typed_text,
    first_field_value_or_empty,
    score_by_right_parts,
)

_CONDITION_COMPARISON = re.compile(r"^(?P<left>[^<>=]+?)\s*(?P<op><=|>=|==|=|<|>)\s*(?P<right>.+)$")
_REVERSED_COMPARISON = re.compile(r"=[<>]")
_BEST_CALL = re.compile(r"\bbest\(\s*([A-Za-z_]\w*)\s*\)")
_BEST_NAME = "best_of_"  # in expressions, best(x) is the name best_of_x
_OPERATOR_TEXTS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
_RELATIVE_TOLERANCE = 1e-9
_MOST_PLANS = 400
_SEARCH_SWEEPS = 3
_TRIED_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_UNKNOWN_VALUE_TEXT = "not known, the plan does not run"
_EXAMPLE_BY_KEY = {
    "estimate": "estimate: and the name of one, such as inference-memory",
    "choose": "choose: and the inputs that are left open, such as [gpu]",
    "accept": "accept: and what has to hold, such as [fits]",
}

_ValuesByInput = Mapping[str, tuple[str, ...]]


class PlanRank(NamedTuple):
    """Compared from left to right: missed conditions, the output to minimize, closeness to limits."""

    missed_conditions: float
    signed_objective: float
    closeness_to_limits: float


_UNUSABLE_PLAN_RANK = PlanRank(math.inf, math.inf, math.inf)


@dataclasses.dataclass(frozen=True, slots=True)
class DesignSpec:
    """The exercise: given inputs, inputs to choose, and conditions as written."""

    estimate: str
    given: Mapping[str, str]
    choose: tuple[str, ...]
    accept: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((self.estimate, tuple(sorted(self.given.items())), self.choose, self.accept))


@dataclasses.dataclass(frozen=True, slots=True)
class OpenDesign:
    """A design exercise on the page: open inputs, given inputs, and all current values.

    `form_field_by_open_input` maps the name of an open input to the name of its form field;
    `form_field_by_given_input` maps the names of the others to themselves.
    """

    estimate: str
    current_values: Mapping[str, str]
    form_field_by_open_input: Mapping[str, str]
    form_field_by_given_input: Mapping[str, str]
    conditions: tuple["ConditionText", ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PlanCondition:
    """A condition on the outputs of an estimate.

    Without an operator, `left` is an output that must be true.
    """

    text: str
    left: Expression
    operator: str = ""
    right: Expression | None = None

    @property
    def output_names(self) -> frozenset[str]:
        used = self.left.names | (self.right.names if self.right else frozenset())
        return frozenset(name.removeprefix(_BEST_NAME) for name in used)

    @property
    def outputs_compared_with_best_value(self) -> frozenset[str]:
        used = self.right.names if self.right else frozenset()
        return frozenset(n.removeprefix(_BEST_NAME) for n in used if n.startswith(_BEST_NAME))


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionResult:
    """Whether a condition is met, its value, and the limit in the unit of the value."""

    condition: PlanCondition
    is_met: bool
    value: Value
    limit: Quantity | None = None

    @property
    def relative_excess(self) -> float:
        """The distance from the limit as a share of the limit; 0 if the condition is met."""
        if self.is_met or self.limit is None or not isinstance(self.value, Quantity):
            return 0.0
        return abs(self.value.value - self.limit.value) / (abs(self.limit.value) or 1.0)

    @property
    def limit_utilization(self) -> float:
        """How near the value is to its limit: 1 at it, 0 far from it."""
        if self.limit is None or not isinstance(self.value, Quantity):
            return 0.0
        ratio = self.value.value / self.limit.value if self.limit.value else 1.0
        is_minimum = self.condition.operator.startswith(">")
        return (1 / ratio if ratio else math.inf) if is_minimum else ratio


@functools.lru_cache(maxsize=1024)
def parse_condition(text: str) -> PlanCondition:
    """Parse a condition; raises ExpressionError (E44, E45, E42)."""
    if match := _REVERSED_COMPARISON.search(text):
        hint = f"Write {shorten_with_ellipsis(text.replace(match[0], match[0][::-1], 1))}."
        raise ExpressionError("E45", f"“{match[0]}” compares nothing.", hint)
    match = _CONDITION_COMPARISON.match(text.strip()) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        return PlanCondition(text, compile_expression(text))
    right = _BEST_CALL.sub(rf"{_BEST_NAME}\1", match["right"])
    operator = "==" if match["op"] == "=" else match["op"]
    left = compile_expression(match["left"])
    return PlanCondition(text, left, operator, compile_expression(right))


def evaluate_condition(
    condition: PlanCondition, outputs: Mapping[str, Value], best_values: Mapping[str, Quantity]
) -> ConditionResult:
    """Evaluate a condition for the outputs of a plan; `best_values` are those of `bests`.

    Raises ExpressionError for unknown outputs (E44) and for units that do not fit (E42).
    """
    names = {**outputs, **{f"{_BEST_NAME}{name}": value for name, value in best_values.items()}}
    value = evaluate_expression(condition.left, names)
    if condition.right is None:
        return ConditionResult(condition, value is True, value)
    limit = evaluate_expression(condition.right, names)
    if not isinstance(value, Quantity) or not isinstance(limit, Quantity):
        return ConditionResult(condition, value == limit, value)
    unit = value.unit or ""
    if quantities.format_unit_dimension(limit.unit or "") != quantities.format_unit_dimension(unit):
        message = f"“{condition.text}” compares {quantities.quote_unit(unit)} with "
        message += f"{quantities.quote_unit(limit.unit)}."
        example = f"{condition.text} {unit}" if unit and not limit.unit else f"<= 1 {unit}".rstrip()
        raise ExpressionError("E42", message, f"Write the limit with its unit: {example}.")
    limit = quantities.convert_quantity(limit, unit)
    met = _satisfies_comparison(value.value, condition.operator, limit.value)
    return ConditionResult(condition, met, value, limit)


def _satisfies_comparison(value: float, operator: str, limit: float) -> bool:
    if math.isclose(value, limit, rel_tol=_RELATIVE_TOLERANCE):
        return "=" in operator
    return value < limit if operator.startswith("<") else operator[0] == ">" and value > limit


def evaluate_conditions(answer: DesignSpec, plan: Mapping[str, str]) -> list[ConditionResult]:
    """Evaluate every condition for a plan, in authored order.

    Raises FigureError or ExpressionError if the plan cannot be estimated.
    """
    outputs = estimate_plan_outputs(answer.estimate, {**answer.given, **plan})
    results = []
    for condition in map(parse_condition, answer.accept):
        best: dict[str, Quantity] = {}
        for name in condition.outputs_compared_with_best_value:
            reached = outputs.get(name)
            # The learner's plan may be better than any that the search found.
            fallback = reached if isinstance(reached, Quantity) else Quantity(math.inf, "")
            best[name] = find_best_value(answer, name) or fallback
        try:
            results.append(evaluate_condition(condition, outputs, best))
        except ExpressionError as error:
            if error.code != "E44":
                raise
            # The output exists, but not for this plan: one that does not fit has no latency.
            results.append(ConditionResult(condition, is_met=False, value=_UNKNOWN_VALUE_TEXT))
    return results


def estimate_plan_outputs(estimate: str, inputs: Mapping[str, str]) -> dict[str, Value]:
    """Return the outputs of the estimate for a plan; unknown figures are left out.

    Raises FigureError if the inputs cannot be used.
    """
    outputs: dict[str, Value] = {}
    for figure in expressions.compute_estimate(estimate, inputs).figures:
        if isinstance(figure.value, bool | str):
            outputs[figure.name] = figure.value
        elif figure.value is not None:
            outputs[figure.name] = Quantity(figure.value, figure.unit)
    return outputs


@functools.lru_cache(maxsize=256)
def find_best_value(answer: DesignSpec, output: str) -> Quantity | None:
    """Return the best value of `output` over plans that meet the other conditions.

    The lowest if a condition limits it from above, else the highest. None if no plan was found.
    The search tries no more than 400 plans, so it may miss the best one. The tests compare it with
    all plans of each exercise.
    """
    search, options = _BoundedPlanSearch(answer, output), _list_values_to_try_by_input(answer)
    fields = input_specs(require_estimate_spec(answer.estimate).inputs_type)
    for part in (0, 1, 2):
        plan = {name: values[len(values) * part // 4] for name, values in options.items()}
        alone = search.improve_plan(plan, lambda _: options)
        traded = search.improve_plan(
            alone, functools.partial(_list_values_with_neighbors, options), choices_at_once=2
        )
        for plan in (alone, traded):
            between = {name: _counts_around(fields[name], value) for name, value in plan.items()}
            search.improve_plan(plan, lambda _, between=between: between)  # type: ignore[misc]
    return search.best


def has_feasible_plan(answer: DesignSpec) -> bool:
    """Return whether a search finds a plan that meets all conditions but those on a best value."""
    search, options = _BoundedPlanSearch(answer, ""), _list_values_to_try_by_input(answer)
    search.rank_plan({})  # the calculator's defaults
    for part in range(5):
        plan = {name: values[(len(values) - 1) * part // 4] for name, values in options.items()}
        if search.best is None:
            search.improve_plan(plan, lambda _: options)
    return search.best is not None


class _BoundedPlanSearch:
    """A search: the plans tried so far, and the best value of those that meet the conditions."""

    def __init__(self, answer: DesignSpec, output: str) -> None:
        self._answer = answer
        self._output = output
        conditions = [parse_condition(text) for text in answer.accept]
        self._conditions = [c for c in conditions if not c.outputs_compared_with_best_value]
        operators = [c.operator for c in conditions if output in c.outputs_compared_with_best_value]
        self._sign = -1.0 if operators and operators[0].startswith(">") else 1.0
        self._ranks: dict[tuple[tuple[str, str], ...], PlanRank] = {}
        self.best: Quantity | None = None

    def improve_plan(
        self,
        plan: dict[str, str],
        list_values_to_try: Callable[[dict[str, str]], _ValuesByInput],
        choices_at_once: int = 1,
    ) -> dict[str, str]:
        """Take the best value of each choice in turn until nothing improves.

        `list_values_to_try` gives the values to try around a plan, `choices_at_once` how many choices change at once.
        """
        for _ in range(_SEARCH_SWEEPS):
            before, values = self.rank_plan(plan), list_values_to_try(plan)
            for names in itertools.combinations(values, choices_at_once):
                choices = itertools.product(*(values[name] for name in names))
                changed = [{**plan, **dict(zip(names, c, strict=True))} for c in choices]
                plan = min([plan, *changed], key=self.rank_plan)
            if self.rank_plan(plan) >= before:
                break
        return plan

    def rank_plan(self, plan: Mapping[str, str]) -> PlanRank:
        key = tuple(sorted(plan.items()))
        if key not in self._ranks:
            is_over = len(self._ranks) >= _MOST_PLANS
            self._ranks[key] = (
                _UNUSABLE_PLAN_RANK if is_over else self._rank_and_remember_best(plan)
            )
        return self._ranks[key]

    def _rank_and_remember_best(self, plan: Mapping[str, str]) -> PlanRank:
        try:
            outputs = estimate_plan_outputs(self._answer.estimate, {**self._answer.given, **plan})
            results = [evaluate_condition(c, outputs, {}) for c in self._conditions]
        except (FigureError, ExpressionError):
            return _UNUSABLE_PLAN_RANK
        value = outputs.get(self._output) if self._output else Quantity(0.0, None)
        if not isinstance(value, Quantity):
            return _UNUSABLE_PLAN_RANK
        missed = sum((not r.is_met) + min(r.relative_excess, 1e6) for r in results)
        signed_objective = self._sign * value.value
        if not missed and (self.best is None or signed_objective < self._sign * self.best.value):
            self.best = value
        # Of plans with an equal objective, one with more distance to its limits lets the next
        # choice save more.
        closeness = sum(result.limit_utilization for result in results)
        return PlanRank(missed, signed_objective, closeness)


def _list_values_to_try_by_input(answer: DesignSpec) -> _ValuesByInput:
    fields = input_specs(require_estimate_spec(answer.estimate).inputs_type)
    return {name: _list_values_to_try(fields[name]) for name in answer.choose}


def _list_values_to_try(input_spec: InputSpec) -> tuple[str, ...]:
    if input_spec.kind == "choice":
        return tuple(value for value, _ in input_spec.choices)
    if input_spec.kind == "gpu":
        return tuple(gpu.id for gpu in catalog.list_accelerators() if not gpu.announced)
    return (
        ("no", "yes")
        if input_spec.kind == "flag"
        else _keep_allowed(input_spec, _TRIED_COUNTS) or ("1",)
    )


def _list_values_with_neighbors(
    values_by_input: _ValuesByInput, plan: Mapping[str, str]
) -> _ValuesByInput:
    """Return each value with its neighbors, so that two choices can be traded off."""
    places = {name: values.index(plan[name]) for name, values in values_by_input.items()}
    return {name: values_by_input[name][max(0, at - 1) : at + 2] for name, at in places.items()}


def _counts_around(input_spec: InputSpec, value: str) -> tuple[str, ...]:
    """Return counts between the doublings tried so far, around a value."""
    if not value.isdigit():
        return (value,)
    count = int(value)
    counts = {count * part // 8 for part in (5, 6, 7, 9, 10, 12)} | {count - 1, count, count + 1}
    return _keep_allowed(input_spec, counts)


def _keep_allowed(input_spec: InputSpec, counts: Iterable[int]) -> tuple[str, ...]:
    low = -math.inf if input_spec.minimum is None else input_spec.minimum
    high = math.inf if input_spec.maximum is None else input_spec.maximum
    return tuple(str(count) for count in sorted(counts) if low <= count <= high)


@functools.lru_cache(maxsize=256)
def find_unsolved_starting_plan(answer: DesignSpec) -> dict[str, str]:
    """Return the plan that the form starts with: one that does not meet the conditions.

    Otherwise a learner who submits the form unchanged might be right. It is the first of the
    smallest, the largest, and the middle values; empty if all of these meet the conditions.
    """
    options = _list_values_to_try_by_input(answer)
    for part in (0, 4, 1, 2, 3):
        plan = {name: values[(len(values) - 1) * part // 4] for name, values in options.items()}
        try:
            if not all(result.is_met for result in evaluate_conditions(answer, plan)):
                return plan
        except (FigureError, ExpressionError):
            continue
    return {}


class ConditionText(NamedTuple):
    """A condition in words: “Time to first token, 95th percentile”, “at most 1 s”."""

    output: str
    requirement: str


def describe_conditions(answer: DesignSpec) -> tuple[ConditionText, ...]:
    """Return the conditions in words; as written if one cannot be read."""
    try:
        labels = {o.name: o.label for o in require_estimate_spec(answer.estimate).outputs}
        return tuple(_describe_condition(parse_condition(text), labels) for text in answer.accept)
    except (FigureError, ExpressionError):
        return tuple(ConditionText(text, "") for text in answer.accept)


def _describe_condition(condition: PlanCondition, labels: Mapping[str, str]) -> ConditionText:
    name = condition.left.text.strip()
    subject = labels.get(name, name)
    if condition.right is None:
        return ConditionText(subject, "yes")
    limit = condition.right.text.strip()
    for best in condition.outputs_compared_with_best_value:
        limit = limit.replace(f"{_BEST_NAME}{best}", "the best possible")
    limit = limit.replace("*", "×")
    for output, label in labels.items():
        limit = limit.replace(f" {output} ", f" {label} ")
    bound = _OPERATOR_TEXTS.get(condition.operator, "exactly")
    return ConditionText(subject, f"{bound} {limit}")


def _build_condition_part_result(
    key: str, result: ConditionResult, condition_text: ConditionText, explanation: str
) -> PartResult:
    """`explanation` is the estimator's sentence on the plan, said of a failed yes-or-no condition."""
    subject, requirement = condition_text
    if result.limit is not None and result.condition.outputs_compared_with_best_value:
        bound = _OPERATOR_TEXTS.get(result.condition.operator, "exactly")
        share = requirement.removeprefix(bound).strip()
        requirement = f"{bound} {_format_value(result.limit)} ({share})"
    feedback = explanation if result.value is False else ""
    if not result.is_met and result.limit is not None and isinstance(result.value, Quantity):
        gap = abs(result.value.value - result.limit.value)
        is_over = result.condition.operator.startswith("<")
        feedback = f"{format_value(gap, result.value.unit or '')} "
        feedback += "over the limit." if is_over else "short of it."
    return PartResult(
        key=key,
        label=subject,
        text=escape_typed_text(subject),
        chosen=True,
        should_be_chosen=True,
        is_right=result.is_met,
        given_answer=escape_typed_text(_format_value(result.value)),
        right_answer=escape_typed_text(requirement),
        feedback=escape_typed_text(feedback),
    )


def _format_value(value: Value) -> str:
    if isinstance(value, Quantity):
        return format_value(value.value, value.unit or "")
    return format_value(value)


def _reject_unusable_plan(answer: DesignSpec, plan: Mapping[str, str]) -> UnreadableResponse | None:
    if not plan:
        return UnreadableResponse("Nothing is chosen.", "Choose a value for each input.")
    if any(len(value) > MAX_RESPONSE_LENGTH for value in plan.values()):
        return UnreadableResponse(f"A value is longer than {MAX_RESPONSE_LENGTH} characters.")
    try:
        inputs = require_estimate_spec(answer.estimate).inputs_type
        parse_inputs(inputs, {**answer.given, **plan})
    except FigureError as error:
        return UnreadableResponse(error.message, error.hint)
    except InvalidInputsError as error:
        problem = error.problems[0]
        field = input_specs(inputs).get(problem.field)
        label = f"{field.label}: " if field else ""
        return UnreadableResponse(f"{label}{problem.message}", "Change it and check again.")
    return None


class _DesignExerciseCheck:
    def __init__(self, answer: DesignSpec, authored: AuthoredItem) -> None:
        self._answer = answer
        self._comment: ItemComment = authored.comment
        self._fields = authored.comment.fields.values
        self._file = authored.parse_context

    def run(self) -> None:
        """Report missing, unknown and duplicate names, then what makes plans impossible."""
        if self._report_missing_fields():
            return
        before = len(self._file.problems)
        try:
            entry = require_estimate_spec(self._answer.estimate)
        except FigureError as error:
            self._report(error.code, "estimate", error.message, error.hint)
            return
        self._file.add_reference(
            "calculator", entry.name, *self._comment.field_location("estimate")
        )
        self._report_unknown_names(entry.name, input_specs(entry.inputs_type))
        outputs: dict[str, Value] = {o.name: Quantity(1.0, o.unit or None) for o in entry.outputs}
        for text in self._answer.accept:
            self._report_bad_condition(text, entry.name, outputs)
        if len(self._file.problems) == before and self._check_given_values():
            self._report_unsolvable_or_already_solved()

    def _report(self, code: str, key: str, message: str, hint: str) -> None:
        self._file.report(code, *self._comment.field_location(key), message, hint)

    def _report_missing_fields(self) -> bool:
        for key, example in _EXAMPLE_BY_KEY.items():
            node = self._fields.get(key)
            if not node or not any(word.text for word in lenient_yaml.collect_texts_of_node(node)):
                self._report("E13", key, f"A design exercise needs “{key}”.", f"Write {example}.")
                return True
        if not isinstance(self._fields.get("given", YamlMapping({}, {}, 1, 1)), YamlMapping):
            message = "“given” is not a list of inputs with their values."
            self._report("E13", "given", message, "Write given: {model: 70B, context: 8192}.")
        return False

    def _report_unknown_names(self, estimate: str, inputs: Mapping[str, InputSpec]) -> None:
        given, choose = self._answer.given, self._answer.choose
        for name, key in [*((n, "given") for n in given), *((n, "choose") for n in choose)]:
            if name not in inputs:
                message = f"“{name}” is not an input of {estimate}."
                self._report("E81", key, message, write_hint_for_unknown_word(name, inputs))
            elif key == "choose" and name in given:
                message = f"“{name}” is given and to be chosen."
                self._report("E11", key, message, "Take it out of one of the two.")
        for name in dict.fromkeys(n for n in choose if choose.count(n) > 1):
            self._report("E11", "choose", f"“{name}” is to be chosen twice.", "Name it once.")

    def _report_bad_condition(self, text: str, estimate: str, outputs: Mapping[str, Value]) -> None:
        """Parse a condition, and evaluate it on `outputs` of 1."""
        try:
            condition = parse_condition(text)
            unknown = sorted(condition.output_names - set(outputs))
            if unknown:
                message = f"“{unknown[0]}” is not an output of {estimate}."
                self._report(
                    "E81", "accept", message, write_hint_for_unknown_word(unknown[0], outputs)
                )
                return
            values = {name: outputs[name] for name in condition.outputs_compared_with_best_value}
            best = {name: v for name, v in values.items() if isinstance(v, Quantity)}
            evaluate_condition(condition, outputs, best)
        except ExpressionError as error:
            self._report(error.code, "accept", error.message, error.hint)

    def _check_given_values(self) -> bool:
        """Report given values that cannot be used; return whether there are none."""
        inputs = require_estimate_spec(self._answer.estimate).inputs_type
        try:
            parse_inputs(inputs, self._answer.given)
        except InvalidInputsError as error:
            fields, node = input_specs(inputs), self._fields.get("given")
            for problem in error.problems:
                field = fields.get(problem.field)
                is_listed = field is not None and field.kind in expressions.CATALOGUED
                place = self._comment.field_location("given")
                if isinstance(node, YamlMapping) and problem.field in node.values:
                    value = node.values[problem.field]
                    place = TextPosition(value.line, value.column)
                hint = "Everybody who answers would be refused: write a value that fits."
                self._file.report("E80" if is_listed else "E84", *place, problem.message, hint)
            return False
        return True

    def _report_unsolvable_or_already_solved(self) -> None:
        """Report that no plan is right (W92), or that the first one is (W93)."""
        answer = self._answer
        if parsing_effort_of_estimate(answer.estimate) > ESTIMATE_EFFORT:
            return
        self._file.spend_parsing_effort(_MOST_PLANS * ESTIMATE_EFFORT, repr(answer))
        if not has_feasible_plan(answer):
            message = f"No plan was found that meets {', '.join(answer.accept)[:120]}."
            hint = "Relax a condition, change what is given, or let more be chosen."
            self._report("W92", "accept", message, hint)
            return
        try:
            is_solved = not find_unsolved_starting_plan(answer) and all(
                result.is_met for result in evaluate_conditions(answer, {})
            )
        except (FigureError, ExpressionError):
            return
        if is_solved:
            message = "The exercise is solved before anything is chosen."
            hint = "Tighten a condition, so that what the form begins with misses it."
            self._report("W93", "accept", message, hint)


class DesignType(QuestionType[DesignSpec]):
    """Inputs of an estimate; any choice that meets the conditions is right.

    Mock exams leave it out, because a plan takes longer than a question may. Cards leave it
    out, because many plans are right, so a back could not show whether the learner's is.
    """

    name = "design"
    answer_classes = (DesignSpec,)
    template = "questions/design.html"
    has_option_boxes = False
    supports_partial_credit = True
    comment_keys = ("estimate", "given", "choose", "accept")
    key_implying_type = "estimate"
    form_fields = ("choose.",)
    is_allowed_in_exams = False
    is_allowed_as_card = False
    needs_calculators = True

    def is_implied_by_options(self, options: Sequence[ParsedOption]) -> bool:
        return not options

    def parse_answer(self, authored: AuthoredItem) -> DesignSpec:
        values = authored.comment.fields.values
        given = values.get("given")
        return DesignSpec(
            authored.comment.field_text("estimate"),
            {name: lenient_yaml.text_or_empty(value) for name, value in given.values.items()}
            if isinstance(given, YamlMapping)
            else {},
            tuple(value.text for value in lenient_yaml.collect_texts_of_node(values.get("choose"))),
            tuple(value.text for value in lenient_yaml.collect_texts_of_node(values.get("accept"))),
        )

    def report_answer_problems(self, answer: DesignSpec, authored: AuthoredItem) -> None:
        _DesignExerciseCheck(answer, authored).run()

    def answer_key_fingerprint_texts(self, answer: DesignSpec) -> list[str]:
        """Return what decides which plans are right: the estimate, given values, conditions."""
        return [answer.estimate, self.collect_text_or_html_below_stem(answer)]

    def build_template_data(self, answer: DesignSpec, draft_fields: DraftFields) -> OpenDesign:
        form_field_by_input = {name: f"choose.{name}" for name in answer.choose}
        typed_values = {
            name: (draft_fields.get(field) or ("",))[0]
            for name, field in form_field_by_input.items()
        }
        chosen = {name: value for name, value in typed_values.items() if value}
        values = {**answer.given, **(chosen or find_unsolved_starting_plan(answer))}
        given_inputs = {name: name for name in answer.given}
        return OpenDesign(
            answer.estimate, values, form_field_by_input, given_inputs, describe_conditions(answer)
        )

    def grade(
        self, answer: DesignSpec, raw: SubmittedFields, credit_rule: str
    ) -> GradeResult | UnreadableResponse:
        """Grade a plan; `choose.INPUT` in the response contains each chosen input.

        Each condition counts the same, unless the item is all or nothing. An input that the
        estimate rejects is unreadable, with its range as hint.
        """
        plan = {
            n: value
            for n in answer.choose
            if (value := first_field_value_or_empty(raw, f"choose.{n}"))
        }
        if (refused := _reject_unusable_plan(answer, plan)) is not None:
            return refused
        try:
            results = evaluate_conditions(answer, plan)
        except (FigureError, ExpressionError) as error:
            return UnreadableResponse(f"The plan cannot be judged: {error}", error.hint)
        verdict = expressions.compute_estimate(answer.estimate, {**answer.given, **plan}).verdict
        why = f"{verdict.lead} {verdict.text}".strip()
        described_results = zip(results, describe_conditions(answer), strict=True)
        marks = tuple(
            _build_condition_part_result(f"c{number}", result, text, why)
            for number, (result, text) in enumerate(described_results)
        )
        met = sum(mark.is_right for mark in marks)
        return GradeResult(
            score=score_by_right_parts(met, len(marks), credit_rule),
            parsed_response={"plan": plan, "met": [mark.is_right for mark in marks]},
            part_results=marks,
            given_answer=f"{met} of {len(marks)} conditions met",
            score_basis=f"{met} of {len(marks)} conditions met",
        )

    def result_column_titles(self, answer: DesignSpec) -> ResultColumnTitles:
        del answer
        return ResultColumnTitles("Condition", "Limit")

    def calculator_url(self, answer: DesignSpec, parsed_response: Mapping[str, Any]) -> str:
        if not parsed_response.get("plan"):
            return ""
        return expressions.calculator_url(
            answer.estimate, {**answer.given, **parsed_response["plan"]}
        )

    def collect_text_or_html_below_stem(self, answer: DesignSpec) -> str:
        given = (f"{name} {value}" for name, value in answer.given.items())
        return " ".join([*given, *answer.choose, *answer.accept])

    def sample_responses(self, answer: DesignSpec) -> Iterator[LabeledResponse]:
        try:
            entry = expressions.require_estimate_spec(answer.estimate)
        except FigureError:
            return
        defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs_type)}
        inputs = input_specs(entry.inputs_type)
        plan = {
            f"choose.{name}": [format_value_as_typed(inputs[name], defaults[name])]
            for name in answer.choose
            if defaults.get(name) is not None
        }
        yield LabeledResponse("The plan as it stands", plan)
