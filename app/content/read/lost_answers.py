"""Answers that belong to no question: kept from learners, and told to the author."""

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from app.content.markdown.syntax import MISBEGUN, closing_index, first_line, last_line
from app.content.source_file import SourceFile
from app.questions.kinds import KINDS

# A comment with an id that nothing closes, once its opening is emptied.
UNCLOSED = "<!-- -->"
_BOX = re.compile(r"^\[[ \t]*(?:[xX][ \t]*)?\]")
# A tick however it is typed: [x], [✓], (x), in Cyrillic, or without its space.
_TICK = "[ \t]*[xX\u0445\u0425×✓✔✅*][ \t]*"
_TICKED = re.compile(rf"^(?:(?:[-*+]|\d{{1,3}}[.)])[ \t]*)?\[{_TICK}\]")
_ROUND = re.compile(rf"^\({_TICK}\)[ \t]")
# What is left of a comment whose first characters are missing.
_COMMENT = re.compile(r"^(?:<!?-{0,2})?[ \t]*q[ \t]*:[ \t]*[\w-]+[ \t]*(?:$|\n|-+>)")
_BLANKS = {kind.name: kind.blank for kind in KINDS.values() if kind.blank}
_ASKING = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")  # in several scripts
_MOST_SHOWN = 40


def answers_in(prose: Sequence[Token], *, page: bool = True) -> Iterator[range]:
    """Where answers stand that belong to no item, each up to the next heading.

    They are kept from learners: what is ticked, or is a blank, below a question that
    lost its comment is its key, and what follows explains it. On a `page` a list of
    tasks may be ticked, too, where nothing asks a question.
    """
    start = at = 0
    found, asked = False, is_question(prose, 0) or not page
    while at < len(prose):
        end = closing_index(prose, at) + 1
        if prose[at].type == "heading_open":
            if found:
                yield range(start, at)
            found, asked = False, is_question(prose, at) or not page
        if not found and any(_tells_answer(t, asked) for t in prose[at:end]):
            start, found = at, True
        at = end
    if found:
        yield range(start, at)


def end_of_section(prose: Sequence[Token], at: int) -> int:
    """Where the next heading behind an index begins, of whatever rank."""
    for index in range(at + 1, len(prose)):
        if prose[index].type == "heading_open" and not prose[index].level:
            return index
    return len(prose)


def is_question(prose: Sequence[Token], at: int) -> bool:
    """Whether the section that begins at an index asks, or gives reasons in quotes."""
    section = prose[at : end_of_section(prose, at)]
    if any(t.type == "blockquote_open" and not t.meta.get("alert") for t in section):
        return True
    heads = len(section) > 1 and section[0].type == "heading_open"
    title = section[1].content if heads else section[0].content if section else ""
    return title.rstrip(" *_`").endswith(_ASKING)


def box_in(token: Token) -> str:
    """The box that a line begins with; a link whose words are “x” is none."""
    found = _BOX.match(token.content) if token.type == "inline" else None
    return found[0] if found and not _is_linked(token) else ""


def is_lost_comment(token: Token) -> bool:
    """Whether a paragraph was to be the comment of a question."""
    text = token.content if token.type == "inline" else ""
    return bool(_COMMENT.match(text) or MISBEGUN.match(text))


def report_lost(prose: Sequence[Token], sheet: SourceFile, *, page: bool) -> None:
    """E10, E24, E54: answers that no question takes, unless the cause is told."""
    for block in answers_in(prose, page=page):
        above = block.start
        while above > 0 and prose[above].type != "heading_open":
            above -= 1
        last = max(last_line(prose[at]) for at in block)
        told = range(first_line(prose[above]), last + 1)
        if not any(p.line in told for p in sheet.problems if p.severity == "error"):
            _report(prose[block.start : block.stop], sheet)


def _report(block: Sequence[Token], sheet: SourceFile) -> None:
    token = next(t for t in block if _tells_answer(t, asked=True))
    first, last = first_line(token), last_line(token)
    if _COMMENT.match(token.content):
        message = "The comment of a question is read as text."
        hint = "Write <!-- before q: and --> behind it."
        sheet.report("E10", first, 1, message, hint)
        return
    if found := _blank_in(token):
        kind, blank = found
        message = f"The blank “{blank[:_MOST_SHOWN]}” belongs to no question."
        hint = f"Write <!-- q: some-id and type: {kind} below a heading above it."
        sheet.report("E54", *sheet.find(blank, first, last), message, hint)
        return
    line = next(filter(_line_is_ticked, token.content.split("\n")), token.content)
    message = f"“{line[:_MOST_SHOWN]}” belongs to no question, so it is not shown."
    hint = "Write ### and the question, <!-- q: some-id --> below it, then - [x] text."
    sheet.report("E24", *sheet.find(line, first, last), message, hint)


def _tells_answer(token: Token, asked: bool) -> bool:
    if token.type == "html_block":
        return token.content.strip() == UNCLOSED
    if token.type != "inline":
        return False
    lost = _COMMENT.match(token.content) or _blank_in(token)
    return lost is not None or (asked and _is_ticked(token))


def _is_ticked(token: Token) -> bool:
    in_list = token.level > 2 and bool(_ROUND.match(token.content))
    ticked = in_list or any(map(_line_is_ticked, token.content.split("\n")))
    return ticked and not _is_linked(token)


def _line_is_ticked(line: str) -> bool:
    return bool(_TICKED.match(line) or _ROUND.match(line))


def _blank_in(token: Token) -> tuple[str, str] | None:
    """The first blank that is neither code nor a link: its kind, and its text."""
    texts = [c.content for c in token.children or () if c.type == "text"]
    for kind, blank in _BLANKS.items():
        if found := next(filter(None, map(blank.search, texts)), None):
            return kind, found[0]
    return None


def _is_linked(token: Token) -> bool:
    first = next(iter(token.children or ()), None)
    return first is not None and first.type == "link_open"
