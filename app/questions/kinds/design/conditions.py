"""Conditions of a design exercise: `fits`, `ttft_p95 <= 1 s`, `x <= 1.2 * best(x)`."""

import dataclasses
import functools
import re
from collections.abc import Mapping

from app.content.numbers import quantities
from app.content.numbers.expressions import (
    MOST_CHARACTERS,
    Expression,
    ExpressionError,
    Value,
    compile_expression,
    evaluate,
)
from app.content.numbers.quantities import Quantity

_OPERATOR = re.compile(r"^(?P<left>[^<>=]+?)\s*(?P<op><=|>=|==|=|<|>)\s*(?P<right>.+)$")
_BEST = re.compile(r"\bbest\(\s*([A-Za-z_]\w*)\s*\)")
_MARK = "best_of_"
_DUST = 1e-9
_TURNED = re.compile(r"=[<>]")


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    """A condition over the outputs of an estimate.

    Without an operator `left` is an output that has to be true.
    """

    text: str
    left: Expression
    operator: str = ""
    right: Expression | None = None

    @property
    def names(self) -> frozenset[str]:
        """The outputs it speaks of."""
        used = self.left.names | (self.right.names if self.right else frozenset())
        return frozenset(n.removeprefix(_MARK) for n in used)

    @property
    def bests(self) -> frozenset[str]:
        """The outputs of which it asks the best value."""
        used = self.right.names if self.right else frozenset()
        return frozenset(n.removeprefix(_MARK) for n in used if n.startswith(_MARK))


@dataclasses.dataclass(frozen=True, slots=True)
class ConditionResult:
    """Whether a condition is met, what it came to, and by how much it was missed.

    `excess` is the share of the limit by which the value lies beyond it: 0.25 is a
    quarter too much (or too little), 0 when the condition is met.
    """

    condition: Condition
    met: bool
    value: Value
    limit: Quantity | None = None
    excess: float = 0.0


@functools.lru_cache(maxsize=1024)
def read_condition(text: str) -> Condition:
    """Read one condition; raises BadExpression (E44, E45, E42)."""
    if turned := _TURNED.search(text):
        hint = f"Write {text.replace(turned[0], turned[0][::-1], 1)[:60]}."
        raise ExpressionError("E45", f"“{turned[0]}” compares nothing.", hint)
    match = _OPERATOR.match(text.strip()) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        return Condition(text, compile_expression(text))
    right = _BEST.sub(rf"{_MARK}\1", match["right"])
    operator = "==" if match["op"] == "=" else match["op"]
    left = compile_expression(match["left"])
    return Condition(text, left, operator, compile_expression(right))


def judge(
    condition: Condition, outputs: Mapping[str, Value], best: Mapping[str, Quantity]
) -> ConditionResult:
    """Judge the outputs of a plan; `best` holds the best values of `bests`.

    Raises BadExpression for unknown outputs (E44) and for units that do not fit (E42).
    """
    names = {**outputs, **{f"{_MARK}{name}": value for name, value in best.items()}}
    value = evaluate(condition.left, names)
    if condition.right is None:
        return ConditionResult(condition, value is True, value)
    limit = evaluate(condition.right, names)
    if not isinstance(value, Quantity) or not isinstance(limit, Quantity):
        return ConditionResult(condition, value == limit, value)
    limit = _same_unit(limit, value, condition)
    met = _holds(value.value, condition.operator, limit.value)
    excess = 0.0 if met else abs(value.value - limit.value) / (abs(limit.value) or 1.0)
    return ConditionResult(condition, met, value, limit, excess)


def _same_unit(limit: Quantity, value: Quantity, condition: Condition) -> Quantity:
    """The limit counted as the value is: a bare number is no limit of bytes."""
    unit = value.unit or ""
    if quantities.kind(limit.unit or "") != quantities.kind(unit):
        message = f"“{condition.text}” compares {quantities.named(unit)} with "
        message += f"{quantities.named(limit.unit)}."
        bare = not limit.unit and unit
        hint = f"{condition.text} {unit}" if bare else f"<= 1 {unit}".rstrip()
        raise ExpressionError("E42", message, f"Write the limit with its unit: {hint}.")
    return quantities.convert(limit, unit)


def _holds(value: float, operator: str, limit: float) -> bool:
    slack = _DUST * max(abs(value), abs(limit))
    if operator in {"<=", ">=", "=="} and abs(value - limit) <= slack:
        return True
    if operator in {"<", "<="}:
        return value < limit
    return operator in {">", ">="} and value > limit
