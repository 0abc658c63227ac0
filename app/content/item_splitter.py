"""Splits a file into prose and items, and reports what was meant as an item but is not one."""

import dataclasses
import html
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from app.content.front_matter import FileKind, parse_front_matter, parse_item_comment
from app.content.item_rules import report_markup_typos
from app.markup.checked_figures import replace_figure_links_by_text
from app.markup.markdown_tokens import (
    BROKEN_COMMENT_START,
    find_closing_index,
    get_first_line_number,
    get_last_line_number,
    parse_markdown,
)
from app.markup.problems import IdInsertion, ParseContext, TextPosition, UnidentifiedItem
from app.markup.text import SLUG_LIKE, bottom_k_sketch, hash_words
from app.questions.question_type import ItemSource
from app.questions.types import QUESTION_TYPES

_MOST_SHOWN = 40
# An unclosed comment with an id, after its opening was emptied.
UNCLOSED_COMMENT = "<!-- -->"
_CHECK_BOX = re.compile(r"^\[[ \t]*(?:[xX][ \t]*)?\]")
# A tick in any notation: [x], [✓], (x), in Cyrillic, or without its space.
_TICK_PATTERN = "[ \t]*[xX\u0445\u0425×✓✔✅*][ \t]*"
_TICKED_BOX = re.compile(rf"^(?:(?:[-*+]|\d{{1,3}}[.)])[ \t]*)?\[{_TICK_PATTERN}\]")
_ROUND_BOX = re.compile(rf"^\({_TICK_PATTERN}\)[ \t]")
# The rest of a comment whose first characters are missing.
_BROKEN_COMMENT_REST = re.compile(r"^(?:<!?-{0,2})?[ \t]*q[ \t]*:[ \t]*[\w-]+[ \t]*(?:$|\n|-+>)")
_GAP_PATTERN_BY_TYPE = {
    kind.name: kind.gap_pattern for kind in QUESTION_TYPES.values() if kind.gap_pattern
}
_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")  # in several scripts


def find_token_ranges_of_stray_answers(
    prose: Sequence[Token], *, is_page: bool = True
) -> Iterator[range]:
    """Yield the indices from an answer that belongs to no item to the next heading.

    They must not be shown to learners: a ticked option or a blank below a question that
    lost its comment gives the answer away, and an explanation may follow. On a page, a ticked
    task list is allowed if no question is asked.
    """
    start = at = 0
    is_stray, is_question = False, is_question_section(prose, 0) or not is_page
    while at < len(prose):
        end = find_closing_index(prose, at) + 1
        if prose[at].type == "heading_open":
            if is_stray:
                yield range(start, at)
            is_stray, is_question = False, is_question_section(prose, at) or not is_page
        if not is_stray and any(_gives_answer_away(t, is_question) for t in prose[at:end]):
            start, is_stray = at, True
        at = end
    if is_stray:
        yield range(start, at)


def find_next_heading_index(prose: Sequence[Token], start_index: int) -> int:
    for index in range(start_index + 1, len(prose)):
        if prose[index].type == "heading_open" and not prose[index].level:
            return index
    return len(prose)


def is_question_section(prose: Sequence[Token], heading_index: int) -> bool:
    """Return whether the section at an index asks a question or has quotes as reasons."""
    section = prose[heading_index : find_next_heading_index(prose, heading_index)]
    for above, token in itertools.pairwise(section):
        is_nested = token.level or above.type == "bullet_list_close"
        if token.type == "blockquote_open" and is_nested and not token.meta.get("alert"):
            return True
    has_heading = len(section) > 1 and section[0].type == "heading_open"
    title = section[1].content if has_heading else section[0].content if section else ""
    return title.rstrip(" *_`").endswith(_QUESTION_MARKS)


def find_checkbox_or_empty(token: Token) -> str:
    """Return the check box at the start of a line; "" if there is none or it is a link."""
    match = _CHECK_BOX.match(token.content) if token.type == "inline" else None
    return match[0] if match and not _starts_with_link(token) else ""


def replace_checkboxes_by_symbols(tokens: Sequence[Token]) -> None:
    """Replace the check boxes in a page's list of tasks by symbols."""
    for token in tokens:
        box = find_checkbox_or_empty(token) if token.level > 2 else ""
        if box and token.children:
            text = token.children[0]
            text.content = text.content.replace(box, "☑" if "x" in box.lower() else "☐", 1)


def is_misread_item_comment(token: Token) -> bool:
    """Return whether a paragraph was meant to be a question's comment."""
    text = token.content if token.type == "inline" else ""
    return bool(_BROKEN_COMMENT_REST.match(text) or BROKEN_COMMENT_START.match(text))


# Errors that say nothing about a stray answer in the same section.
_CODES_INDEPENDENT_OF_ITEMS = frozenset({"E61", "E74", "E86"})


def report_stray_answers(
    prose: Sequence[Token], parse_context: ParseContext, *, is_page: bool
) -> None:
    """Report E10, E24, E54: answers without a question, unless an error is already reported."""
    for block in find_token_ranges_of_stray_answers(prose, is_page=is_page):
        heading_index = block.start
        while heading_index > 0 and prose[heading_index].type != "heading_open":
            heading_index -= 1
        last = max(get_last_line_number(prose[at]) for at in block)
        section_lines = range(get_first_line_number(prose[heading_index]), last + 1)
        errors = (p for p in parse_context.problems if p.severity == "error")
        if not any(
            p.line in section_lines and p.code not in _CODES_INDEPENDENT_OF_ITEMS for p in errors
        ):
            _report_stray_answer(prose[block.start : block.stop], parse_context)


def _report_stray_answer(block: Sequence[Token], parse_context: ParseContext) -> None:
    token = next(t for t in block if _gives_answer_away(t, is_question_asked=True))
    first, last = get_first_line_number(token), get_last_line_number(token)
    if _BROKEN_COMMENT_REST.match(token.content):
        message = "The comment of a question is read as text."
        hint = "Write <!-- before q: and --> behind it."
        parse_context.report("E10", first, 1, message, hint)
        return
    if blank := _find_blank(token):
        type_name, blank_text = blank
        message = f"The blank “{blank_text[:_MOST_SHOWN]}” belongs to no question."
        hint = (
            f"Write it below a heading ### with <!-- type: {type_name} -->, not into the heading."
        )
        if parse_context.path.endswith("cards.md"):
            hint = "A card with a gap is its heading alone: ### A sentence with its [[gap]]."
        link = "A link to a page is [text](../topic/concept.md), a picture ![text](name.svg)"
        if parse_context.path.endswith("concept.md"):
            hint = f"{link}; a gap belongs to a cloze question. {hint}"
        else:
            hint += f" {link}."
        parse_context.report_at_text("E54", blank_text, first, last, message, hint)
        return
    line = next(filter(_is_line_ticked, token.content.split("\n")), token.content)
    message = f"“{line[:_MOST_SHOWN]}” belongs to no question, so it is not shown."
    hint = "Write ### and the question, <!-- q: some-id --> below it, then - [x] text."
    parse_context.report_at_text("E24", line, first, last, message, hint)


def _gives_answer_away(token: Token, is_question_asked: bool) -> bool:
    if token.type == "html_block":
        return token.content.strip() == UNCLOSED_COMMENT
    if token.type != "inline":
        return False
    if _BROKEN_COMMENT_REST.match(token.content) or _find_blank(token):
        return True
    in_list = token.level > 2 and bool(_ROUND_BOX.match(token.content))
    ticked = in_list or any(map(_is_line_ticked, token.content.split("\n")))
    return is_question_asked and ticked and not _starts_with_link(token)


def _is_line_ticked(line: str) -> bool:
    return bool(_TICKED_BOX.match(line) or _ROUND_BOX.match(line))


def _find_blank(token: Token) -> tuple[str, str] | None:
    """Return the question type and the text of the first blank outside of code and links."""
    texts = [c.content for c in token.children or () if c.type == "text"]
    for kind, blank in _GAP_PATTERN_BY_TYPE.items():
        if match := next(filter(None, map(blank.search, texts)), None):
            return kind, match[0]
    return None


def _starts_with_link(token: Token) -> bool:
    first = next(iter(token.children or ()), None)
    return first is not None and first.type == "link_open"


_REGION_COMMENT = re.compile(r"\s*<!--\s*q\s*:", re.IGNORECASE)
# A question's comment in other notation: dashes, quotes or the syntax of another
# format.
_STRAY_COMMENT_LINE = re.compile(r"[\W_\u30fc]+q\W{0,2}[:=]\s*\w[\w-]*|q\s*[:=]\s*\w[\w-]*\W*$")
_OF_COMMENT = re.compile(r"[a-z]+ *:( |$)|-+>?$")
_COMMENT_KEY_PATTERN = (
    r"(?:type|difficulty|objectives?|reverse|partial|shuffle|params|goal|estimate|figure)"
)
_COMMENT_WITHOUT_ID = re.compile(
    r"<!--\s*(?:(?:id|question)\s*:|q\w?\s*[;=\uff1a]|qq\s*:|q[ \t]+[\w-]"
    rf"|(?:[\w-]+\s*\n\s*)?(?:type|difficulty|objectives?)\s*:|{_COMMENT_KEY_PATTERN}\s*:)"
)
# The front and the back of a card as other programs write them.
_CARD_PAIR = re.compile(r"\S\s*:{2,3}\s*\S|^\*\*[^*]+\*\*\s*[:–—-]|^Q:\s|^[^;\t]+\t\S")
_HEADING_WITHOUT_SPACE = re.compile(r"(#{2,6})([^#\s].*)")
_KEYS_FIRST = re.compile(rf"<!--\s*{_COMMENT_KEY_PATTERN}\s*:")
_SLUG_LIKE_WORD = re.compile(SLUG_LIKE)
_MAX_REGION_SHOWN = 60
_MOST_NAMED = 50


@dataclasses.dataclass(slots=True)
class ProseRegion:
    tokens: list[Token]


Region = ProseRegion | ItemSource


def split_and_check_regions(
    text: str, parse_context: ParseContext, file_kind: FileKind
) -> list[Region]:
    """Split a text into regions, and report everything wrong between its items."""
    regions = split_into_regions(text, parse_context)
    neighbors = zip((None, *regions), regions, (*regions[1:], None), strict=False)
    for previous, region, following in neighbors:
        if isinstance(region, ProseRegion):
            is_cards = file_kind == "cards"
            if is_cards or not _report_answers_below_other_heading(previous, region, parse_context):
                _report_headings_without_id(region.tokens, file_kind, parse_context)
            parse_context.current_item = ""
            report_markup_typos(region.tokens, parse_context)
            report_stray_answers(region.tokens, parse_context, is_page=file_kind == "page")
            for token in region.tokens:
                if is_misread_item_comment(token):
                    parse_context.record_broken_comment_id(
                        token.content, get_first_line_number(token)
                    )
            if file_kind == "quiz":
                _report_quiz_heading_without_item(region.tokens, parse_context)
            if file_kind == "cards":
                _report_unrecognized_cards(region.tokens, parse_context)
            if file_kind != "page":
                _report_empty_headings(region.tokens, following, file_kind, parse_context)
    return regions


def split_into_regions(text: str, parse_context: ParseContext) -> list[Region]:
    """Split a text without front matter. Misplaced comments are reported."""
    tokens = parse_markdown(_blank_unclosed_comments(text, parse_context))
    regions: list[Region] = []
    prose: list[Token] = []
    at = 0
    while at < len(tokens):
        if _is_item_heading(tokens, at):
            if prose:
                regions.append(ProseRegion(prose))
                prose = []
            end = _find_end_of_item(tokens, at)
            regions.append(_build_item_source(tokens, at, end, parse_context))
            at = end
            continue
        if _is_item_comment(tokens[at]):
            _report_comment_without_heading(tokens[at], prose, parse_context)
        prose.append(tokens[at])
        at += 1
    if prose:
        regions.append(ProseRegion(prose))
    return regions


def _is_item_comment(token: Token) -> bool:
    return token.type == "html_block" and bool(_REGION_COMMENT.match(token.content))


def _blank_unclosed_comments(text: str, parse_context: ParseContext) -> str:
    """Empty the opening of an unclosed comment, which would swallow the following items."""
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
            _report_and_blank_unclosed_comment(lines, opened, parse_context)
            opened = -1
    if opened >= 0:
        _report_and_blank_unclosed_comment(lines, opened, parse_context)
    return "\n".join(lines)


def _report_and_blank_unclosed_comment(
    lines: list[str], opening_line_index: int, parse_context: ParseContext
) -> None:
    """Report E10 for an unclosed comment, and blank it and the lines with its keys."""
    parse_context.current_item = ""
    comment = "\n".join(parse_context.lines[opening_line_index : opening_line_index + 3])
    parse_context.record_broken_comment_id(comment, opening_line_index + 1)
    parse_context.report(
        "E10", opening_line_index + 1, 1, "The comment is never closed.", "Write --> there."
    )
    lines[opening_line_index] = UNCLOSED_COMMENT
    for index in range(opening_line_index + 1, len(lines)):
        if not _OF_COMMENT.match(lines[index]):
            return
        lines[index] = ""


def _report_comment_without_heading(
    token: Token, tokens_above: list[Token], parse_context: ParseContext
) -> None:
    """Report E02: a comment that is not right below a heading."""
    parse_context.current_item = ""
    parse_context.record_broken_comment_id(token.content, get_first_line_number(token))
    if _report_unspaced_heading_above(token, parse_context):
        return
    hint = "Put the question's first line above it as a heading: ### What …?"
    message = "The question comment has no heading right above it."
    headings = (t for t in reversed(tokens_above) if t.type == "heading_open" and not t.level)
    if heading := next(headings, None):
        hint = f"Move it up, right below the heading in line {get_first_line_number(heading)}; or, "
        hint += "if it is of another question, write that above it as a heading: ### What …"
    parse_context.report("E02", get_first_line_number(token), 1, message, hint)


def _report_unspaced_heading_above(token: Token, parse_context: ParseContext) -> bool:
    """Report E02: the line above a comment lacks the space of a heading."""
    line_above = get_first_line_number(token) - 1
    while line_above > 0 and not parse_context.lines[line_above - 1].strip():
        line_above -= 1
    line = parse_context.lines[line_above - 1] if line_above > 0 else ""
    match = _HEADING_WITHOUT_SPACE.fullmatch(line.strip())
    if match:
        report_unspaced_heading("E02", line_above, match, parse_context)
    return bool(match)


def report_unspaced_heading(
    code: str, line: int, match: re.Match[str], parse_context: ParseContext
) -> None:
    """Report once that a line lacks the space after its hashes to be a heading."""
    hashes, title = match.groups()
    excerpt = title if len(title) <= _MAX_REGION_SHOWN else f"{title[:_MAX_REGION_SHOWN]}…"
    message = f"“{hashes}{excerpt}” is no heading: a space is missing after {hashes}."
    if any(p.line == line and p.message == message for p in parse_context.problems):
        return
    parse_context.report(code, line, 1, message, f"Write {hashes} {excerpt}")


def _is_item_heading(tokens: list[Token], heading_index: int) -> bool:
    if tokens[heading_index].type != "heading_open" or tokens[heading_index].level:
        return False
    after = heading_index + 3
    return after < len(tokens) and _is_item_comment(tokens[after])


def _find_end_of_item(tokens: list[Token], heading_index: int) -> int:
    level = tokens[heading_index].tag
    for index in range(heading_index + 4, len(tokens)):
        token = tokens[index]
        heading = token.type == "heading_open" and not token.level
        if heading and (token.tag <= level or _is_item_heading(tokens, index)):
            return index
    return len(tokens)


def _build_item_source(
    tokens: list[Token], heading_index: int, end_index: int, parse_context: ParseContext
) -> ItemSource:
    line = get_first_line_number(tokens[heading_index])
    last = (
        get_first_line_number(tokens[end_index]) - 1
        if end_index < len(tokens)
        else len(parse_context.lines)
    )
    before = len(parse_context.problems)
    comment = parse_item_comment(
        tokens[heading_index + 3].content,
        get_first_line_number(tokens[heading_index + 3]),
        parse_context,
    )
    has_errors = any(p.severity == "error" for p in parse_context.problems[before:])
    # A figure counts as its words, so that its link makes no new revision.
    text = replace_figure_links_by_text("\n".join(parse_context.lines[line - 1 : last]))
    body_lines = parse_context.lines[get_last_line_number(tokens[heading_index + 3]) : last]
    body_text = replace_figure_links_by_text("\n".join(body_lines))
    body = tokens[heading_index + 4 : end_index]
    for token in filter(_is_item_comment, body):
        _report_second_comment(token, parse_context)
        has_errors = True
    level = int(tokens[heading_index].tag[1])
    return ItemSource(
        tokens[heading_index + 1], comment, body, line, level, text, has_errors, body_text
    )


def _report_second_comment(token: Token, parse_context: ParseContext) -> None:
    parse_context.record_broken_comment_id(token.content, get_first_line_number(token))
    if _report_unspaced_heading_above(token, parse_context):
        return
    hint = "An item has one comment: keep the id that it had first."
    message = "The item has a second question comment."
    parse_context.report("E02", get_first_line_number(token), 1, message, hint)


def _report_answers_below_other_heading(
    region_above: Region | None, region_below: ProseRegion, parse_context: ParseContext
) -> bool:
    """Report E24 if the answers are below a separate heading. Returns whether they are."""
    if not isinstance(region_above, ItemSource) or not region_above.comment.id:
        return False
    has_answer = any(
        t.type.endswith(("list_open", "table_open")) or _find_blank(t)
        for t in (region_above.heading, *region_above.body)
    )
    prose = region_below.tokens
    has_heading = prose[0].type == "heading_open" and len(prose) > 3
    if region_above.comment.field_text("type") or has_answer or not has_heading:
        return False
    if prose[3].type != "bullet_list_open" or "[x]" not in map(
        str.lower, _list_checkbox_marks(prose, 3)
    ):
        return False
    parse_context.current_item = region_above.comment.id
    message = f"The answers of the question in line {region_above.line} stand apart from it."
    hint = "Delete this heading, or give it more # than the question has."
    parse_context.report("E24", get_first_line_number(prose[0]), 1, message, hint)
    return True


def _report_headings_without_id(
    prose: list[Token], file_kind: FileKind, parse_context: ParseContext
) -> None:
    """Report E01: headings with answers but without an id.

    In a quiz one check box is enough, and so are a numbered list, a table or a blank below a
    heading of a question's level. On a page, a task list counts only if something is ticked and a
    question is asked. In a cards file, any text is a back, and a heading with a blank a card.
    """
    heading = -1
    for at, token in enumerate(prose):
        if token.type == "heading_open" and not token.level:
            heading = -1 if _has_broken_or_late_comment_below_heading(prose, at) else at
            is_card = file_kind == "cards" and (
                _has_card_back(prose, at) or _find_blank(prose[at + 1])
            )
            has_answer = is_card or (file_kind == "quiz" and _has_answer_without_boxes(prose, at))
            if heading >= 0 and (has_answer or _find_comment_without_id_below(prose, at)):
                _report_heading_without_id(prose, at, parse_context)
                heading = -1
        elif token.type == "paragraph_open" and match_unspaced_heading(prose[at + 1]):
            heading = at + 1
        elif token.type == "bullet_list_open" and not token.level and heading >= 0:
            boxes = _list_checkbox_marks(prose, at)
            ticked = any("x" in box.lower() for box in boxes)
            if boxes and (file_kind != "page" or (ticked and is_question_section(prose, heading))):
                _report_heading_without_id(prose, heading, parse_context)
                heading = -1


def _report_quiz_heading_without_item(prose: list[Token], parse_context: ParseContext) -> None:
    """Report E01: a heading in quiz.md with text below it that is not an item."""
    for at, token in enumerate(prose):
        if token.type != "heading_open" or token.level or not _has_card_back(prose, at):
            continue
        section = prose[at : find_next_heading_index(prose, at)]
        lines = range(get_first_line_number(token), max(map(get_last_line_number, section)) + 1)
        if not any(p.line in lines for p in parse_context.problems if p.severity == "error"):
            parse_context.current_item = ""
            message = "This heading has no id, and nothing reads what stands below it."
            hint = "Write <!-- q: some-id --> below it; or, as a note to other authors, "
            hint += "put all of it between <!-- and -->."
            parse_context.report("E01", get_first_line_number(token), 1, message, hint)


def _report_empty_headings(
    prose: list[Token],
    following_region: Region | None,
    file_kind: FileKind,
    parse_context: ParseContext,
) -> None:
    """Report E01, E57: headings with nothing below them, unless deeper headings follow."""
    for at, token in enumerate(prose):
        if token.type != "heading_open" or token.level or token.tag == "h1":
            continue
        end = find_next_heading_index(prose, at)
        section_body = [t for t in prose[at + 3 : end] if t.type != "html_block"]
        next_tag = prose[end].tag if end < len(prose) else ""
        if isinstance(following_region, ItemSource) and not next_tag:
            next_tag = f"h{following_region.level}"
        line = get_first_line_number(token)
        is_reported = any(p.line == line for p in parse_context.problems if p.severity == "error")
        if section_body or is_reported or next_tag > token.tag:
            continue
        parse_context.current_item = ""
        title = parse_context.lines[line - 1].strip("# ")[:_MAX_REGION_SHOWN]
        code, message = "E01", f"Nothing stands below “{title}”, so that it is no question."
        hint = "Write its answers below it, or delete it."
        if file_kind == "cards":
            code, message = "E57", f"The card “{title}” has no back."
            hint = "Write the answer as text below the heading, or delete it."
        parse_context.report(code, line, 1, message, hint)


def _report_unrecognized_cards(prose: list[Token], parse_context: ParseContext) -> None:
    """Report E01: cards in the form of a list, a table or pairs, or below a heading of a page."""
    for at, token in enumerate(prose):
        has_next = token.type == "heading_open" and at + 3 < len(prose)
        next_type = prose[at + 3].type if has_next else ""
        is_topic_heading = token.tag == "h2" and next_type not in {"", "heading_open"}
        lines = token.content.split("\n") if token.type == "inline" and token.level == 1 else ()
        is_pair = any(map(_CARD_PAIR.search, lines)) or "?" in lines
        is_list = token.type.endswith(("_list_open", "table_open")) and not token.level
        if not (is_topic_heading or is_pair or is_list) or token.map is None:
            continue
        reported_lines = {p.line for p in parse_context.problems if p.severity == "error"}
        first = get_first_line_number(token)
        if reported_lines.isdisjoint(range(first - 2, get_last_line_number(token) + 1)):
            excerpt = parse_context.lines[first - 1].strip("# ")[:_MAX_REGION_SHOWN]
            message = f"“{excerpt}” is no card: nothing reads it."
            hint = "Write the front behind ### and the back below it; for a gap, ### with [[word]]."
            parse_context.report("E01", first, 1, message, hint)
            return


def match_unspaced_heading(inline: Token) -> re.Match[str] | None:
    """Match a paragraph that lacks the space after its hashes to be a heading."""
    return None if inline.level > 1 else _HEADING_WITHOUT_SPACE.fullmatch(inline.content.strip())


def _has_broken_or_late_comment_below_heading(prose: list[Token], heading_index: int) -> bool:
    next_tokens = prose[heading_index + 3 : heading_index + 5]
    if next_tokens and next_tokens[0].content.strip() == UNCLOSED_COMMENT:
        return True
    if len(next_tokens) > 1 and BROKEN_COMMENT_START.match(next_tokens[1].content):
        return True
    return any(
        map(_is_item_comment, prose[heading_index : find_next_heading_index(prose, heading_index)])
    )


def _has_card_back(prose: list[Token], heading_index: int) -> bool:
    """Return whether there is text below a heading of a card's level."""
    next_tokens = prose[heading_index + 3 : heading_index + 5]
    if next_tokens and next_tokens[0].type == "html_block":
        next_tokens = next_tokens[1:]
    return (
        prose[heading_index].tag >= "h3"
        and bool(next_tokens)
        and next_tokens[0].type != "heading_open"
    )


def _has_answer_without_boxes(prose: list[Token], heading_index: int) -> bool:
    """Return whether a list of steps, a table of pairs or a blank stands below the heading."""
    if prose[heading_index].tag < "h3":
        return False
    section = prose[heading_index + 3 : find_next_heading_index(prose, heading_index)]
    forms = ("ordered_list_open", "table_open")
    return any((t.type in forms and not t.level) or "[[" in t.content for t in section)


def _find_comment_without_id_below(prose: list[Token], heading_index: int) -> Token | None:
    """Return the heading's comment that has fields but no id; else None."""
    next_token = prose[heading_index + 3] if heading_index + 3 < len(prose) else None
    if next_token is None or next_token.type != "html_block":
        return None
    return next_token if _COMMENT_WITHOUT_ID.match(next_token.content) else None


def _list_checkbox_marks(prose: list[Token], list_start: int) -> list[str]:
    list_tokens = prose[list_start : find_closing_index(prose, list_start)]
    return [box for t in list_tokens if t.level == 3 and (box := find_checkbox_or_empty(t))]


def _report_heading_without_id(
    prose: list[Token], heading_index: int, parse_context: ParseContext
) -> None:
    """Report E01 for a heading. `--fix` adds an id if there was none."""
    parse_context.current_item = ""
    heading, comment = prose[heading_index], _find_comment_without_id_below(prose, heading_index)
    noun = "card" if parse_context.path.endswith("cards.md") else "question"
    if comment is not None:
        message = f"The comment of this {noun} has no id."
        if _KEYS_FIRST.match(comment.content):
            hint = "Run the check with --fix, which writes one, or begin it with <!-- q: some-id"
            parse_context.report("E01", get_first_line_number(comment), 1, message, hint)
            parse_context.unidentified_items.append(
                _build_unidentified_item(prose, heading_index, parse_context)
            )
            return
        parse_context.record_broken_comment_id(comment.content, get_first_line_number(comment))
        hint = "Begin it with q: and an id: <!-- q: some-id"
        parse_context.report("E01", get_first_line_number(comment), 1, message, hint)
        return
    match = match_unspaced_heading(heading)
    if match:
        report_unspaced_heading("E01", get_first_line_number(heading), match, parse_context)
        return
    if stray_line := _find_stray_comment_line_or_zero(prose, heading_index, parse_context):
        excerpt = parse_context.lines[stray_line - 1].strip()[:40]
        message = f"“{excerpt}” is not the comment of this question."
        hint = "Write <!-- q: and the id right below the heading, and --> behind them."
        parse_context.report("E10", stray_line, 1, message, hint)
        return
    hint = "Run the check with --fix, which writes one, or write <!-- q: some-id --> below it."
    if parse_context.path.endswith("concept.md"):
        hint += " If nothing is asked here, write the list without boxes."
    message = f"This {noun} has no id."
    parse_context.report("E01", get_first_line_number(heading), 1, message, hint)
    parse_context.unidentified_items.append(
        _build_unidentified_item(prose, heading_index, parse_context)
    )


def _find_stray_comment_line_or_zero(
    prose: list[Token], heading_index: int, parse_context: ParseContext
) -> int:
    """Return the line that looks like the heading's comment; 0 if there is none."""
    section = prose[heading_index : find_next_heading_index(prose, heading_index)]
    end = max(map(get_last_line_number, section))
    fences = [
        range(get_first_line_number(t), get_last_line_number(t) + 1)
        for t in section
        if t.type == "fence"
    ]
    code_lines = {line for fence in fences for line in fence}
    for line in range(get_last_line_number(section[0]) + 1, end + 1):
        text = unicodedata.normalize("NFKC", html.unescape(parse_context.lines[line - 1]))
        if line not in code_lines and _STRAY_COMMENT_LINE.match(text):
            return line
    return 0


def _build_unidentified_item(
    prose: list[Token], heading_index: int, parse_context: ParseContext
) -> UnidentifiedItem:
    section = prose[heading_index : find_next_heading_index(prose, heading_index)]
    first, end = get_last_line_number(section[0]), max(map(get_last_line_number, section))
    body_text = replace_figure_links_by_text("\n".join(parse_context.lines[first:end]))
    title = replace_figure_links_by_text(section[1].content)
    comments = [t.content for t in section if t.type == "html_block"]
    line = parse_context.lines[first - 1]
    insertion = IdInsertion(TextPosition(first, 1), line, f"{line}\n<!-- q: ", " -->")
    if comment := _find_comment_without_id_below(prose, heading_index):
        insertion = _build_id_insertion(get_first_line_number(comment), parse_context)
    return UnidentifiedItem(
        insertion,
        title,
        tuple(_SLUG_LIKE_WORD.findall("\n".join(comments)))[:_MOST_NAMED],
        bottom_k_sketch(f"{title}\n{body_text}"),
        hash_words(title),
        hash_words(body_text),
    )


def _build_id_insertion(line: int, parse_context: ParseContext) -> IdInsertion:
    """Return how an id is written into the comment that begins in a line."""
    text = parse_context.lines[line - 1]
    start = text.index("<!--")
    after_opening = text[start + 4 :].lstrip()
    opening = text[start : len(text) - len(after_opening)]
    after = "\n" if after_opening else ""
    return IdInsertion(TextPosition(line, start + 1), opening, "<!-- q: ", after)


_COMMENT_START = "<!--"


def reduce_page_source_to_prose(text: str) -> str:
    """Return a page's source without front matter, items and comments.

    Answers whose question lost its comment are removed too, as on the rendered page.
    Comments are notes for other authors.
    """
    parse_context = ParseContext("", text)
    _, body = parse_front_matter(parse_context)
    lines = body.split("\n")
    removed_lines: set[int] = set()
    for region in split_into_regions(body, parse_context):
        if isinstance(region, ItemSource):
            removed_lines |= set(range(region.line, region.line + region.text.count("\n") + 1))
            continue
        for block in find_token_ranges_of_stray_answers(region.tokens):
            removed_lines |= {n for at in block for n in _line_numbers(region.tokens[at])}
        for token in region.tokens:
            if token.type == "html_block" and _COMMENT_START in token.content:
                removed_lines |= set(_line_numbers(token))
            elif token.type == "inline":
                _blank_comments(lines, token)
    remaining_lines = [line for number, line in enumerate(lines, 1) if number not in removed_lines]
    return "\n".join(remaining_lines).strip("\n") + "\n"


def _line_numbers(token: Token) -> range:
    start, end = token.map or (0, 0)
    first = get_first_line_number(token)
    return range(first, first + end - start)


def _blank_comments(lines: list[str], inline: Token) -> None:
    children = (c for c in inline.children or () if c.type == "html_inline")
    for comment in (c.content for c in children if c.content.startswith(_COMMENT_START)):
        block = _line_numbers(inline)
        block_text = "\n".join(lines[block.start - 1 : block.stop - 1])
        # Each line of a quotation has a marker, which the comment's content lacks.
        parts = (re.escape(part.strip()) for part in comment.split("\n"))
        pattern = r"[ \t]*\n[ \t>]*".join(parts)
        blanked_text = re.sub(pattern, lambda m: "\n" * m[0].count("\n"), block_text)
        lines[block.start - 1 : block.stop - 1] = blanked_text.split("\n")
