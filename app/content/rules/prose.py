"""Rules for the running text of a page: numbers that nobody vouches for."""

import re
from collections.abc import Iterable, Sequence

from markdown_it.token import Token

from app.content.markdown.syntax import first_line, last_line
from app.content.markdown.writer import Scope

_UNITS = "|".join(  # noqa: FLY002 - one kind of unit to a line
    (
        "(?:[kKMGTPE]i?B|bytes)(?:/s)?",
        "[kMGTPE]?bit(?:/s)?",
        "[kMGT]b/s",
        "[kMG]?W",
        "[kMG]Wh",
        "[TPEG]FLOPS?(?:/s)?",
        "ns|µs|ms|GHz|MHz|tokens?/s|USD",
    )
)
_NUMBER = re.compile(
    rf"(?<![\w.,])\d(?:[\d,.]*\d)?[ \u00a0\u202f]?(?:{_UNITS})(?![\w/])"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUIET = frozenset({"link_open", "code_inline", "math_inline", "cite"})


def check_prose(passages: Iterable[Sequence[Token]], scope: Scope) -> None:
    """W85: a number with a unit is computed (a link) or its sentence has a source."""
    scope.sheet.item = ""
    for passage in passages:
        _check_blocks(passage, scope)


def _check_blocks(tokens: Sequence[Token], scope: Scope) -> None:
    in_note = in_table = False
    for token in tokens:
        if token.type in {"note_open", "note_close"}:
            in_note = token.type == "note_open"
        elif token.type in {"table_open", "table_close"}:
            in_table = token.type == "table_open"
        elif token.type == "inline" and not in_note and not in_table:
            _check_inline(token, scope)


def _check_inline(inline: Token, scope: Scope) -> None:
    for sentence in _sentences(inline.children or []):
        if "\0" in sentence:
            continue
        for match in _NUMBER.finditer(sentence):
            first, last = first_line(inline), last_line(inline)
            line, column = scope.sheet.find(match[0], first, last)
            message = f"“{match[0]}” is neither computed nor sourced."
            hint = (
                f"Write [{match[0]}](calc:…#output), or end its sentence with [^key]."
            )
            scope.sheet.report("W85", line, column, message, hint)


def _sentences(children: Sequence[Token]) -> list[str]:
    """The sentences as plain words; NUL marks a footnote in or right behind one."""
    text = ""
    linked = 0
    for child in children:
        if child.type == "link_open":
            linked += 1
        elif child.type == "link_close":
            linked -= 1
        elif child.type == "cite":
            text = f"{text.rstrip()}\0"
        elif linked or child.type in _QUIET:
            text += " … "
        elif child.type in {"softbreak", "hardbreak"}:
            text += " "
        else:
            text += child.content
    # A footnote stands behind the full stop: it belongs to the sentence before.
    return _SENTENCE.split(re.sub(r"([.!?])(\0+)", r"\2\1", text))
