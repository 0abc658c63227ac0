"""Read QTI 1.2 (Canvas)."""

import dataclasses
import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from app.import_export.formats.partial_credit import WeightedChoice, build_choice_item_from_weights
from app.import_export.formats.qti_elements import (
    extract_plain_text_of_element,
    find_elements_below,
    find_first_element_below,
    get_attribute_by_qti3_name,
    normalize_tag_to_qti3_name,
    render_inner_html,
)
from app.import_export.html_to_markdown import convert_plain_text_to_markdown
from app.import_export.items import (
    BLANK_CHARACTER,
    Item,
    ItemBlank,
    ItemPair,
    ItemSkippedError,
    NumberRange,
    build_scored_option,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    add_default_feedback_as_mistake,
    build_cloze_item,
    convert_html_to_markdown_recording_losses,
    make_range_around,
    make_range_between,
    note_unused_feedback_as_loss,
    parse_typed_number,
)
from app.markup.markdown_tokens import parse_markdown, plain_text

ROOT = "questestinterop"
_RESPONSE_TAGS = frozenset({"response_lid", "response_str", "response_num"})
_UNREADABLE_RESPONSE_TAGS = frozenset({"response_xy", "response_grp", "response_extension"})
_MEDIA_TAGS = frozenset({"matimage", "mataudio", "matvideo", "matapplet", "matapplication"})
_GENERAL_FEEDBACK_NAMES = frozenset({"general_fb", "correct_fb"})
_INCORRECT_FEEDBACK_NAMES = frozenset({"general_incorrect_fb", "incorrect_fb"})
_SCORE_VARIABLE_NAMES = frozenset({"", "score", "que_score"})
"""The variables that hold the score; others count something else."""
_DEFAULT_QUESTION_NAME = "question"  # the default name of an item in Canvas


class _ScoringRule(NamedTuple):
    """A condition of the scoring, its score, and the names of its feedback."""

    condition: ET.Element
    score: float
    feedback_ids: tuple[str, ...]


def list_qti12_items(root: ET.Element) -> Iterator[tuple[str, str, ET.Element]]:
    """Yield the title of an item, the title if no other item has it or "", and the item."""
    nodes = list(find_elements_below(root, "item"))
    titles = [
        get_attribute_by_qti3_name(node, "title") or get_attribute_by_qti3_name(node, "ident")
        for node in nodes
    ]
    count = Counter(titles)
    for node, title in zip(nodes, titles, strict=True):
        is_unique = count[title] == 1 and title.lower() != _DEFAULT_QUESTION_NAME
        yield title, title if is_unique else "", node


def read_qti12_item(name: str, item_element: ET.Element, losses: PicturesAndLosses) -> Item:
    """Read one item; raises ItemSkippedError."""
    return _Qti12Reader(item_element, losses).read_item(name)


@dataclasses.dataclass(slots=True)
class _Qti12Reader:
    item_element: ET.Element
    losses: PicturesAndLosses
    response_elements: list[ET.Element] = dataclasses.field(init=False)
    scoring_rules: list[_ScoringRule] = dataclasses.field(init=False)
    feedback_by_id: dict[str, str] = dataclasses.field(init=False)
    presentation: ET.Element = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.response_elements = list(find_elements_below(self.item_element, *_RESPONSE_TAGS))
        first_declared = itertools.islice(find_elements_below(self.item_element, "decvar"), 1)
        score_variables = _SCORE_VARIABLE_NAMES | {
            get_attribute_by_qti3_name(node, "varname").lower() for node in first_declared
        }
        self.scoring_rules = [
            _read_scoring_rule(n, score_variables)
            for n in find_elements_below(self.item_element, "respcondition")
        ]
        self.feedback_by_id = {
            get_attribute_by_qti3_name(node, "ident"): self._read_text_outside_responses(node)
            for node in find_elements_below(self.item_element, "itemfeedback")
        }

    def read_item(self, name: str) -> Item:
        """Return the question; raises ItemSkippedError."""
        presentation = find_first_element_below(self.item_element, "presentation")
        if presentation is None:
            raise ItemSkippedError("it has no text")
        if find_first_element_below(presentation, *_UNREADABLE_RESPONSE_TAGS) is not None:
            raise ItemSkippedError("it is answered in a drawing, or in a way of its own")
        if not self.response_elements:
            raise ItemSkippedError("nothing is asked in it")
        self.presentation = presentation
        general_feedback = [
            self.feedback_by_id[n] for n in self.feedback_by_id if n in _GENERAL_FEEDBACK_NAMES
        ]
        read = self._choose_reader()
        stem = "" if read == self._read_cloze else self._read_text_outside_responses(presentation)
        explanation = "\n\n".join(filter(None, general_feedback))
        converted = read(Item(name, "single", stem, explanation=explanation))
        if not converted.stem:
            raise ItemSkippedError("it has no text")
        feedback = next(
            (self.feedback_by_id[n] for n in self.feedback_by_id if n in _INCORRECT_FEEDBACK_NAMES),
            "",
        )
        converted = add_default_feedback_as_mistake(converted, feedback, self.losses)
        note_unused_feedback_as_loss(converted, self.feedback_by_id.values(), self.losses)
        return converted

    def _choose_reader(self) -> Callable[[Item], Item]:
        question_type, response_kind = (
            self._read_question_type(),
            normalize_tag_to_qti3_name(self.response_elements[0]),
        )
        if "essay" in question_type or "file_upload" in question_type:
            raise ItemSkippedError("it is an essay or an upload, which no rule can judge")
        if "calculated" in question_type:
            raise ItemSkippedError("its numbers are drawn and computed by another program")
        has_choices = response_kind == "response_lid" and (
            "blank" in question_type or "drop" in question_type
        )
        if has_choices or (response_kind == "response_str" and "multiple_blanks" in question_type):
            return self._read_cloze
        if "matching" in question_type or (
            len(self.response_elements) > 1 and self._have_same_choices()
        ):
            return self._read_matching
        if len(self.response_elements) > 1:
            raise ItemSkippedError("it asks several questions at once: divide it")
        if response_kind == "response_lid":
            return self._read_choices
        has_bounds = (
            find_first_element_below(self.item_element, "vargte", "varlte", "vargt", "varlt")
            is not None
        )
        is_numeric = has_bounds or "numeric" in question_type or response_kind == "response_num"
        return self._read_numeric if is_numeric else self._read_short_answer

    def _have_same_choices(self) -> bool:
        """Return whether all responses offer the same choices, as match rows do."""
        choice_sets = {
            tuple(
                sorted(
                    self._read_text_outside_responses(element)
                    for _, element in _list_response_labels(response)
                )
            )
            for response in self.response_elements
        }
        return len(choice_sets) == 1 and choice_sets != {()}

    def _read_question_type(self) -> str:
        for field in find_elements_below(self.item_element, "qtimetadatafield"):
            entry = {
                normalize_tag_to_qti3_name(part): extract_plain_text_of_element(part)
                for part in field
            }
            if entry.get("fieldlabel") in {"question_type", "cc_profile"}:
                return entry.get("fieldentry", "").lower()
        return ""

    # --- choices ---

    def _read_choices(self, item: Item) -> Item:
        response = self.response_elements[0]
        multiple_answers = (
            get_attribute_by_qti3_name(response, "rcardinality").lower() == "multiple"
        )
        if multiple_answers:
            weights = self._percent_by_choice()
        else:
            scores = self._score_by_response_value(get_attribute_by_qti3_name(response, "ident"))
            best = max(scores.values(), default=0.0) or 1.0
            weights = {name: 100 * score / best for name, score in scores.items()}
        reasons = self._map_choices_to_feedback(get_attribute_by_qti3_name(response, "ident"))
        choices = [
            WeightedChoice(
                self._read_text_outside_responses(label),
                weights.get(name, 0.0),
                reasons.get(name, ""),
            )
            for name, label in _list_response_labels(response)
        ]
        return build_choice_item_from_weights(
            item, choices, self.losses, allows_several_answers=multiple_answers
        )

    def _percent_by_choice(self) -> dict[str, float]:
        """Return what each ticked choice earns or costs, in percent.

        Canvas scores hits minus misses, whatever its rules say. In other files a rule for several
        choices at once is all or nothing.
        """
        response = get_attribute_by_qti3_name(self.response_elements[0], "ident")
        values_and_rules = [
            (_list_required_values(r.condition, response), r) for r in self.scoring_rules
        ]
        joint_scores = [
            (rule.score, values)
            for values, rule in values_and_rules
            if rule.score > 0
            and (len(values) > 1 or find_first_element_below(rule.condition, "not") is not None)
        ]
        if not joint_scores:
            scores = self._score_by_response_value(response)
            total = sum(score for score in scores.values() if score > 0) or 1.0
            return {name: 100 * score / total for name, score in scores.items()}
        _, right = max(joint_scores)
        if not right:
            raise ItemSkippedError("it is right where nothing is ticked")
        if len({score for score, _ in joint_scores}) > 1:
            self.losses.add_loss("its rule of credit is replaced by the nearest one")
        gain = 100 / len(right)
        cost = gain if "multiple_answers" in self._read_question_type() else 100.0
        choice_ids = (ident for ident, _ in _list_response_labels(self.response_elements[0]))
        return {name: gain if name in right else -cost for name in choice_ids}

    def _score_by_response_value(self, response_id: str) -> dict[str, float]:
        """Return what each value of a response earns by itself."""
        scores: dict[str, float] = {}
        for rule in self.scoring_rules:
            for name in _list_required_values(rule.condition, response_id):
                scores[name] = max(rule.score, scores.get(name, rule.score))
        return scores

    def _map_choices_to_feedback(self, response_id: str) -> dict[str, str]:
        reasons: dict[str, str] = {}
        for rule in self.scoring_rules:
            values = _list_required_values(rule.condition, response_id)
            specific_ids = [
                n
                for n in rule.feedback_ids
                if n not in _GENERAL_FEEDBACK_NAMES | _INCORRECT_FEEDBACK_NAMES
            ]
            texts = [self.feedback_by_id[n] for n in specific_ids if self.feedback_by_id.get(n)]
            if len(values) == 1 and texts:
                reasons.setdefault(values[0], texts[0])
        return reasons

    def _list_right_values(self, response: ET.Element) -> list[str]:
        scores = self._score_by_response_value(get_attribute_by_qti3_name(response, "ident"))
        return [name for name, score in scores.items() if score > 0]

    # --- typed answers ---

    def _read_short_answer(self, item: Item) -> Item:
        name = get_attribute_by_qti3_name(self.response_elements[0], "ident")
        accepted = {w: s for w, s in self._score_by_response_value(name).items() if s > 0}
        if not accepted:
            raise ItemSkippedError("it names no right answer")
        best = max(accepted.values())
        options = tuple(build_scored_option(word, score, best) for word, score in accepted.items())
        flags = (
            get_attribute_by_qti3_name(n, "case").lower()
            for n in find_elements_below(self.item_element, "varequal")
        )
        case = "yes" in flags
        return dataclasses.replace(item, kind="short", options=options, case=case)

    def _read_numeric(self, item: Item) -> Item:
        scored_spans = [
            (rule.score, span)
            for rule in self.scoring_rules
            if rule.score > 0
            for span in _read_accepted_ranges(rule.condition)
        ]
        if not scored_spans:
            raise ItemSkippedError("it names no right number")
        best = max(score for score, _ in scored_spans)
        options = tuple(
            build_scored_option("", score, best, number_range=span) for score, span in scored_spans
        )
        return dataclasses.replace(item, kind="numeric", options=options)

    # --- rows and gaps ---

    def _read_matching(self, item: Item) -> Item:
        pairs = []
        used_ids: set[str] = set()
        right_texts: dict[str, str] = {}
        for response in self.response_elements:
            labels = dict(_list_response_labels(response))
            right_texts |= {
                name: self._read_text_outside_responses(label) for name, label in labels.items()
            }
            value = next(iter(self._list_right_values(response)), "")
            if value not in labels:
                raise ItemSkippedError("a row of it has no partner")
            used_ids.add(value)
            pairs.append(ItemPair(self._read_text_outside_responses(response), right_texts[value]))
        pairs += [ItemPair("", text) for name, text in right_texts.items() if name not in used_ids]
        return dataclasses.replace(item, kind="match", pairs=tuple(pairs))

    def _read_cloze(self, item: Item) -> Item:
        """Read gaps to fill in or to choose for; the text contains each gap's name.

        All answers of a fill-in gap are right, although Canvas writes a rule only for the first.
        """
        chosen = "drop" in self._read_question_type()
        gaps = {
            get_attribute_by_qti3_name(r, "ident").removeprefix("response_"): r
            for r in self.response_elements
        }
        blanks: list[ItemBlank] = []

        def replace(match: re.Match[str]) -> str:
            blanks.append(
                self._read_blank(gaps[html.unescape(match[1])], is_chosen_from_list=chosen)
            )
            return BLANK_CHARACTER

        spellings = {s for n in gaps for s in (n, html.escape(n, quote=False))}
        pattern = re.compile(rf"\[({'|'.join(map(re.escape, spellings))})\]")
        text = self._read_text_outside_responses(
            self.presentation, lambda raw: pattern.sub(replace, raw)
        )
        if len(blanks) != len(gaps):
            raise ItemSkippedError("a gap has no place in its text, or more than one")
        return build_cloze_item(item, text, blanks)

    def _read_blank(self, response_element: ET.Element, *, is_chosen_from_list: bool) -> ItemBlank:
        right = self._list_right_values(response_element)
        labels = {word: word for word in right}
        if normalize_tag_to_qti3_name(response_element) == "response_lid":
            labels = {
                name: " ".join(
                    plain_text(parse_markdown(self._read_text_outside_responses(label))).split()
                )
                for name, label in _list_response_labels(response_element)
            }
        answers = [word for n, word in labels.items() if word and n in right]
        others = [word for n, word in labels.items() if word and n not in right]
        if not is_chosen_from_list:
            answers, others = [*answers, *others], []
        if not answers:
            raise ItemSkippedError("a gap has no word that fits")
        if len(answers) > 1 and others:
            self.losses.add_loss("of several right choices of a gap the first is offered")
        wrong = tuple(w for w in dict.fromkeys(others) if w not in answers)
        right_words = tuple(dict.fromkeys(answers))
        return ItemBlank(right_words[:1] if wrong else right_words, "", wrong)

    # --- texts ---

    def _read_text_outside_responses(
        self, node: ET.Element, replace_text: Callable[[str], str] | None = None
    ) -> str:
        """Return the texts of an element, without those of responses inside it.

        `replace_text` may change them before they are read.
        """
        if any(normalize_tag_to_qti3_name(n) in _MEDIA_TAGS for n in node.iter()):
            self.losses.add_loss("a picture or recording is left out: describe what it holds")
        texts = []
        for part in _list_text_nodes(node):
            is_html = "html" in get_attribute_by_qti3_name(part, "texttype").lower()
            raw = render_inner_html(part, lambda _: None) if len(part) else "".join(part.itertext())
            raw = replace_text(raw) if replace_text else raw
            texts.append(
                convert_html_to_markdown_recording_losses(raw, self.losses)
                if is_html
                else convert_plain_text_to_markdown(raw)
            )
        return "\n\n".join(text for text in texts if text)


def _list_text_nodes(node: ET.Element) -> Iterator[ET.Element]:
    for child in node:
        name = normalize_tag_to_qti3_name(child)
        if name == "mattext":
            yield child
        elif name not in _RESPONSE_TAGS and not name.startswith("render"):
            yield from _list_text_nodes(child)


def _list_response_labels(response: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    for label in find_elements_below(response, "response_label"):
        yield get_attribute_by_qti3_name(label, "ident"), label


def _read_scoring_rule(node: ET.Element, score_variables: frozenset[str]) -> _ScoringRule:
    score = 0.0
    for variable in find_elements_below(node, "setvar"):
        name = get_attribute_by_qti3_name(variable, "varname") or get_attribute_by_qti3_name(
            variable, "variablename"
        )
        if name.lower() in score_variables:
            value = parse_typed_number(extract_plain_text_of_element(variable))
            score += (
                -value
                if get_attribute_by_qti3_name(variable, "action").lower() == "subtract"
                else value
            )
    feedback = (
        get_attribute_by_qti3_name(n, "linkrefid")
        for n in find_elements_below(node, "displayfeedback")
    )
    return _ScoringRule(node, score, tuple(feedback))


def _list_required_values(condition: ET.Element, response_id: str) -> list[str]:
    """Return the values that a condition requires, without those it forbids."""
    values: list[str] = []
    for child in condition:
        name = normalize_tag_to_qti3_name(child)
        if name == "varequal" and get_attribute_by_qti3_name(child, "respident") in {
            "",
            response_id,
        }:
            values.append(extract_plain_text_of_element(child))
        elif name in {"conditionvar", "and", "or"}:
            values += _list_required_values(child, response_id)
    return values


def _read_accepted_ranges(condition: ET.Element) -> list[NumberRange]:
    """Return the numbers that a condition accepts.

    Raises ItemSkippedError for a range with only one end.
    """
    lows = [
        parse_typed_number(extract_plain_text_of_element(n))
        for n in find_elements_below(condition, "vargte", "vargt")
    ]
    highs = [
        parse_typed_number(extract_plain_text_of_element(n))
        for n in find_elements_below(condition, "varlte", "varlt")
    ]
    if len(lows) != len(highs):
        raise ItemSkippedError("one of its ranges has one end only: give it the other")
    ranges = [make_range_between(*ends) for ends in zip(lows, highs, strict=True)]
    exact = [
        parse_typed_number(extract_plain_text_of_element(n))
        for n in find_elements_below(condition, "varequal")
    ]
    exact_outside_ranges = (p for p in exact if not any(r.low <= p <= r.high for r in ranges))
    return [*ranges, *(make_range_around(point, 0.0) for point in exact_outside_ranges)]
