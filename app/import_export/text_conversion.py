"""Convert text of another format to Markdown, with a list of what was lost."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from typing import NamedTuple

from markdown_it import MarkdownIt

from app.import_export.html_to_markdown import (
    convert_html_to_markdown,
    convert_plain_text_to_markdown,
    join_formula_lines,
)
from app.import_export.items import (
    BLANK_CHARACTER,
    ImageCollector,
    ImportResult,
    Item,
    ItemBlank,
    ItemRemark,
    ItemSkippedError,
    NumberRange,
    build_scored_option,
)
from app.import_export.markdown_to_html import convert_markdown_to_html
from app.markup.quantities import recognize_unit
from app.questions.types import number_parsing

_KNOWN_HTML_TAG = re.compile(
    r"</?(?:a|abbr|audio|b|big|blockquote|br|center|cite|code|dd|del|details|div|dl|dt"
    r"|em|embed|font|form|h[1-6]|hr|i|iframe|img|input|ins|kbd|label|li|mark|math"
    r"|object|ol|p|pre|q|s|samp|script|small|span|strike|strong|style|sub|sup|svg"
    r"|table|tbody|td|template|tfoot|th|thead|tr|tt|u|ul|var|video)(?=[\s/>])|<!--",
    re.IGNORECASE,
)
_PRE_ELEMENT = re.compile(r"(<pre\b[^<]*(?:<(?!/?pre\b)[^<]*)*</pre\s*>)", re.IGNORECASE)
_COMMONMARK_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# A number with a thousands separator or decimals, and one whose comma must be decimal.
_AMBIGUOUS_SEPARATOR = re.compile(r"(?<![\d.,])[1-9]\d{0,2}[.,]\d{3}(?![\d.,])")
_DECIMAL_COMMA = re.compile(r"(?<![\d,])(?:[\d.]+,(?:\d{1,2}|\d{4,})(?![\d.,])|0,\d+)")
_ABOUT_SIGNS = frozenset("~≈=")  # allowed in responses, but not in a key
_UNIT_SENTENCE = re.compile(r"\n\nAnswer in (\S+)\.$")


@dataclasses.dataclass(slots=True)
class PicturesAndLosses:
    """The pictures of an item, and what cannot be written in Markdown, in the order found.

    `image_collector` has the pictures that can be imported.
    """

    image_collector: ImageCollector = dataclasses.field(default_factory=ImageCollector)
    loss_texts: dict[str, None] = dataclasses.field(default_factory=dict)

    def add_loss(self, loss: str) -> None:
        """Record a loss, once."""
        self.loss_texts[loss] = None


class UnreadItem(NamedTuple):
    """An item of a file before it is read: its name and line for reports, and its pictures."""

    name: str
    line_number: int
    read_item: Callable[[PicturesAndLosses], Item]
    find_picture: Callable[[str], bytes | None] | None = None


def read_items_or_refuse(sources: Iterable[UnreadItem], *remarks_on_file: str) -> ImportResult:
    """Read items; one that raises ItemSkippedError is refused with its message."""
    items: list[Item] = []
    refused: list[ItemRemark] = []
    for source in sources:
        losses = PicturesAndLosses(ImageCollector(source.find_picture))
        try:
            item = source.read_item(losses)
        except ItemSkippedError as error:
            refused.append(ItemRemark(source.name or "(nameless)", source.line_number, str(error)))
            continue
        pictures = (*item.pictures, *losses.image_collector.pictures)
        lost = (*item.lost, *losses.loss_texts)
        items.append(
            dataclasses.replace(item, line=source.line_number, pictures=pictures, lost=lost)
        )
    return ImportResult(tuple(items), tuple(refused), remarks_on_file=remarks_on_file)


def build_cloze_item(item: Item, text: str, blanks: Sequence[ItemBlank]) -> Item:
    """Return the item as a cloze; its first paragraph is the stem if it has no gap."""
    if text.count(BLANK_CHARACTER) != len(blanks) or not all(blank.answers for blank in blanks):
        raise ItemSkippedError("its gaps do not fit its text, or one of them is hidden")
    stem, _, cloze_text = text.partition("\n\n")
    if not cloze_text or BLANK_CHARACTER in stem:
        stem, cloze_text = convert_plain_text_to_markdown(item.name or "Complete the text."), text
    return dataclasses.replace(item, kind="cloze", stem=stem, text=cloze_text, blanks=tuple(blanks))


def convert_text_to_markdown(text: str, text_format: str, losses: PicturesAndLosses) -> str:
    """Return the Markdown of a text in the format html, plain, moodle or markdown.

    `moodle` is plain text in which tags count if there are any.
    """
    if text_format == "markdown":
        return convert_html_to_markdown_recording_losses(
            _COMMONMARK_PARSER.render(text.strip()), losses
        )
    if text_format == "moodle" and _KNOWN_HTML_TAG.search(text):
        return convert_html_to_markdown_recording_losses(_convert_newlines_to_br_tags(text), losses)
    return (
        convert_html_to_markdown_recording_losses(text, losses)
        if text_format == "html"
        else convert_plain_text_to_markdown(text)
    )


def _convert_newlines_to_br_tags(text: str) -> str:
    """Return text with tags as HTML; Moodle shows its newlines as line breaks."""
    joined = re.sub(r">[ \t]*\n\s*<", "><", join_formula_lines(text.strip()))
    parts = _PRE_ELEMENT.split(joined)
    return "".join(part if n % 2 else part.replace("\n", "<br>\n") for n, part in enumerate(parts))


def convert_html_to_markdown_recording_losses(html: str, losses: PicturesAndLosses) -> str:
    converted = convert_html_to_markdown(html, losses.image_collector.collect_and_name_image)
    for loss in converted.losses:
        losses.add_loss(loss)
    return converted.markdown


def get_one_line_plain_text_or_none(markdown: str) -> str | None:
    """Return the text of Markdown that is plain text in one line, otherwise None."""
    markup = convert_markdown_to_html(markdown)
    if "<" in markup or "\n" in markup or "\\(" in markup or "\\[" in markup:
        return None
    text = unescape(markup)
    return text if convert_plain_text_to_markdown(text) == markdown else None


def add_unit_to_stem(stem: str, unit: str) -> str:
    """Append the unit to answer in, for formats without units."""
    return f"{stem}\n\nAnswer in {unit}." if unit else stem


def split_unit_from_stem(stem: str) -> tuple[str, str]:
    """Return the stem without the unit that `add_unit_to_stem` appended, and the unit."""
    match = _UNIT_SENTENCE.search(stem)
    unit = recognize_unit(match[1]) if match else None
    return (stem[: match.start()], unit) if match and unit else (stem, "")


def add_default_feedback_as_mistake(item: Item, feedback: str, losses: PicturesAndLosses) -> Item:
    """Return the item with the feedback to any other answer as its common mistake."""
    if feedback and not item.mistake:
        return dataclasses.replace(item, mistake=feedback)
    if feedback:
        losses.add_loss("feedback on any other answer is left out")
    return item


def add_moodle_short_answer(
    item: Item, text: str, percent: float, feedback: str, losses: PicturesAndLosses
) -> Item:
    r"""Return a short-answer question with one more answer as Moodle writes it.

    A star is any text and `\*` a star. The feedback on any text that is worth nothing is that on
    any other answer; every other pattern is left out.
    """
    if text == "*" and percent <= 0:
        return add_default_feedback_as_mistake(item, feedback, losses)
    if "*" in text.replace("\\*", ""):
        losses.add_loss(f"the pattern “{text}” is left out: add the words it stands for")
        return item
    option = build_scored_option(text.replace("\\*", "*"), percent, 100, feedback)
    return dataclasses.replace(item, options=(*item.options, option))


def note_unused_feedback_as_loss(
    item: Item, feedback_texts: Iterable[str], losses: PicturesAndLosses
) -> None:
    """Record the feedback in a file that its item does not contain."""
    texts = [item.explanation, item.mistake, *(p.why for p in item.pairs)]
    texts += [option.feedback for option in (*item.options, *item.steps)]
    if any(note and not any(note in text for text in texts) for note in feedback_texts):
        losses.add_loss("feedback that belongs to no choice is left out: explain it below")


def has_unambiguous_decimal_comma(text: str) -> bool:
    """Return whether a text is a number with a comma that can only be decimal."""
    return bool(_DECIMAL_COMMA.search(text) and parse_typed_range_or_none(text))


def _refuse_ambiguous_number(text: str) -> None:
    """Raise ItemSkippedError for a number whose separator is ambiguous."""
    if match := _AMBIGUOUS_SEPARATOR.search(text):
        as_thousands = re.sub("[.,]", "", match[0])
        as_decimal = match[0].replace(",", ".")
        raise ItemSkippedError(
            f"its number “{text.strip()[:40]}” can be {as_thousands} or {as_decimal}: "
            f"write {as_thousands}, or {as_decimal}0 with one more digit"
        )


def parse_typed_number(text: str, *, may_use_decimal_comma: bool = False) -> float:
    """Read a number as learners type it, without a unit; raises ItemSkippedError.

    `may_use_decimal_comma`: the author may use decimal commas, so “1,024” is ambiguous.

    >>> parse_typed_number("1,024"), parse_typed_number("1,5"), parse_typed_number("12 500 000")
    (1024.0, 1.5, 12500000.0)
    """
    number = number_parsing.parse_typed_number(text)
    if number is None or number.unit_word or text.strip()[:1] in _ABOUT_SIGNS:
        raise ItemSkippedError(f"“{text.strip()[:30]}” is not a number")
    if may_use_decimal_comma:
        _refuse_ambiguous_number(text)
    return number.value


def parse_typed_range_or_none(
    text: str, *, may_use_decimal_comma: bool = False
) -> NumberRange | None:
    """Read a number with unit and tolerance, such as “140 GB ± 4”; None if it is none.

    Raises ItemSkippedError for an ambiguous number.
    """
    center, sign, tolerance = re.sub(r"\+/?-", "±", text).partition("±")
    number = number_parsing.parse_typed_number(center)
    if number is None or text.strip()[:1] in _ABOUT_SIGNS:
        return None
    unit = recognize_unit(number.unit_word)
    half_width = number_parsing.parse_typed_number(tolerance if sign else "0")
    if (
        unit is None
        or half_width is None
        or half_width.unit_word not in {"", "%", number.unit_word}
    ):
        return None
    if may_use_decimal_comma:
        _refuse_ambiguous_number(text)
    is_percent = half_width.unit_word == "%" != unit
    tolerance_value = half_width.value
    if is_percent:
        tolerance_value = abs(number.value) * tolerance_value / 100
    return make_range_around(number.value, tolerance_value, unit)


def parse_weight_percent(text: str) -> float:
    """Read a share of the mark in percent, -100 to 100; raises ItemSkippedError.

    A comma in it is decimal: with a thousands separator it would exceed the mark.
    """
    weight = parse_typed_number(text.replace(",", "."))
    if abs(weight) > 100:
        raise ItemSkippedError(f"the weight “{text.strip()[:30]}” is more than 100%")
    return weight


def make_range_around(center: float, tolerance: float, unit: str = "") -> NumberRange:
    """Return a range by its center and half its width."""
    half_width = max(abs(tolerance), abs(center) * 1e-9)
    low, high = (float(f"{b:.12g}") for b in (center - half_width, center + half_width))
    return NumberRange(float(f"{center:.12g}"), low, high, unit)


def make_range_between(low: float, high: float, unit: str = "") -> NumberRange:
    first, last = sorted((low, high))
    return make_range_around((first + last) / 2, (last - first) / 2, unit)
