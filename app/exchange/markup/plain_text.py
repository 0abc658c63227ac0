"""Lines of plain text told apart: words, tables, and code, whose indents count."""

import bisect
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,}) *[\w+#.-]* *")
_END = re.compile(r"\s*(?:`{3,}|~{3,})\s*")
_NEAR = 20  # fences that are looked at for the one that closes another
_ITEM = re.compile(r"\s*(?:[-*•–]|\w{1,3}[.)]|\(\w{1,3}\))\s")
_SIGN = re.compile(r"[{}()\[\];=<>]|->|\+\+|^\s*(?:#|//|--)\s*\w|\w:$")
_WORD = re.compile(
    r"\s*(?:begin|break|case|class|continue|def|do|done|elif|else|end|except|fi|finally"
    r"|fn|for|from|func|function|if|import|let|pass|print|return|switch|then|try|var"
    r"|while|with)\b"
)
_SENTENCE = re.compile("[.?!…]['\")”»]?$")
_FORMULA = re.compile(r"\s*(?:\\[\[(]|\$\$)")
_SET_APART = re.compile(r"\S(?: {3,}|\t+)\S")  # columns made of spaces or tabs
_RULE = re.compile(r"\|?(?: *:?-{2,}:? *\|)+(?: *:?-{2,}:? *)?")
_DEEP = 2  # spaces from which on a line is indented on purpose


class Part(NamedTuple):
    """Some lines that are one thing."""

    kind: Literal["words", "code", "table"]
    lines: tuple[str, ...]


def split_parts(text: str) -> Iterator[Part]:
    """A text cut into paragraphs of words, blocks of code and tables.

    Code is what stands between fences, what is indented and looks like code with the
    lines around it, and what is set in columns by spaces.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends = [n for n, line in enumerate(lines) if _END.fullmatch(line)]
    free: list[str] = []
    at = 0
    while at < len(lines):
        end = _end_of_fence(lines, at, ends)
        if end:
            yield from _free(free)
            free = []
            code = textwrap.dedent("\n".join(lines[at + 1 : end])).expandtabs(4)
            yield Part("code", tuple(code.split("\n")))
            at = end
        else:
            free.append(lines[at].rstrip())
        at += 1
    yield from _free(free)


def _end_of_fence(lines: Sequence[str], at: int, ends: Sequence[int]) -> int:
    """The line among `ends` that closes the fence which a line opens; 0 for none."""
    opened = _FENCE.fullmatch(lines[at])
    if not opened:
        return 0
    following = ends[bisect.bisect_right(ends, at) :][:_NEAR]
    closes = (n for n in following if lines[n].strip().startswith(opened["mark"]))
    return next(closes, 0)


def _free(lines: Sequence[str]) -> Iterator[Part]:
    """The parts of lines between fences."""
    is_code = _code_in(lines)
    at = 0
    while at < len(lines):
        end = at + 1
        if not lines[at]:
            at = end
            continue
        while end < len(lines) and is_code[end] == is_code[at] and (lines[end] or is_code[at]):
            end += 1
        found = lines[at:end]
        if is_code[at]:
            code = textwrap.dedent("\n".join(found).expandtabs(4)).rstrip()
            yield Part("code", tuple(code.split("\n")))
        elif len(found) > 1 and found[0].startswith("|") and _RULE.fullmatch(found[1]):
            yield Part("table", tuple(found))
        else:
            yield Part("words", tuple(found))
        at = end


def _code_in(lines: Sequence[str]) -> list[bool]:
    """Which lines are code, with the empty ones between them."""
    found = [False] * len(lines)
    spaces = [len(w) - len(w.lstrip()) for w in (x.expandtabs(4) for x in lines)]
    base = min((s for s, line in zip(spaces, lines, strict=True) if line), default=0)
    begin = 0
    for at in range(len(lines) + 1):
        if at < len(lines) and lines[at]:
            continue
        own = range(begin, at)
        deep = [n for n in own if spaces[n] - base >= _DEEP and not _FORMULA.match(lines[n])]
        for n in _of_paragraph(lines, own, deep):
            found[n] = True
        begin = at + 1
    following = False
    ahead = [False] * len(lines)  # whether the next line that is not empty is code
    for at in range(len(lines) - 1, -1, -1):
        following = found[at] if lines[at] else following
        ahead[at] = following
    for at in range(1, len(lines)):
        found[at] |= not lines[at] and found[at - 1] and ahead[at]
    return found


def _of_paragraph(lines: Sequence[str], own: range, deep: list[int]) -> Iterator[int]:
    """The lines of a paragraph that are code; `deep` are those that are indented."""
    above = deep[0] - 1 if deep else -1
    opened = above in own and not _is_prose(lines[above])
    signs = any(_SIGN.search(lines[n]) and not _ITEM.match(lines[n]) for n in deep)
    if deep and (opened or signs):
        first, last = deep[0], deep[-1]
        while first > own.start and not _is_prose(lines[first - 1]):
            first -= 1
        while last + 1 < own.stop and not _is_prose(lines[last + 1]):
            last += 1
        yield from range(first, last + 1)
        return
    apart = [bool(_SET_APART.search(lines[n])) for n in own]
    for place, n in enumerate(own):
        beside = apart[max(0, place - 1) : place] + apart[place + 1 : place + 2]
        if apart[place] and any(beside):
            yield n


def _is_prose(line: str) -> bool:
    """Whether a line beside code is a sentence rather than a line of it.

    >>> _is_prose("What does f(x) return?"), _is_prose("for i in range(3):")
    (True, False)
    """
    if _SENTENCE.search(line):
        return True
    return not _SIGN.search(line.removesuffix(":")) and not _WORD.match(line)
