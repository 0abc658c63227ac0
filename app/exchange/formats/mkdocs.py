"""Questions of mkdocs-quiz: check boxes and gaps between `<quiz>` and `</quiz>`."""

import dataclasses
import re
import textwrap

from app.exchange.items import (
    BLANK,
    Blank,
    Item,
    Kind,
    NotCarried,
    Option,
    Reading,
    Remark,
)
from app.exchange.markup.texts import Losses, read_text

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_OPTION = re.compile(r"^[-*] \[([ xX]?)\] ?(.*)$")
_GAP = re.compile(r"\[\[([^\[\]]+)\]\]")
_RULE = re.compile(r"^-{3,}\s*$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, slots=True)
class _Quiz:
    line: int
    text: str


def read_mkdocs(text: str) -> Reading:
    """Every question of a page; examples inside code blocks are not questions."""
    items: list[Item] = []
    refused: list[Remark] = []
    lost: list[Remark] = []
    for quiz in _quizzes(text):
        losses = Losses()
        name = next((t.strip() for t in quiz.text.split("\n") if t.strip()), "")[:50]
        try:
            item = _item(quiz, losses)
        except NotCarried as error:
            refused.append(Remark(name or "(nameless)", quiz.line, str(error)))
            continue
        items.append(item)
        lost += [Remark(name, quiz.line, what) for what in losses.found]
    return Reading(tuple(items), tuple(refused), tuple(lost))


def _quizzes(text: str) -> list[_Quiz]:
    found: list[_Quiz] = []
    lines: list[str] | None = None
    fence, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if lines is None and mark:
            fence = _after(fence, mark[1])
        elif lines is None and line.strip() == "<quiz>" and not fence:
            lines, start = [], number
        elif lines is not None and line.strip() == "</quiz>":
            found.append(_Quiz(start, textwrap.dedent("\n".join(lines))))
            lines = None
        elif lines is not None:
            lines.append(line)
    return found


def _after(fence: str, mark: str) -> str:
    """The fence that is open after a line of marks."""
    if not fence:
        return mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence)
    return "" if closes else fence


def _item(quiz: _Quiz, losses: Losses) -> Item:
    if "![" in quiz.text:
        losses.add("a picture is left out")
    lines = quiz.text.split("\n")
    first = next((n for n, line in enumerate(lines) if _OPTION.match(line)), None)
    if first is None:
        return _cloze(quiz, losses)
    stem = read_text("\n".join(lines[:first]), "markdown", losses)
    if not stem:
        raise NotCarried("it has no text")
    options, rest = _options(lines[first:], losses)
    right = sum(o.right for o in options)
    kind: Kind = "multiple" if right > 1 else "single"
    if {o.text.strip(" .").lower() for o in options} == {"true", "false"}:
        kind = "true-false"
    content = read_text(rest, "markdown", losses)
    return Item("", kind, stem, options, explanation=content, line=quiz.line)


def _options(lines: list[str], losses: Losses) -> tuple[tuple[Option, ...], str]:
    """The options with their feedback, and the text behind them."""
    made: list[tuple[bool, list[str], list[str]]] = []
    at = 0
    for at, line in enumerate(lines):  # noqa: B007 - used behind the loop
        option = _OPTION.match(line)
        if option:
            made.append((option[1].lower() == "x", [option[2]], []))
        elif line.lstrip().startswith(">"):
            made[-1][2].append(line.lstrip()[1:].strip())
        elif line.startswith(("  ", "\t")) and line.strip():
            made[-1][1].append(line.strip())
        elif line.strip():
            break
    else:
        at = len(lines)
    options = tuple(
        Option(
            read_text("\n".join(words), "markdown", losses),
            right,
            read_text("\n".join(notes), "markdown", losses),
        )
        for right, words, notes in made
    )
    return options, "\n".join(lines[at:])


def _cloze(quiz: _Quiz, losses: Losses) -> Item:
    body, *rest = _RULE.split(quiz.text, maxsplit=1)
    gaps = _GAP.findall(body)
    if not gaps:
        raise NotCarried("it has neither options nor gaps")
    text = read_text(_GAP.sub(BLANK, body), "markdown", losses)
    if text.count(BLANK) != len(gaps):
        raise NotCarried("a gap stands where none can be, for example in code")
    blanks = tuple(Blank((" ".join(g.split()),)) for g in gaps)
    content = read_text(rest[0], "markdown", losses) if rest else ""
    stem = "Complete the text."
    return Item(
        "", "cloze", stem, text=text, blanks=blanks, explanation=content, line=quiz.line
    )
