"""QTI of choices and typed answers, with their response processing."""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from app.exchange.formats.qti.making import QtiBuilder
from app.exchange.formats.weights import weights
from app.exchange.items import Item, ItemOption, ItemSkippedError, shown
from app.exchange.markup.texts import with_unit

HINT = "hint"  # the class of a hint among the notes for tutors
_FULL = "0.99"  # shares of a mark add up to nearly one


def declare(make: QtiBuilder, root: ET.Element, values: list[str], **attributes: str) -> ET.Element:
    """A response declaration with its right values."""
    given = {"identifier": "RESPONSE"} | attributes
    node = make.add(root, "response_declaration", **given)
    right = make.add(node, "correct_response")
    for value in values:
        make.add(right, "value", value)
    return node


def outcomes(make: QtiBuilder, root: ET.Element, feedback: str = "single") -> None:
    """The score, the feedback that is shown, and that the explanation is."""
    for name, cardinality, base in (
        ("SCORE", "single", "float"),
        ("FEEDBACK", feedback, "identifier"),
        ("EXPLAINED", "single", "identifier"),
        ("MISTAKEN", "single", "identifier"),
    ):
        given = {"identifier": name, "cardinality": cardinality, "base_type": base}
        node = make.add(root, "outcome_declaration", **given)
        if name == "SCORE":
            make.add(make.add(node, "default_value"), "value", "0")


def explained(make: QtiBuilder, processing: ET.Element, item: Item) -> None:
    """Show the explanation after every answer, the common mistake after a miss."""
    rule = make.add(processing, "set_outcome_value", identifier="EXPLAINED")
    make.add(rule, "base_value", "EXPLANATION", base_type="identifier")
    if not item.mistake:
        return
    branch = make.add(make.add(processing, "response_condition"), "response_if")
    test = make.add(branch, "lt")
    make.add(test, "variable", identifier="SCORE")
    make.add(test, "base_value", _FULL, base_type="float")
    rule = make.add(branch, "set_outcome_value", identifier="MISTAKEN")
    make.add(rule, "base_value", "MISTAKE", base_type="identifier")


def hinted(make: QtiBuilder, body: ET.Element, item: Item) -> None:
    """The hints as notes for tutors: a plain item has no place that opens later."""
    for hint in item.hints:
        node = make.add(body, "rubric_block", view="tutor")
        node.set("class", HINT)
        if make.version == "3.0":
            node.set("use", "ext:hint")
            node = make.add(node, "content_body")
        make.fill(node, hint, block=True)


def matched(make: QtiBuilder, processing: ET.Element) -> None:
    """One point for exactly the declared answer."""
    condition = make.add(processing, "response_condition")
    branch = make.add(condition, "response_if")
    test = make.add(branch, "match")
    make.add(test, "variable", identifier="RESPONSE")
    make.add(test, "correct", identifier="RESPONSE")
    score = make.add(branch, "set_outcome_value", identifier="SCORE")
    make.add(score, "base_value", "1", base_type="float")


def mapped(make: QtiBuilder, processing: ET.Element, responses: list[str]) -> None:
    """The sum of what the mappings bring."""
    rule = make.add(processing, "set_outcome_value", identifier="SCORE")
    total = make.add(rule, "sum") if len(responses) > 1 else rule
    for name in responses:
        make.add(total, "map_response", identifier=name)


def choices(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Single, multiple, true or false."""
    several = item.kind == "multiple"
    cardinality = "multiple" if several else "single"
    names = [f"c{n}" for n in range(1, len(item.options) + 1)]
    right = [n for n, o in zip(names, item.options, strict=True) if o.right]
    node = declare(make, root, right, cardinality=cardinality, base_type="identifier")
    weighed = item.partial == "net" if several else any(o.credit for o in item.options)
    if weighed:
        _map(make, node, zip(names, weights(item), strict=True))
    outcomes(make, root, cardinality)
    body = make.add(root, "item_body")
    make.fill(body, item.stem, block=True)
    asked = make.add(
        body,
        "choice_interaction",
        response_identifier="RESPONSE",
        shuffle="true" if item.shuffle and item.kind != "true-false" else "false",
        max_choices="0" if several else "1",
    )
    for name, option in zip(names, item.options, strict=True):
        _choice(make, asked, name, option)
    processing = make.add(root, "response_processing")
    if weighed:
        mapped(make, processing, ["RESPONSE"])
    else:
        matched(make, processing)
    shown_ = make.add(processing, "set_outcome_value", identifier="FEEDBACK")
    make.add(shown_, "variable", identifier="RESPONSE")
    explained(make, processing, item)


def _map(make: QtiBuilder, node: ET.Element, worth: Iterable[tuple[str, float]]) -> None:
    """What each value of a declaration brings, given in percent."""
    mapping = make.add(node, "mapping", lower_bound="0", upper_bound="1")
    for name, weight in worth:
        value = shown(weight / 100)
        make.add(mapping, "map_entry", map_key=name, mapped_value=value)


def _choice(make: QtiBuilder, asked: ET.Element, name: str, option: ItemOption) -> None:
    node = make.add(asked, "simple_choice", identifier=name)
    make.fill(node, option.text, block=False)
    if option.feedback:
        make.remark(node, option.feedback, "FEEDBACK", name)


def typed(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """A number or a word, each accepted or foreseen value with a condition."""
    numeric = item.kind == "numeric"
    unit = next((o.span.unit for o in item.options if o.span), "")
    if any(o.span.unit != unit for o in item.options if o.span):
        raise ItemSkippedError("its answers are in different units")
    right = [_value(o) for o in item.options if o.right]
    base = "float" if numeric else "string"
    declare(make, root, right[:1], cardinality="single", base_type=base)
    outcomes(make, root)
    body = make.add(root, "item_body")
    make.fill(body, with_unit(item.stem, unit), block=True)
    holder = ET.SubElement(body, "p")
    make.add(holder, "text_entry_interaction", response_identifier="RESPONSE")
    processing = make.add(root, "response_processing")
    condition = make.add(processing, "response_condition")
    for number, option in enumerate(item.options, 1):
        name = "response_if" if number == 1 else "response_else_if"
        branch = make.add(condition, name)
        _compare(make, branch, option, item)
        _say(make, branch, option, f"f{number}")
    explained(make, processing, item)
    for number, option in enumerate(item.options, 1):
        if option.feedback:
            make.say(root, "FEEDBACK", f"f{number}", option.feedback)


def _say(make: QtiBuilder, branch: ET.Element, option: ItemOption, name: str) -> None:
    """Score a value and show what is said about it."""
    score = make.add(branch, "set_outcome_value", identifier="SCORE")
    make.add(score, "base_value", shown(option.weight / 100), base_type="float")
    said = make.add(branch, "set_outcome_value", identifier="FEEDBACK")
    make.add(said, "base_value", name, base_type="identifier")


def _compare(make: QtiBuilder, branch: ET.Element, option: ItemOption, item: Item) -> None:
    if option.span is not None:
        width = shown(option.span.tolerance)
        given = {"tolerance_mode": "absolute", "tolerance": f"{width} {width}"}
        test, base = make.add(branch, "equal", **given), "float"
    else:
        case = "true" if item.case else "false"
        test, base = make.add(branch, "string_match", case_sensitive=case), "string"
    make.add(test, "variable", identifier="RESPONSE")
    make.add(test, "base_value", _value(option), base_type=base)


def _value(option: ItemOption) -> str:
    return shown(option.span.center) if option.span is not None else option.text
