"""The gaps of Moodle's cloze questions: `{1:SHORTANSWER:=right~wrong}`."""

import html
import re

from app.exchange.formats.gift.blocks import parts_of
from app.exchange.items import BLANK, Blank, NotCarried
from app.exchange.markup.texts import Losses

_HEAD = re.compile(r"\{(\d*):([A-Z_]+):")
_BODY = re.compile(r"((?:\\.|[^}\\])*)\}", re.DOTALL)
_TYPED = re.compile(r"^(?:SHORTANSWER|SA|MW)(?:_?C)?$")
_CHOSEN = re.compile(r"^(?:MULTICHOICE|MC|MULTIRESPONSE|MR)(?:_?[HVS]{0,2})$")
_NUMBER = re.compile(r"^(?:NUMERICAL|NM)$")
_WEIGHT = re.compile(r"^%(-?\d+(?:\.\d+)?)%")


def read_gaps(text: str, losses: Losses) -> tuple[str, tuple[Blank, ...]]:
    """The text with a mark for each gap, and the gaps; raises NotCarried."""
    blanks: list[Blank] = []
    marked, at = [], 0
    while head := _HEAD.search(text, at):
        body = _BODY.match(text, head.end())
        if body is None:  # nothing is closed from here on
            break
        blanks.append(_blank(head[2], html.unescape(body[1]), losses))
        marked += [text[at : head.start()], BLANK]
        at = body.end()
    if not blanks:
        raise NotCarried("it has no gap that can be read")
    return "".join([*marked, text[at:]]), tuple(blanks)


def _blank(kind: str, body: str, losses: Losses) -> Blank:
    if _CHOSEN.match(kind):
        losses.add("the choices of a gap are not shown; its answer is typed")
    elif _NUMBER.match(kind):
        losses.add("the tolerance of a number in a gap is not carried")
    elif not _TYPED.match(kind):
        raise NotCarried(f"gaps of the type {kind} are not known")
    answers = list(_answers(body, losses))
    right = [answer for answer, weight, _ in answers if weight >= 100]
    if _NUMBER.match(kind):
        right = [answer.partition(":")[0].strip() for answer in right]
    kept = tuple(dict.fromkeys(r for r in right if r and r != "*"))
    if not kept:
        raise NotCarried("a gap has no right answer")
    said = [note for answer, weight, note in answers if answer == "*" and weight <= 0]
    return Blank(kept, "".join(said[:1]))


def _answers(body: str, losses: Losses) -> list[tuple[str, float, str]]:
    """The answers of a gap with their weight, and what is said to any other."""
    found = []
    for _, part in parts_of(body, "~"):
        words, *notes = [text for _, text in parts_of(part, "#")]
        note = " ".join(_bare(n) for n in notes if n.strip())
        if note and words.strip() != "*":
            losses.add("what is said about single answers of a gap is not carried")
        weight = 0.0
        words = words.strip()
        if words.startswith("="):
            weight, words = 100.0, words[1:]
        elif marked := _WEIGHT.match(words):
            weight, words = float(marked[1]), words[marked.end() :]
        found.append((_bare(words), weight, note))
    return found


def _bare(text: str) -> str:
    return " ".join(re.sub(r"\\(.)", r"\1", text).split())


def write_gap(blank: Blank) -> str:
    """One gap as Moodle reads it, not yet escaped for HTML; the hint after a miss."""
    answers = [f"={_escaped(answer)}" for answer in blank.answers]
    if blank.hint:
        answers.append(f"*#{_escaped(blank.hint)}")
    return f"{{1:SHORTANSWER:{'~'.join(answers)}}}"


def _escaped(text: str) -> str:
    return re.sub(r"([\\}#~/\"=])", r"\\\1", text)
