"""Parse and check answer options, and give them stable keys."""

import dataclasses
import itertools
import re
from collections.abc import Sequence, Sized

from markdown_it.token import Token

from app.markup.checked_figures import replace_figure_links_by_text
from app.markup.html_renderer import RenderContext, render_tokens
from app.markup.markdown_tokens import (
    find_closing_index,
    get_first_line_number,
    plain_text,
    pop_pinned_key,
)
from app.markup.model import NO_TEXT, RichText
from app.markup.problems import MOST_OPTIONS, ParseContext
from app.markup.text import hash_to_four_letters, reduce_to_words

_PERCENT_PATTERN = r"\d{1,3}(?:\.\d{1,5})?[ \t]*%"
_OPTION_BOX = re.compile(
    rf"^\[(?P<inside>[ \t]*(?:[xX][ \t]*)?|[ \t]*{_PERCENT_PATTERN}[ \t]*(?=\][ \t]))\]"
    r"(?P<gap>[ \t]*)"
)
_PARTIAL_CREDIT_PERCENT = re.compile(r"(?!0+(?:\.0+)?%)\d{1,2}(?:\.\d{1,5})?%")

_LONGEST_ANSWER = 40
_OPTION_KEY_COMMENT = re.compile(r"<!--\s*=.*?-->")
_INVISIBLE_CHARACTER = re.compile("[\u00ad\u200b\u2060\ufeff]")


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One option. `key` is its stable key of a few letters, stored in ids.lock.

    `credit` is the score, 0..1, of an option that is not right.
    """

    key: str
    text: RichText
    right: bool
    feedback: RichText = NO_TEXT
    pinned: bool = False
    credit: float = 0.0


@dataclasses.dataclass(slots=True)
class ParsedOption:
    """One item of a task list.

    `credit` is the partial credit of a box such as [50%], 0..1; such an option is not ticked.
    """

    ticked: bool
    text_token: Token
    feedback: list[Token]
    line: int
    pinned_key: str
    markdown: str
    credit: float = 0.0

    @property
    def plain_text(self) -> str:
        return plain_text([self.text_token])

    @property
    def checkbox(self) -> str:
        return "[x]" if self.ticked else format_checkbox_of_wrong_option(self.credit)

    def report_problem(
        self, code: str, message: str, hint: str, parse_context: ParseContext
    ) -> None:
        """Report a problem at its text, after the box."""
        first = self.markdown.strip().split("\n")[0]
        parse_context.report_at_text(code, first, self.line, self.line, message, hint)


def format_checkbox_of_wrong_option(credit: float) -> str:
    """Return the box in Markdown, with the partial credit.

    >>> [format_checkbox_of_wrong_option(credit) for credit in (0.5, 0.3333333, 0.0)]
    ['[50%]', '[33.33333%]', '[ ]']
    """
    return f"[{100 * credit:.7g}%]" if credit else "[ ]"


def is_task_list(tokens: list[Token]) -> bool:
    """Return whether a list of tokens has boxes, well-formed or not."""
    return any(_OPTION_BOX.match(t.content) for t in _list_item_text_tokens(tokens))


def _list_item_text_tokens(tokens: list[Token]) -> list[Token]:
    level = tokens[0].level + 3
    inside = tokens[: find_closing_index(tokens, 0)]
    return [
        token
        for previous, token in itertools.pairwise(inside)
        if token.type == "inline" and token.level == level and previous.type == "paragraph_open"
    ]


def read_task_list_options(
    list_tokens: list[Token], parse_context: ParseContext
) -> list[ParsedOption]:
    options: list[ParsedOption] = []
    end = find_closing_index(list_tokens, 0)
    index = 1
    while index < end:
        closing = find_closing_index(list_tokens, index)
        option = _parse_option(
            list_tokens[index + 1 : closing],
            get_first_line_number(list_tokens[index]),
            parse_context,
        )
        if option is not None:
            options.append(option)
        index = closing + 1
    _report_bad_pinned_keys(options, parse_context)
    return options


def _report_bad_pinned_keys(options: list[ParsedOption], parse_context: ParseContext) -> None:
    """Report pinned keys that are unreadable (E10) or used twice (E11)."""
    seen: dict[str, int] = {}
    for option in options:
        match = _OPTION_KEY_COMMENT.search(option.markdown)
        if match and not option.pinned_key:
            message = f"The key in “{match[0][:40]}” cannot be read."
            hint = "Write one word of letters, digits and hyphens: <!-- = four -->"
            location = parse_context.locate_text("<!--", option.line, option.line)
            parse_context.report("E10", *location, message, hint)
        if option.pinned_key in seen and option.pinned_key:
            first = seen[option.pinned_key]
            message = f"“{option.pinned_key}” is the key of the option in line {first}."
            location = parse_context.locate_text("<!--", option.line, option.line)
            parse_context.report("E11", *location, message, "Give this one a key of its own.")
        seen.setdefault(option.pinned_key, option.line)


def _parse_option(
    item_tokens: list[Token], line: int, parse_context: ParseContext
) -> ParsedOption | None:
    inline = item_tokens[1] if len(item_tokens) > 1 else None
    if inline is None or inline.type != "inline":
        parse_context.report("E24", line, 1, "This option is empty.", "Write - [ ] and a text.")
        return None
    match = _OPTION_BOX.match(inline.content)
    if match is None or not _is_well_formed_box(match, inline):
        column = parse_context.locate_text("[", line, line)[1] if match else 3
        first_characters = inline.content[:12].split("\n")[0]
        message = f"“{first_characters}” does not begin with a check box."
        hint = "Write - [ ] text or - [x] text."
        if match and "%" in match["inside"]:
            message = f"“{match[0].strip()}” is no part of the mark."
            hint = "Write 1% to 99%, as in - [50%] text; [x] is all of it, [ ] none."
        parse_context.report("E24", line, column, message, hint, is_consequence=True)
        return None
    _report_nested_options(item_tokens, parse_context)
    _strip_box(inline, match.end())
    source = (
        inline.content
    )  # The box is left out: a key must not depend on whether the option is right.
    pinned = pop_pinned_key(inline)
    if not plain_text([inline]):
        parse_context.report("E24", line, 1, "This option has no text.", "Write - [ ] text.")
        return None
    ticked = "x" in match["inside"].lower()
    box_text = match["inside"]
    credit = round(float(box_text[:-1]) / 100, 7) if "%" in box_text else 0.0
    return ParsedOption(ticked, inline, _option_feedback(item_tokens), line, pinned, source, credit)


def _report_nested_options(item_tokens: list[Token], parse_context: ParseContext) -> None:
    for token in item_tokens[2:]:
        if token.type == "inline" and _OPTION_BOX.match(token.content):
            message = "This option stands inside of the one above it."
            hint = "Take the spaces before it away."
            parse_context.report("E24", get_first_line_number(token), 1, message, hint)
            return


def _is_well_formed_box(match: re.Match[str], inline: Token) -> bool:
    rest = inline.content[match.end() :]
    is_known = match["inside"] in {" ", "x", "X"} or _PARTIAL_CREDIT_PERCENT.fullmatch(
        match["inside"]
    )
    return bool(is_known and (match["gap"] or not rest))


def _strip_box(inline: Token, length: int) -> None:
    inline.content = inline.content[length:]
    for child in inline.children or []:
        removed = min(length, len(child.content))
        child.content = child.content[removed:]
        length -= removed
        if length <= 0:
            return


def _option_feedback(item_tokens: list[Token]) -> list[Token]:
    """Return the feedback: the quote below an option, or its further paragraphs."""
    rest = item_tokens[3:]
    if rest and rest[0].type == "blockquote_open":
        end = find_closing_index(rest, 0)
        return rest[1:end] + rest[end + 1 :]
    return rest


def sole_code_span_or_none(option: ParsedOption) -> str | None:
    """Return the content of an option that is one code span, else None."""
    visible = [c for c in option.text_token.children or [] if c.content.strip() or c.nesting]
    if len(visible) == 1 and visible[0].type == "code_inline":
        return visible[0].content
    return None


def make_option_key(item_id: str, option: ParsedOption, taken_keys: set[str]) -> str:
    """Return the opaque key of an option, made from its pin or its text, never its position."""
    hashed_text = (
        f"= {option.pinned_key}"
        if option.pinned_key
        else reduce_to_words(replace_figure_links_by_text(option.markdown))
    )
    key = hash_to_four_letters(item_id, hashed_text)
    count = 1
    while key in taken_keys:
        count += 1
        key = hash_to_four_letters(item_id, hashed_text, str(count))
    taken_keys.add(key)
    return key


def render_optional_rich_text(tokens: list[Token], context: RenderContext) -> RichText:
    """Render feedback and the like; an empty text if there is none."""
    return render_tokens(tokens, context) if tokens else NO_TEXT


def build_choices(
    item_id: str, options: list[ParsedOption], context: RenderContext
) -> tuple[Choice, ...]:
    taken_keys: set[str] = set()
    choices = []
    for option in options:
        key = make_option_key(item_id, option, taken_keys)
        text = render_tokens([option.text_token], context)
        is_pinned = refers_to_other_options(option.plain_text)
        feedback = render_optional_rich_text(option.feedback, context)
        choices.append(Choice(key, text, option.ticked, feedback, is_pinned, option.credit))
    return tuple(choices)


_ALL_OR_NONE_OF_THE_ABOVE = re.compile(
    r"^(?:all|none|any|both|neither) of (?:the above|these|them)\b", re.IGNORECASE
)


def refers_to_other_options(option_text: str) -> bool:
    """Return whether an option refers to the others and so must stay last.

    >>> refers_to_other_options("All of the above"), refers_to_other_options("All of the GPUs")
    (True, False)
    """
    return bool(_ALL_OR_NONE_OF_THE_ABOVE.match(option_text.strip()))


def read_sole_code_span_or_report(option: ParsedOption, parse_context: ParseContext) -> str | None:
    """Return the one code span of an option; report any other content."""
    template = sole_code_span_or_none(option)
    if template is None:
        text = " ".join(option.plain_text.replace("`", "").split())
        sample_answer = text if len(text) <= _LONGEST_ANSWER else "140 GB ± 3%"
        hint = f"Write the whole answer as one code span: - {option.checkbox} `{sample_answer}`."
        children = option.text_token.children or ()
        spans = [c for c in children if c.type == "code_inline"]
        between = "".join(c.content for c in children if c.type == "text").strip()
        if len(spans) > 1 and between:
            hint = "Write each answer as an option of its own: "
            hint += f"- {option.checkbox} `{spans[0].content}`"
        message = f"“{text[:_LONGEST_ANSWER]}” is not one code span."
        option.report_problem("E40", message, hint, parse_context)
    elif match := _INVISIBLE_CHARACTER.search(template):
        message = f"The answer holds a character that nobody types (U+{ord(match[0]):04X})."
        option.report_problem("E76", message, "Delete it; it is not seen.", parse_context)
    return template


def make_step_or_row_key(item_id: str, hashed_text: str, taken_keys: set[str]) -> str:
    key, count = hash_to_four_letters(item_id, hashed_text), 0
    while key in taken_keys:
        count += 1
        # Hashing the previous key can cycle through taken keys. After that many tries,
        # hash the counter instead.
        key = hash_to_four_letters(
            item_id, hashed_text, key if count <= len(taken_keys) else str(count)
        )
    taken_keys.add(key)
    return key


def report_if_max_parts_reached(
    parts: Sized, parts_label: str, line: int, parse_context: ParseContext
) -> bool:
    """Return whether a question has its maximum number of parts; report the first extra one."""
    if len(parts) < MOST_OPTIONS:
        return False
    message = f"The question has more than {MOST_OPTIONS} {parts_label}."
    parse_context.report("E88", line, 1, message, "Split it into several questions.")
    return True


TWO_ANSWERS_PATTERN = re.compile(r"^(\w[\w-]*(?: \w[\w-]*)?) (?:/|or) (\w[\w-]*(?: \w[\w-]*)?)$")
"""Pattern of a typed answer that is likely two answers."""


def report_unticked_repeated_or_unexplained_options(
    options: Sequence[ParsedOption], line: int, parse_context: ParseContext
) -> None:
    """Report that none is ticked (E20), one is repeated (E23), a wrong one lacks feedback (W25)."""
    report_if_no_option_right(options, line, parse_context)
    report_duplicate_options(options, parse_context)
    report_wrong_options_without_feedback(options, parse_context)


def report_if_no_option_right(
    options: Sequence[ParsedOption],
    line: int,
    parse_context: ParseContext,
    hint: str = "Mark the right one with [x].",
) -> None:
    if not any(o.ticked for o in options):
        first = options[0].line if options else line
        parse_context.report("E20", first, 1, "No option is marked right.", hint)


def report_if_several_options_right(
    options: Sequence[ParsedOption], options_label: str, parse_context: ParseContext
) -> None:
    """Report E21 if several options are marked right; `options_label` names them in the plural."""
    ticked = [option for option in options if option.ticked]
    if len(ticked) > 1:
        message = f"{len(ticked)} {options_label} are marked right."
        parse_context.report("E21", ticked[1].line, 1, message, "Take one tick away.")


def report_unsupported_partial_credit(
    options: Sequence[ParsedOption], type_name: str, parse_context: ParseContext
) -> None:
    """Report options with partial credit, which this type does not support (E24)."""
    for option in options:
        if option.credit:
            column = parse_context.locate_text(option.checkbox, option.line, option.line)[1]
            message = f"“{option.checkbox}” cannot stand in a question of type “{type_name}”."
            hint = "Write [x] or [ ]. Only single, short and numeric answers have parts."
            if type_name == "multiple":
                hint = "Write [x] or [ ], and in the comment partial: net."
            parse_context.report("E24", option.line, column, message, hint)


def report_if_too_few_options(
    count: int,
    minimum: int,
    line: int,
    parse_context: ParseContext,
    *,
    exam_use: str,
    hint: str = "",
) -> None:
    """Report too few options (E22, W22).

    Two are enough for practice. `exam_use` is “maybe” if mock exams would draw the question
    with `minimum` options, “only” if it is written for them, or empty.
    """
    advice = "Add an option that is wrong and likely."
    if count < 2:
        advice += " If it is to be typed, write a number as code with a tolerance or a range: "
        advice += "`50 g ± 2%`, `40 .. 60 g`; "
        advice += "for a word, write type: short into the comment."
        message = f"The question has {count} option{'s' * (count != 1)}."
        parse_context.report("E22", line, 1, message, advice)
    elif count < minimum and exam_use == "only":
        message = f"The question has {count} options; an exam question needs {minimum}."
        parse_context.report("E22", line, 1, message, advice)
    elif count < minimum and exam_use:
        message = f"The question has {count} options, so mock exams leave it out."
        parse_context.report("W22", line, 1, message, f"{advice} {hint}".rstrip())


def report_duplicate_options(options: Sequence[ParsedOption], parse_context: ParseContext) -> None:
    seen: dict[str, int] = {}
    for option in options:
        normalized_text = " ".join(option.plain_text.lower().split()).rstrip(".")
        if normalized_text in seen:
            message = f"This option says the same as the one in line {seen[normalized_text]}."
            parse_context.report("E23", option.line, 1, message, "Change or delete one of them.")
        seen.setdefault(normalized_text, option.line)


def report_wrong_options_without_feedback(
    options: Sequence[ParsedOption], parse_context: ParseContext
) -> None:
    for option in options:
        if not option.ticked and not option.feedback:
            verdict = "not wholly right" if option.credit else "wrong"
            message = f"“{option.plain_text[:50]}” does not say why it is {verdict}."
            hint = "Write a quote below it: two spaces, > and a sentence."
            parse_context.report("W25", option.line, 1, message, hint)
