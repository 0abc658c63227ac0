"""Convert items to a format, and list what it loses of each."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from app.import_export.formats.extra_fields import (
    can_column_titles_be_tags,
    write_item_fields_as_tags,
)
from app.import_export.formats.partial_credit import does_credit_rule_differ_from_moodle
from app.import_export.items import (
    ExportResult,
    Item,
    ItemRemark,
    ItemSkippedError,
    make_item_label,
)
from app.import_export.markdown_to_html import convert_markdown_to_html_with_pictures
from app.import_export.text_conversion import get_one_line_plain_text_or_none

TYPED_ANSWER_KINDS = ("short", "numeric")
"""Kinds of items whose common mistake Moodle shows as the feedback on any other answer."""
LONGEST_LABEL = 256
"""The most characters of the label with the tags in QTI."""


def _has_stem_or_option_markup(item: Item) -> bool:
    texts = (item.stem, *(option.text for option in item.options))
    return any(get_one_line_plain_text_or_none(text) is None for text in texts)


def _has_explanation_or_feedback(item: Item) -> bool:
    texts = (item.explanation, item.mistake, *item.hints, *(o.feedback for o in item.options))
    return any(texts)


class _LossRule(NamedTuple):
    """What some formats lose of the items that it applies to."""

    format_names: str
    applies_to_item: Callable[[Item], object]
    sentence: str


_LOSS_RULES = (
    _LossRule(
        "aiken", lambda i: any(o.credit for o in i.options), "partly right choices are wrong there"
    ),
    _LossRule(
        "aiken gift", lambda i: i.pictures, "its pictures are not exported, only their descriptions"
    ),
    _LossRule("aiken", _has_stem_or_option_markup, "its markup is not exported"),
    _LossRule(
        "aiken", _has_explanation_or_feedback, "feedback, hints and explanation are not exported"
    ),
    _LossRule(
        "aiken",
        lambda i: i.name or write_item_fields_as_tags(i),
        "its name and its tags are not exported",
    ),
    _LossRule("qti", lambda i: i.hints, "hints are shown to tutors only"),
    _LossRule(
        "qti",
        lambda i: len("; ".join(write_item_fields_as_tags(i))) > LONGEST_LABEL,
        "its tags are too long for QTI",
    ),
    _LossRule("gift", lambda i: i.hints, "hints are appended to the explanation"),
    _LossRule(
        "gift",
        lambda i: (i.mistake and i.kind not in TYPED_ANSWER_KINDS) or any(p.why for p in i.pairs),
        "common mistakes and reasons are appended to the explanation",
    ),
    _LossRule(
        "moodle",
        lambda i: any(p.why for p in i.pairs),
        "the reasons of the pairs are appended to the explanation",
    ),
    _LossRule(
        "moodle",
        lambda i: i.mistake and i.kind in {"true-false", "cloze"},
        "the common mistake is appended to the explanation",
    ),
    _LossRule(
        "moodle",
        lambda i: any(b.hint for b in i.blanks),
        "the hint of a gap is shown after a wrong answer",
    ),
    _LossRule(
        "gift moodle",
        lambda i: i.kind == "order" and i.options,
        "the wrong steps are listed in the explanation, and not among the steps",
    ),
    _LossRule(
        "gift moodle",
        lambda i: i.kind == "order" and any(option.feedback for option in i.options),
        "feedback on wrong steps is not exported",
    ),
    _LossRule(
        "xlsx", lambda i: i.pictures, "its pictures are not exported, only their descriptions"
    ),
    _LossRule(
        "gift moodle",
        lambda i: any(step.feedback for step in i.steps),
        "feedback on single steps is appended to the explanation",
    ),
    _LossRule(
        "moodle",
        lambda i: any("<img " in convert_markdown_to_html_with_pictures(p.right) for p in i.pairs),
        "the pictures on the right are not exported, only their descriptions",
    ),
    _LossRule(
        "gift moodle",
        does_credit_rule_differ_from_moodle,
        "there its rule of partial credit is only similar",
    ),
    _LossRule(
        "gift",
        lambda i: (i.kind, i.partial) == ("order", "lcs"),
        "there its rule of partial credit is only similar",
    ),
    _LossRule(
        "gift moodle qti",
        lambda i: any(i.titles) and can_column_titles_be_tags(i),
        "the titles of its columns are in its tags",
    ),
    _LossRule(
        "gift moodle qti",
        lambda i: any(i.titles) and not can_column_titles_be_tags(i),
        "the titles of its columns are not exported",
    ),
)


Converted = TypeVar("Converted")


def convert_items_and_list_losses(
    items: Iterable[Item], convert_item: Callable[[Item], Converted], file_format: str
) -> tuple[tuple[Converted, ...], tuple[ItemRemark, ...], tuple[ItemRemark, ...]]:
    """Return the converted items, those that were refused, and what was lost.

    One that raises ItemSkippedError is refused with its message.
    """
    converted: list[Converted] = []
    refused: list[ItemRemark] = []
    lost: list[ItemRemark] = []
    for item in items:
        try:
            converted.append(convert_item(item))
        except ItemSkippedError as error:
            refused.append(ItemRemark(make_item_label(item), item.line, str(error), item.path))
            continue
        lost += [
            ItemRemark(make_item_label(item), item.line, loss.sentence, item.path)
            for loss in _LOSS_RULES
            if file_format in loss.format_names.split() and loss.applies_to_item(item)
        ]
    return tuple(converted), tuple(refused), tuple(lost)


def write_items_as_blocks(
    items: Iterable[Item], write_block: Callable[[Item], str], file_format: str
) -> ExportResult:
    """Return a text with one block per item that fits, separated by empty lines."""
    blocks, refused, lost = convert_items_and_list_losses(items, write_block, file_format)
    content = "\n\n".join(blocks) + "\n" if blocks else ""
    return ExportResult(content.encode(), len(blocks), refused, lost)
