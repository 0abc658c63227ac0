"""Words and formulas written as Markdown, and the marks that stress them."""

import functools
import re
from collections.abc import Iterator

from app.exchange.markup.escaping import code_span, escaped, line_escaped

EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "s": "~~", "del": "~~"}
BREAK = "\ue0fa"
"""Stands for a line break until the line is written."""
LINK = "\ue0fb"
"""Stands where the words of a link begin."""
_HARD = "\ue0fc"  # a space of code that no program takes away
_MARKS = list(dict.fromkeys(EMPHASIS.values()))
_SPACES = re.compile(r"[ \t\r\n\xa0]+")
_MATH = re.compile(r"\\[(\[]|\$\$")
_CLOSES = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_SET = "\ue0f9"  # around a formula that stood on a line of its own
_SET_OFF = re.compile(f"{_SET}(\\$[^$]+\\$){_SET}")


def escape_words(words: str) -> str:
    """Escape words, and keep formulas in TeX as formulas."""
    done, at = [], 0
    for start, end in find_formulas(words):
        tex = " ".join(words[start + 2 : end - 2].split())
        beside = words[max(0, start - 1) : start] + words[end : end + 1]
        if "$" in tex or not tex or tex.endswith("\\") or re.search(r"[\d\\$]", beside):
            continue  # Markdown would not take it for a formula
        inline = words.startswith("\\(", start)
        formula = f"${tex}$" if inline else f"{_SET}${tex}${_SET}"
        done += [escaped(words[at:start]), formula]
        at = end
    return "".join([*done, escaped(words[at:])])


def find_formulas(words: str) -> Iterator[tuple[int, int]]:
    """Where formulas begin and end, each with its marks; none within another.

    What was not closed once is not looked for again, so that no words are read twice.
    """
    open_ended: set[str] = set()
    at = 0
    while found := _MATH.search(words, at):
        mark, at = found[0], found.start() + 1
        if mark in open_ended:
            continue
        end = words.find(_CLOSES[mark], found.end() + 1)
        if end < 0:
            open_ended.add(mark)
            continue
        at = end + 2
        yield found.start(), at


def write_line(line: str) -> str:
    """A line of a paragraph; a formula alone on it is set off."""
    alone = _SET_OFF.fullmatch(line)
    if alone:
        return f"${alone[1]}$"
    return line_escaped(inline_formulas(line))


def is_display_formula(line: str) -> bool:
    """Whether a line is a formula alone."""
    return _SET_OFF.fullmatch(line) is not None


def inline_formulas(line: str) -> str:
    """The same where a formula cannot be set off, as in a cell."""
    return _SET_OFF.sub(r"\1", line)


def render_code_spans(code: str) -> str:
    """Code in one line of Markdown: a span for each of its lines, indents kept."""
    lines = (line.rstrip(" \xa0") for line in code.split(BREAK))
    return BREAK.join(code_span(_indented(line)) for line in lines if line.strip())


def render_code_lines(code: str) -> str:
    """The same for lines that stand below each other."""
    return render_code_spans(code.replace("\n", BREAK)).replace(BREAK, "\n").replace(_HARD, "\xa0")


def _indented(line: str) -> str:
    """A line whose indent is of spaces that no program takes away."""
    words = line.lstrip(" \xa0")
    indent = len(line) - len(words)
    words = words.replace("\xa0", " ")
    return _HARD * indent + words if indent > 1 else words


def mark_emphasis(tag: str, *, opening: bool) -> str:
    """A mark still to be placed: white space must move out of it."""
    code = _MARKS.index(EMPHASIS[tag])
    return chr((0xE0F0 if opening else 0xE0F4) + code)


def collapse_spaces(words: str) -> str:
    """Words with one space wherever browsers show one, and indents by hard spaces."""
    return _SPACES.sub(_squeezed, words)


def _squeezed(found: re.Match[str]) -> str:
    shown = re.sub("[ \t\r\n]+", " ", found[0]).lstrip(" ")
    return "\xa0" * len(shown) if shown.count("\xa0") > 1 else " "


def clean_line(line: str) -> str:
    """One line without stray space, its marks written and dangling ones dropped."""
    lines = map(_indent, line.replace(LINK, "").split(BREAK))
    text = BREAK.join(lines).strip(f" {BREAK}")
    text = re.sub(f"{BREAK}{{2,}}", BREAK, re.sub(" {2,}", " ", text))
    for code, mark in enumerate(_MARKS):
        opening, closing = chr(0xE0F0 + code), chr(0xE0F4 + code)
        pattern = re.compile(f"{opening}( *)([^{opening}{closing}]*?)( *){closing}")
        text = pattern.sub(functools.partial(_marked, mark), text)
        text = text.replace(opening, "").replace(closing, "")
    return text.strip(" ").replace("\xa0", "&nbsp;").replace(_HARD, "\xa0")


def _indent(line: str) -> str:
    """A line whose first hard spaces are an indent, and all others are spaces."""
    words = line.strip(" \xa0").replace("\xa0", " ")
    indent = line[: len(line) - len(line.lstrip(" \xa0"))].count("\xa0")
    return "\xa0" * indent * (indent > 1) + words


def _marked(mark: str, found: re.Match[str]) -> str:
    """A marked word; without marks where Markdown would not take them for such."""
    inside = found[2]
    if not inside:
        return found[1]
    before = found.string[: found.start()][-1:] if not found[1] else ""
    after = found.string[found.end() :][:1] if not found[3] else ""
    glued = (before.isalnum() and not inside[0].isalnum()) or (
        after.isalnum() and not inside[-1].isalnum()
    )
    dressed = inside if glued else f"{mark}{inside}{mark}"
    return f"{found[1]}{dressed}{found[3]}"


def write_table(rows: list[list[str]]) -> str:
    """A table, whose first row is its head."""
    width = max(map(len, rows))
    padded = [row + [""] * (width - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])
