"""HTML and plain text of other programs, turned into Markdown."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from html import unescape

from app.exchange.items import ItemSkippedError
from app.exchange.markup.cleaning import clean_for_reading
from app.exchange.markup.escaping import fenced
from app.exchange.markup.html_reader import HtmlReader
from app.exchange.markup.inline_text import (
    escape_words,
    find_formulas,
    inline_formulas,
    is_display_formula,
    render_code_lines,
    write_line,
    write_table,
)
from app.exchange.markup.nesting import DEEPEST, is_deep
from app.exchange.markup.plain_text import split_parts
from app.exchange.markup.visibility import HIDING_MARKUP, find_hiding_selectors

_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_DRAWN = re.compile(r"<(?:svg|iframe)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class ConvertedHtml:
    """Markdown, and what the HTML held that it cannot say."""

    text: str
    lost: tuple[str, ...] = ()


def to_markdown(html: str, picture: Callable[[str], str] | None = None) -> ConvertedHtml:
    """Blocks of Markdown from any HTML; scripts and what is not seen are left out.

    So are pictures, but for those to whose address `picture` gives a name. Raises
    NotCarried for a formula without TeX.
    """
    if is_deep(html):
        seen = _COMMENT.sub("", html)
        if HIDING_MARKUP.search(seen):
            raise ItemSkippedError(f"more than {DEEPEST} of its tags stand in each other")
        words = from_plain(unescape(re.sub(r"<[^<>]*>", " ", seen)))
        return ConvertedHtml(
            words,
            (f"its tags are left out: more than {DEEPEST} stand in each other",),
        )
    reader = HtmlReader(picture or (lambda _address: ""), find_hiding_selectors(html))
    if _DRAWN.search(html):
        reader.lost.append("a drawing or a frame is left out: say in words what it shows")
    reader.feed(clean_for_reading(html))
    reader.close()
    text = re.sub("^(?:&nbsp;)+", "", "\n\n".join(reader.finish()))
    return ConvertedHtml(text, tuple(dict.fromkeys(reader.lost)))


def from_plain(words: str, *, wrapped: bool = False) -> str:
    """Markdown of text without markup: its lines, its code and its formulas stay.

    The lines of words are joined in a text that is `wrapped`.
    """
    blocks: list[str] = []
    for part in split_parts(join_formula_lines(words)):
        if part.kind == "code":
            blocks.append(fenced("\n".join(part.lines)))
        elif part.kind == "table":
            head, _, *rows = [_cells(line) for line in part.lines]
            blocks.append(write_table([head, *rows]))
        else:
            blocks += _paragraphs((" ".join(part.lines),) if wrapped else part.lines)
    return "\n\n".join(blocks)


def join_formula_lines(words: str) -> str:
    """The same words with each formula in one line."""
    done, at = [], 0
    for start, end in find_formulas(words):
        done += [words[at:start], " ".join(words[start:end].split())]
        at = end
    return "".join([*done, words[at:]])


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """Lines of words; a formula alone on its line is a paragraph of its own."""
    blocks: list[list[str]] = [[]]
    for line in escape_words("\n".join(lines)).split("\n"):
        words = " ".join(line.split())
        if is_display_formula(words):
            blocks += [[write_line(words)], []]
        elif words:
            blocks[-1].append(write_line(words))
    return ["\\\n".join(block) for block in blocks if block]


def _cells(line: str) -> list[str]:
    cells = line.strip().strip("|").split("|")
    return [inline_formulas(" ".join(escape_words(c).split())) for c in cells]


def one_line(markdown: str) -> str:
    """Blocks of Markdown joined into one line, as options and cells need them.

    Code blocks become code spans, one for each of their lines.
    """
    text = re.sub(
        r"^(`{3,})[^\n]*\n(.*?)\n\1$",
        lambda m: render_code_lines(m[2]),
        markdown,
        flags=re.DOTALL | re.MULTILINE,
    )
    lines = [line.strip() for line in text.replace("\\\n", "<br>").split("\n")]
    return "<br>".join(line for line in lines if line)
