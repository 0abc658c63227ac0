"""YAML in which every scalar is text; quotes that authors left out are added first."""

import dataclasses
import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import yaml

from app.markup.problems import ProblemText, TextPosition
from app.markup.text import shorten_with_ellipsis

Report = Callable[
    [str, int, int, str, str], None
]  # The arguments of a report: code, line, column, message, hint.

_BASE_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# A line that YAML reads as a key and a text, whatever the other lines contain.
_PLAIN_LINE = re.compile(r"([a-z]+): +([A-Za-z0-9][A-Za-z0-9 ,.()/_'-]*)")
_LINE_WITHOUT_COLON = re.compile(
    r"(?P<key>[a-z]+)(?: *= *| +|:|:?[\u00a0\u202f\uff1a]\s*)(?P<value>[\w\"'\[{][^:]*)"
)
_VALUE_WITH_COLON = re.compile(r"""(?P<key>[a-z]+): +(?P<value>[^\s"'\[{|>][^"#]*: [^"#]*)""")
_VALUE_WITH_YAML_SIGN = re.compile(
    r"""(?P<head> *(?:- +)?(?P<key>[\w-]+): +)(?P<value>[&*!][^\s"'\[{][^"]*?) *"""
)
_VALUE_WITH_PLACEHOLDER = re.compile(r"(?P<head> *[\w-]+: +)(?P<value>\{\w+\}[^']*?) *")
_VALUE_CUT_BY_COMMENT = re.compile(
    r"(?P<head> *(?P<key>title|summary): +)(?P<value>[^\s\"'#].*?[ \t]#.*?) *"
)
_SENTENCE_WITH_COLON = re.compile(
    r"(?P<head> *(?:title|summary|alt): +)(?P<value>[^\s\"'\[\]{}|>&*!%@`#,-].*?:(?:[ \t].*?)?) *"
)
_SENTENCE_KEYS = frozenset({"title", "summary"})  # Keys whose values are sentences.
_MOST_CHARACTERS = 20_000
_MOST_BRACKETS = 200
_MOST_NESTED = 40
# Only a line with a large indent or many brackets can be deeply nested.
_DEEP_INDENT = re.compile(rf"^[ \t?:-]{{{_MOST_NESTED}}}", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class YamlText:
    text: str
    line: int
    column: int


@dataclasses.dataclass(frozen=True, slots=True)
class YamlList:
    items: "tuple[Node, ...]"
    line: int
    column: int


@dataclasses.dataclass(frozen=True, slots=True)
class YamlMapping:
    """Keys with their values; `keys` has the position of each key."""

    values: "dict[str, Node]"
    keys: dict[str, YamlText]
    line: int
    column: int


Node = YamlText | YamlList | YamlMapping


def parse_mapping(
    text: str, report: Report, line: int = 1, column: int = 1, known_keys: Collection[str] = ()
) -> YamlMapping:
    """Parse a mapping that begins at (line, column) of its file.

    Invalid parts are reported and left out; the result is always a mapping. A sentence
    may contain a colon, unless one of the `known_keys` is before it: then a line break is likely missing.
    """
    plain = _parse_plain_lines_or_none(text, line, column)
    return plain or _parse_with_yaml_parser(
        _quote_sentences(text, known_keys), report, line, column
    )


def _quote_sentences(text: str, known_keys: Collection[str]) -> str:
    rows = text.split("\n")
    for number, row in enumerate(rows):
        match = _SENTENCE_WITH_COLON.fullmatch(row)
        is_continued = rows[number + 1 : number + 2] and rows[number + 1][:1] == " "
        if match is None or is_continued or " #" in row:
            continue
        if not any(re.search(rf"(?<!\S){key}:(?!\S)", match["value"]) for key in known_keys):
            quoted = match["value"].replace("'", "''")
            rows[number] = f"{match['head']}'{quoted}'"
    return "\n".join(rows)


def _parse_with_yaml_parser(text: str, report: Report, line: int, column: int) -> YamlMapping:
    empty = YamlMapping({}, {}, line, column)
    text = _quote_values_with_yaml_signs(text, report, line, column)
    if len(text) > _MOST_CHARACTERS or sum(map(text.count, "[{")) > _MOST_BRACKETS:
        report("E10", line, column, "This block is too long to be metadata.", "")
        return empty
    try:
        is_too_deep = _DEEP_INDENT.search(text) is not None and _nesting_depth(text) > _MOST_NESTED
        node = None if is_too_deep else yaml.compose(text, Loader=_TextLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if not _report_missing_or_unquoted_colon(text, report, line, column):
            _report_yaml_error(error, text, report, line, column)
        return empty
    if is_too_deep:
        report("E88", line, column, *_TOO_DEEP)
    if node is None:
        return empty
    value = _NodeConverter(report, line, column).convert(node)
    if isinstance(value, YamlMapping):
        return value
    if not _report_missing_or_unquoted_colon(text, report, line, column):
        message = "This is not a list of “key: value” lines."
        report("E10", line, column, message, "Write “key: value”, one to a line.")
    return empty


def _quote_values_with_yaml_signs(text: str, report: Report, line: int, column: int) -> str:
    """Quote values that YAML would read as references, tags or comments, and report the first.

    Only the sign is removed, so that the rest is still checked. A value that begins
    with a placeholder such as {name} is quoted too: a mapping would contain a colon.
    """
    rows = text.split("\n")
    is_reported = False
    for number, row in enumerate(rows):
        if match := _VALUE_WITH_PLACEHOLDER.fullmatch(row):
            rows[number] = f"{match['head']}'{match['value']}'"
        if match := _VALUE_CUT_BY_COMMENT.fullmatch(row):
            suggestion = match["value"].replace('"', "'")
            sign_column = row.index("#", match.start("value")) + (1 if number else column)
            message = "“#” begins a comment here: the rest of the line is not read."
            hint = f'Write {match["key"]}: "{shorten_with_ellipsis(suggestion)}"'
            report("E10", line + number, sign_column, message, hint)
            rows[number] = f'{match["head"]}"{suggestion}"'
        match = _VALUE_WITH_YAML_SIGN.fullmatch(row)
        if match is None:
            continue
        value_without_sign = match["value"].lstrip("&*!").replace('"', "'")
        suggestion = f'"{match["value"]}"'
        if match["key"] not in _SENTENCE_KEYS:
            suggestion = value_without_sign = value_without_sign.split()[-1]
        if not is_reported:
            sign_column = match.start("value") + (1 if number else column)
            message = f"“{match['value'][:40]}” begins with a sign that YAML reads."
            hint = f"Write {match['key']}: {shorten_with_ellipsis(suggestion)}"
            report("E10", line + number, sign_column, message, hint)
        is_reported = True
        rows[number] = f'{match["head"]}"{value_without_sign}"'
    return "\n".join(rows)


_TOO_DEEP = ProblemText(
    f"The lists of this block are nested more than {_MOST_NESTED} deep.",
    "Write plain values, or lists of plain values.",
)


def _nesting_depth(text: str) -> int:
    """Return the nesting depth of the lists in a text, without building them."""
    depth = deepest = 0
    for event in yaml.parse(text, Loader=_TextLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest


def _parse_plain_lines_or_none(text: str, line: int, column: int) -> YamlMapping | None:
    """Parse a block of plain lines, as in most comments; None if it needs the YAML parser."""
    values: dict[str, Node] = {}
    keys: dict[str, YamlText] = {}
    if len(text) > _MOST_CHARACTERS:
        return None
    for number, row in enumerate(text.rstrip("\n").split("\n")):
        match = _PLAIN_LINE.fullmatch(row)
        if match is None or match[1] in values:
            return None
        first_column = 1 if number else column
        keys[match[1]] = YamlText(match[1], line + number, first_column)
        value = match[2].rstrip(" ")
        values[match[1]] = YamlText(value, line + number, first_column + match.start(2))
    return YamlMapping(values, keys, line, column)


_UNCLOSED_ERROR_STARTS = ("while scanning a quoted", "while parsing a flow")


class _TextLoader(_BASE_LOADER):  # type: ignore[misc]  # the C or the Python loader, depending on the system
    """YAML loader that reads every scalar as text."""

    def descend_resolver(self, *_: object) -> None:
        """Skip resolution by path."""

    def ascend_resolver(self) -> None:
        """Skip resolution by path."""

    def resolve(self, *_: object) -> str:
        """Resolve no type: every scalar is text."""
        return ""


def _report_missing_or_unquoted_colon(
    text: str, report: Report, first_line: int, first_column: int
) -> bool:
    """Report the first key without a colon, or without a space after it."""
    for number, row in enumerate(text.split("\n")):
        location = (first_line + number, 1 if number else first_column)
        if match := _LINE_WITHOUT_COLON.fullmatch(row):
            hint = f"Write {match['key']}: {shorten_with_ellipsis(match['value'])}"
            message = f"“{row.strip()[:60]}” has no colon and space behind its key."
            report("E10", *location, message, hint)
            return True
        if match := _VALUE_WITH_COLON.fullmatch(row):
            hint = f'Write {match["key"]}: "{shorten_with_ellipsis(match["value"])}", or each key on its own line.'
            message = f"“{match['value'][:60]}” holds a colon, and no quotes around it."
            report("E10", location[0], location[1] + match.start("value"), message, hint)
            return True
    return False


_KEY_VALUE_HINT = "Write “key: value”, one to a line; put quotes around a value that holds “: ”."
_TAB_HINT = "Begin the line with spaces in place of the tab, or with the key itself."


class YamlErrorText(NamedTuple):
    """What to say of an error that YAML's parser describes by this pattern."""

    pattern: re.Pattern[str]
    message: str
    remedy: str


_ERROR_TEXTS = (
    YamlErrorText(
        re.compile(r"did not find expected ',' or '([\]}])'"),
        r"A list is not closed, or a comma is missing: \1 is expected.",
        "Write the whole list on one line: key: [one, two].",
    ),
    YamlErrorText(
        re.compile("did not find expected .*"),
        "This line is indented otherwise than the lines beside it.",
        "Begin the names below one key with as many spaces, such as two.",
    ),
    YamlErrorText(
        re.compile("mapping values.*"),
        "This line holds a colon too many, or is indented too far.",
        _KEY_VALUE_HINT,
    ),
    YamlErrorText(
        re.compile("found unexpected end.*"),
        "A quotation mark is not closed.",
        "Write it at the end of the value.",
    ),
    YamlErrorText(
        re.compile(".*(?:cannot start any token|alias).*"),
        "A value begins with a sign that has a meaning of its own.",
        'Put the value into quotation marks: key: "…".',
    ),
)


def _describe_yaml_error(parser_message: str, line_text: str) -> ProblemText:
    """Translate the YAML parser's error in a row."""
    tab = line_text.lstrip(" ").startswith("\t")
    if tab or "tab character" in parser_message or "'\\t'" in parser_message:
        return ProblemText("This line begins with a tab.", _TAB_HINT)
    for text in _ERROR_TEXTS:
        if match := text.pattern.fullmatch(parser_message):
            return ProblemText(match.expand(text.message), text.remedy)
    return ProblemText(f"This cannot be read: {parser_message}.", _KEY_VALUE_HINT)


def _report_yaml_error(error: Exception, text: str, report: Report, line: int, column: int) -> None:
    marks = [getattr(error, f"{name}_mark", None) for name in ("problem", "context")]
    is_unclosed = str(getattr(error, "context", "")).startswith(_UNCLOSED_ERROR_STARTS)
    mark = marks[1] if is_unclosed and marks[1] else marks[0] or marks[1]
    parser_message = getattr(error, "problem", None) or "it is not YAML"
    row = text.split("\n")[mark.line : mark.line + 1] if mark else []
    message, remedy = _describe_yaml_error(parser_message, row[0] if row else "")
    at_line = line + (mark.line if mark else 0)
    at_column = 1 + mark.column if mark and mark.line else column
    report("E10", at_line, at_column, message, remedy)


class _NodeConverter:
    """Convert YAML nodes to values, without following a reference twice."""

    def __init__(self, report: Report, line: int, column: int) -> None:
        self.report = report
        self.line = line
        self.column = column
        self.seen: set[int] = set()

    def locate(self, node: yaml.Node) -> TextPosition:
        mark = node.start_mark
        column = mark.column + (self.column if mark.line == 0 else 1)
        return TextPosition(self.line + mark.line, column)

    def convert(self, node: yaml.Node) -> Node:
        location = self.locate(node)
        if id(node) in self.seen:
            self.report("E10", *location, "References (&, *) are not allowed here.", "")
            return YamlText("", *location)
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self.convert_mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return YamlList(tuple(self.convert(n) for n in node.value), *location)
        return YamlText(str(node.value), *location)

    def convert_mapping(self, node: yaml.MappingNode, location: TextPosition) -> YamlMapping:
        values: dict[str, Node] = {}
        keys: dict[str, YamlText] = {}
        for key_node, value_node in node.value:
            key_location = self.locate(key_node)
            name = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
            if not name:
                self.report("E10", *key_location, "A key must be a word.", "")
            elif name in values:
                first_line = keys[name].line
                message = f"“{name}” is written twice; it stands in line {first_line} too."
                self.report("E11", *key_location, message, "Keep one of them.")
            else:
                values[name] = self.convert(value_node)
                keys[name] = YamlText(name, *key_location)
        return YamlMapping(values, keys, *location)


def collect_texts_of_node(node: Node | None) -> tuple[YamlText, ...]:
    """Return the texts of a value that is one word or a list of words."""
    if isinstance(node, YamlText):
        return (node,) if node.text else ()
    if isinstance(node, YamlList):
        return tuple(n for n in node.items if isinstance(n, YamlText))
    return ()


def text_or_empty(node: Node | None) -> str:
    """Return the text of a value that is one word; empty for anything else."""
    return node.text if isinstance(node, YamlText) else ""
