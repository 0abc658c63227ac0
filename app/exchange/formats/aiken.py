"""Aiken, the simplest format of all: single choices in plain text."""

import dataclasses
import html
import re

from app.exchange.formats.carrying import write_blocks
from app.exchange.formats.tagged import tags_of
from app.exchange.items import (
    Item,
    Kind,
    NotCarried,
    Option,
    Reading,
    Remark,
    Writing,
)
from app.exchange.markup.hypertext import from_plain
from app.exchange.markup.rendering import to_html
from app.exchange.markup.texts import plain_of

_OPTION = re.compile(r"^\s*([A-Z])[.)](\s*)(.*)$")
_ANSWER = re.compile(r"^\s*ANSWER\s*:\s*([A-Z])\s*$")
_TAG = re.compile(r"</?[a-z][^>]*>")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclasses.dataclass(slots=True)
class _Draft:
    line: int
    stem: list[str]
    options: dict[str, str]
    apart: bool = False


def read_aiken(text: str) -> Reading:
    """Every question of an Aiken file; one without options or answer is refused."""
    items: list[Item] = []
    refused: list[Remark] = []
    draft = _Draft(0, [], {})
    for number, line in enumerate(text.split("\n"), 1):
        option, answer = _OPTION.match(line), _ANSWER.match(line)
        if answer:
            _close(draft, answer[1], items, refused)
            draft = _Draft(0, [], {})
        elif option and draft.stem and (option[2] or _is_next(option[1], draft)):
            draft.options[option[1]] = option[3].strip()
        elif not line.strip():
            draft.apart = bool(draft.stem)
        else:
            # What an empty line parts from a question does not belong to it.
            if draft.options or draft.apart:
                _close(draft, "", items, refused)
                draft = _Draft(0, [], {})
            draft.line = draft.line or number
            draft.stem.append(line.strip())
    if draft.stem:
        _close(draft, "", items, refused)
    return Reading(tuple(items), tuple(refused))


def _is_next(letter: str, draft: _Draft) -> bool:
    """Whether an option of this letter comes next; “U.S.” in a stem is none."""
    return letter == _LETTERS[len(draft.options) % len(_LETTERS)]


def _close(
    draft: _Draft, letter: str, items: list[Item], refused: list[Remark]
) -> None:
    stem = from_plain(" ".join(draft.stem))
    name = " ".join(draft.stem)[:50] or "(nameless)"
    reason = ""
    if not draft.stem or not draft.options:
        reason = "it has no question or no options"
    elif not letter:
        reason = "no line “ANSWER: X” stands below its options"
    elif letter not in draft.options:
        reason = f"its answer {letter} is not among its options"
    if reason:
        refused.append(Remark(name, draft.line, reason))
        return
    options = tuple(
        Option(from_plain(words), key == letter) for key, words in draft.options.items()
    )
    said = {words.strip(" .").lower() for words in draft.options.values()}
    kind: Kind = "true-false" if said == {"true", "false"} else "single"
    items.append(Item("", kind, stem, options, line=draft.line))


def write_aiken(items: tuple[Item, ...]) -> Writing:
    """An Aiken file of the single choices; all but plain words is lost."""
    return write_blocks(items, _block, _losses)


def _block(item: Item) -> str:
    right = [n for n, o in enumerate(item.options) if o.right]
    if item.kind not in {"single", "true-false"} or len(right) != 1:
        raise NotCarried("Aiken knows single choices only")
    if len(item.options) > len(_LETTERS):
        raise NotCarried(f"Aiken has {len(_LETTERS)} letters for options")
    stem = _words(item.stem)
    if _OPTION.match(stem) or _ANSWER.match(stem):
        raise NotCarried("its first words would be read as an option")
    if len(stem.encode()) < 2:
        raise NotCarried("its question is one sign, which Aiken takes for none")
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
