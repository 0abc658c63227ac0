"""Write QTI 2.1 and 3.0."""

import io
import re
import zipfile
from collections.abc import Callable, Collection
from xml.etree import ElementTree as ET

from app.import_export.formats.export_losses import LONGEST_LABEL, convert_items_and_list_losses
from app.import_export.formats.extra_fields import write_item_fields_as_tags
from app.import_export.formats.partial_credit import list_choice_weight_percents
from app.import_export.formats.qti_elements import GAP_TAG, NAMESPACES, QtiElementBuilder
from app.import_export.items import (
    ExportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemSkippedError,
    append_number_until_unused,
    decode_image_or_empty,
    format_significant_digits,
    make_item_label,
)
from app.import_export.text_conversion import add_unit_to_stem
from app.import_export.xml_files import add_child, serialize_document

HINT = "hint"  # CSS class of a hint among the notes for tutors
_FULL_SCORE_TEXT = "0.99"  # shares of a mark may add up to slightly less than 1


def _add_response_declaration(
    builder: QtiElementBuilder, root: ET.Element, right_values: list[str], **attributes: str
) -> ET.Element:
    settings = {"identifier": "RESPONSE"} | attributes
    node = builder.add_child_element(root, "response_declaration", **settings)
    correct_response = builder.add_child_element(node, "correct_response")
    for value in right_values:
        builder.add_child_element(correct_response, "value", value)
    return node


def _add_outcomes_and_body(
    builder: QtiElementBuilder, root: ET.Element, stem: str, feedback_cardinality: str = "single"
) -> ET.Element:
    """Add the outcome declarations and the body with the stem; returns the body."""
    for name, cardinality, base_type in (
        ("SCORE", "single", "float"),
        ("FEEDBACK", feedback_cardinality, "identifier"),
        ("EXPLAINED", "single", "identifier"),
        ("MISTAKEN", "single", "identifier"),
    ):
        attributes = {"identifier": name, "cardinality": cardinality, "base_type": base_type}
        node = builder.add_child_element(root, "outcome_declaration", **attributes)
        if name == "SCORE":
            builder.add_child_element(
                builder.add_child_element(node, "default_value"), "value", "0"
            )
    body = builder.add_child_element(root, "item_body")
    builder.add_markdown(body, stem, as_paragraphs=True)
    return body


def _add_set_outcome_rule(
    builder: QtiElementBuilder,
    parent: ET.Element,
    name: str,
    value: str,
    base_type: str = "identifier",
) -> None:
    rule = builder.add_child_element(parent, "set_outcome_value", identifier=name)
    builder.add_child_element(rule, "base_value", value, base_type=base_type)


def _add_explanation_and_mistake_rules(
    builder: QtiElementBuilder, processing: ET.Element, item: Item
) -> None:
    """Show the explanation after every answer, and the common mistake after a miss."""
    _add_set_outcome_rule(builder, processing, "EXPLAINED", "EXPLANATION")
    if not item.mistake:
        return
    branch = builder.add_child_element(
        builder.add_child_element(processing, "response_condition"), "response_if"
    )
    test = builder.add_child_element(branch, "lt")
    builder.add_child_element(test, "variable", identifier="SCORE")
    builder.add_child_element(test, "base_value", _FULL_SCORE_TEXT, base_type="float")
    _add_set_outcome_rule(builder, branch, "MISTAKEN", "MISTAKE")


def _add_hints_as_tutor_notes(builder: QtiElementBuilder, body: ET.Element, item: Item) -> None:
    """Write the hints as notes for tutors; a QTI item cannot reveal them later."""
    for hint in item.hints:
        node = builder.add_child_element(body, "rubric_block", view="tutor")
        node.set("class", HINT)
        if builder.qti_version == "3.0":
            node.set("use", "ext:hint")
        builder.add_block_content(node, hint)


def _add_all_or_nothing_scoring(builder: QtiElementBuilder, processing: ET.Element) -> None:
    """Give one point for exactly the declared answer."""
    branch = builder.add_child_element(
        builder.add_child_element(processing, "response_condition"), "response_if"
    )
    test = builder.add_child_element(branch, "match")
    builder.add_child_element(test, "variable", identifier="RESPONSE")
    builder.add_child_element(test, "correct", identifier="RESPONSE")
    _add_set_outcome_rule(builder, branch, "SCORE", "1", "float")


def _add_sum_of_mappings_scoring(
    builder: QtiElementBuilder, processing: ET.Element, response_identifiers: list[str]
) -> None:
    rule = builder.add_child_element(processing, "set_outcome_value", identifier="SCORE")
    total = builder.add_child_element(rule, "sum") if len(response_identifiers) > 1 else rule
    for name in response_identifiers:
        builder.add_child_element(total, "map_response", identifier=name)


def _add_choice_question(builder: QtiElementBuilder, root: ET.Element, item: Item) -> None:
    """Write single choice, multiple choice, true/false."""
    multiple_answers = item.kind == "multiple"
    cardinality = "multiple" if multiple_answers else "single"
    choice_ids = [f"c{n}" for n in range(1, len(item.options) + 1)]
    right = [n for n, o in zip(choice_ids, item.options, strict=True) if o.right]
    node = _add_response_declaration(
        builder, root, right, cardinality=cardinality, base_type="identifier"
    )
    has_weights = item.partial == "net" if multiple_answers else any(o.credit for o in item.options)
    if has_weights:
        scores = (percent / 100 for percent in list_choice_weight_percents(item))
        score_by_choice = dict(zip(choice_ids, scores, strict=True))
        _add_mapping(builder, node, score_by_choice, lower_bound="0", upper_bound="1")
    body = _add_outcomes_and_body(builder, root, item.stem, cardinality)
    interaction = builder.add_child_element(
        body,
        "choice_interaction",
        response_identifier="RESPONSE",
        shuffle="true" if item.shuffle and item.kind != "true-false" else "false",
        max_choices="0" if multiple_answers else "1",
    )
    for name, option in zip(choice_ids, item.options, strict=True):
        node = builder.add_child_element(interaction, "simple_choice", identifier=name)
        builder.add_markdown(node, option.text, as_paragraphs=False)
        if option.feedback:
            builder.add_inline_feedback(node, option.feedback, "FEEDBACK", name)
    processing = builder.add_child_element(root, "response_processing")
    if has_weights:
        _add_sum_of_mappings_scoring(builder, processing, ["RESPONSE"])
    else:
        _add_all_or_nothing_scoring(builder, processing)
    feedback_rule = builder.add_child_element(
        processing, "set_outcome_value", identifier="FEEDBACK"
    )
    builder.add_child_element(feedback_rule, "variable", identifier="RESPONSE")
    _add_explanation_and_mistake_rules(builder, processing, item)


def _add_mapping(
    builder: QtiElementBuilder, node: ET.Element, score_by_value: dict[str, float], **bounds: str
) -> None:
    mapping = builder.add_child_element(node, "mapping", **bounds)
    for value, score in score_by_value.items():
        score_text = format_significant_digits(score)
        builder.add_child_element(mapping, "map_entry", map_key=value, mapped_value=score_text)


def _add_text_entry_question(builder: QtiElementBuilder, root: ET.Element, item: Item) -> None:
    """Write a number or a short answer, with a condition for each value."""
    numeric = item.kind == "numeric"
    unit = next((o.span.unit for o in item.options if o.span), "")
    if any(o.span.unit != unit for o in item.options if o.span):
        raise ItemSkippedError("its answers are in different units")
    right = [_format_option_value(o) for o in item.options if o.right]
    base_type = "float" if numeric else "string"
    _add_response_declaration(builder, root, right[:1], cardinality="single", base_type=base_type)
    body = _add_outcomes_and_body(builder, root, add_unit_to_stem(item.stem, unit))
    paragraph = ET.SubElement(body, "p")
    builder.add_child_element(paragraph, "text_entry_interaction", response_identifier="RESPONSE")
    processing = builder.add_child_element(root, "response_processing")
    condition = builder.add_child_element(processing, "response_condition")
    for number, option in enumerate(item.options, 1):
        name = "response_if" if number == 1 else "response_else_if"
        branch = builder.add_child_element(condition, name)
        _add_comparison(builder, branch, option, item)
        points = format_significant_digits(option.percent_weight / 100)
        _add_set_outcome_rule(builder, branch, "SCORE", points, "float")
        _add_set_outcome_rule(builder, branch, "FEEDBACK", f"f{number}")
    _add_explanation_and_mistake_rules(builder, processing, item)
    for number, option in enumerate(item.options, 1):
        if option.feedback:
            builder.add_modal_feedback(root, option.feedback, "FEEDBACK", f"f{number}")


def _add_comparison(
    builder: QtiElementBuilder, branch: ET.Element, option: ItemOption, item: Item
) -> None:
    if option.span is not None:
        width = format_significant_digits(option.span.tolerance)
        attributes = {"tolerance_mode": "absolute", "tolerance": f"{width} {width}"}
        test, base_type = builder.add_child_element(branch, "equal", **attributes), "float"
    else:
        case = "true" if item.case else "false"
        test, base_type = (
            builder.add_child_element(branch, "string_match", case_sensitive=case),
            "string",
        )
    builder.add_child_element(test, "variable", identifier="RESPONSE")
    builder.add_child_element(test, "base_value", _format_option_value(option), base_type=base_type)


def _format_option_value(option: ItemOption) -> str:
    return format_significant_digits(option.span.center) if option.span is not None else option.text


_CHOICE_ID_FORMAT = "w{}"


def _add_ordering(builder: QtiElementBuilder, root: ET.Element, item: Item) -> None:
    """Write steps in order; distractors stay unchosen."""
    right_ids = [f"s{n}" for n in range(1, len(item.steps) + 1)]
    wrong_ids = [f"d{n}" for n in range(1, len(item.options) + 1)]
    _add_response_declaration(
        builder, root, right_ids, cardinality="ordered", base_type="identifier"
    )
    body = _add_outcomes_and_body(builder, root, item.stem)
    attributes = {"response_identifier": "RESPONSE", "shuffle": "true"}
    if wrong_ids:
        count = str(len(right_ids))
        attributes |= {"min_choices": count, "max_choices": count}
    interaction = builder.add_child_element(body, "order_interaction", **attributes)
    for name, step in zip((*right_ids, *wrong_ids), (*item.steps, *item.options), strict=True):
        node = builder.add_child_element(interaction, "simple_choice", identifier=name)
        builder.add_markdown(node, step.text, as_paragraphs=False)
        _add_feedback_shown_with_explanation(builder, node, step.feedback)
    processing = builder.add_child_element(root, "response_processing")
    _add_all_or_nothing_scoring(builder, processing)
    _add_explanation_and_mistake_rules(builder, processing, item)


def _add_matching(builder: QtiElementBuilder, root: ET.Element, item: Item) -> None:
    """Write two sets; equal right sides are written once."""
    lefts = [p for p in item.pairs if p.left]
    rights = list(dict.fromkeys(p.right for p in item.pairs))
    right_id_by_text = {text: f"r{n}" for n, text in enumerate(rights, 1)}
    answers = [f"l{n} {right_id_by_text[p.right]}" for n, p in enumerate(lefts, 1)]
    node = _add_response_declaration(
        builder, root, answers, cardinality="multiple", base_type="directedPair"
    )
    scores = dict.fromkeys(answers, 1 / len(answers)) if answers else {}
    _add_mapping(builder, node, scores, lower_bound="0", default_value="0")
    body = _add_outcomes_and_body(builder, root, item.stem)
    settings = {"max_associations": str(len(lefts)), "response_identifier": "RESPONSE"}
    interaction = builder.add_child_element(body, "match_interaction", shuffle="true", **settings)
    left_rows = [(f"l{n}", p.left, "1", p.why) for n, p in enumerate(lefts, 1)]
    right_rows = [(right_id_by_text[text], text, str(len(lefts)), "") for text in rights]
    for rows in (left_rows, right_rows):
        match_set = builder.add_child_element(interaction, "simple_match_set")
        for name, text, match_max, why in rows:
            settings = {"identifier": name, "match_max": match_max}
            node = builder.add_child_element(match_set, "simple_associable_choice", **settings)
            builder.add_markdown(node, text, as_paragraphs=False)
            _add_feedback_shown_with_explanation(builder, node, why)
    processing = builder.add_child_element(root, "response_processing")
    _add_sum_of_mappings_scoring(builder, processing, ["RESPONSE"])
    _add_explanation_and_mistake_rules(builder, processing, item)


def _add_feedback_shown_with_explanation(
    builder: QtiElementBuilder, node: ET.Element, feedback: str
) -> None:
    """Add the remark on one step or row, shown with the explanation."""
    if feedback:
        builder.add_inline_feedback(node, feedback, "EXPLAINED", "EXPLANATION")


def _add_cloze(builder: QtiElementBuilder, root: ET.Element, item: Item) -> None:
    """Write a text entry or a choice for each gap; each earns its share."""
    response_ids = [f"RESPONSE{n}" for n in range(1, len(item.blanks) + 1)]
    for name, blank in zip(response_ids, item.blanks, strict=True):
        _declare_gap_response_and_mapping(builder, root, name, blank, 1 / len(response_ids))
    body = _add_outcomes_and_body(builder, root, item.stem)
    builder.add_markdown(body, item.text, as_paragraphs=True)
    gaps = list(body.iter(GAP_TAG))
    if len(gaps) != len(response_ids):
        raise ItemSkippedError("its gaps do not fit its text")
    for gap, name, blank in zip(gaps, response_ids, item.blanks, strict=True):
        _convert_gap_to_interaction(builder, gap, name, blank)
    processing = builder.add_child_element(root, "response_processing")
    _add_sum_of_mappings_scoring(builder, processing, response_ids)
    _add_explanation_and_mistake_rules(builder, processing, item)


def _declare_gap_response_and_mapping(
    builder: QtiElementBuilder,
    root: ET.Element,
    response_identifier: str,
    blank: ItemBlank,
    points_share: float,
) -> None:
    """Declare what fills a gap, with its share of the points."""
    base_type = "identifier" if blank.wrong else "string"
    answers = [_CHOICE_ID_FORMAT.format(0)] if blank.wrong else list(blank.answers)
    attributes = {
        "identifier": response_identifier,
        "cardinality": "single",
        "base_type": base_type,
    }
    node = _add_response_declaration(builder, root, answers[:1], **attributes)
    _add_mapping(builder, node, dict.fromkeys(answers, points_share), default_value="0")


def _convert_gap_to_interaction(
    builder: QtiElementBuilder, gap: ET.Element, response_identifier: str, blank: ItemBlank
) -> None:
    attributes = {"response_identifier": response_identifier}
    if not blank.wrong:
        if blank.hint:
            attributes["placeholder_text"] = blank.hint
        builder.rename_element_and_set_attributes(gap, "text_entry_interaction", **attributes)
        return
    builder.rename_element_and_set_attributes(
        gap, "inline_choice_interaction", shuffle="true", **attributes
    )
    for number, word in enumerate((blank.answers[0], *blank.wrong)):
        builder.add_child_element(
            gap, "inline_choice", word, identifier=_CHOICE_ID_FORMAT.format(number)
        )


_MANIFEST_NAMESPACE_BY_VERSION = {
    "2.1": "http://www.imsglobal.org/xsd/imscp_v1p1",
    "3.0": "http://www.imsglobal.org/xsd/qti/qtiv3p0/imscp_v1p1",
}
_XML_LANG_ATTRIBUTE = "{http://www.w3.org/XML/1998/namespace}lang"
_INTERACTION_WRITER_BY_TYPE: dict[str, Callable[[QtiElementBuilder, ET.Element, Item], None]] = {
    "single": _add_choice_question,
    "multiple": _add_choice_question,
    "true-false": _add_choice_question,
    "numeric": _add_text_entry_question,
    "short": _add_text_entry_question,
    "order": _add_ordering,
    "match": _add_matching,
    "cloze": _add_cloze,
}


def write_qti(items: tuple[Item, ...], qti_version: str, language: str = "") -> ExportResult:
    """Return a QTI 2.1 or 3.0 package with one file for each item that fits.

    Each names the `language` of its text, if known.
    """
    files: dict[str, bytes] = {}
    pictures_by_item: dict[str, dict[str, bytes]] = {}
    taken_names: set[str] = set()

    def add_file(item: Item) -> None:
        root = _build_item_element(QtiElementBuilder(qti_version), item)
        if language:
            root.set(_XML_LANG_ATTRIBUTE, language)
        name = _make_identifier(item, taken_names)
        taken_names.add(name)
        path = f"items/{name}.xml"
        pictures_by_item[path] = _move_pictures_to_package_files(root, item)
        files[path] = serialize_document(root, indent=False)

    added, refused, lost = convert_items_and_list_losses(items, add_file, "qti")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("imsmanifest.xml", _write_manifest(pictures_by_item, qti_version))
        for pictures in pictures_by_item.values():
            files |= pictures
        for path, content in files.items():
            archive.writestr(path, content)
    return ExportResult(out.getvalue(), len(added), refused, lost)


def _move_pictures_to_package_files(root: ET.Element, item: Item) -> dict[str, bytes]:
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


def _build_item_element(builder: QtiElementBuilder, item: Item) -> ET.Element:
    write = _INTERACTION_WRITER_BY_TYPE.get(item.kind)
    if write is None:
        raise ItemSkippedError(f"QTI has no question of the type {item.kind}")
    root = builder.create_root(
        "assessment_item",
        identifier=_make_identifier(item, ()),
        title=item.name or make_item_label(item),
        adaptive="false",
        time_dependent="false",
    )
    root.set("xmlns", NAMESPACES[builder.qti_version])
    label = "; ".join(write_item_fields_as_tags(item))
    if label and len(label) <= LONGEST_LABEL:
        root.set("label", label)
    write(builder, root, item)
    body = root.find(builder.spell_name_for_version("item_body"))
    if body is not None:
        _add_hints_as_tutor_notes(builder, body, item)
    if item.mistake:
        builder.add_modal_feedback(root, item.mistake, "MISTAKEN", "MISTAKE")
    if item.explanation:
        builder.add_modal_feedback(root, item.explanation, "EXPLAINED", "EXPLANATION")
    return root


def _make_identifier(item: Item, taken_identifiers: Collection[str]) -> str:
    """Return an unused XML name from the item's name."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.name or "item").strip("-.") or "item"
    name = name if re.match(r"[A-Za-z_]", name) else f"q-{name}"
    return append_number_until_unused(name, taken_identifiers)


def _write_manifest(pictures_by_item: dict[str, dict[str, bytes]], qti_version: str) -> bytes:
    root = ET.Element(
        "manifest", identifier="headroom", xmlns=_MANIFEST_NAMESPACE_BY_VERSION[qti_version]
    )
    metadata = add_child(root, "metadata")
    is_qti_21 = qti_version == "2.1"
    add_child(metadata, "schema", "QTIv2.1 Package" if is_qti_21 else "QTI Package")
    add_child(metadata, "schemaversion", "1.0.0" if is_qti_21 else "3.0.0")
    add_child(root, "organizations")
    resources = add_child(root, "resources")
    kind = f"imsqti_item_xmlv{qti_version.replace('.', 'p')}"
    for number, (name, pictures) in enumerate(pictures_by_item.items(), 1):
        node = add_child(resources, "resource", identifier=f"r{number}", type=kind, href=name)
        for file in (name, *pictures):
            add_child(node, "file", href=file)
    return serialize_document(root)
