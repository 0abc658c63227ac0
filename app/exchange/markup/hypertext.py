"""HTML and plain text of other programs, turned into Markdown."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from html import unescape

from app.exchange.items import NotCarried
from app.exchange.markup.cleaning import readable
from app.exchange.markup.code_lines import parts_of
from app.exchange.markup.escaping import fenced
from app.exchange.markup.hiding import MAY_HIDE, hiding_names
from app.exchange.markup.html_reader import HtmlReader
from app.exchange.markup.inline_text import (
    code_lines,
    escape_words,
    formulas_in,
    is_set_off,
    within_line,
    write_line,
    write_table,
)
from app.exchange.markup.nesting import DEEPEST, is_deep

_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_DRAWN = re.compile(r"<(?:svg|iframe)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class Turned:
    """Markdown, and what the HTML held that it cannot say."""

    text: str
    lost: tuple[str, ...] = ()


def to_markdown(html: str, picture: Callable[[str], str] | None = None) -> Turned:
    """Blocks of Markdown from any HTML; scripts and what is not seen are left out.

    So are pictures, but for those to whose address `picture` gives a name. Raises
    NotCarried for a formula without TeX.
    """
    if is_deep(html):
        seen = _COMMENT.sub("", html)
        if MAY_HIDE.search(seen):
            raise NotCarried(f"more than {DEEPEST} of its tags stand in each other")
        words = from_plain(unescape(re.sub(r"<[^<>]*>", " ", seen)))
        return Turned(
            words,
            (f"its tags are left out: more than {DEEPEST} stand in each other",),
        )
    reader = HtmlReader(picture or (lambda _address: ""), hiding_names(html))
    if _DRAWN.search(html):
        reader.lost.append(
            "a drawing or a frame is left out: say in words what it shows"
        )
    reader.feed(readable(html))
    reader.close()
    text = re.sub("^(?:&nbsp;)+", "", "\n\n".join(reader.finish()))
    return Turned(text, tuple(dict.fromkeys(reader.lost)))


def from_plain(words: str, *, wrapped: bool = False) -> str:
    """Markdown of text without markup: its lines, its code and its formulas stay.

    The lines of words are joined in a text that is `wrapped`.
    """
    blocks: list[str] = []
    for part in parts_of(with_whole_formulas(words)):
        if part.kind == "code":
            blocks.append(fenced("\n".join(part.lines)))
        elif part.kind == "table":
            head, _, *rows = [_cells(line) for line in part.lines]
            blocks.append(write_table([head, *rows]))
        else:
            blocks += _paragraphs((" ".join(part.lines),) if wrapped else part.lines)
    return "\n\n".join(blocks)


def with_whole_formulas(words: str) -> str:
    """The same words with each formula in one line."""
    done, at = [], 0
    for start, end in formulas_in(words):
        done += [words[at:start], " ".join(words[start:end].split())]
        at = end
    return "".join([*done, words[at:]])


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """Lines of words; a formula alone on its line is a paragraph of its own."""
    blocks: list[list[str]] = [[]]
    for line in escape_words("\n".join(lines)).split("\n"):
        words = " ".join(line.split())
        if is_set_off(words):
            blocks += [[write_line(words)], []]
        elif words:
            blocks[-1].append(write_line(words))
    return ["\\\n".join(block) for block in blocks if block]


def _cells(line: str) -> list[str]:
    cells = line.strip().strip("|").split("|")
    return [within_line(" ".join(escape_words(c).split())) for c in cells]


def one_line(markdown: str) -> str:
    """Blocks of Markdown joined into one line, as options and cells need them.

    Code blocks become code spans, one for each of their lines.
    """
    text = re.sub(
        r"^(`{3,})[^\n]*\n(.*?)\n\1$",
        lambda m: code_lines(m[2]),
        markdown,
        flags=re.DOTALL | re.MULTILINE,
    )
    lines = [line.strip() for line in text.replace("\\\n", "<br>").split("\n")]
    return "<br>".join(line for line in lines if line)
