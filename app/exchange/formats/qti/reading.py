"""QTI items read into neutral items."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from posixpath import dirname, join, normpath
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from app.exchange.formats.archive import files_in
from app.exchange.formats.decoding import XmlDocument, read_xml
from app.exchange.formats.qti import classic
from app.exchange.formats.qti.names import (
    first,
    given,
    is_hint,
    name_of,
    to_fragment,
    within,
    words,
)
from app.exchange.formats.qti.responses import (
    ResponseDeclaration,
    responses,
    typed,
    weigh_choices,
)
from app.exchange.formats.tagged import with_tags
from app.exchange.formats.weights import WeightedChoice, weighted_choices
from app.exchange.items import (
    BLANK,
    ImportResult,
    Item,
    ItemBlank,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    Kind,
    UnusableFileError,
    shown,
)
from app.exchange.markup.pictures import ImageCollector
from app.exchange.markup.texts import (
    ConversionLosses,
    read_html,
    read_number,
    report_unused_feedback,
    without_unit,
)

_ITEM = "assessment-item"
_ITEMS = ("item", "assessmentItem", "qti-assessment-item")
_ASIDE = {"end-attempt-interaction", "media-interaction"}
_GAPS = {"text-entry-interaction", "inline-choice-interaction"}
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg")
_BASE = "$IMS-CC-FILEBASE$"  # what Canvas writes for its folder of files
_EXPLAINED = "EXPLANATION"
_MISTAKEN = "MISTAKE"


def read_qti(data: bytes) -> ImportResult:
    """The items of a QTI file or of a zipped package; raises Unusable."""
    if not data.startswith(b"PK"):
        document = read_xml(data, *_ITEMS)
        found = list(_items_of("", document))
        if not found:
            begin = name_of(document.root)
            raise UnusableFileError(f"The file begins with <{begin}>, not with an item.")
        return _reading(found, [], {})
    beside = {p: c for end in _PICTURES for p, c in files_in(data, end)}
    items: list[_LocatedItem] = []
    broken: list[ItemRemark] = []
    for path, content in files_in(data, ".xml"):
        try:
            items += _items_of(path, read_xml(content, *_ITEMS))
        except UnusableFileError as error:
            broken.append(ItemRemark(path, 0, str(error)))
    if not items and not broken:
        raise UnusableFileError("The package holds no items.")
    return _reading(items, broken, beside)


class _LocatedItem(NamedTuple):
    """An item in a file: where, what it is called, and what reads it."""

    path: str
    line: int
    title: str
    read: Callable[[ConversionLosses], Item]


def _items_of(path: str, document: XmlDocument) -> Iterator[_LocatedItem]:
    root = document.root
    lines = itertools.chain(document.lines, itertools.repeat(0))
    if name_of(root) == classic.ROOT:
        found = zip(classic.items_in(root), lines, strict=False)
        for (title, name, node), line in found:
            read = functools.partial(classic.read_item, name, node)
            yield _LocatedItem(path, line, title, read)
    elif name_of(root) == _ITEM:
        title = given(root, "title") or given(root, "identifier") or path
        read = functools.partial(_newer, title, root)
        yield _LocatedItem(path, next(lines), title, read)


def _newer(name: str, root: ET.Element, losses: ConversionLosses) -> Item:
    return _QtiItemReader(root, losses).item(name)


def _album(path: str, beside: Mapping[str, bytes]) -> ImageCollector:
    """The pictures of a package as an item at `path` names them."""

    def find(address: str) -> bytes | None:
        name = unquote(address).partition("?")[0]
        rest = name.removeprefix(_BASE).lstrip("/")
        places = (normpath(join(dirname(path), name)), rest, f"web_resources/{rest}")
        return next((beside[place] for place in places if place in beside), None)

    return ImageCollector(find)


def _reading(
    found: list[_LocatedItem], refused: list[ItemRemark], beside: Mapping[str, bytes]
) -> ImportResult:
    items: list[Item] = []
    for path, line, title, read in found:
        losses = ConversionLosses(_album(path, beside))
        try:
            item = read(losses)
        except ItemSkippedError as error:
            where = f"{path}: {title}" if path and title != path else title
            refused.append(ItemRemark(where, line, str(error)))
            continue
        items.append(losses.noted_in(dataclasses.replace(item, line=line)))
    return ImportResult(tuple(items), tuple(refused))


@dataclasses.dataclass(slots=True)
class _QtiItemReader:
    """Reads one item; what Markdown cannot say goes to `losses`."""

    root: ET.Element
    losses: ConversionLosses
    notes: dict[str, str] = dataclasses.field(default_factory=dict)
    responses: dict[str, ResponseDeclaration] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.responses = responses(self.root)

    def item(self, name: str) -> Item:
        """The question; raises NotCarried."""
        if given(self.root, "adaptive") == "true":
            raise ItemSkippedError("it is adaptive: it changes between attempts")
        if first(self.root, "template-declaration") is not None:
            raise ItemSkippedError("its values are drawn by a program of its own")
        body = first(self.root, "item-body")
        if body is None:
            raise ItemSkippedError("it has no body")
        self._collect_notes()
        found = self._interactions(body)
        read = self._reader(found)
        item = Item(
            name,
            "single",
            "",
            hints=tuple(self._text(n) for n in within(body, "rubric-block") if is_hint(n)),
            explanation=self.notes.get(_EXPLAINED, ""),
            mistake=self.notes.get(_MISTAKEN, ""),
        )
        made = read(item, body, found)
        if not made.stem:
            raise ItemSkippedError("it has no text")
        report_unused_feedback(made, self.notes.values(), self.losses)
        tags = given(self.root, "label").split("; ")
        return with_tags(made, tuple(t for t in tags if t))

    def _interactions(self, body: ET.Element) -> list[ET.Element]:
        return [
            n
            for n in body.iter()
            if name_of(n).endswith("-interaction") and name_of(n) not in _ASIDE
        ]

    def _collect_notes(self) -> None:
        for node in within(self.root, "modal-feedback"):
            self.notes[given(node, "identifier")] = self._text(node)

    def _reader(
        self, found: list[ET.Element]
    ) -> Callable[[Item, ET.Element, list[ET.Element]], Item]:
        kinds = [name_of(n) for n in found]
        if kinds and set(kinds) <= _GAPS:
            return self._gaps
        if not kinds:
            raise ItemSkippedError("it asks nothing")
        if "extended-text-interaction" in kinds:
            raise ItemSkippedError("an essay cannot be judged by a program")
        known = {
            "choice-interaction": self._choices,
            "order-interaction": self._order,
            "match-interaction": self._match,
            "gap-match-interaction": self._gap_match,
        }
        read = known.get(kinds[0])
        if read is None:
            raise ItemSkippedError(f"its {kinds[0].replace('-', ' ')} has no counterpart here")
        if len(kinds) > 1:
            raise ItemSkippedError("it asks several questions at once")
        return read

    # --- texts ---

    def _text(self, node: ET.Element) -> str:
        return read_html(to_fragment(node, self._without), self.losses)

    def _without(self, node: ET.Element) -> str | None:
        """Nothing for interactions and media within a text."""
        name = name_of(node)
        if name in {"object", "audio", "video", "svg", "picture", "media-interaction"}:
            self.losses.add("a picture or recording is left out: say what it holds")
            return ""
        if name == "rubric-block" and "candidate" in given(node, "view"):
            self.losses.add("a note beside the question is left out: add it if needed")
        return "" if name.endswith("-interaction") else None

    def _stem(self, body: ET.Element, asked: ET.Element) -> str:
        prompt = first(asked, "prompt")
        parts = [self._text(body), self._text(prompt) if prompt is not None else ""]
        return "\n\n".join(p for p in parts if p)

    def _response(self, node: ET.Element) -> ResponseDeclaration:
        found = self.responses.get(given(node, "response-identifier"))
        if found is None or not found.right:
            raise ItemSkippedError("it does not say which answer is right")
        return found

    # --- by type ---

    def _choices(self, item: Item, body: ET.Element, found: list[ET.Element]) -> Item:
        asked = found[0]
        response = self._response(asked)
        single = given(asked, "max-choices") == "1"
        weights = weigh_choices(self.root, response, single=single)
        choices = [
            WeightedChoice(self._text(n), weights.get(given(n, "identifier"), 0.0), self._note(n))
            for n in within(asked, "simple-choice")
        ]
        if any(not choice.text for choice in choices):
            raise ItemSkippedError("its options are pictures")
        item = dataclasses.replace(item, stem=self._stem(body, asked))
        made = weighted_choices(item, choices, self.losses, several=not single)
        fixed = made.kind != "true-false" and given(asked, "shuffle") == "false"
        return dataclasses.replace(made, shuffle=not fixed)

    def _note(self, choice: ET.Element) -> str:
        inline = first(choice, "feedback-inline", "feedback-block")
        if inline is not None:
            return self._text(inline)
        return self.notes.get(given(choice, "identifier"), "")

    def _notes(self, asked: ET.Element, name: str) -> dict[str, str]:
        """What is said about each of the things to be put in order or matched."""
        found = {}
        for node in within(asked, name):
            said = first(node, "feedback-inline", "feedback-block")
            note = "" if said is None else self._text(said)
            found[given(node, "identifier")] = note
        return found

    def _order(self, item: Item, body: ET.Element, found: list[ET.Element]) -> Item:
        asked = found[0]
        steps = {given(n, "identifier"): self._text(n) for n in within(asked, "simple-choice")}
        notes = self._notes(asked, "simple-choice")
        right = [i for i in self._response(asked).correct if i in steps]
        wrong = [ItemOption(t, False, notes[i]) for i, t in steps.items() if i not in right]
        return dataclasses.replace(
            item,
            kind="order",
            stem=self._stem(body, asked),
            steps=tuple(ItemOption(steps[i], True, notes[i]) for i in right),
            options=tuple(wrong),
        )

    def _match(self, item: Item, body: ET.Element, found: list[ET.Element]) -> Item:
        asked = found[0]
        sets = list(within(asked, "simple-match-set"))
        if len(sets) != 2:
            raise ItemSkippedError("it does not match two sets")
        lefts, rights = (
            {given(n, "identifier"): self._text(n) for n in within(s, "simple-associable-choice")}
            for s in sets
        )
        wanted = [pair.split() for pair in self._response(asked).correct]
        made = [(a, b) for a, b in (p for p in wanted if len(p) == 2) if a in lefts]
        if len({a for a, _ in made}) != len(made) or len(made) != len(lefts):
            raise ItemSkippedError("not every left thing goes with one right thing")
        notes = self._notes(asked, "simple-associable-choice")
        pairs = [ItemPair(lefts[a], rights.get(b, ""), notes[a]) for a, b in made]
        used = {b for _, b in made}
        pairs += [ItemPair("", text) for i, text in rights.items() if i not in used]
        stem = self._stem(body, asked)
        return dataclasses.replace(item, kind="match", stem=stem, pairs=tuple(pairs))

    def _gaps(self, item: Item, body: ET.Element, found: list[ET.Element]) -> Item:
        alone = self._standing_alone(body, found)
        if alone is not None:
            return self._typed(item, body, alone)
        blanks = [self._blank(n) for n in found]

        def gap(node: ET.Element) -> str | None:
            return BLANK if name_of(node) in _GAPS else self._without(node)

        text = read_html(to_fragment(body, gap), self.losses)
        return _cloze(item, text, tuple(blanks))

    def _standing_alone(self, body: ET.Element, found: list[ET.Element]) -> ET.Element | None:
        """The only text entry, when nothing else stands in its paragraph."""
        if len(found) != 1 or name_of(found[0]) != "text-entry-interaction":
            return None
        parent = next((n for n in body.iter() if found[0] in list(n)), body)
        return found[0] if not words(parent) and parent is not body else None

    def _typed(self, item: Item, body: ET.Element, asked: ET.Element) -> Item:
        response = self._response(asked)
        stem, unit = without_unit(self._text(body))
        options = typed(self.root, response, self.notes, unit)
        kind: Kind = "numeric" if response.base in {"float", "integer"} else "short"
        if first(self.root, "gt", "gte", "lte", "equal-rounded") is not None:
            self.losses.add("its range is not read: widen the declared number by hand")
        if kind == "short":
            stem = self._text(body)
        case = response.case
        return dataclasses.replace(item, kind=kind, stem=stem, options=options, case=case)

    def _blank(self, node: ET.Element) -> ItemBlank:
        response = self._response(node)
        if name_of(node) == "text-entry-interaction":
            hint = given(node, "placeholder-text")
            right = [" ".join(r.split()) for r in response.right]
            if response.base in {"float", "integer"}:
                right = [w for r in right for w in (r, shown(read_number(r)))]
                self.losses.add("a number in a gap is compared as words: add what else counts")
            if response.credits:
                self.losses.add("a word of a gap that is partly right counts as wrong")
            return ItemBlank(tuple(dict.fromkeys(right)), hint)
        choices = {given(n, "identifier"): words(n) for n in within(node, "inline-choice")}
        right = [choices[r] for r in response.right if choices.get(r)]
        wrong = tuple(w for w in dict.fromkeys(choices.values()) if w not in right)
        return ItemBlank(tuple(right[:1] if wrong else right), "", wrong)

    def _gap_match(self, item: Item, body: ET.Element, found: list[ET.Element]) -> Item:
        """Words to be put into gaps become words to be typed."""
        asked = found[0]
        texts = {given(n, "identifier"): words(n) for n in within(asked, "gap-text")}
        wanted = [pair.split() for pair in self._response(asked).correct]
        filled = {p[1]: texts.get(p[0], "") for p in wanted if len(p) == 2}
        blanks: list[ItemBlank] = []

        def gap(node: ET.Element) -> str | None:
            name = name_of(node)
            if name == "gap":
                blanks.append(ItemBlank((filled.get(given(node, "identifier"), ""),)))
                return BLANK
            if name in {"gap-text", "gap-img", "prompt"}:
                return ""
            return None if name == "gap-match-interaction" else self._without(node)

        text = read_html(to_fragment(body, gap), self.losses)
        if any(not b.answers[0] for b in blanks):
            raise ItemSkippedError("a gap has no word that fits")
        self.losses.add("the words to choose from are not shown; they are typed")
        prompt = first(asked, "prompt")
        lead = self._text(prompt) if prompt is not None else ""
        return _cloze(item, "\n\n".join(p for p in (lead, text) if p), tuple(blanks))


def _cloze(item: Item, text: str, blanks: tuple[ItemBlank, ...]) -> Item:
    """The first paragraph is the question when no gap stands in it."""
    head, _, rest = text.partition("\n\n")
    if not rest or BLANK in head:
        head, rest = item.name, text
    if text.count(BLANK) != len(blanks) or any(not b.answers for b in blanks):
        raise ItemSkippedError("its gaps do not fit its text")
    return dataclasses.replace(item, kind="cloze", stem=head, text=rest, blanks=blanks)
