"""Write QTI 2.1 and 3.0."""

import io
import re
import zipfile
from collections.abc import Callable, Collection
from xml.etree import ElementTree as ET

from app.import_export.formats.export_losses import LONGEST_LABEL, convert_items
from app.import_export.formats.metadata_tags import list_item_tags
from app.import_export.formats.partial_credit import list_choice_weight_percents
from app.import_export.formats.qti_elements import GAP, NAMESPACES, QtiBuilder
from app.import_export.items import (
    ExportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemSkippedError,
    append_number_until_unused,
    decode_image_or_empty,
    format_significant_digits,
    item_label,
)
from app.import_export.text_conversion import add_unit_to_stem
from app.import_export.xml_files import add_child, serialize_document

HINT = "hint"  # CSS class of a hint among the notes for tutors
_FULL = "0.99"  # shares of a mark may add up to slightly less than 1


def _add_response_declaration(
    make: QtiBuilder, root: ET.Element, right_values: list[str], **attributes: str
) -> ET.Element:
    settings = {"identifier": "RESPONSE"} | attributes
    node = make.add(root, "response_declaration", **settings)
    correct_response = make.add(node, "correct_response")
    for value in right_values:
        make.add(correct_response, "value", value)
    return node


def _add_outcomes_and_body(
    make: QtiBuilder, root: ET.Element, stem: str, feedback_cardinality: str = "single"
) -> ET.Element:
    """Add the outcome declarations and the body with the stem; returns the body."""
    for name, cardinality, base_type in (
        ("SCORE", "single", "float"),
        ("FEEDBACK", feedback_cardinality, "identifier"),
        ("EXPLAINED", "single", "identifier"),
        ("MISTAKEN", "single", "identifier"),
    ):
        attributes = {"identifier": name, "cardinality": cardinality, "base_type": base_type}
        node = make.add(root, "outcome_declaration", **attributes)
        if name == "SCORE":
            make.add(make.add(node, "default_value"), "value", "0")
    body = make.add(root, "item_body")
    make.add_markdown(body, stem, as_paragraphs=True)
    return body


def _set_outcome(
    make: QtiBuilder, parent: ET.Element, name: str, value: str, base_type: str = "identifier"
) -> None:
    rule = make.add(parent, "set_outcome_value", identifier=name)
    make.add(rule, "base_value", value, base_type=base_type)


def _add_explanation_rules(make: QtiBuilder, processing: ET.Element, item: Item) -> None:
    """Show the explanation after every answer, and the common mistake after a miss."""
    _set_outcome(make, processing, "EXPLAINED", "EXPLANATION")
    if not item.mistake:
        return
    branch = make.add(make.add(processing, "response_condition"), "response_if")
    test = make.add(branch, "lt")
    make.add(test, "variable", identifier="SCORE")
    make.add(test, "base_value", _FULL, base_type="float")
    _set_outcome(make, branch, "MISTAKEN", "MISTAKE")


def _add_hints(make: QtiBuilder, body: ET.Element, item: Item) -> None:
    """Write the hints as notes for tutors; a QTI item cannot reveal them later."""
    for hint in item.hints:
        node = make.add(body, "rubric_block", view="tutor")
        node.set("class", HINT)
        if make.version == "3.0":
            node.set("use", "ext:hint")
        make.add_block_content(node, hint)


def _add_all_or_nothing_scoring(make: QtiBuilder, processing: ET.Element) -> None:
    """Give one point for exactly the declared answer."""
    branch = make.add(make.add(processing, "response_condition"), "response_if")
    test = make.add(branch, "match")
    make.add(test, "variable", identifier="RESPONSE")
    make.add(test, "correct", identifier="RESPONSE")
    _set_outcome(make, branch, "SCORE", "1", "float")


def _add_sum_of_mappings_scoring(
    make: QtiBuilder, processing: ET.Element, responses: list[str]
) -> None:
    rule = make.add(processing, "set_outcome_value", identifier="SCORE")
    total = make.add(rule, "sum") if len(responses) > 1 else rule
    for name in responses:
        make.add(total, "map_response", identifier=name)


def _add_choices(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Write single choice, multiple choice, true/false."""
    multiple_answers = item.kind == "multiple"
    cardinality = "multiple" if multiple_answers else "single"
    choice_ids = [f"c{n}" for n in range(1, len(item.options) + 1)]
    right = [n for n, o in zip(choice_ids, item.options, strict=True) if o.right]
    node = _add_response_declaration(
        make, root, right, cardinality=cardinality, base_type="identifier"
    )
    has_weights = item.partial == "net" if multiple_answers else any(o.credit for o in item.options)
    if has_weights:
        scores = (percent / 100 for percent in list_choice_weight_percents(item))
        score_by_choice = dict(zip(choice_ids, scores, strict=True))
        _add_mapping(make, node, score_by_choice, lower_bound="0", upper_bound="1")
    body = _add_outcomes_and_body(make, root, item.stem, cardinality)
    interaction = make.add(
        body,
        "choice_interaction",
        response_identifier="RESPONSE",
        shuffle="true" if item.shuffle and item.kind != "true-false" else "false",
        max_choices="0" if multiple_answers else "1",
    )
    for name, option in zip(choice_ids, item.options, strict=True):
        node = make.add(interaction, "simple_choice", identifier=name)
        make.add_markdown(node, option.text, as_paragraphs=False)
        if option.feedback:
            make.add_inline_feedback(node, option.feedback, "FEEDBACK", name)
    processing = make.add(root, "response_processing")
    if has_weights:
        _add_sum_of_mappings_scoring(make, processing, ["RESPONSE"])
    else:
        _add_all_or_nothing_scoring(make, processing)
    feedback_rule = make.add(processing, "set_outcome_value", identifier="FEEDBACK")
    make.add(feedback_rule, "variable", identifier="RESPONSE")
    _add_explanation_rules(make, processing, item)


def _add_mapping(
    make: QtiBuilder, node: ET.Element, score_by_value: dict[str, float], **bounds: str
) -> None:
    mapping = make.add(node, "mapping", **bounds)
    for value, score in score_by_value.items():
        score_text = format_significant_digits(score)
        make.add(mapping, "map_entry", map_key=value, mapped_value=score_text)


def _add_text_entry(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Write a number or a short answer, with a condition for each value."""
    numeric = item.kind == "numeric"
    unit = next((o.span.unit for o in item.options if o.span), "")
    if any(o.span.unit != unit for o in item.options if o.span):
        raise ItemSkippedError("its answers are in different units")
    right = [_option_value(o) for o in item.options if o.right]
    base_type = "float" if numeric else "string"
    _add_response_declaration(make, root, right[:1], cardinality="single", base_type=base_type)
    body = _add_outcomes_and_body(make, root, add_unit_to_stem(item.stem, unit))
    paragraph = ET.SubElement(body, "p")
    make.add(paragraph, "text_entry_interaction", response_identifier="RESPONSE")
    processing = make.add(root, "response_processing")
    condition = make.add(processing, "response_condition")
    for number, option in enumerate(item.options, 1):
        name = "response_if" if number == 1 else "response_else_if"
        branch = make.add(condition, name)
        _add_comparison(make, branch, option, item)
        points = format_significant_digits(option.percent_weight / 100)
        _set_outcome(make, branch, "SCORE", points, "float")
        _set_outcome(make, branch, "FEEDBACK", f"f{number}")
    _add_explanation_rules(make, processing, item)
    for number, option in enumerate(item.options, 1):
        if option.feedback:
            make.add_modal_feedback(root, option.feedback, "FEEDBACK", f"f{number}")


def _add_comparison(make: QtiBuilder, branch: ET.Element, option: ItemOption, item: Item) -> None:
    if option.span is not None:
        width = format_significant_digits(option.span.tolerance)
        attributes = {"tolerance_mode": "absolute", "tolerance": f"{width} {width}"}
        test, base_type = make.add(branch, "equal", **attributes), "float"
    else:
        case = "true" if item.case else "false"
        test, base_type = make.add(branch, "string_match", case_sensitive=case), "string"
    make.add(test, "variable", identifier="RESPONSE")
    make.add(test, "base_value", _option_value(option), base_type=base_type)


def _option_value(option: ItemOption) -> str:
    return format_significant_digits(option.span.center) if option.span is not None else option.text


_CHOICE = "w{}"


def _add_ordering(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Write steps in order; distractors stay unchosen."""
    right_ids = [f"s{n}" for n in range(1, len(item.steps) + 1)]
    wrong_ids = [f"d{n}" for n in range(1, len(item.options) + 1)]
    _add_response_declaration(make, root, right_ids, cardinality="ordered", base_type="identifier")
    body = _add_outcomes_and_body(make, root, item.stem)
    attributes = {"response_identifier": "RESPONSE", "shuffle": "true"}
    if wrong_ids:
        count = str(len(right_ids))
        attributes |= {"min_choices": count, "max_choices": count}
    interaction = make.add(body, "order_interaction", **attributes)
    for name, step in zip((*right_ids, *wrong_ids), (*item.steps, *item.options), strict=True):
        node = make.add(interaction, "simple_choice", identifier=name)
        make.add_markdown(node, step.text, as_paragraphs=False)
        _add_feedback_shown_with_explanation(make, node, step.feedback)
    processing = make.add(root, "response_processing")
    _add_all_or_nothing_scoring(make, processing)
    _add_explanation_rules(make, processing, item)


def _add_matching(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Write two sets; equal right sides are written once."""
    lefts = [p for p in item.pairs if p.left]
    rights = list(dict.fromkeys(p.right for p in item.pairs))
    right_id_by_text = {text: f"r{n}" for n, text in enumerate(rights, 1)}
    answers = [f"l{n} {right_id_by_text[p.right]}" for n, p in enumerate(lefts, 1)]
    node = _add_response_declaration(
        make, root, answers, cardinality="multiple", base_type="directedPair"
    )
    scores = dict.fromkeys(answers, 1 / len(answers)) if answers else {}
    _add_mapping(make, node, scores, lower_bound="0", default_value="0")
    body = _add_outcomes_and_body(make, root, item.stem)
    settings = {"max_associations": str(len(lefts)), "response_identifier": "RESPONSE"}
    interaction = make.add(body, "match_interaction", shuffle="true", **settings)
    left_rows = [(f"l{n}", p.left, "1", p.why) for n, p in enumerate(lefts, 1)]
    right_rows = [(right_id_by_text[text], text, str(len(lefts)), "") for text in rights]
    for rows in (left_rows, right_rows):
        match_set = make.add(interaction, "simple_match_set")
        for name, text, match_max, why in rows:
            settings = {"identifier": name, "match_max": match_max}
            node = make.add(match_set, "simple_associable_choice", **settings)
            make.add_markdown(node, text, as_paragraphs=False)
            _add_feedback_shown_with_explanation(make, node, why)
    processing = make.add(root, "response_processing")
    _add_sum_of_mappings_scoring(make, processing, ["RESPONSE"])
    _add_explanation_rules(make, processing, item)


def _add_feedback_shown_with_explanation(make: QtiBuilder, node: ET.Element, feedback: str) -> None:
    """Add the remark on one step or row, shown with the explanation."""
    if feedback:
        make.add_inline_feedback(node, feedback, "EXPLAINED", "EXPLANATION")


def _add_cloze(make: QtiBuilder, root: ET.Element, item: Item) -> None:
    """Write a text entry or a choice for each gap; each earns its share."""
    response_ids = [f"RESPONSE{n}" for n in range(1, len(item.blanks) + 1)]
    for name, blank in zip(response_ids, item.blanks, strict=True):
        _add_gap_scoring(make, root, name, blank, 1 / len(response_ids))
    body = _add_outcomes_and_body(make, root, item.stem)
    make.add_markdown(body, item.text, as_paragraphs=True)
    gaps = list(body.iter(GAP))
    if len(gaps) != len(response_ids):
        raise ItemSkippedError("its gaps do not fit its text")
    for gap, name, blank in zip(gaps, response_ids, item.blanks, strict=True):
        _add_gap_field(make, gap, name, blank)
    processing = make.add(root, "response_processing")
    _add_sum_of_mappings_scoring(make, processing, response_ids)
    _add_explanation_rules(make, processing, item)


def _add_gap_scoring(
    make: QtiBuilder, root: ET.Element, name: str, blank: ItemBlank, points_share: float
) -> None:
    """Declare what fills a gap, with its share of the points."""
    base_type = "identifier" if blank.wrong else "string"
    answers = [_CHOICE.format(0)] if blank.wrong else list(blank.answers)
    attributes = {"identifier": name, "cardinality": "single", "base_type": base_type}
    node = _add_response_declaration(make, root, answers[:1], **attributes)
    _add_mapping(make, node, dict.fromkeys(answers, points_share), default_value="0")


def _add_gap_field(make: QtiBuilder, gap: ET.Element, name: str, blank: ItemBlank) -> None:
    attributes = {"response_identifier": name}
    if not blank.wrong:
        if blank.hint:
            attributes["placeholder_text"] = blank.hint
        make.change_element(gap, "text_entry_interaction", **attributes)
        return
    make.change_element(gap, "inline_choice_interaction", shuffle="true", **attributes)
    for number, word in enumerate((blank.answers[0], *blank.wrong)):
        make.add(gap, "inline_choice", word, identifier=_CHOICE.format(number))


_MANIFESTS = {
    "2.1": "http://www.imsglobal.org/xsd/imscp_v1p1",
    "3.0": "http://www.imsglobal.org/xsd/qti/qtiv3p0/imscp_v1p1",
}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_WRITERS: dict[str, Callable[[QtiBuilder, ET.Element, Item], None]] = {
    "single": _add_choices,
    "multiple": _add_choices,
    "true-false": _add_choices,
    "numeric": _add_text_entry,
    "short": _add_text_entry,
    "order": _add_ordering,
    "match": _add_matching,
    "cloze": _add_cloze,
}


def write_qti(items: tuple[Item, ...], version: str, language: str = "") -> ExportResult:
    """Return a QTI 2.1 or 3.0 package with one file for each item that fits.

    Each names the `language` of its text, if known.
    """
    files: dict[str, bytes] = {}
    pictures_by_item: dict[str, dict[str, bytes]] = {}
    taken_names: set[str] = set()

    def add_file(item: Item) -> None:
        root = _item_element(QtiBuilder(version), item)
        if language:
            root.set(_LANGUAGE, language)
        name = _make_identifier(item, taken_names)
        taken_names.add(name)
        path = f"items/{name}.xml"
        pictures_by_item[path] = _use_package_files(root, item)
        files[path] = serialize_document(root, indent=False)

    added, refused, lost = convert_items(items, add_file, "qti")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("imsmanifest.xml", _write_manifest(pictures_by_item, version))
        for pictures in pictures_by_item.values():
            files |= pictures
        for path, content in files.items():
            archive.writestr(path, content)
    return ExportResult(out.getvalue(), len(added), refused, lost)


def _use_package_files(root: ET.Element, item: Item) -> dict[str, bytes]:
    """Change an item's pictures to package files; returns their bytes by name."""
    contents = {picture.name: decode_image_or_empty(picture) for picture in item.pictures}
    used_files: dict[str, bytes] = {}
    for node in root.iter("img"):
        name = node.get("src", "")
        if name in contents:
            file = f"images/{name.replace('/', '-')}"
            node.set("src", f"../{file}")
            used_files[file] = contents[name]
    return used_files


def _item_element(make: QtiBuilder, item: Item) -> ET.Element:
    write = _WRITERS.get(item.kind)
    if write is None:
        raise ItemSkippedError(f"QTI has no question of the type {item.kind}")
    root = make.create_root(
        "assessment_item",
        identifier=_make_identifier(item, ()),
        title=item.name or item_label(item),
        adaptive="false",
        time_dependent="false",
    )
    root.set("xmlns", NAMESPACES[make.version])
    label = "; ".join(list_item_tags(item))
    if label and len(label) <= LONGEST_LABEL:
        root.set("label", label)
    write(make, root, item)
    body = root.find(make.spell_name("item_body"))
    if body is not None:
        _add_hints(make, body, item)
    if item.mistake:
        make.add_modal_feedback(root, item.mistake, "MISTAKEN", "MISTAKE")
    if item.explanation:
        make.add_modal_feedback(root, item.explanation, "EXPLAINED", "EXPLANATION")
    return root


def _make_identifier(item: Item, taken: Collection[str]) -> str:
    """Return an unused XML name from the item's name."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.name or "item").strip("-.") or "item"
    name = name if re.match(r"[A-Za-z_]", name) else f"q-{name}"
    return append_number_until_unused(name, taken)


def _write_manifest(pictures_by_item: dict[str, dict[str, bytes]], version: str) -> bytes:
    root = ET.Element("manifest", identifier="headroom", xmlns=_MANIFESTS[version])
    metadata = add_child(root, "metadata")
    is_qti_21 = version == "2.1"
    add_child(metadata, "schema", "QTIv2.1 Package" if is_qti_21 else "QTI Package")
    add_child(metadata, "schemaversion", "1.0.0" if is_qti_21 else "3.0.0")
    add_child(root, "organizations")
    resources = add_child(root, "resources")
    kind = f"imsqti_item_xmlv{version.replace('.', 'p')}"
    for number, (name, pictures) in enumerate(pictures_by_item.items(), 1):
        node = add_child(resources, "resource", identifier=f"r{number}", type=kind, href=name)
        for file in (name, *pictures):
            add_child(node, "file", href=file)
    return serialize_document(root)
