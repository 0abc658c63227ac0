"""Cleaned HTML read into blocks of Markdown."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

from app.exchange.items import ItemSkippedError
from app.exchange.markup.cleaning import EQUATION
from app.exchange.markup.escaping import escaped, fenced, line_escaped
from app.exchange.markup.inline_text import (
    BREAK,
    EMPHASIS,
    LINK,
    clean_line,
    collapse_spaces,
    escape_words,
    inline_formulas,
    mark_emphasis,
    render_code_spans,
    write_line,
    write_table,
)
from app.exchange.markup.list_labels import OpenList, start_list
from app.exchange.markup.visibility import has_dark_background, is_hidden

_KEPT = frozenset({"sub", "sup", "kbd"})
_CODE = frozenset({"code", "tt", "samp", "var"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TABLE = frozenset({"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"})
_LISTS = frozenset({"ul", "ol"})
_BLOCKS = (
    _HEADINGS
    | _LISTS
    | {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "center",
            "dd",
            "details",
            "div",
        ),
        *(
            "dl",
            "dt",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "form",
            "header",
            "hr",
        ),
        *("legend", "li", "main", "nav", "p", "pre", "section", "summary"),
    }
)
_VOID = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"})
_MEDIA = frozenset({"applet", "audio", "canvas", "embed", "object", "video"})
_FIELDS = frozenset({"input", "meter", "progress", "select"})
_UNMARKED = {"u": "underlining", "ins": "underlining", "mark": "highlighting"}
_JOINS = re.compile(r"[\d\\$]")  # before a formula it would make words of it
_SPACED = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)


class HtmlReader(HTMLParser):
    """Builds blocks from a cleaned fragment; nesting is bounded by the cleaner."""

    def __init__(self, picture: Callable[[str], str], hiding: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.picture = picture
        self.hiding = hiding
        self.hidden = 0  # how many open elements are left out
        self.veiled = False  # whether they are, since nobody sees them
        self.open: list[tuple[bool, bool]] = []  # lines count in it; it is dark
        self.blocks: list[str] = []
        self.line = ""
        self.label = ""
        self.prefix: list[str] = []
        self.lists: list[OpenList] = []
        self.links: list[str] = []
        self.code: list[str] | None = None
        self.in_code = 0
        self.pre: str | None = None
        self.rows: list[list[str]] | None = None
        self.lost: list[str] = []

    def finish(self) -> list[str]:
        self._flush()
        return _joined(self.blocks)

    # --- events ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        lines, dark = self.open[-1] if self.open else (False, False)
        if self.hidden or self._is_left_out(tag, given, dark=dark):
            self.hidden += tag not in _VOID
            return
        if tag not in _VOID:
            spaced = _SPACED.search(given.get("style") or "") is not None
            self.open.append((lines or spaced, dark or has_dark_background(given)))
        if self.pre is not None:
            self.pre += "\n" if tag == "br" else ""
        elif self.code is not None:
            self._within_code(tag)
        elif tag in EMPHASIS or tag in _KEPT or tag in _CODE:
            self._open_inline(tag)
        elif tag in _TABLE:
            self._open_table(tag, given)
        elif tag in _BLOCKS:
            self._open_block(tag, given)
        else:
            self._single(tag, given)

    def handle_endtag(self, tag: str) -> None:
        if self.hidden:
            self.hidden -= 1
            return
        if self.open:
            self.open.pop()
        if self.pre is not None and tag != "pre":
            return
        if self.code is not None and tag not in _CODE and not self._ends_code(tag):
            self._within_code(tag)
        elif tag in _BLOCKS and self.rows is not None:
            self._close_in_cell(tag)
        elif tag in _BLOCKS:
            self._close_block(tag)
        elif tag in _TABLE:
            self._close_table(tag)
        else:
            self._close_inline(tag)

    def handle_data(self, data: str) -> None:
        if self.hidden:
            if data.strip() and self.veiled:
                self._lose("words that its HTML hides are left out")
        elif self.pre is not None:
            self.pre += data
        elif self.code is not None:
            self.code.append(self._code_of(data))
        elif self.open and self.open[-1][0]:
            self.line += BREAK.join(escape_words(collapse_spaces(x)) for x in data.split("\n"))
        else:
            # A digit right behind a formula would make words of it.
            behind = self.line[-1:] == "$" and self.line[-2:] != "\\$"
            apart = " " if behind and data[:1].isdigit() else ""
            self.line += apart + escape_words(collapse_spaces(data))

    def _code_of(self, data: str) -> str:
        """Words within code, with the lines and spaces that count there."""
        if self.open and self.open[-1][0]:
            return data.replace("\n", BREAK)
        words = re.sub(r"[ \t\r\n]+", " ", data)
        return words.lstrip(" ") if self.code and self.code[-1][-1:] == " " else words

    def _is_left_out(self, tag: str, given: dict[str, str | None], *, dark: bool) -> bool:
        self.veiled = is_hidden(tag, given, self.hiding, dark=dark) or (
            self.hidden > 0 and self.veiled
        )
        if self.veiled:
            return True
        if tag in _MEDIA | _FIELDS:
            what = "a field" if tag in _FIELDS else "a recording or an embedded object"
            self._lose(f"{what} is left out: say in words what it holds")
        return tag in _MEDIA | _FIELDS

    def _lose(self, what: str) -> None:
        self.lost.append(what)

    # --- words ---

    def _open_inline(self, tag: str) -> None:
        if tag in _CODE:
            self.code, self.in_code = [], 1
        else:
            self.line += f"<{tag}>" if tag in _KEPT else mark_emphasis(tag, opening=True)

    def _close_inline(self, tag: str) -> None:
        if tag in _CODE:
            self._close_code()
        elif tag in _KEPT:
            self.line += f"</{tag}>"
        elif tag in EMPHASIS:
            self.line += mark_emphasis(tag, opening=False)
        elif tag == "a" and self.links:
            self._close_link(self.links.pop())
        elif tag == "q":
            self.line += "\u201d"

    def _close_code(self) -> None:
        self.in_code -= 1
        if self.code is not None and self.in_code <= 0:
            code, self.code = "".join(self.code), None
            self.line += render_code_spans(code.strip(BREAK))

    def _ends_code(self, tag: str) -> bool:
        """Whether an element ends that is code as a whole: `pre` in a cell."""
        if tag == "pre" and self.rows is not None:
            self._close_code()
        return tag == "pre" and self.rows is not None

    def _within_code(self, tag: str) -> None:
        """A tag within code: nothing of it counts but where it breaks a line."""
        if self.code is not None and (tag == "br" or tag in _BLOCKS or tag in _TABLE):
            self.code.append(BREAK)
        self.in_code += tag in _CODE

    def _single(self, tag: str, given: dict[str, str | None]) -> None:
        if tag == "br":
            self.line = self.line.rstrip() + BREAK
        elif tag == "q":
            self.line += "\u201c"
        elif tag in _UNMARKED:
            self._lose(f"{_UNMARKED[tag]} is left out: mark the words if it matters")
        elif tag == "img" and (formula := given.get(EQUATION)) is not None:
            if not formula.strip():
                raise ItemSkippedError("its formulas are in MathML without TeX")
            apart = " " if _JOINS.fullmatch(self.line[-1:]) else ""
            self.line += apart + escape_words(f"\\({formula}\\)")
        elif tag == "img":
            alt = " ".join((given.get("alt") or "").split())
            self.line += self._picture(alt, given.get("src") or "")
        elif tag == "a":
            self.links.append(given.get("href") or "")
            self.line += LINK

    def _picture(self, alt: str, address: str) -> str:
        name = self.picture(address)
        if not name:
            self._lose(f"a picture{f' ({alt[:40]})' if alt else ''} is left out")
            return escaped(alt)
        if not alt:
            self._lose("a picture has no words: say what it shows")
        return f"![{escaped(alt or 'Picture')}]({name})"

    def _close_link(self, address: str) -> None:
        before, _, inside = self.line.rpartition(LINK)
        usable = re.match(r"^https?://[^\s<>()\\]+$", address)
        linked = f"[{inside.strip()}]({address})" if usable else inside
        if address and not usable and inside.strip():
            self._lose(f"the link to {address[:60]} is left out: write the address out")
        self.line = before + (linked if inside.strip() else inside)

    # --- blocks ---

    def _open_block(self, tag: str, given: dict[str, str | None]) -> None:
        if self.rows is not None:
            self._open_in_cell(tag, given)
            return
        self._flush()
        if tag == "pre":
            self.pre = ""
        elif tag in _LISTS:
            self._place_label()
            self.lists.append(start_list(tag, given))
            if self.lists[-1].is_bare:
                self._lose("a list that counts down has no numbers here: add them")
            if self.lists[-1].is_foreign:
                self._lose("a list has other numbers here: look at what names them")
        elif tag == "li" and self.lists:
            self.prefix.append(self._next_mark(given))
        elif tag == "blockquote":
            self.prefix.append("> ")

    def _open_in_cell(self, tag: str, given: dict[str, str | None]) -> None:
        """A block in a cell is a line of it, code is a span, items have their marks."""
        self.line += BREAK
        if tag == "pre":
            self.open[-1] = (True, self.open[-1][1])
            self.code, self.in_code = [], 1
        elif tag in _LISTS:
            self.lists.append(start_list(tag, given))
        elif tag == "li" and self.lists:
            mark, label = self.lists[-1].next_item(given)
            self.line += f"{mark.replace('-', '•') or f'{label} '}"

    def _close_in_cell(self, tag: str) -> None:
        self.line += BREAK
        if tag in _LISTS and self.lists:
            self.lists.pop()

    def _next_mark(self, given: dict[str, str | None]) -> str:
        """What stands before the next item: a mark of Markdown, or a label in words."""
        mark, label = self.lists[-1].next_item(given)
        self.label = line_escaped(label)
        return mark

    def _close_block(self, tag: str) -> None:
        if tag == "pre" and self.pre is not None:
            text, self.pre = self.pre.strip("\n"), None
            if text.strip():
                self._place_label()
                self._add(fenced(text))
            return
        if tag in _HEADINGS and self.line.strip():
            self.line = f"**{self.line.strip()}**" if "*" not in self.line else self.line
        self._flush()
        if tag == "li":
            self._place_label()
        if tag in _LISTS and self.lists:
            self.lists.pop()
        elif tag in {"li", "blockquote"} and self.prefix:
            self.prefix.pop()

    def _flush(self) -> None:
        text = clean_line(self.line)
        self.line = ""
        if text:
            first, *others = text.split(BREAK)
            label, self.label = self.label, ""
            begin = f"{label} {inline_formulas(first)}" if label else write_line(first)
            self._add("\\\n".join([begin, *map(write_line, others)]))

    def _place_label(self) -> None:
        """Put a label down before what cannot stand in its line."""
        if self.label:
            label, self.label = self.label, ""
            self._add(label)

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

    def _open_table(self, tag: str, given: dict[str, str | None]) -> None:
        if tag == "table" and self.rows is None:
            self._flush()
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in {"td", "th", "caption"}:
            self.line = ""
            if {given.get("colspan", "1"), given.get("rowspan", "1")} - {"1", None}:
                self._lose("a cell of a table that spans others is a single one here")

    def _close_table(self, tag: str) -> None:
        if self.rows is None:
            return
        if tag == "caption":
            rows, self.rows = self.rows, None
            self._flush()
            self.rows = rows
        elif tag in {"td", "th"} and self.rows:
            cell = inline_formulas(clean_line(self.line))
            self.rows[-1].append(cell.replace(BREAK, "<br>"))
            self.line = ""
        elif tag == "table":
            rows, self.rows, self.line = [r for r in self.rows if r], None, ""
            if any(any(row) for row in rows):
                self._place_label()
                self._add(write_table(rows))


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
