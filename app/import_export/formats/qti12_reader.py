"""Read QTI 1.2 (Canvas)."""

import dataclasses
import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from app.import_export.formats.partial_credit import WeightedChoice, convert_weighted_choices
from app.import_export.formats.qti_elements import (
    attribute_in_any_spelling,
    collapsed_text,
    elements_below,
    inner_html,
    qti3_element_name,
)
from app.import_export.html_to_markdown import convert_plain_text
from app.import_export.items import (
    BLANK,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemSkippedError,
    NumberRange,
    credit_of_score,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    add_default_feedback_as_mistake,
    build_cloze,
    convert_html,
    read_number,
    report_unused_feedback,
    span_around,
    span_between,
)
from app.markup.markdown_tokens import parse_markdown, plain_text

ROOT = "questestinterop"
_RESPONSES = frozenset({"response_lid", "response_str", "response_num"})
_OTHERS = frozenset({"response_xy", "response_grp", "response_extension"})
_MEDIA = frozenset({"matimage", "mataudio", "matvideo", "matapplet", "matapplication"})
_GENERAL = frozenset({"general_fb", "correct_fb"})
_MISSED = frozenset({"general_incorrect_fb", "incorrect_fb"})
_SCORES = frozenset({"", "score", "que_score"})
"""The variables that hold the score; others count something else."""
_UNNAMED = "question"  # the default name of an item in Canvas
Place = Callable[[str], str]


class _ScoringRule(NamedTuple):
    """A condition of the scoring: its test, its score, its feedback."""

    element: ET.Element
    score: float
    said: tuple[str, ...]


class Qti12Item(NamedTuple):
    """An item; `unique_name` is its title if no other item has it, otherwise empty."""

    title: str
    unique_name: str
    element: ET.Element


def find_items(root: ET.Element) -> Iterator[Qti12Item]:
    """Yield every item in a file."""
    nodes = list(elements_below(root, "item"))
    titles = [
        attribute_in_any_spelling(node, "title") or attribute_in_any_spelling(node, "ident")
        for node in nodes
    ]
    count = Counter(titles)
    for node, title in zip(nodes, titles, strict=True):
        is_unique = count[title] == 1 and title.lower() != _UNNAMED
        yield Qti12Item(title, title if is_unique else "", node)


def read_item(name: str, node: ET.Element, losses: PicturesAndLosses) -> Item:
    """Read one item; raises ItemSkippedError."""
    return _Qti12Reader(node, losses).read_item(name)


@dataclasses.dataclass(slots=True)
class _Qti12Reader:
    root: ET.Element
    losses: PicturesAndLosses
    responses: list[ET.Element] = dataclasses.field(init=False)
    rules: list[_ScoringRule] = dataclasses.field(init=False)
    notes: dict[str, str] = dataclasses.field(init=False)
    shown: ET.Element = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.responses = list(elements_below(self.root, *_RESPONSES))
        first_declared = itertools.islice(elements_below(self.root, "decvar"), 1)
        score_variables = _SCORES | {
            attribute_in_any_spelling(node, "varname").lower() for node in first_declared
        }
        self.rules = [
            _scoring_rule(n, score_variables) for n in elements_below(self.root, "respcondition")
        ]
        self.notes = {
            attribute_in_any_spelling(node, "ident"): self._text(node)
            for node in elements_below(self.root, "itemfeedback")
        }

    def read_item(self, name: str) -> Item:
        """Return the question; raises ItemSkippedError."""
        presentation = next(elements_below(self.root, "presentation"), None)
        if presentation is None:
            raise ItemSkippedError("it has no text")
        if next(elements_below(presentation, *_OTHERS), None) is not None:
            raise ItemSkippedError("it is answered in a drawing, or in a way of its own")
        if not self.responses:
            raise ItemSkippedError("nothing is asked in it")
        self.shown = presentation
        general_feedback = [self.notes[n] for n in self.notes if n in _GENERAL]
        read = self._choose_reader()
        stem = "" if read == self._read_cloze else self._text(presentation)
        explanation = "\n\n".join(filter(None, general_feedback))
        converted = read(Item(name, "single", stem, explanation=explanation))
        if not converted.stem:
            raise ItemSkippedError("it has no text")
        feedback = next((self.notes[n] for n in self.notes if n in _MISSED), "")
        converted = add_default_feedback_as_mistake(converted, feedback, self.losses)
        report_unused_feedback(converted, self.notes.values(), self.losses)
        return converted

    def _choose_reader(self) -> Callable[[Item], Item]:
        question_type, response_kind = self._question_type(), qti3_element_name(self.responses[0])
        if "essay" in question_type or "file_upload" in question_type:
            raise ItemSkippedError("it is an essay or an upload, which no rule can judge")
        if "calculated" in question_type:
            raise ItemSkippedError("its numbers are drawn and computed by another program")
        has_choices = response_kind == "response_lid" and (
            "blank" in question_type or "drop" in question_type
        )
        if has_choices or (response_kind == "response_str" and "multiple_blanks" in question_type):
            return self._read_cloze
        if "matching" in question_type or (len(self.responses) > 1 and self._have_same_choices()):
            return self._read_matching
        if len(self.responses) > 1:
            raise ItemSkippedError("it asks several questions at once: divide it")
        if response_kind == "response_lid":
            return self._read_choices
        bounds = next(elements_below(self.root, "vargte", "varlte", "vargt", "varlt"), None)
        is_numeric = (
            bounds is not None or "numeric" in question_type or response_kind == "response_num"
        )
        return self._read_numeric if is_numeric else self._read_short_answer

    def _have_same_choices(self) -> bool:
        """Return whether all responses offer the same choices, as match rows do."""
        choice_sets = {
            tuple(sorted(self._text(label) for _, label in _response_labels(response)))
            for response in self.responses
        }
        return len(choice_sets) == 1 and choice_sets != {()}

    def _question_type(self) -> str:
        for field in elements_below(self.root, "qtimetadatafield"):
            entry = {qti3_element_name(part): collapsed_text(part) for part in field}
            if entry.get("fieldlabel") in {"question_type", "cc_profile"}:
                return entry.get("fieldentry", "").lower()
        return ""

    # --- choices ---

    def _read_choices(self, item: Item) -> Item:
        response = self.responses[0]
        multiple_answers = attribute_in_any_spelling(response, "rcardinality").lower() == "multiple"
        weights = (
            self._multiple_choice_percents() if multiple_answers else self._single_choice_percents()
        )
        reasons = self._choice_reasons(attribute_in_any_spelling(response, "ident"))
        choices = [
            WeightedChoice(self._text(label), weights.get(name, 0.0), reasons.get(name, ""))
            for name, label in _response_labels(response)
        ]
        return convert_weighted_choices(
            item, choices, self.losses, multiple_answers=multiple_answers
        )

    def _single_choice_percents(self) -> dict[str, float]:
        """Return the worth of each single choice, in percent of the best."""
        scores = self._response_scores(attribute_in_any_spelling(self.responses[0], "ident"))
        best = max(scores.values(), default=0.0) or 1.0
        return {name: 100 * score / best for name, score in scores.items()}

    def _multiple_choice_percents(self) -> dict[str, float]:
        """Return what each ticked choice earns or costs, in percent.

        Canvas scores hits minus misses, whatever its rules say. In other files a rule for several
        choices at once is all or nothing.
        """
        response = attribute_in_any_spelling(self.responses[0], "ident")
        required = [
            (r, _values_condition_requires(r.element, response)) for r in self.rules if r.score > 0
        ]
        joint_rules = [
            (rule.score, values)
            for rule, values in required
            if len(values) > 1 or next(elements_below(rule.element, "not"), None) is not None
        ]
        if not joint_rules:
            scores = self._response_scores(response)
            total = sum(score for score in scores.values() if score > 0) or 1.0
            return {name: 100 * score / total for name, score in scores.items()}
        right = max(joint_rules)[1]
        if not right:
            raise ItemSkippedError("it is right where nothing is ticked")
        if len({score for score, _ in joint_rules}) > 1:
            self.losses.add("its rule of credit is replaced by the nearest one")
        gain = 100 / len(right)
        cost = gain if "multiple_answers" in self._question_type() else 100.0
        choice_ids = (name for name, _ in _response_labels(self.responses[0]))
        return {name: gain if name in right else -cost for name in choice_ids}

    def _response_scores(self, response: str) -> dict[str, float]:
        """Return what each value of a response earns by itself."""
        scores: dict[str, float] = {}
        for rule in self.rules:
            for name in _values_condition_requires(rule.element, response):
                scores[name] = max(rule.score, scores.get(name, rule.score))
        return scores

    def _choice_reasons(self, response: str) -> dict[str, str]:
        """Return the feedback to each choice."""
        reasons: dict[str, str] = {}
        for rule in self.rules:
            values = _values_condition_requires(rule.element, response)
            specific_ids = [n for n in rule.said if n not in _GENERAL | _MISSED]
            texts = [self.notes[n] for n in specific_ids if self.notes.get(n)]
            if len(values) == 1 and texts:
                reasons.setdefault(values[0], texts[0])
        return reasons

    def _right_values(self, response: ET.Element) -> list[str]:
        scores = self._response_scores(attribute_in_any_spelling(response, "ident"))
        return [name for name, score in scores.items() if score > 0]

    # --- typed answers ---

    def _read_short_answer(self, item: Item) -> Item:
        name = attribute_in_any_spelling(self.responses[0], "ident")
        accepted = {w: s for w, s in self._response_scores(name).items() if s > 0}
        if not accepted:
            raise ItemSkippedError("it names no right answer")
        best = max(accepted.values())
        options = tuple(
            _weighted_option(ItemOption(word, False), score, best)
            for word, score in accepted.items()
        )
        flags = (
            attribute_in_any_spelling(n, "case").lower()
            for n in elements_below(self.root, "varequal")
        )
        case = "yes" in flags
        return dataclasses.replace(item, kind="short", options=options, case=case)

    def _read_numeric(self, item: Item) -> Item:
        scored_spans = [
            (rule.score, span)
            for rule in self.rules
            if rule.score > 0
            for span in _condition_spans(rule.element)
        ]
        if not scored_spans:
            raise ItemSkippedError("it names no right number")
        best = max(score for score, _ in scored_spans)
        options = [
            _weighted_option(ItemOption("", False, span=span), score, best)
            for score, span in scored_spans
        ]
        return dataclasses.replace(item, kind="numeric", options=tuple(options))

    # --- rows and gaps ---

    def _read_matching(self, item: Item) -> Item:
        pairs = []
        used_ids: set[str] = set()
        right_texts: dict[str, str] = {}
        for response in self.responses:
            labels = dict(_response_labels(response))
            right_texts |= {name: self._text(label) for name, label in labels.items()}
            value = next(iter(self._right_values(response)), "")
            if value not in labels:
                raise ItemSkippedError("a row of it has no partner")
            used_ids.add(value)
            pairs.append(ItemPair(self._text(response), right_texts[value]))
        pairs += [ItemPair("", text) for name, text in right_texts.items() if name not in used_ids]
        return dataclasses.replace(item, kind="match", pairs=tuple(pairs))

    def _read_cloze(self, item: Item) -> Item:
        """Read gaps to fill in or to choose for; the text contains each gap's name.

        All answers of a fill-in gap are right, although Canvas writes a rule only for the first.
        """
        chosen = "drop" in self._question_type()
        gaps = {self._gap_name(response): response for response in self.responses}
        blanks: list[ItemBlank] = []

        def replace(match: re.Match[str]) -> str:
            blanks.append(self._read_blank(gaps[html.unescape(match[1])], chosen=chosen))
            return BLANK

        spellings = {s for n in gaps for s in (n, html.escape(n, quote=False))}
        pattern = re.compile(rf"\[({'|'.join(map(re.escape, spellings))})\]")
        text = self._text(self.shown, lambda raw: pattern.sub(replace, raw))
        if len(blanks) != len(gaps):
            raise ItemSkippedError("a gap has no place in its text, or more than one")
        return build_cloze(item, text, blanks)

    def _gap_name(self, response: ET.Element) -> str:
        """Return the name of a gap in the text."""
        return attribute_in_any_spelling(response, "ident").removeprefix("response_")

    def _read_blank(self, response: ET.Element, *, chosen: bool) -> ItemBlank:
        right = self._right_values(response)
        labels = {n: self._plain_label_text(label) for n, label in _response_labels(response)}
        if qti3_element_name(response) != "response_lid":
            labels = {word: word for word in right}
        answers = [word for n, word in labels.items() if word and n in right]
        others = [word for n, word in labels.items() if word and n not in right]
        if not chosen:
            answers, others = [*answers, *others], []
        if not answers:
            raise ItemSkippedError("a gap has no word that fits")
        if len(answers) > 1 and others:
            self.losses.add("of several right choices of a gap the first is offered")
        wrong = tuple(w for w in dict.fromkeys(others) if w not in answers)
        right_words = tuple(dict.fromkeys(answers))
        return ItemBlank(right_words[:1] if wrong else right_words, "", wrong)

    # --- texts ---

    def _plain_label_text(self, label: ET.Element) -> str:
        return " ".join(plain_text(parse_markdown(self._text(label))).split())

    def _text(self, node: ET.Element, replace_text: Place | None = None) -> str:
        """Return the texts of an element, without those of responses inside it.

        `replace_text` may change them before they are read.
        """
        if next((n for n in node.iter() if qti3_element_name(n) in _MEDIA), None) is not None:
            self.losses.add("a picture or recording is left out: describe what it holds")
        texts = []
        for part in _text_nodes(node):
            is_html = "html" in attribute_in_any_spelling(part, "texttype").lower()
            raw = inner_html(part, lambda _: None) if len(part) else _raw_text(part)
            raw = replace_text(raw) if replace_text else raw
            texts.append(convert_html(raw, self.losses) if is_html else convert_plain_text(raw))
        return "\n\n".join(text for text in texts if text)


def _weighted_option(option: ItemOption, score: float, best: float) -> ItemOption:
    right, credit = credit_of_score(score, best)
    return dataclasses.replace(option, right=right, credit=credit)


def _text_nodes(node: ET.Element) -> Iterator[ET.Element]:
    for child in node:
        name = qti3_element_name(child)
        if name == "mattext":
            yield child
        elif name not in _RESPONSES and not name.startswith("render"):
            yield from _text_nodes(child)


def _raw_text(node: ET.Element) -> str:
    return "".join(node.itertext())


def _response_labels(response: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    for label in elements_below(response, "response_label"):
        yield attribute_in_any_spelling(label, "ident"), label


def _scoring_rule(node: ET.Element, score_variables: frozenset[str]) -> _ScoringRule:
    score = 0.0
    for variable in elements_below(node, "setvar"):
        name = attribute_in_any_spelling(variable, "varname") or attribute_in_any_spelling(
            variable, "variablename"
        )
        if name.lower() in score_variables:
            value = read_number(collapsed_text(variable))
            score += (
                -value
                if attribute_in_any_spelling(variable, "action").lower() == "subtract"
                else value
            )
    feedback = (
        attribute_in_any_spelling(n, "linkrefid") for n in elements_below(node, "displayfeedback")
    )
    return _ScoringRule(node, score, tuple(feedback))


def _values_condition_requires(node: ET.Element, response: str) -> list[str]:
    """Return the values that a condition requires, without those it forbids."""
    values: list[str] = []
    for child in node:
        name = qti3_element_name(child)
        if name == "varequal" and attribute_in_any_spelling(child, "respident") in {"", response}:
            values.append(collapsed_text(child))
        elif name in {"conditionvar", "and", "or"}:
            values += _values_condition_requires(child, response)
    return values


def _condition_spans(node: ET.Element) -> list[NumberRange]:
    """Return the numbers that a condition accepts.

    Raises ItemSkippedError for a range with only one end.
    """
    lows = [read_number(collapsed_text(n)) for n in elements_below(node, "vargte", "vargt")]
    highs = [read_number(collapsed_text(n)) for n in elements_below(node, "varlte", "varlt")]
    if len(lows) != len(highs):
        raise ItemSkippedError("one of its ranges has one end only: give it the other")
    ranges = [span_between(*ends) for ends in zip(lows, highs, strict=True)]
    exact = [read_number(collapsed_text(n)) for n in elements_below(node, "varequal")]
    exact_outside_ranges = (p for p in exact if not any(r.low <= p <= r.high for r in ranges))
    return [*ranges, *(span_around(point, 0.0) for point in exact_outside_ranges)]
