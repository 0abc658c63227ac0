"""E61, E74, W69: boxes, pictures and formulas that a slip made into plain text."""

import re

from markdown_it.token import Token

from app.content.markdown.alerts import KINDS
from app.content.markdown.syntax import first_line
from app.content.source_file import Manuscript

_PICTURE = re.compile(r"!\[[^\[\]]*\]\([^\n]*")
_MARKER = re.compile(rf"^\[!({'|'.join(KINDS)})\][ \t]*(.*)$", re.IGNORECASE)
_MOST_SHOWN = 60


def check_box(found: list[Token], at: int, sheet: Manuscript) -> None:
    """E74: a box without words, or whose marker does not stand on its own line."""
    quote, inline = found[at], found[at + 2] if at + 2 < len(found) else None
    if inline is None or inline.type != "inline":
        return
    line = first_line(quote)
    if sheet.lines[line - 1].startswith(">>>>>>>"):
        return  # a mark of a merge, which is told as such
    if quote.meta.get("alert") in KINDS and _is_empty(found, at):
        message = f"The box [!{quote.meta['alert']}] is empty."
        hint = "Begin each of its lines with >, and leave no line empty before them."
        sheet.report("E74", line, 1, message, hint)
    if quote.meta.get("alert"):
        line += 1
    for number, words in enumerate(inline.content.split("\n")):
        if marker := _MARKER.match(words):
            _report_marker(marker, (line + number, number == 0), quote, sheet)
            return


def _is_empty(found: list[Token], at: int) -> bool:
    """Whether nothing but its marker stands in a box."""
    closing = found[at + 4].type if at + 4 < len(found) else "blockquote_close"
    return not found[at + 2].content.strip() and closing == "blockquote_close"


def _report_marker(
    marker: re.Match[str], place: tuple[int, bool], quote: Token, sheet: Manuscript
) -> None:
    name, words = marker[1].upper(), marker[2].strip()
    line, first = place
    if first and not quote.meta.get("alert"):
        message = f"Words stand behind [!{name}] on its line, so that it is no box."
        hint = f"Write them on the next line: > {words[:_MOST_SHOWN]}"
    else:
        message = f"[!{name}] stands inside of the box above it."
        hint = f"Leave a line empty before > [!{name}]"
    sheet.report("E74", line, 1, message, hint)


def check_marks(inline: Token, sheet: Manuscript) -> None:
    """E61, W69: a picture or a formula of its own that nothing ends."""
    first = first_line(inline)
    last = first + inline.content.count("\n")
    for child in inline.children or ():
        if child.type != "text":
            continue
        found = _PICTURE.search(child.content)
        if found and found[0] in inline.content:
            message = f"“{found[0][:_MOST_SHOWN]}” is read as text, not as a picture."
            hint = "Write ![what it shows](file.svg), with no space in the name."
            if found[0].count('"') % 2:
                hint = (
                    'The quotation mark of its caption is not closed: write ") there.'
                )
            sheet.report("E61", *sheet.find(found[0], first, last), message, hint)
        if "$$" in child.content and "$$" in inline.content:
            message = "“$$” begins a formula of its own here, and none ends it."
            hint = "Write $$ before and behind the formula, on lines of their own."
            sheet.report("W69", *sheet.find("$$", first, last), message, hint)
            return
