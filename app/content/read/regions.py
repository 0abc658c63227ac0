"""A file cut into prose and items: an item reaches to the next heading of its rank."""

import dataclasses
import html
import itertools
import re
import unicodedata

from markdown_it.token import Token

from app.content.identity import bottom_k_sketch, words_hash
from app.content.markdown.syntax import (
    MISBEGUN,
    closing_index,
    first_line,
    last_line,
    tokens,
)
from app.content.read.lost_answers import (
    UNCLOSED,
    box_in,
    end_of_section,
    is_lost_comment,
    is_question,
    report_lost,
)
from app.content.read.metadata import FileKind, read_comment
from app.content.rules.source_text import check_blocks
from app.content.source_file import SourceFile, Unidentified
from app.questions.written import ItemDraft

_COMMENT = re.compile(r"\s*<!--\s*q\s*:", re.IGNORECASE)
# The comment of a question in other signs: dashes, quotes, marks of another format.
_STRAY = re.compile(r"[\W_\u30fc]+q\W{0,2}[:=]\s*[a-z0-9][\w-]*|q\s*[:=]\s*[a-z0-9][\w-]*\W*$")
_OF_COMMENT = re.compile(r"[a-z]+ *:( |$)|-+>?$")
_NAMELESS = re.compile(
    r"<!--\s*(?:(?:id|question)\s*:|q\w?\s*[;=\uff1a]|qq\s*:|q[ \t]+[\w-]"
    r"|(?:[a-z0-9-]+\s*\n\s*)?(?:type|difficulty|objectives?)\s*:)"
)
_GLUED = re.compile(r"(#{2,6})([^#\s].*)")
_NAMED = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MOST_SHOWN = 60
_MOST_NAMED = 50


@dataclasses.dataclass(slots=True)
class ProseRegion:
    """Blocks that belong to no item."""

    tokens: list[Token]


Region = ProseRegion | ItemDraft


def read_regions(text: str, sheet: SourceFile, kind: FileKind) -> list[Region]:
    """A text cut, with all that is wrong between its items reported."""
    regions = split_into_items(text, sheet)
    for above, region in itertools.pairwise((None, *regions)):
        if isinstance(region, ProseRegion):
            if kind == "cards" or not _report_parted(above, region, sheet):
                _report_unnamed(region.tokens, kind, sheet)
            sheet.item = ""
            check_blocks(region.tokens, sheet)
            report_lost(region.tokens, sheet, page=kind == "page")
            for token in region.tokens:
                if is_lost_comment(token):
                    sheet.claim(token.content, first_line(token))
            if kind == "quiz":
                _report_unread(region.tokens, sheet)
    return regions


def split_into_items(text: str, sheet: SourceFile) -> list[Region]:
    """Cut a text without front matter; what is misplaced is reported."""
    found = tokens(_with_comments_closed(text, sheet))
    regions: list[Region] = []
    prose: list[Token] = []
    at = 0
    while at < len(found):
        if _is_item(found, at):
            if prose:
                regions.append(ProseRegion(prose))
                prose = []
            end = _end(found, at)
            regions.append(_draft(found, at, end, sheet))
            at = end
            continue
        if _is_comment(found[at]):
            _report_homeless(found[at], prose, sheet)
        prose.append(found[at])
        at += 1
    if prose:
        regions.append(ProseRegion(prose))
    return regions


def _is_comment(token: Token) -> bool:
    return token.type == "html_block" and bool(_COMMENT.match(token.content))


def _with_comments_closed(text: str, sheet: SourceFile) -> str:
    """Empty the opening of a comment that would swallow the items behind it."""
    if "<!--" not in text:
        return text
    lines = text.split("\n")
    opened = -1
    for index, line in enumerate(lines):
        if opened < 0:
            if "<!--" not in line or not line.lstrip().startswith("<!--"):
                continue
            opened = index
        if "-->" in line:
            opened = -1
        elif line.startswith("##") and re.match(r"#{2,6} ", line):
            _report_unclosed(opened, sheet)
            _empty(lines, opened)
            opened = -1
    if opened >= 0:
        _report_unclosed(opened, sheet)
        _empty(lines, opened)
    return "\n".join(lines)


def _empty(lines: list[str], opened: int) -> None:
    """Take away a comment that is never closed, as far as its keys go."""
    lines[opened] = UNCLOSED
    for index in range(opened + 1, len(lines)):
        if not _OF_COMMENT.match(lines[index]):
            return
        lines[index] = ""


def _report_unclosed(index: int, sheet: SourceFile) -> None:
    sheet.item = ""
    sheet.claim("\n".join(sheet.lines[index : index + 3]), index + 1)
    sheet.report("E10", index + 1, 1, "The comment is never closed.", "Write --> there.")


def _report_homeless(token: Token, above: list[Token], sheet: SourceFile) -> None:
    """E02: a comment that does not stand right below a heading."""
    sheet.item = ""
    sheet.claim(token.content, first_line(token))
    if _report_glued_above(token, sheet):
        return
    hint = "Put the question's first line above it as a heading: ### What …?"
    message = "The question comment has no heading right above it."
    headings = (t for t in reversed(above) if t.type == "heading_open" and not t.level)
    if heading := next(headings, None):
        hint = (
            f"Move it up, right below the heading in line {first_line(heading)}; or, "
            "if it is of another question, write that above it as a heading: ### What …"
        )
    sheet.report("E02", first_line(token), 1, message, hint)


def _report_glued_above(token: Token, sheet: SourceFile) -> bool:
    """E02: what stands above a comment would be a heading, were there a space."""
    above = first_line(token) - 1
    while above > 0 and not sheet.lines[above - 1].strip():
        above -= 1
    line = sheet.lines[above - 1] if above > 0 else ""
    found = _GLUED.fullmatch(line.strip())
    if found:
        report_glued("E02", above, found, sheet)
    return bool(found)


def report_glued(code: str, line: int, found: re.Match[str], sheet: SourceFile) -> None:
    """Say of a line that it would be a heading, were there a space; once."""
    hashes, words = found.groups()
    short = words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…"
    message = f"“{hashes}{short}” is no heading: a space is missing after {hashes}."
    if any(p.line == line and p.message == message for p in sheet.problems):
        return
    sheet.report(code, line, 1, message, f"Write {hashes} {short}")


def _is_item(found: list[Token], at: int) -> bool:
    if found[at].type != "heading_open" or found[at].level:
        return False
    after = at + 3
    return after < len(found) and _is_comment(found[after])


def _end(found: list[Token], at: int) -> int:
    level = found[at].tag
    for index in range(at + 4, len(found)):
        token = found[index]
        heading = token.type == "heading_open" and not token.level
        if heading and (token.tag <= level or _is_item(found, index)):
            return index
    return len(found)


def _draft(found: list[Token], at: int, end: int, sheet: SourceFile) -> ItemDraft:
    line = first_line(found[at])
    last = first_line(found[end]) - 1 if end < len(found) else len(sheet.lines)
    before = len(sheet.problems)
    comment = read_comment(found[at + 3].content, first_line(found[at + 3]), sheet)
    broken = any(p.severity == "error" for p in sheet.problems[before:])
    text = "\n".join(sheet.lines[line - 1 : last])
    below = "\n".join(sheet.lines[last_line(found[at + 3]) : last])
    for token in found[at + 4 : end]:
        if _is_comment(token):
            _report_second(token, sheet)
            broken = True
    level = int(found[at].tag[1])
    body = found[at + 4 : end]
    return ItemDraft(found[at + 1], comment, body, line, level, text, broken, below)


def _report_second(token: Token, sheet: SourceFile) -> None:
    sheet.claim(token.content, first_line(token))
    if _report_glued_above(token, sheet):
        return
    hint = "An item has one comment: keep the id that it had first."
    message = "The item has a second question comment."
    sheet.report("E02", first_line(token), 1, message, hint)


def _report_parted(above: Region | None, below: ProseRegion, sheet: SourceFile) -> bool:
    """E24: whether answers stand below a heading of their own, not their question."""
    if not isinstance(above, ItemDraft) or not above.comment.id:
        return False
    answered = any(t.type.endswith(("list_open", "table_open")) for t in above.body)
    prose = below.tokens
    heads = prose[0].type == "heading_open" and len(prose) > 3
    if above.comment.word("type") or answered or not heads:
        return False
    if prose[3].type != "bullet_list_open" or "[x]" not in map(str.lower, _boxes(prose, 3)):
        return False
    sheet.item = above.comment.id
    message = f"The answers of the question in line {above.line} stand apart from it."
    hint = "Delete this heading, or give it more # than the question has."
    sheet.report("E24", first_line(prose[0]), 1, message, hint)
    return True


def _report_unnamed(prose: list[Token], kind: FileKind, sheet: SourceFile) -> None:
    """E01: headings whose answers have no id.

    In a file of items one box is enough; on a page a list of tasks counts only when
    something in it is ticked, and a question is asked. In a file of cards any text is
    a back.
    """
    heading = -1
    for at, token in enumerate(prose):
        if token.type == "heading_open" and not token.level:
            heading = -1 if _has_broken_comment(prose, at) else at
            back = kind == "cards" and _has_back(prose, at)
            if heading >= 0 and (back or _nameless_below(prose, at)):
                _report_nameless(prose, at, sheet)
                heading = -1
        elif token.type == "paragraph_open" and glued(prose[at + 1]):
            heading = at + 1
        elif token.type == "bullet_list_open" and not token.level and heading >= 0:
            boxes = _boxes(prose, at)
            ticked = any("x" in box.lower() for box in boxes)
            if boxes and (kind != "page" or (ticked and is_question(prose, heading))):
                _report_nameless(prose, heading, sheet)
                heading = -1


def _report_unread(prose: list[Token], sheet: SourceFile) -> None:
    """E01: what stands below a heading in quiz.md and is no item is read by nobody."""
    for at, token in enumerate(prose):
        if token.type != "heading_open" or token.level or not _has_back(prose, at):
            continue
        section = prose[at : end_of_section(prose, at)]
        lines = range(first_line(token), max(map(last_line, section)) + 1)
        if not any(p.line in lines for p in sheet.problems if p.severity == "error"):
            sheet.item = ""
            message = "This heading has no id, and nothing reads what stands below it."
            hint = "Write <!-- q: some-id --> below it; or, as a note to other authors, "
            hint += "put all of it between <!-- and -->."
            sheet.report("E01", first_line(token), 1, message, hint)


def glued(inline: Token) -> re.Match[str] | None:
    """A paragraph that would be a heading, were there a space after its hashes."""
    return None if inline.level > 1 else _GLUED.fullmatch(inline.content.strip())


def _has_broken_comment(prose: list[Token], at: int) -> bool:
    """Whether the id of a heading stands below it in a comment that is told as such."""
    below = prose[at + 3 : at + 5]
    if below and below[0].content.strip() == UNCLOSED:
        return True
    if len(below) > 1 and MISBEGUN.match(below[1].content):
        return True
    return any(map(_is_comment, prose[at : end_of_section(prose, at)]))


def _has_back(prose: list[Token], at: int) -> bool:
    """Whether words stand below a heading that is deep enough for a card."""
    below = prose[at + 3 : at + 5]
    if below and below[0].type == "html_block":
        below = below[1:]
    return prose[at].tag >= "h3" and bool(below) and below[0].type != "heading_open"


def _nameless_below(prose: list[Token], at: int) -> Token | None:
    """The comment of a heading that has fields and no id."""
    below = prose[at + 3] if at + 3 < len(prose) else None
    if below is None or below.type != "html_block":
        return None
    return below if _NAMELESS.match(below.content) else None


def _boxes(prose: list[Token], at: int) -> list[str]:
    inside = prose[at : closing_index(prose, at)]
    return [box for t in inside if t.level == 3 and (box := box_in(t))]


def _report_nameless(prose: list[Token], at: int, sheet: SourceFile) -> None:
    """E01 for the heading at an index; `--fix` writes an id where none was."""
    sheet.item = ""
    heading, below = prose[at], _nameless_below(prose, at)
    if below is not None:
        sheet.claim(below.content, first_line(below))
        message = "The comment of this question has no id."
        hint = "Begin it with q: and an id: <!-- q: some-id"
        sheet.report("E01", first_line(below), 1, message, hint)
        return
    found = glued(heading)
    if found:
        report_glued("E01", first_line(heading), found, sheet)
        return
    if stray := _stray_comment(prose, at, sheet):
        words = sheet.lines[stray - 1].strip()[:40]
        message = f"“{words}” is not the comment of this question."
        hint = "Write <!-- q: and the id right below the heading, and --> behind them."
        sheet.report("E10", stray, 1, message, hint)
        return
    hint = "Write <!-- q: some-id --> below the heading, or run the check with --fix."
    message = "This heading has answers but no id."
    sheet.report("E01", first_line(heading), 1, message, hint)
    sheet.unidentified.append(_unidentified(prose, at, sheet))


def _stray_comment(prose: list[Token], at: int, sheet: SourceFile) -> int:
    """The line below a heading that holds its id in no comment; 0 for none."""
    section = prose[at : end_of_section(prose, at)]
    end = max(map(last_line, section))
    code = {
        line
        for t in section
        if t.type == "fence"
        for line in range(first_line(t), last_line(t) + 1)
    }
    for line in range(last_line(section[0]) + 1, end + 1):
        words = unicodedata.normalize("NFKC", html.unescape(sheet.lines[line - 1]))
        if line not in code and _STRAY.match(words):
            return line
    return 0


def _unidentified(prose: list[Token], at: int, sheet: SourceFile) -> Unidentified:
    """The item of a heading without a comment of its own."""
    section = prose[at : end_of_section(prose, at)]
    first, end = last_line(section[0]), max(map(last_line, section))
    below = "\n".join(sheet.lines[first:end])
    title = section[1].content
    comments = [t.content for t in section if t.type == "html_block"]
    return Unidentified(
        first,
        1,
        sheet.lines[first - 1],
        f"{sheet.lines[first - 1]}\n<!-- q: ",
        " -->",
        title,
        tuple(_NAMED.findall("\n".join(comments)))[:_MOST_NAMED],
        bottom_k_sketch(f"{title}\n{below}"),
        words_hash(title),
        words_hash(below),
    )
