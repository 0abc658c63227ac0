"""Arithmetic that authors may write: parsed with `ast`, walked here, never run."""

import ast
import dataclasses
import functools
import logging
import math
import operator
import re
from collections.abc import Callable, Mapping

from app.content.identity import did_you_mean
from app.content.numbers import estimates, quantities
from app.content.numbers.quantities import Quantity, UnitMismatchError
from app.content.numbers.units import UNITS
from app.estimator import registry

Value = Quantity | str | bool

MOST_CHARACTERS = 500
_WORDS = sorted((u for u in UNITS if u and u != "%"), key=len, reverse=True)
_UNIT = "(?:" + "|".join(map(re.escape, _WORDS)) + ")"
_WRITTEN = re.compile(
    r"""(?P<string>"[^"\n]*"|'[^'\n]*')"""
    rf"|\bin\s+(?P<to>{_UNIT}|%)(?![\w/])"
    rf"|(?<![\w.])(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>{_UNIT}|%)"
    r"(?![\w(/])"
)
_OPERATORS: dict[type, Callable[[Quantity, Quantity], Quantity]] = {
    ast.Add: lambda a, b: quantities.combine(a, b, operator.add),
    ast.Sub: lambda a, b: quantities.combine(a, b, operator.sub),
    ast.Mult: quantities.multiply,
    ast.Div: quantities.divide,
}
_log = logging.getLogger("headroom")
_ROUNDERS = ("round", "ceil", "floor", "min", "max")
_QUANTITY = "quantity"


class ExpressionError(ValueError):
    """Why an expression has no value: the code of the rule, and a hint."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression: its text, its tree, the names and estimates it uses."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    calls: tuple[ast.Call, ...]


# How a calculation is written elsewhere, and here.
_OTHERWISE = {
    r"\s[x×·]\s": "Write * for times.",
    "[÷:]": "Write / for divided by.",
    r"\d%|%\s": "Write 0.15 for 15%.",
    r"\d,\d": "Write decimals with a point: 7.5.",
    r"^\s*=|\w\s*=\s*\w": "Write the calculation alone, without =.",
}


@functools.lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Parse an expression and refuse everything that is not on the list.

    Raises BadExpression: E45 for what is not allowed, E44 for unknown functions.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError("E45", "The expression is longer than 500 characters.")
    _refuse_hyphens(text)
    try:
        tree = ast.parse(_with_units(text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = "Write numbers, names, + - * / ( ) and calls such as round(x, 1)."
        for pattern, better in _OTHERWISE.items():
            hint = better if re.search(pattern, text) else hint
        raise ExpressionError("E45", f"“{text}” is not an expression.", hint) from None
    seen = _UsedNames(set(), [])
    _check(tree, seen)
    return Expression(text, tree, frozenset(seen.names), tuple(seen.calls))


def _refuse_hyphens(text: str) -> None:
    """E44: the name of an estimate as pages write it is a difference here."""
    for entry in registry.entries():
        if "-" in entry.name and f"{entry.name}(" in text:
            hint = f"Write {entry.name.replace('-', '_')}."
            message = f"“{entry.name}” is a difference here, not the name of an estimate."
            raise ExpressionError("E44", message, hint)


def _with_units(text: str) -> str:
    def rewrite(match: re.Match[str]) -> str:
        if match["string"]:
            return match["string"]
        if match["to"]:
            return f'in "{match["to"]}"'
        return f'{_QUANTITY}({match["number"]}, "{match["unit"]}")'

    return _WRITTEN.sub(rewrite, text)


@dataclasses.dataclass(slots=True)
class _UsedNames:
    names: set[str]
    calls: list[ast.Call]


def _check(node: ast.AST, seen: _UsedNames) -> None:
    """Walk a tree; what `_evaluate` does not know does not pass."""
    match node:
        case ast.Name(id=name):
            seen.names.add(name)
        case ast.Constant(value=value):
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ExpressionError("E45", f"“{value!r}” is not allowed here.")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check(operand, seen)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left, seen)
            _check(right, seen)
        case ast.Compare(left=left, ops=[ast.In()], comparators=[unit]):
            _check(left, seen)
            _check_unit(unit)
        case ast.Attribute(value=ast.Call(func=ast.Name()) as call):
            _check_estimate(call, seen)
        case ast.Call(func=ast.Name(id=name)):
            _check_function(node, name, seen)
        case _:
            _refuse(node)


def _refuse(node: ast.AST) -> None:
    what = ast.unparse(node) if isinstance(node, ast.expr) else "this"
    hint = "Allowed: numbers, + - * / ( ), round, ceil, floor, min, max, estimates."
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor | ast.Pow):
        base = ast.unparse(node.left)
        hint = f"There are no powers: write {base} * {base}, as often as it is meant."
    elif isinstance(node, ast.Tuple):
        hint = "Write decimals with a point: 7.5."
    elif isinstance(node, ast.Set):
        hint = "Write names without braces here; those are for the text."
    raise ExpressionError("E45", f"“{what[:60]}” is not allowed in an expression.", hint)


def _check_unit(node: ast.expr) -> None:
    if not isinstance(node, ast.Constant):
        written = ast.unparse(node)
        hint = quantities.unit_meant(written)
        hint = hint or "Write a unit that the guide lists under “Units”."
        raise ExpressionError("E42", f"“{written}” is not a known unit.", hint)


def _check_estimate(call: ast.Call, seen: _UsedNames) -> None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if call.args or any(k.arg is None for k in call.keywords):
        hint = f"Write {name}(input=value, …).output."
        raise ExpressionError("E45", f"The inputs of {name} have no names.", hint)
    try:
        estimates.require_estimate(name)
    except estimates.FigureError as error:
        raise ExpressionError("E44", error.message, error.hint) from None
    seen.calls.append(call)
    for keyword in call.keywords:
        _check(keyword.value, seen)


def _check_function(node: ast.Call, name: str, seen: _UsedNames) -> None:
    if name not in _ROUNDERS and name != _QUANTITY:
        if registry.find_estimate(name) is not None:
            hint = f"Write {name}(…).total or another of its outputs."
            raise ExpressionError("E45", f"The call of {name} names no output.", hint)
        hint = did_you_mean(name, _ROUNDERS)
        raise ExpressionError("E44", f"There is no function “{name}”.", hint)
    if node.keywords or not node.args:
        raise ExpressionError("E45", f"{name} takes plain values only.")
    for argument in node.args:
        _check(argument, seen)


def evaluate(expression: Expression, names: Mapping[str, Value]) -> Value:
    """The value of an expression for these names.

    Raises BadExpression: E44 unknown name, E42 units that do not fit, E47 no number.
    """
    try:
        value = _evaluate(expression.tree, names)
        finite = not isinstance(value, Quantity) or math.isfinite(value.value)
    except UnitMismatchError as error:
        message = f"“{expression.text}” has no value: {error}."
        hint = "Give every number its unit, such as 55 g/L, and ask for one of its kind."
        raise ExpressionError("E42", message, hint) from None
    except estimates.FigureError as error:
        code = "E44" if error.code in {"E80", "E81"} else "E47"
        raise ExpressionError(code, error.message, error.hint) from None
    except (ArithmeticError, ValueError, RecursionError) as error:
        if isinstance(error, ExpressionError):
            raise
        message = f"“{expression.text}” has no value: {error}."
        raise ExpressionError("E47", message) from None
    except Exception as error:  # what is authored must never be a fault of the server
        _log.exception("the expression “%s” could not be evaluated", expression.text)
        message = f"“{expression.text}” has no value."
        raise ExpressionError("E47", message) from error
    if not finite:
        raise ExpressionError("E47", f"“{expression.text}” is not a finite number.")
    return value


def _evaluate(  # noqa: PLR0911 - a case per node
    node: ast.AST, names: Mapping[str, Value]
) -> Value:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=int() | float() as number):
            return Quantity(quantities.normalize_number(number))
        case ast.Name(id=name):
            return _named(name, names)
        case ast.UnaryOp(op=op, operand=operand):
            found = _number(operand, names)
            sign = -1 if isinstance(op, ast.USub) else 1
            return dataclasses.replace(found, value=sign * found.value)
        case ast.BinOp(left=left, op=op, right=right):
            how = _OPERATORS[type(op)]
            found = how(_number(left, names), _number(right, names))
            return dataclasses.replace(found, value=quantities.normalize_number(found.value))
        case ast.Compare(left=left, comparators=[ast.Constant(value=str(unit))]):
            return quantities.convert(_number(left, names), unit)
        case ast.Attribute(value=ast.Call() as call, attr=output):
            return estimates.value(_function(call), inputs_of(call, names), output)
        case ast.Call():
            return _apply(node, names)
    raise ExpressionError("E45", "This is not allowed in an expression.")


def _function(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _named(name: str, names: Mapping[str, Value]) -> Value:
    if name not in names:
        hint = did_you_mean(name, names)
        raise ExpressionError("E44", f"“{name}” is not defined.", hint)
    return names[name]


def _number(node: ast.AST, names: Mapping[str, Value]) -> Quantity:
    value = _evaluate(node, names)
    if isinstance(value, str):
        read = quantities.read_word(value)
        if read is not None:
            return read
        raise ExpressionError("E45", f"“{value}” is a word; a number is needed.")
    return Quantity(int(value)) if isinstance(value, bool) else value


def inputs_of(call: ast.Call, names: Mapping[str, Value]) -> dict[str, str]:
    """The inputs of an estimate call as words of a query string."""
    return {k.arg: as_typed(_evaluate(k.value, names)) for k in call.keywords if k.arg is not None}


def as_typed(value: Value) -> str:
    """A value as a person would type it into the form of a calculator."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    number = repr(value.value).removesuffix(".0")
    return f"{number} {value.unit}" if value.unit else number


def _apply(node: ast.Call, names: Mapping[str, Value]) -> Quantity:
    name = _function(node)
    if name == _QUANTITY:
        number, unit = (_evaluate(a, names) for a in node.args)
        return Quantity(_plain(number), str(unit))
    values = [_number(a, names) for a in node.args]
    if name in {"min", "max"}:
        choose: Callable[[float, float], float] = min if name == "min" else max
        return functools.reduce(lambda a, b: quantities.combine(a, b, choose), values)
    return _rounded(name, values)


def _plain(value: Value) -> float:
    return value.value if isinstance(value, Quantity) else 0.0


def _rounded(name: str, values: list[Quantity]) -> Quantity:
    first, *rest = values
    if name == "round" and len(rest) <= 1:
        digits = int(rest[0].value) if rest else 0
        rounded = round(first.value, max(-15, min(15, digits)))
        return dataclasses.replace(first, value=rounded if rest else int(rounded))
    if rest:
        raise ExpressionError("E45", f"{name} takes one value.")
    whole = math.ceil(first.value) if name == "ceil" else math.floor(first.value)
    return dataclasses.replace(first, value=whole)
