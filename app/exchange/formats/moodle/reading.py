"""Moodle XML read into neutral items."""

import dataclasses
import re
from collections.abc import Callable
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from app.content.numbers.quantities import known_unit
from app.exchange.formats.afterwords import unexplained
from app.exchange.formats.decoding import read_xml
from app.exchange.formats.moodle.gaps import read_gaps
from app.exchange.formats.tagged import has_rule, with_tags
from app.exchange.formats.weights import WeightedChoice, ordered, weighted_choices
from app.exchange.items import (
    BLANK,
    ImportResult,
    Item,
    ItemBlank,
    ItemImage,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    UnusableFileError,
    credit_of_score,
)
from app.exchange.markup.pictures import ImageCollector, content_of
from app.exchange.markup.texts import (
    ConversionLosses,
    any_other,
    has_decimal_comma,
    read_html,
    read_number,
    read_text,
    read_weight,
    span_around,
    without_unit,
)

_BESIDE = "@@PLUGINFILE@@"
_FORMS = {"html": "html", "plain_text": "plain", "markdown": "markdown"}
# How types that are more than their name give credit.
_CREDIT = {"multichoiceset": "off", "oumultiresponse": "net"}
_PLACED = re.compile(r"\[\[(\d{1,3})\]\]")
# What Moodle itself writes into these fields when nobody did.
_EMPTY_WORDS = {
    *("Your answer is incorrect", "Your answer is correct"),
    *("Your answer is partially correct", "Die Antwort ist falsch"),
    *("Die Antwort ist richtig", "Die Antwort ist teilweise richtig"),
    *("Votre réponse est incorrecte", "Votre réponse est correcte"),
    *("Votre réponse est partiellement correcte", "Respuesta incorrecta"),
    *("Respuesta correcta", "Respuesta parcialmente correcta"),
    *("Sua resposta está incorreta", "Sua resposta está correta"),
    *("Sua resposta está parcialmente correta", "La tua risposta è errata"),
    *("La tua risposta è corretta", "Risposta corretta"),
    "Risposta parzialmente esatta",
}
_REASONS = {
    "essay": "an essay cannot be judged by a program",
    "description": "it asks nothing: a description has no place in a quiz",
}


def read_moodle(data: bytes) -> ImportResult:
    """Every question of a Moodle XML file; raises Unusable."""
    document = read_xml(data, "question")
    if document.root.tag != "quiz":
        raise UnusableFileError(f"The file begins with <{document.root.tag}>, not with <quiz>.")
    items: list[Item] = []
    refused: list[ItemRemark] = []
    found = document.root.iter("question")
    for node, line in zip(found, document.lines, strict=True):
        if node.get("type") == "category":
            continue
        losses = ConversionLosses(_album(node))
        try:
            item = _item(node, line, losses)
        except ItemSkippedError as error:
            refused.append(ItemRemark(_name(node) or "(nameless)", line, str(error)))
            continue
        items.append(losses.noted_in(item))
    return ImportResult(tuple(items), tuple(refused))


def _album(node: ET.Element) -> ImageCollector:
    """The pictures that lie in a question, by the addresses that texts give them."""
    files = {f.get("name", ""): f.text or "" for f in node.iter("file")}

    def find(address: str) -> bytes | None:
        name = unquote(address.removeprefix(_BESIDE).lstrip("/")).partition("?")[0]
        data = files.get(name) if address.startswith(_BESIDE) else None
        return content_of(ItemImage(name, "".join(data.split()))) if data else None

    return ImageCollector(find)


def _item(node: ET.Element, line: int, losses: ConversionLosses) -> Item:
    kind = node.get("type", "")
    read = _READERS.get(kind)
    if read is None:
        reason = f"questions of the type “{kind}” have no counterpart here"
        raise ItemSkippedError(_REASONS.get(kind, reason))
    stem = "" if kind == "cloze" else _text(node.find("questiontext"), losses)
    hints = tuple(_text(h, losses) for h in node.findall("hint"))
    item = Item(
        _name(node),
        "single",
        stem,
        hints=tuple(h for h in hints if h),
        explanation=_text(node.find("generalfeedback"), losses),
        line=line,
    )
    made = read(node, item, losses)
    if not made.stem:
        raise ItemSkippedError("it has no text")
    missed = _text(node.find("incorrectfeedback"), losses)
    if missed and missed.rstrip(".") not in _EMPTY_WORDS:
        made = any_other(made, missed, losses)
    made = unexplained(made)
    for field in ("correctfeedback", "partiallycorrectfeedback"):
        said = _text(node.find(field), losses)
        if said and said.rstrip(".") not in _EMPTY_WORDS:
            losses.add("what is said to a right answer is left out: explain it below")
    if node.findtext("image_base64"):
        losses.add("a picture in a field of older files is left out")
    return with_tags(made, _tags(node))


def _tags(node: ET.Element) -> tuple[str, ...]:
    tags = (t.findtext("text", "").strip() for t in node.findall("tags/tag"))
    return tuple(t for t in tags if t)


def _name(node: ET.Element) -> str:
    return " ".join(node.findtext("name/text", "").split())


def _text(node: ET.Element | None, losses: ConversionLosses, default: str = "moodle") -> str:
    if node is None:
        return ""
    form = _FORMS.get(node.get("format", ""), default)
    return read_text(node.findtext("text") or "", form, losses)


def _fraction(node: ET.Element) -> float:
    return read_weight(node.get("fraction") or "0")


def _note(node: ET.Element, losses: ConversionLosses) -> str:
    return _text(node.find("feedback"), losses)


def _says(node: ET.Element, name: str) -> bool:
    return node.findtext(name, "").strip().lower() in {"true", "1"}


# --- by type ---


def _choices(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    given = [
        WeightedChoice(_text(a, losses), _fraction(a), _note(a, losses))
        for a in node.findall("answer")
    ]
    rule = _CREDIT.get(node.get("type", ""), "")
    several = bool(rule) or not _says(node, "single")
    shuffle = node.find("shuffleanswers") is None or _says(node, "shuffleanswers")
    item = dataclasses.replace(item, shuffle=shuffle, partial=rule)
    told = has_rule(_tags(node))
    return weighted_choices(item, given, losses, several=several, told=told)


def _truth(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    options = tuple(
        ItemOption(
            a.findtext("text", "").strip().capitalize(),
            _fraction(a) > 0,
            _note(a, losses),
        )
        for a in node.findall("answer")
    )
    options = tuple(sorted(options, key=lambda o: o.text != "True"))
    return dataclasses.replace(item, kind="true-false", options=options)


def _short(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    options = []
    for answer in node.findall("answer"):
        word = " ".join(answer.findtext("text", "").split())
        weight = _fraction(answer)
        if word == "*" and weight <= 0:
            item = any_other(item, _note(answer, losses), losses)
            continue
        if "*" in word.replace("\\*", ""):
            losses.add(f"the pattern “{word}” is left out: add the words it stands for")
            continue
        word, note = word.replace("\\*", "*"), _note(answer, losses)
        right, credit = credit_of_score(weight, 100)
        options.append(ItemOption(word, right, note, credit=credit))
    case = _says(node, "usecase")
    return dataclasses.replace(item, kind="short", options=tuple(options), case=case)


def _numeric(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    stem, unit = without_unit(item.stem)
    unit = unit or _unit(node, losses)
    texts = [n.text or "" for n in node.iter() if n.tag in {"text", "tolerance"}]
    comma = any(map(has_decimal_comma, texts))
    options = []
    for answer in node.findall("answer"):
        text = answer.findtext("text", "").strip()
        weight = _fraction(answer)
        if text in {"", "*"}:
            item = any_other(item, _note(answer, losses), losses)
            continue
        tolerance = answer.findtext("tolerance", "").strip() or "0"
        try:
            center, half = (read_number(t, comma=comma) for t in (text, tolerance))
            span = span_around(center, half, unit)
        except ItemSkippedError as error:
            losses.add(f"an answer is left out: {error}; add it as a number if it is one")
            continue
        right, credit = credit_of_score(weight, 100)
        options.append(ItemOption("", right, _note(answer, losses), span, credit))
    options.sort(key=lambda o: not o.right)
    return dataclasses.replace(item, kind="numeric", stem=stem, options=tuple(options))


def _unit(node: ET.Element, losses: ConversionLosses) -> str:
    """The unit that counts once, when it is one that we know."""
    for unit in node.findall("units/unit"):
        name = unit.findtext("unit_name", "").strip()
        if unit.findtext("multiplier", "1").strip() in {"1", "1.0"}:
            if known_unit(name):
                return known_unit(name) or ""
            losses.add(f"the unit “{name}” is not known here: name it in the question")
    return ""


def _match(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    pairs = tuple(
        ItemPair(
            _text(sub, losses),
            read_text(sub.findtext("answer/text", ""), "moodle", losses),
        )
        for sub in node.findall("subquestion")
    )
    return dataclasses.replace(item, kind="match", pairs=pairs)


def _order(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    steps = tuple(
        ItemOption(_text(a, losses), True, _note(a, losses)) for a in node.findall("answer")
    )
    fields = ("selectcount", "selecttype", "gradingtype")
    words = [node.findtext(field, "").strip() for field in fields]
    item = dataclasses.replace(item, steps=steps)
    return ordered(item, words, _tags(node), losses)


def _cloze(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    source = node.find("questiontext")
    raw = source.findtext("text", "") if source is not None else ""
    marked, blanks = read_gaps(raw, losses)
    return _with_gaps(item, read_html(marked, losses), blanks, losses)


def _chosen_gaps(node: ET.Element, item: Item, losses: ConversionLosses) -> Item:
    """Words to be chosen or dragged into gaps: each gap offers those of its group."""
    found = (*node.findall("selectoption"), *node.findall("dragbox"))
    given = [" ".join(option.findtext("text", "").split()) for option in found]
    groups = [option.findtext("group", "") for option in found]
    blanks: list[ItemBlank] = []

    def gap(found: re.Match[str]) -> str:
        place = int(found[1])
        if not 1 <= place <= len(given) or not given[place - 1]:
            raise ItemSkippedError("a gap has no word that fits")
        word, group = given[place - 1], groups[place - 1]
        offered = [w for w, g in zip(given, groups, strict=True) if g == group]
        wrong = tuple(w for w in dict.fromkeys(offered) if w and w != word)
        blanks.append(ItemBlank((word,), "", wrong))
        return BLANK

    raw = node.findtext("questiontext/text", "")
    text = read_html(_PLACED.sub(gap, raw), losses)
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return _with_gaps(item, text, tuple(blanks), losses)


def _with_gaps(
    item: Item, text: str, blanks: tuple[ItemBlank, ...], losses: ConversionLosses
) -> Item:
    """The first paragraph is the question when no gap stands in it."""
    if text.count(BLANK) != len(blanks):
        raise ItemSkippedError("a gap stands where none can be, or where nobody sees it")
    head, _, rest = text.partition("\n\n")
    if not rest or BLANK in head:
        head, rest = read_text(item.name or "Complete the text.", "plain", losses), text
    return dataclasses.replace(item, kind="cloze", stem=head, text=rest, blanks=blanks)


_READERS: dict[str, Callable[[ET.Element, Item, ConversionLosses], Item]] = {
    "multichoice": _choices,
    "multichoiceset": _choices,
    "oumultiresponse": _choices,
    "truefalse": _truth,
    "shortanswer": _short,
    "numerical": _numeric,
    "matching": _match,
    "ddmatch": _match,
    "ordering": _order,
    "cloze": _cloze,
    "gapselect": _chosen_gaps,
    "ddwtos": _chosen_gaps,
}
