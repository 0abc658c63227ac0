"""Rules for the running text of a page: numbers that nobody vouches for."""

import re
from collections.abc import Iterable, Sequence

from markdown_it.token import Token

from app.content.markdown.syntax import first_line, last_line
from app.content.markdown.writer import RenderContext
from app.content.numbers.quantities import kind
from app.content.numbers.units import TYPED, UNITS

# “8B” counts parameters, “16 bits” are the width of a format: neither is an amount.
_NO_AMOUNTS = frozenset({"B", "bits"})
_SIGNS = "€£¥₹"  # before a number; behind a dollar sign may be what a shell reads
_AMOUNTS = sorted(
    {
        *(u for u in UNITS if kind(u) and u not in _NO_AMOUNTS),
        *TYPED,
        *(f"{letter}FLOPS" for letter in "GTPE"),
    },
    key=len,
    reverse=True,
)
# “The 1970s”, “4K” and “2N” are no amounts, “5g” is one.
_APART = re.compile(r"[A-Zs]")
_WORDS = "|".join(re.escape(u) for u in _AMOUNTS if not _APART.fullmatch(u))
_LETTERS = "".join(u for u in _AMOUNTS if _APART.fullmatch(u))
_DIGITS = r"\d(?:[\d,.]*\d)?"
_GAP = "[ \u00a0\u202f]"
_NUMBER = re.compile(
    rf"(?<![\w.,]){_DIGITS}(?:{_GAP}?(?:{_WORDS})|{_GAP}[{_LETTERS}])(?![\w/²³^])"
    rf"|[{_SIGNS}]{_GAP}?{_DIGITS}"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUIET = frozenset({"link_open", "code_inline", "math_inline", "cite"})


def check_prose(passages: Iterable[Sequence[Token]], scope: RenderContext) -> None:
    """W85: a number with a unit is computed (a link) or its sentence has a source."""
    scope.sheet.item = ""
    for passage in passages:
        _check_blocks(passage, scope)


# What stands in a heading or a table is said again, with its source, in the text.
_EXEMPT = ("heading", "note", "table")


def _check_blocks(tokens: Sequence[Token], scope: RenderContext) -> None:
    inside: set[str] = set()
    for token in tokens:
        name, _, edge = token.type.rpartition("_")
        if name in _EXEMPT:
            (inside.add if edge == "open" else inside.discard)(name)
        elif token.type == "inline" and not inside:
            _check_inline(token, scope)


def _check_inline(inline: Token, scope: RenderContext) -> None:
    for sentence in _sentences(inline.children or []):
        if "\0" in sentence:
            continue
        for match in _NUMBER.finditer(sentence):
            first, last = first_line(inline), last_line(inline)
            line, column = scope.sheet.find(match[0], first, last)
            message = f"“{match[0]}” is neither computed nor sourced."
            hint = (
                "End its sentence with the [^key] of a source; in a course with "
                f"calculators one can compute it: [{match[0]}](calc:…#output)."
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
