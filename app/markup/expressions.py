"""Evaluate arithmetic and estimate calls safely, and fill {placeholders}."""

import ast
import dataclasses
import functools
import logging
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

from app.estimator import registry
from app.estimator.hardware import catalog, part_values
from app.estimator.inputs import InvalidInputsError, input_specs
from app.estimator.models.lookup import find_model
from app.estimator.result import Estimate, Figure
from app.estimator.units import format_value
from app.markup import quantities
from app.markup.model import QuestionParameters, RichText
from app.markup.problems import AuthoringError
from app.markup.quantities import UNITS, Quantity, UnitMismatchError, format_with_spec
from app.markup.text import write_hint_for_unknown_word
from app.widgets import estimate_view

Value = Quantity | str | bool
CATALOGUED = frozenset({"model", "gpu", "system", "network"})  # Kinds of calculator inputs.


class FigureError(AuthoringError):
    """A figure cannot be computed."""


@functools.lru_cache(maxsize=1024)  # of about 17 kB each
def _run_estimate_cached(name: str, inputs: tuple[tuple[str, str], ...]) -> Estimate:
    try:
        return registry.run_estimate(name, dict(inputs))
    except InvalidInputsError as error:
        problem = error.problems[0]
        field = input_specs(require_estimate_spec(name).inputs_type).get(problem.field)
        code = "E81" if field is None else "E80" if field.kind in CATALOGUED else "E84"
        raise FigureError(code, problem.message) from None
    except (ArithmeticError, ValueError, LookupError) as error:
        raise FigureError("E84", f"{name} cannot answer: {error}.") from None


def require_estimate_spec(name: str) -> registry.EstimateSpec:
    """Return the estimate called `name` (hyphens or underscores); raises FigureError."""
    entry = registry.find_estimate(name)
    if entry is None:
        names = [n if "-" in name else n.replace("-", "_") for n in registry.ESTIMATE_NAMES]
        raise FigureError(
            "E80", f"There is no estimate “{name}”.", write_hint_for_unknown_word(name, names)
        )
    return entry


def compute_estimate(estimate_name: str, inputs: Mapping[str, str]) -> Estimate:
    """Compute the estimate for typed inputs; raises FigureError."""
    entry = require_estimate_spec(estimate_name)
    fields = input_specs(entry.inputs_type)
    for field in inputs:
        if field not in fields:
            message = f"“{field}” is not an input of {entry.name}."
            raise FigureError("E81", message, write_hint_for_unknown_word(field, fields))
    return _run_estimate_cached(entry.name, tuple(sorted(inputs.items())))


def compute_estimate_figure(estimate_name: str, inputs: Mapping[str, str], output: str) -> Figure:
    """Return one figure of an estimate; raises FigureError."""
    entry = require_estimate_spec(estimate_name)
    estimate = compute_estimate(estimate_name, inputs)
    output_name = output.replace("-", "_")
    for figure in estimate.figures:
        if figure.name == output_name:
            return figure
    names = [f.name for f in estimate.figures]
    message = f"“{output}” is not an output of {entry.name}."
    raise FigureError("E81", message, write_hint_for_unknown_word(output, names))


def compute_output_value(estimate_name: str, inputs: Mapping[str, str], output_name: str) -> Value:
    """Return the value of one output with its unit; raises FigureError."""
    name, typed_inputs = estimate_name.replace("_", "-"), tuple(inputs.items())
    return _compute_output_value_cached(name, typed_inputs, output_name)


@functools.lru_cache(maxsize=16384)
def _compute_output_value_cached(
    name: str, inputs: tuple[tuple[str, str], ...], output: str
) -> Value:
    figure = compute_estimate_figure(name, dict(inputs), output)
    if figure.value is None:
        note = figure.note or "these inputs do not tell"
        raise FigureError("E84", f"{output} of {name} is unknown: {note}")
    if isinstance(figure.value, bool | str):
        return figure.value
    return Quantity(figure.value, figure.unit)


def calculator_url(name: str, inputs: Mapping[str, str], output: str = "") -> str:
    return estimate_view.calculator_url(
        name.replace("_", "-"), urlencode(dict(inputs)), anchor=output
    )


def _find_catalog_entry(scheme: str, name: str) -> object:
    parts = (catalog.find_accelerator, catalog.find_system, catalog.find_network_part)
    failure = ""
    for find in parts if scheme == "hw" else (find_model,):
        try:
            return find(name)
        except LookupError as error:
            failure = failure or str(error.args[0])
    raise FigureError("E80", failure)


def read_catalog_field(scheme: str, name: str, field: str) -> tuple[Value, object]:
    """Return a field of a catalog entry (`hw` or `model`), and the entry; raises FigureError."""
    entry = _find_catalog_entry(scheme, name)
    field_name = field.replace("-", "_")
    value = None if field_name.startswith("_") else getattr(entry, field_name, None)
    if value is None or callable(value):
        known_fields = [f for f in dir(entry) if not f.startswith("_")]
        if field_name in known_fields:
            raise FigureError("E81", f"The {field} of {name} is not known.")
        hint = write_hint_for_unknown_word(field, known_fields)
        raise FigureError("E81", f"{name} has no field “{field}”.", hint)
    if isinstance(value, bool | str):
        return value, entry
    if not isinstance(value, int | float):
        raise FigureError("E81", f"The {field} of {name} is not a number.")
    unit = part_values.UNITS.get(field_name, "") if scheme == "hw" else ""
    return Quantity(value, unit), entry


MOST_CHARACTERS = 500
_UNITS_LONGEST_FIRST = sorted((u for u in UNITS if u and u != "%"), key=len, reverse=True)
_UNIT_PATTERN = "(?:" + "|".join(map(re.escape, _UNITS_LONGEST_FIRST)) + ")"
_EXPRESSION_TOKEN = re.compile(
    r"""(?P<string>"[^"\n]*"|'[^'\n]*')"""
    rf"|\bin\s+(?P<to>{_UNIT_PATTERN}|%)(?![\w/])"
    rf"|(?<![\w.])(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>{_UNIT_PATTERN}|%)"
    r"(?![\w(/])"
)
_FUNCTION_BY_OPERATOR: dict[type, Callable[[Quantity, Quantity], Quantity]] = {
    ast.Add: lambda a, b: quantities.combine_in_common_unit(a, b, operator.add),
    ast.Sub: lambda a, b: quantities.combine_in_common_unit(a, b, operator.sub),
    ast.Mult: quantities.multiply_quantities,
    ast.Div: quantities.divide_quantities,
}
_log = logging.getLogger("headroom")
_ALLOWED_FUNCTIONS = ("round", "ceil", "floor", "min", "max")
_QUANTITY_FUNCTION = "quantity"


_NO_VALUE = "Leave that value of the parameter out, or change the expression."


class ExpressionError(AuthoringError):
    """An expression has no value."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A validated expression: its text, its tree, and the names and estimates it uses."""

    text: str
    tree: ast.expr
    names: frozenset[str]
    estimate_calls: tuple[ast.Call, ...]


# Spellings of operators from other notations, and the one used here.
_HINT_BY_PATTERN = {
    r"\s[x×·]\s": "Write * for times.",
    "[÷:]": "Write / for divided by.",
    r"\d%|%\s": "Write 0.15 for 15%.",
    r"\d,\d": "Write decimals with a point: 7.5.",
    r"^\s*=|\w\s*=\s*\w": "Write the calculation alone, without =.",
}


@functools.lru_cache(maxsize=4096)
def compile_expression(text: str) -> Expression:
    """Parse an expression and reject every construct that is not on the allowlist.

    Raises ExpressionError: E45 for what is not allowed, E44 for unknown functions.
    """
    if len(text) > MOST_CHARACTERS:
        raise ExpressionError("E45", "The expression is longer than 500 characters.")
    _reject_hyphenated_estimate_name(text)
    try:
        tree = ast.parse(_rewrite_quantities_as_calls(text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = "Write numbers, names, + - * / ( ) and calls such as round(x, 1)."
        for pattern, better_hint in _HINT_BY_PATTERN.items():
            hint = better_hint if re.search(pattern, text) else hint
        raise ExpressionError("E45", f"“{text}” is not an expression.", hint) from None
    used_names = _UsedNames(set(), [])
    _check_node_and_collect_used_names(tree, used_names)
    return Expression(text, tree, frozenset(used_names.names), tuple(used_names.estimate_calls))


def _reject_hyphenated_estimate_name(text: str) -> None:
    """Reject an estimate name with hyphens (E44): in an expression it is a subtraction."""
    for entry in registry.list_estimates():
        if "-" in entry.name and f"{entry.name}(" in text:
            hint = f"Write {entry.name.replace('-', '_')}."
            message = f"“{entry.name}” is a difference here, not the name of an estimate."
            raise ExpressionError("E44", message, hint)


def _rewrite_quantities_as_calls(text: str) -> str:
    def rewrite(match: re.Match[str]) -> str:
        if match["string"]:
            return match["string"]
        if match["to"]:
            return f'in "{match["to"]}"'
        return f'{_QUANTITY_FUNCTION}({match["number"]}, "{match["unit"]}")'

    return _EXPRESSION_TOKEN.sub(rewrite, text)


@dataclasses.dataclass(slots=True)
class _UsedNames:
    names: set[str]
    estimate_calls: list[ast.Call]


def _check_node_and_collect_used_names(node: ast.AST, used_names: _UsedNames) -> None:
    """Reject every node type that `_evaluate_node` does not handle."""
    match node:
        case ast.Name(id=name):
            used_names.names.add(name)
        case ast.Constant(value=value):
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ExpressionError("E45", f"“{value!r}” is not allowed here.")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            _check_node_and_collect_used_names(operand, used_names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FUNCTION_BY_OPERATOR:
            _check_node_and_collect_used_names(left, used_names)
            _check_node_and_collect_used_names(right, used_names)
        case ast.Compare(left=left, ops=[ast.In()], comparators=[unit]):
            _check_node_and_collect_used_names(left, used_names)
            _raise_if_unknown_unit(unit)
        case ast.Attribute(value=ast.Call(func=ast.Name()) as call):
            _check_estimate_call_and_collect_used_names(call, used_names)
        case ast.Call(func=ast.Name(id=name)):
            _check_function_call_and_collect_used_names(node, name, used_names)
        case _:
            _raise_unsupported_node(node)


def _raise_unsupported_node(node: ast.AST) -> None:
    node_source = ast.unparse(node) if isinstance(node, ast.expr) else "this"
    hint = "Allowed: numbers, + - * / ( ), round, ceil, floor, min, max, estimates."
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor | ast.Pow):
        base = ast.unparse(node.left)
        hint = f"There are no powers: write {base} * {base}, as often as it is meant."
    elif isinstance(node, ast.Tuple):
        hint = "Write decimals with a point: 7.5."
    elif isinstance(node, ast.Set):
        hint = "Write names without braces here; those are for the text."
    raise ExpressionError("E45", f"“{node_source[:60]}” is not allowed in an expression.", hint)


def _raise_if_unknown_unit(node: ast.expr) -> None:
    if not isinstance(node, ast.Constant):
        unit_source = ast.unparse(node)
        hint = quantities.suggest_closest_unit_or_empty(unit_source)
        hint = hint or "Write a unit that the guide lists under “Units”."
        raise ExpressionError("E42", f"“{unit_source}” is not a known unit.", hint)


def _check_estimate_call_and_collect_used_names(call: ast.Call, used_names: _UsedNames) -> None:
    name = function_name_or_empty(call)
    if call.args or any(k.arg is None for k in call.keywords):
        hint = f"Write {name}(input=value, …).output."
        raise ExpressionError("E45", f"The inputs of {name} have no names.", hint)
    try:
        require_estimate_spec(name)
    except FigureError as error:
        raise ExpressionError("E44", error.message, error.hint) from None
    used_names.estimate_calls.append(call)
    for keyword in call.keywords:
        _check_node_and_collect_used_names(keyword.value, used_names)


def _check_function_call_and_collect_used_names(
    node: ast.Call, name: str, used_names: _UsedNames
) -> None:
    if name not in _ALLOWED_FUNCTIONS and name != _QUANTITY_FUNCTION:
        if registry.find_estimate(name) is not None:
            hint = f"Write {name}(…).total or another of its outputs."
            raise ExpressionError("E45", f"The call of {name} names no output.", hint)
        hint = write_hint_for_unknown_word(name, _ALLOWED_FUNCTIONS)
        raise ExpressionError("E44", f"There is no function “{name}”.", hint)
    if node.keywords or not node.args:
        raise ExpressionError("E45", f"{name} takes plain values only.")
    for argument in node.args:
        _check_node_and_collect_used_names(argument, used_names)


def evaluate_expression(expression: Expression, value_by_name: Mapping[str, Value]) -> Value:
    """Evaluate an expression with values for its names.

    Raises ExpressionError: E44 unknown name, E42 units that do not fit, E47 not a number.
    """
    try:
        value = _evaluate_node(expression.tree, value_by_name)
        finite = not isinstance(value, Quantity) or math.isfinite(value.value)
    except UnitMismatchError as error:
        message = f"“{expression.text}” has no value: {error}."
        hint = "Give every number its unit, such as 55 g/L, and ask for one of its kind."
        raise ExpressionError("E42", message, hint) from None
    except FigureError as error:
        code = "E44" if error.code in {"E80", "E81"} else "E47"
        raise ExpressionError(code, error.message, error.hint) from None
    except (ArithmeticError, ValueError, RecursionError) as error:
        if isinstance(error, ExpressionError):
            raise
        message = f"“{expression.text}” has no value: {error}."
        raise ExpressionError("E47", message, _NO_VALUE) from None
    except Exception as error:  # An authoring error must never become a server error.
        _log.exception("the expression “%s” could not be evaluated", expression.text)
        message = f"“{expression.text}” has no value."
        raise ExpressionError("E47", message) from error
    if not finite:
        message = f"“{expression.text}” is not a finite number."
        raise ExpressionError("E47", message, _NO_VALUE)
    return value


def _evaluate_node(  # noqa: PLR0911 - one return per node type
    node: ast.AST, value_by_name: Mapping[str, Value]
) -> Value:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=int() | float() as number):
            return Quantity(quantities.convert_long_integer_to_float(number))
        case ast.Name(id=name):
            if name not in value_by_name:
                hint = write_hint_for_unknown_word(name, value_by_name)
                raise ExpressionError("E44", f"“{name}” is not defined.", hint)
            return value_by_name[name]
        case ast.UnaryOp(op=op, operand=operand):
            result = _evaluate_as_quantity(operand, value_by_name)
            sign = -1 if isinstance(op, ast.USub) else 1
            return dataclasses.replace(result, value=sign * result.value)
        case ast.BinOp(left=left, op=op, right=right):
            operation = _FUNCTION_BY_OPERATOR[type(op)]
            result = operation(
                _evaluate_as_quantity(left, value_by_name),
                _evaluate_as_quantity(right, value_by_name),
            )
            return dataclasses.replace(
                result, value=quantities.convert_long_integer_to_float(result.value)
            )
        case ast.Compare(left=left, comparators=[ast.Constant(value=str(unit))]):
            return quantities.convert_quantity(_evaluate_as_quantity(left, value_by_name), unit)
        case ast.Attribute(value=ast.Call() as call, attr=output):
            return compute_output_value(
                function_name_or_empty(call),
                evaluate_call_inputs_as_form_text(call, value_by_name),
                output,
            )
        case ast.Call():
            return _evaluate_function_call(node, value_by_name)
    raise ExpressionError("E45", "This is not allowed in an expression.")


def function_name_or_empty(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _evaluate_as_quantity(node: ast.AST, value_by_name: Mapping[str, Value]) -> Quantity:
    value = _evaluate_node(node, value_by_name)
    if isinstance(value, str):
        parsed = quantities.parse_parameter_value(value)
        if parsed is not None:
            return parsed
        raise ExpressionError("E45", f"“{value}” is a word; a number is needed.")
    return Quantity(int(value)) if isinstance(value, bool) else value


def evaluate_call_inputs_as_form_text(
    call: ast.Call, value_by_name: Mapping[str, Value]
) -> dict[str, str]:
    return {
        k.arg: format_as_form_input(_evaluate_node(k.value, value_by_name))
        for k in call.keywords
        if k.arg is not None
    }


def format_as_form_input(value: Value) -> str:
    """Format a value as a person would type it into a calculator form."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    number = repr(value.value).removesuffix(".0")
    return f"{number} {value.unit}" if value.unit else number


def _evaluate_function_call(node: ast.Call, value_by_name: Mapping[str, Value]) -> Quantity:
    name = function_name_or_empty(node)
    if name == _QUANTITY_FUNCTION:
        number, unit = (_evaluate_node(a, value_by_name) for a in node.args)
        return Quantity(number.value if isinstance(number, Quantity) else 0.0, str(unit))
    values = [_evaluate_as_quantity(a, value_by_name) for a in node.args]
    if name in {"min", "max"}:
        choose: Callable[[float, float], float] = min if name == "min" else max
        return functools.reduce(
            lambda a, b: quantities.combine_in_common_unit(a, b, choose), values
        )
    return _evaluate_rounding_function(name, values)


def _evaluate_rounding_function(name: str, values: list[Quantity]) -> Quantity:
    first, *rest = values
    if name == "round" and len(rest) <= 1:
        digits = int(rest[0].value) if rest else 0
        rounded = round(first.value, max(-15, min(15, digits)))
        return dataclasses.replace(first, value=rounded if rest else int(rounded))
    if rest:
        raise ExpressionError("E45", f"{name} takes one value.")
    whole = math.ceil(first.value) if name == "ceil" else math.floor(first.value)
    return dataclasses.replace(first, value=whole)


T = TypeVar("T")
PLACEHOLDER_PATTERN = re.compile(r"\{([A-Za-z_]\w*)(?::([^{}\s]{0,8}))?\}")
"""A name in the text of a question, and perhaps its number format, to be replaced by a value."""
_MALFORMED_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)(?:[^{}\s]*\}| *[-+*/] *[^{}]*\}|:[^{}\s]*)?")
# In math, braces group: \text{batch} is not a placeholder.
_IN_MATH = re.compile(r"(\\[A-Za-z]+)?\{([A-Za-z_]\w*)(?::([^{}\s]{0,8}))?\}")
_ALLOWED_FORMAT_SPECS = [
    "",
    ",",
    ".0f",
    ".1f",
    ".2f",
    ".3f",
    ".1g",
    ".2g",
    ".3g",
    ".4g",
    ".5g",
    ",d",
]
# A private-use character replaces a placeholder while math is converted.
_FIRST_PLACEHOLDER_CODE_POINT = 0xE100


def find_malformed_placeholders(text: str, known_names: Collection[str]) -> list[str]:
    """Return malformed placeholders that start with a known name.

    >>> find_malformed_placeholders("{size:.3g GB and {size + 1} of {size}", {"size"})
    ['{size:.3g', '{size + 1}']
    """
    return [
        match[0]
        for match in _MALFORMED_PLACEHOLDER.finditer(text)
        if match[1] in known_names and not PLACEHOLDER_PATTERN.fullmatch(match[0])
    ]


def protect_placeholders_in_math(tokens: Sequence[Token], parameters: QuestionParameters) -> None:
    """Replace placeholders in math with private-use characters.

    `restore_placeholders_in_math` puts them back.
    """
    placeholder_names = _placeholder_names(parameters)

    def protect(match: re.Match[str]) -> str:
        spec = match[3] or ""
        if match[1] or match[2] not in placeholder_names or spec not in _ALLOWED_FORMAT_SPECS:
            return match[0]
        code = placeholder_names.index(match[2]) * len(
            _ALLOWED_FORMAT_SPECS
        ) + _ALLOWED_FORMAT_SPECS.index(spec)
        return chr(_FIRST_PLACEHOLDER_CODE_POINT + code)

    for token in tokens:
        for child in (token, *(token.children or [])):
            if child.type.startswith("math"):
                child.content = _IN_MATH.sub(protect, child.content)


def _placeholder_names(parameters: QuestionParameters) -> list[str]:
    return [
        *parameters.possible_values_by_name,
        *(name for name, _ in parameters.named_expressions),
    ]


def restore_placeholders_in_math(question: T, parameters: QuestionParameters) -> T:
    """Return the question with placeholders put back into its math."""
    placeholder_names = _placeholder_names(parameters)

    def back(match: re.Match[str]) -> str:
        name, spec = divmod(
            ord(match[1]) - _FIRST_PLACEHOLDER_CODE_POINT, len(_ALLOWED_FORMAT_SPECS)
        )
        if name >= len(placeholder_names):
            return ""
        placeholder = f"{placeholder_names[name]}:{_ALLOWED_FORMAT_SPECS[spec]}".rstrip(":")
        return f"<mn>{{{placeholder}}}</mn>"

    def fix(text: RichText) -> RichText:
        html = re.sub("<mi>([\ue100-\uf8ff])</mi>", back, text.html)
        plain = re.sub("([\ue100-\uf8ff])", lambda m: re.sub("</?mn>", "", back(m)), text.plain)
        return RichText(html, plain)

    changed: T = replace_rich_texts_within(question, fix)
    return changed


def replace_rich_texts_within(value: Any, change_text: Callable[[RichText], RichText]) -> Any:
    """Return a value with `change_text` applied to every text in it; itself if none changes."""
    if isinstance(value, RichText):
        return change_text(value) if value.html or value.plain else value
    if isinstance(value, tuple):
        items = tuple(replace_rich_texts_within(v, change_text) for v in value)
        return items if any(map(operator.is_not, items, value)) else value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        changed = {
            name: changed_part
            for name, part in parts
            if not isinstance(part, str | int | float)
            and (changed_part := replace_rich_texts_within(part, change_text)) is not part
        }
        return dataclasses.replace(value, **changed) if changed else value
    return value


def format_without_unit(value: Value, spec: str = "") -> str:
    """Format a value without its unit; raises ValueError for an invalid format."""
    if isinstance(value, Quantity):
        return format_with_spec(value.value, spec)
    if isinstance(value, bool):
        return format_value(value)
    return value


def fill_placeholders(template: str, value_by_name: Mapping[str, Value]) -> str:
    """Fill the placeholders of a template; unknown ones stay unchanged."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in value_by_name:
            return match[0]
        try:
            return format_without_unit(value_by_name[match[1]], match[2] or "")
        except (ValueError, OverflowError):
            return match[0]

    return PLACEHOLDER_PATTERN.sub(replace, template)


def fill_placeholders_of_rich_text(text: RichText, value_by_name: Mapping[str, Value]) -> RichText:
    """Fill both forms of a text; text values are escaped in the HTML."""
    if "{" not in text.html:
        return text
    escaped: dict[str, Value] = {
        n: escapeHtml(v) if isinstance(v, str) else v for n, v in value_by_name.items()
    }
    return RichText(
        fill_placeholders(text.html, escaped), fill_placeholders(text.plain, value_by_name)
    )
