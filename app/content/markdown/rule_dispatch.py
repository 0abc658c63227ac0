"""Only rules that can match are asked: most begin with one of a few characters."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import Ruler
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from app.content.limits import MOST_BLOCKS, MOST_NESTED, TooMuch

Rule = Callable[..., bool]
Table = Mapping[str, tuple[Rule, ...]]  # "" for characters with which no rule begins

_MANY = f"The file has more than {MOST_BLOCKS:,} parts, such as paragraphs and cells."
# The characters with which a rule begins; one that is not here is asked everywhere.
_BLOCKS = {
    "code": "",  # begins with an indent
    "math_block": "$",
    "fence": "`~",
    "blockquote": ">",
    "hr": "*-_",
    "list": "*-+0123456789",
    "note": "[",
    "reference": "[",
    "html_block": "<",
    "heading": "#",
}
_INLINES = {
    "newline": "\n",
    "escape": "\\",
    "backticks": "`",
    "math_inline": "$",
    "strikethrough": "~",
    "emphasis": "*_",
    "cite": "[",
    "link": "[",
    "image": "!",
    "autolink": "<",
    "html_inline": "<",
    "entity": "&",
}
_NESTING = frozenset({"blockquote", "list"})
_INDENT = 4  # from which on a line is code, or goes on with what stands above it


def ask_by_character(reader: MarkdownIt) -> None:
    """Let a reader whose rules are complete ask them by the character at hand."""
    _install(reader.block.ruler, _BLOCKS, _block)
    _install(reader.inline.ruler, _INLINES, _inline)


def _install(
    ruler: Ruler[Any],
    starts: Mapping[str, str],
    made: Callable[[Table, Any, Any], Rule],
) -> None:
    """Put one rule, which picks from the others, in place of each chain of rules."""
    chain_of = ruler.getRules
    names = dict(zip(chain_of(""), ruler.get_active_rules(), strict=True))

    @functools.cache
    def picking(chainName: str = "") -> list[Rule]:  # noqa: N803 - as in the reader
        rules = chain_of(chainName)
        table = _table([(rule, starts.get(names[rule])) for rule in rules])
        flat = tuple(rule for rule in rules if names[rule] not in _NESTING)
        return [made(table, tuple(rules), flat)] if rules else []

    ruler.getRules = picking  # type: ignore[method-assign]


def _table(rules: Sequence[tuple[Rule, str | None]]) -> Table:
    characters = {c for _, starts in rules for c in starts or ""}
    table = {
        c: tuple(rule for rule, starts in rules if starts is None or c in starts)
        for c in characters
    }
    return {**table, "": tuple(rule for rule, starts in rules if starts is None)}


def _block(table: Table, every: tuple[Rule, ...], flat: tuple[Rule, ...]) -> Rule:
    """`flat` are the rules for the depth at which lists and quotes are words."""
    otherwise = table[""]

    def pick(state: StateBlock, first: int, last: int, silent: bool) -> bool:
        if len(state.tokens) > MOST_BLOCKS:
            raise TooMuch(_MANY, "Split it into several topics.", first + 1)
        rules = every
        if state.level >= MOST_NESTED:
            rules = flat
        elif state.sCount[first] - state.blkIndent < _INDENT:
            start = state.bMarks[first] + state.tShift[first]
            rules = table.get(state.src[start : start + 1], otherwise)
        for rule in rules:  # noqa: SIM110 - a generator costs more than a rule
            if rule(state, first, last, silent):
                return True
        return False

    return pick


def _inline(table: Table, _every: tuple[Rule, ...], _flat: tuple[Rule, ...]) -> Rule:
    otherwise = table[""]

    def pick(state: StateInline, silent: bool) -> bool:
        for rule in table.get(state.src[state.pos], otherwise):
            if rule(state, silent):
                return True
        return False

    return pick
