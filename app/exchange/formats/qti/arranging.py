"""QTI of steps to be ordered, things to be matched, gaps to be filled."""

from xml.etree import ElementTree as ET

from app.exchange.formats.qti.making import GAP, QtiBuilder
from app.exchange.formats.qti.scoring import (
    declare,
    explained,
    mapped,
    matched,
    outcomes,
)
from app.exchange.items import Item, ItemBlank, ItemSkippedError, shown

_CHOICE = "w{}"


def order(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Steps in their order; those that belong nowhere stay unchosen."""
    right = [f"s{n}" for n in range(1, len(item.steps) + 1)]
    wrong = [f"d{n}" for n in range(1, len(item.options) + 1)]
    declare(make, root, right, cardinality="ordered", base_type="identifier")
    outcomes(make, root)
    body = make.add(root, "item_body")
    given = {"response_identifier": "RESPONSE", "shuffle": "true"}
    if wrong:
        count = str(len(right))
        given |= {"min_choices": count, "max_choices": count}
    make.fill(body, item.stem, block=True)
    asked = make.add(body, "order_interaction", **given)
    for name, step in zip((*right, *wrong), (*item.steps, *item.options), strict=True):
        node = make.add(asked, "simple_choice", identifier=name)
        make.fill(node, step.text, block=False)
        _reason(make, node, step.feedback)
    processing = make.add(root, "response_processing")
    matched(make, processing)
    explained(make, processing, item)


def match(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Two sets; right things that are equal stand once."""
    lefts = [p for p in item.pairs if p.left]
    rights = list(dict.fromkeys(p.right for p in item.pairs))
    names = {text: f"r{n}" for n, text in enumerate(rights, 1)}
    wanted = [f"l{n} {names[p.right]}" for n, p in enumerate(lefts, 1)]
    node = declare(make, root, wanted, cardinality="multiple", base_type="directedPair")
    mapping = make.add(node, "mapping", lower_bound="0", default_value="0")
    for pair in wanted:
        worth = shown(1 / len(wanted))
        make.add(mapping, "map_entry", map_key=pair, mapped_value=worth)
    outcomes(make, root)
    body = make.add(root, "item_body")
    given = {"max_associations": str(len(lefts)), "response_identifier": "RESPONSE"}
    make.fill(body, item.stem, block=True)
    asked = make.add(body, "match_interaction", shuffle="true", **given)
    left_rows = [(f"l{n}", p.left, "1", p.why) for n, p in enumerate(lefts, 1)]
    right_rows = [(names[text], text, str(len(lefts)), "") for text in rights]
    for rows in (left_rows, right_rows):
        holder = make.add(asked, "simple_match_set")
        for name, text, most, why in rows:
            given = {"identifier": name, "match_max": most}
            node = make.add(holder, "simple_associable_choice", **given)
            make.fill(node, text, block=False)
            _reason(make, node, why)
    processing = make.add(root, "response_processing")
    mapped(make, processing, ["RESPONSE"])
    explained(make, processing, item)


def _reason(make: QtiBuilder, node: ET.Element, why: str) -> None:
    """What is said about one step or row, shown with the explanation."""
    if why:
        make.remark(node, why, "EXPLAINED", "EXPLANATION")


def cloze(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """A text entry or a choice for each gap; each brings its share."""
    names = [f"RESPONSE{n}" for n in range(1, len(item.blanks) + 1)]
    for name, blank in zip(names, item.blanks, strict=True):
        _expect(make, root, name, blank, 1 / len(names))
    outcomes(make, root)
    body = make.add(root, "item_body")
    make.fill(body, item.stem, block=True)
    make.fill(body, item.text, block=True)
    gaps = list(body.iter(GAP))
    if len(gaps) != len(names):
        raise ItemSkippedError("its gaps do not fit its text")
    for gap, name, blank in zip(gaps, names, item.blanks, strict=True):
        _ask(make, gap, name, blank)
    processing = make.add(root, "response_processing")
    mapped(make, processing, names)
    explained(make, processing, item)


def _expect(make: QtiBuilder, root: ET.Element, name: str, blank: ItemBlank, worth: float) -> None:
    """What fills a gap, each for its share of the points."""
    base = "identifier" if blank.wrong else "string"
    answers = [_CHOICE.format(0)] if blank.wrong else list(blank.answers)
    given = {"identifier": name, "cardinality": "single", "base_type": base}
    node = declare(make, root, answers[:1], **given)
    mapping = make.add(node, "mapping", default_value="0")
    for answer in answers:
        entry = {"map_key": answer, "mapped_value": shown(worth)}
        make.add(mapping, "map_entry", **entry)


def _ask(make: QtiBuilder, gap: ET.Element, name: str, blank: ItemBlank) -> None:
    """The mark of a gap becomes a field, or a list to choose from."""
    given = {"response_identifier": name}
    if not blank.wrong:
        if blank.hint:
            given["placeholder_text"] = blank.hint
        make.turn(gap, "text_entry_interaction", **given)
        return
    make.turn(gap, "inline_choice_interaction", shuffle="true", **given)
    for number, word in enumerate((blank.answers[0], *blank.wrong)):
        make.add(gap, "inline_choice", word, identifier=_CHOICE.format(number))
