"""Read QTI 2.1 and 3.0."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from posixpath import dirname, join, normpath
from typing import NamedTuple, TypeVar
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from app.import_export import UnusableFileError
from app.import_export.formats import qti12_reader
from app.import_export.formats.extra_fields import restore_fields_from_tags
from app.import_export.formats.partial_credit import WeightedChoice, build_choice_item_from_weights
from app.import_export.formats.qti_elements import (
    extract_plain_text_of_element,
    find_elements_below,
    find_first_element_below,
    get_attribute_by_qti3_name,
    is_hint_element,
    normalize_tag_to_qti3_name,
    render_inner_html,
)
from app.import_export.items import (
    BLANK_CHARACTER,
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    Kind,
    NumberRange,
    build_scored_option,
    format_significant_digits,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    UnreadItem,
    build_cloze_item,
    convert_html_to_markdown_recording_losses,
    make_range_around,
    make_range_between,
    note_unused_feedback_as_loss,
    parse_typed_number,
    read_items_or_refuse,
    split_unit_from_stem,
)
from app.import_export.xml_files import (
    XmlDocument,
    parse_xml_and_locate_elements,
    read_archive_files,
)

ReadElement = TypeVar("ReadElement")


class MappedScore(NamedTuple):
    value: str
    score: float


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseDeclaration:
    base_type: str
    correct_values: tuple[str, ...]
    mapped_scores: tuple[MappedScore, ...]
    is_case_sensitive: bool

    @property
    def is_number(self) -> bool:
        return self.base_type in {"float", "integer"}

    @property
    def full_mark_values(self) -> tuple[str, ...]:
        """The values with a full mark, by the mapping or as declared."""
        best = max((mapped.score for mapped in self.mapped_scores), default=0.0)
        best_values = [value for value, score in self.mapped_scores if score == best > 0]
        return tuple(dict.fromkeys((*self.correct_values, *best_values)))

    @property
    def partial_credit_share_by_value(self) -> dict[str, float]:
        best = max((mapped.score for mapped in self.mapped_scores), default=0.0)
        full_mark_values = self.full_mark_values
        return {
            value: round(score / best, 7)
            for value, score in self.mapped_scores
            if 0 < score < best and value not in full_mark_values
        }


def _read_response_declaration(node: ET.Element) -> ResponseDeclaration:
    correct_response = find_first_element_below(node, "correct-response")
    values = () if correct_response is None else find_elements_below(correct_response, "value")
    entries = list(find_elements_below(node, "map-entry"))
    return ResponseDeclaration(
        get_attribute_by_qti3_name(node, "base-type"),
        correct_values=tuple(filter(None, map(extract_plain_text_of_element, values))),
        mapped_scores=tuple(
            MappedScore(
                get_attribute_by_qti3_name(e, "map-key"),
                parse_typed_number(get_attribute_by_qti3_name(e, "mapped-value")),
            )
            for e in entries
        ),
        is_case_sensitive=any(
            get_attribute_by_qti3_name(e, "case-sensitive") == "true" for e in entries
        ),
    )


def compute_percent_by_choice(
    root: ET.Element, response: ResponseDeclaration, *, is_single_choice: bool
) -> dict[str, float]:
    """Return what each choice earns or costs, in percent of the mark.

    If a mapping is used, its values count; otherwise the declared answer is all or nothing.
    """
    right = dict.fromkeys(response.correct_values or response.full_mark_values, 100.0)
    if is_single_choice:
        return {
            name: 100 * part for name, part in response.partial_credit_share_by_value.items()
        } | right
    gains = [mapped.score for mapped in response.mapped_scores if mapped.score > 0]
    if gains and _is_score_sum_of_mapping(root):
        return {name: 100 * score / sum(gains) for name, score in response.mapped_scores}
    names = (
        get_attribute_by_qti3_name(n, "identifier")
        for n in find_elements_below(root, "simple-choice")
    )
    return dict.fromkeys(names, -100.0) | dict.fromkeys(right, 100 / len(right))


def _is_score_sum_of_mapping(root: ET.Element) -> bool:
    processing = find_first_element_below(root, "response-processing")
    template = "" if processing is None else get_attribute_by_qti3_name(processing, "template")
    return "map_response" in template or find_first_element_below(root, "map-response") is not None


def read_text_entry_options(
    root: ET.Element, response: ResponseDeclaration, feedback_by_id: dict[str, str], unit: str
) -> tuple[ItemOption, ...]:
    """Return the accepted answers of a text entry, and the others that it has feedback for.

    Conditions that compare with a value come first, as our export writes them; then the mapping and
    the declared answer.
    """

    def build_option(
        value: str, score_share: float, test: ET.Element | None, feedback: str = ""
    ) -> ItemOption:
        if not response.is_number:
            return build_scored_option(value, score_share, 1, feedback)
        span = _read_tested_range(parse_typed_number(value), test, unit)
        return build_scored_option("", score_share, 1, feedback, span)

    conditions = _read_scored_conditions(root, feedback_by_id)
    if conditions:
        best = max(condition.score for condition in conditions)
        options = [
            build_option(c.value, c.score / best if best > 0 else 0.0, c.test, c.feedback)
            for c in conditions
        ]
        return tuple(sorted(options, key=lambda o: not o.right))
    test = find_first_element_below(root, "equal")
    right = (
        response.correct_values[:1] if response.base_type != "string" else response.full_mark_values
    )
    partial = response.partial_credit_share_by_value
    others = [
        value
        for value, _ in response.mapped_scores
        if value not in right and (value in partial or response.base_type == "string")
    ]
    return (
        *(build_option(value, 1.0, test) for value in right),
        *(build_option(value, partial.get(value, 0.0), test) for value in others),
    )


class _ScoredCondition(NamedTuple):
    value: str
    score: float
    feedback: str
    test: ET.Element


def _read_scored_conditions(
    root: ET.Element, feedback_by_id: dict[str, str]
) -> list[_ScoredCondition]:
    conditions: list[_ScoredCondition] = []
    for branch in find_elements_below(root, "response-if", "response-else-if"):
        test = branch[0] if len(branch) else None
        if test is None or normalize_tag_to_qti3_name(test) not in {"equal", "string-match"}:
            continue
        value = extract_plain_text_of_element(find_first_element_below(test, "base-value"))
        if not value:
            continue
        score, note = 0.0, ""
        for outcome in find_elements_below(branch, "set-outcome-value"):
            outcome_value = extract_plain_text_of_element(
                find_first_element_below(outcome, "base-value")
            )
            if get_attribute_by_qti3_name(outcome, "identifier") == "SCORE":
                score = parse_typed_number(outcome_value)
            elif outcome_value in feedback_by_id:
                note = feedback_by_id[outcome_value]
        conditions.append(_ScoredCondition(value, score, note, test))
    return conditions


def _read_tested_range(center: float, test: ET.Element | None, unit: str) -> NumberRange:
    """Return the numbers that a test accepts for `center`; without tolerance only that."""
    mode = "" if test is None else get_attribute_by_qti3_name(test, "tolerance-mode")
    if test is None or mode not in {"absolute", "relative"}:
        return make_range_around(center, 0.0, unit)
    tolerances = [
        parse_typed_number(part) for part in get_attribute_by_qti3_name(test, "tolerance").split()
    ] or [0.0]
    unit_size = abs(center) / 100 if mode == "relative" else 1.0
    below, above = tolerances[0] * unit_size, tolerances[-1] * unit_size
    return make_range_between(center - below, center + above, unit)


_ITEM_TAG = "assessment-item"
_ITEM_TAGS = ("item", "assessmentItem", "qti-assessment-item")
_IGNORED_INTERACTIONS = {"end-attempt-interaction", "media-interaction"}
_GAP_INTERACTIONS = {"text-entry-interaction", "inline-choice-interaction"}
_PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg")
_FILE_BASE_PLACEHOLDER = "$IMS-CC-FILEBASE$"  # Canvas's placeholder for its file folder
_EXPLANATION_FEEDBACK_ID = "EXPLANATION"
_MISTAKE_FEEDBACK_ID = "MISTAKE"


def read_qti(data: bytes) -> ImportResult:
    """Read the items of a QTI file or of a zipped package; raises UnusableFileError."""
    if not data.startswith(b"PK"):
        document = parse_xml_and_locate_elements(data, *_ITEM_TAGS)
        sources = list(_list_unread_items("", document, {}))
        if not sources:
            name = normalize_tag_to_qti3_name(document.root)
            raise UnusableFileError(f"The file begins with <{name}>, not with an item.")
        return read_items_or_refuse(sources)
    pictures = {
        f.path: f.content for ending in _PICTURE_SUFFIXES for f in read_archive_files(data, ending)
    }
    sources, unreadable_files = [], []
    for file in read_archive_files(data, ".xml"):
        try:
            sources += _list_unread_items(
                file.path, parse_xml_and_locate_elements(file.content, *_ITEM_TAGS), pictures
            )
        except UnusableFileError as error:
            unreadable_files.append(ItemRemark(file.path, 0, str(error)))
    if not sources and not unreadable_files:
        raise UnusableFileError("The package holds no items.")
    result = read_items_or_refuse(sources)
    return dataclasses.replace(result, refused_items=(*unreadable_files, *result.refused_items))


def _list_unread_items(
    document_path: str, document: XmlDocument, picture_by_path: Mapping[str, bytes]
) -> Iterator[UnreadItem]:
    """Yield the items of a document; `document_path` is its path in a package, else empty."""
    root, lines = (
        document.root,
        itertools.chain(document.located_element_lines, itertools.repeat(0)),
    )
    find_picture = functools.partial(_find_picture, document_path, picture_by_path)
    prefix = f"{document_path}: " if document_path else ""
    if normalize_tag_to_qti3_name(root) == qti12_reader.ROOT:
        items = zip(qti12_reader.list_qti12_items(root), lines, strict=False)
        for (title, unique_name, element), line in items:
            read = functools.partial(qti12_reader.read_qti12_item, unique_name, element)
            yield UnreadItem(f"{prefix}{title}", line, read, find_picture)
    elif normalize_tag_to_qti3_name(root) == _ITEM_TAG:
        title = (
            get_attribute_by_qti3_name(root, "title")
            or get_attribute_by_qti3_name(root, "identifier")
            or document_path
        )
        label = f"{prefix}{title}" if title != document_path else document_path
        read = functools.partial(_read_qti2_or_3_item, title, root)
        yield UnreadItem(label, next(lines), read, find_picture)


def _read_qti2_or_3_item(name: str, root: ET.Element, losses: PicturesAndLosses) -> Item:
    return _Qti2Or3ItemReader(root, losses).read_item(name)


def _find_picture(item_path: str, picture_by_path: Mapping[str, bytes], url: str) -> bytes | None:
    """Return a picture of a package by the name that an item at `item_path` uses."""
    name = unquote(url).partition("?")[0]
    path_from_root = name.removeprefix(_FILE_BASE_PLACEHOLDER).lstrip("/")
    beside_item = normpath(join(dirname(item_path), name))
    paths = (beside_item, path_from_root, f"web_resources/{path_from_root}")
    return next((picture_by_path[known] for known in paths if known in picture_by_path), None)


def _map_identifiers_to_read_elements(
    parent: ET.Element, element_name: str, read_element: Callable[[ET.Element], ReadElement]
) -> dict[str, ReadElement]:
    return {
        get_attribute_by_qti3_name(n, "identifier"): read_element(n)
        for n in find_elements_below(parent, element_name)
    }


@dataclasses.dataclass(slots=True)
class _Qti2Or3ItemReader:
    """Reads one item; what Markdown cannot express is recorded in `losses`."""

    root: ET.Element
    losses: PicturesAndLosses
    response_by_identifier: dict[str, ResponseDeclaration] = dataclasses.field(init=False)
    feedback_by_id: dict[str, str] = dataclasses.field(init=False)
    body: ET.Element = dataclasses.field(init=False)
    interactions: list[ET.Element] = dataclasses.field(init=False)

    def read_item(self, name: str) -> Item:
        """Return the question; raises ItemSkippedError."""
        self.response_by_identifier = _map_identifiers_to_read_elements(
            self.root, "response-declaration", _read_response_declaration
        )
        if get_attribute_by_qti3_name(self.root, "adaptive") == "true":
            raise ItemSkippedError("it is adaptive: it changes between attempts")
        if find_first_element_below(self.root, "template-declaration") is not None:
            raise ItemSkippedError("its values are drawn by a program of its own")
        body = find_first_element_below(self.root, "item-body")
        if body is None:
            raise ItemSkippedError("it has no body")
        self.body = body
        self.interactions = [
            node
            for node in body.iter()
            if normalize_tag_to_qti3_name(node).endswith("-interaction")
            and normalize_tag_to_qti3_name(node) not in _IGNORED_INTERACTIONS
        ]
        self.feedback_by_id = _map_identifiers_to_read_elements(
            self.root, "modal-feedback", self._read_text_outside_interactions
        )
        read = self._choose_reader()
        item = Item(
            name,
            "single",
            "",
            hints=tuple(
                self._read_text_outside_interactions(n)
                for n in find_elements_below(body, "rubric-block")
                if is_hint_element(n)
            ),
            explanation=self.feedback_by_id.get(_EXPLANATION_FEEDBACK_ID, ""),
            mistake=self.feedback_by_id.get(_MISTAKE_FEEDBACK_ID, ""),
        )
        converted = read(item)
        if not converted.stem:
            raise ItemSkippedError("it has no text")
        note_unused_feedback_as_loss(converted, self.feedback_by_id.values(), self.losses)
        tags = get_attribute_by_qti3_name(self.root, "label").split("; ")
        return restore_fields_from_tags(converted, tuple(t for t in tags if t))

    def _choose_reader(self) -> Callable[[Item], Item]:
        kinds = [normalize_tag_to_qti3_name(n) for n in self.interactions]
        if kinds and set(kinds) <= _GAP_INTERACTIONS:
            return self._read_cloze_or_text_entry
        if not kinds:
            raise ItemSkippedError("it asks nothing")
        if "extended-text-interaction" in kinds:
            raise ItemSkippedError("an essay cannot be judged by a program")
        readers = {
            "choice-interaction": self._read_choices,
            "order-interaction": self._read_ordering,
            "match-interaction": self._read_matching,
            "gap-match-interaction": self._read_gap_match,
        }
        read = readers.get(kinds[0])
        if read is None:
            raise ItemSkippedError(f"its {kinds[0].replace('-', ' ')} has no counterpart here")
        if len(kinds) > 1:
            raise ItemSkippedError("it asks several questions at once")
        return read

    # --- texts ---

    def _read_text_outside_interactions(self, node: ET.Element) -> str:
        return convert_html_to_markdown_recording_losses(
            render_inner_html(node, self._replace_interaction_or_media_with_empty), self.losses
        )

    def _replace_interaction_or_media_with_empty(self, node: ET.Element) -> str | None:
        """Return an empty string for interactions and media within a text."""
        name = normalize_tag_to_qti3_name(node)
        if name in {"object", "audio", "video", "svg", "picture", "media-interaction"}:
            self.losses.add_loss("a picture or recording is left out: say what it holds")
            return ""
        if name == "rubric-block" and "candidate" in get_attribute_by_qti3_name(node, "view"):
            self.losses.add_loss("a note beside the question is left out: add it if needed")
        return "" if name.endswith("-interaction") else None

    def _read_body_and_prompt(self) -> str:
        return "\n\n".join(
            filter(None, (self._read_text_outside_interactions(self.body), self._read_prompt()))
        )

    def _read_prompt(self) -> str:
        prompt = find_first_element_below(self.interactions[0], "prompt")
        return self._read_text_outside_interactions(prompt) if prompt is not None else ""

    def _require_response_with_right_answer(self, node: ET.Element) -> ResponseDeclaration:
        """Return the response of an interaction; raises ItemSkippedError if it names no answer."""
        response = self.response_by_identifier.get(
            get_attribute_by_qti3_name(node, "response-identifier")
        )
        if response is None or not response.full_mark_values:
            raise ItemSkippedError("it does not say which answer is right")
        return response

    # --- by type ---

    def _read_choices(self, item: Item) -> Item:
        interaction = self.interactions[0]
        response = self._require_response_with_right_answer(interaction)
        single = get_attribute_by_qti3_name(interaction, "max-choices") == "1"
        percents = compute_percent_by_choice(self.root, response, is_single_choice=single)
        choices = []
        for node in find_elements_below(interaction, "simple-choice"):
            name, text = (
                get_attribute_by_qti3_name(node, "identifier"),
                self._read_text_outside_interactions(node),
            )
            inline = self._inline_feedback_or_none(node)
            feedback = self.feedback_by_id.get(name, "") if inline is None else inline
            choices.append(WeightedChoice(text, percents.get(name, 0.0), feedback))
        if any(not choice.text for choice in choices):
            raise ItemSkippedError("its options are pictures")
        item = dataclasses.replace(item, stem=self._read_body_and_prompt())
        converted = build_choice_item_from_weights(
            item, choices, self.losses, allows_several_answers=not single
        )
        shuffles = get_attribute_by_qti3_name(interaction, "shuffle") != "false"
        return dataclasses.replace(converted, shuffle=shuffles or converted.kind == "true-false")

    def _inline_feedback_or_none(self, choice: ET.Element) -> str | None:
        feedback = find_first_element_below(choice, "feedback-inline", "feedback-block")
        return None if feedback is None else self._read_text_outside_interactions(feedback)

    def _inline_feedback_by_identifier(self, choice_element: str) -> dict[str, str]:
        """Return the feedback on each step or match row."""
        return _map_identifiers_to_read_elements(
            self.interactions[0],
            choice_element,
            lambda node: self._inline_feedback_or_none(node) or "",
        )

    def _read_ordering(self, item: Item) -> Item:
        interaction = self.interactions[0]
        steps = _map_identifiers_to_read_elements(
            interaction, "simple-choice", self._read_text_outside_interactions
        )
        notes = self._inline_feedback_by_identifier("simple-choice")
        right = [
            i
            for i in self._require_response_with_right_answer(interaction).correct_values
            if i in steps
        ]
        wrong = [ItemOption(t, False, notes[i]) for i, t in steps.items() if i not in right]
        return dataclasses.replace(
            item,
            kind="order",
            stem=self._read_body_and_prompt(),
            steps=tuple(ItemOption(steps[i], True, notes[i]) for i in right),
            options=tuple(wrong),
        )

    def _read_matching(self, item: Item) -> Item:
        interaction = self.interactions[0]
        sets = list(find_elements_below(interaction, "simple-match-set"))
        if len(sets) != 2:
            raise ItemSkippedError("it does not match two sets")
        lefts, rights = (
            _map_identifiers_to_read_elements(
                s, "simple-associable-choice", self._read_text_outside_interactions
            )
            for s in sets
        )
        answers = [
            pair.split()
            for pair in self._require_response_with_right_answer(interaction).correct_values
        ]
        matches = [(a, b) for a, b in (p for p in answers if len(p) == 2) if a in lefts]
        if len({a for a, _ in matches}) != len(matches) or len(matches) != len(lefts):
            raise ItemSkippedError("not every left thing goes with one right thing")
        notes = self._inline_feedback_by_identifier("simple-associable-choice")
        pairs = [ItemPair(lefts[a], rights.get(b, ""), notes[a]) for a, b in matches]
        used_rights = {b for _, b in matches}
        pairs += [ItemPair("", text) for i, text in rights.items() if i not in used_rights]
        stem = self._read_body_and_prompt()
        return dataclasses.replace(item, kind="match", stem=stem, pairs=tuple(pairs))

    def _read_cloze_or_text_entry(self, item: Item) -> Item:
        if self._is_text_entry_in_own_paragraph():
            return self._read_text_entry(item)
        blanks = [self._read_blank(n) for n in self.interactions]

        def gap(node: ET.Element) -> str | None:
            is_gap = normalize_tag_to_qti3_name(node) in _GAP_INTERACTIONS
            return (
                BLANK_CHARACTER if is_gap else self._replace_interaction_or_media_with_empty(node)
            )

        text = convert_html_to_markdown_recording_losses(
            render_inner_html(self.body, gap), self.losses
        )
        return build_cloze_item(item, text, blanks)

    def _is_text_entry_in_own_paragraph(self) -> bool:
        """Return whether there is one text entry, whose paragraph has nothing else."""
        first = self.interactions[0]
        if (
            len(self.interactions) != 1
            or normalize_tag_to_qti3_name(first) != "text-entry-interaction"
        ):
            return False
        parent = next((n for n in self.body.iter() if first in list(n)), self.body)
        return not extract_plain_text_of_element(parent) and parent is not self.body

    def _read_text_entry(self, item: Item) -> Item:
        response = self._require_response_with_right_answer(self.interactions[0])
        text = self._read_text_outside_interactions(self.body)
        stem, unit = split_unit_from_stem(text)
        options = read_text_entry_options(self.root, response, self.feedback_by_id, unit)
        kind: Kind = "numeric" if response.is_number else "short"
        if find_first_element_below(self.root, "gt", "gte", "lte", "equal-rounded") is not None:
            self.losses.add_loss("its range is not read: widen the declared number by hand")
        stem = text if kind == "short" else stem
        case = response.is_case_sensitive
        return dataclasses.replace(item, kind=kind, stem=stem, options=options, case=case)

    def _read_blank(self, node: ET.Element) -> ItemBlank:
        response = self._require_response_with_right_answer(node)
        if normalize_tag_to_qti3_name(node) == "text-entry-interaction":
            hint = get_attribute_by_qti3_name(node, "placeholder-text")
            right = [" ".join(r.split()) for r in response.full_mark_values]
            if response.is_number:
                right = [
                    w for r in right for w in (r, format_significant_digits(parse_typed_number(r)))
                ]
                self.losses.add_loss("a number in a gap is compared as words: add what else counts")
            if response.partial_credit_share_by_value:
                self.losses.add_loss("a word of a gap that is partly right counts as wrong")
            return ItemBlank(tuple(dict.fromkeys(right)), hint)
        choices = _map_identifiers_to_read_elements(
            node, "inline-choice", extract_plain_text_of_element
        )
        right = [choices[r] for r in response.full_mark_values if choices.get(r)]
        wrong = tuple(w for w in dict.fromkeys(choices.values()) if w not in right)
        return ItemBlank(tuple(right[:1] if wrong else right), "", wrong)

    def _read_gap_match(self, item: Item) -> Item:
        """Read words to drag into gaps as words to type."""
        interaction = self.interactions[0]
        texts = _map_identifiers_to_read_elements(
            interaction, "gap-text", extract_plain_text_of_element
        )
        answers = [
            pair.split()
            for pair in self._require_response_with_right_answer(interaction).correct_values
        ]
        word_by_gap = {p[1]: texts.get(p[0], "") for p in answers if len(p) == 2}
        blanks: list[ItemBlank] = []

        def gap(node: ET.Element) -> str | None:
            name = normalize_tag_to_qti3_name(node)
            if name == "gap":
                blanks.append(
                    ItemBlank(
                        (word_by_gap.get(get_attribute_by_qti3_name(node, "identifier"), ""),)
                    )
                )
                return BLANK_CHARACTER
            if name in {"gap-text", "gap-img", "prompt"}:
                return ""
            if name == "gap-match-interaction":
                return None
            return self._replace_interaction_or_media_with_empty(node)

        text = convert_html_to_markdown_recording_losses(
            render_inner_html(self.body, gap), self.losses
        )
        if any(not b.answers[0] for b in blanks):
            raise ItemSkippedError("a gap has no word that fits")
        self.losses.add_loss("the words to choose from are not shown; they are typed")
        text = "\n\n".join(filter(None, (self._read_prompt(), text)))
        return build_cloze_item(item, text, blanks)
