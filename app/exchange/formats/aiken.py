"""Aiken, the simplest format of all: single choices in plain text."""

import dataclasses
import html
import re

from app.exchange.formats.carrying import write_blocks
from app.exchange.formats.plain_answers import kind_of, named_in
from app.exchange.formats.tagged import tags_of
from app.exchange.items import (
    ExportResult,
    ImportResult,
    Item,
    ItemOption,
    ItemRemark,
    ItemSkippedError,
)
from app.exchange.markup.hypertext import from_plain
from app.exchange.markup.rendering import to_html
from app.exchange.markup.texts import plain_of

_OPTION = re.compile(r"^\s*([A-Z])[.)](\s*)(.*)$")
_ANSWER = re.compile(r"^\s*(?:correct\s+)?answer\s*:\s*(\S.*)$", re.IGNORECASE)
_WHY = re.compile(r"^\s*(?:feedback|explanation|rationale)\s*:\s*(.*)$", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^>]*>")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclasses.dataclass(slots=True)
class _AikenDraft:
    line: int
    stem: list[str]
    options: list[tuple[str, list[str]]] = dataclasses.field(default_factory=list)
    answer: str = ""
    why: str = ""
    apart: bool = False  # whether an empty line was the last


def read_aiken(text: str) -> ImportResult:
    """Every question of an Aiken file; one without options or answer is refused."""
    items: list[Item] = []
    refused: list[ItemRemark] = []
    for draft in _drafts(text):
        name = " ".join(" ".join(draft.stem).split())[:50] or "(nameless)"
        try:
            items.append(_item(draft))
        except ItemSkippedError as error:
            refused.append(ItemRemark(name, draft.line, str(error)))
    return ImportResult(tuple(items), tuple(refused))


def _drafts(text: str) -> list[_AikenDraft]:
    """The lines of each question; an answer ends it, and so may an empty line."""
    found: list[_AikenDraft] = []
    draft: _AikenDraft | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            if draft:
                draft.apart = True
            continue
        if draft is None or not _takes(draft, line):
            draft = _AikenDraft(number, [line.rstrip()])
            found.append(draft)
        draft.apart = False
    return found


def _takes(draft: _AikenDraft, line: str) -> bool:
    """Put a line to a question; false for one that begins another."""
    option, answer = _OPTION.match(line), _ANSWER.match(line)
    if draft.answer:
        why = _WHY.match(line)
        if draft.apart or draft.why or not why:
            return False
        draft.why = why[1]
    elif answer and draft.options:
        draft.answer = answer[1].strip()
    elif option and (option[2] or _is_next(option[1], draft)):
        draft.options.append((option[1], [option[3].strip()]))
    elif draft.apart:
        # What an empty line parts from a question does not belong to it.
        return False
    elif draft.options:
        draft.options[-1][1].append(line.rstrip())
    else:
        draft.stem.append(line.rstrip())
    return True


def _is_next(letter: str, draft: _AikenDraft) -> bool:
    """Whether an option of this letter comes next; “U.S.” in a stem is none."""
    return letter == _LETTERS[len(draft.options) % len(_LETTERS)]


def _item(draft: _AikenDraft) -> Item:
    """The question of some lines; raises NotCarried."""
    letters = [letter for letter, _ in draft.options]
    if not letters:
        raise ItemSkippedError("it has no question or no options")
    if letters != sorted(set(letters)) or letters[0] != "A":
        said = ", ".join(letters[:8])
        raise ItemSkippedError(
            f"its options are {said}, not A, B, C in order: is a line “ANSWER: X” "
            "missing above one of them?"
        )
    if not draft.answer:
        raise ItemSkippedError("no line “ANSWER: X” stands below its options")
    texts = {letter: from_plain("\n".join(lines)) for letter, lines in draft.options}
    plain = {letter: " ".join(lines) for letter, lines in draft.options}
    right = _right(draft.answer, plain)
    options = tuple(ItemOption(words, key in right) for key, words in texts.items())
    stem = from_plain("\n".join(draft.stem), wrapped=True)
    kind = kind_of(options)
    why = from_plain(draft.why)
    return Item("", kind, stem, options, explanation=why, line=draft.line)


def _right(answer: str, options: dict[str, str]) -> frozenset[str]:
    """The letter that an answer names, alone or before the words of its option."""
    if re.fullmatch("[A-Z]", answer) and answer not in options:
        raise ItemSkippedError(f"its answer {answer} is not among its options")
    named = named_in(answer, options, letters=True)
    if len(named) > 1:
        raise ItemSkippedError(f"its answer “{answer[:40]}” names several, but Aiken has one")
    return named


def write_aiken(items: tuple[Item, ...]) -> ExportResult:
    """An Aiken file of the single choices; all but plain words is lost."""
    return write_blocks(items, _block, _losses)


def _block(item: Item) -> str:
    right = [n for n, o in enumerate(item.options) if o.right]
    if item.kind not in {"single", "true-false"} or len(right) != 1:
        raise ItemSkippedError("Aiken knows single choices only")
    if len(item.options) > len(_LETTERS):
        raise ItemSkippedError(f"Aiken has {len(_LETTERS)} letters for options")
    stem = _words(item.stem)
    if _OPTION.match(stem) or _ANSWER.match(stem) or _WHY.match(stem):
        raise ItemSkippedError("its first words would be read as an option")
    if len(stem.encode()) < 2:
        raise ItemSkippedError("its question is one sign, which Aiken takes for none")
    lines = [stem]
    lines += [f"{_LETTERS[n]}. {_words(o.text)}" for n, o in enumerate(item.options)]
    return "\n".join([*lines, f"ANSWER: {_LETTERS[right[0]]}"])


def _words(markdown: str) -> str:
    """The words alone; formulas stay, in TeX."""
    return " ".join(html.unescape(_TAG.sub(" ", to_html(markdown))).split())


def _losses(item: Item) -> list[str]:
    found = []
    if any(option.credit for option in item.options):
        found.append("what is worth a part of the mark is wrong there")
    if item.pictures:
        found.append("its pictures are not carried, only their words")
    if any(plain_of(t) is None for t in (item.stem, *(o.text for o in item.options))):
        found.append("its markup is not carried")
    beside = (item.explanation, item.mistake, *item.hints)
    if any(beside) or any(o.feedback for o in item.options):
        found.append("feedback, hints and explanation are not carried")
    if item.name or tags_of(item):
        found.append("its name and its tags are not carried")
    return found
