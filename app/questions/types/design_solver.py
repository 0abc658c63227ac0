"""Conditions of design exercises, and a search for the best plan that meets them."""

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping

from app.estimator.hardware import catalog
from app.estimator.inputs import InputSpec, input_specs
from app.markup import expressions, quantities
from app.markup.expressions import (
    MOST_CHARACTERS,
    Expression,
    ExpressionError,
    FigureError,
    Value,
    compile_expression,
    evaluate_expression,
)
from app.markup.quantities import Quantity

_OPERATOR = re.compile(r"^(?P<left>[^<>=]+?)\s*(?P<op><=|>=|==|=|<|>)\s*(?P<right>.+)$")
_BEST = re.compile(r"\bbest\(\s*([A-Za-z_]\w*)\s*\)")
_MARK = "best_of_"
_DUST = 1e-9
_TURNED = re.compile(r"=[<>]")


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
    def names(self) -> frozenset[str]:
        """Return the outputs that it uses."""
        used = self.left.names | (self.right.names if self.right else frozenset())
        return frozenset(n.removeprefix(_MARK) for n in used)

    @property
    def bests(self) -> frozenset[str]:
        """Return the outputs whose best value it uses."""
        used = self.right.names if self.right else frozenset()
        return frozenset(n.removeprefix(_MARK) for n in used if n.startswith(_MARK))


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionResult:
    """Whether a condition is met, its value, and by how much it was missed.

    `excess` is the distance from the limit as a share of the limit: 0.25 is a quarter
    too much (or too little), 0 if the condition is met.
    """

    condition: PlanCondition
    met: bool
    value: Value
    limit: Quantity | None = None
    excess: float = 0.0


@functools.lru_cache(maxsize=1024)
def read_condition(text: str) -> PlanCondition:
    """Parse a condition; raises ExpressionError (E44, E45, E42)."""
    if turned := _TURNED.search(text):
        hint = f"Write {text.replace(turned[0], turned[0][::-1], 1)[:60]}."
        raise ExpressionError("E45", f"“{turned[0]}” compares nothing.", hint)
    match = _OPERATOR.match(text.strip()) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        return PlanCondition(text, compile_expression(text))
    right = _BEST.sub(rf"{_MARK}\1", match["right"])
    operator = "==" if match["op"] == "=" else match["op"]
    left = compile_expression(match["left"])
    return PlanCondition(text, left, operator, compile_expression(right))


def judge_condition(
    condition: PlanCondition, outputs: Mapping[str, Value], best: Mapping[str, Quantity]
) -> ConditionResult:
    """Evaluate a condition for the outputs of a plan; `best` are the values of `bests`.

    Raises ExpressionError for unknown outputs (E44) and for units that do not fit (E42).
    """
    names = {**outputs, **{f"{_MARK}{name}": value for name, value in best.items()}}
    value = evaluate_expression(condition.left, names)
    if condition.right is None:
        return ConditionResult(condition, value is True, value)
    limit = evaluate_expression(condition.right, names)
    if not isinstance(value, Quantity) or not isinstance(limit, Quantity):
        return ConditionResult(condition, value == limit, value)
    limit = _same_unit(limit, value, condition)
    met = _comparison_holds(value.value, condition.operator, limit.value)
    excess = 0.0 if met else abs(value.value - limit.value) / (abs(limit.value) or 1.0)
    return ConditionResult(condition, met, value, limit, excess)


def _same_unit(limit: Quantity, value: Quantity, condition: PlanCondition) -> Quantity:
    """Convert the limit to the value's unit; a plain number cannot limit bytes."""
    unit = value.unit or ""
    if quantities.unit_kind(limit.unit or "") != quantities.unit_kind(unit):
        message = f"“{condition.text}” compares {quantities.unit_in_words(unit)} with "
        message += f"{quantities.unit_in_words(limit.unit)}."
        bare = not limit.unit and unit
        hint = f"{condition.text} {unit}" if bare else f"<= 1 {unit}".rstrip()
        raise ExpressionError("E42", message, f"Write the limit with its unit: {hint}.")
    return quantities.convert_quantity(limit, unit)


def _comparison_holds(value: float, operator: str, limit: float) -> bool:
    slack = _DUST * max(abs(value), abs(limit))
    if operator in {"<=", ">=", "=="} and abs(value - limit) <= slack:
        return True
    if operator in {"<", "<="}:
        return value < limit
    return operator in {">", ">="} and value > limit


@dataclasses.dataclass(frozen=True, slots=True)
class DesignAnswer:
    """A plan that the learner chooses and the estimator grades.

    `accept` contains the conditions as written; `judge` evaluates them.
    """

    estimate: str
    given: Mapping[str, str]
    choose: tuple[str, ...]
    accept: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class OpenDesign:
    """A design exercise on the page: open inputs, given inputs, and all current values.

    `fields` maps the name of an open input to the name of its form field; `given` has
    the names of the others; `conditions` are (output, requirement).
    """

    estimate: str
    values: Mapping[str, str]
    fields: Mapping[str, str]
    given: Mapping[str, str]
    conditions: tuple[tuple[str, str], ...]


Choices = tuple[tuple[str, str], ...]
Cost = tuple[float, float, float]
Options = Mapping[str, tuple[str, ...]]

_SWEEPS = 3
MOST_PLANS = 400
_COUNTS = ("1", "2", "4", "8", "16", "32", "64", "128", "256")
_LOST = (math.inf, math.inf, math.inf)
_UNKNOWN = "not known, the plan does not run"


@dataclasses.dataclass(frozen=True, slots=True)
class DesignTask:
    """A design exercise as plain tuples, so that results can be cached."""

    estimate: str
    given: Choices
    choose: tuple[str, ...]
    accept: tuple[str, ...]


def design_task(design: DesignAnswer) -> DesignTask:
    """Return the exercise without mappings."""
    given = tuple(sorted(design.given.items()))
    return DesignTask(design.estimate, given, design.choose, design.accept)


def plan_outputs(estimate: str, inputs: Mapping[str, str]) -> dict[str, Value]:
    """Return the outputs of the estimate for a plan; unknown figures are left out.

    Raises FigureError if the inputs cannot be used.
    """
    found: dict[str, Value] = {}
    for figure in expressions.compute_estimate(estimate, inputs).figures:
        if isinstance(figure.value, bool | str):
            found[figure.name] = figure.value
        elif figure.value is not None:
            found[figure.name] = Quantity(figure.value, figure.unit)
    return found


@functools.lru_cache(maxsize=256)
def best_value(problem: DesignTask, output: str) -> Quantity | None:
    """Return the best value of `output` over plans that meet the other conditions.

    The lowest if a condition limits it from above, else the highest. None if
    no plan was found. The search changes one choice at a time, then two together,
    from three starts, and tries no more than 400 plans, so it may miss the best one.
    The tests compare it with all plans of each exercise.
    """
    search = _PlanSearch(problem, output)
    fields = input_specs(expressions.require_estimate(problem.estimate).inputs)
    options = {name: _input_options(fields[name]) for name in problem.choose}
    for part in (0, 1, 2):
        start = {n: values[len(values) * part // 4] for n, values in options.items()}
        at = search.improve_plan(start, lambda _: options)
        at = search.improve_plan(at, lambda at: _neighbor_options(options, at), together=2)
        search.improve_plan(at, functools.partial(_counts_between, fields, at))
    return search.found


def can_be_met(problem: DesignTask) -> bool:
    """Return whether some plan meets all conditions, except those on a best value.

    The search is that of `best_value`, which may miss a plan. It starts from five plans
    and from the calculator's defaults.
    """
    search = _PlanSearch(problem, "")
    fields = input_specs(expressions.require_estimate(problem.estimate).inputs)
    options = {name: _input_options(fields[name]) for name in problem.choose}
    search.cost({})
    for part in range(5):
        at = {n: v[(len(v) - 1) * part // 4] for n, v in options.items()}
        if not search.solved:
            search.improve_plan(at, lambda _: options)
    return search.solved


@functools.lru_cache(maxsize=256)
def starting_plan(problem: DesignTask) -> dict[str, str]:
    """Return the plan that the form starts with: one that does not meet the conditions.

    Otherwise a learner who submits the form unchanged might be right. It is the first of
    the smallest, the largest, and the middle values; empty if all of these meet the
    conditions, so that the form starts with the calculator's defaults.
    """
    fields = input_specs(expressions.require_estimate(problem.estimate).inputs)
    options = {name: _input_options(fields[name]) for name in problem.choose}
    for part in (0, 4, 1, 2, 3):
        plan = {n: v[(len(v) - 1) * part // 4] for n, v in options.items()}
        try:
            if not all(judgment.met for judgment in judge_conditions(problem, plan)):
                return plan
        except (FigureError, ExpressionError):
            continue
    return {}


class _PlanSearch:
    """A search: the plans tried so far, and the best of them."""

    def __init__(self, problem: DesignTask, output: str) -> None:
        self.problem = problem
        self.output = output
        conditions = [read_condition(text) for text in problem.accept]
        self.others = [c for c in conditions if not c.bests]
        limits = [c.operator for c in conditions if output in c.bests]
        self.sign = -1.0 if limits and limits[0].startswith(">") else 1.0
        self.seen: dict[Choices, Cost] = {}
        self.solved = False
        self.found: Quantity | None = None

    def improve_plan(
        self,
        plan: Mapping[str, str],
        options: Callable[[Mapping[str, str]], Options],
        together: int = 1,
    ) -> dict[str, str]:
        """Take the best value of each choice in turn until nothing improves.

        `options` gives the values to try around a plan, `together` how many choices change
        at once.
        """
        now = dict(plan)
        for _ in range(_SWEEPS):
            before, values = self.cost(now), options(now)
            for names in itertools.combinations(values, together):
                chosen = itertools.product(*(values[name] for name in names))
                tried = [{**now, **dict(zip(names, c, strict=True))} for c in chosen]
                now = min([now, *tried], key=self.cost)
            if self.cost(now) >= before:
                break
        return now

    def cost(self, plan: Mapping[str, str]) -> Cost:
        """Return the cost of a plan: missed conditions, then price, then closeness to limits."""
        key = tuple(sorted(plan.items()))
        if key not in self.seen:
            spent = len(self.seen) >= MOST_PLANS
            self.seen[key] = _LOST if spent else self._look(plan)
        return self.seen[key]

    def _look(self, plan: Mapping[str, str]) -> Cost:
        inputs = {**dict(self.problem.given), **plan}
        try:
            outputs = plan_outputs(self.problem.estimate, inputs)
            verdicts = [judge_condition(c, outputs, {}) for c in self.others]
        except (FigureError, ExpressionError):
            return _LOST
        missed = sum(not v.met for v in verdicts) + sum(min(v.excess, 1e6) for v in verdicts)
        self.solved |= not missed
        value = outputs.get(self.output) if self.output else Quantity(0.0, None)
        if not isinstance(value, Quantity):
            return _LOST
        price = self.sign * value.value
        if not missed and (self.found is None or price < self.sign * self.found.value):
            self.found = value
        # Of plans of equal price, one with more distance to its limits lets the next choice
        # save more.
        return missed, price, sum(map(_distance_to_limit, verdicts))


def _distance_to_limit(judgment: ConditionResult) -> float:
    """Return how near a value is to its limit: 1 at it, 0 far from it."""
    value, limit = judgment.value, judgment.limit
    if not isinstance(value, Quantity) or limit is None:
        return 0.0
    ratio = value.value / limit.value if limit.value else 1.0
    above = judgment.condition.operator.startswith(">")
    return (1 / ratio if ratio else math.inf) if above else ratio


def judge_conditions(problem: DesignTask, plan: Mapping[str, str]) -> list[ConditionResult]:
    """Evaluate every condition for a plan, in authored order.

    Raises FigureError or ExpressionError if the plan cannot be estimated.
    """
    outputs = plan_outputs(problem.estimate, {**dict(problem.given), **plan})
    return [_judge_with_best(problem, read_condition(t), outputs) for t in problem.accept]


def _judge_with_best(
    problem: DesignTask, condition: PlanCondition, outputs: Mapping[str, Value]
) -> ConditionResult:
    best: dict[str, Quantity] = {}
    for name in condition.bests:
        found = best_value(problem, name)
        reached = outputs.get(name)
        # The learner's plan may be better than any that the search found.
        best[name] = found or (reached if isinstance(reached, Quantity) else Quantity(math.inf, ""))
    try:
        return judge_condition(condition, outputs, best)
    except ExpressionError as error:
        if error.code != "E44":
            raise
        # The output exists, but not for this plan: a plan that does not fit has no latency.
        return ConditionResult(condition, met=False, value=_UNKNOWN, excess=1.0)


def _input_options(field: InputSpec) -> tuple[str, ...]:
    """Return the values to try for an input."""
    if field.kind == "choice":
        return tuple(value for value, _ in field.choices)
    if field.kind == "gpu":
        sold = (card for card in catalog.list_accelerators() if not card.announced)
        return tuple(card.id for card in sold)
    if field.kind == "flag":
        return ("no", "yes")
    return tuple(_allowed_values(field, _COUNTS)) or ("1",)


def _neighbor_options(options: Options, plan: Mapping[str, str]) -> Options:
    """Return each value and its neighbors, so that two choices can be traded off."""
    places = {name: values.index(plan[name]) for name, values in options.items()}
    return {n: options[n][max(0, at - 1) : at + 2] for n, at in places.items()}


def _counts_between(
    fields: Mapping[str, InputSpec], best: Mapping[str, str], _: Mapping[str, str]
) -> Options:
    """Return counts between the doublings tried so far, around those of the best plan."""
    return {name: _values_around(fields[name], value) for name, value in best.items()}


def _values_around(field: InputSpec, value: str) -> tuple[str, ...]:
    if not value.isdigit():
        return (value,)
    count = int(value)
    around = {count * part // 8 for part in (5, 6, 7, 9, 10, 12)}
    around |= {count - 1, count, count + 1}
    return tuple(_allowed_values(field, map(str, sorted(around))))


def _allowed_values(field: InputSpec, values: Iterable[str]) -> Iterable[str]:
    low = field.minimum if field.minimum is not None else -math.inf
    high = field.maximum if field.maximum is not None else math.inf
    return (value for value in values if low <= float(value) <= high)
