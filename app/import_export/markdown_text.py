"""Escape and write inline Markdown; split plain text into prose, tables and code."""

import bisect
import functools
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

_ALWAYS_ESCAPED = re.compile(r"[\\`*\[\]<|$~]")
_ESCAPED_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_ENTITY_START = re.compile(r"&(?=#?\w+;)")
_BLOCK_MARKUP_START = re.compile(r"^(?:#{1,6}(?=\s|$)|>|[+-](?=\s|$)|=+$|-[- ]*$)")
_LIST_NUMBER = re.compile(r"^(\d{1,9})[.)](?=\s|$)")


def escape_markdown(plain_text: str) -> str:
    r"""Escape what would be markup anywhere in a line.

    >>> escape_markdown("a*b < 5 & snake_case _x_ AT&amp;T")
    'a\\*b \\< 5 & snake_case \\_x\\_ AT\\&amp;T'
    """
    text = _ALWAYS_ESCAPED.sub(lambda m: "\\" + m[0], plain_text)
    text = _ESCAPED_UNDERSCORE.sub(r"\\_", text)
    return _ENTITY_START.sub(r"\\&", text)


def remove_markdown_escapes(markdown: str) -> str:
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


def escape_line_start(line: str) -> str:
    r"""Escape what would be markup at the beginning of a line.

    >>> escape_line_start("1. first"), escape_line_start("# one"), escape_line_start("-1 is less")
    ('1\\. first', '\\# one', '-1 is less')
    """
    numbered = _LIST_NUMBER.match(line)
    if numbered:
        return f"{numbered[1]}\\{line[len(numbered[1]) :]}"
    return f"\\{line}" if _BLOCK_MARKUP_START.match(line) else line


def write_code_span(text: str) -> str:
    """Return text as a code span, even if it contains backticks.

    >>> write_code_span("a`b")
    '``a`b``'
    """
    runs = [len(r) for r in re.findall("`+", text)]
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    edge = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    return f"{fence}{edge}{text}{edge}{fence}"


def write_code_block(text: str) -> str:
    """Return a code block, even if the text contains fences."""
    longest = max((len(r) for r in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


EMPHASIS_MARK_BY_TAG = {"b": "**", "strong": "**", "i": "*", "em": "*", "s": "~~", "del": "~~"}
LINE_BREAK_CHARACTER = "\ue0fa"
"""Placeholder for a line break until the line is written."""
LINK_CHARACTER = "\ue0fb"
"""Placeholder for the start of a link text."""
_CODE_SPACE_PLACEHOLDER = "\ue0fc"  # a space of code that no program strips
_EMPHASIS_MARKS = list(dict.fromkeys(EMPHASIS_MARK_BY_TAG.values()))
_WHITE_SPACE = re.compile(r"[ \t\r\n\xa0]+")
_MATH_START = re.compile(r"\\[(\[]|\$\$")
_MATH_END_BY_START = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_DISPLAY_MATH_PLACEHOLDER = "\ue0f9"  # around a formula that was on its own line
_PROVISIONAL_DISPLAY_FORMULA = re.compile(
    f"{_DISPLAY_MATH_PLACEHOLDER}(\\$[^$]+\\$){_DISPLAY_MATH_PLACEHOLDER}"
)


def escape_except_formulas(text: str) -> str:
    """Escape text, but keep formulas in TeX as formulas."""
    parts, at = [], 0
    for start, end in find_formulas(text):
        tex = " ".join(text[start + 2 : end - 2].split())
        neighbors = text[max(0, start - 1) : start] + text[end : end + 1]
        if "$" in tex or not tex or tex.endswith("\\") or re.search(r"[\d\\$]", neighbors):
            continue  # Markdown would not read it as a formula
        is_inline = text.startswith("\\(", start)
        formula = (
            f"${tex}$"
            if is_inline
            else f"{_DISPLAY_MATH_PLACEHOLDER}${tex}${_DISPLAY_MATH_PLACEHOLDER}"
        )
        parts += [escape_markdown(text[at:start]), formula]
        at = end
    return "".join([*parts, escape_markdown(text[at:])])


def find_formulas(text: str) -> Iterator[tuple[int, int]]:
    """Yield where formulas begin and end; they do not nest.

    A mark that was not closed is not searched for again, so no text is read twice.
    """
    open_ended: set[str] = set()
    at = 0
    while match := _MATH_START.search(text, at):
        mark, at = match[0], match.start() + 1
        if mark in open_ended:
            continue
        end = text.find(_MATH_END_BY_START[mark], match.end() + 1)
        if end < 0:
            open_ended.add(mark)
            continue
        at = end + 2
        yield match.start(), at


def finish_line_or_display_formula(provisional_line: str) -> str:
    """Return a line of a paragraph; a formula alone on it becomes a display formula."""
    match = _PROVISIONAL_DISPLAY_FORMULA.fullmatch(provisional_line)
    if match:
        return f"${match[1]}$"
    return escape_line_start(make_formulas_inline(provisional_line))


def is_provisional_display_formula(provisional_line: str) -> bool:
    return _PROVISIONAL_DISPLAY_FORMULA.fullmatch(provisional_line) is not None


def make_formulas_inline(provisional_line: str) -> str:
    """Return the line with inline formulas, for places such as cells."""
    return _PROVISIONAL_DISPLAY_FORMULA.sub(r"\1", provisional_line)


def write_code_spans_on_one_line(code: str) -> str:
    """Return code in one Markdown line: a span for each of its lines, indents kept."""
    lines = (line.rstrip(" \xa0") for line in code.split(LINE_BREAK_CHARACTER))
    return LINE_BREAK_CHARACTER.join(
        write_code_span(_replace_indent_with_hard_spaces(line)) for line in lines if line.strip()
    )


def write_code_span_per_line(code: str) -> str:
    """Return the spans of the lines of some code, each on its own line."""
    return (
        write_code_spans_on_one_line(code.replace("\n", LINE_BREAK_CHARACTER))
        .replace(LINE_BREAK_CHARACTER, "\n")
        .replace(_CODE_SPACE_PLACEHOLDER, "\xa0")
    )


def _replace_indent_with_hard_spaces(line: str) -> str:
    """Return a line indented with spaces that no program strips."""
    text = line.lstrip(" \xa0")
    indent = len(line) - len(text)
    text = text.replace("\xa0", " ")
    return _CODE_SPACE_PLACEHOLDER * indent + text if indent > 1 else text


def make_emphasis_placeholder(tag: str, *, is_opening: bool) -> str:
    """Return a provisional emphasis mark; white space must be moved out of it later."""
    code = _EMPHASIS_MARKS.index(EMPHASIS_MARK_BY_TAG[tag])
    return chr((0xE0F0 if is_opening else 0xE0F4) + code)


def collapse_spaces(text: str) -> str:
    """Return text with the spaces that browsers show, and indents as hard spaces."""

    def collapse(match: re.Match[str]) -> str:
        spaces = re.sub("[ \t\r\n]+", " ", match[0]).lstrip(" ")
        return "\xa0" * len(spaces) if spaces.count("\xa0") > 1 else " "

    return _WHITE_SPACE.sub(collapse, text)


def apply_emphasis_and_trim_spaces(line: str) -> str:
    """Return one line without extra spaces, with marks written and unpaired ones dropped."""
    lines = map(
        _keep_hard_spaces_in_indent, line.replace(LINK_CHARACTER, "").split(LINE_BREAK_CHARACTER)
    )
    text = LINE_BREAK_CHARACTER.join(lines).strip(f" {LINE_BREAK_CHARACTER}")
    text = re.sub(f"{LINE_BREAK_CHARACTER}{{2,}}", LINE_BREAK_CHARACTER, re.sub(" {2,}", " ", text))
    for code, mark in enumerate(_EMPHASIS_MARKS):
        opening, closing = chr(0xE0F0 + code), chr(0xE0F4 + code)
        pattern = re.compile(f"{opening}( *)([^{opening}{closing}]*?)( *){closing}")
        text = pattern.sub(functools.partial(_emphasize_if_valid, mark), text)
        text = text.replace(opening, "").replace(closing, "")
    return text.strip(" ").replace("\xa0", "&nbsp;").replace(_CODE_SPACE_PLACEHOLDER, "\xa0")


def _keep_hard_spaces_in_indent(line: str) -> str:
    """Return a line whose leading hard spaces are an indent, and all others plain spaces."""
    text = line.strip(" \xa0").replace("\xa0", " ")
    indent = line[: len(line) - len(line.lstrip(" \xa0"))].count("\xa0")
    return "\xa0" * indent * (indent > 1) + text


def _emphasize_if_valid(mark: str, match: re.Match[str]) -> str:
    """Return emphasized text; without marks if Markdown would not read them as such."""
    inside = match[2]
    if not inside:
        return match[1]
    before = match.string[: match.start()][-1:] if not match[1] else ""
    after = match.string[match.end() :][:1] if not match[3] else ""
    touches_word = (before.isalnum() and not inside[0].isalnum()) or (
        after.isalnum() and not inside[-1].isalnum()
    )
    emphasized = inside if touches_word else f"{mark}{inside}{mark}"
    return f"{match[1]}{emphasized}{match[3]}"


def write_markdown_table(rows: list[list[str]]) -> str:
    """Return a table whose first row is its header."""
    width = max(map(len, rows))
    padded = [row + [""] * (width - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])


_FENCE_START = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,}) *[\w+#.-]* *")
_FENCE_END = re.compile(r"\s*(?:`{3,}|~{3,})\s*")
_MAX_SEARCHED_FENCES = 20  # fences searched for the closing one
_LIST_ITEM_START = re.compile(r"\s*(?:[-*•–]|\w{1,3}[.)]|\(\w{1,3}\))\s")
_CODE_SIGN = re.compile(r"[{}()\[\];=<>]|->|\+\+|^\s*(?:#|//|--)\s*\w|\w:$")
_CODE_KEYWORD = re.compile(
    r"\s*(?:begin|break|case|class|continue|def|do|done|elif|else|end|except|fi|finally"
    r"|fn|for|from|func|function|if|import|let|pass|print|return|switch|then|try|var"
    r"|while|with)\b"
)
_SENTENCE_END = re.compile("[.?!…]['\")”»]?$")
_FORMULA_LINE_START = re.compile(r"\s*(?:\\[\[(]|\$\$)")
_SET_APART = re.compile(r"\S(?: {3,}|\t+)\S")  # columns made of spaces or tabs
_TABLE_RULE_LINE = re.compile(r"\|?(?: *:?-{2,}:? *\|)+(?: *:?-{2,}:? *)?")
_MIN_INTENDED_INDENT = 2  # spaces from which an indent is intended


class PlainTextBlock(NamedTuple):
    kind: Literal["words", "code", "table"]
    lines: tuple[str, ...]


def split_prose_code_tables(text: str) -> Iterator[PlainTextBlock]:
    """Split a text into paragraphs, blocks of code and tables.

    Code is text between fences, indented text that looks like code with the lines around it, and
    text in columns separated by spaces.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends = [n for n, line in enumerate(lines) if _FENCE_END.fullmatch(line)]
    prose_lines: list[str] = []
    at = 0
    while at < len(lines):
        end = _find_fence_end_or_zero(lines, at, ends)
        if end:
            yield from _split_unfenced_lines(prose_lines)
            prose_lines = []
            code = textwrap.dedent("\n".join(lines[at + 1 : end])).expandtabs(4)
            yield PlainTextBlock("code", tuple(code.split("\n")))
            at = end
        else:
            prose_lines.append(lines[at].rstrip())
        at += 1
    yield from _split_unfenced_lines(prose_lines)


def _find_fence_end_or_zero(
    lines: Sequence[str], fence_index: int, end_indices: Sequence[int]
) -> int:
    """Return the line among `end_indices` that closes the fence at `fence_index`; 0 for none."""
    match = _FENCE_START.fullmatch(lines[fence_index])
    if not match:
        return 0
    next_ends = end_indices[bisect.bisect_right(end_indices, fence_index) :][:_MAX_SEARCHED_FENCES]
    closing_lines = (n for n in next_ends if lines[n].strip().startswith(match["mark"]))
    return next(closing_lines, 0)


def _split_unfenced_lines(unfenced_lines: Sequence[str]) -> Iterator[PlainTextBlock]:
    is_code = _is_code_by_line(unfenced_lines)
    at = 0
    while at < len(unfenced_lines):
        end = at + 1
        if not unfenced_lines[at]:
            at = end
            continue
        while (
            end < len(unfenced_lines)
            and is_code[end] == is_code[at]
            and (unfenced_lines[end] or is_code[at])
        ):
            end += 1
        part = unfenced_lines[at:end]
        if is_code[at]:
            code = textwrap.dedent("\n".join(part).expandtabs(4)).rstrip()
            yield PlainTextBlock("code", tuple(code.split("\n")))
        elif len(part) > 1 and part[0].startswith("|") and _TABLE_RULE_LINE.fullmatch(part[1]):
            yield PlainTextBlock("table", tuple(part))
        else:
            yield PlainTextBlock("words", tuple(part))
        at = end


def _is_code_by_line(lines: Sequence[str]) -> list[bool]:
    """Return which lines are code, with the empty ones between them."""
    is_code = [False] * len(lines)
    spaces = [len(w) - len(w.lstrip()) for w in (x.expandtabs(4) for x in lines)]
    base = min((s for s, line in zip(spaces, lines, strict=True) if line), default=0)
    paragraph_start = 0
    for at in range(len(lines) + 1):
        if at < len(lines) and lines[at]:
            continue
        paragraph = range(paragraph_start, at)
        indented = [
            n
            for n in paragraph
            if spaces[n] - base >= _MIN_INTENDED_INDENT and not _FORMULA_LINE_START.match(lines[n])
        ]
        for n in _find_code_lines_of_paragraph(lines, paragraph, indented):
            is_code[n] = True
        paragraph_start = at + 1
    is_next_code = False
    is_followed_by_code = [False] * len(lines)  # whether the next non-empty line is code
    for at in range(len(lines) - 1, -1, -1):
        is_next_code = is_code[at] if lines[at] else is_next_code
        is_followed_by_code[at] = is_next_code
    for at in range(1, len(lines)):
        is_code[at] |= not lines[at] and is_code[at - 1] and is_followed_by_code[at]
    return is_code


def _find_code_lines_of_paragraph(
    lines: Sequence[str], paragraph_range: range, indented_line_indexes: list[int]
) -> Iterator[int]:
    """Yield the lines of a paragraph that are code; `indented_line_indexes` are indented ones."""
    line_above = indented_line_indexes[0] - 1 if indented_line_indexes else -1
    is_introduced = line_above in paragraph_range and not _is_prose(lines[line_above])
    has_code_signs = any(
        _CODE_SIGN.search(lines[n]) and not _LIST_ITEM_START.match(lines[n])
        for n in indented_line_indexes
    )
    if indented_line_indexes and (is_introduced or has_code_signs):
        first, last = indented_line_indexes[0], indented_line_indexes[-1]
        while first > paragraph_range.start and not _is_prose(lines[first - 1]):
            first -= 1
        while last + 1 < paragraph_range.stop and not _is_prose(lines[last + 1]):
            last += 1
        yield from range(first, last + 1)
        return
    has_columns = [bool(_SET_APART.search(lines[n])) for n in paragraph_range]
    for index, n in enumerate(paragraph_range):
        neighbors = has_columns[max(0, index - 1) : index] + has_columns[index + 1 : index + 2]
        if has_columns[index] and any(neighbors):
            yield n


def _is_prose(line: str) -> bool:
    """Return whether a line next to code is a sentence, not code.

    >>> _is_prose("What does f(x) return?"), _is_prose("for i in range(3):")
    (True, False)
    """
    if _SENTENCE_END.search(line):
        return True
    return not _CODE_SIGN.search(line.removesuffix(":")) and not _CODE_KEYWORD.match(line)
