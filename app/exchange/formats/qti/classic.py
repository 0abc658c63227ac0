"""QTI 1.2, as Canvas and others pack their quizzes, read into neutral items."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from app.exchange.formats.qti.names import given, name_of, within, words
from app.exchange.items import BLANK, Blank, Item, NotCarried, Option, Pair, worth
from app.exchange.markup.hypertext import from_plain
from app.exchange.markup.texts import (
    Losses,
    any_other,
    read_html,
    read_number,
    read_text,
    span_around,
    span_between,
)

ROOT = "questestinterop"
_RESPONSES = frozenset({"response_lid", "response_str", "response_num"})
_OTHERS = frozenset({"response_xy", "response_grp", "response_extension"})
_PLACED = re.compile(r"\[([\w .-]{1,60})\]")
_GENERAL = frozenset({"general_fb", "correct_fb"})
_MISSED = frozenset({"general_incorrect_fb", "incorrect_fb"})


class _Rule(NamedTuple):
    """A condition of the scoring: what it asks for, what it adds, what it says."""

    node: ET.Element
    score: float
    said: tuple[str, ...]


def items_in(root: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    """Every item of a file with the words that name it."""
    for node in within(root, "item"):
        yield given(node, "title") or given(node, "ident"), node


def read_item(name: str, node: ET.Element, losses: Losses) -> Item:
    """One item; raises NotCarried."""
    return _Reader(node, losses).item(name)


@dataclasses.dataclass(slots=True)
class _Reader:
    root: ET.Element
    losses: Losses
    responses: list[ET.Element] = dataclasses.field(init=False)
    rules: list[_Rule] = dataclasses.field(init=False)
    notes: dict[str, str] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.responses = list(within(self.root, *_RESPONSES))
        self.rules = [_rule(node) for node in within(self.root, "respcondition")]
        self.notes = {
            given(node, "ident"): self._text(node)
            for node in within(self.root, "itemfeedback")
        }

    def item(self, name: str) -> Item:
        """The question; raises NotCarried."""
        shown = next(within(self.root, "presentation"), None)
        if shown is None:
            raise NotCarried("it has no text")
        if next(within(shown, *_OTHERS), None) is not None:
            raise NotCarried("it is answered in a drawing, or in a way of its own")
        if not self.responses:
            raise NotCarried("nothing is asked in it")
        explained = [self.notes[n] for n in self.notes if n in _GENERAL]
        item = Item(
            name,
            "single",
            self._text(shown),
            explanation="\n\n".join(filter(None, explained)),
        )
        made = self._kind()(item)
        if not made.stem:
            raise NotCarried("it has no text")
        missed = next((self.notes[n] for n in self.notes if n in _MISSED), "")
        return any_other(made, missed, self.losses)

    def _kind(self) -> Callable[[Item], Item]:
        named = self._type()
        if "essay" in named or "file_upload" in named:
            raise NotCarried("it is an essay or an upload, which no rule can judge")
        if len(self.responses) > 1:
            return self._gaps if "blank" in named or "drop" in named else self._match
        if name_of(self.responses[0]) == "response_lid":
            return self._choice
        bounds = next(within(self.root, "vargte", "varlte", "vargt", "varlt"), None)
        return (
            self._numeric if bounds is not None or "numeric" in named else self._short
        )

    def _type(self) -> str:
        for field in within(self.root, "qtimetadatafield"):
            entry = {name_of(part): words(part) for part in field}
            if entry.get("fieldlabel") == "question_type":
                return entry.get("fieldentry", "").lower()
        return ""

    def _choice(self, item: Item) -> Item:
        scores, reasons = self._chosen(self.responses[0])
        several = given(self.responses[0], "rcardinality").lower() == "multiple"
        # Of several each counts by itself; of one choice less than the best is a part.
        best = (min if several else max)(scores.values(), default=0.0)
        options = tuple(
            _weighed(
                Option(self._text(label), False, reasons.get(name, "")),
                scores.get(name, 0.0),
                best,
            )
            for name, label in _labels(self.responses[0])
        )
        said = {o.text.strip(" .").lower() for o in options}
        if several or sum(o.right for o in options) > 1:
            return dataclasses.replace(item, kind="multiple", options=options)
        if said == {"true", "false"}:
            return dataclasses.replace(item, kind="true-false", options=options)
        return dataclasses.replace(item, options=options)

    def _chosen(self, response: ET.Element) -> tuple[dict[str, float], dict[str, str]]:
        """The choices that earn something, and what is said to who takes one."""
        scores: dict[str, float] = {}
        reasons: dict[str, str] = {}
        for rule in self.rules:
            wanted = _equals(rule.node, given(response, "ident"))
            if rule.score > 0:
                scores |= {n: max(rule.score, scores.get(n, 0.0)) for n in wanted}
            said = [self.notes[n] for n in rule.said if self.notes.get(n)]
            own = [n for n in rule.said if n not in _GENERAL | _MISSED]
            if len(wanted) == 1 and said and own:
                reasons.setdefault(wanted[0], said[0])
        return scores, reasons

    def _short(self, item: Item) -> Item:
        name = given(self.responses[0], "ident")
        accepted: dict[str, float] = {}
        for rule in self.rules:
            for word in _equals(rule.node, name) if rule.score > 0 else ():
                accepted[word] = max(rule.score, accepted.get(word, 0.0))
        if not accepted:
            raise NotCarried("it names no right answer")
        best = max(accepted.values())
        options = tuple(
            _weighed(Option(word, False), score, best)
            for word, score in accepted.items()
        )
        return dataclasses.replace(item, kind="short", options=options)

    def _numeric(self, item: Item) -> Item:
        found = []
        for rule in self.rules:
            if rule.score <= 0:
                continue
            ends = [
                read_number(words(next(within(rule.node, *names), None)))
                for names in (("vargte", "vargt"), ("varlte", "varlt"))
                if next(within(rule.node, *names), None) is not None
            ]
            alone = [words(n) for n in within(rule.node, "varequal")]
            if len(ends) == 2:
                found.append((rule.score, span_between(ends[0], ends[1])))
            elif alone:
                found.append((rule.score, span_around(read_number(alone[0]), 0.0)))
        if not found:
            raise NotCarried("it names no right number")
        best = max(score for score, _ in found)
        options = [
            _weighed(Option("", False, span=span), score, best) for score, span in found
        ]
        return dataclasses.replace(item, kind="numeric", options=tuple(options))

    def _match(self, item: Item) -> Item:
        pairs = []
        taken: set[str] = set()
        rights: dict[str, str] = {}
        for response in self.responses:
            labels = dict(_labels(response))
            rights |= {name: self._text(label) for name, label in labels.items()}
            wanted = next(iter(self._chosen(response)[0]), "")
            if wanted not in labels:
                raise NotCarried("a row of it has no partner")
            taken.add(wanted)
            pairs.append(Pair(self._text(response), rights[wanted]))
        pairs += [Pair("", text) for name, text in rights.items() if name not in taken]
        return dataclasses.replace(item, kind="match", pairs=tuple(pairs))

    def _gaps(self, item: Item) -> Item:
        """Gaps to fill, or to choose a word for."""
        chosen = "drop" in self._type()
        accepted: dict[str, tuple[str, ...]] = {}
        others: dict[str, tuple[str, ...]] = {}
        for response in self.responses:
            name = given(response, "ident").removeprefix("response_")
            labels = {n: words(label) for n, label in _labels(response)}
            right = self._chosen(response)[0]
            accepted[name] = tuple(labels[n] for n in labels if n in right)
            others[name] = tuple(labels[n] for n in labels if n not in right)
        blanks: list[Blank] = []

        def gap(found: re.Match[str]) -> str:
            words_ = accepted.get(found[1], ())
            if not words_:
                return found[0]
            wrong = others[found[1]] if chosen else ()
            blanks.append(Blank(words_[:1] if wrong else words_, "", wrong))
            return BLANK

        text = _PLACED.sub(gap, item.stem.replace("\\[", "[").replace("\\]", "]"))
        if not blanks or len(blanks) != len(accepted):
            raise NotCarried("a gap has no word that fits, or does not stand in it")
        head, _, rest = text.partition("\n\n")
        if not rest or BLANK in head:
            head, rest = from_plain(item.name or "Complete the text."), text
        return dataclasses.replace(
            item, kind="cloze", stem=head, text=rest, blanks=tuple(blanks)
        )

    def _text(self, node: ET.Element) -> str:
        """The texts of an element that belong to no response inside of it."""
        found = [
            read_html(_raw(part), self.losses)
            if "html" in given(part, "texttype").lower()
            else read_text(_raw(part), "moodle", self.losses)
            for part in _texts(node)
        ]
        return "\n\n".join(text for text in found if text)


def _weighed(option: Option, score: float, best: float) -> Option:
    right, credit = worth(score, best)
    return dataclasses.replace(option, right=right, credit=credit)


def _texts(node: ET.Element) -> Iterator[ET.Element]:
    for child in node:
        name = name_of(child)
        if name == "mattext":
            yield child
        elif name not in _RESPONSES and not name.startswith("render"):
            yield from _texts(child)


def _raw(node: ET.Element) -> str:
    return "".join(node.itertext())


def _labels(response: ET.Element) -> Iterator[tuple[str, ET.Element]]:
    for label in within(response, "response_label"):
        yield given(label, "ident"), label


def _rule(node: ET.Element) -> _Rule:
    score = 0.0
    for found in within(node, "setvar"):
        try:
            value = float(words(found))
        except ValueError:
            continue
        score += -value if given(found, "action").lower() == "subtract" else value
    said = (given(n, "linkrefid") for n in within(node, "displayfeedback"))
    return _Rule(node, score, tuple(said))


def _equals(node: ET.Element, response: str) -> list[str]:
    """What a response has to be for a condition, those that it may not be left out."""
    found: list[str] = []
    for child in node:
        name = name_of(child)
        if name == "varequal" and given(child, "respident") in {"", response}:
            found.append(words(child))
        elif name in {"conditionvar", "and", "or"}:
            found += _equals(child, response)
    return found
