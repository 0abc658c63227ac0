"""Neutral items written as Moodle XML."""

import html
from collections.abc import Callable
from urllib.parse import quote
from xml.etree import ElementTree as ET

from app.exchange.formats.afterwords import explained
from app.exchange.formats.carrying import convert_items
from app.exchange.formats.moodle.gaps import write_gap
from app.exchange.formats.tagged import lost_column_titles, tags_of
from app.exchange.formats.weights import ORDERS, is_near, weights
from app.exchange.items import (
    BLANK,
    ExportResult,
    Item,
    ItemOption,
    ItemSkippedError,
    label,
    shown,
)
from app.exchange.markup.rendering import html_if_needed, illustrated
from app.exchange.markup.texts import with_unit
from app.exchange.markup.xml import add, document

# Types with a feedback to whatever is wrong, and types with an answer “any other”.
_COMBINED = ("single", "multiple", "match", "order")
_TYPED = ("short", "numeric")


def write_moodle(items: tuple[Item, ...], category: str = "") -> ExportResult:
    """A Moodle XML file of all items that it can express."""
    root = ET.Element("quiz")
    if category:
        node = add(root, "question", type="category")
        add(add(node, "category"), "text", f"$course$/top/{category}")
    questions, refused, lost = convert_items(items, _question, _losses)
    root.extend(questions)
    return ExportResult(document(root), len(questions), refused, lost)


def _question(item: Item) -> ET.Element:
    if item.kind not in _WRITERS:
        raise ItemSkippedError(f"Moodle XML has no question of the type {item.kind}")
    name, write = _WRITERS[item.kind]
    node = ET.Element("question", type=name)
    add(add(node, "name"), "text", item.name or label(item))
    _html(node, "questiontext", _stem(item))
    told = item.kind in {*_COMBINED, *_TYPED}
    general = explained(item, mistake=not told, hints=False)
    _html(node, "generalfeedback", illustrated(general))
    add(node, "defaultgrade", "1")
    add(node, "idnumber", item.name)
    write(node, item)
    if item.mistake and item.kind in _COMBINED:
        _html(node, "incorrectfeedback", illustrated(item.mistake))
    if item.mistake and item.kind in _TYPED:
        _answer(node, "*", 0.0, ItemOption("", right=False, feedback=item.mistake))
    for hint in item.hints:
        _html(node, "hint", illustrated(hint))
    tags = tags_of(item)
    if tags:
        parent = add(node, "tags")
        for tag in tags:
            add(add(parent, "tag"), "text", tag)
    _attach(node, item)
    return node


def _attach(node: ET.Element, item: Item) -> None:
    """Put each picture as a file beside the text that shows it."""
    for holder in list(node.iter()):
        text = holder.find("text")
        for picture in item.pictures:
            shown = f'src="{html.escape(picture.name)}"'
            if text is None or shown not in (text.text or ""):
                continue
            name = picture.name.replace("/", "-")
            address = f'src="@@PLUGINFILE@@/{quote(name)}"'
            text.text = (text.text or "").replace(shown, address)
            add(holder, "file", picture.data, name=name, path="/", encoding="base64")


def _html(parent: ET.Element, name: str, text: str) -> ET.Element:
    node = add(parent, name, format="html")
    add(node, "text", text)
    return node


def _stem(item: Item) -> str:
    if item.kind == "cloze":
        return _gapped(item)
    unit = next((o.span.unit for o in item.options if o.span), "")
    return illustrated(with_unit(item.stem, unit))


def _gapped(item: Item) -> str:
    """The heading, and the text with its gaps written in Moodle's way."""
    pieces = illustrated(f"{item.stem}\n\n{item.text}").split(BLANK)
    if len(pieces) != len(item.blanks) + 1:
        raise ItemSkippedError("its gaps do not fit its text")
    out = pieces[0]
    for blank, piece in zip(item.blanks, pieces[1:], strict=True):
        out += html.escape(write_gap(blank), quote=False) + piece
    return out


def _answer(node: ET.Element, text: str, weight: float, option: ItemOption) -> ET.Element:
    answer = add(node, "answer", fraction=shown(weight), format="html")
    add(answer, "text", text)
    _html(answer, "feedback", illustrated(option.feedback))
    return answer


def _choices(node: ET.Element, item: Item) -> None:
    add(node, "single", "true" if item.kind == "single" else "false")
    add(node, "shuffleanswers", "true" if item.shuffle else "false")
    add(node, "answernumbering", "ABCD")
    for option, weight in zip(item.options, weights(item), strict=True):
        _answer(node, illustrated(option.text), weight, option)


def _truth(node: ET.Element, item: Item) -> None:
    for option in item.options:
        word = option.text.strip(" .").lower()
        _answer(node, word, option.weight, option)


def _short(node: ET.Element, item: Item) -> None:
    add(node, "usecase", "1" if item.case else "0")
    for option in item.options:
        word = option.text.replace("*", "\\*")
        _answer(node, word, option.weight, option)


def _numeric(node: ET.Element, item: Item) -> None:
    units = {o.span.unit for o in item.options if o.span}
    if len(units) > 1:
        raise ItemSkippedError("its answers are in different units")
    for option in item.options:
        if option.span is not None:
            text = shown(option.span.center)
            answer = _answer(node, text, option.weight, option)
            add(answer, "tolerance", shown(option.span.tolerance))
    add(node, "unitgradingtype", "0")
    add(node, "showunits", "3")


def _match(node: ET.Element, item: Item) -> None:
    add(node, "shuffleanswers", "true")
    for pair in item.pairs:
        sub = _html(node, "subquestion", illustrated(pair.left))
        add(add(sub, "answer"), "text", html_if_needed(pair.right))


def _order(node: ET.Element, item: Item) -> None:
    add(node, "layouttype", "VERTICAL")
    add(node, "selecttype", "ALL")
    add(node, "selectcount", str(len(item.steps)))
    add(node, "gradingtype", ORDERS.get(item.partial, ORDERS["off"]))
    add(node, "showgrading", "SHOW")
    add(node, "numberingstyle", "none")
    # Without it Moodle makes up hints that it then cannot store: the import breaks off.
    add(node, "shownumcorrect", "1")
    for number, step in enumerate(item.steps, 1):
        answer = add(node, "answer", fraction=shown(number), format="html")
        add(answer, "text", illustrated(step.text))


def _cloze(_node: ET.Element, _item: Item) -> None:
    """All of it stands in the question text."""


def _losses(item: Item) -> list[str]:
    found = []
    if any(p.why for p in item.pairs):
        found.append("the reasons of the pairs stand behind the explanation")
    if item.mistake and item.kind not in {*_COMBINED, *_TYPED}:
        found.append("the common mistake stands behind the explanation")
    if any(b.hint for b in item.blanks):
        found.append("the hint of a gap is shown after a wrong answer")
    if item.kind == "order" and item.options:
        found.append("the steps that belong nowhere are not carried")
    if any(step.feedback for step in item.steps):
        found.append("what is said about single steps stands behind the explanation")
    if any("<img " in illustrated(pair.right) for pair in item.pairs):
        found.append("the pictures on the right are not carried, only their words")
    if is_near(item):
        found.append("elsewhere its credit is only near to the rule")
    return found + lost_column_titles(item)


_WRITERS: dict[str, tuple[str, Callable[[ET.Element, Item], None]]] = {
    "single": ("multichoice", _choices),
    "multiple": ("multichoice", _choices),
    "true-false": ("truefalse", _truth),
    "short": ("shortanswer", _short),
    "numeric": ("numerical", _numeric),
    "match": ("matching", _match),
    "order": ("ordering", _order),
    "cloze": ("cloze", _cloze),
}
