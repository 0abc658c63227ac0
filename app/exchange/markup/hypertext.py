"""HTML of other programs, cleaned and turned into Markdown."""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from html import unescape
from html.parser import HTMLParser

import nh3

from app.exchange.markup.escaping import code_span, escaped, fenced, line_escaped
from app.exchange.markup.nesting import DEEPEST, is_deep

_INLINE = {"b": "**", "strong": "**", "i": "*", "em": "*", "s": "~~", "del": "~~"}
_KEPT = {"sub", "sup", "kbd"}
_CODE = {"code", "tt", "samp", "var"}
_BLOCKS = {"p", "div", "section", "article", "center", "dl", "dt", "dd", "figure"}
_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_TABLE = {"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"}
_TAGS = (
    set(_INLINE)
    | _KEPT
    | _CODE
    | _BLOCKS
    | _HEADINGS
    | _TABLE
    | {"br", "a", "img", "ul", "ol", "li", "pre", "blockquote", "span", "hr", "q", "u"}
)
_EQUATION = "data-equation-content"  # the formula of which Canvas shows a picture
_DROPPED = {"script", "style", "object", "applet", "noscript", "template", "title"}
_MATH = re.compile(r"\\[(\[]|\$\$")
_CLOSES = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_SET = "\ue0f9"  # around a formula that stood on a line of its own
_SET_OFF = re.compile(f"{_SET}(\\$[^$]+\\$){_SET}")


@dataclasses.dataclass(frozen=True, slots=True)
class Turned:
    """Markdown, and what the HTML held that it cannot say."""

    text: str
    lost: tuple[str, ...] = ()


def to_markdown(html: str, picture: Callable[[str], str] | None = None) -> Turned:
    """Blocks of Markdown from any HTML; scripts and styles are left out.

    So are pictures, but for those to whose address `picture` gives a name.
    """
    if is_deep(html):
        words = from_plain(unescape(re.sub(r"<[^<>]*>", " ", html)))
        return Turned(
            words, (f"its tags are left out: more than {DEEPEST} stand in each other",)
        )
    clean = nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags=_DROPPED,
        attributes={"a": {"href"}, "img": {"src", "alt", _EQUATION}},
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )
    reader = _Reader(picture or (lambda _address: ""))
    reader.feed(clean)
    reader.close()
    return Turned("\n\n".join(reader.finish()), tuple(dict.fromkeys(reader.lost)))


def from_plain(words: str) -> str:
    """Markdown of text without markup; empty lines part paragraphs, math is kept."""
    parts = re.split(r"\n[ \t]*\n", words.replace("\r\n", "\n"))
    blocks = [_lined(" ".join(_inline(p).split())) for p in parts]
    return "\n\n".join(b for b in blocks if b)


def one_line(markdown: str) -> str:
    """Blocks of Markdown joined into one line, as options and cells need them.

    Code blocks become code spans.
    """
    text = re.sub(
        r"^(`{3,})[^\n]*\n(.*?)\n\1$",
        lambda m: code_span(" ".join(m[2].split())),
        markdown,
        flags=re.DOTALL | re.MULTILINE,
    )
    lines = [line.strip() for line in text.replace("\\\n", "<br>").split("\n")]
    return "<br>".join(line for line in lines if line)


def _inline(words: str) -> str:
    """Escape words, and keep formulas in TeX as formulas."""
    done, at = [], 0
    for start, end in _formulas(words):
        tex = " ".join(words[start + 2 : end - 2].split())
        beside = words[max(0, start - 1) : start] + words[end : end + 1]
        if "$" in tex or not tex or tex.endswith("\\") or re.search(r"[\d\\$]", beside):
            continue  # Markdown would not take it for a formula
        inline = words.startswith("\\(", start)
        formula = f"${tex}$" if inline else f"{_SET}${tex}${_SET}"
        done += [escaped(words[at:start]), formula]
        at = end
    return "".join([*done, escaped(words[at:])])


def _formulas(words: str) -> Iterator[tuple[int, int]]:
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


def _lined(line: str) -> str:
    """A line of a paragraph; a formula alone on it is set off."""
    alone = _SET_OFF.fullmatch(line)
    if alone:
        return f"${alone[1]}$"
    return line_escaped(_SET_OFF.sub(r"\1", line))


class _Reader(HTMLParser):
    """Builds blocks from a cleaned fragment; nesting is bounded by the cleaner."""

    def __init__(self, picture: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self.picture = picture
        self.blocks: list[str] = []
        self.line = ""
        self.prefix: list[str] = []
        self.lists: list[tuple[str, int]] = []
        self.links: list[str] = []
        self.code: str | None = None
        self.pre: str | None = None
        self.rows: list[list[str]] | None = None
        self.lost: list[str] = []

    def finish(self) -> list[str]:
        self._flush()
        return _joined(self.blocks)

    # --- events ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.pre is not None:
            self.pre += "\n" if tag == "br" else ""
        elif tag in _INLINE or tag in _KEPT or tag in _CODE:
            self._open_inline(tag)
        elif tag in {"a", "img", "br"}:
            self._single(tag, dict(attrs))
        elif tag in _TABLE:
            self._open_table(tag)
        elif tag not in {"span", "q", "u"}:
            self._open_block(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.pre is not None and tag != "pre":
            return
        if tag in _INLINE or tag in _KEPT or tag in _CODE:
            self._close_inline(tag)
        elif tag == "a" and self.links:
            self._close_link(self.links.pop())
        elif tag in _TABLE:
            self._close_table(tag)
        elif tag not in {"span", "q", "u", "br", "img", "a"}:
            self._close_block(tag)

    def handle_data(self, data: str) -> None:
        if self.pre is not None:
            self.pre += data
        elif self.code is not None:
            self.code += data
        else:
            self.line += _inline(re.sub(r"[ \t\r\n\xa0]+", " ", data))

    # --- words ---

    def _open_inline(self, tag: str) -> None:
        if tag in _CODE:
            self.code = ""
        elif self.code is None:
            self.line += f"<{tag}>" if tag in _KEPT else _mark(tag, opening=True)

    def _close_inline(self, tag: str) -> None:
        if tag in _CODE and self.code is not None:
            words = " ".join(self.code.split())
            self.line += code_span(words) if words else ""
            self.code = None
        elif self.code is None and tag not in _CODE:
            self.line += f"</{tag}>" if tag in _KEPT else _mark(tag, opening=False)

    def _single(self, tag: str, given: dict[str, str | None]) -> None:
        if tag == "br":
            self.line = self.line.rstrip() + "\ue0fa"
        elif tag == "img" and (formula := given.get(_EQUATION)):
            self.line += _inline(f"\\({formula}\\)")
        elif tag == "img":
            alt = " ".join((given.get("alt") or "").split())
            self.line += self._picture(alt, given.get("src") or "")
        else:
            self.links.append(given.get("href") or "")
            self.line += "\ue0fb"

    def _picture(self, alt: str, address: str) -> str:
        name = self.picture(address)
        if not name:
            self.lost.append(f"a picture{f' ({alt[:40]})' if alt else ''} is left out")
            return escaped(alt)
        if not alt:
            self.lost.append("a picture has no words: say what it shows")
        return f"![{escaped(alt or 'Picture')}]({name})"

    def _close_link(self, address: str) -> None:
        before, _, inside = self.line.rpartition("\ue0fb")
        usable = re.match(r"^https?://[^\s<>()\\]+$", address)
        linked = f"[{inside.strip()}]({address})" if usable else inside
        self.line = before + (linked if inside.strip() else inside)

    # --- blocks ---

    def _open_block(self, tag: str) -> None:
        if self.rows is not None:
            self.line += " "
            return
        self._flush()
        if tag == "pre":
            self.pre = ""
        elif tag in {"ul", "ol"}:
            self.lists.append((tag, 0))
        elif tag == "li" and self.lists:
            kind, count = self.lists.pop()
            self.lists.append((kind, count + 1))
            mark = f"{count + 1}. " if kind == "ol" else "- "
            self.prefix.append(mark)
        elif tag == "blockquote":
            self.prefix.append("> ")

    def _close_block(self, tag: str) -> None:
        if self.rows is not None:
            self.line += " "
            return
        if tag == "pre" and self.pre is not None:
            text, self.pre = self.pre.strip("\n"), None
            if text.strip():
                self._add(fenced(text))
            return
        if tag in _HEADINGS and self.line.strip():
            self.line = (
                f"**{self.line.strip()}**" if "*" not in self.line else self.line
            )
        self._flush()
        if tag in {"ul", "ol"} and self.lists:
            self.lists.pop()
        elif tag in {"li", "blockquote"} and self.prefix:
            self.prefix.pop()

    def _flush(self) -> None:
        text = _tidy(self.line)
        self.line = ""
        if text:
            self._add("\\\n".join(_lined(t) for t in text.split("\ue0fa")))

    def _add(self, block: str) -> None:
        """Put a block behind the marks of the lists and quotes it stands in."""
        for depth in range(len(self.prefix) - 1, -1, -1):
            mark = self.prefix[depth]
            later = mark if mark == "> " else " " * len(mark)
            lines = block.split("\n")
            block = "\n".join([mark + lines[0], *(later + line for line in lines[1:])])
            self.prefix[depth] = later
        self.blocks.append(block)

    # --- tables ---

    def _open_table(self, tag: str) -> None:
        if tag == "table" and self.rows is None:
            self._flush()
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.line = ""

    def _close_table(self, tag: str) -> None:
        if self.rows is None:
            return
        if tag in {"td", "th"} and self.rows:
            cell = _SET_OFF.sub(r"\1", _tidy(self.line))
            self.rows[-1].append(cell.replace("\ue0fa", "<br>"))
            self.line = ""
        elif tag == "table":
            rows, self.rows, self.line = [r for r in self.rows if r], None, ""
            if any(any(row) for row in rows):
                self._add(_table(rows))


def _mark(tag: str, *, opening: bool) -> str:
    """A mark still to be placed: white space must move out of it."""
    code = list(dict.fromkeys(_INLINE.values())).index(_INLINE[tag])
    return chr((0xE0F0 if opening else 0xE0F4) + code)


def _tidy(line: str) -> str:
    """One line without stray space, its marks written and dangling ones dropped."""
    text = re.sub(r" *\ue0fa *", "\ue0fa", line.replace("\ue0fb", "")).strip(" \ue0fa")
    text = re.sub(r"\ue0fa{2,}", "\ue0fa", re.sub(" {2,}", " ", text))
    for code, mark in enumerate(dict.fromkeys(_INLINE.values())):
        opening, closing = chr(0xE0F0 + code), chr(0xE0F4 + code)
        pattern = re.compile(f"{opening}( *)([^{opening}{closing}]*?)( *){closing}")
        text = pattern.sub(functools.partial(_marked, mark), text)
        text = text.replace(opening, "").replace(closing, "")
    return text.strip()


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


def _table(rows: list[list[str]]) -> str:
    width = max(map(len, rows))
    padded = [row + [""] * (width - len(row)) for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in padded]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])


def _joined(blocks: list[str]) -> list[str]:
    """Items of one list stand together; everything else is parted by a line."""
    out: list[str] = []
    for block in blocks:
        item = re.match(r"(?: *)(?:- |\d+\. )", block)
        nested = block.startswith(" ")
        if out and (item or nested) and re.match(r" *(?:- |\d+\. )", out[-1]):
            out[-1] += f"\n{block}" if item else f"\n\n{block}"
        elif out and block.startswith("> ") and out[-1].startswith("> "):
            out[-1] += f"\n>\n{block}"
        else:
            out.append(block)
    return out
