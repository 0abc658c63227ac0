"""The planner behind design exercises: the best plan it can find among the choices."""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping

from app.content import estimates
from app.content.conditions import Condition, Judgement, judge, read_condition
from app.content.estimates import Unanswerable
from app.content.expressions import BadExpression, Value
from app.content.model import Design
from app.content.quantities import Quantity
from app.estimator import hardware
from app.estimator.inputs import Input, declared

Plan = tuple[tuple[str, str], ...]

_SWEEPS = 3
_MOST_PLANS = 400
_COUNTS = ("1", "2", "4", "8", "16", "32", "64", "128", "256")
_LOST = math.inf
_UNKNOWN = "not known, the plan does not run"


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A design exercise in a form that can be kept in mind: plain tuples."""

    estimate: str
    given: Plan
    choose: tuple[str, ...]
    accept: tuple[str, ...]


def problem_of(design: Design) -> Problem:
    """The exercise without mappings."""
    given = tuple(sorted(design.given.items()))
    return Problem(design.estimate, given, design.choose, design.accept)


def outputs_of(estimate: str, inputs: Mapping[str, str]) -> dict[str, Value]:
    """What the estimate says of a plan; unknown figures are left out.

    Raises Unanswerable where the inputs cannot be used.
    """
    found: dict[str, Value] = {}
    for figure in estimates.compute(estimate, inputs).figures:
        if isinstance(figure.value, bool | str):
            found[figure.name] = figure.value
        elif figure.value is not None:
            found[figure.name] = Quantity(figure.value, figure.unit)
    return found


@functools.lru_cache(maxsize=256)
def best_value(problem: Problem, output: str) -> Quantity | None:
    """The best value of `output` over plans that meet the other conditions.

    The lowest where a condition limits it from above, else the highest. None where
    no plan was found. The search changes one choice at a time, from two starts, and
    looks at no more than 400 plans: it may miss the very best, never by a rule.
    """
    search = _Search(problem, output)
    fields = declared(estimates.known(problem.estimate).inputs)
    options = {name: _options(fields[name]) for name in problem.choose}
    starts = [{n: o[0] for n, o in options.items()}]
    starts.append({n: o[len(o) // 2] for n, o in options.items()})
    for start in starts:
        search.improve(start, options)
    return search.found


class _Search:
    """One search: which plans were looked at, and the best of them."""

    def __init__(self, problem: Problem, output: str) -> None:
        self.problem = problem
        self.output = output
        conditions = [read_condition(text) for text in problem.accept]
        self.others = [c for c in conditions if not c.bests]
        limits = [c.operator for c in conditions if output in c.bests]
        self.sign = -1.0 if limits and limits[0].startswith(">") else 1.0
        self.seen: dict[Plan, tuple[float, float]] = {}
        self.found: Quantity | None = None

    def improve(
        self, plan: Mapping[str, str], options: Mapping[str, tuple[str, ...]]
    ) -> None:
        """Take the best of each choice in turn until nothing gets better."""
        plan = dict(plan)
        for _ in range(_SWEEPS):
            before = self.cost(plan)
            for name, values in options.items():
                tried = {value: self.cost({**plan, name: value}) for value in values}
                plan[name] = min(tried, key=lambda v, t=tried: t[v])  # type: ignore[misc] # the loop's own dict
            if self.cost(plan) >= before:
                return

    def cost(self, plan: Mapping[str, str]) -> tuple[float, float]:
        """How far a plan is from feasible, then how dear it is."""
        key = tuple(sorted(plan.items()))
        if key not in self.seen:
            spent = len(self.seen) >= _MOST_PLANS
            self.seen[key] = (_LOST, _LOST) if spent else self._look(plan)
        return self.seen[key]

    def _look(self, plan: Mapping[str, str]) -> tuple[float, float]:
        inputs = {**dict(self.problem.given), **plan}
        try:
            outputs = outputs_of(self.problem.estimate, inputs)
            verdicts = [judge(c, outputs, {}) for c in self.others]
        except (Unanswerable, BadExpression):
            return _LOST, _LOST
        value = outputs.get(self.output)
        if not isinstance(value, Quantity):
            return _LOST, _LOST
        missed = sum(not v.met for v in verdicts) + sum(
            min(v.excess, 1e6) for v in verdicts
        )
        price = self.sign * value.value
        if not missed and (self.found is None or price < self.sign * self.found.value):
            self.found = value
        return missed, price


def judgements(problem: Problem, plan: Mapping[str, str]) -> list[Judgement]:
    """Every condition judged for a plan, in the authored order.

    Raises Unanswerable or BadExpression where the plan cannot be estimated.
    """
    outputs = outputs_of(problem.estimate, {**dict(problem.given), **plan})
    return [_judged(problem, read_condition(t), outputs) for t in problem.accept]


def _judged(
    problem: Problem, condition: Condition, outputs: Mapping[str, Value]
) -> Judgement:
    best: dict[str, Quantity] = {}
    for name in condition.bests:
        found = best_value(problem, name)
        reached = outputs.get(name)
        # The learner's plan may be better than any that the planner found.
        best[name] = found or (
            reached if isinstance(reached, Quantity) else Quantity(math.inf, "")
        )
    try:
        return judge(condition, outputs, best)
    except BadExpression as error:
        if error.code != "E44":
            raise
        # The figure exists, but not for this plan: what does not run has no latency.
        return Judgement(condition, met=False, value=_UNKNOWN, excess=1.0)


def _options(field: Input) -> tuple[str, ...]:
    """Values worth trying for an input."""
    if field.kind == "choice":
        return tuple(value for value, _ in field.choices)
    if field.kind == "gpu":
        return tuple(card.id for card in hardware.accelerators())
    if field.kind == "flag":
        return ("no", "yes")
    return tuple(_within(field, _COUNTS)) or ("1",)


def _within(field: Input, values: Iterable[str]) -> Iterable[str]:
    low = field.minimum if field.minimum is not None else -math.inf
    high = field.maximum if field.maximum is not None else math.inf
    return (value for value in values if low <= float(value) <= high)
