"""Moodle's calculated questions: data sets become `params`, formulas become `let`."""

import ast
import copy
import dataclasses
import math
import re
from xml.etree import ElementTree as ET

from app.import_export.items import (
    ComputedParameter,
    Item,
    ItemSkippedError,
    NamedExpression,
    format_significant_digits,
)
from app.import_export.text_conversion import PicturesAndLosses, parse_typed_number
from app.markup.quantities import format_with_spec

CALCULATED = frozenset({"calculated", "calculatedsimple", "calculatedmulti"})
_MOST_COMBINATIONS = 200  # as many as the course check tries
_INLINE_FORMULA = re.compile(r"\{=((?:[^{}]|\{[^{}]*\})*)\}")
_WILDCARD_NAME = re.compile(r"\{([^{}\s=:][^{}=:]*)\}")
_DEFAULT_NUMBER_FORMAT = ".9g"
_NO_TEXTS = frozenset({"name", "status", "minimum", "maximum", "decimals", "distribution", "tag"})
_LARGEST_POWER = 6
_SUPPORTED_FUNCTIONS = frozenset({"round", "ceil", "floor", "min", "max"})
_RELATIVE_TOLERANCE_TYPE, _GEOMETRIC_TOLERANCE_TYPE = "1", "3"


@dataclasses.dataclass(slots=True)
class CalculatedParameters:
    """The parameters of a question with their values, and the expressions that its texts need."""

    values_by_parameter: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    name_by_wildcard: dict[str, str] = dataclasses.field(default_factory=dict)
    expression_by_name: dict[str, str] = dataclasses.field(default_factory=dict)

    def name_and_add_formula(self, formula: str, name_prefix: str) -> str:
        """Return the name in `let` of a formula; raises ItemSkippedError."""
        text = translate_formula(formula, self.name_by_wildcard)
        for name, known_formula in self.expression_by_name.items():
            if known_formula == text:
                return name
        numbers = (f"{name_prefix}_{n}" for n in range(1, 1_000))
        name = next(
            n
            for n in numbers
            if n not in self.expression_by_name and n not in self.values_by_parameter
        )
        self.expression_by_name[name] = text
        return name

    def insert_placeholders_into_text(self, text: str, number_format: str) -> str:
        """Return a text with our names in its wildcards and formulas."""
        text = _INLINE_FORMULA.sub(
            lambda m: f"{{{self.name_and_add_formula(m[1], 'value')}:{number_format}}}", text
        )
        return _WILDCARD_NAME.sub(self._make_placeholder, text)

    def _make_placeholder(self, match: re.Match[str]) -> str:
        name = self.name_by_wildcard.get(match[1].strip())
        if name is None:  # no placeholder has spaces
            return f"{{ {match[1].strip()} }}"
        is_exact = all(
            math.isclose(
                float(format_with_spec(float(v)).replace(",", "").replace("−", "-")), float(v)
            )
            for v in self.values_by_parameter[name]
        )
        return f"{{{name}}}" if is_exact else f"{{{name}:{_DEFAULT_NUMBER_FORMAT}}}"


def read_calculated_question(question: ET.Element) -> tuple[ET.Element, CalculatedParameters]:
    """Return a copy of a calculated question with our placeholders, and its parameters.

    The answers of a numeric question are placeholders for names in `let`. Raises ItemSkippedError.
    """
    node = copy.deepcopy(question)
    parameters = _read_datasets(node)
    is_multiple_choice = node.get("type") == "calculatedmulti"
    for answer in node.findall("answer"):
        text = answer.find("text")
        formula = (text.text or "").strip() if text is not None else ""
        if text is None or is_multiple_choice or formula in {"", "*"}:
            continue
        if _WILDCARD_NAME.fullmatch(formula) and len(parameters.values_by_parameter) > 1:
            reason = f"its answer {formula} is a data set of its own, which goes with the others"
            raise ItemSkippedError(f"{reason}: write it as a formula")
        text.text = (
            f"{{{parameters.name_and_add_formula(formula, 'answer')}:{_DEFAULT_NUMBER_FORMAT}}}"
        )
    tags_without_texts = _NO_TEXTS if is_multiple_choice else _NO_TEXTS | {"answer"}
    for parent in node.iter():
        text = parent.find("text")
        if text is not None and parent.tag not in tags_without_texts:
            spec = (
                _find_answer_number_format(parent)
                if parent.tag == "answer"
                else _DEFAULT_NUMBER_FORMAT
            )
            text.text = parameters.insert_placeholders_into_text(text.text or "", spec)
    return node, parameters


def _find_answer_number_format(answer: ET.Element) -> str:
    """Return the format of a choice: decimals, or significant digits."""
    length = answer.findtext("correctanswerlength", "2").strip()
    format_letter = "g" if answer.findtext("correctanswerformat", "1").strip() == "2" else "f"
    return f".{length}{format_letter}" if re.fullmatch(r"\d", length) else _DEFAULT_NUMBER_FORMAT


def _read_datasets(node: ET.Element) -> CalculatedParameters:
    parameters = CalculatedParameters()
    params = parameters.values_by_parameter
    for dataset in node.findall("dataset_definitions/dataset_definition"):
        wildcard = dataset.findtext("name/text", "").strip()
        name = re.sub(r"\W", "_", wildcard, flags=re.ASCII)
        name = name if re.match(r"[A-Za-z]", name) else f"p_{name}"
        while name in params or name in _SUPPORTED_FUNCTIONS:
            name += "_"
        values = (v.text or "" for v in dataset.findall("dataset_items/dataset_item/value"))
        parameters.name_by_wildcard[wildcard] = name
        params[name] = [
            *dict.fromkeys(format_significant_digits(parse_typed_number(v)) for v in values)
        ]
        if not params[name]:
            raise ItemSkippedError(f"the data set of its wildcard {{{wildcard}}} has no items")
    return parameters


def translate_formula(formula: str, name_by_wildcard: dict[str, str]) -> str:
    """Return a formula of Moodle as an expression of `let`; raises ItemSkippedError.

    >>> translate_formula("2*pow({a b},2) + pi()", {"a b": "a_b"})
    '2 * (a_b * a_b) + 3.14159265358979'
    """

    def name(match: re.Match[str]) -> str:
        if match[1].strip() not in name_by_wildcard:
            raise ItemSkippedError(f"its wildcard {match[0]} has no data set")
        return f" {name_by_wildcard[match[1].strip()]} "

    text = _WILDCARD_NAME.sub(name, formula.strip())
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return ast.unparse(_FormulaTranslator().visit(tree))
    except ItemSkippedError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ItemSkippedError(f"its formula “{formula[:60]}” cannot be read") from None


class _FormulaTranslator(ast.NodeTransformer):
    """Replaces what Moodle's formulas have and our expressions lack."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return (
            _expand_power_to_product(node.left, node.right)
            if isinstance(node.op, ast.Pow)
            else node
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        match name, node.args:
            case "pi", []:
                return ast.Constant(3.14159265358979)
            case "pow", [base, exponent]:
                return _expand_power_to_product(base, exponent)
            case "abs", [value]:
                minus = ast.UnaryOp(ast.USub(), value)
                return ast.Call(ast.Name("max"), [value, minus], [])
        if name not in _SUPPORTED_FUNCTIONS:
            raise ItemSkippedError(
                f"its formula uses {name or 'a function'}, which is unknown here"
            )
        return node


def _expand_power_to_product(base: ast.expr, exponent: ast.expr) -> ast.expr:
    count = exponent.value if isinstance(exponent, ast.Constant) else None
    if not isinstance(count, int) or not 1 <= count <= _LARGEST_POWER:
        raise ItemSkippedError("its formula has a power that is no whole number from 1 to 6")
    product = base
    for _ in range(count - 1):
        product = ast.BinOp(product, ast.Mult(), base)
    return product


def format_unit_and_tolerance(answer: ET.Element, unit: str, losses: PicturesAndLosses) -> str:
    """Return the text after the number of an answer: its unit and its tolerance."""
    tolerance = abs(parse_typed_number(answer.findtext("tolerance", "").strip() or "0"))
    tolerance_type = answer.findtext("tolerancetype", _RELATIVE_TOLERANCE_TYPE).strip()
    if tolerance_type == _GEOMETRIC_TOLERANCE_TYPE:
        losses.add_loss("its geometric tolerance counts as a relative one")
    tolerance_text = format_significant_digits(tolerance)
    if tolerance_type in {_RELATIVE_TOLERANCE_TYPE, _GEOMETRIC_TOLERANCE_TYPE}:
        tolerance_text = f"{format_significant_digits(100 * tolerance)}%"
    return " ".join(filter(None, (unit, f"± {tolerance_text}" if tolerance else "")))


def add_used_parameters_and_expressions(
    item: Item, parameters: CalculatedParameters, losses: PicturesAndLosses
) -> Item:
    """Return the item with the parameters that it names, and all expressions."""
    texts = [
        item.stem,
        item.explanation,
        item.mistake,
        *item.hints,
        *parameters.expression_by_name.values(),
    ]
    texts += [text for option in item.options for text in (option.text, option.feedback)]
    used_names = set(re.findall(r"\w+", " ".join(texts)))
    params = {
        name: values
        for name, values in parameters.values_by_parameter.items()
        if name in used_names
    }
    if not params:
        raise ItemSkippedError("it uses none of its data sets")
    longest_count = max(map(len, params.values()))
    while math.prod(map(len, params.values())) > _MOST_COMBINATIONS:
        longest = max(params, key=lambda name: len(params[name]))
        params[longest] = params[longest][:-1]
    if len(params) > 1:
        losses.add_loss("the values of its wildcards are drawn independently of each other")
    if (value_count := max(map(len, params.values()))) < longest_count:
        losses.add_loss(
            f"of up to {longest_count} values of a wildcard the first {value_count} are drawn"
        )
    return dataclasses.replace(
        item,
        params=tuple(ComputedParameter(name, tuple(values)) for name, values in params.items()),
        lets=tuple(NamedExpression(*named) for named in parameters.expression_by_name.items()),
    )
