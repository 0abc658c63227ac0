"""Neutral items written as GIFT."""

import re
from collections.abc import Callable

from app.exchange.formats.afterwords import explained
from app.exchange.formats.carrying import write_blocks
from app.exchange.formats.tagged import lost_column_titles, tags_of
from app.exchange.formats.weights import LONGEST, ORDERS, is_near, weights
from app.exchange.items import (
    ExportResult,
    Item,
    ItemOption,
    ItemSkippedError,
    shown,
)
from app.exchange.markup.rendering import html_if_needed, to_html
from app.exchange.markup.texts import plain_of, with_unit

_PLAIN = "\ue0f8"  # stands for [plain] until the format of the question is known
_GRADING = ORDERS | {"lcs": LONGEST}
# What would end a step or its answers, or make it a note or an empty line.
_ENDS = re.compile(r"[{}\n]|(?<=#)#")
_NO_STEP = re.compile(rf"{_ENDS.pattern}|^//|^0$")


def write_gift(items: tuple[Item, ...]) -> ExportResult:
    """A GIFT file of all items that it can express."""
    return write_blocks(items, _block, _losses)


def _block(item: Item) -> str:
    unit = next((o.span.unit for o in item.options if o.span), "")
    answers = _answers(item, unit)
    general = explained(item)
    tail = f"\n\t####{_text(general)}" if general else ""
    tags = " ".join(f"[tag:{t.replace(']', chr(92) + ']')}]" for t in tags_of(item))
    head = f"// {tags}\n" if tags else ""
    title = f"::{_escaped(item.name)}::" if item.name else ""
    stem = _text(with_unit(item.stem, unit))
    # Without a mark of its own a text takes over the format of the question.
    mark = "[plain]" if stem.startswith("[html]") else ""
    return f"{head}{title}{stem}{{{answers}{tail}\n}}".replace(_PLAIN, mark)


def _answers(item: Item, unit: str) -> str:
    if item.kind == "numeric":
        return "#" + "".join(_number(o, unit) for o in item.options)
    write = _WRITERS.get(item.kind)
    if write is None:
        raise ItemSkippedError(f"GIFT has no question of the type {item.kind}")
    return write(item)


def _words(item: Item) -> str:
    return "".join(f"\n\t=%{shown(o.weight)}%{_word(o.text)}{_note(o)}" for o in item.options)


def _choices(item: Item) -> str:
    lines = []
    for option, weight in zip(item.options, weights(item), strict=True):
        if item.kind == "single":
            part = f"~%{shown(weight)}%" if weight else "~"
            mark = "=" if option.right else part
        else:
            mark = f"~%{shown(weight)}%"
        lines.append(f"\n\t{mark}{_text(option.text)}{_note(option)}")
    return "".join(lines)


def _truth(item: Item) -> str:
    right = next((o for o in item.options if o.right), None)
    wrong = next((o for o in item.options if not o.right), None)
    if right is None or wrong is None:
        raise ItemSkippedError("it has no right answer")
    word = "TRUE" if right.text.strip(" .").lower() == "true" else "FALSE"
    notes = [_text(wrong.feedback), _text(right.feedback)]
    if not any(notes):
        return word
    return word + "".join(f"#{note}" for note in notes)


def _number(option: ItemOption, unit: str) -> str:
    span = option.span
    if span is None or span.unit != unit:
        raise ItemSkippedError("its answers are in different units")
    worth = "=" if option.right else f"=%{shown(option.weight)}%"
    return f"\n\t{worth}{shown(span.center)}:{shown(span.tolerance)}{_note(option)}"


def _pairs(item: Item) -> str:
    return "".join(
        f"\n\t={_left(p.left)} -> {_escaped(html_if_needed(p.right))}" for p in item.pairs
    )


def _left(markdown: str) -> str:
    """A left side; an arrow in it would end it, so it is written as HTML."""
    if "->" not in markdown:
        return _text(markdown)
    return "[html]" + _escaped(to_html(markdown).replace("->", "-&gt;"))


def _steps(item: Item) -> str:
    """The steps in the words of Moodle's ordering questions."""
    rule = _GRADING.get(item.partial, ORDERS["off"])
    head = f">{len(item.steps)} ALL VERTICAL {rule} SHOW none"
    return head + "".join(f"\n{_step(step.text)}" for step in item.steps)


def _step(markdown: str) -> str:
    r"""A step in a line of its own, in which Moodle undoes no escape but `\\`."""
    text = html_if_needed(markdown)
    if _NO_STEP.search(text):
        html = to_html(markdown)
        text = html if "<" in html else f"<span>{html}</span>"
        text = _ENDS.sub(lambda m: f"&#{ord(m[0])};", text)
    return text.replace("\\", "\\\\")


def _note(option: ItemOption) -> str:
    return f"#{_text(option.feedback)}" if option.feedback else ""


def _word(word: str) -> str:
    if "*" in word:
        raise ItemSkippedError("a star in a short answer would stand for anything")
    return _escaped(word)


def _text(markdown: str) -> str:
    """A text as plain words where it is no more, else as HTML."""
    words = plain_of(markdown)
    if words is None or re.search(r"<[a-zA-Z/!]", words):
        return "[html]" + _escaped(to_html(markdown))
    return (_PLAIN if markdown else "") + _escaped(words)


def _escaped(text: str) -> str:
    quoted = re.sub(r"[\\~=#{}:]", lambda m: "\\" + m[0], text)
    return quoted.replace("\n", "\\n")


def _losses(item: Item) -> list[str]:
    found = []
    if item.pictures:
        found.append("its pictures are not carried, only their words")
    if item.hints:
        found.append("hints stand behind the explanation")
    if item.mistake or any(p.why for p in item.pairs):
        found.append("common mistakes and reasons stand behind the explanation")
    if item.kind == "order" and item.options:
        found.append("the steps that belong nowhere are not carried")
    if any(s.feedback for s in item.steps):
        found.append("what is said about single steps stands behind the explanation")
    if is_near(item) or (item.kind, item.partial) == ("order", "lcs"):
        found.append("elsewhere its credit is only near to the rule")
    return found + lost_column_titles(item)


_WRITERS: dict[str, Callable[[Item], str]] = {
    "true-false": _truth,
    "single": _choices,
    "multiple": _choices,
    "short": _words,
    "match": _pairs,
    "order": _steps,
}
