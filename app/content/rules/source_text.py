"""Rules for a file as it is written: what a person would not want to be shown."""

import re
from collections.abc import Sequence

from markdown_it.token import Token

from app.content.identity import did_you_mean
from app.content.markdown.alerts import KINDS
from app.content.markdown.code import is_language
from app.content.markdown.syntax import MISBEGUN, first_line
from app.content.source_file import SourceFile

_BLOCKS = ("calculator", "figure")
_CONFLICT = re.compile(r"^(?:<{7} |>{7} |={7}$|\|{7} )")
# Characters that turn the direction of what follows, and that nobody sees.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
# What every piece that `headroom new` writes begins with.
_STARTS = re.compile(
    r"^#+ (?:Starting point \d+: |Card \d+: what to recall about )"
    r"|^Begin with the number that matters, and why it does\."
)
_BOXLESS = re.compile(
    rf"^[\s>]*>\s*(?P<box>\[?!? ?(?P<name>{'|'.join(KINDS)})!?\]?:?)\s*$", re.IGNORECASE
)
# A box of a page as other programs write it, or without the > before it.
_FOREIGN_BOX = re.compile(
    rf"^(?:\[!(?:{'|'.join(KINDS)})\]|!!! ?(\w+)|:::+ ?\{{?(\w+)).*", re.IGNORECASE
)
_CODED_BOX = re.compile(r"^\s*[-*+] \[[ \txX]\] ")
# A box of an option that Markdown reads as a text.
_LOST_BOX = re.compile(r"^(?:[-*+]\[[ \txX]?\]|\[[ \txX]\][ \t])")
_SECOND_BOX = re.compile(r"^(?:\[[ \txX]\]\s+.*\s[-*+]\s+|\[[ \txX]\]\s+)\[[ \txX]\]\s")
_NOTE = re.compile(r"\[\^[^\]]*\s[^\]]*\]")
_BRACKETED = re.compile(r"\(\^(?P<key>[\w-]+)\)|\^\[(?P<other>[\w-]+)\]")
_LINK = re.compile(r"\[[^\[\]]+\]\((?:\.{1,2}/|https?://|#)[^()\"]*\s[^()\"]*\)")
_PICTURE = re.compile(r"!\[[^\[\]]*\]\([^\n]*")
_MARKER = re.compile(rf"^\[!({'|'.join(KINDS)})\][ \t]*(.*)$", re.IGNORECASE)
_MOST_SHOWN = 60
_OPENING = re.compile(r"(?<![\\$\w])\$(?=[A-Za-z\\])")


def check_source(sheet: SourceFile) -> None:
    """E75, E76, W77: marks of a merge, unseen characters, text to begin with."""
    merging = False
    for number, line in enumerate(sheet.lines, 1):
        if _CONFLICT.match(line) and (line[0] == "<" or merging):
            if not merging:
                message = "An unfinished merge left its marks here."
                hint = "Decide for one of the two texts, and delete the three marks."
                sheet.report("E75", number, 1, message, hint)
            merging = line[0] != ">"
        if "\0" in line or "\ufffd" in line:
            at = max(line.find("\0"), line.find("\ufffd"))
            message = "A character stands here that is no text."
            sheet.report("E76", number, at + 1, message, "Delete it, or type it anew.")
        elif found := _TURNING.search(line):
            message = f"A character (U+{ord(found[0]):04X}) turns what follows around."
            hint = "Delete it; it is not seen."
            sheet.report("E76", number, found.start() + 1, message, hint)
        if _STARTS.match(line):
            message = f"“{line.strip('# ')[:50]}” is text to begin with."
            sheet.report("W77", number, 1, message, "Write what is meant here.")


def check_blocks(found: Sequence[Token], sheet: SourceFile) -> None:
    """E10, E24, E61, E74, E86, W68, W69: what a slip made into plain text, or cut."""
    blocks = list(found)
    for at, token in enumerate(blocks):
        if token.type == "fence":
            _check_fence(token, sheet)
        elif token.type == "blockquote_open":
            _check_alert(token, sheet)
            _check_marker(blocks, at, sheet)
        elif token.type == "table_open":
            _check_table(token, sheet)
        elif token.type == "code_block":
            _check_code(token, sheet)
        elif token.type == "inline":
            if token.level == 1:
                _check_foreign(token, sheet)
            _check_dollars(token, sheet)
            _check_boxes(token, sheet)
            _check_unread(token, sheet)
            _check_unended(token, sheet)


def _check_fence(token: Token, sheet: SourceFile) -> None:
    name = (token.info.split() or [""])[0]
    if not _is_closed(token, sheet):
        message = "The block that begins here is never closed: it takes all that follows."
        hint = f"Write {token.markup} on a line of its own behind it."
        sheet.report("E10", first_line(token), 1, message, hint)
        return
    if name in _BLOCKS or is_language(name):
        return
    line = first_line(token)
    message = f"Nothing reads a block named “{name[:40]}”."
    hint = did_you_mean(name, _BLOCKS) or "Write calculator, figure bar, or a language."
    sheet.report("E74", line, 1, message, hint)


def _check_code(token: Token, sheet: SourceFile) -> None:
    """E24: options that are indented so far that they are code."""
    for number, line in enumerate(token.content.split("\n")):
        if _CODED_BOX.match(line):
            message = f"“{line.strip()[:40]}” is indented so far that it is code."
            hint = "Take the spaces before it away."
            sheet.report("E24", first_line(token) + number, 1, message, hint)
            return


def _check_foreign(inline: Token, sheet: SourceFile) -> None:
    """E10, E74: the end of a comment, and a box, that are read as text."""
    for number, line in enumerate(inline.content.split("\n")):
        place = (first_line(inline) + number, 1)
        if MISBEGUN.match(line):
            message = f"“{line[:40]}” does not begin a comment."
            hint = f"Write <!-- {line[line.index('q') :].removesuffix('-->').strip()}"
            sheet.report("E10", *place, message, hint)
            return
        if line.strip() == "-->":
            message = "The end of a comment stands here, and none is open."
            sheet.report("E10", *place, message, "Delete it, or the one above it.")
        elif found := _FOREIGN_BOX.match(line):
            kind = (found[1] or found[2] or "").upper()
            kind = kind if kind in KINDS else "NOTE"
            message = f"“{line[:40]}” is read as text, not as a box."
            hint = f"Write > [!{kind}], and > before each line of its text."
            if line.startswith("[!"):
                hint = f"Write > {line[:40]}, and > before each line of its text."
            sheet.report("E74", *place, message, hint)


def _is_closed(fence: Token, sheet: SourceFile) -> bool:
    """Whether a line of marks ends a block; else the end of the file, or of a list."""
    first, last = fence.map or (0, 0)
    ending = sheet.lines[min(last, len(sheet.lines)) - 1].rstrip()
    return last - first > 1 and ending.endswith(fence.markup)


def _check_alert(token: Token, sheet: SourceFile) -> None:
    name = token.meta.get("alert", "")
    if not name and (found := _BOXLESS.match(sheet.lines[first_line(token) - 1])):
        message = f"“{found['box']}” is not a kind of box."
        hint = f"Write > [!{found['name'].upper()}]"
        sheet.report("E74", first_line(token), 1, message, hint)
        return
    if name and name not in KINDS:
        message = f"“[!{name[:40]}]” is not a kind of box."
        hint = did_you_mean(name, KINDS) or f"Known: {', '.join(KINDS)}."
        sheet.report("E74", first_line(token), 1, message, hint)


def _check_unread(inline: Token, sheet: SourceFile) -> None:
    """E61, E86, W68: what was meant as a link, a footnote or a table, and is text."""
    first = first_line(inline)
    last = first + inline.content.count("\n")
    for child in inline.children or ():
        if child.type != "text":
            continue
        if found := _NOTE.search(child.content):
            message = f"“{found[0][:40]}” is read as text, not as a footnote."
            hint = "Write the key of a source without spaces: [^key]."
            sheet.report("E86", *sheet.find(found[0], first, last), message, hint)
        if found := _BRACKETED.search(child.content):
            message = f"“{found[0][:40]}” is read as text, not as a footnote."
            hint = f"Write [^{found['key'] or found['other']}]"
            sheet.report("E86", *sheet.find(found[0], first, last), message, hint)
        if found := _LINK.search(child.content):
            message = f"“{found[0][:60]}” is read as text, not as a link."
            hint = "Take the spaces out of its address."
            sheet.report("E61", *sheet.find(found[0], first, last), message, hint)
    rows = [line.strip() for line in inline.content.split("\n")]
    if len(rows) > 1 and all(r[:1] == "|" and r[-1:] == "|" for r in rows):
        message = "These lines are read as text, not as a table."
        hint = "Write a line such as |---|---| below the first one, of as many cells."
        sheet.report("W68", first, 1, message, hint)


def _check_boxes(inline: Token, sheet: SourceFile) -> None:
    """E24: a box that begins no option, since something is missing before it."""
    for number, line in enumerate(inline.content.split("\n")):
        lost = _LOST_BOX.match(line) if number or not inline.level > 1 else None
        if lost or (not number and _SECOND_BOX.match(line)):
            place = (first_line(inline) + number, 1)
            message = f"“{line[:40]}” is read as text, not as an option."
            if not lost:
                message = f"“{line[:40]}” holds two boxes."
            hint = "Write each option on a line of its own, as - [ ] text."
            sheet.report("E24", *place, message, hint)


def _check_table(token: Token, sheet: SourceFile) -> None:
    first, last = token.map or (0, 0)
    wanted = 0
    for number in range(first, last):
        cells = _cells(sheet.lines[number])
        wanted = wanted or cells
        if cells != wanted:
            message = f"The row has {_count(cells)}, the head of the table {wanted}."
            hint = "Give each row as many cells as the head; write \\| for a bar."
            sheet.report("W68", number + 1, 1, message, hint)


def _cells(line: str) -> int:
    """How many cells a line of a table has."""
    row = line.strip().lstrip("> ").removeprefix("|")
    row = re.sub(r"\\\\|\\\|", "", row)
    return row.removesuffix("|").count("|") + 1


def _count(cells: int) -> str:
    return f"{cells} cell{'s' * (cells != 1)}"


def _check_dollars(inline: Token, sheet: SourceFile) -> None:
    for child in inline.children or ():
        found = _OPENING.search(child.content) if child.type == "text" else None
        if found:
            near = child.content[found.start() : found.start() + 20]
            line, column = sheet.find(
                near,
                first_line(inline),
                first_line(inline) + inline.content.count("\n"),
            )
            message = "A dollar sign begins a formula here, and none ends it."
            hint = "Write the second one, or \\$ for the sign itself."
            sheet.report("W69", line, column, message, hint)


def _check_marker(found: list[Token], at: int, sheet: SourceFile) -> None:
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
    marker: re.Match[str], place: tuple[int, bool], quote: Token, sheet: SourceFile
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


def _check_unended(inline: Token, sheet: SourceFile) -> None:
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
                hint = 'The quotation mark of its caption is not closed: write ") there.'
            sheet.report("E61", *sheet.find(found[0], first, last), message, hint)
        if "$$" in child.content and "$$" in inline.content:
            message = "“$$” begins a formula of its own here, and none ends it."
            hint = "Write $$ before and behind the formula, on lines of their own."
            sheet.report("W69", *sheet.find("$$", first, last), message, hint)
            return
