"""Read and write GIFT."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from app.import_export.formats.export_losses import TYPED_ANSWER_KINDS, write_items_as_blocks
from app.import_export.formats.extra_fields import (
    append_extra_fields_to_explanation,
    has_partial_credit_tag,
    restore_fields_from_explanation,
    restore_fields_from_tags,
    write_item_fields_as_tags,
)
from app.import_export.formats.partial_credit import (
    LONGEST_SEQUENCE,
    MOODLE_ORDERING_RULES,
    WeightedChoice,
    apply_moodle_ordering_settings,
    build_choice_item_from_weights,
    list_choice_weight_percents,
)
from app.import_export.items import (
    ExportResult,
    ImportResult,
    Item,
    ItemOption,
    ItemPair,
    ItemSkippedError,
    NumberRange,
    build_scored_option,
    format_significant_digits,
)
from app.import_export.markdown_to_html import (
    convert_markdown_to_html,
    convert_markdown_to_plain_text_or_html,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    add_default_feedback_as_mistake,
    add_moodle_short_answer,
    add_unit_to_stem,
    convert_text_to_markdown,
    get_one_line_plain_text_or_none,
    has_unambiguous_decimal_comma,
    make_range_around,
    make_range_between,
    parse_typed_number,
    parse_weight_percent,
    read_items_or_refuse,
    split_unit_from_stem,
)

_COMMENT_LINE = re.compile(r"^\s*//")
_TAG_MARK = re.compile(r"\[tag:((?:\\\]|[^\]<>`]){1,200})\]")
_TITLE_MARK = re.compile(r"^\s*::((?:\\.|[^\\])*?)::", re.DOTALL)
_TEXT_FORMAT_MARK = re.compile(r"^\s*\[(html|moodle|plain|markdown)\]", re.IGNORECASE)
_BRACE_OR_ESCAPE = re.compile(r"\\.|[{}]")
_SENTENCE_END = re.compile("(?:^|[.!?:…]['\")”»]?)\\s*$")
_MOST_LINES = 400
_NOT_CLOSED = "its answers are not closed: write a } behind them, and \\{ for a {"
_NOT_PARTED = "it has several groups of answers: put an empty line between questions"


@dataclasses.dataclass(frozen=True, slots=True)
class GiftBlock:
    """One question as written; `answers` is None if it has no answer part.

    `unclear_end_reason` says why it is unclear where its answers end.
    """

    first_line_number: int
    title: str
    text_format: str
    text_before: str
    answers: str | None
    text_after: str
    tags: tuple[str, ...]
    unclear_end_reason: str = ""


class _GiftLine(NamedTuple):
    line_number: int
    text: str
    tags: tuple[str, ...]  # from the comments above it


def split_gift_blocks(text: str) -> list[GiftBlock]:
    """Return the questions of a file, which empty lines separate; comments carry their tags.

    If the empty line is missing, a question begins on the line after the answers of another if it
    has a title, or if more answers follow.
    """
    blocks: list[GiftBlock] = []
    lines: list[_GiftLine] = []
    tags: tuple[str, ...] = ()
    is_answer_open = False
    for number, line in enumerate(text.split("\n"), 1):
        if _COMMENT_LINE.match(line):
            tags += tuple(t.replace("\\]", "]") for t in _TAG_MARK.findall(line))
            continue
        braces = _keep_only_unescaped_braces(line)
        if is_answer_open and braces.startswith("{"):
            # The earlier brace was never closed, so that question ends at the last empty line.
            empty = [n for n, earlier in enumerate(lines) if not earlier.text]
            question_end = empty[-1] if empty else len(lines)
            blocks.append(_build_block(lines[:question_end], _NOT_CLOSED))
            lines, is_answer_open = lines[question_end + 1 :], False
        ends_block = not line.strip() or line.lstrip().startswith("$CATEGORY:")
        if ends_block and (not is_answer_open or len(lines) > _MOST_LINES):
            blocks += _build_blocks_from_lines(lines, tags)
            lines, tags, is_answer_open = [], (), False
            continue
        lines.append(_GiftLine(number, "" if ends_block else line, tags))
        tags = ()
        is_answer_open = braces[-1] == "{" if braces else is_answer_open
    return blocks + _build_blocks_from_lines(lines, tags)


def _keep_only_unescaped_braces(line: str) -> str:
    return "".join(b for b in _BRACE_OR_ESCAPE.findall(line) if len(b) == 1)


def _build_blocks_from_lines(
    lines: Sequence[_GiftLine], last_block_tags: tuple[str, ...]
) -> list[GiftBlock]:
    """Return the questions in lines without an empty one; `last_block_tags` belong to the last."""
    opens_answers = ["{" in _keep_only_unescaped_braces(line.text) for line in lines]
    answers_follow = list(itertools.accumulate(reversed(opens_answers), max))[::-1]
    first_lines, last_brace, text_after_brace = [0], "", ""
    for index, line in enumerate(lines):
        has_title = index > 0 and last_brace != "{" and _TITLE_MARK.match(line.text)
        if has_title or (
            last_brace == "}" and answers_follow[index] and _SENTENCE_END.search(text_after_brace)
        ):
            first_lines.append(index)
            last_brace, text_after_brace = "", ""
        if braces := _keep_only_unescaped_braces(line.text):
            last_brace, text_after_brace = braces[-1], ""
        text_after_brace += line.text[line.text.rfind("}") + 1 :] + " "
    groups = [lines[a:b] for a, b in itertools.pairwise([*first_lines, len(lines)]) if a < b]
    blocks = [_build_block(group) for group in groups]
    if blocks and last_block_tags:
        blocks[-1] = dataclasses.replace(blocks[-1], tags=blocks[-1].tags + last_block_tags)
    return blocks


def _build_block(lines: Sequence[_GiftLine], unclear_end_reason: str = "") -> GiftBlock:
    text, title, text_format = "\n".join(line.text for line in lines), "", "moodle"
    tags = tuple(tag for line in lines for tag in line.tags)
    title_match = _TITLE_MARK.match(text)
    if title_match:
        title, text = remove_gift_escapes(title_match[1]).strip(), text[title_match.end() :]
    form_match = _TEXT_FORMAT_MARK.match(text)
    if form_match:
        text_format, text = form_match[1].lower(), text[form_match.end() :]
    open_at = _find_unescaped_or_minus_one(text, "{")
    close_at = _find_unescaped_or_minus_one(text, "}", open_at + 1) if open_at >= 0 else -1
    line_number = lines[0].line_number
    if open_at < 0 or close_at < 0:
        unclear_end_reason = unclear_end_reason or _NOT_CLOSED * (open_at >= 0)
        return GiftBlock(line_number, title, text_format, text, None, "", tags, unclear_end_reason)
    before, inside, after = text[:open_at], text[open_at + 1 : close_at], text[close_at + 1 :]
    if _find_unescaped_or_minus_one(inside, "{") >= 0:
        unclear_end_reason = unclear_end_reason or _NOT_CLOSED
    if _find_unescaped_or_minus_one(after, "{") >= 0:
        unclear_end_reason = unclear_end_reason or _NOT_PARTED
    return GiftBlock(
        line_number, title, text_format, before, inside, after, tags, unclear_end_reason
    )


def _find_unescaped_or_minus_one(text: str, mark: str, start: int = 0) -> int:
    """Return the offset of the first unescaped `mark`, or -1."""
    return next((at for at in _iterate_unescaped_positions(text, start) if text[at] == mark), -1)


class MarkedText(NamedTuple):
    """A mark, and the text behind it; what stands before the first mark has an empty one."""

    mark: str
    text_after_mark: str


def split_at_marks(text: str, marks: str) -> list[MarkedText]:
    """Split at every unescaped mark.

    >>> [tuple(marked) for marked in split_at_marks("a=b~c", "=~")]
    [('', 'a'), ('=', 'b'), ('~', 'c')]
    """
    positions = [at for at in _iterate_unescaped_positions(text) if text[at] in marks]
    bounds = itertools.pairwise([*positions, len(text)])
    parts = [MarkedText(text[at], text[at + 1 : end]) for at, end in bounds]
    return [MarkedText("", text[: positions[0]] if positions else text), *parts]


def _iterate_unescaped_positions(text: str, start: int = 0) -> Iterator[int]:
    """Yield the offsets of all unescaped characters from `start` on."""
    while start < len(text):
        if text[start] == "\\":
            start += 2
            continue
        yield start
        start += 1


def remove_gift_escapes(text: str) -> str:
    r"""Undo escapes: `\n` is a newline, `\=` an equals sign.

    >>> remove_gift_escapes(r"a \= b \\ c \x")
    'a = b \\ c \\x'
    """
    return re.sub(
        r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1] if m[1] in "\\~=#{}:" else m[0], text
    )


_WEIGHT_PERCENT = re.compile(r"^\s*%([-+]?\d+(?:[.,]\d+)?)%")
_SENTENCE_ENDS = ".!?:"
_NO_WORDS = f" \t\n{_SENTENCE_ENDS}"
_TRUE_OR_FALSE = re.compile(r"^\s*(T|F|TRUE|FALSE)\s*$", re.IGNORECASE)


def read_gift(text: str) -> ImportResult:
    """Read every question of a GIFT file; essays and descriptions are refused."""
    blocks = split_gift_blocks(text)
    all_answers = ((block.answers or "").strip() for block in blocks)
    numeric_answers = (answers for answers in all_answers if answers.startswith("#"))
    numbers = (n for answers in numeric_answers for n in re.findall(r"[\d.,]*,\d+", answers))
    comma = any(map(has_unambiguous_decimal_comma, numbers))
    return read_items_or_refuse(
        UnreadItem(
            block.title or " ".join(remove_gift_escapes(block.text_before).split())[:50],
            block.first_line_number,
            functools.partial(_read_block, block, may_use_decimal_comma=comma),
        )
        for block in blocks
    )


def _read_block(
    block: GiftBlock, losses: PicturesAndLosses, *, may_use_decimal_comma: bool
) -> Item:
    return _GiftReader(block, losses, may_use_decimal_comma).read_item()


class _GiftAnswer(NamedTuple):
    """One answer as written, its weight in percent if given, and its feedback in Markdown."""

    percent: float | None
    text: str
    feedback: str


@dataclasses.dataclass(slots=True)
class _GiftReader:
    """Reads one block; what Markdown cannot express is recorded in `losses`."""

    block: GiftBlock
    losses: PicturesAndLosses
    may_use_decimal_comma: bool  # whether the file has decimal commas

    def read_item(self) -> Item:
        """Return the question; raises ItemSkippedError."""
        inside = self.block.answers
        if self.block.unclear_end_reason:
            raise ItemSkippedError(self.block.unclear_end_reason)
        if inside is None:
            raise ItemSkippedError("it asks nothing: a description has no place in a quiz")
        inside, *general_feedback = re.split(r"(?<!\\)####", inside, maxsplit=1)
        if not inside.strip():
            raise ItemSkippedError("an essay cannot be judged by a program")
        item = Item(self.block.title, "single", self._read_stem_with_gap())
        if not item.stem:
            raise ItemSkippedError("it has no text")
        item = dataclasses.replace(item, explanation=self._read_text("".join(general_feedback)))
        return restore_fields_from_tags(
            restore_fields_from_explanation(self._read_answers(item, inside)), self.block.tags
        )

    def _read_stem_with_gap(self) -> str:
        """Return the text with a gap in place of the answers, unless they come last."""
        before = remove_gift_escapes(self.block.text_before).rstrip()
        after = remove_gift_escapes(self.block.text_after)
        at_end = not after.strip(_NO_WORDS)
        ends_sentence = before[-1:] in _SENTENCE_ENDS
        if at_end and (ends_sentence or not after.strip()):
            return convert_text_to_markdown(before, self.block.text_format, self.losses)
        is_truth = _TRUE_OR_FALSE.match(_split_text_and_feedback(self.block.answers or "")[0])
        before = remove_gift_escapes(self.block.text_before)
        before += "" if is_truth and at_end else "_____"
        rest_of_line, _, next_lines = after.partition("\n")
        if rest_of_line.lstrip().startswith("//"):
            raise ItemSkippedError("a comment follows its answers: put it on a line of its own")
        if next_lines.strip(_NO_WORDS) and not rest_of_line.strip(_NO_WORDS):
            self.losses.add_loss(
                "the text below its answers is read as part of it: put an "
                "empty line above it if it is not"
            )
        return convert_text_to_markdown(
            (before + after).strip(), self.block.text_format, self.losses
        )

    def _read_text(self, raw: str, text_format: str = "") -> str:
        """Read an answer or a feedback in its own format, in `text_format`, or the question's."""
        text_format = text_format or self.block.text_format
        match = _TEXT_FORMAT_MARK.match(raw)
        if match:
            text_format, raw = match[1].lower(), raw[match.end() :]
        return convert_text_to_markdown(remove_gift_escapes(raw).strip(), text_format, self.losses)

    def _read_answers(self, item: Item, answers_text: str) -> Item:
        first_text, *notes = _split_text_and_feedback(answers_text)
        if _TRUE_OR_FALSE.match(first_text):
            return self._read_true_false(item, first_text, notes)
        if answers_text.lstrip().startswith("#"):
            return self._read_numeric(item, answers_text.lstrip()[1:])
        if answers_text.lstrip().startswith(">"):
            return self._read_ordering(item, *answers_text.strip().split("\n"))
        unmarked, *answers = split_at_marks(answers_text, "=~")
        answers = answers or [unmarked._replace(mark="=")]
        if any(answer.mark == "~" for answer in answers):
            return self._read_choices(item, answers)
        sides = [answer.text_after_mark.partition("->")[::2] for answer in answers]
        if len(answers) > 1 and any(right.strip() for _, right in sides):
            return self._read_matching(item, sides)
        return self._read_short_answer(item, answers)

    def _read_true_false(
        self, item: Item, first_answer_text: str, feedback_texts: list[str]
    ) -> Item:
        right = first_answer_text.strip().upper().startswith("T")
        wrong_note, right_note = [*map(self._read_text, feedback_texts), "", ""][:2]
        options = tuple(
            ItemOption(word, truth == right, right_note if truth == right else wrong_note)
            for word, truth in (("True", True), ("False", False))
        )
        return dataclasses.replace(item, kind="true-false", options=options)

    def _split_answer(self, answer_text: str) -> _GiftAnswer:
        weight = None
        match = _WEIGHT_PERCENT.match(answer_text)
        if match:
            weight, answer_text = parse_weight_percent(match[1]), answer_text[match.end() :]
        text, *notes = _split_text_and_feedback(answer_text)
        return _GiftAnswer(weight, text, self._read_text(notes[0]) if notes else "")

    def _read_choices(self, item: Item, answers: list[MarkedText]) -> Item:
        weighted = []
        for mark, body in answers:
            weight, text, feedback = self._split_answer(body)
            percent = weight if weight is not None else 100.0 * (mark == "=")
            weighted.append(WeightedChoice(self._read_text(text), percent, feedback))
        multiple_answers = not any(answer.mark == "=" for answer in answers)
        return build_choice_item_from_weights(
            item,
            weighted,
            self.losses,
            allows_several_answers=multiple_answers,
            is_credit_rule_in_file=has_partial_credit_tag(self.block.tags),
        )

    def _read_short_answer(self, item: Item, answers: list[MarkedText]) -> Item:
        item = dataclasses.replace(item, kind="short", options=())
        for answer in answers:
            weight, text, feedback = self._split_answer(answer.text_after_mark)
            percent = 100.0 if weight is None else weight
            answer_text = " ".join(remove_gift_escapes(_TEXT_FORMAT_MARK.sub("", text)).split())
            item = add_moodle_short_answer(item, answer_text, percent, feedback, self.losses)
        return item

    def _read_ordering(self, item: Item, ordering_options: str, *lines: str) -> Item:
        texts = (self._read_text(line, "moodle") for line in lines if line.strip())
        steps = tuple(ItemOption(text, True) for text in texts)
        item = dataclasses.replace(item, steps=steps)
        options = ordering_options.removeprefix(">").split()
        return apply_moodle_ordering_settings(item, options, self.block.tags, self.losses)

    def _read_matching(self, item: Item, left_and_right_sides: Sequence[Sequence[str]]) -> Item:
        if not all(right.strip() for _, right in left_and_right_sides):
            raise ItemSkippedError("some of its pairs have no “->” with words behind it")
        pairs = tuple(
            ItemPair(self._read_text(left), self._read_text(right, "moodle"))
            for left, right in left_and_right_sides
        )
        return dataclasses.replace(item, kind="match", pairs=pairs)

    def _read_numeric(self, item: Item, answers_text: str) -> Item:
        stem, unit = split_unit_from_stem(item.stem)
        first, *answers = split_at_marks(answers_text, "=~")
        if first.text_after_mark.strip():  # the right number may come first, without a mark
            answers.insert(0, first._replace(mark="="))
        options: list[ItemOption] = []
        for mark, body in answers:
            weight, text, feedback = self._split_answer(body)
            percent = 100.0 if weight is None else weight
            if mark == "~" and percent >= 100:
                percent = 0.0
            if text.strip() in {"", "*"}:
                item = add_default_feedback_as_mistake(item, feedback, self.losses)
                continue
            span = self._read_range(remove_gift_escapes(text), unit)
            options.append(build_scored_option("", percent, 100, feedback, span))
        options.sort(key=lambda o: not o.right)
        return dataclasses.replace(item, kind="numeric", stem=stem, options=tuple(options))

    def _read_range(self, text: str, unit: str) -> NumberRange:
        read = functools.partial(
            parse_typed_number, may_use_decimal_comma=self.may_use_decimal_comma
        )
        if ".." in text:
            low, high = map(read, text.split("..", 1))
            return make_range_between(low, high, unit)
        center, _, tolerance = text.partition(":")
        tolerance_value = read(tolerance) if tolerance.strip() else 0.0
        return make_range_around(read(center), tolerance_value, unit)


def _split_text_and_feedback(answer_text: str) -> list[str]:
    return [marked.text_after_mark for marked in split_at_marks(answer_text, "#")]


# placeholder for [plain] until the format of the question is known
_PLAIN_FORMAT_PLACEHOLDER = "\ue0f8"
_ORDERING_RULES = MOODLE_ORDERING_RULES | {"lcs": LONGEST_SEQUENCE}
# What would end a step or its answers, or make it a comment or an empty line.
_WRITING_ENDS = re.compile(r"[{}\n]|(?<=#)#")
_NO_STEP = re.compile(rf"{_WRITING_ENDS.pattern}|^//|^0$")


def write_gift(items: tuple[Item, ...]) -> ExportResult:
    """Return a GIFT file of all items that it can express."""
    return write_items_as_blocks(items, _write_gift_block, "gift")


def _write_gift_block(item: Item) -> str:
    unit = next((o.span.unit for o in item.options if o.span), "")
    answers = _write_answers_by_kind(item, unit)
    shows_mistake = item.kind in TYPED_ANSWER_KINDS
    if item.mistake and shows_mistake:
        wrong_answer = "~" if item.kind == "numeric" else "=%0%*"
        answers += f"\n\t{wrong_answer}#{_write_plain_text_or_html(item.mistake)}"
    explanation = append_extra_fields_to_explanation(item, include_mistake=not shows_mistake)
    general_feedback = f"\n\t####{_write_plain_text_or_html(explanation)}" if explanation else ""
    tags = " ".join(
        f"[tag:{t.replace(']', chr(92) + ']')}]" for t in write_item_fields_as_tags(item)
    )
    tag_comment = f"// {tags}\n" if tags else ""
    title = f"::{_escape_gift(item.name)}::" if item.name else ""
    stem = _write_plain_text_or_html(add_unit_to_stem(item.stem, unit))
    # A text without a format mark has the format of the question.
    format_mark = "[plain]" if stem.startswith("[html]") else ""
    return f"{tag_comment}{title}{stem}{{{answers}{general_feedback}\n}}".replace(
        _PLAIN_FORMAT_PLACEHOLDER, format_mark
    )


def _write_answers_by_kind(item: Item, numeric_unit: str) -> str:
    if item.kind == "numeric":
        return "#" + "".join(_write_numeric_answer(o, numeric_unit) for o in item.options)
    write = _WRITER_BY_TYPE.get(item.kind)
    if write is None:
        raise ItemSkippedError(f"GIFT has no question of the type {item.kind}")
    return write(item)


def _write_short_answers(item: Item) -> str:
    return "".join(
        f"\n\t=%{format_significant_digits(o.percent_weight)}%{_escape_short_answer(o.text)}{_write_option_feedback(o)}"
        for o in item.options
    )


def _escape_short_answer(text: str) -> str:
    return _escape_gift(text).replace("*", "\\*")  # A plain star would match anything.


def _write_choices(item: Item) -> str:
    lines = []
    for option, weight in zip(item.options, list_choice_weight_percents(item), strict=True):
        mark = f"~%{format_significant_digits(weight)}%"
        if item.kind == "single" and (option.right or not weight):
            mark = "=" if option.right else "~"
        lines.append(
            f"\n\t{mark}{_write_plain_text_or_html(option.text)}{_write_option_feedback(option)}"
        )
    return "".join(lines)


def _write_true_false(item: Item) -> str:
    right = next((o for o in item.options if o.right), None)
    wrong = next((o for o in item.options if not o.right), None)
    if right is None or wrong is None:
        raise ItemSkippedError("it has no right answer")
    word = "TRUE" if right.text.strip(" .").lower() == "true" else "FALSE"
    notes = [_write_plain_text_or_html(wrong.feedback), _write_plain_text_or_html(right.feedback)]
    if not any(notes):
        return word
    return word + "".join(f"#{note}" for note in notes)


def _write_numeric_answer(option: ItemOption, unit: str) -> str:
    span = option.span
    if span is None or span.unit != unit:
        raise ItemSkippedError("its answers are in different units")
    weight_mark = "=" if option.right else f"=%{format_significant_digits(option.percent_weight)}%"
    center, tolerance = map(format_significant_digits, (span.center, span.tolerance))
    return f"\n\t{weight_mark}{center}:{tolerance}{_write_option_feedback(option)}"


def _write_pairs(item: Item) -> str:
    return "".join(
        f"\n\t={_write_left_side(p.left)} -> {_escape_gift(convert_markdown_to_plain_text_or_html(p.right))}"
        for p in item.pairs
    )


def _write_left_side(markdown: str) -> str:
    """Return a left side; an arrow would end it, so it is then written as HTML."""
    if "->" not in markdown:
        return _write_plain_text_or_html(markdown)
    return "[html]" + _escape_gift(convert_markdown_to_html(markdown).replace("->", "-&gt;"))


def _write_steps(item: Item) -> str:
    """Return the steps in the syntax of Moodle's ordering questions."""
    rule = _ORDERING_RULES.get(item.partial, MOODLE_ORDERING_RULES["off"])
    head = f">{len(item.steps)} ALL VERTICAL {rule} SHOW none"
    return head + "".join(f"\n{_write_step(step.text)}" for step in item.steps)


def _write_step(markdown: str) -> str:
    r"""Return a step on one line; Moodle unescapes only `\\` there."""
    text = convert_markdown_to_plain_text_or_html(markdown)
    if _NO_STEP.search(text):
        html = convert_markdown_to_html(markdown)
        text = html if "<" in html else f"<span>{html}</span>"
        text = _WRITING_ENDS.sub(lambda m: f"&#{ord(m[0])};", text)
    return text.replace("\\", "\\\\")


def _write_option_feedback(option: ItemOption) -> str:
    return f"#{_write_plain_text_or_html(option.feedback)}" if option.feedback else ""


def _write_plain_text_or_html(markdown: str) -> str:
    """Return a text as plain text if possible, otherwise as HTML."""
    text = get_one_line_plain_text_or_none(markdown)
    if text is None or re.search(r"<[a-zA-Z/!]", text):
        return "[html]" + _escape_gift(convert_markdown_to_html(markdown))
    return (_PLAIN_FORMAT_PLACEHOLDER if markdown else "") + _escape_gift(text)


def _escape_gift(text: str) -> str:
    quoted = re.sub(r"[\\~=#{}:]", lambda m: "\\" + m[0], text)
    return quoted.replace("\n", "\\n")


_WRITER_BY_TYPE: dict[str, Callable[[Item], str]] = {
    "true-false": _write_true_false,
    "single": _write_choices,
    "multiple": _write_choices,
    "short": _write_short_answers,
    "match": _write_pairs,
    "order": _write_steps,
}
