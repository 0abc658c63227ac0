"""`params` and `let` of a computed question."""

import math
import re

from app.content.identity import did_you_mean
from app.content.limits import MOST_PARAMETERS
from app.content.model import ComputedParameters
from app.content.numbers.expressions import ExpressionError, compile_expression
from app.content.source_file import SourceFile
from app.content.strict_yaml import Node, YamlList, YamlMapping, YamlText
from app.questions.written import ItemComment

NAME = re.compile(r"^[a-z_][a-z0-9_]*$", re.IGNORECASE)
_RANGE = re.compile(
    r"^(?P<low>-?[\d_.]*\d)\s*\.\.\s*(?P<high>-?[\d_.]*\d)"
    r"(?:\s+step\s+(?P<step>[\d_.]*\d))?$"
)
# “100 to 120” in any language, or with a dash.
_SPAN = re.compile(
    r"^(?P<low>\d[\d_]*(?:\.\d+)?)\s*(?:[–—-]|…|[^\W\d]{1,5}\s)\s*"
    r"(?P<high>\d[\d_]*(?:\.\d+)?)$"
)
_NUMBER = re.compile(r"^-?\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?$")
_MOST_VALUES = 10_000


def read_computed(comment: ItemComment, sheet: SourceFile) -> ComputedParameters | None:
    """The numbers an item draws, or None when it draws none."""
    values = comment.fields.values
    if "params" not in values and "let" not in values:
        return None
    params: dict[str, tuple[str | float, ...]] = {}
    for name, node in _mapping(values.get("params"), "params", sheet).items():
        _check_name(name, node, sheet)
        params[name] = _values(name, node, sheet)
    lets: list[tuple[str, str]] = []
    named: list[str] = []
    for name, node in _mapping(values.get("let"), "let", sheet).items():
        _check_name(name, node, sheet)
        if name in params:
            message = f"“{name}” is a parameter already."
            sheet.report("E11", node.line, node.column, message, "Use another name.")
        known = {*params, *named}  # what is wrong in itself is told once
        named.append(name)
        text = _expression(node, known, sheet)
        if text:
            lets.append((name, text))
    return ComputedParameters(params, tuple(lets))


def _mapping(node: Node | None, what: str, sheet: SourceFile) -> dict[str, Node]:
    if isinstance(node, YamlMapping):
        if len(node.values) > MOST_PARAMETERS:
            message = f"“{what}” has {len(node.values)} names."
            hint = f"Use at most {MOST_PARAMETERS}."
            sheet.report("E88", node.line, node.column, message, hint)
            return {}
        return node.values
    if node is not None:
        hint = f"Write {what}: and below it, indented, “name: value”."
        message = f"“{what}” is not a list of names."
        sheet.report("E10", node.line, node.column, message, hint)
    return {}


def _check_name(name: str, node: Node, sheet: SourceFile) -> None:
    if not NAME.match(name):
        hint = "Use letters, digits and underscores."
        message = f"“{name}” cannot be used as a name in expressions."
        sheet.report("E45", node.line, node.column, message, hint)


def _values(name: str, node: Node, sheet: SourceFile) -> tuple[str | float, ...]:
    if slip := _slip(name, node):
        sheet.report(slip[0], node.line, node.column, *slip[1:])
        return (0,)
    found: tuple[str | float, ...] = ()
    if isinstance(node, YamlList):
        found = tuple(value_of(n.text) for n in node.items if isinstance(n, YamlText))
    elif isinstance(node, YamlText) and ".." in node.text:
        found = _range(name, node, sheet)
    elif isinstance(node, YamlText):
        found = (value_of(node.text),)
    large = [v for v in found if not isinstance(v, str) and not math.isfinite(v)]
    if large:
        message = f"A value of the parameter “{name}” is too large to compute with."
        sheet.report("E45", node.line, node.column, message, "Write less than 1e308.")
        return (0,)
    if not found:
        hint = "Write a list [1, 8, 32] or a range 2048..8192 step 2048."
        message = f"The parameter “{name}” has no values."
        sheet.report("E45", node.line, node.column, message, hint)
    return found or (0,)


def _slip(name: str, node: Node) -> tuple[str, str, str] | None:
    """A list or a range that is written otherwise: code, message and hint."""
    if isinstance(node, YamlList):
        words = [n.text.strip() for n in node.items if isinstance(n, YamlText)]
        word = next(filter(_RANGE.match, words), "")
        message = f"“{word}” is a word in this list, not a range."
        hint = f"Write {name}: {word}, without brackets."
        return ("E47", message, hint) if word else None
    text = node.text.strip() if isinstance(node, YamlText) else ""
    shown = text[:40]
    if ".." in text and not _RANGE.match(text):
        hint = "Write 1..8, or 2048..8192 step 2048. Values with units make a list: "
        return "E45", f"“{shown}” is not a range of numbers.", f"{hint}[2 mL, 3 mL]."
    if ".." not in text and "," in text:
        message = f"“{shown}” is one word, not a list."
        return "E45", message, f"Write {name}: [{shown}]"
    if span := _SPAN.match(text):
        hint = f"Write {name}: {span['low']}..{span['high']}"
        return "E47", f"“{shown}” is a word, not a range.", hint
    return None


def value_of(text: str) -> str | float:
    """A number when the whole text is one, else the word itself."""
    if not _NUMBER.match(text.strip()):
        return text.strip()
    number = float(text)
    whole = number == int(number) if abs(number) < 1e15 else False
    return int(number) if whole else number


def _range(name: str, node: YamlText, sheet: SourceFile) -> tuple[float, ...]:
    match = _RANGE.match(node.text.strip())
    if match is None:
        return ()
    try:
        low, high = float(match["low"]), float(match["high"])
        step = float(match["step"]) if match["step"] else 1.0
    except ValueError:
        return ()
    if not all(map(math.isfinite, (low, high, step))):
        return (math.inf,)
    if step <= 0 or high < low or (high - low) / step >= _MOST_VALUES:
        message = f"The range of “{name}” is empty or has over 10,000 values."
        hint = "Write the least value first: 1..8, or 2048..8192 step 2048."
        sheet.report("E45", node.line, node.column, message, hint)
        return (0,)
    places = max(len((match[k] or "").partition(".")[2]) for k in ("low", "high", "step"))
    count = int((high - low) / step + 1e-9) + 1
    values = (round(low + step * i, places) for i in range(count))
    return tuple(int(v) if v == int(v) else v for v in values)


def _expression(node: Node, known: set[str], sheet: SourceFile) -> str:
    if not isinstance(node, YamlText):
        message = "An expression has to be written as text."
        sheet.report("E45", node.line, node.column, message)
        return ""
    try:
        compiled = compile_expression(node.text)
    except ExpressionError as error:
        sheet.report(error.code, node.line, node.column, error.message, error.hint)
        return ""
    unknown = sorted(compiled.names - known)
    for name in unknown:
        hint = did_you_mean(name, known)
        message = f"“{name}” is neither a parameter nor defined above."
        sheet.report("E44", node.line, node.column, message, hint)
    return "" if unknown else node.text
