"""The gaps of Moodle's cloze questions: `{1:SHORTANSWER:=right~wrong}`."""

import html
import re

from app.exchange.formats.gift.blocks import parts_of
from app.exchange.items import BLANK, ItemBlank, ItemSkippedError, shown
from app.exchange.markup.texts import ConversionLosses, read_number, read_weight

_HEAD = re.compile(r"\{(\d*):([A-Z_]+):")
_BODY = re.compile(r"((?:\\.|[^}\\])*)\}", re.DOTALL)
_TYPED = re.compile(r"^(?:SHORTANSWER|SA|MW)(?:_?C)?$")
_CHOSEN = re.compile(r"^(?:MULTICHOICE|MC|MULTIRESPONSE|MR)(?:_?[HVS]{0,2})$")
_NUMBER = re.compile(r"^(?:NUMERICAL|NM)$")
_WEIGHT = re.compile(r"^%(-?\d+(?:[.,]\d+)?)%")


def read_gaps(text: str, losses: ConversionLosses) -> tuple[str, tuple[ItemBlank, ...]]:
    """The text with a mark for each gap, and the gaps; raises NotCarried."""
    blanks: list[ItemBlank] = []
    marked, at = [], 0
    while head := _HEAD.search(text, at):
        body = _BODY.match(text, head.end())
        if body is None:  # nothing is closed from here on
            break
        blanks.append(_blank(head[2], html.unescape(body[1]), losses))
        marked += [text[at : head.start()], BLANK]
        at = body.end()
    if not blanks:
        raise ItemSkippedError("it has no gap that can be read")
    return "".join([*marked, text[at:]]), tuple(blanks)


def _blank(kind: str, body: str, losses: ConversionLosses) -> ItemBlank:
    if _NUMBER.match(kind):
        losses.add("the tolerance of a number in a gap is left out: add what else counts")
    elif not _TYPED.match(kind) and not _CHOSEN.match(kind):
        raise ItemSkippedError(f"gaps of the type {kind} are not known")
    answers = list(_answers(body, losses))
    right = [answer for answer, weight, _ in answers if weight >= 100]
    if _NUMBER.match(kind):
        right = [word for answer in right for word in _number(answer)]
    kept = tuple(dict.fromkeys(r for r in right if r and r != "*"))
    if not kept:
        raise ItemSkippedError("a gap has no right answer")
    said = [note for answer, weight, note in answers if answer == "*" and weight <= 0]
    others = [a for a, weight, _ in answers if weight < 100 and a and a != "*"]
    if any(0 < weight < 100 for _, weight, _ in answers):
        what = "a choice" if _CHOSEN.match(kind) else "a word"
        losses.add(f"{what} of a gap that is partly right counts as wrong")
    if _CHOSEN.match(kind) and others:
        if len(kept) > 1:
            losses.add("of several right choices of a gap the first is offered")
        wrong = tuple(o for o in dict.fromkeys(others) if o not in kept)
        return ItemBlank(kept[:1], "".join(said[:1]), wrong)
    return ItemBlank(kept, "".join(said[:1]))


def _number(answer: str) -> tuple[str, ...]:
    """A number as written and with its digits alone; its tolerance is left out."""
    word = answer.partition(":")[0].strip()
    return word, shown(read_number(word))


def _answers(body: str, losses: ConversionLosses) -> list[tuple[str, float, str]]:
    """The answers of a gap with their weight, and what is said to any other."""
    found = []
    for _, part in parts_of(body, "~"):
        words, *notes = [text for _, text in parts_of(part, "#")]
        note = " ".join(_bare(n) for n in notes if n.strip())
        if note and words.strip() != "*":
            losses.add("what is said about single answers of a gap is left out")
        weight = 0.0
        words = words.strip()
        if words.startswith("="):
            weight, words = 100.0, words[1:]
        elif marked := _WEIGHT.match(words):
            weight, words = read_weight(marked[1]), words[marked.end() :]
        found.append((_bare(words), weight, note))
    return found


def _bare(text: str) -> str:
    return " ".join(re.sub(r"\\(.)", r"\1", text).split())


def write_gap(blank: ItemBlank) -> str:
    """One gap as Moodle reads it, not yet escaped for HTML; the hint after a miss."""
    kind = "MULTICHOICE_S" if blank.wrong else "SHORTANSWER"
    answers = [f"={_escaped(answer)}" for answer in blank.answers]
    answers += [_escaped(word) for word in blank.wrong]
    if blank.hint:
        answers.append(f"*#{_escaped(blank.hint)}")
    return f"{{1:{kind}:{'~'.join(answers)}}}"


def _escaped(text: str) -> str:
    return re.sub(r"([\\}#~/\"=])", r"\\\1", text)
