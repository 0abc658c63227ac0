"""Match an answer with the choices that it names; read and write Aiken."""

import dataclasses
import functools
import html
import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from app.import_export.formats.export_losses import write_items_as_blocks
from app.import_export.html_to_markdown import convert_plain_text_to_markdown
from app.import_export.items import (
    ExportResult,
    ImportResult,
    Item,
    ItemOption,
    ItemSkippedError,
    Kind,
    are_options_true_and_false,
)
from app.import_export.markdown_to_html import convert_markdown_to_html
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    parse_typed_range_or_none,
    read_items_or_refuse,
)

_ANSWER_LIST_SEPARATORS = (re.compile(r"\s*(?:[,;&+/|\n]|\band\b)\s*"), re.compile(r"\s*[;|\n]\s*"))
_OPTION_LABEL_PATTERN = r"(?:(?:option|choice|answer)\s*)?[(\[]?(?P<label>[a-z]|\d{1,2})"
_OPTION_LABEL = re.compile(rf"{_OPTION_LABEL_PATTERN}[)\].:]?", re.IGNORECASE)
_LABEL_WITH_WORDS = re.compile(
    rf"{_OPTION_LABEL_PATTERN}(?:[)\].:]\s*|\s*[-–—=]\s+|\s+)(?P<words>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_DECIMAL_COMMA_NUMBER = re.compile(r"[-+]?\d[\d.'\u2019]*,[\d.,'\u2019]*")
# Text that begins with a number, or an approximate one.
_NUMBER_START = re.compile(r"(?:(?:about|around|approx\w*\.?|circa|ca\.?)\s+)?[^\w\s]{0,2}\d")
_MOST_PARTS = 100
TextByLabel = Mapping[str, str]


def find_labels_named_by_answer(
    answer: str, text_by_label: TextByLabel, *, prefer_labels: bool = False
) -> frozenset[str]:
    """Return the labels of the choices that an answer names, by label, text or both.

    `text_by_label` maps label (a capital letter or a number) to text. With `prefer_labels` a label takes
    precedence over an equal text. Raises ItemSkippedError if the answer names no choice, or one by
    its label and another by its text.

    >>> sorted(find_labels_named_by_answer("A and c", {"A": "one", "B": "two", "C": "three"}))
    ['A', 'C']
    >>> sorted(find_labels_named_by_answer("B) 443", {"A": "80", "B": "443"}))
    ['B']
    """
    by_label, by_words = find_labels_by_label_and_by_text(answer, text_by_label)
    if by_label and prefer_labels:
        return by_label
    if not by_label and len(answer) > 1 and set(answer.upper()) <= set(text_by_label):
        by_label = frozenset(answer.upper())  # “AC”
    if by_label and by_words and by_label != by_words:
        texts, labels = _join_labels_in_parentheses(by_words), _join_labels_in_parentheses(by_label)
        raise ItemSkippedError(
            f"its answer “{answer[:40]}” is both the label of a choice and the words "
            f"of another: write {labels} for the label, or {texts} for the words"
        )
    if not by_label and not by_words:
        raise ItemSkippedError(_describe_unmatched_answer(answer, text_by_label))
    return by_label or by_words


class NamedChoices(NamedTuple):
    """The labels of the choices that an answer names by their label, and by their text."""

    labels_named_by_label: frozenset[str] = frozenset()
    labels_named_by_text: frozenset[str] = frozenset()


def find_labels_by_label_and_by_text(answer: str, text_by_label: TextByLabel) -> NamedChoices:
    by_label = _find_labels_of_whole_or_parts(
        answer, lambda part: _find_label_by_label_or_empty(part, text_by_label)
    )
    by_words = _find_labels_of_whole_or_parts(
        answer, lambda part: _find_label_by_text_or_empty(part, text_by_label)
    )
    if not by_words:
        by_words = _find_labels_of_whole_or_parts(
            answer, lambda part: _find_label_by_label_and_text(part, text_by_label)
        )
    return NamedChoices(by_label, by_words)


def _join_labels_in_parentheses(labels: frozenset[str]) -> str:
    return ", ".join(f"({label})" for label in sorted(labels))


def _describe_unmatched_answer(answer: str, text_by_label: TextByLabel) -> str:
    match = _LABEL_WITH_WORDS.fullmatch(answer.strip())
    label = _map_to_existing_label(match["label"], text_by_label) if match else ""
    if label:
        text = text_by_label[label][:40]
        return f"its answer “{answer[:40]}” names {label}, but that says “{text}”"
    return f"its answer “{answer[:40]}” names none of its choices"


def _find_label_by_label_or_empty(part: str, text_by_label: TextByLabel) -> str:
    match = _OPTION_LABEL.fullmatch(part.strip())
    return _map_to_existing_label(match["label"], text_by_label) if match else ""


def _find_labels_of_whole_or_parts(answer: str, find_label: Callable[[str], str]) -> frozenset[str]:
    """Return the label that the whole answer names, or else those of all its parts."""
    label = find_label(answer)
    if label:
        return frozenset({label})
    for separator in _ANSWER_LIST_SEPARATORS:
        labels = list(map(find_label, separator.split(answer)[:_MOST_PARTS]))
        if all(labels):
            return frozenset(labels)
    return frozenset()


def _map_to_existing_label(name: str, text_by_label: TextByLabel) -> str:
    """Return the label meant: letters also match numbered choices, and numbers letters."""
    label = name.upper()
    if label in text_by_label or not text_by_label:
        return label if text_by_label else ""
    uses_letters = next(iter(text_by_label)).isalpha()
    if (
        label.isdigit()
        and uses_letters
        and not any(map(parse_typed_range_or_none, text_by_label.values()))
    ):
        label = chr(ord("A") + int(label) - 1)
    elif label.isalpha() and not uses_letters:
        label = str(ord(label) - ord("A") + 1)
    return label if label in text_by_label else ""


def _find_label_by_text_or_empty(part: str, text_by_label: TextByLabel) -> str:
    """Return the choice with this text, ignoring case and a final period if needed."""
    for normalize in (_collapse_spaces, _normalize_for_comparison):
        labels = [
            label for label, text in text_by_label.items() if normalize(text) == normalize(part)
        ]
        if len(labels) > 1:
            raise ItemSkippedError(f"its choices {' and '.join(labels)} are the same")
        if labels:
            return labels[0]
    return ""


def _find_label_by_label_and_text(part: str, text_by_label: TextByLabel) -> str:
    """Return the choice named by its label and its text, such as “B) 443”."""
    match = _LABEL_WITH_WORDS.fullmatch(part.strip())
    label = _map_to_existing_label(match["label"], text_by_label) if match else ""
    is_same_text = (
        match
        and label
        and _normalize_for_comparison(text_by_label[label])
        == _normalize_for_comparison(match["words"])
    )
    return label if is_same_text else ""


def _collapse_spaces(text: str) -> str:
    return " ".join(text.split())


def _normalize_for_comparison(words: str) -> str:
    text = _collapse_spaces(words).casefold()
    return text.strip(" .") or text


def infer_choice_kind(options: Collection[ItemOption]) -> Kind:
    if sum(option.right for option in options) > 1:
        return "multiple"
    return "true-false" if are_options_true_and_false(options) else "single"


def is_choice_label(answer: str) -> bool:
    """Return whether an answer may be the letter or number of a choice: B, 2), (c)."""
    return _OPTION_LABEL.fullmatch(answer.strip()) is not None


def describe_numbers_read_as_text(kind: Kind, options: Iterable[ItemOption]) -> Iterator[str]:
    """Yield the loss if an answer that may have been meant as a number is text."""
    for option in options:
        if kind == "short" and _NUMBER_START.match(option.text):
            yield (
                f"its answer “{option.text[:40]}” is words that learners have to type "
                "so: write a number, or a number with its tolerance, if it is one"
            )


class KindAndOptions(NamedTuple):
    """What an answer makes of its question."""

    kind: Kind
    options: tuple[ItemOption, ...]


def read_answer_without_choices(
    answer: str, *, may_use_decimal_comma: bool = False
) -> KindAndOptions:
    """Read an answer without choices: a number, true or false, or words separated by “|”.

    `may_use_decimal_comma`: the author may use decimal commas, so “1,024” is ambiguous. Raises
    ItemSkippedError.
    """
    text = answer.strip()
    if span := parse_typed_range_or_none(text, may_use_decimal_comma=may_use_decimal_comma):
        return KindAndOptions("numeric", (ItemOption("", True, span=span),))
    if text[:1] in set("~≈") and parse_typed_range_or_none(text[1:]):
        raise ItemSkippedError(f"its answer “{text[:40]}” is about a number: write 5 ± 0.5")
    if _DECIMAL_COMMA_NUMBER.fullmatch(text):
        raise ItemSkippedError(f"its answer “{text[:40]}” is not a number: write its digits")
    if text.casefold() in {"true", "false"}:
        true = text.casefold() == "true"
        options = (ItemOption("True", true), ItemOption("False", not true))
        return KindAndOptions("true-false", options)
    answers = [part.strip() for part in text.split("|") if part.strip()]
    if not answers:
        raise ItemSkippedError(f"its answer “{text[:40]}” has no words")
    return KindAndOptions("short", tuple(ItemOption(accepted, True) for accepted in answers))


_OPTION_LINE = re.compile(r"^\s*([A-Z])[.)](\s*)(.*)$")
_ANSWER_LINE = re.compile(r"^\s*(?:correct\s+)?answer\s*:\s*(\S.*)$", re.IGNORECASE)
_EXPLANATION_LINE = re.compile(r"^\s*(?:feedback|explanation|rationale)\s*:\s*(.*)$", re.IGNORECASE)
_HTML_TAG = re.compile(r"</?[a-z][^>]*>")
_OPTION_LETTERS = string.ascii_uppercase


class _AikenOption(NamedTuple):
    letter: str
    lines: list[str]


@dataclasses.dataclass(slots=True)
class _AikenDraft:
    first_line_number: int
    stem_lines: list[str]
    options: list[_AikenOption] = dataclasses.field(default_factory=list)
    answer: str = ""
    explanation: str = ""
    is_after_empty_line: bool = False  # whether the last line was empty


def read_aiken(text: str) -> ImportResult:
    """Read every question of an Aiken file; one without options or answer is refused."""
    return read_items_or_refuse(
        UnreadItem(
            " ".join(" ".join(draft.stem_lines).split())[:50],
            draft.first_line_number,
            functools.partial(_draft_to_item, draft),
        )
        for draft in _split_into_question_drafts(text)
    )


def _split_into_question_drafts(text: str) -> list[_AikenDraft]:
    """Return the lines of each question; an answer ends it, and so may an empty line."""
    drafts: list[_AikenDraft] = []
    draft: _AikenDraft | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            if draft:
                draft.is_after_empty_line = True
            continue
        if draft is None or not _try_add_line_to_draft(draft, line):
            draft = _AikenDraft(number, [line.rstrip()])
            drafts.append(draft)
        draft.is_after_empty_line = False
    return drafts


def _try_add_line_to_draft(draft: _AikenDraft, line: str) -> bool:
    """Add a line to a question; False if the line begins another one."""
    option, answer = _OPTION_LINE.match(line), _ANSWER_LINE.match(line)
    if draft.answer:
        why = _EXPLANATION_LINE.match(line)
        if draft.is_after_empty_line or draft.explanation or not why:
            return False
        draft.explanation = why[1]
    elif answer and draft.options:
        draft.answer = answer[1].strip()
    elif option and (
        option[2] or option[1] == _OPTION_LETTERS[len(draft.options) % len(_OPTION_LETTERS)]
    ):
        # “U.S.” in a stem is not an option, because its letter does not come next.
        draft.options.append(_AikenOption(option[1], [option[3].strip()]))
    elif draft.is_after_empty_line:
        # Text separated from a question by an empty line does not belong to it.
        return False
    elif draft.options:
        draft.options[-1].lines.append(line.rstrip())
    else:
        draft.stem_lines.append(line.rstrip())
    return True


def _draft_to_item(draft: _AikenDraft, _losses: PicturesAndLosses) -> Item:
    """Return the question of a draft; raises ItemSkippedError."""
    letters = [option.letter for option in draft.options]
    if not letters:
        raise ItemSkippedError("it has no question or no options")
    if letters != sorted(set(letters)) or letters[0] != "A":
        shown_letters = ", ".join(letters[:8])
        raise ItemSkippedError(
            f"its options are {shown_letters}, not A, B, C in order: is a line “ANSWER: X” "
            "missing above one of them?"
        )
    if not draft.answer:
        raise ItemSkippedError("there is no line “ANSWER: X” below its options")
    answer = draft.answer
    if re.fullmatch("[A-Z]", answer) and answer not in letters:
        raise ItemSkippedError(f"its answer {answer} is not among its options")
    raw_texts = {option.letter: " ".join(option.lines) for option in draft.options}
    right_letters = find_labels_named_by_answer(answer, raw_texts, prefer_labels=True)
    if len(right_letters) > 1:
        raise ItemSkippedError(f"its answer “{answer[:40]}” names several, but Aiken has one")
    options = tuple(
        ItemOption(
            convert_plain_text_to_markdown("\n".join(option.lines)), option.letter in right_letters
        )
        for option in draft.options
    )
    stem = convert_plain_text_to_markdown("\n".join(draft.stem_lines), join_wrapped_lines=True)
    return Item(
        "",
        infer_choice_kind(options),
        stem,
        options,
        explanation=convert_plain_text_to_markdown(draft.explanation),
    )


def write_aiken(items: tuple[Item, ...]) -> ExportResult:
    """Return an Aiken file of the single choices; only plain text is kept."""
    return write_items_as_blocks(items, _write_aiken_block, "aiken")


def _write_aiken_block(item: Item) -> str:
    right = [n for n, o in enumerate(item.options) if o.right]
    if item.kind not in {"single", "true-false"} or len(right) != 1:
        raise ItemSkippedError("Aiken knows single choices only")
    if len(item.options) > len(_OPTION_LETTERS):
        raise ItemSkippedError(f"Aiken has {len(_OPTION_LETTERS)} letters for options")
    stem = _plain_text_keeping_tex(item.stem)
    if _OPTION_LINE.match(stem) or _ANSWER_LINE.match(stem) or _EXPLANATION_LINE.match(stem):
        raise ItemSkippedError("its first words would be read as an option")
    if len(stem.encode()) < 2:
        raise ItemSkippedError("its question is one sign, which Aiken takes for none")
    texts = [_plain_text_keeping_tex(option.text) for option in item.options]
    lines = [f"{letter}. {text}" for letter, text in zip(_OPTION_LETTERS, texts, strict=False)]
    return "\n".join([stem, *lines, f"ANSWER: {_OPTION_LETTERS[right[0]]}"])


def _plain_text_keeping_tex(markdown: str) -> str:
    """Return the plain text; formulas stay as TeX."""
    return " ".join(html.unescape(_HTML_TAG.sub(" ", convert_markdown_to_html(markdown))).split())
