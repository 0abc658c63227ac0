"""Read and write Moodle XML."""

import dataclasses
import functools
import html
import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from app.import_export import UnusableFileError
from app.import_export.formats.export_losses import (
    TYPED_ANSWER_KINDS,
    convert_items_and_list_losses,
)
from app.import_export.formats.extra_fields import (
    append_extra_fields_to_explanation,
    has_partial_credit_tag,
    restore_fields_from_explanation,
    restore_fields_from_tags,
    write_item_fields_as_tags,
)
from app.import_export.formats.gift import split_at_marks
from app.import_export.formats.moodle_calculated import (
    CALCULATED,
    add_used_parameters_and_expressions,
    format_unit_and_tolerance,
    read_calculated_question,
)
from app.import_export.formats.partial_credit import (
    MOODLE_ORDERING_RULES,
    WeightedChoice,
    apply_moodle_ordering_settings,
    build_choice_item_from_weights,
    list_choice_weight_percents,
)
from app.import_export.items import (
    BLANK_CHARACTER,
    ExportResult,
    ImportResult,
    Item,
    ItemBlank,
    ItemImage,
    ItemOption,
    ItemPair,
    ItemSkippedError,
    build_scored_option,
    decode_image_or_empty,
    format_significant_digits,
    make_item_label,
)
from app.import_export.markdown_to_html import (
    convert_markdown_to_html_with_pictures,
    convert_markdown_to_plain_text_or_html,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    add_default_feedback_as_mistake,
    add_moodle_short_answer,
    add_unit_to_stem,
    build_cloze_item,
    convert_html_to_markdown_recording_losses,
    convert_text_to_markdown,
    has_unambiguous_decimal_comma,
    make_range_around,
    parse_typed_number,
    parse_weight_percent,
    read_items_or_refuse,
    split_unit_from_stem,
)
from app.import_export.xml_files import add_child, parse_xml_and_locate_elements, serialize_document
from app.markup.quantities import recognize_unit

_CLOZE_GAP_HEAD = re.compile(r"\{(\d*):([A-Z_]+):")
_CLOZE_GAP_BODY = re.compile(r"((?:\\.|[^}\\])*)\}", re.DOTALL)
_TYPED_GAP_TYPE = re.compile(r"^(?:SHORTANSWER|SA|MW)(?:_?C)?$")
_CHOICE_GAP_TYPE = re.compile(r"^(?:MULTICHOICE|MC|MULTIRESPONSE|MR)(?:_?[HVS]{0,2})$")
_NUMBER_GAP_TYPE = re.compile(r"^(?:NUMERICAL|NM)$")
_WEIGHT_PERCENT = re.compile(r"^%(-?\d+(?:[.,]\d+)?)%")


def parse_embedded_answers(
    text: str, losses: PicturesAndLosses
) -> tuple[str, tuple[ItemBlank, ...]]:
    """Return a text in Moodle syntax with its gaps; raises ItemSkippedError."""
    blanks: list[ItemBlank] = []
    pieces, at = [], 0
    while opening := _CLOZE_GAP_HEAD.search(text, at):
        body = _CLOZE_GAP_BODY.match(text, opening.end())
        if body is None:  # no gap is closed after this
            break
        blanks.append(_read_blank(opening[2], html.unescape(body[1]), losses))
        pieces += [text[at : opening.start()], BLANK_CHARACTER]
        at = body.end()
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return "".join([*pieces, text[at:]]), tuple(blanks)


def _read_blank(gap_type: str, gap_body: str, losses: PicturesAndLosses) -> ItemBlank:
    if _NUMBER_GAP_TYPE.match(gap_type):
        losses.add_loss("the tolerance of a number in a gap is left out: add what else counts")
    elif not _TYPED_GAP_TYPE.match(gap_type) and not _CHOICE_GAP_TYPE.match(gap_type):
        raise ItemSkippedError(f"gaps of the type {gap_type} are not known")
    answers = _read_gap_answers(gap_body, losses)
    right = [answer.text for answer in answers if answer.percent >= 100]
    if _NUMBER_GAP_TYPE.match(gap_type):
        numbers = [text.partition(":")[0].strip() for text in right]  # without the tolerance
        in_digits = (format_significant_digits(parse_typed_number(number)) for number in numbers)
        right = [word for words in zip(numbers, in_digits, strict=True) for word in words]
    accepted = tuple(dict.fromkeys(r for r in right if r and r != "*"))
    if not accepted:
        raise ItemSkippedError("a gap has no right answer")
    hints = [answer.feedback for answer in answers if answer.text == "*" and answer.percent <= 0]
    wrong_answers = [a.text for a in answers if a.percent < 100 and a.text and a.text != "*"]
    if any(0 < answer.percent < 100 for answer in answers):
        answer_kind = "a choice" if _CHOICE_GAP_TYPE.match(gap_type) else "a word"
        losses.add_loss(f"{answer_kind} of a gap that is partly right counts as wrong")
    if _CHOICE_GAP_TYPE.match(gap_type) and wrong_answers:
        if len(accepted) > 1:
            losses.add_loss("of several right choices of a gap the first is offered")
        wrong = tuple(o for o in dict.fromkeys(wrong_answers) if o not in accepted)
        return ItemBlank(accepted[:1], "".join(hints[:1]), wrong)
    return ItemBlank(accepted, "".join(hints[:1]))


class _GapAnswer(NamedTuple):
    """An answer of a gap, and what it is worth in percent."""

    text: str
    percent: float
    feedback: str


def _read_gap_answers(gap_body: str, losses: PicturesAndLosses) -> list[_GapAnswer]:
    answers = []
    for part in split_at_marks(gap_body, "~"):
        answer, *notes = [
            marked.text_after_mark for marked in split_at_marks(part.text_after_mark, "#")
        ]
        note = " ".join(_remove_gap_escapes(n) for n in notes if n.strip())
        if note and answer.strip() != "*":
            losses.add_loss("feedback on single answers of a gap is left out")
        weight = 0.0
        answer = answer.strip()
        if answer.startswith("="):
            weight, answer = 100.0, answer[1:]
        elif match := _WEIGHT_PERCENT.match(answer):
            weight, answer = parse_weight_percent(match[1]), answer[match.end() :]
        answers.append(_GapAnswer(_remove_gap_escapes(answer), weight, note))
    return answers


def _remove_gap_escapes(text: str) -> str:
    return " ".join(re.sub(r"\\(.)", r"\1", text).split())


def write_embedded_answer(blank: ItemBlank) -> str:
    """Return one gap in Moodle syntax, not yet escaped for HTML; the hint is shown after a miss."""
    kind = "MULTICHOICE_S" if blank.wrong else "SHORTANSWER"
    answers = [f"={_escape_gap(answer)}" for answer in blank.answers]
    answers += [_escape_gap(word) for word in blank.wrong]
    if blank.hint:
        answers.append(f"*#{_escape_gap(blank.hint)}")
    return f"{{1:{kind}:{'~'.join(answers)}}}"


def _escape_gap(text: str) -> str:
    return re.sub(r"([\\}#~/\"=])", r"\\\1", text)


_PLUGIN_FILE = "@@PLUGINFILE@@"
_TEXT_FORMAT_BY_NAME = {"html": "html", "plain_text": "plain", "markdown": "markdown"}
# How types with a different name give credit.
_CREDIT_RULE_BY_TYPE = {"multichoiceset": "off", "oumultiresponse": "net"}
_GAP_PLACEHOLDER = re.compile(r"\[\[(\d{1,3})\]\]")
# Moodle's default texts for these fields.
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
_SKIP_REASON_BY_TYPE = {
    "essay": "an essay cannot be judged by a program",
    "description": "it asks nothing: a description has no place in a quiz",
}


def read_moodle(data: bytes) -> ImportResult:
    """Read every question of a Moodle XML file; raises UnusableFileError."""
    document = parse_xml_and_locate_elements(data, "question")
    if document.root.tag != "quiz":
        raise UnusableFileError(f"The file begins with <{document.root.tag}>, not with <quiz>.")
    nodes = zip(document.root.iter("question"), document.located_element_lines, strict=True)
    return read_items_or_refuse(
        UnreadItem(
            _read_question_name(node),
            line,
            functools.partial(_read_item, node),
            functools.partial(_find_picture, node),
        )
        for node, line in nodes
        if node.get("type") != "category"
    )


def _find_picture(question_element: ET.Element, url: str) -> bytes | None:
    """Return the picture of a question that its texts show under this URL."""
    if not url.startswith(_PLUGIN_FILE):
        return None
    name = unquote(url.removeprefix(_PLUGIN_FILE).lstrip("/")).partition("?")[0]
    files = {file.get("name", ""): file.text or "" for file in question_element.iter("file")}
    data = "".join(files.get(name, "").split())
    return decode_image_or_empty(ItemImage(name, data)) if data else None


def _read_item(question_element: ET.Element, losses: PicturesAndLosses) -> Item:
    kind = question_element.get("type", "")
    read = _READER_BY_TYPE.get(kind)
    if read is None:
        reason = f"questions of the type “{kind}” have no counterpart here"
        raise ItemSkippedError(_SKIP_REASON_BY_TYPE.get(kind, reason))
    parameters = None
    if kind in CALCULATED:
        question_element, parameters = read_calculated_question(question_element)
    stem = (
        "" if kind == "cloze" else _read_element_text(question_element.find("questiontext"), losses)
    )
    hints = tuple(_read_element_text(h, losses) for h in question_element.findall("hint"))
    item = Item(
        _read_question_name(question_element),
        "single",
        stem,
        hints=tuple(h for h in hints if h),
        explanation=_read_element_text(question_element.find("generalfeedback"), losses),
    )
    converted = read(question_element, item, losses)
    if not converted.stem:
        raise ItemSkippedError("it has no text")
    if parameters:
        converted = add_used_parameters_and_expressions(converted, parameters, losses)
    incorrect_feedback = _read_element_text(question_element.find("incorrectfeedback"), losses)
    if incorrect_feedback and incorrect_feedback.rstrip(".") not in _EMPTY_WORDS:
        converted = add_default_feedback_as_mistake(converted, incorrect_feedback, losses)
    converted = restore_fields_from_explanation(converted)
    for field in ("correctfeedback", "partiallycorrectfeedback"):
        feedback = _read_element_text(question_element.find(field), losses)
        if feedback and feedback.rstrip(".") not in _EMPTY_WORDS:
            losses.add_loss("feedback on right answers is left out: move it to the explanation")
    if question_element.findtext("image_base64"):
        losses.add_loss("a picture in a field of older files is left out")
    return restore_fields_from_tags(converted, _read_tags(question_element))


def _read_tags(question_element: ET.Element) -> tuple[str, ...]:
    tags = (t.findtext("text", "").strip() for t in question_element.findall("tags/tag"))
    return tuple(t for t in tags if t)


def _read_question_name(question_element: ET.Element) -> str:
    return " ".join(question_element.findtext("name/text", "").split())


def _read_element_text(text_element: ET.Element | None, losses: PicturesAndLosses) -> str:
    if text_element is None:
        return ""
    text_format = _TEXT_FORMAT_BY_NAME.get(text_element.get("format", ""), "moodle")
    return convert_text_to_markdown(text_element.findtext("text") or "", text_format, losses)


def _read_answer_percent(answer_element: ET.Element) -> float:
    return parse_weight_percent(answer_element.get("fraction") or "0")


def _read_feedback(answer_element: ET.Element, losses: PicturesAndLosses) -> str:
    return _read_element_text(answer_element.find("feedback"), losses)


def _has_true_child(parent: ET.Element, name: str) -> bool:
    return parent.findtext(name, "").strip().lower() in {"true", "1"}


# --- by type ---


def _read_choices(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    choices = [
        WeightedChoice(
            _read_element_text(a, losses), _read_answer_percent(a), _read_feedback(a, losses)
        )
        for a in question_element.findall("answer")
    ]
    rule = _CREDIT_RULE_BY_TYPE.get(question_element.get("type", ""), "")
    multiple_answers = bool(rule) or not _has_true_child(question_element, "single")
    shuffle = question_element.find("shuffleanswers") is None or _has_true_child(
        question_element, "shuffleanswers"
    )
    item = dataclasses.replace(item, shuffle=shuffle, partial=rule)
    has_tag = has_partial_credit_tag(_read_tags(question_element))
    return build_choice_item_from_weights(
        item,
        choices,
        losses,
        allows_several_answers=multiple_answers,
        is_credit_rule_in_file=has_tag,
    )


def _read_true_false(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    options = tuple(
        ItemOption(
            a.findtext("text", "").strip().capitalize(),
            _read_answer_percent(a) > 0,
            _read_feedback(a, losses),
        )
        for a in question_element.findall("answer")
    )
    options = tuple(sorted(options, key=lambda o: o.text != "True"))
    return dataclasses.replace(item, kind="true-false", options=options)


def _read_short_answer(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    case = _has_true_child(question_element, "usecase")
    item = dataclasses.replace(item, kind="short", options=(), case=case)
    for answer in question_element.findall("answer"):
        word = " ".join(answer.findtext("text", "").split())
        feedback = _read_feedback(answer, losses)
        item = add_moodle_short_answer(item, word, _read_answer_percent(answer), feedback, losses)
    return item


def _read_numeric_or_calculated(
    question_element: ET.Element, item: Item, losses: PicturesAndLosses
) -> Item:
    """Read numbers, or the templates of a calculated question."""
    stem, unit = split_unit_from_stem(item.stem)
    unit = unit or _read_unit(question_element, losses)
    texts = [n.text or "" for n in question_element.iter() if n.tag in {"text", "tolerance"}]
    comma = any(map(has_unambiguous_decimal_comma, texts))
    options = []
    for answer in question_element.findall("answer"):
        text = answer.findtext("text", "").strip()
        percent = _read_answer_percent(answer)
        if text in {"", "*"}:
            item = add_default_feedback_as_mistake(item, _read_feedback(answer, losses), losses)
            continue
        template, span = "", None
        if question_element.get("type") in CALCULATED:
            template = f"`{text} {format_unit_and_tolerance(answer, unit, losses)}`".replace(
                " `", "`"
            )
        else:
            tolerance = answer.findtext("tolerance", "").strip() or "0"
            try:
                center, half_width = (
                    parse_typed_number(number, may_use_decimal_comma=comma)
                    for number in (text, tolerance)
                )
                span = make_range_around(center, half_width, unit)
            except ItemSkippedError as error:
                losses.add_loss(f"an answer is left out: {error}; add it as a number if it is one")
                continue
        feedback = _read_feedback(answer, losses)
        options.append(build_scored_option(template, percent, 100, feedback, span))
    options.sort(key=lambda o: not o.right)
    return dataclasses.replace(item, kind="numeric", stem=stem, options=tuple(options))


def _read_unit(question_element: ET.Element, losses: PicturesAndLosses) -> str:
    """Return the unit with factor 1, if we know it."""
    for unit in question_element.findall("units/unit"):
        name = unit.findtext("unit_name", "").strip()
        if unit.findtext("multiplier", "1").strip() in {"1", "1.0"}:
            if known := recognize_unit(name):
                return known
            losses.add_loss(f"the unit “{name}” is not known here: name it in the question")
    return ""


def _read_matching(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    pairs = tuple(
        ItemPair(
            _read_element_text(sub, losses),
            convert_text_to_markdown(sub.findtext("answer/text", ""), "moodle", losses),
        )
        for sub in question_element.findall("subquestion")
    )
    return dataclasses.replace(item, kind="match", pairs=pairs)


def _read_ordering(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    steps = tuple(
        ItemOption(_read_element_text(a, losses), True, _read_feedback(a, losses))
        for a in question_element.findall("answer")
    )
    fields = ("selectcount", "selecttype", "gradingtype")
    settings = [question_element.findtext(field, "").strip() for field in fields]
    item = dataclasses.replace(item, steps=steps)
    return apply_moodle_ordering_settings(item, settings, _read_tags(question_element), losses)


def _read_cloze(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    text, blanks = parse_embedded_answers(
        question_element.findtext("questiontext/text", ""), losses
    )
    return build_cloze_item(item, convert_html_to_markdown_recording_losses(text, losses), blanks)


def _read_gap_select(question_element: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    """Read words to choose or drag into gaps: each gap offers those of its group."""
    choice_nodes = (*question_element.findall("selectoption"), *question_element.findall("dragbox"))
    choice_texts = [" ".join(option.findtext("text", "").split()) for option in choice_nodes]
    groups = [option.findtext("group", "") for option in choice_nodes]
    blanks: list[ItemBlank] = []

    def gap(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 1 <= number <= len(choice_texts) or not choice_texts[number - 1]:
            raise ItemSkippedError("a gap has no word that fits")
        word, group = choice_texts[number - 1], groups[number - 1]
        group_texts = [w for w, g in zip(choice_texts, groups, strict=True) if g == group]
        wrong = tuple(w for w in dict.fromkeys(group_texts) if w and w != word)
        blanks.append(ItemBlank((word,), "", wrong))
        return BLANK_CHARACTER

    text = convert_html_to_markdown_recording_losses(
        _GAP_PLACEHOLDER.sub(gap, question_element.findtext("questiontext/text", "")), losses
    )
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return build_cloze_item(item, text, blanks)


_READER_BY_TYPE: dict[str, Callable[[ET.Element, Item, PicturesAndLosses], Item]] = {
    "multichoice": _read_choices,
    "multichoiceset": _read_choices,
    "oumultiresponse": _read_choices,
    "truefalse": _read_true_false,
    "shortanswer": _read_short_answer,
    "numerical": _read_numeric_or_calculated,
    "calculated": _read_numeric_or_calculated,
    "calculatedsimple": _read_numeric_or_calculated,
    "calculatedmulti": _read_choices,
    "matching": _read_matching,
    "ddmatch": _read_matching,
    "ordering": _read_ordering,
    "cloze": _read_cloze,
    "gapselect": _read_gap_select,
    "ddwtos": _read_gap_select,
}

# Types with feedback to any wrong answer, and types with an answer “any other”.
_TYPES_WITH_COMBINED_FEEDBACK = ("single", "multiple", "match", "order")


def write_moodle(items: tuple[Item, ...], category_name: str = "") -> ExportResult:
    """Return a Moodle XML file of all items that it can express."""
    root = ET.Element("quiz")
    if category_name:
        node = add_child(root, "question", type="category")
        add_child(add_child(node, "category"), "text", f"$course$/top/{category_name}")
    questions, refused, lost = convert_items_and_list_losses(items, _build_question, "moodle")
    root.extend(questions)
    return ExportResult(serialize_document(root), len(questions), refused, lost)


def _build_question(item: Item) -> ET.Element:
    writer = _WRITER_BY_TYPE.get(item.kind)
    if writer is None:
        raise ItemSkippedError(f"Moodle XML has no question of the type {item.kind}")
    node = ET.Element("question", type=writer.question_type)
    add_child(add_child(node, "name"), "text", item.name or make_item_label(item))
    _add_html(node, "questiontext", _write_stem(item))
    shows_mistake = item.kind in {*_TYPES_WITH_COMBINED_FEEDBACK, *TYPED_ANSWER_KINDS}
    explanation = append_extra_fields_to_explanation(
        item, include_mistake=not shows_mistake, include_hints=False
    )
    _add_html(node, "generalfeedback", convert_markdown_to_html_with_pictures(explanation))
    add_child(node, "defaultgrade", "1")
    add_child(node, "idnumber", item.name)
    writer.add_answers(node, item)
    if item.mistake and item.kind in _TYPES_WITH_COMBINED_FEEDBACK:
        _add_html(node, "incorrectfeedback", convert_markdown_to_html_with_pictures(item.mistake))
    if item.mistake and item.kind in TYPED_ANSWER_KINDS:
        _add_answer(node, "*", 0.0, ItemOption("", right=False, feedback=item.mistake))
    for hint in item.hints:
        _add_html(node, "hint", convert_markdown_to_html_with_pictures(hint))
    tags = write_item_fields_as_tags(item)
    if tags:
        parent = add_child(node, "tags")
        for tag in tags:
            add_child(add_child(parent, "tag"), "text", tag)
    _attach_pictures(node, item)
    return node


def _attach_pictures(question_element: ET.Element, item: Item) -> None:
    """Add each picture as a file next to the text that shows it."""
    for parent in list(question_element.iter()):
        text = parent.find("text")
        for picture in item.pictures:
            attribute = f'src="{html.escape(picture.name)}"'
            if text is None or attribute not in (text.text or ""):
                continue
            name = picture.name.replace("/", "-")
            address = f'src="@@PLUGINFILE@@/{quote(name)}"'
            text.text = (text.text or "").replace(attribute, address)
            add_child(parent, "file", picture.data, name=name, path="/", encoding="base64")


def _add_html(parent: ET.Element, name: str, text: str) -> ET.Element:
    node = add_child(parent, name, format="html")
    add_child(node, "text", text)
    return node


def _write_stem(item: Item) -> str:
    if item.kind == "cloze":
        return _write_html_with_gaps(item)
    unit = next((o.span.unit for o in item.options if o.span), "")
    return convert_markdown_to_html_with_pictures(add_unit_to_stem(item.stem, unit))


def _write_html_with_gaps(item: Item) -> str:
    """Return the heading, and the text with its gaps in Moodle syntax."""
    pieces = convert_markdown_to_html_with_pictures(f"{item.stem}\n\n{item.text}").split(
        BLANK_CHARACTER
    )
    if len(pieces) != len(item.blanks) + 1:
        raise ItemSkippedError("its gaps do not fit its text")
    html_text = pieces[0]
    for blank, piece in zip(item.blanks, pieces[1:], strict=True):
        html_text += html.escape(write_embedded_answer(blank), quote=False) + piece
    return html_text


def _add_answer(
    question_element: ET.Element, text: str, percent: float, option: ItemOption
) -> ET.Element:
    answer = add_child(
        question_element, "answer", fraction=format_significant_digits(percent), format="html"
    )
    add_child(answer, "text", text)
    _add_html(answer, "feedback", convert_markdown_to_html_with_pictures(option.feedback))
    return answer


def _write_choices(question_element: ET.Element, item: Item) -> None:
    add_child(question_element, "single", "true" if item.kind == "single" else "false")
    add_child(question_element, "shuffleanswers", "true" if item.shuffle else "false")
    add_child(question_element, "answernumbering", "ABCD")
    for option, weight in zip(item.options, list_choice_weight_percents(item), strict=True):
        _add_answer(
            question_element, convert_markdown_to_html_with_pictures(option.text), weight, option
        )


def _write_true_false(question_element: ET.Element, item: Item) -> None:
    for option in item.options:
        word = option.text.strip(" .").lower()
        _add_answer(question_element, word, option.percent_weight, option)


def _write_short_answer(question_element: ET.Element, item: Item) -> None:
    add_child(question_element, "usecase", "1" if item.case else "0")
    for option in item.options:
        word = option.text.replace("*", "\\*")
        _add_answer(question_element, word, option.percent_weight, option)


def _write_numeric(question_element: ET.Element, item: Item) -> None:
    units = {o.span.unit for o in item.options if o.span}
    if len(units) > 1:
        raise ItemSkippedError("its answers are in different units")
    for option in item.options:
        if option.span is not None:
            text = format_significant_digits(option.span.center)
            answer = _add_answer(question_element, text, option.percent_weight, option)
            add_child(answer, "tolerance", format_significant_digits(option.span.tolerance))
    add_child(question_element, "unitgradingtype", "0")
    add_child(question_element, "showunits", "3")


def _write_matching(question_element: ET.Element, item: Item) -> None:
    add_child(question_element, "shuffleanswers", "true")
    for pair in item.pairs:
        sub = _add_html(
            question_element, "subquestion", convert_markdown_to_html_with_pictures(pair.left)
        )
        add_child(
            add_child(sub, "answer"), "text", convert_markdown_to_plain_text_or_html(pair.right)
        )


def _write_ordering(question_element: ET.Element, item: Item) -> None:
    add_child(question_element, "layouttype", "VERTICAL")
    add_child(question_element, "selecttype", "ALL")
    add_child(question_element, "selectcount", str(len(item.steps)))
    add_child(
        question_element,
        "gradingtype",
        MOODLE_ORDERING_RULES.get(item.partial, MOODLE_ORDERING_RULES["off"]),
    )
    add_child(question_element, "showgrading", "SHOW")
    add_child(question_element, "numberingstyle", "none")
    # Without it Moodle creates hints that it cannot store, and the import fails.
    add_child(question_element, "shownumcorrect", "1")
    for number, step in enumerate(item.steps, 1):
        answer = add_child(
            question_element, "answer", fraction=format_significant_digits(number), format="html"
        )
        add_child(answer, "text", convert_markdown_to_html_with_pictures(step.text))


class _Writer(NamedTuple):
    question_type: str
    add_answers: Callable[[ET.Element, Item], None]


_WRITER_BY_TYPE = {
    "single": _Writer("multichoice", _write_choices),
    "multiple": _Writer("multichoice", _write_choices),
    "true-false": _Writer("truefalse", _write_true_false),
    "short": _Writer("shortanswer", _write_short_answer),
    "numeric": _Writer("numerical", _write_numeric),
    "match": _Writer("matching", _write_matching),
    "order": _Writer("ordering", _write_ordering),
    "cloze": _Writer("cloze", lambda _node, _item: None),  # its answers are in its text
}
