"""Read QTI 2.1 and 3.0."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from app.import_export.formats import qti12_reader
from app.import_export.formats.metadata_tags import apply_tags
from app.import_export.formats.partial_credit import WeightedChoice, convert_weighted_choices
from app.import_export.formats.qti_elements import (
    attribute_in_any_spelling,
    collapsed_text,
    elements_below,
    first_below,
    inner_html,
    is_hint_element,
    qti3_element_name,
)
from app.import_export.items import (
    BLANK,
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    Kind,
    NumberRange,
    UnusableFileError,
    credit_of_score,
    format_significant_digits,
)
from app.import_export.text_conversion import (
    PicturesAndLosses,
    SourceItem,
    build_cloze,
    convert_html,
    read_number,
    read_source_items,
    report_unused_feedback,
    span_around,
    span_between,
    split_unit_from_stem,
)
from app.import_export.xml_files import XmlDocument, read_archive_files, read_xml


@dataclasses.dataclass(frozen=True, slots=True)
class ResponseDeclaration:
    """One response declaration: right values, and the score of values."""

    base_type: str
    correct_values: tuple[str, ...]
    mapped_scores: tuple[tuple[str, float], ...]
    case_sensitive: bool

    @property
    def full_mark_values(self) -> tuple[str, ...]:
        """The values with a full mark, by the mapping or as declared."""
        best = max((w for _, w in self.mapped_scores), default=0.0)
        best_values = [v for v, w in self.mapped_scores if w == best > 0]
        return tuple(dict.fromkeys((*self.correct_values, *best_values)))

    @property
    def partial_credit_by_value(self) -> dict[str, float]:
        """The values with partial credit, and how much."""
        best = max((w for _, w in self.mapped_scores), default=0.0)
        credit_by_value = {
            v: credit_of_score(w, best).partial_credit for v, w in self.mapped_scores
        }
        return {
            v: credit
            for v, credit in credit_by_value.items()
            if credit and v not in self.full_mark_values
        }


def response_declarations(root: ET.Element) -> dict[str, ResponseDeclaration]:
    """Return the response declarations of an item by identifier."""
    return {
        attribute_in_any_spelling(node, "identifier"): _read_response(node)
        for node in elements_below(root, "response-declaration")
    }


def _read_response(node: ET.Element) -> ResponseDeclaration:
    correct_response = first_below(node, "correct-response")
    correct = (
        ()
        if correct_response is None
        else tuple(collapsed_text(v) for v in elements_below(correct_response, "value"))
    )
    entries = list(elements_below(node, "map-entry"))
    mapped_scores = tuple(
        (
            attribute_in_any_spelling(e, "map-key"),
            read_number(attribute_in_any_spelling(e, "mapped-value")),
        )
        for e in entries
    )
    case_sensitive = any(attribute_in_any_spelling(e, "case-sensitive") == "true" for e in entries)
    base_type = attribute_in_any_spelling(node, "base-type")
    return ResponseDeclaration(
        base_type, tuple(c for c in correct if c), mapped_scores, case_sensitive
    )


def weigh_choices(
    root: ET.Element, response: ResponseDeclaration, *, single: bool
) -> dict[str, float]:
    """Return what each choice earns or costs, in percent of the mark.

    If a mapping is used, its values count; otherwise the declared answer is all or nothing.
    """
    right = dict.fromkeys(response.correct_values or response.full_mark_values, 100.0)
    if single:
        return {name: 100 * part for name, part in response.partial_credit_by_value.items()} | right
    gains = [worth for _, worth in response.mapped_scores if worth > 0]
    if gains and _is_mapped(root):
        return {name: 100 * worth / sum(gains) for name, worth in response.mapped_scores}
    names = (
        attribute_in_any_spelling(n, "identifier") for n in elements_below(root, "simple-choice")
    )
    return dict.fromkeys(names, -100.0) | dict.fromkeys(right, 100 / len(right))


def _is_mapped(root: ET.Element) -> bool:
    """Return whether the score is the sum of a mapping."""
    processing = first_below(root, "response-processing")
    template = "" if processing is None else attribute_in_any_spelling(processing, "template")
    return "map_response" in template or first_below(root, "map-response") is not None


def text_entry_options(
    root: ET.Element, response: ResponseDeclaration, feedback_by_id: dict[str, str], unit: str
) -> tuple[ItemOption, ...]:
    """Return the accepted answers of a text entry, and the others that it has feedback for.

    Conditions that compare with a value come first, as our export writes them; then the mapping and
    the declared answer.
    """
    options = _options_from_conditions(root, response, feedback_by_id, unit)
    if options:
        return tuple(sorted(options, key=lambda o: not o.right))
    test = first_below(root, "equal")
    right = (
        response.correct_values[:1] if response.base_type != "string" else response.full_mark_values
    )
    partial = response.partial_credit_by_value
    options = [_build_option(value, 1.0, "", response, test, unit) for value in right]
    options += [
        _build_option(value, partial.get(value, 0.0), "", response, test, unit)
        for value, _ in response.mapped_scores
        if value not in right and (value in partial or response.base_type == "string")
    ]
    return tuple(options)


def _options_from_conditions(
    root: ET.Element, response: ResponseDeclaration, feedback_by_id: dict[str, str], unit: str
) -> list[ItemOption]:
    conditions = []
    for branch in elements_below(root, "response-if", "response-else-if"):
        test = branch[0] if len(branch) else None
        if test is None or qti3_element_name(test) not in {"equal", "string-match"}:
            continue
        value = collapsed_text(first_below(test, "base-value"))
        if not value:
            continue
        score, note = 0.0, ""
        for outcome in elements_below(branch, "set-outcome-value"):
            outcome_value = collapsed_text(first_below(outcome, "base-value"))
            if attribute_in_any_spelling(outcome, "identifier") == "SCORE":
                score = read_number(outcome_value)
            elif outcome_value in feedback_by_id:
                note = feedback_by_id[outcome_value]
        conditions.append((value, score, note, test))
    best = max((score for _, score, _, _ in conditions), default=0.0)
    return [
        _build_option(value, score / best if best > 0 else 0.0, note, response, test, unit)
        for value, score, note, test in conditions
    ]


def _build_option(
    value: str,
    score_share: float,
    feedback: str,
    response: ResponseDeclaration,
    test: ET.Element | None,
    unit: str,
) -> ItemOption:
    """Return the option for a value; `score` is its share of the full score."""
    right, credit = credit_of_score(score_share, 1.0)
    if response.base_type not in {"float", "integer"}:
        return ItemOption(value, right, feedback, credit=credit)
    span = _tested_span(read_number(value), test, unit)
    return ItemOption("", right, feedback, span, credit)


def _tested_span(center: float, test: ET.Element | None, unit: str) -> NumberRange:
    """Return the numbers that a test accepts for `center`; without tolerance only that."""
    mode = "" if test is None else attribute_in_any_spelling(test, "tolerance-mode")
    if test is None or mode not in {"absolute", "relative"}:
        return span_around(center, 0.0, unit)
    tolerances = [
        read_number(part) for part in attribute_in_any_spelling(test, "tolerance").split()
    ] or [0.0]
    unit_size = abs(center) / 100 if mode == "relative" else 1.0
    below, above = tolerances[0] * unit_size, tolerances[-1] * unit_size
    return span_between(center - below, center + above, unit)


_ITEM = "assessment-item"
_ITEMS = ("item", "assessmentItem", "qti-assessment-item")
_ASIDE = {"end-attempt-interaction", "media-interaction"}
_GAPS = {"text-entry-interaction", "inline-choice-interaction"}
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg")
_BASE = "$IMS-CC-FILEBASE$"  # Canvas's placeholder for its file folder
_EXPLAINED = "EXPLANATION"
_MISTAKEN = "MISTAKE"


def read_qti(data: bytes) -> ImportResult:
    """Read the items of a QTI file or of a zipped package; raises UnusableFileError."""
    if not data.startswith(b"PK"):
        document = read_xml(data, *_ITEMS)
        sources = list(_items_in("", document, {}))
        if not sources:
            name = qti3_element_name(document.root)
            raise UnusableFileError(f"The file begins with <{name}>, not with an item.")
        return read_source_items(sources)
    pictures = {f.path: f.content for ending in _PICTURES for f in read_archive_files(data, ending)}
    sources, unreadable_files = [], []
    for file in read_archive_files(data, ".xml"):
        try:
            sources += _items_in(file.path, read_xml(file.content, *_ITEMS), pictures)
        except UnusableFileError as error:
            unreadable_files.append(ItemRemark(file.path, 0, str(error)))
    if not sources and not unreadable_files:
        raise UnusableFileError("The package holds no items.")
    result = read_source_items(sources)
    return dataclasses.replace(result, refused=(*unreadable_files, *result.refused))


def _items_in(
    path: str, document: XmlDocument, pictures: Mapping[str, bytes]
) -> Iterator[SourceItem]:
    """Yield the items of a document; `path` is its path in a package, else empty."""
    root, lines = document.root, itertools.chain(document.lines, itertools.repeat(0))
    find_picture = functools.partial(_find_picture, path, pictures)
    prefix = f"{path}: " if path else ""
    if qti3_element_name(root) == qti12_reader.ROOT:
        for item, line in zip(qti12_reader.find_items(root), lines, strict=False):
            read = functools.partial(qti12_reader.read_item, item.unique_name, item.element)
            yield SourceItem(f"{prefix}{item.title}", line, read, find_picture)
    elif qti3_element_name(root) == _ITEM:
        title = (
            attribute_in_any_spelling(root, "title")
            or attribute_in_any_spelling(root, "identifier")
            or path
        )
        label = f"{prefix}{title}" if title != path else path
        yield SourceItem(
            label, next(lines), functools.partial(_read_newer_item, title, root), find_picture
        )


def _read_newer_item(name: str, root: ET.Element, losses: PicturesAndLosses) -> Item:
    return _QtiItemReader(root, losses).read_item(name)


def _find_picture(path: str, pictures: Mapping[str, bytes], address: str) -> bytes | None:
    """Return a picture of a package by the name that an item at `path` uses."""
    name = unquote(address).partition("?")[0]
    path_from_root = name.removeprefix(_BASE).lstrip("/")
    possible_paths = (
        normpath(join(dirname(path), name)),
        path_from_root,
        f"web_resources/{path_from_root}",
    )
    return next(
        (pictures[known_path] for known_path in possible_paths if known_path in pictures),
        None,
    )


@dataclasses.dataclass(slots=True)
class _QtiItemReader:
    """Reads one item; what Markdown cannot express is recorded in `losses`."""

    root: ET.Element
    losses: PicturesAndLosses
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    responses: dict[str, ResponseDeclaration] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.responses = response_declarations(self.root)

    def read_item(self, name: str) -> Item:
        """Return the question; raises ItemSkippedError."""
        if attribute_in_any_spelling(self.root, "adaptive") == "true":
            raise ItemSkippedError("it is adaptive: it changes between attempts")
        if first_below(self.root, "template-declaration") is not None:
            raise ItemSkippedError("its values are drawn by a program of its own")
        body = first_below(self.root, "item-body")
        if body is None:
            raise ItemSkippedError("it has no body")
        self._collect_modal_feedback()
        interactions = self._find_interactions(body)
        read = self._find_reader(interactions)
        item = Item(
            name,
            "single",
            "",
            hints=tuple(
                self._text(n) for n in elements_below(body, "rubric-block") if is_hint_element(n)
            ),
            explanation=self.notes.get(_EXPLAINED, ""),
            mistake=self.notes.get(_MISTAKEN, ""),
        )
        converted = read(item, body, interactions)
        if not converted.stem:
            raise ItemSkippedError("it has no text")
        report_unused_feedback(converted, self.notes.values(), self.losses)
        tags = attribute_in_any_spelling(self.root, "label").split("; ")
        return apply_tags(converted, tuple(t for t in tags if t))

    def _find_interactions(self, body: ET.Element) -> list[ET.Element]:
        return [
            n
            for n in body.iter()
            if qti3_element_name(n).endswith("-interaction") and qti3_element_name(n) not in _ASIDE
        ]

    def _collect_modal_feedback(self) -> None:
        for node in elements_below(self.root, "modal-feedback"):
            self.notes[attribute_in_any_spelling(node, "identifier")] = self._text(node)

    def _find_reader(
        self, interactions: list[ET.Element]
    ) -> Callable[[Item, ET.Element, list[ET.Element]], Item]:
        kinds = [qti3_element_name(n) for n in interactions]
        if kinds and set(kinds) <= _GAPS:
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

    def _text(self, node: ET.Element) -> str:
        return convert_html(inner_html(node, self._drop_interaction_or_media), self.losses)

    def _drop_interaction_or_media(self, node: ET.Element) -> str | None:
        """Return an empty string for interactions and media within a text."""
        name = qti3_element_name(node)
        if name in {"object", "audio", "video", "svg", "picture", "media-interaction"}:
            self.losses.add("a picture or recording is left out: say what it holds")
            return ""
        if name == "rubric-block" and "candidate" in attribute_in_any_spelling(node, "view"):
            self.losses.add("a note beside the question is left out: add it if needed")
        return "" if name.endswith("-interaction") else None

    def _stem(self, body: ET.Element, interaction: ET.Element) -> str:
        prompt = first_below(interaction, "prompt")
        parts = [self._text(body), self._text(prompt) if prompt is not None else ""]
        return "\n\n".join(p for p in parts if p)

    def _find_response(self, node: ET.Element) -> ResponseDeclaration:
        response = self.responses.get(attribute_in_any_spelling(node, "response-identifier"))
        if response is None or not response.full_mark_values:
            raise ItemSkippedError("it does not say which answer is right")
        return response

    # --- by type ---

    def _read_choices(self, item: Item, body: ET.Element, interactions: list[ET.Element]) -> Item:
        interaction = interactions[0]
        response = self._find_response(interaction)
        single = attribute_in_any_spelling(interaction, "max-choices") == "1"
        weights = weigh_choices(self.root, response, single=single)
        choices = [
            WeightedChoice(
                self._text(n),
                weights.get(attribute_in_any_spelling(n, "identifier"), 0.0),
                self._choice_feedback(n),
            )
            for n in elements_below(interaction, "simple-choice")
        ]
        if any(not choice.text for choice in choices):
            raise ItemSkippedError("its options are pictures")
        item = dataclasses.replace(item, stem=self._stem(body, interaction))
        converted = convert_weighted_choices(
            item, choices, self.losses, multiple_answers=not single
        )
        is_order_fixed = (
            converted.kind != "true-false"
            and attribute_in_any_spelling(interaction, "shuffle") == "false"
        )
        return dataclasses.replace(converted, shuffle=not is_order_fixed)

    def _choice_feedback(self, choice: ET.Element) -> str:
        inline = first_below(choice, "feedback-inline", "feedback-block")
        if inline is not None:
            return self._text(inline)
        return self.notes.get(attribute_in_any_spelling(choice, "identifier"), "")

    def _feedback_by_identifier(
        self, interaction: ET.Element, choice_element: str
    ) -> dict[str, str]:
        """Return the feedback on each step or match row."""
        notes = {}
        for node in elements_below(interaction, choice_element):
            feedback = first_below(node, "feedback-inline", "feedback-block")
            note = "" if feedback is None else self._text(feedback)
            notes[attribute_in_any_spelling(node, "identifier")] = note
        return notes

    def _read_ordering(self, item: Item, body: ET.Element, interactions: list[ET.Element]) -> Item:
        interaction = interactions[0]
        steps = {
            attribute_in_any_spelling(n, "identifier"): self._text(n)
            for n in elements_below(interaction, "simple-choice")
        }
        notes = self._feedback_by_identifier(interaction, "simple-choice")
        right = [i for i in self._find_response(interaction).correct_values if i in steps]
        wrong = [ItemOption(t, False, notes[i]) for i, t in steps.items() if i not in right]
        return dataclasses.replace(
            item,
            kind="order",
            stem=self._stem(body, interaction),
            steps=tuple(ItemOption(steps[i], True, notes[i]) for i in right),
            options=tuple(wrong),
        )

    def _read_matching(self, item: Item, body: ET.Element, interactions: list[ET.Element]) -> Item:
        interaction = interactions[0]
        sets = list(elements_below(interaction, "simple-match-set"))
        if len(sets) != 2:
            raise ItemSkippedError("it does not match two sets")
        lefts, rights = (
            {
                attribute_in_any_spelling(n, "identifier"): self._text(n)
                for n in elements_below(s, "simple-associable-choice")
            }
            for s in sets
        )
        answers = [pair.split() for pair in self._find_response(interaction).correct_values]
        matches = [(a, b) for a, b in (p for p in answers if len(p) == 2) if a in lefts]
        if len({a for a, _ in matches}) != len(matches) or len(matches) != len(lefts):
            raise ItemSkippedError("not every left thing goes with one right thing")
        notes = self._feedback_by_identifier(interaction, "simple-associable-choice")
        pairs = [ItemPair(lefts[a], rights.get(b, ""), notes[a]) for a, b in matches]
        used_rights = {b for _, b in matches}
        pairs += [ItemPair("", text) for i, text in rights.items() if i not in used_rights]
        stem = self._stem(body, interaction)
        return dataclasses.replace(item, kind="match", stem=stem, pairs=tuple(pairs))

    def _read_cloze_or_text_entry(
        self, item: Item, body: ET.Element, interactions: list[ET.Element]
    ) -> Item:
        single = self._sole_text_entry(body, interactions)
        if single is not None:
            return self._read_text_entry(item, body, single)
        blanks = [self._read_blank(n) for n in interactions]

        def gap(node: ET.Element) -> str | None:
            return (
                BLANK if qti3_element_name(node) in _GAPS else self._drop_interaction_or_media(node)
            )

        text = convert_html(inner_html(body, gap), self.losses)
        return build_cloze(item, text, blanks)

    def _sole_text_entry(
        self, body: ET.Element, interactions: list[ET.Element]
    ) -> ET.Element | None:
        """Return the only text entry, if its paragraph has nothing else."""
        if len(interactions) != 1 or qti3_element_name(interactions[0]) != "text-entry-interaction":
            return None
        parent = next((n for n in body.iter() if interactions[0] in list(n)), body)
        return interactions[0] if not collapsed_text(parent) and parent is not body else None

    def _read_text_entry(self, item: Item, body: ET.Element, interaction: ET.Element) -> Item:
        response = self._find_response(interaction)
        stem, unit = split_unit_from_stem(self._text(body))
        options = text_entry_options(self.root, response, self.notes, unit)
        kind: Kind = "numeric" if response.base_type in {"float", "integer"} else "short"
        if first_below(self.root, "gt", "gte", "lte", "equal-rounded") is not None:
            self.losses.add("its range is not read: widen the declared number by hand")
        if kind == "short":
            stem = self._text(body)
        case = response.case_sensitive
        return dataclasses.replace(item, kind=kind, stem=stem, options=options, case=case)

    def _read_blank(self, node: ET.Element) -> ItemBlank:
        response = self._find_response(node)
        if qti3_element_name(node) == "text-entry-interaction":
            hint = attribute_in_any_spelling(node, "placeholder-text")
            right = [" ".join(r.split()) for r in response.full_mark_values]
            if response.base_type in {"float", "integer"}:
                right = [w for r in right for w in (r, format_significant_digits(read_number(r)))]
                self.losses.add("a number in a gap is compared as words: add what else counts")
            if response.partial_credit_by_value:
                self.losses.add("a word of a gap that is partly right counts as wrong")
            return ItemBlank(tuple(dict.fromkeys(right)), hint)
        choices = {
            attribute_in_any_spelling(n, "identifier"): collapsed_text(n)
            for n in elements_below(node, "inline-choice")
        }
        right = [choices[r] for r in response.full_mark_values if choices.get(r)]
        wrong = tuple(w for w in dict.fromkeys(choices.values()) if w not in right)
        return ItemBlank(tuple(right[:1] if wrong else right), "", wrong)

    def _read_gap_match(self, item: Item, body: ET.Element, interactions: list[ET.Element]) -> Item:
        """Read words to drag into gaps as words to type."""
        interaction = interactions[0]
        texts = {
            attribute_in_any_spelling(n, "identifier"): collapsed_text(n)
            for n in elements_below(interaction, "gap-text")
        }
        answers = [pair.split() for pair in self._find_response(interaction).correct_values]
        word_by_gap = {p[1]: texts.get(p[0], "") for p in answers if len(p) == 2}
        blanks: list[ItemBlank] = []

        def gap(node: ET.Element) -> str | None:
            name = qti3_element_name(node)
            if name == "gap":
                blanks.append(
                    ItemBlank((word_by_gap.get(attribute_in_any_spelling(node, "identifier"), ""),))
                )
                return BLANK
            if name in {"gap-text", "gap-img", "prompt"}:
                return ""
            return (
                None if name == "gap-match-interaction" else self._drop_interaction_or_media(node)
            )

        text = convert_html(inner_html(body, gap), self.losses)
        if any(not b.answers[0] for b in blanks):
            raise ItemSkippedError("a gap has no word that fits")
        self.losses.add("the words to choose from are not shown; they are typed")
        prompt = first_below(interaction, "prompt")
        prompt_text = self._text(prompt) if prompt is not None else ""
        return build_cloze(item, "\n\n".join(p for p in (prompt_text, text) if p), blanks)
