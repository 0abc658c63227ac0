"""Parses front matter, item comments, and the `params` and `let` of computed questions."""

import dataclasses
import datetime as dt
import math
import re
from typing import Literal, NamedTuple

from app.content.misread_markup import report_markup_in_plain_value
from app.markup import lenient_yaml
from app.markup.expressions import ExpressionError, compile_expression
from app.markup.lenient_yaml import Node, YamlList, YamlMapping, YamlText
from app.markup.model import Level, NamedExpression, QuestionParameters, Status
from app.markup.problems import MOST_PARAMETERS, AuthoringError, ParseContext, TextPosition
from app.markup.text import LONGEST_ID, is_slug, shorten_with_ellipsis, write_hint_for_unknown_word
from app.questions.question_type import ItemComment
from app.questions.types import QUESTION_TYPES


class MetadataKey(NamedTuple):
    """A key of front matter or of an item's comment.

    It stands in the front matter of a `page`, of a `file` of items, or in an item's `comment`. Its
    value is one `text`, `words` (one or a list), or anything if that is empty.
    """

    name: str
    allowed_places: str
    value_type: Literal["text", "words", ""]


_METADATA_KEYS = (
    MetadataKey("q", "comment", "text"),
    MetadataKey("type", "comment", "text"),
    MetadataKey("title", "page file", "text"),
    MetadataKey("objective", "page file comment", "words"),
    MetadataKey("objectives", "page file comment", "words"),
    MetadataKey("source", "page file comment", "words"),
    MetadataKey("sources", "page file comment", "words"),
    MetadataKey("summary", "page", "text"),
    MetadataKey("reviewed", "page", "text"),
    MetadataKey("requires", "page", "words"),
    MetadataKey("essential", "page", "words"),
    MetadataKey("aliases", "page", "words"),
    MetadataKey("tags", "page file comment", "words"),
    MetadataKey("difficulty", "comment", "text"),
    MetadataKey("level", "page file comment", "text"),
    MetadataKey("status", "page file comment", "text"),
    MetadataKey("use", "comment", "text"),
    MetadataKey("partial", "comment", "text"),
    MetadataKey("params", "comment", ""),
    MetadataKey("let", "comment", ""),
    MetadataKey("reverse", "comment", "text"),
)
FRONT_KEYS = tuple(key.name for key in _METADATA_KEYS if "page" in key.allowed_places)
_ITEMS_FRONT_KEYS = tuple(key.name for key in _METADATA_KEYS if "file" in key.allowed_places)
_PAGE_ONLY_KEYS = tuple(key.name for key in _METADATA_KEYS if key.allowed_places == "page")
_COMMON_ITEM_KEYS = tuple(key.name for key in _METADATA_KEYS if "comment" in key.allowed_places)
ITEM_KEYS = (
    *_COMMON_ITEM_KEYS,
    *(key for kind in QUESTION_TYPES.values() for key in kind.comment_keys),
)
# Of the keys of question types, those with a single value, and the lists of words.
_SINGLE_VALUE_KEYS = {"shuffle", "case", "figure", "host", "start", "estimate"}
_SINGLE_VALUE_KEYS |= {key.name for key in _METADATA_KEYS if key.value_type == "text"}
_WORD_LIST_KEYS = {"choose", "goal"} | {
    key.name for key in _METADATA_KEYS if key.value_type == "words"
}
_HINT_BY_MISPLACED_KEY = {
    "answer": "Tick the right answer: - [x] text.",
    "explanation": "Write it as a box below the answers: > [!NOTE]",
    "feedback": "Write it below its option: two spaces, > and a sentence.",
    "hint": "Write it as a box below the answers: > [!TIP]",
    "id": "Write q: and the id.",
    **dict.fromkeys(
        ("tolerance", "margin", "precision"), "Write it behind the number: `50 g ± 2%`."
    ),
    **dict.fromkeys(("unit", "units"), "Write it behind the number: `50 g`."),
    **dict.fromkeys(
        ("points", "score", "weight", "marks", "grade"), "Delete it: all questions weigh the same."
    ),
    **dict.fromkeys(
        ("options", "choices", "answers", "correct", "right"), "Tick the right answer: - [x] text."
    ),
    **dict.fromkeys(
        ("time", "timelimit", "time-limit"), "Delete it: mock exams alone have a time."
    ),
    **dict.fromkeys(("topic", "category"), "Delete it: the folder of the file is its topic."),
    **dict.fromkeys(("kind", "form"), "Did you mean “type”?"),
    "title": "It stands in the front matter of a file.",
    **dict.fromkeys(
        _PAGE_ONLY_KEYS, "It stands in the front matter of concept.md, for the whole topic."
    ),
}
# Similarity of keys, which are short: “reviewed” must not suggest “reverse”.
_NEAR_NAME_CUTOFF = 0.7
ITEM_TYPES = (*QUESTION_TYPES, "card")
_SWITCH_KEYS = ("shuffle", "reverse", "case")
FileKind = Literal["page", "quiz", "cards"]
PartialCreditRule = Literal["", "off", "net", "each", "lcs"]
PARTIAL_CREDIT_RULES: dict[str, PartialCreditRule] = {
    p: p for p in ("", "off", "net", "each", "lcs")
}
_STATUS_BY_NAME: dict[str, Status] = {"draft": "draft", "review": "review", "live": "live"}
_FRONT_MATTER_BLOCK = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class FrontMatter:
    """The front matter of a file, which also provides defaults for its items.

    `essential_sections` is None if the page does not name its essential sections.
    """

    title: str = ""
    objectives: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    summary: str = ""
    reviewed_on: dt.date | None = None
    required_topics: tuple[str, ...] = ()
    essential_sections: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    level: Level = ""
    status: Status = "live"


@dataclasses.dataclass(frozen=True, slots=True)
class ItemMetadata:
    objectives: tuple[str, ...]
    sources: tuple[str, ...]
    tags: tuple[str, ...]
    level: Level
    status: Status
    use: Literal["", "exam"]


def parse_front_matter(
    parse_context: ParseContext, *, is_page: bool = True
) -> tuple[FrontMatter, str]:
    """Return the front matter of a file, and the text with its lines blanked.

    Files other than a page contain only items, so the keys of a topic are not
    allowed.
    """
    match = _FRONT_MATTER_BLOCK.match(parse_context.text)
    if match is None:
        if parse_context.text.startswith("---"):
            message = "The front matter is never closed."
            parse_context.report("E10", 1, 1, message, "Close it with a line of three hyphens.")
        return FrontMatter(), parse_context.text
    fields = lenient_yaml.parse_mapping(match[1], parse_context.report, 2, known_keys=FRONT_KEYS)
    _report_unknown_keys(fields, FRONT_KEYS if is_page else _ITEMS_FRONT_KEYS, parse_context)
    _drop_values_of_wrong_type(fields, parse_context)
    for key in ("title", "summary"):
        if isinstance(node := fields.values.get(key), YamlText):
            report_markup_in_plain_value(
                key, node.text, TextPosition(node.line, node.column), parse_context
            )
    blank = "\n" * match[0].count("\n")
    front = FrontMatter(
        lenient_yaml.text_or_empty(fields.values.get("title")),
        _read_references(fields, "objective", parse_context),
        _read_references(fields, "source", parse_context),
        lenient_yaml.text_or_empty(fields.values.get("summary")),
        _read_review_date(fields, parse_context),
        _read_required_topics(fields, parse_context),
        _read_text_list(fields, "essential") if "essential" in fields.values else None,
        _read_text_list(fields, "aliases"),
        _read_text_list(fields, "tags"),
        _read_level(fields, parse_context),
        _read_status(fields, parse_context) or "live",
    )
    return front, blank + parse_context.text[match.end() :]


def _report_unknown_keys(
    fields: YamlMapping, known_keys: tuple[str, ...], parse_context: ParseContext
) -> None:
    for name, key_position in fields.keys.items():
        if name not in known_keys:
            hint = write_hint_for_unknown_word(name, known_keys, _NEAR_NAME_CUTOFF)
            if known_keys is not ITEM_KEYS and name in ITEM_KEYS:
                hint = "It stands in the comment of a question: <!-- q: some-id"
            elif known_keys is ITEM_KEYS or name in FRONT_KEYS:
                hint = _HINT_BY_MISPLACED_KEY.get(name.lower(), hint)
            hint = hint or f"Known: {', '.join(dict.fromkeys(known_keys))}."
            message = f"“{name}” is not a key here."
            parse_context.report("E12", key_position.line, key_position.column, message, hint)


def _drop_values_of_wrong_type(fields: YamlMapping, parse_context: ParseContext) -> None:
    """Report E10: a list instead of a value, or a mapping instead of words. Drops the key."""
    for name, node in [*fields.values.items()]:
        message, hint = "", ""
        if name in _SINGLE_VALUE_KEYS and not isinstance(node, YamlText):
            message = f"“{name}” has one value, and no list."
            hint = f"Write {name}: and the value."
        elif name in _WORD_LIST_KEYS and not _is_text_or_text_list(node):
            message = f"“{name}” is a word or a list of words."
            hint = f"Write {name}: one, or {name}: [one, two]."
        if message:
            parse_context.report("E10", node.line, node.column, message, hint)
            del fields.values[name], fields.keys[name]


def _is_text_or_text_list(node: Node) -> bool:
    items = node.items if isinstance(node, YamlList) else (node,)
    return all(isinstance(item, YamlText) for item in items)


def _read_references(
    fields: YamlMapping, name: Literal["objective", "source"], parse_context: ParseContext
) -> tuple[str, ...]:
    """Return the names in `objective(s)` or `source(s)`, and record them as references."""
    mentions: list[str] = []
    for key in (name, f"{name}s"):
        node = fields.values.get(key)
        scalars = lenient_yaml.collect_texts_of_node(node)
        if node is not None and not any(scalar.text for scalar in scalars):
            message = f"“{key}” names nothing."
            hint = "Write at least one, or leave the line out to take the page's."
            parse_context.report("E13", node.line, node.column, message, hint)
            continue
        for scalar in scalars:
            parse_context.add_reference(name, scalar.text, scalar.line, scalar.column)
            mentions.append(scalar.text)
    return tuple(dict.fromkeys(mentions))


def _read_level(fields: YamlMapping, parse_context: ParseContext) -> Level:
    """Return the level; anything but `deeper` is reported."""
    return (
        "deeper" if _read_keyword_flag_or_report(fields, "level", "deeper", parse_context) else ""
    )


def _read_status(fields: YamlMapping, parse_context: ParseContext) -> Status | None:
    """Return the status, None without one. Reports an unknown value and treats it as draft."""
    node = fields.values.get("status")
    if node is None:
        return None
    status = _STATUS_BY_NAME.get(lenient_yaml.text_or_empty(node))
    if status is None:
        message = f"“{lenient_yaml.text_or_empty(node)[:20]}” is not a status."
        hint = "Write status: draft, review or live."
        parse_context.report("E13", node.line, node.column, message, hint)
    return status or "draft"


def _read_keyword_flag_or_report(
    fields: YamlMapping, key: str, keyword: str, parse_context: ParseContext
) -> bool:
    node = fields.values.get(key)
    if node is None or lenient_yaml.text_or_empty(node) == keyword:
        return node is not None
    message = f"“{lenient_yaml.text_or_empty(node)[:20]}” is not a value of “{key}”."
    hint = f"Write {key}: {keyword}, or leave it out."
    parse_context.report("E13", node.line, node.column, message, hint)
    return False


def _read_text_list(fields: YamlMapping, key: str) -> tuple[str, ...]:
    return tuple(w.text for w in lenient_yaml.collect_texts_of_node(fields.values.get(key)))


def _read_required_topics(fields: YamlMapping, parse_context: ParseContext) -> tuple[str, ...]:
    scalars = lenient_yaml.collect_texts_of_node(fields.values.get("requires"))
    for scalar in scalars:
        parse_context.add_reference("topic", scalar.text, scalar.line, scalar.column)
    return tuple(s.text for s in scalars)


def _read_review_date(fields: YamlMapping, parse_context: ParseContext) -> dt.date | None:
    node = fields.values.get("reviewed")
    if not isinstance(node, YamlText):
        return None
    try:
        day = dt.date.fromisoformat(node.text)
    except ValueError:
        message = f"“{node.text}” is not a date."
        parse_context.report("E13", node.line, node.column, message, "Write it as 2026-11-20.")
        return None
    parse_context.add_reference("day", node.text, node.line, node.column)
    return day


def read_item_metadata(
    comment: ItemComment,
    type_name: str,
    front_matter: FrontMatter,
    parse_context: ParseContext,
    *,
    is_page: bool,
) -> ItemMetadata:
    """Return the item's metadata from its comment, with defaults from the front matter.

    Reports E12, E13: keys that do not apply to this type or to a page.
    """
    fields = comment.fields
    _report_inapplicable_keys(comment, type_name, parse_context)
    is_question = is_page or type_name != "card"
    for_exam = is_question and _read_keyword_flag_or_report(fields, "use", "exam", parse_context)
    if is_page and for_exam:
        message = "A question in the text of a page cannot be kept for exams."
        parse_context.report("E13", *comment.field_location("use"), message, "Put it into quiz.md.")
    return ItemMetadata(
        _read_references(fields, "objective", parse_context) or front_matter.objectives,
        _read_references(fields, "source", parse_context) or front_matter.sources,
        _read_text_list(fields, "tags") or front_matter.tags,
        _read_level(fields, parse_context) or front_matter.level,
        _read_status(fields, parse_context) or front_matter.status,
        "exam" if for_exam else "",
    )


def parse_item_comment(comment_text: str, line: int, parse_context: ParseContext) -> ItemComment:
    """Parse `<!-- q: id …-->`. The id is empty if it is missing or malformed."""
    parse_context.current_item = ""
    start = comment_text.index("<!--") + 4
    inner, _, trailing_text = comment_text[start:].partition("-->")
    stripped = inner.lstrip(" \t")
    column = start + len(inner) - len(stripped) + 1
    if stripped.startswith("\n"):
        line, column, stripped = line + 1, 1, stripped[1:]
    id_match = re.match(r"q\s*:\s*([^\s#]+)", stripped)
    if id_match and is_slug(id_match[1]):
        parse_context.current_item = id_match[1]
    fields = lenient_yaml.parse_mapping(stripped, parse_context.report, line, column)
    _report_unknown_keys(fields, ITEM_KEYS, parse_context)
    _drop_values_of_wrong_type(fields, parse_context)
    _report_values_besides_yes_and_no(fields, parse_context)
    if trailing_text.strip():
        hint = "Begin the text after the comment on a line of its own."
        parse_context.report("E10", line, 1, "Text stands behind the end of the comment.", hint)
    item_id = _read_item_id(fields, parse_context, TextPosition(line, column))
    if not item_id:
        parse_context.record_broken_comment_id(comment_text, line)
    return ItemComment(item_id, fields, line, column)


def _report_values_besides_yes_and_no(fields: YamlMapping, parse_context: ParseContext) -> None:
    """Report E13: a value other than yes or no."""
    for key in _SWITCH_KEYS:
        node = fields.values.get(key)
        value = lenient_yaml.text_or_empty(node).lower()
        if node is not None and value not in {"yes", "no", "true", "false"}:
            message = f"“{value[:20]}” is not a value of “{key}”."
            hint = f"Write {key}: yes or {key}: no."
            parse_context.report("E13", node.line, node.column, message, hint)


def _report_inapplicable_keys(
    comment: ItemComment, type_name: str, parse_context: ParseContext
) -> None:
    """Report E12: a key of another type, which has no effect here."""
    applicable_keys = {*_ITEMS_FRONT_KEYS, "q", "type"} - {"title"}
    if type_name == "card":
        applicable_keys.add("reverse")
    else:
        applicable_keys |= {*_COMMON_ITEM_KEYS, *QUESTION_TYPES[type_name].comment_keys} - {
            "reverse"
        }
        applicable_keys -= (
            set() if QUESTION_TYPES[type_name].supports_partial_credit else {"partial"}
        )
    for name, key in comment.fields.keys.items():
        if name in ITEM_KEYS and name not in applicable_keys:
            message = f"“{name}” has no meaning for an item of the type “{type_name}”."
            parse_context.report("E12", key.line, key.column, message, "Leave the line out.")


def _read_item_id(fields: YamlMapping, parse_context: ParseContext, position: TextPosition) -> str:
    node = fields.values.get("q")
    if node is None:
        return ""
    if isinstance(node, YamlText) and not node.text:
        message = "The id after “q:” is missing."
        parse_context.report("E01", *position, message, "Run the check with --fix to write one.")
        return ""
    text = lenient_yaml.text_or_empty(node)
    if not is_slug(text) or len(text) > LONGEST_ID:
        hint = "Use lower-case letters, digits and single hyphens: kv-cache-size."
        message = f"“{text[:60]}” is not an id."
        parse_context.report("E03", node.line, node.column, message, hint)
        return ""
    return text


PARAMETER_NAME = re.compile(r"^[a-z_][a-z0-9_]*$", re.IGNORECASE)
_PARAMETER_RANGE = re.compile(
    r"^(?P<low>-?[\d_.]*\d)\s*\.\.\s*(?P<high>-?[\d_.]*\d)"
    r"(?:\s+step\s+(?P<step>[\d_.]*\d))?$"
)
# “100 to 120” in any language, or with a dash.
_OTHER_RANGE_SPELLING = re.compile(
    r"^(?P<low>\d[\d_]*(?:\.\d+)?)\s*(?:[–—-]|…|[^\W\d]{1,5}\s)\s*"
    r"(?P<high>\d[\d_]*(?:\.\d+)?)$"
)
# A number such as 07 is a name: of a node, a bus, a row.
_PARAMETER_NUMBER = re.compile(r"^-?(?!0\d)\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?$")
_MOST_VALUES = 10_000


def parse_question_parameters(
    comment: ItemComment, parse_context: ParseContext
) -> QuestionParameters | None:
    """Return the parameters of a computed question; None if it has none."""
    values = comment.fields.values
    if "params" not in values and "let" not in values:
        return None
    params: dict[str, tuple[str | float, ...]] = {}
    for name, node in _read_parameter_mapping(
        values.get("params"), "params", parse_context
    ).items():
        _report_bad_parameter_name(name, node, parse_context)
        params[name] = _read_parameter_values(name, node, parse_context)
    lets: list[NamedExpression] = []
    let_names: list[str] = []
    for name, node in _read_parameter_mapping(values.get("let"), "let", parse_context).items():
        _report_bad_parameter_name(name, node, parse_context)
        if name in params:
            message = f"“{name}” is a parameter already."
            parse_context.report("E11", node.line, node.column, message, "Use another name.")
        known_names = {*params, *let_names}  # a name with a faulty expression is reported only once
        let_names.append(name)
        text = _read_and_check_expression(node, known_names, parse_context)
        if text:
            lets.append((name, text))
    return QuestionParameters(params, tuple(lets))


def _read_parameter_mapping(
    node: Node | None, label: str, parse_context: ParseContext
) -> dict[str, Node]:
    if isinstance(node, YamlMapping):
        if len(node.values) > MOST_PARAMETERS:
            message = f"“{label}” has {len(node.values)} names."
            hint = f"Use at most {MOST_PARAMETERS}."
            parse_context.report("E88", node.line, node.column, message, hint)
            return {}
        return node.values
    if node is not None:
        hint = f"Write {label}: and below it, indented, “name: value”."
        message = f"“{label}” is not a list of names."
        parse_context.report("E10", node.line, node.column, message, hint)
    return {}


def _report_bad_parameter_name(name: str, node: Node, parse_context: ParseContext) -> None:
    if not PARAMETER_NAME.match(name):
        hint = "Use letters, digits and underscores."
        message = f"“{name}” cannot be used as a name in expressions."
        parse_context.report("E45", node.line, node.column, message, hint)


def _read_parameter_values(
    name: str, node: Node, parse_context: ParseContext
) -> tuple[str | float, ...]:
    if mistake := _find_list_or_range_mistake(name, node):
        parse_context.report(mistake.code, node.line, node.column, mistake.message, mistake.hint)
        return (0,)
    values: tuple[str | float, ...] = ()
    if isinstance(node, YamlList):
        values = tuple(parse_number_or_text(n.text) for n in node.items if isinstance(n, YamlText))
    elif isinstance(node, YamlText) and ".." in node.text:
        values = _expand_parameter_range(name, node, parse_context)
    elif isinstance(node, YamlText):
        values = (parse_number_or_text(node.text),)
    too_large = [v for v in values if not isinstance(v, str) and not math.isfinite(v)]
    if too_large:
        message = f"A value of the parameter “{name}” is too large to compute with."
        parse_context.report("E45", node.line, node.column, message, "Write less than 1e308.")
        return (0,)
    if not values:
        hint = "Write a list [1, 8, 32] or a range 2048..8192 step 2048."
        message = f"The parameter “{name}” has no values."
        parse_context.report("E45", node.line, node.column, message, hint)
    return values or (0,)


def _find_list_or_range_mistake(name: str, node: Node) -> AuthoringError | None:
    """Return what is mistyped in a list or range; None if nothing is."""
    if isinstance(node, YamlList):
        texts = [n.text.strip() for n in node.items if isinstance(n, YamlText)]
        range_text = next(filter(_PARAMETER_RANGE.match, texts), "")
        message = f"“{range_text}” is a word in this list, not a range."
        hint = f"Write {name}: {range_text}, without brackets."
        return AuthoringError("E47", message, hint) if range_text else None
    text = node.text.strip() if isinstance(node, YamlText) else ""
    excerpt = text[:40]
    if ".." in text and not _PARAMETER_RANGE.match(text):
        hint = "Write 1..8, or 2048..8192 step 2048. Values with units make a list: "
        message = f"“{excerpt}” is not a range of numbers."
        return AuthoringError("E45", message, f"{hint}[2 mL, 3 mL].")
    if ".." not in text and "," in text:
        message = f"“{excerpt}” is one word, not a list."
        return AuthoringError("E45", message, f"Write {name}: [{shorten_with_ellipsis(text)}]")
    if span := _OTHER_RANGE_SPELLING.match(text):
        hint = f"Write {name}: {span['low']}..{span['high']}"
        return AuthoringError("E47", f"“{excerpt}” is a word, not a range.", hint)
    return None


def parse_number_or_text(text: str) -> str | float:
    if not _PARAMETER_NUMBER.match(text.strip()):
        return text.strip()
    number = float(text)
    is_whole = number == int(number) if abs(number) < 1e15 else False
    return int(number) if is_whole else number


def _expand_parameter_range(
    name: str, node: YamlText, parse_context: ParseContext
) -> tuple[float, ...]:
    match = _PARAMETER_RANGE.match(node.text.strip())
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
        parse_context.report("E45", node.line, node.column, message, hint)
        return (0,)
    decimals = max(len((match[k] or "").partition(".")[2]) for k in ("low", "high", "step"))
    count = int((high - low) / step + 1e-9) + 1
    values = (round(low + step * i, decimals) for i in range(count))
    return tuple(int(v) if v == int(v) else v for v in values)


def _read_and_check_expression(
    node: Node, known_names: set[str], parse_context: ParseContext
) -> str:
    if not isinstance(node, YamlText):
        message = "An expression has to be written as text."
        parse_context.report("E45", node.line, node.column, message)
        return ""
    try:
        compiled = compile_expression(node.text)
    except ExpressionError as error:
        parse_context.report(error.code, node.line, node.column, error.message, error.hint)
        return ""
    unknown = sorted(compiled.names - known_names)
    for name in unknown:
        hint = write_hint_for_unknown_word(name, known_names)
        message = f"“{name}” is neither a parameter nor defined above."
        parse_context.report("E44", node.line, node.column, message, hint)
    return "" if unknown else node.text
