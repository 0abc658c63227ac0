"""What looks like markup, part of an answer or a term, but is read as text: E24, E50, E52, W70, W74.

A term is misread if it is a name of its own, or another one, but part of a term's text.
"""

import html
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from markdown_it.token import Token

from app.markup.markdown_tokens import get_first_line_number, get_last_line_number
from app.markup.problems import ParseContext, TextPosition
from app.questions.question_type import ItemParts, ItemSource

_MOST_SHOWN = 40
# Parts that are read literally or are not text: code, formulas, comments, addresses, tags.
_LITERAL_TEXT = re.compile(
    r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)|(?<!\\)\$(?! [^$\n]+ \$|`)[^$\n]+\$|<!--.*?-->"
    r"|(?<=\])\([^()\s]*(?:\s+\"[^\"]*\")?\)|<[^<>]+>",
    re.DOTALL,
)
_HIGHLIGHT_HINT = "There is no highlighter here: write **words**."
_FORMULA_HINT = "Write a formula between dollar signs: $x$; one of its own between two lines of $$."
_NO_CLASS = "Delete it: text has no classes or attributes here."
_HTML_ATTRIBUTE_NAMES = "width|height|style|class|id|target|align|loading|title|lang|start"
_PLACEHOLDER_HINT = "Put it into the text yourself: nothing is filled in here."
_PLAIN_LINK = "Write a link with plain brackets: [words](address)."
_ALERT_HINT = "Write > [!NOTE], TIP, WARNING or IMPORTANT, and > before each line of its text."
# Patterns and their remedies. Each matches only characters that nobody writes in prose;
# text that may be meant literally is left out, such as #tag, -- and 100%.
_FOREIGN_MARKUP_REMEDIES = tuple(
    (re.compile(pattern, re.MULTILINE), remedy)
    for pattern, remedy in (
        (r"^(?:\?\?\?\+?|!!!\+?)[ \t]+\w.*$|^\.\. [\w-]+::.*$|^:::+[ \t]*\S.*$", _ALERT_HINT),
        (r"\\\((?!\s).*?\\\)", _FORMULA_HINT),
        (r"\\\[(?:(?!\\\]).)*?(?!\\\])[\\^_={}+](?:(?!\\\]).)*\\\]", _FORMULA_HINT),
        (r"\\begin\{\w+\*?\}|(?<![\w:\\/])\\[A-Za-z]{2,}(?:\{[^{}]*\})*", _FORMULA_HINT),
        (r"(?<![\w(<\[/.])(?:https?://|www\.(?=[\w-]+\.))[^\s)>]+", "Write [words](https://…)."),
        (r"(?<![=\w])==(?=[^\s=])[^=\n]*?(?<=[^\s=])==(?![=\w])", _HIGHLIGHT_HINT),
        (r"(?<![|\w])\|\|(?=[^\s|])[^|\n]+?(?<=[^\s|])\|\|(?![|\w])", "Nothing hides text here."),
        (r"(?<![+\w])\+\+(?=\w)[^+\n]+?(?<=\w)\+\+(?![+\w])", _HIGHLIGHT_HINT),
        (r"%%(?:[^%]|%(?!%))+%%|^%%$", "Write a comment as <!-- words -->."),
        (r"(?<=[\w)])~[^\s~]{1,10}~(?!~)", "Write <sub>2</sub>."),
        (r"(?<=[\w)])\^[^\s^]{1,10}\^", "Write <sup>2</sup>."),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]{2,30}:(?![\w:`])", "Write the sign itself."),
        (r"(?<![\w:]):[a-z][a-z0-9_+-]*:(?=\0)", "Write the words or the link itself."),
        (r"\{:?[ \t]*[.#][\w-][^{}\n]*\}|(?<=\])\{[^{}\n]*\}", _NO_CLASS),
        (
            rf"\{{:?[ \t]*(?:{_HTML_ATTRIBUTE_NAMES})=[^{{}}\n]*\}}|(?<=\0)\{{:?[ \t]*[\w-]+=",
            _NO_CLASS,
        ),
        (r"(?<=\S )\{-\}$", _NO_CLASS),
        (r"!\[[^\]\n]*\|\d{1,4}(?:x\d{1,4})?\](?=\0)", "Delete the bar and the width."),
        (r"\$\0+\$", _FORMULA_HINT),
        (r"(?<![\w$\\])\$ (?=[A-Za-z\\])[^$\n]*[\w})] \$(?![\w$])", _FORMULA_HINT),
        (r"\{\{[<%][^{}\n]*[>%]\}\}|\{%[^{}\n]*%\}|\{\{[^{}\n:]*\}\}", _PLACEHOLDER_HINT),
        (
            r"\{\{c\d+::[^{}\n]*\}\}",
            "Write [[answer]]: in a question, or in the heading of a card without a back.",
        ),
        (r"\[/(?:b|i|u|s|url|img|code|quote|color|size)\]", "Write **bold**, *italic* or `code`."),
        (r"\^\[[^\]\n]*\s[^\]\n]*\]", "Write the words into the text, or cite a source: [^key]."),
        (r"\[?-?(?<![\w.])@[a-z][\w:-]*\d{4}[a-z]?\b\]?", "Cite a source: [^key]."),
        (r"(?:^|[ \t])\^[\w-]+[ \t]*$", "Delete it: links lead to headings."),
        (r"^\[(?:TOC|\[_?TOC_?\])\]$|^\[toc\]$", "Delete it: a page lists its sections itself."),
        (r"^===[+!]?[ \t]+[\"“].*$", "Write a heading: there are no tabs."),
        (r"^={2,6}[ \t][^=\n]+[ \t]={2,6}$", "Write a heading: ## words."),
        (r"^\+[-=]{3,}\+?(?:[-=]*\+)*$", "Write the table with | and a line |---|---|."),
        (r"^:[ \t]{1,3}\S.*$", "Write - **Term**: meaning, or put the term into glossary.md."),
        (r"^\*\[[^\]\n]+\]:[ \t].*$", "Put the term into glossary.md."),
        (r"^[a-z][\w-]*::[ \t]\S.*$", "Delete it: a page has its properties at the top."),
        (r"\uff3b\uff3b[^\n]*?\uff3d\uff3d", "Write the blank with plain brackets: [[answer]]."),
        (r"^(?:\uff3b[!\uff01]|\[\uff01)\w+[\]\uff3d].*$", _ALERT_HINT),
        (
            r"\[[^\]\n]+\]\uff08[^\uff09\n]*\uff09|\uff3b[^\uff3d\n]+\uff3d[(\uff08][^)\uff09\n]*[)\uff09]",
            _PLAIN_LINK,
        ),
        (r"^\uff40{3}.*$", "Write three plain backticks: ```."),
        (r"^\uff03{1,6}.*$", "Write a heading with plain signs: ## words."),
        (r"^\uff5c[^\n]*\uff5c$", "Write the table with | and a line |---|---|."),
        (r"\uff0a\uff0a[^\uff0a\n]+\uff0a\uff0a", "Write **words** with plain stars."),
        (r"^\|[ \t][^|\n]+$", "End the line above with two spaces, which breaks it."),
    )
)

# A task state. In an item it would be an option that cannot be read.
_ODD_TASK_BOX_REMEDY = (
    re.compile(r"^\[[-/<>!?~]\][ \t]", re.MULTILINE),
    "Write [ ] or [x] in the box.",
)
_EMPHASIS_MARKS = re.compile(r"(?<=\S)(?:\*\*|~~)|(?:\*\*|~~)(?=\S)")
# Markup that plain text shows literally.
_INLINE_MARKUP = re.compile(
    r"\*\*[^*]+\*\*|`[^`]+`|\$[^$\s][^$]*\$|\[[^\]]+\]\([^)]+\)|\[\^[^\]]+\]"
)


def report_markup_in_plain_value(
    key: str, text: str, position: TextPosition, parse_context: ParseContext
) -> None:
    """Report markup in a value of front matter that is shown as plain text."""
    if match := _INLINE_MARKUP.search(text):
        message = f"“{match[0][:_MOST_SHOWN]}” is shown as it stands: “{key}” is plain text."
        parse_context.report("W74", *position, message, "Write the words alone.")


def _report_unmatched_emphasis_marks(inline: Token, parse_context: ParseContext) -> None:
    for child in inline.children or ():
        match = _EMPHASIS_MARKS.search(child.content) if child.type == "text" else None
        if match and match[0] in inline.content and f"\\{match[0][0]}" not in inline.content:
            first, last = (
                get_first_line_number(inline),
                get_first_line_number(inline) + inline.content.count("\n"),
            )
            message = f"“{match[0]}” is shown as it stands: it begins or ends nothing."
            hint = f"Write it right beside the words, on both sides: {match[0]}words{match[0]}"
            parse_context.report_at_text("W74", match[0], first, last, message, hint)
            return


def report_foreign_markup(inline: Token, parse_context: ParseContext) -> None:
    """Report markup of other editors in a paragraph, a heading or a cell, each character once."""
    _report_unmatched_emphasis_marks(inline, parse_context)
    text = _LITERAL_TEXT.sub(_mask_with_nuls, inline.content)
    box_error_lines = {p.line for p in parse_context.problems if p.code == "E74"}
    reported_offsets: set[int] = set()
    for pattern, remedy in (
        _FOREIGN_MARKUP_REMEDIES
        if parse_context.current_item
        else (*_FOREIGN_MARKUP_REMEDIES, _ODD_TASK_BOX_REMEDY)
    ):
        for match in pattern.finditer(text):
            line = get_first_line_number(inline) + text.count("\n", 0, match.start())
            if line in box_error_lines or not reported_offsets.isdisjoint(range(*match.span())):
                continue
            reported_offsets.update(range(*match.span()))
            excerpt = inline.content[match.start() : match.end()].strip().split("\n")[0]
            message = f"“{excerpt[:_MOST_SHOWN]}” is shown as it stands: it means nothing here."
            parse_context.report_at_text("W74", excerpt, line, line, message, remedy)


def _mask_with_nuls(literal: re.Match[str]) -> str:
    """Return NULs in place of all characters except line breaks."""
    return "".join(c if c == "\n" else "\0" for c in literal[0])


# Lines are compared after NFKC normalization. Some of these spaces are invisible.
_SPACE = r"[\s\u00ad\u200b-\u200f\u2060\ufeff]"
_BULLET = r"(?:[^\w\s()\[\]`$\"'“”„«]{1,3}|[_\u30fc]|[oO](?=\W)|\d{1,3}[.):]|[A-Za-z][.)])"
_TICK = "[xX\u0445\u0425\u00d7✓✔✅✗✘*]"
# Only one group can match each space, so that a box of many spaces is matched in one pass.
_BOX_CONTENT = rf"{_SPACE}*(?:(?:{_TICK}|\d{{1,3}}(?:[.,]\d+)?{_SPACE}*%){_SPACE}*)?"
_CHECK_BOX = rf"[\[\u3010\u3014]{_BOX_CONTENT}[\]\u3011\u3015](?![(\[:])"
_OPTION_LINE = re.compile(
    rf"^(?:{_SPACE}|>)*(?:{_BULLET}{_SPACE}*){{0,2}}(?:{_CHECK_BOX}|[☐☑☒🗹🗷⬜⬛])"
    rf"|^(?:{_SPACE}|>)*{_BULLET}{_SPACE}+\({_BOX_CONTENT}\){_SPACE}"
)
# Likely an option when next to options, but ordinary text elsewhere.
_OTHER_BULLET_LINE = re.compile(
    rf"^{_SPACE}{{0,3}}(?:[–—−\u2010•·∙‣◦▪●○◯⚪■□▢◆➢►✦✓✔✗✘✅❌√]{_SPACE}"
    rf"|\({_BOX_CONTENT}\){_SPACE}|\(?[A-Za-z]\){_SPACE})"
)
# Probably meant as the reason (quote) below an option.
_FEEDBACK_LINE = re.compile(rf"^{_SPACE}*(?:[>»\u203a\u276f|→]|[-=]+>){_SPACE}*\w")
_HINT_LABEL = re.compile(r"(?:\*\*)?(?:Hint|Clue|Tip)s?(?:\*\*)?:(?:\*\*)?(?=\s)", re.IGNORECASE)
_NUMBERED_STEP_LINE = re.compile(rf"^{_SPACE}*\d{{1,2}}{_SPACE}*[.)\u3001]{_SPACE}*(?=\w)")
_TABLE_ROW_LINE = re.compile(rf"^{_SPACE}*\|.*\|{_SPACE}*$")
_LITERAL_BLOCKS = ("fence", "code_block", "html_block", "math_block", "table_open")


def report_misread_answer_lines(
    source: ItemSource, parts: ItemParts, type_name: str, parse_context: ParseContext
) -> None:
    """Report lines that look like an option, a step or a table row but are read as text.

    Otherwise, because of a typo, they would appear as part of the line above.
    """
    if type_name == "card":
        return
    _report_hints_in_explanation(parts, parse_context)
    handled_lines = {p.line for p in parse_context.problems if p.severity == "error"}
    handled_lines |= {option.line for option in parts.options}
    handled_lines |= _list_block_lines(source, *_LITERAL_BLOCKS)
    if type_name == "order":
        handled_lines |= {
            get_first_line_number(t) for t in source.body if t.type == "list_item_open"
        }
    lines = {*_find_matching_lines(_OPTION_LINE, source, parse_context, handled_lines)}
    if parts.options:
        matching_lines = _find_matching_lines(
            _OTHER_BULLET_LINE, source, parse_context, handled_lines
        )
        lines |= _find_lines_near_lists_and_quotes(source).intersection(matching_lines)
        lines |= _find_list_items_next_to_options(source, parts, parse_context) - handled_lines
    _report_lines_read_as_text(sorted(lines), "E24", parse_context)
    if parts.options:
        _report_lines_joined_to_option(source, parts, parse_context, handled_lines | lines)
    handled_lines |= _list_block_lines(source, "blockquote_open")
    if type_name == "order":
        steps = _find_matching_lines(_NUMBERED_STEP_LINE, source, parse_context, handled_lines)
        _report_lines_read_as_text(steps, "E50", parse_context)
    elif type_name == "match" and parts.answer_block:
        rows = _find_matching_lines(_TABLE_ROW_LINE, source, parse_context, handled_lines)
        _report_lines_read_as_text(rows, "E52", parse_context)


def _report_hints_in_explanation(parts: ItemParts, parse_context: ParseContext) -> None:
    """Report W74: a paragraph after the answers that is meant as a hint."""
    for token in parts.explanation:
        match = (
            _HINT_LABEL.match(token.content)
            if token.type == "inline" and token.level == 1
            else None
        )
        if match:
            message = f"“{match[0]}” begins the explanation, which is shown after the answer."
            hint = "For a hint write > [!TIP] on a line above, and > before each line of its text."
            parse_context.report("W74", get_first_line_number(token), 1, message, hint)


_NOUN_AND_HINT_BY_CODE = {
    "E24": ("an option", "Write each option on a line of its own, as - [ ] text."),
    "E50": ("a step", "Number each step at the begin of its line: 1. 2. 3."),
    "E52": ("a row of the table", "Leave no line empty between the rows."),
}


def _report_lines_read_as_text(
    lines: Iterable[int], code: str, parse_context: ParseContext
) -> None:
    noun, hint = _NOUN_AND_HINT_BY_CODE[code]
    for line in lines:
        excerpt = parse_context.lines[line - 1].strip()[:_MOST_SHOWN]
        message = f"“{excerpt}” is read as text, not as {noun}."
        parse_context.report(code, line, 1, message, hint)


def _find_matching_lines(
    pattern: re.Pattern[str],
    source: ItemSource,
    parse_context: ParseContext,
    handled_lines: set[int],
) -> Iterator[int]:
    """Yield the matching lines below the item's comment, except those in `read`."""
    last = source.line + source.text.count("\n")
    for line in range(last - source.text_after_comment.count("\n"), last + 1):
        text = unicodedata.normalize("NFKC", html.unescape(parse_context.lines[line - 1]))
        if line not in handled_lines and pattern.match(text):
            yield line


def _find_lines_near_lists_and_quotes(source: ItemSource) -> set[int]:
    """Return lines of lists and adjacent lines, and lines with a quote below."""
    lists = _list_block_lines(source, "bullet_list_open")
    quotes = (t for t in source.body if t.type == "blockquote_open")
    lines_above_quotes = {get_first_line_number(t) - 1 for t in quotes if not t.meta.get("alert")}
    return lines_above_quotes | lists | {n + 1 for n in lists} | {n - 1 for n in lists}


def _find_list_items_next_to_options(
    source: ItemSource, parts: ItemParts, parse_context: ParseContext
) -> set[int]:
    """Return items of lists without options that directly adjoin a list of options."""
    options = {option.line for option in parts.options}
    lists = [
        {*range(get_first_line_number(t), get_last_line_number(t) + 1)}
        for t in source.body
        if t.type in {"bullet_list_open", "ordered_list_open"} and t.level == 0
    ]
    filled = [{n for n in lines if parse_context.lines[n - 1].strip()} for lines in lists]
    starts: set[int] = set()
    for upper_list, lower_list in itertools.pairwise(filled):
        lines_between = parse_context.lines[max(upper_list) : min(lower_list) - 1]
        has_upper, has_lower = bool(upper_list & options), bool(lower_list & options)
        if all(map(str.strip, lines_between)) and has_upper != has_lower:
            starts |= lower_list if has_upper else upper_list
    items = (t for t in source.body if t.type == "list_item_open" and t.level == 1)
    return starts & {get_first_line_number(t) for t in items}


def _report_lines_joined_to_option(
    source: ItemSource, parts: ItemParts, parse_context: ParseContext, handled_lines: set[int]
) -> None:
    """Report E24 for lines that Markdown reads as part of the option above them.

    A line that is not indented may be another option; one with a sign like > was
    probably meant as the option's reason.
    """
    option_lines = {option.line for option in parts.options}
    quotes = _list_block_lines(source, "blockquote_open")
    items = [t for t in source.body if t.type == "list_item_open" and t.level == 1]
    option_items = [t for t in items if get_first_line_number(t) in option_lines]
    line_ranges = [
        range(get_first_line_number(t) + 1, get_last_line_number(t) + 1) for t in option_items
    ]
    continuation_lines = {line for lines in line_ranges for line in lines}
    for line in sorted(continuation_lines - handled_lines):
        raw = parse_context.lines[line - 1]
        text = unicodedata.normalize("NFKC", html.unescape(raw))
        is_unindented = raw.strip() and not raw[0].isspace()
        if is_unindented or (line not in quotes and _FEEDBACK_LINE.match(text)):
            message = f"“{raw.strip()[:_MOST_SHOWN]}” is read as part of the option"
            hint = "Begin a reason with two spaces and >, and an option with - [ ]."
            parse_context.report("E24", line, 1, f"{message} above it.", hint)


def _list_block_lines(source: ItemSource, *token_types: str) -> set[int]:
    blocks = (token for token in source.body if token.type in token_types)
    return {
        line
        for t in blocks
        for line in range(get_first_line_number(t), get_last_line_number(t) + 1)
    }


# A bold word and a colon or a dash, at the beginning of a paragraph or list item.
_BOLD_TERM = re.compile(
    r"(?:\*\*|__)(?P<term>[^*_\n]{1,60}?)(?::(?:\*\*|__)|(?:\*\*|__)(?::| [–—-]{1,3}) )\s*\S"
)
_OTHER_NAMES = re.compile(
    r"[*_]{0,2}(?:Aliase?s?|Synonyms?|Also(?: known as| called)?|Aka|Plurals?|Abbreviations?|Acronyms?)"
    r"[*_]{0,2}[:\uff1a]",
    re.IGNORECASE,
)
_GLOSSARY_ALIAS_COMMENT = re.compile(
    r"<!--\s*(?:(?!-->).)*?\b(?:aliases|alias|synonyms|names)\s*:", re.DOTALL
)
_TERM_COLUMN = re.compile(r"(?:term|word|abbreviation|acronym|name)s?$", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"\d{1,3}[.)]\s+")
_TWO_NAMES = re.compile(r"\s+(?:/|\||=|[–—-]{1,3}|or|aka)\s+|\((?:e?s|en)\)$")
_PLACE_OF_NAMES = "Write other names in parentheses behind the term: ## Term (name, other name)."


_NAMES_WITH_COMMA = re.compile(r"^[^(),]+,[^(),]+$")


def report_term_heading_problems(
    name: str, tag: str, line: int, parse_context: ParseContext
) -> None:
    """Report W70 for a heading that is deeper than those of terms, or that holds two names."""
    if tag != "h2":
        message = f"“{name[:_MOST_SHOWN]}” is a term of its own, though its heading is deeper."
        hint = f"Write ## {name}, or **{name}** in the text of the term above."
        parse_context.report("W70", line, 1, message, hint)
    if _NAMES_WITH_COMMA.match(name):
        first, _, other_names = name.partition(",")
        message = f"“{name[:_MOST_SHOWN]}” is one name, with its comma."
        hint = f"Write ## {first} ({other_names.strip()}) for a term with other names."
        parse_context.report("W70", line, 1, message, hint)


def report_misread_term_and_meaning(
    name: str, line: int, body: Sequence[Token], parse_context: ParseContext
) -> None:
    """Report W70 for the heading and the text of a term; an empty name means text of no term."""
    misreading = (
        f"is part of the meaning of “{name[:_MOST_SHOWN]}”" if name else "defines no term here"
    )
    if match := _LEADING_NUMBER.match(name):
        message = f"The number belongs to the term: “{name[:_MOST_SHOWN]}”."
        parse_context.report("W70", line, 1, message, f"Write ## {name[match.end() :]}")
    elif match := _TWO_NAMES.search(name):
        message = f"“{name[:_MOST_SHOWN]}” is one name, with its “{match[0].strip()}”."
        hint = _PLACE_OF_NAMES
        if match[0][0] == "(":
            hint = "Leave it out: the plural is found as well."
        parse_context.report("W70", line, 1, message, hint)
    for at, token in enumerate(body):
        if token.type == "html_block" and _GLOSSARY_ALIAS_COMMENT.match(token.content):
            message = "Nothing reads the names in this comment."
            parse_context.report("W70", get_first_line_number(token), 1, message, _PLACE_OF_NAMES)
        if token.type != "inline":
            continue
        if body[at - 1].type == "th_open" and _TERM_COLUMN.match(token.content):
            message = f"This table {misreading}."
            hint = "Write each term as ## and its name, and its meaning below it."
            parse_context.report("W70", get_first_line_number(token), 1, message, hint)
        elif match := _OTHER_NAMES.match(token.content):
            message = f"“{match[0]}” {misreading}."
            parse_context.report("W70", get_first_line_number(token), 1, message, _PLACE_OF_NAMES)
        elif match := _BOLD_TERM.match(token.content):
            message = f"“{match['term']}” {misreading}."
            hint = f"For a term of its own write ## {match['term']} and its meaning below it."
            parse_context.report("W70", get_first_line_number(token), 1, message, hint)
