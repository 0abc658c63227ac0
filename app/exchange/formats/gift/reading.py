"""GIFT read into neutral items."""

import dataclasses
import re
from collections.abc import Iterable, Iterator

from app.exchange.formats.afterwords import unexplained
from app.exchange.formats.gift.blocks import GiftBlock, blocks_of, parts_of, unescaped
from app.exchange.formats.tagged import has_rule, with_tags
from app.exchange.formats.weights import WeightedChoice, ordered, weighted_choices
from app.exchange.items import (
    ImportResult,
    Item,
    ItemOption,
    ItemPair,
    ItemRemark,
    ItemSkippedError,
    NumberRange,
    credit_of_score,
)
from app.exchange.markup.texts import (
    ConversionLosses,
    any_other,
    has_decimal_comma,
    read_number,
    read_text,
    read_weight,
    span_around,
    span_between,
    without_unit,
)

_FORMAT = re.compile(r"^\s*\[(html|moodle|plain|markdown)\]", re.IGNORECASE)
_WEIGHT = re.compile(r"^\s*%([-+]?\d+(?:[.,]\d+)?)%")
_ENDS, _BLANKS = ".!?:", " \t\n"
_TRUTH = re.compile(r"^\s*(T|F|TRUE|FALSE)\s*$", re.IGNORECASE)


def read_gift(text: str) -> ImportResult:
    """Every question of a GIFT file; essays and descriptions are refused."""
    items: list[Item] = []
    refused: list[ItemRemark] = []
    blocks = blocks_of(text)
    comma = any(map(has_decimal_comma, _numbers_in(blocks)))
    for block in blocks:
        losses = ConversionLosses()
        name = block.title or " ".join(unescaped(block.before).split())[:50]
        try:
            item = _GiftReader(block, losses, comma).item()
        except ItemSkippedError as error:
            refused.append(ItemRemark(name or "(nameless)", block.line, str(error)))
            continue
        items.append(losses.noted_in(item))
    return ImportResult(tuple(items), tuple(refused))


@dataclasses.dataclass(slots=True)
class _GiftReader:
    """Reads one block; what Markdown cannot say goes to `losses`."""

    block: GiftBlock
    losses: ConversionLosses
    comma: bool  # whether the file has decimals with a comma

    def item(self) -> Item:
        """The question; raises NotCarried."""
        inside = self.block.inside
        if self.block.fault:
            raise ItemSkippedError(self.block.fault)
        if inside is None:
            raise ItemSkippedError("it asks nothing: a description has no place in a quiz")
        inside, general = _general(inside)
        if not inside.strip():
            raise ItemSkippedError("an essay cannot be judged by a program")
        item = Item(self.block.title, "single", self._stem(), line=self.block.line)
        if not item.stem:
            raise ItemSkippedError("it has no text")
        item = dataclasses.replace(item, explanation=self._text(general))
        return with_tags(unexplained(self._answered(item, inside)), self.block.tags)

    def _stem(self) -> str:
        """The text with a gap where the answers stand, unless it ended before them."""
        before, after = unescaped(self.block.before), unescaped(self.block.after)
        ended = not before.rstrip() or before.rstrip()[-1] in _ENDS
        if after.strip(_BLANKS + _ENDS) or (after.strip() and not ended):
            judged = _TRUTH.match(_split_feedback(self.block.inside or "")[0])
            at_end = not after.strip(_BLANKS + _ENDS)
            before += "" if judged and at_end else "_____"
            beside, _, below = after.partition("\n")
            if beside.lstrip().startswith("//"):
                raise ItemSkippedError(
                    "a comment stands behind its answers: put it on a line of its own"
                )
            if below.strip(_BLANKS + _ENDS) and not beside.strip(_BLANKS + _ENDS):
                self.losses.add(
                    "the words below its answers are taken for a part of it: put an "
                    "empty line above them if they are not"
                )
            return read_text((before + after).strip(), self.block.form, self.losses)
        return read_text(before.rstrip(), self.block.form, self.losses)

    def _text(self, raw: str, form: str = "") -> str:
        """An answer or a feedback, in its own format, in `form` or the question's."""
        form = form or self.block.form
        marked = _FORMAT.match(raw)
        if marked:
            form, raw = marked[1].lower(), raw[marked.end() :]
        return read_text(unescaped(raw).strip(), form, self.losses)

    def _answered(self, item: Item, inside: str) -> Item:
        head, *notes = _split_feedback(inside)
        if _TRUTH.match(head):
            return self._truth(item, head, notes)
        if inside.lstrip().startswith("#"):
            return self._numeric(item, inside.lstrip()[1:])
        if inside.lstrip().startswith(">"):
            return self._order(item, *inside.strip().split("\n"))
        (_, lead), *answers = parts_of(inside, "=~")
        return self._listed(item, answers or [("=", lead)])

    def _listed(self, item: Item, answers: list[tuple[str, str]]) -> Item:
        """Answers behind marks: pairs, words or choices."""
        if all(mark == "=" for mark, _ in answers):
            pairs = [_arrow(body) for _, body in answers]
            if len(pairs) > 1 and all(pairs):
                return self._match(item, [p for p in pairs if p])
            if len(pairs) > 1 and any(pairs):
                raise ItemSkippedError("some of its pairs have no “->” with words behind it")
            return self._short(item, answers)
        return self._choices(item, answers)

    def _truth(self, item: Item, head: str, notes: list[str]) -> Item:
        right = head.strip().upper().startswith("T")
        wrong_note, right_note = [*map(self._text, notes), "", ""][:2]
        options = tuple(
            ItemOption(word, good == right, right_note if good == right else wrong_note)
            for word, good in (("True", True), ("False", False))
        )
        return dataclasses.replace(item, kind="true-false", options=options)

    def _split(self, body: str) -> tuple[float | None, str, str]:
        """The weight, the answer and the feedback of one answer."""
        weight = None
        marked = _WEIGHT.match(body)
        if marked:
            weight, body = read_weight(marked[1]), body[marked.end() :]
        text, *notes = _split_feedback(body)
        return weight, text, self._text(notes[0]) if notes else ""

    def _choices(self, item: Item, answers: list[tuple[str, str]]) -> Item:
        weighted = []
        for mark, body in answers:
            weight, text, feedback = self._split(body)
            given = weight if weight is not None else 100.0 * (mark == "=")
            weighted.append(WeightedChoice(self._text(text), given, feedback))
        several = not any(mark == "=" for mark, _ in answers)
        return weighted_choices(
            item, weighted, self.losses, several=several, told=has_rule(self.block.tags)
        )

    def _short(self, item: Item, answers: list[tuple[str, str]]) -> Item:
        options = []
        for _, body in answers:
            weight, text, feedback = self._split(body)
            word = " ".join(unescaped(_FORMAT.sub("", text)).split())
            full = weight is None or weight >= 100
            if word == "*" and not full and feedback:
                item = any_other(item, feedback, self.losses)
                continue
            if "*" in word:
                self.losses.add(f"the pattern “{word}” is left out: add the words it stands for")
                continue
            credit = 0.0 if weight is None else credit_of_score(weight, 100)[1]
            options.append(ItemOption(word, full, feedback, credit=credit))
        return dataclasses.replace(item, kind="short", options=tuple(options))

    def _order(self, item: Item, head: str, *lines: str) -> Item:
        texts = (self._text(line, "moodle") for line in lines if line.strip())
        steps = tuple(ItemOption(text, True) for text in texts)
        item = dataclasses.replace(item, steps=steps)
        words = head.removeprefix(">").split()
        return ordered(item, words, self.block.tags, self.losses)

    def _match(self, item: Item, pairs: list[tuple[str, str]]) -> Item:
        made = tuple(ItemPair(self._text(a), self._text(b, "moodle")) for a, b in pairs)
        return dataclasses.replace(item, kind="match", pairs=made)

    def _numeric(self, item: Item, inside: str) -> Item:
        stem, unit = without_unit(item.stem)
        answers = parts_of(inside, "=~")
        # The right number may stand first without a mark.
        first = [("=", body) for _, body in answers[:1] if body.strip()]
        options: list[ItemOption] = []
        for mark, body in (*first, *answers[1:]):
            weight, text, feedback = self._split(body)
            full = mark == "=" and (weight is None or weight >= 100)
            if text.strip() in {"", "*"}:
                item = any_other(item, feedback, self.losses)
                continue
            credit = 0.0 if weight is None else credit_of_score(weight, 100)[1]
            span = _span(unescaped(text), unit, comma=self.comma)
            options.append(ItemOption("", full, feedback, span, credit))
        options.sort(key=lambda o: not o.right)
        return dataclasses.replace(item, kind="numeric", stem=stem, options=tuple(options))


def _general(inside: str) -> tuple[str, str]:
    """The answers and the general feedback behind `####`."""
    found = re.search(r"(?<!\\)####", inside)
    if found is None:
        return inside, ""
    return inside[: found.start()], inside[found.end() :]


def _split_feedback(body: str) -> list[str]:
    return [words for _, words in parts_of(body, "#")]


def _arrow(body: str) -> tuple[str, str] | None:
    left, arrow, right = body.partition("->")
    return (left, right) if arrow and right.strip() else None


def _numbers_in(blocks: Iterable[GiftBlock]) -> Iterator[str]:
    """The numbers of all numeric answers of a file."""
    for block in blocks:
        inside = (block.inside or "").strip()
        if inside.startswith("#"):
            yield from re.findall(r"[\d.,]*,\d+", inside)


def _span(text: str, unit: str, *, comma: bool) -> NumberRange:
    if ".." in text:
        low, high = (read_number(p, comma=comma) for p in text.split("..", 1))
        return span_between(low, high, unit)
    center, _, tolerance = text.partition(":")
    half = read_number(tolerance, comma=comma) if tolerance.strip() else 0.0
    return span_around(read_number(center, comma=comma), half, unit)
