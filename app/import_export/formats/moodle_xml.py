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
from app.import_export.formats.export_losses import ANSWERED_BY_TYPING, convert_items
from app.import_export.formats.gift import split_at_marks
from app.import_export.formats.metadata_tags import (
    apply_tags,
    build_explanation_with_extras,
    has_partial_credit_tag,
    list_item_tags,
    restore_fields_from_explanation,
)
from app.import_export.formats.moodle_calculated import (
    CALCULATED,
    add_used_parameters,
    format_unit_and_tolerance,
    insert_placeholders,
)
from app.import_export.formats.partial_credit import (
    ORDERS,
    WeightedChoice,
    convert_moodle_ordering,
    convert_weighted_choices,
    list_choice_weight_percents,
)
from app.import_export.items import (
    BLANK,
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
    item_label,
)
from app.import_export.markdown_to_html import to_html_with_pictures, to_plain_text_or_html
from app.import_export.text_conversion import (
    PicturesAndLosses,
    SourceItem,
    add_default_feedback_as_mistake,
    add_short_answer,
    add_unit_to_stem,
    build_cloze_item,
    convert_html,
    convert_text,
    has_decimal_comma,
    make_range_around,
    read_number,
    read_source_items,
    read_weight_in_percent,
    split_unit_from_stem,
)
from app.import_export.xml_files import add_child, read_xml, serialize_document
from app.markup.quantities import known_unit

_HEAD = re.compile(r"\{(\d*):([A-Z_]+):")
_BODY = re.compile(r"((?:\\.|[^}\\])*)\}", re.DOTALL)
_TYPED = re.compile(r"^(?:SHORTANSWER|SA|MW)(?:_?C)?$")
_CHOSEN = re.compile(r"^(?:MULTICHOICE|MC|MULTIRESPONSE|MR)(?:_?[HVS]{0,2})$")
_NUMBER = re.compile(r"^(?:NUMERICAL|NM)$")
_WEIGHT = re.compile(r"^%(-?\d+(?:[.,]\d+)?)%")


class GappedText(NamedTuple):
    """A text with a `BLANK` for each gap, and the gaps."""

    text: str
    blanks: tuple[ItemBlank, ...]


def read_cloze_gaps(text: str, losses: PicturesAndLosses) -> GappedText:
    """Return a text in Moodle syntax with its gaps; raises ItemSkippedError."""
    blanks: list[ItemBlank] = []
    pieces, at = [], 0
    while opening := _HEAD.search(text, at):
        body = _BODY.match(text, opening.end())
        if body is None:  # no gap is closed after this
            break
        blanks.append(_read_blank(opening[2], html.unescape(body[1]), losses))
        pieces += [text[at : opening.start()], BLANK]
        at = body.end()
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return GappedText("".join([*pieces, text[at:]]), tuple(blanks))


def _read_blank(kind: str, body: str, losses: PicturesAndLosses) -> ItemBlank:
    if _NUMBER.match(kind):
        losses.add("the tolerance of a number in a gap is left out: add what else counts")
    elif not _TYPED.match(kind) and not _CHOSEN.match(kind):
        raise ItemSkippedError(f"gaps of the type {kind} are not known")
    answers = _read_gap_answers(body, losses)
    right = [answer.text for answer in answers if answer.percent >= 100]
    if _NUMBER.match(kind):
        numbers = [text.partition(":")[0].strip() for text in right]  # without the tolerance
        in_digits = (format_significant_digits(read_number(number)) for number in numbers)
        right = [word for words in zip(numbers, in_digits, strict=True) for word in words]
    accepted = tuple(dict.fromkeys(r for r in right if r and r != "*"))
    if not accepted:
        raise ItemSkippedError("a gap has no right answer")
    hints = [answer.feedback for answer in answers if answer.text == "*" and answer.percent <= 0]
    wrong_answers = [a.text for a in answers if a.percent < 100 and a.text and a.text != "*"]
    if any(0 < answer.percent < 100 for answer in answers):
        answer_kind = "a choice" if _CHOSEN.match(kind) else "a word"
        losses.add(f"{answer_kind} of a gap that is partly right counts as wrong")
    if _CHOSEN.match(kind) and wrong_answers:
        if len(accepted) > 1:
            losses.add("of several right choices of a gap the first is offered")
        wrong = tuple(o for o in dict.fromkeys(wrong_answers) if o not in accepted)
        return ItemBlank(accepted[:1], "".join(hints[:1]), wrong)
    return ItemBlank(accepted, "".join(hints[:1]))


class _GapAnswer(NamedTuple):
    """An answer of a gap, and what it is worth in percent."""

    text: str
    percent: float
    feedback: str


def _read_gap_answers(body: str, losses: PicturesAndLosses) -> list[_GapAnswer]:
    answers = []
    for part in split_at_marks(body, "~"):
        answer, *notes = [marked.text for marked in split_at_marks(part.text, "#")]
        note = " ".join(_remove_gap_escapes(n) for n in notes if n.strip())
        if note and answer.strip() != "*":
            losses.add("feedback on single answers of a gap is left out")
        weight = 0.0
        answer = answer.strip()
        if answer.startswith("="):
            weight, answer = 100.0, answer[1:]
        elif match := _WEIGHT.match(answer):
            weight, answer = read_weight_in_percent(match[1]), answer[match.end() :]
        answers.append(_GapAnswer(_remove_gap_escapes(answer), weight, note))
    return answers


def _remove_gap_escapes(text: str) -> str:
    return " ".join(re.sub(r"\\(.)", r"\1", text).split())


def write_cloze_gap(blank: ItemBlank) -> str:
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
_FORMS = {"html": "html", "plain_text": "plain", "markdown": "markdown"}
# How types with a different name give credit.
_CREDIT = {"multichoiceset": "off", "oumultiresponse": "net"}
_PLACED = re.compile(r"\[\[(\d{1,3})\]\]")
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
_REASONS = {
    "essay": "an essay cannot be judged by a program",
    "description": "it asks nothing: a description has no place in a quiz",
}


def read_moodle(data: bytes) -> ImportResult:
    """Read every question of a Moodle XML file; raises UnusableFileError."""
    document = read_xml(data, "question")
    if document.root.tag != "quiz":
        raise UnusableFileError(f"The file begins with <{document.root.tag}>, not with <quiz>.")
    nodes = zip(document.root.iter("question"), document.lines, strict=True)
    return read_source_items(
        SourceItem(
            _question_name(node),
            line,
            functools.partial(_read_item, node),
            functools.partial(_find_picture, node),
        )
        for node, line in nodes
        if node.get("type") != "category"
    )


def _find_picture(node: ET.Element, address: str) -> bytes | None:
    """Return the picture of a question that its texts show under this URL."""
    if not address.startswith(_PLUGIN_FILE):
        return None
    name = unquote(address.removeprefix(_PLUGIN_FILE).lstrip("/")).partition("?")[0]
    files = {file.get("name", ""): file.text or "" for file in node.iter("file")}
    data = "".join(files.get(name, "").split())
    return decode_image_or_empty(ItemImage(name, data)) if data else None


def _read_item(node: ET.Element, losses: PicturesAndLosses) -> Item:
    kind = node.get("type", "")
    read = _READERS.get(kind)
    if read is None:
        reason = f"questions of the type “{kind}” have no counterpart here"
        raise ItemSkippedError(_REASONS.get(kind, reason))
    parameters = None
    if kind in CALCULATED:
        node, parameters = insert_placeholders(node)
    stem = "" if kind == "cloze" else _read_node_text(node.find("questiontext"), losses)
    hints = tuple(_read_node_text(h, losses) for h in node.findall("hint"))
    item = Item(
        _question_name(node),
        "single",
        stem,
        hints=tuple(h for h in hints if h),
        explanation=_read_node_text(node.find("generalfeedback"), losses),
    )
    converted = read(node, item, losses)
    if not converted.stem:
        raise ItemSkippedError("it has no text")
    if parameters:
        converted = add_used_parameters(converted, parameters, losses)
    incorrect_feedback = _read_node_text(node.find("incorrectfeedback"), losses)
    if incorrect_feedback and incorrect_feedback.rstrip(".") not in _EMPTY_WORDS:
        converted = add_default_feedback_as_mistake(converted, incorrect_feedback, losses)
    converted = restore_fields_from_explanation(converted)
    for field in ("correctfeedback", "partiallycorrectfeedback"):
        feedback = _read_node_text(node.find(field), losses)
        if feedback and feedback.rstrip(".") not in _EMPTY_WORDS:
            losses.add("feedback on right answers is left out: move it to the explanation")
    if node.findtext("image_base64"):
        losses.add("a picture in a field of older files is left out")
    return apply_tags(converted, _read_tags(node))


def _read_tags(node: ET.Element) -> tuple[str, ...]:
    tags = (t.findtext("text", "").strip() for t in node.findall("tags/tag"))
    return tuple(t for t in tags if t)


def _question_name(node: ET.Element) -> str:
    return " ".join(node.findtext("name/text", "").split())


def _read_node_text(node: ET.Element | None, losses: PicturesAndLosses) -> str:
    if node is None:
        return ""
    text_format = _FORMS.get(node.get("format", ""), "moodle")
    return convert_text(node.findtext("text") or "", text_format, losses)


def _read_answer_percent(node: ET.Element) -> float:
    return read_weight_in_percent(node.get("fraction") or "0")


def _read_feedback(node: ET.Element, losses: PicturesAndLosses) -> str:
    return _read_node_text(node.find("feedback"), losses)


def _has_true_child(node: ET.Element, name: str) -> bool:
    return node.findtext(name, "").strip().lower() in {"true", "1"}


# --- by type ---


def _read_choices(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    choices = [
        WeightedChoice(
            _read_node_text(a, losses), _read_answer_percent(a), _read_feedback(a, losses)
        )
        for a in node.findall("answer")
    ]
    rule = _CREDIT.get(node.get("type", ""), "")
    multiple_answers = bool(rule) or not _has_true_child(node, "single")
    shuffle = node.find("shuffleanswers") is None or _has_true_child(node, "shuffleanswers")
    item = dataclasses.replace(item, shuffle=shuffle, partial=rule)
    has_tag = has_partial_credit_tag(_read_tags(node))
    return convert_weighted_choices(
        item, choices, losses, multiple_answers=multiple_answers, rule_named=has_tag
    )


def _read_true_false(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    options = tuple(
        ItemOption(
            a.findtext("text", "").strip().capitalize(),
            _read_answer_percent(a) > 0,
            _read_feedback(a, losses),
        )
        for a in node.findall("answer")
    )
    options = tuple(sorted(options, key=lambda o: o.text != "True"))
    return dataclasses.replace(item, kind="true-false", options=options)


def _read_short_answer(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    case = _has_true_child(node, "usecase")
    item = dataclasses.replace(item, kind="short", options=(), case=case)
    for answer in node.findall("answer"):
        word = " ".join(answer.findtext("text", "").split())
        feedback = _read_feedback(answer, losses)
        item = add_short_answer(item, word, _read_answer_percent(answer), feedback, losses)
    return item


def _read_numeric(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    """Read numbers, or the templates of a calculated question."""
    stem, unit = split_unit_from_stem(item.stem)
    unit = unit or _read_unit(node, losses)
    texts = [n.text or "" for n in node.iter() if n.tag in {"text", "tolerance"}]
    comma = any(map(has_decimal_comma, texts))
    options = []
    for answer in node.findall("answer"):
        text = answer.findtext("text", "").strip()
        percent = _read_answer_percent(answer)
        if text in {"", "*"}:
            item = add_default_feedback_as_mistake(item, _read_feedback(answer, losses), losses)
            continue
        template, span = "", None
        if node.get("type") in CALCULATED:
            template = f"`{text} {format_unit_and_tolerance(answer, unit, losses)}`".replace(
                " `", "`"
            )
        else:
            tolerance = answer.findtext("tolerance", "").strip() or "0"
            try:
                center, half_width = (
                    read_number(number, may_use_decimal_comma=comma) for number in (text, tolerance)
                )
                span = make_range_around(center, half_width, unit)
            except ItemSkippedError as error:
                losses.add(f"an answer is left out: {error}; add it as a number if it is one")
                continue
        feedback = _read_feedback(answer, losses)
        options.append(build_scored_option(template, percent, 100, feedback, span))
    options.sort(key=lambda o: not o.right)
    return dataclasses.replace(item, kind="numeric", stem=stem, options=tuple(options))


def _read_unit(node: ET.Element, losses: PicturesAndLosses) -> str:
    """Return the unit with factor 1, if we know it."""
    for unit in node.findall("units/unit"):
        name = unit.findtext("unit_name", "").strip()
        if unit.findtext("multiplier", "1").strip() in {"1", "1.0"}:
            if known := known_unit(name):
                return known
            losses.add(f"the unit “{name}” is not known here: name it in the question")
    return ""


def _read_matching(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    pairs = tuple(
        ItemPair(
            _read_node_text(sub, losses),
            convert_text(sub.findtext("answer/text", ""), "moodle", losses),
        )
        for sub in node.findall("subquestion")
    )
    return dataclasses.replace(item, kind="match", pairs=pairs)


def _read_ordering(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    steps = tuple(
        ItemOption(_read_node_text(a, losses), True, _read_feedback(a, losses))
        for a in node.findall("answer")
    )
    fields = ("selectcount", "selecttype", "gradingtype")
    settings = [node.findtext(field, "").strip() for field in fields]
    item = dataclasses.replace(item, steps=steps)
    return convert_moodle_ordering(item, settings, _read_tags(node), losses)


def _read_cloze(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    text, blanks = read_cloze_gaps(node.findtext("questiontext/text", ""), losses)
    return build_cloze_item(item, convert_html(text, losses), blanks)


def _read_gap_select(node: ET.Element, item: Item, losses: PicturesAndLosses) -> Item:
    """Read words to choose or drag into gaps: each gap offers those of its group."""
    choice_nodes = (*node.findall("selectoption"), *node.findall("dragbox"))
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
        return BLANK

    text = convert_html(_PLACED.sub(gap, node.findtext("questiontext/text", "")), losses)
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return build_cloze_item(item, text, blanks)


_READERS: dict[str, Callable[[ET.Element, Item, PicturesAndLosses], Item]] = {
    "multichoice": _read_choices,
    "multichoiceset": _read_choices,
    "oumultiresponse": _read_choices,
    "truefalse": _read_true_false,
    "shortanswer": _read_short_answer,
    "numerical": _read_numeric,
    "calculated": _read_numeric,
    "calculatedsimple": _read_numeric,
    "calculatedmulti": _read_choices,
    "matching": _read_matching,
    "ddmatch": _read_matching,
    "ordering": _read_ordering,
    "cloze": _read_cloze,
    "gapselect": _read_gap_select,
    "ddwtos": _read_gap_select,
}

# Types with feedback to any wrong answer, and types with an answer “any other”.
_COMBINED = ("single", "multiple", "match", "order")


def write_moodle(items: tuple[Item, ...], category: str = "") -> ExportResult:
    """Return a Moodle XML file of all items that it can express."""
    root = ET.Element("quiz")
    if category:
        node = add_child(root, "question", type="category")
        add_child(add_child(node, "category"), "text", f"$course$/top/{category}")
    questions, refused, lost = convert_items(items, _build_question, "moodle")
    root.extend(questions)
    return ExportResult(serialize_document(root), len(questions), refused, lost)


def _build_question(item: Item) -> ET.Element:
    writer = _WRITERS.get(item.kind)
    if writer is None:
        raise ItemSkippedError(f"Moodle XML has no question of the type {item.kind}")
    node = ET.Element("question", type=writer.question_type)
    add_child(add_child(node, "name"), "text", item.name or item_label(item))
    _add_html(node, "questiontext", _write_stem(item))
    shows_mistake = item.kind in {*_COMBINED, *ANSWERED_BY_TYPING}
    explanation = build_explanation_with_extras(
        item, include_mistake=not shows_mistake, include_hints=False
    )
    _add_html(node, "generalfeedback", to_html_with_pictures(explanation))
    add_child(node, "defaultgrade", "1")
    add_child(node, "idnumber", item.name)
    writer.add_answers(node, item)
    if item.mistake and item.kind in _COMBINED:
        _add_html(node, "incorrectfeedback", to_html_with_pictures(item.mistake))
    if item.mistake and item.kind in ANSWERED_BY_TYPING:
        _add_answer(node, "*", 0.0, ItemOption("", right=False, feedback=item.mistake))
    for hint in item.hints:
        _add_html(node, "hint", to_html_with_pictures(hint))
    tags = list_item_tags(item)
    if tags:
        parent = add_child(node, "tags")
        for tag in tags:
            add_child(add_child(parent, "tag"), "text", tag)
    _attach_pictures(node, item)
    return node


def _attach_pictures(node: ET.Element, item: Item) -> None:
    """Add each picture as a file next to the text that shows it."""
    for parent in list(node.iter()):
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
    return to_html_with_pictures(add_unit_to_stem(item.stem, unit))


def _write_html_with_gaps(item: Item) -> str:
    """Return the heading, and the text with its gaps in Moodle syntax."""
    pieces = to_html_with_pictures(f"{item.stem}\n\n{item.text}").split(BLANK)
    if len(pieces) != len(item.blanks) + 1:
        raise ItemSkippedError("its gaps do not fit its text")
    html_text = pieces[0]
    for blank, piece in zip(item.blanks, pieces[1:], strict=True):
        html_text += html.escape(write_cloze_gap(blank), quote=False) + piece
    return html_text


def _add_answer(node: ET.Element, text: str, weight: float, option: ItemOption) -> ET.Element:
    answer = add_child(node, "answer", fraction=format_significant_digits(weight), format="html")
    add_child(answer, "text", text)
    _add_html(answer, "feedback", to_html_with_pictures(option.feedback))
    return answer


def _write_choices(node: ET.Element, item: Item) -> None:
    add_child(node, "single", "true" if item.kind == "single" else "false")
    add_child(node, "shuffleanswers", "true" if item.shuffle else "false")
    add_child(node, "answernumbering", "ABCD")
    for option, weight in zip(item.options, list_choice_weight_percents(item), strict=True):
        _add_answer(node, to_html_with_pictures(option.text), weight, option)


def _write_true_false(node: ET.Element, item: Item) -> None:
    for option in item.options:
        word = option.text.strip(" .").lower()
        _add_answer(node, word, option.percent_weight, option)


def _write_short_answer(node: ET.Element, item: Item) -> None:
    add_child(node, "usecase", "1" if item.case else "0")
    for option in item.options:
        word = option.text.replace("*", "\\*")
        _add_answer(node, word, option.percent_weight, option)


def _write_numeric(node: ET.Element, item: Item) -> None:
    units = {o.span.unit for o in item.options if o.span}
    if len(units) > 1:
        raise ItemSkippedError("its answers are in different units")
    for option in item.options:
        if option.span is not None:
            text = format_significant_digits(option.span.center)
            answer = _add_answer(node, text, option.percent_weight, option)
            add_child(answer, "tolerance", format_significant_digits(option.span.tolerance))
    add_child(node, "unitgradingtype", "0")
    add_child(node, "showunits", "3")


def _write_matching(node: ET.Element, item: Item) -> None:
    add_child(node, "shuffleanswers", "true")
    for pair in item.pairs:
        sub = _add_html(node, "subquestion", to_html_with_pictures(pair.left))
        add_child(add_child(sub, "answer"), "text", to_plain_text_or_html(pair.right))


def _write_ordering(node: ET.Element, item: Item) -> None:
    add_child(node, "layouttype", "VERTICAL")
    add_child(node, "selecttype", "ALL")
    add_child(node, "selectcount", str(len(item.steps)))
    add_child(node, "gradingtype", ORDERS.get(item.partial, ORDERS["off"]))
    add_child(node, "showgrading", "SHOW")
    add_child(node, "numberingstyle", "none")
    # Without it Moodle creates hints that it cannot store, and the import fails.
    add_child(node, "shownumcorrect", "1")
    for number, step in enumerate(item.steps, 1):
        answer = add_child(
            node, "answer", fraction=format_significant_digits(number), format="html"
        )
        add_child(answer, "text", to_html_with_pictures(step.text))


class _Writer(NamedTuple):
    question_type: str
    add_answers: Callable[[ET.Element, Item], None]


_WRITERS = {
    "single": _Writer("multichoice", _write_choices),
    "multiple": _Writer("multichoice", _write_choices),
    "true-false": _Writer("truefalse", _write_true_false),
    "short": _Writer("shortanswer", _write_short_answer),
    "numeric": _Writer("numerical", _write_numeric),
    "match": _Writer("matching", _write_matching),
    "order": _Writer("ordering", _write_ordering),
    "cloze": _Writer("cloze", lambda _node, _item: None),  # its answers are in its text
}
