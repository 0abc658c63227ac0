"""Convert foreign HTML to Markdown.

An HTML parser does work for every open tag, so nested tags cost the square of their number. The
depth counted here is never less than the one the parser finds.
"""

import dataclasses
import re
import string
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple

from app.import_export.html_sanitizer import (
    EQUATION_ATTRIBUTE,
    HIDING_MARKUP,
    find_hiding_selectors,
    has_nonwhite_background,
    is_element_hidden,
    sanitize_html_for_parsing_only,
)
from app.import_export.items import ItemSkippedError
from app.import_export.markdown_text import (
    EMPHASIS_MARK_BY_TAG,
    LINE_BREAK_CHARACTER,
    LINK_CHARACTER,
    apply_emphasis_and_trim_spaces,
    collapse_spaces,
    escape_except_formulas,
    escape_line_start,
    escape_markdown,
    find_formulas,
    finish_line_or_display_formula,
    is_provisional_display_formula,
    make_emphasis_placeholder,
    make_formulas_inline,
    split_prose_code_tables,
    write_code_block,
    write_code_span_per_line,
    write_code_spans_on_one_line,
    write_markdown_table,
)

MAX_NESTING = 60

# A tag that every parser reads alike, and anything else that a parser may take for one.
_CLEAR_TAG = re.compile(
    r"<(?P<slash>/?)(?P<name>[a-zA-Z][a-zA-Z0-9]*)"
    r"(?:\s+[^\s<>\"'=/]+(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"'=]+))?)*\s*/?>"
    r"|<!--[^<>]*-->"
)
_TAG_START = re.compile(r"<(?=[a-zA-Z/!?])")
# Tags within these are text, or have rules of their own.
_OTHER_RULES = (
    "iframe math noembed noframes noscript plaintext script select style svg template"
    " textarea title xmp"
)
_EMPTY_TAG_NAMES = (
    "area base basefont bgsound br col embed frame hr img input keygen link meta param"
    " source track wbr"
)
_PARAGRAPH_AND_CELL_TAGS = frozenset({"p", "td", "th"})
# Elements that end implicitly where another begins, or where their parent ends.
_ENDED_BY = {
    "li": frozenset({"p", "li"}),
    "dt": frozenset({"p", "dt", "dd"}),
    "dd": frozenset({"p", "dt", "dd"}),
    "td": _PARAGRAPH_AND_CELL_TAGS,
    "th": _PARAGRAPH_AND_CELL_TAGS,
    "tr": _PARAGRAPH_AND_CELL_TAGS | {"tr"},
    "tbody": _PARAGRAPH_AND_CELL_TAGS | {"tr", "thead", "tbody"},
}
_TAGS_WITH_OPTIONAL_END = _PARAGRAPH_AND_CELL_TAGS | {
    "li",
    "dt",
    "dd",
    "tr",
    "thead",
    "tbody",
    "tfoot",
}
_INLINE_TAG_NAMES = (
    "a abbr b big cite code del em font i ins kbd mark nobr q s samp small span strike"
    " strong sub sup tt u var"
)
_WITH_OTHER_RULES = frozenset(_OTHER_RULES.split())
_WITHOUT_END = frozenset(_EMPTY_TAG_NAMES.split())
_AMONG_WORDS = frozenset(_INLINE_TAG_NAMES.split())


def is_nested_too_deeply(html: str) -> bool:
    """Return whether more than `MAX_NESTING` tags may be open at once.

    >>> is_nested_too_deeply("<b>" * 61), is_nested_too_deeply("<ul>" + "<li>one" * 100 + "</ul>")
    (True, False)
    """
    if html.count("<") <= MAX_NESTING:
        return False
    open_tags: list[str] = []
    counts_end_tags, at = True, 0
    while tag_start := _TAG_START.search(html, at):
        plain_tag = _CLEAR_TAG.match(html, tag_start.start())
        at = plain_tag.end() if plain_tag else tag_start.end()
        name = plain_tag["name"].lower() if plain_tag and plain_tag["name"] else ""
        if plain_tag is None or name in _WITH_OTHER_RULES:
            counts_end_tags = False  # parsers may read the rest differently, so count no end tags
        if plain_tag is None or (name and not plain_tag["slash"] and name not in _WITHOUT_END):
            _push_element(open_tags, name)
        elif name and counts_end_tags:
            _close_element(open_tags, name)
        if len(open_tags) > MAX_NESTING:
            return True
    return False


def _push_element(open_elements: list[str], name: str) -> None:
    ended = _ENDED_BY.get(name, frozenset() if name in _AMONG_WORDS else {"p"})
    while open_elements and open_elements[-1] in ended:
        open_elements.pop()
    open_elements.append(name)


def _close_element(open_elements: list[str], name: str) -> None:
    """Close an element and the implicitly closed ones in it; others stay open."""
    depth = len(open_elements)
    while (
        depth
        and open_elements[depth - 1] != name
        and open_elements[depth - 1] in _TAGS_WITH_OPTIONAL_END
    ):
        depth -= 1
    if depth and open_elements[depth - 1] == name:
        del open_elements[depth - 1 :]


_LIST_STYLE = re.compile(r"list-style(?:-type)?\s*:[^;]*?\b([a-z]+(?:-[a-z]+)*)", re.IGNORECASE)
_LIST_STYLE_BY_TYPE = {
    "A": "upper-alpha",
    "a": "lower-alpha",
    "I": "upper-roman",
    "i": "lower-roman",
    "1": "decimal",
}
_ROMAN_NUMERALS = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_GREEK_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
_MOST_ROMAN = 3999
_BULLET_LIST_STYLES = frozenset({"", "circle", "disc", "none", "square"})
_KNOWN_LIST_STYLES = frozenset(
    {"", "none", "decimal", "decimal-leading-zero", "initial", "inherit", "inside", "outside"}
    | {"lower-alpha", "upper-alpha", "lower-roman", "upper-roman", "lower-greek"}
)


def parse_list_style(type_attribute: str, style: str) -> str:
    """Return the numbering of a list from its type and CSS; "" if not given.

    >>> parse_list_style("A", ""), parse_list_style("", "list-style-type: lower-roman")
    ('upper-alpha', 'lower-roman')
    """
    match = _LIST_STYLE.search(style)
    css_style = match[1].lower().replace("latin", "alpha") if match else ""
    return css_style or _LIST_STYLE_BY_TYPE.get(type_attribute, "")


def format_list_label(number: int, style: str) -> str:
    """Return the label of a list item, as browsers show it.

    >>> format_list_label(28, "lower-alpha"), format_list_label(4, "upper-roman")
    ('ab.', 'IV.')
    """
    case, _, kind = style.partition("-")
    text = str(number)
    if style == "none":
        return ""
    if kind == "alpha" and number > 0:
        text = format_number_in_letters(number, string.ascii_lowercase)
    elif style == "lower-greek" and number > 0:
        text = format_number_in_letters(number, _GREEK_LETTERS)
    elif kind == "roman" and 0 < number <= _MOST_ROMAN:
        text = _to_roman(number)
    elif style == "decimal-leading-zero":
        text = f"{number:02d}"
    return f"{text.upper() if case == 'upper' else text}."


def format_number_in_letters(number: int, alphabet: str) -> str:
    """Return a number from 1 on in letters.

    >>> format_number_in_letters(1, "abc"), format_number_in_letters(3, "abc"), format_number_in_letters(4, "abc")
    ('a', 'c', 'aa')
    """
    text = ""
    while number:
        number, rest = divmod(number - 1, len(alphabet))
        text = alphabet[rest] + text
    return text


def _to_roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN_NUMERALS:
        count, number = divmod(number, value)
        text += letters * count
    return text


class ListItemMark(NamedTuple):
    """What stands before an item: a marker of Markdown, or a label as text."""

    marker: str
    label: str


@dataclasses.dataclass(slots=True)
class OpenList:
    """A list being read, and the number of its last item."""

    is_ordered: bool
    label_style: str
    last_number: int
    step: int = 1
    is_numbered_as_in_markdown: bool = True  # as Markdown numbers it

    def advance_to_next_item(self, attributes: Mapping[str, str | None]) -> ListItemMark:
        style = parse_list_style(attributes.get("type") or "", attributes.get("style") or "")
        style = style or self.label_style
        whole_number = _parse_whole_number(attributes.get("value"))
        number = self.last_number + self.step if whole_number is None else whole_number
        self.is_numbered_as_in_markdown &= (
            style in {"", "decimal"} and number == self.last_number + 1 >= 0
        )
        self.last_number = number
        if not self.is_ordered and style in _BULLET_LIST_STYLES:
            return ListItemMark("- ", "")
        if self.is_ordered and self.is_numbered_as_in_markdown:
            return ListItemMark(f"{number}. ", "")
        return ListItemMark("", format_list_label(number, style))


def start_list(tag: str, attributes: Mapping[str, str | None]) -> OpenList:
    """Return a list from its tag; without numbers if it counts down from no number."""
    style = parse_list_style(attributes.get("type") or "", attributes.get("style") or "")
    first = _parse_whole_number(attributes.get("start"))
    step = -1 if "reversed" in attributes else 1
    style = "none" if step < 0 and first is None else style
    return OpenList(tag == "ol", style, (1 if first is None else first) - step, step)


def _parse_whole_number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else None


_TAGS_KEPT_AS_HTML = frozenset({"sub", "sup", "kbd"})
_CODE_TAGS = frozenset({"code", "tt", "samp", "var"})
_HEADING_TAGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TABLE_TAGS = frozenset({"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"})
_LIST_TAGS = frozenset({"ul", "ol"})
_BLOCK_TAGS = (
    _HEADING_TAGS
    | _LIST_TAGS
    | {
        *("address", "article", "aside", "blockquote", "center", "dd", "details", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr"),
        *("legend", "li", "main", "nav", "p", "pre", "section", "summary"),
    }
)
_VOID_TAGS = frozenset(
    {"area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"}
)
_MEDIA_TAGS = frozenset({"applet", "audio", "canvas", "embed", "object", "video"})
_FORM_FIELD_TAGS = frozenset({"input", "meter", "progress", "select"})
_LOST_MARKUP_BY_TAG = {"u": "underlining", "ins": "underlining", "mark": "highlighting"}
# directly after one of these, Markdown would not read a formula
_CHARACTER_THAT_JOINS = re.compile(r"[\d\\$]")
_PRESERVED_SPACE_STYLE = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)


class _OpenElement(NamedTuple):
    keeps_line_breaks: bool
    has_dark_background: bool


class HtmlToMarkdownParser(HTMLParser):
    """Builds blocks from a sanitized fragment, which limits the nesting."""

    def __init__(
        self, name_picture: Callable[[str], str], hiding_selectors: frozenset[str]
    ) -> None:
        super().__init__(convert_charrefs=True)
        self.name_picture = name_picture
        self.hiding_selectors = hiding_selectors
        self.skipped_depth = 0  # how many open elements are skipped
        self.is_hidden = False  # whether they are skipped because they are hidden
        self.open: list[_OpenElement] = []
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

    def close_and_join_blocks(self) -> list[str]:
        """Return the blocks, with items of one list as one block."""
        self._flush_line()
        return _join_list_items_and_quotes(self.blocks)

    # --- events ---

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        keeps_line_breaks, dark = self.open[-1] if self.open else (False, False)
        if self.skipped_depth or self._starts_skipped_element(
            tag, attributes, dark_background=dark
        ):
            self.skipped_depth += tag not in _VOID_TAGS
            return
        if tag not in _VOID_TAGS:
            keeps_line_breaks |= (
                _PRESERVED_SPACE_STYLE.search(attributes.get("style") or "") is not None
            )
            dark |= has_nonwhite_background(attributes)
            self.open.append(_OpenElement(keeps_line_breaks, dark))
        if self.pre is not None:
            self.pre += "\n" if tag == "br" else ""
        elif self.code is not None:
            self._handle_tag_in_code(tag)
        elif tag in EMPHASIS_MARK_BY_TAG or tag in _TAGS_KEPT_AS_HTML or tag in _CODE_TAGS:
            self._open_inline(tag)
        elif tag in _TABLE_TAGS:
            self._open_table_element(tag, attributes)
        elif tag in _BLOCK_TAGS:
            self._open_block(tag, attributes)
        else:
            self._handle_other_tag(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if self.skipped_depth:
            self.skipped_depth -= 1
            return
        if self.open:
            self.open.pop()
        if self.pre is not None and tag != "pre":
            return
        in_code = self.code is not None and tag not in _CODE_TAGS
        if in_code and tag == "pre" and self.rows is not None:
            self._close_code()
            self._close_in_cell(tag)
        elif in_code:
            self._handle_tag_in_code(tag)
        elif tag in _BLOCK_TAGS and self.rows is not None:
            self._close_in_cell(tag)
        elif tag in _BLOCK_TAGS:
            self._close_block(tag)
        elif tag in _TABLE_TAGS:
            self._close_table_element(tag)
        else:
            self._close_inline(tag)

    def handle_data(self, data: str) -> None:
        if self.skipped_depth:
            if data.strip() and self.is_hidden:
                self.lost.append("words that its HTML hides are left out")
        elif self.pre is not None:
            self.pre += data
        elif self.code is not None:
            self.code.append(self._escape_for_code(data))
        elif self.open and self.open[-1].keeps_line_breaks:
            self.line += LINE_BREAK_CHARACTER.join(
                escape_except_formulas(collapse_spaces(x)) for x in data.split("\n")
            )
        else:
            # Markdown does not read a formula if a digit follows its mark.
            follows_formula = self.line[-1:] == "$" and self.line[-2:] != "\\$"
            space = " " if follows_formula and data[:1].isdigit() else ""
            self.line += space + escape_except_formulas(collapse_spaces(data))

    def _escape_for_code(self, data: str) -> str:
        """Return text within code, with the line breaks and spaces that matter."""
        if self.open and self.open[-1].keeps_line_breaks:
            return data.replace("\n", LINE_BREAK_CHARACTER)
        text = re.sub(r"[ \t\r\n]+", " ", data)
        return text.lstrip(" ") if self.code and self.code[-1][-1:] == " " else text

    def _starts_skipped_element(
        self, tag: str, attributes: dict[str, str | None], *, dark_background: bool
    ) -> bool:
        """Return whether an element is hidden, or cannot be imported; the latter is a loss."""
        self.is_hidden = is_element_hidden(
            tag, attributes, self.hiding_selectors, is_background_dark=dark_background
        )
        if self.is_hidden or tag not in _MEDIA_TAGS | _FORM_FIELD_TAGS:
            return self.is_hidden
        description = "a field" if tag in _FORM_FIELD_TAGS else "a recording or an embedded object"
        self.lost.append(f"{description} is left out: say in words what it holds")
        return True

    # --- words ---

    def _open_inline(self, tag: str) -> None:
        if tag in _CODE_TAGS:
            self.code, self.in_code = [], 1
        else:
            self.line += (
                f"<{tag}>"
                if tag in _TAGS_KEPT_AS_HTML
                else make_emphasis_placeholder(tag, is_opening=True)
            )

    def _close_inline(self, tag: str) -> None:
        if tag in _CODE_TAGS:
            self._close_code()
        elif tag in _TAGS_KEPT_AS_HTML:
            self.line += f"</{tag}>"
        elif tag in EMPHASIS_MARK_BY_TAG:
            self.line += make_emphasis_placeholder(tag, is_opening=False)
        elif tag == "a" and self.links:
            self._close_link(self.links.pop())
        elif tag == "q":
            self.line += "\u201d"

    def _close_code(self) -> None:
        self.in_code -= 1
        if self.code is not None and self.in_code <= 0:
            code, self.code = "".join(self.code), None
            self.line += write_code_spans_on_one_line(code.strip(LINE_BREAK_CHARACTER))

    def _handle_tag_in_code(self, tag: str) -> None:
        """Handle a tag within code: only line breaks matter."""
        if self.code is not None and (tag == "br" or tag in _BLOCK_TAGS or tag in _TABLE_TAGS):
            self.code.append(LINE_BREAK_CHARACTER)
        self.in_code += tag in _CODE_TAGS

    def _handle_other_tag(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag == "br":
            self.line = self.line.rstrip() + LINE_BREAK_CHARACTER
        elif tag == "q":
            self.line += "\u201c"
        elif tag in _LOST_MARKUP_BY_TAG:
            self.lost.append(
                f"{_LOST_MARKUP_BY_TAG[tag]} is left out: mark the words if it matters"
            )
        elif tag == "img" and (formula := attributes.get(EQUATION_ATTRIBUTE)) is not None:
            if not formula.strip():
                raise ItemSkippedError("its formulas are in MathML without TeX")
            space = " " if _CHARACTER_THAT_JOINS.fullmatch(self.line[-1:]) else ""
            self.line += space + escape_except_formulas(f"\\({formula}\\)")
        elif tag == "img":
            alt = " ".join((attributes.get("alt") or "").split())
            self.line += self._write_picture(alt, attributes.get("src") or "")
        elif tag == "a":
            self.links.append(attributes.get("href") or "")
            self.line += LINK_CHARACTER

    def _write_picture(self, alt: str, address: str) -> str:
        name = self.name_picture(address)
        if not name:
            self.lost.append(f"a picture{f' ({alt[:40]})' if alt else ''} is left out")
            return escape_markdown(alt)
        if not alt:
            self.lost.append("a picture has no words: say what it shows")
        return f"![{escape_markdown(alt or 'Picture')}]({name})"

    def _close_link(self, address: str) -> None:
        before, _, inside = self.line.rpartition(LINK_CHARACTER)
        is_usable = re.match(r"^https?://[^\s<>()\\]+$", address)
        link_text = f"[{inside.strip()}]({address})" if is_usable else inside
        if address and not is_usable and inside.strip():
            self.lost.append(f"the link to {address[:60]} is left out: write the address out")
        self.line = before + (link_text if inside.strip() else inside)

    # --- blocks ---

    def _open_block(self, tag: str, attributes: dict[str, str | None]) -> None:
        if self.rows is not None:
            self._open_in_cell(tag, attributes)
            return
        self._flush_line()
        if tag == "pre":
            self.pre = ""
        elif tag in _LIST_TAGS:
            self._write_pending_list_label()
            opened = start_list(tag, attributes)
            self.lists.append(opened)
            if opened.step < 0 and opened.label_style == "none":
                self.lost.append("a list that counts down has no numbers here: add them")
            if opened.is_ordered and opened.label_style not in _KNOWN_LIST_STYLES:
                self.lost.append("a list has other numbers here: look at what names them")
        elif tag == "li" and self.lists:
            mark = self.lists[-1].advance_to_next_item(attributes)
            self.label = escape_line_start(mark.label)
            self.prefix.append(mark.marker)
        elif tag == "blockquote":
            self.prefix.append("> ")

    def _open_in_cell(self, tag: str, attributes: dict[str, str | None]) -> None:
        """Open a block in a cell: it becomes a line, code a span, items get marks."""
        self.line += LINE_BREAK_CHARACTER
        if tag == "pre":
            self.open[-1] = self.open[-1]._replace(keeps_line_breaks=True)
            self.code, self.in_code = [], 1
        elif tag in _LIST_TAGS:
            self.lists.append(start_list(tag, attributes))
        elif tag == "li" and self.lists:
            mark = self.lists[-1].advance_to_next_item(attributes)
            self.line += mark.marker.replace("-", "•") or f"{mark.label} "

    def _close_in_cell(self, tag: str) -> None:
        self.line += LINE_BREAK_CHARACTER
        if tag in _LIST_TAGS and self.lists:
            self.lists.pop()

    def _close_block(self, tag: str) -> None:
        if tag == "pre" and self.pre is not None:
            text, self.pre = self.pre.strip("\n"), None
            if text.strip():
                self._write_pending_list_label()
                self._add_block(write_code_block(text))
            return
        if tag in _HEADING_TAGS and self.line.strip():
            self.line = f"**{self.line.strip()}**" if "*" not in self.line else self.line
        self._flush_line()
        if tag == "li":
            self._write_pending_list_label()
        if tag in _LIST_TAGS and self.lists:
            self.lists.pop()
        elif tag in {"li", "blockquote"} and self.prefix:
            self.prefix.pop()

    def _flush_line(self) -> None:
        text = apply_emphasis_and_trim_spaces(self.line)
        self.line = ""
        if text:
            first, *others = text.split(LINE_BREAK_CHARACTER)
            label, self.label = self.label, ""
            first_line = (
                f"{label} {make_formulas_inline(first)}"
                if label
                else finish_line_or_display_formula(first)
            )
            self._add_block("\\\n".join([first_line, *map(finish_line_or_display_formula, others)]))

    def _write_pending_list_label(self) -> None:
        """Write a pending label before a block that cannot share its line."""
        if self.label:
            label, self.label = self.label, ""
            self._add_block(label)

    def _add_block(self, block: str) -> None:
        """Add a block with the prefixes of the lists and quotes around it."""
        for depth in range(len(self.prefix) - 1, -1, -1):
            prefix = self.prefix[depth]
            next_prefix = prefix if prefix == "> " else " " * len(prefix)
            lines = block.split("\n")
            block = "\n".join([prefix + lines[0], *(next_prefix + line for line in lines[1:])])
            self.prefix[depth] = next_prefix
        self.blocks.append(block)

    # --- tables ---

    def _open_table_element(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag == "table" and self.rows is None:
            self._flush_line()
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in {"td", "th", "caption"}:
            self.line = ""
            if {attributes.get("colspan", "1"), attributes.get("rowspan", "1")} - {"1", None}:
                self.lost.append("a cell of a table that spans others is a single one here")

    def _close_table_element(self, tag: str) -> None:
        if self.rows is None:
            return
        if tag == "caption":
            rows, self.rows = self.rows, None
            self._flush_line()
            self.rows = rows
        elif tag in {"td", "th"} and self.rows:
            cell = make_formulas_inline(apply_emphasis_and_trim_spaces(self.line))
            self.rows[-1].append(cell.replace(LINE_BREAK_CHARACTER, "<br>"))
            self.line = ""
        elif tag == "table":
            rows, self.rows, self.line = [r for r in self.rows if r], None, ""
            if any(any(row) for row in rows):
                self._write_pending_list_label()
                self._add_block(write_markdown_table(rows))


def _join_list_items_and_quotes(blocks: list[str]) -> list[str]:
    """Join blocks: items of one list without, everything else with an empty line."""
    joined: list[str] = []
    for block in blocks:
        is_item = re.match(r"(?: *)(?:- |\d+\. )", block)
        is_nested = block.startswith(" ")
        if joined and (is_item or is_nested) and re.match(r" *(?:- |\d+\. )", joined[-1]):
            joined[-1] += f"\n{block}" if is_item else f"\n\n{block}"
        elif joined and block.startswith("> ") and joined[-1].startswith("> "):
            joined[-1] += f"\n>\n{block}"
        else:
            joined.append(block)
    return joined


_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_DRAWING_OR_FRAME_TAG = re.compile(r"<(?:svg|iframe)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, slots=True)
class ConvertedHtml:
    """Markdown, and what the HTML contained that Markdown cannot express."""

    markdown: str
    losses: tuple[str, ...] = ()


def convert_html_to_markdown(
    html: str, name_picture: Callable[[str], str] | None = None
) -> ConvertedHtml:
    """Convert HTML to Markdown blocks, without scripts and hidden text.

    Pictures are left out, except those to whose URL `name_picture` gives a name. Raises
    ItemSkippedError for a formula without TeX.
    """
    if is_nested_too_deeply(html):
        visible_html = _HTML_COMMENT.sub("", html)
        if HIDING_MARKUP.search(visible_html):
            raise ItemSkippedError(f"more than {MAX_NESTING} of its tags stand in each other")
        plain_markdown = convert_plain_text_to_markdown(
            unescape(re.sub(r"<[^<>]*>", " ", visible_html))
        )
        return ConvertedHtml(
            plain_markdown, (f"its tags are left out: more than {MAX_NESTING} stand in each other",)
        )
    reader = HtmlToMarkdownParser(
        name_picture or (lambda _address: ""), find_hiding_selectors(html)
    )
    if _DRAWING_OR_FRAME_TAG.search(html):
        reader.lost.append("a drawing or a frame is left out: say in words what it shows")
    reader.feed(sanitize_html_for_parsing_only(html))
    reader.close()
    text = re.sub("^(?:&nbsp;)+", "", "\n\n".join(reader.close_and_join_blocks()))
    return ConvertedHtml(text, tuple(dict.fromkeys(reader.lost)))


def convert_plain_text_to_markdown(text: str, *, join_wrapped_lines: bool = False) -> str:
    """Convert plain text to Markdown: its lines, code and formulas stay.

    With `join_wrapped_lines`, the lines of a paragraph are joined.
    """
    blocks: list[str] = []
    for part in split_prose_code_tables(join_formula_lines(text)):
        if part.kind == "code":
            blocks.append(write_code_block("\n".join(part.lines)))
        elif part.kind == "table":
            head, _, *rows = [_parse_piped_row(line) for line in part.lines]
            blocks.append(write_markdown_table([head, *rows]))
        else:
            blocks += _write_paragraphs(
                (" ".join(part.lines),) if join_wrapped_lines else part.lines
            )
    return "\n\n".join(blocks)


def join_formula_lines(text: str) -> str:
    """Return the same text with each formula on one line."""
    parts, at = [], 0
    for start, end in find_formulas(text):
        parts += [text[at:start], " ".join(text[start:end].split())]
        at = end
    return "".join([*parts, text[at:]])


def _write_paragraphs(lines: Sequence[str]) -> list[str]:
    """Return lines as paragraphs; a formula alone on its line is its own paragraph."""
    blocks: list[list[str]] = [[]]
    for line in escape_except_formulas("\n".join(lines)).split("\n"):
        text = " ".join(line.split())
        if is_provisional_display_formula(text):
            blocks += [[finish_line_or_display_formula(text)], []]
        elif text:
            blocks[-1].append(finish_line_or_display_formula(text))
    return ["\\\n".join(block) for block in blocks if block]


def _parse_piped_row(line: str) -> list[str]:
    cells = line.strip().strip("|").split("|")
    return [make_formulas_inline(" ".join(escape_except_formulas(c).split())) for c in cells]


def join_into_one_line(markdown: str) -> str:
    """Join Markdown blocks into one line, as options and cells need them.

    Code blocks become code spans, one for each of their lines.
    """
    text = re.sub(
        r"^(`{3,})[^\n]*\n(.*?)\n\1$",
        lambda m: write_code_span_per_line(m[2]),
        markdown,
        flags=re.DOTALL | re.MULTILINE,
    )
    lines = [line.strip() for line in text.replace("\\\n", "<br>").split("\n")]
    return "<br>".join(line for line in lines if line)
