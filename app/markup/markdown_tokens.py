"""Parse Markdown to tokens: CommonMark, math, footnotes, alerts."""

import functools
import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.normalize_url import normalizeLink
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, emphasis, strikethrough
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.dollarmath.index import math_inline_dollar

from app.markup.problems import (
    MOST_BLOCKS,
    MOST_CELLS,
    MOST_COLUMNS,
    MOST_LETTERS,
    MOST_MARKS,
    MOST_NESTED,
    LimitExceededError,
)
from app.markup.text import is_of_unspaced_script

_InlineRule = Callable[[StateInline, bool], bool]
_BlockRule = Callable[[StateBlock, int, int, bool], bool]
CITATION_MARK = re.compile(r"\[\^([^\]\s]{1,80})\]")
_FOOTNOTE_DEFINITION = re.compile(r"^\[\^([^\]\s]{1,80})\]:\s*(.*)$")
_ALERT_MARK = re.compile(r"^\[!([A-Za-z]+)\]\s*(?:\n|$)")
# No inline rule begins with any of these characters; task list boxes are not links.
_TEXT_WITHOUT_MARKUP = re.compile(r"(?:\[[ xX]\] )?[^\n\\`~*_\[!<&$]*\Z")
# Separators in plain text: after the last cell of a row, after the last row of a table.
_MATCH_ROW_BREAK = re.compile(r", (; (?! *\n)|(?=; *\n))(?:; *(?=\n))?")
_URL_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANKS_AND_TABS = re.compile(r"[ \t]+")
_INLINE_MARKUP_CHARACTERS = "[<`*_$~!&\\"
_TABLE_RULER = re.compile(r"[|:\s-]+")
_HEADING_ANCHOR_COMMENT = re.compile(r"^<!--\s*=\s*([\w\u00aa-\U0010ffff-]+)\s*-->$")


@functools.cache
def _markdown_parser() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": True, "maxNesting": MOST_NESTED + 10})
    reader.enable(["table", "strikethrough"])
    reader.use(dollarmath_plugin, allow_space=False, allow_digits=False)
    reader.inline.ruler.at("math_inline", _parse_formula)
    reader.inline.ruler.at("strikethrough", _allow_emphasis_without_spaces(strikethrough.tokenize))
    reader.inline.ruler.at("emphasis", _allow_emphasis_without_spaces(emphasis.tokenize))
    reader.inline.ruler.before("link", "cite", _parse_citation)
    reader.block.ruler.before("reference", "note", _parse_footnote, {"alt": ["paragraph"]})
    reader.block.ruler.at("table", _parse_table, {"alt": ["paragraph", "reference"]})
    reader.block.ruler.before("table", "count", _limit_token_count)
    interrupted_rules = ["paragraph", "reference", "blockquote"]
    reader.block.ruler.at("list", _limit_nesting_depth(list_block), {"alt": interrupted_rules})
    reader.block.ruler.at(
        "blockquote", _limit_nesting_depth(blockquote), {"alt": [*interrupted_rules, "list"]}
    )
    reader.core.ruler.at("inline", _parse_inline)
    # Which addresses are written is for the renderer to decide.
    reader.validateLink = lambda _url: True  # type: ignore[method-assign, assignment]
    reader.normalizeLink = _decode_local_link  # type: ignore[method-assign]
    return reader


BROKEN_COMMENT_START = re.compile(r"^<(?:\s*!\s*-{1,2}|!-|-{2})\s*q\s*:")
"""A paragraph that looks like a malformed question comment."""


def _limit_token_count(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Match nothing, but stop parsing once a file has too many tokens."""
    del last, silent
    if len(state.tokens) > MOST_BLOCKS:
        raise LimitExceededError(_TOO_LONG, _SPLIT_FILE_HINT, first + 1)
    return False


_TOO_LONG = f"The file has more than {MOST_BLOCKS:,} parts, such as paragraphs and cells."


def _limit_nesting_depth(rule: _BlockRule) -> _BlockRule:
    """Wrap the rule for lists or quotes so that it stops matching beyond a nesting depth."""

    def read(state: StateBlock, first: int, last: int, silent: bool) -> bool:
        return state.level < MOST_NESTED and rule(state, first, last, silent)

    return read


def _decode_local_link(url: str) -> str:
    """Return a local address with the letters that its file or heading has.

    Only an address of the web is percent-encoded.
    """
    return normalizeLink(url) if _URL_SCHEME.match(url) else unquote(url)


def parse_markdown(text: str) -> list[Token]:
    """Parse a text into tokens; alerts are marked on their quotes."""
    tokens = _markdown_parser().parse(text)
    _mark_alerts(tokens)
    _mark_too_deeply_nested(tokens)
    return tokens


def _parse_inline(state: StateCore) -> None:
    """Parse the inline text of the blocks; text without markup becomes one text token."""
    count, refusal_by_line = 0, state.env.get("large", {})
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        refusal = len(token.content) > MOST_MARKS and _reason_to_leave_unparsed(token.content)
        if refusal_by_line and token.map:
            refusal = refusal_by_line.get(token.map[0]) or refusal
        if refusal:
            token.meta["refused"] = refusal
            token.content = f"{token.content[:_MAX_QUOTED_CHARACTERS]}…"
            token.children.append(Token("text", "", 0, content=token.content))
        elif state.env.get("references") or not _TEXT_WITHOUT_MARKUP.match(token.content):
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        elif token.content:
            token.children.append(Token("text", "", 0, content=token.content))
        count += len(token.children)
        if count > MOST_BLOCKS:
            raise LimitExceededError(
                _TOO_MANY_MARKS_MESSAGE, _SPLIT_FILE_HINT, get_first_line_number(token)
            )


_TOO_MANY_MARKS_MESSAGE = "The file has too many words and marks to be read at once."
_SPLIT_FILE_HINT = "Split it into several topics."
_MAX_QUOTED_CHARACTERS = 200  # Characters quoted from a text that is not parsed.


def _reason_to_leave_unparsed(text: str) -> str:
    """Return why a paragraph is not parsed, or "".

    Parsing some markup takes quadratic time, so there are limits per paragraph.
    """
    if len(text) > MOST_LETTERS:
        return f"This text has {len(text):,} characters; the limit is {MOST_LETTERS:,}."
    for mark in _INLINE_MARKUP_CHARACTERS:
        count = text.count(mark)
        if count > MOST_MARKS:
            return f"This text has {count:,} “{mark}”; the limit is {MOST_MARKS}."
    return ""


def _mark_too_deeply_nested(tokens: Sequence[Token]) -> None:
    """Mark lists and quotes beyond the nesting depth, which are treated as text."""
    for token in tokens:
        if token.level >= MOST_NESTED and token.nesting == 1:
            token.meta["refused"] = "Lists and quotes are nested too deep here."


def _allow_emphasis_without_spaces(rule: _InlineRule) -> _InlineRule:
    """Wrap the rule for `**` or `~~` for scripts without spaces.

    CommonMark lets a mark between punctuation and a letter only begin or only end, by
    the side on which a space is. Where there are no spaces, it may do both.
    """

    def read(state: StateInline, silent: bool) -> bool:
        start, delimiter_count = state.pos, len(state.delimiters)
        if not rule(state, silent):
            return False
        before, after = state.src[start - 1 : start], state.src[state.pos : state.pos + 1]
        if state.src[start] != "_" and before.strip() and after.strip():
            for delimiter in state.delimiters[delimiter_count:]:
                delimiter.open = delimiter.open or is_of_unspaced_script(before)
                delimiter.close = delimiter.close or is_of_unspaced_script(after)
        return True

    return read


_DOLLAR_MATH_RULE = math_inline_dollar(allow_space=False, allow_digits=False)


def _parse_formula(state: StateInline, silent: bool) -> bool:
    """Parse `$…$`, also at the start of a text that ends in a digit.

    The plugin checks the character before the dollar. At the start of a text its index
    -1 finds the last character.
    """
    text = state.src
    if state.pos or not text[-1].isdigit():
        return _DOLLAR_MATH_RULE(state, silent)
    state.src = f"{text} "
    is_formula = _DOLLAR_MATH_RULE(state, silent)
    state.src = text
    return is_formula


def _parse_citation(state: StateInline, silent: bool) -> bool:
    """Parse `[^key]` as a footnote, whether or not the page defines it."""
    match = CITATION_MARK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        token = state.push("cite", "", 0)
        token.content = match[1]
    state.pos = match.end()
    return True


def _parse_table(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse a table; one with too many cells stays text.

    A row may leave cells out, but tokens are created for them, too.
    """
    if not silent and first + 1 < last:
        ruler = state.src[state.bMarks[first + 1] : state.eMarks[first + 1]]
        columns = ruler.count("|") + 1
        if columns > 1 and _TABLE_RULER.fullmatch(ruler):
            row = first + 2
            while row < last and not state.isEmpty(row):
                row += 1
            if columns > MOST_COLUMNS or columns * (row - first) > MOST_CELLS:
                message = f"The table has {columns:,} columns in {row - first:,} rows."
                state.env.setdefault("large", {})[first] = message
                return False
    return table(state, first, last, silent)


def _parse_footnote(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Parse `[^key]: which part of the source is meant`, up to an empty line."""
    if state.is_code_block(first):
        return False
    start = state.bMarks[first] + state.tShift[first]
    if not state.src.startswith("[^", start):
        return False
    match = _FOOTNOTE_DEFINITION.match(state.src[start : state.eMarks[first]])
    if match is None:
        return False
    if silent:
        return True
    line = first + 1
    parts = [match[2]]
    while line < last and not state.isEmpty(line):
        text = state.getLines(line, line + 1, state.blkIndent, False).strip()
        if _FOOTNOTE_DEFINITION.match(text):
            break
        parts.append(text)
        line += 1
    opening = state.push("note_open", "", 1)
    opening.map = [first, line]
    opening.content = match[1]
    inline = state.push("inline", "", 0)
    inline.content = "\n".join(parts).strip()
    inline.map = [first, line]
    inline.children = []
    state.push("note_close", "", -1)
    state.line = line
    return True


def _mark_alerts(tokens: list[Token]) -> None:
    """Move `[!TIP]` from the text of a quote to its opening token, and hide an empty paragraph."""
    for index, token in enumerate(tokens[:-2]):
        inline = tokens[index + 2]
        if token.type != "blockquote_open" or inline.type != "inline":
            continue
        match = _ALERT_MARK.match(inline.content)
        if match:
            token.meta["alert"] = match[1].upper()
            inline.content = inline.content[match.end() :]
            children = inline.children or []
            while children and children[0].type == "text":
                children.pop(0)
            if children and children[0].type == "softbreak":
                children.pop(0)
            if not inline.content and tokens[index + 3].type == "paragraph_close":
                tokens[index + 1].hidden = tokens[index + 3].hidden = True


def find_closing_index(tokens: Sequence[Token], index: int) -> int:
    """Return the index of the token that closes the one at `index`; `index` if it opens nothing."""
    opening = tokens[index]
    if opening.nesting != 1:
        return index
    for at in range(index + 1, len(tokens)):
        if tokens[at].level == opening.level and tokens[at].nesting == -1:
            return at
    return len(tokens) - 1


def get_first_line_number(token: Token) -> int:
    """Return the line, from 1, on which a block begins."""
    return token.map[0] + 1 if token.map else 1


def get_last_line_number(token: Token) -> int:
    """Return the last line, from 1, of a block."""
    return max(token.map[1], token.map[0] + 1) if token.map else 1


def plain_text(tokens: Sequence[Token]) -> str:
    """Return the plain text of tokens, for search and comparison.

    Commas separate the cells of a table and semicolons its rows.
    """
    unmarked_text = get_unmarked_text_or_none(tokens[0]) if len(tokens) == 1 else None
    if unmarked_text is not None:
        return _collapse_spaces(unmarked_text)
    parts: list[str] = []
    for token in tokens:
        if token.type == "inline":
            parts.append(plain_text(token.children or []))
        elif token.type in {"softbreak", "hardbreak"} or token.nesting == -1:
            parts.append(_choose_plain_text_separator(token))
        elif token.type == "fence" and token.info.split()[:1] == ["figure"]:
            parts.append(_figure_title_and_description(token.content))
        elif token.type not in {"html_block", "html_inline", "cite"}:
            parts.append(token.content)
    return _collapse_spaces(_MATCH_ROW_BREAK.sub(lambda row: row[1], "".join(parts)))


_INLINE_CLOSINGS = frozenset({"link_close", "strong_close", "em_close", "s_close"})


def _choose_plain_text_separator(token: Token) -> str:
    """Return the separator in plain text after what ends here: none after a link or bold words."""
    if token.type in _INLINE_CLOSINGS:
        return ""
    if token.type in {"th_close", "td_close"}:
        return ", "
    if token.type == "tr_close":
        return "; "
    return " " if token.level or token.nesting == 0 else "\n"


def get_unmarked_text_or_none(token: Token) -> str | None:
    """Return the text of a block without markup; None if it has markup."""
    children = token.children
    if token.type == "inline" and children and len(children) == 1:
        return children[0].content if children[0].type == "text" else None
    return None


def pop_pinned_key(inline: Token) -> str:
    """Remove a comment `<!-- = key -->` from the end of a line and return its key."""
    children = inline.children or []
    if not children or children[-1].type != "html_inline":
        return ""
    match = _HEADING_ANCHOR_COMMENT.match(children[-1].content)
    if match is None:
        return ""
    children.pop()
    if children and children[-1].type == "text":
        children[-1].content = children[-1].content.rstrip()
    inline.content = inline.content[: inline.content.rindex("<!--")].rstrip()
    return match[1]


def _collapse_spaces(words: str) -> str:
    if "  " in words or "\t" in words:
        words = _BLANKS_AND_TABS.sub(" ", words)
    return words.strip()


def _figure_title_and_description(source: str) -> str:
    """Return the text of a `figure` block: its title and its description."""
    rows = (line.partition(":") for line in source.splitlines())
    texts = [text.strip() for key, _, text in rows if key in {"title", "alt"}]
    return " ".join(texts) + "\n"
