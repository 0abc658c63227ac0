"""“Accept this one”: writes a typed answer into the key of a question's file."""

import dataclasses
import re
from collections.abc import Iterator, Sequence

from app.errors import ConflictError, InvalidInputError
from app.questions import types
from app.questions.grading import grade
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult, same_words
from app.questions.types.cloze import ClozeAnswer
from app.questions.types.numeric import numeric_tolerance

_OPTION = re.compile(r"^(?P<box>\s*[-*+] \[)(?P<tick>[^\]]*)(?P<end>\] )(?P<text>.*?)\s*$")
_BLANK = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^#{1,6} ")


@dataclasses.dataclass(frozen=True, slots=True)
class AcceptedText:
    """What is to be accepted: a whole answer, or that of the gap with the key `gap`."""

    text: str
    gap: str = ""


def accept_in_source(source: str, question: Question, accepted: AcceptedText) -> str:
    """Return the text of the question's file with one more accepted answer.

    Raises InvalidInputError for a text that cannot be an answer, and ConflictError if the key is
    not found where the question says it is.
    """
    if question.computed:
        raise ConflictError(
            "A computed question has other numbers in every attempt.",
            "Widen its tolerance, or add the answer as an expression in the file.",
        )
    if isinstance(question.answer, ClozeAnswer):
        return _accept_in_gap(source, question, accepted)
    if types.type_of(question).chosen:
        raise ConflictError("Only typed answers can be accepted.", "Tick the option in the file.")
    return _accept_option(source, question, accepted.text)


def counts_as_right(question: Question, accepted: AcceptedText) -> bool:
    """Return whether the key of the question accepts the text."""
    answer = question.answer
    if isinstance(answer, ClozeAnswer):
        return any(b.fits(accepted.text) for b in answer.blanks if b.key == accepted.gap)
    result = grade(draw_variant(question, 0), {"answer": [accepted.text]})
    return isinstance(result, GradeResult) and result.result == "right"


def _accept_option(source: str, question: Question, text: str) -> str:
    if "`" in text or "|" in text:
        raise InvalidInputError(f"“{text}” has a character that an option cannot have.", "answer")
    lines = source.splitlines(keepends=True)
    options = [(at, m) for at in _own_lines(lines, question) if (m := _OPTION.match(lines[at]))]
    for at, option in options:
        same = same_words(option["text"].strip("`"), text)
        if same and option["tick"].strip().lower() != "x":
            lines[at] = f"{option['box']}x{option['end']}{option['text']}{_line_end(lines[at])}"
            return "".join(lines)
    ticked = [(at, option) for at, option in options if option["tick"].strip().lower() == "x"]
    if not ticked:
        raise _moved(question)
    at, option = ticked[-1]
    written = text + numeric_tolerance(question.answer)
    line = f"{option['box']}x{option['end']}`{written}`{_line_end(lines[at])}"
    after = _end_of_option(lines, at)
    if not _line_end(lines[after - 1]):
        lines[after - 1] += "\n"
    lines.insert(after, line)
    return "".join(lines)


def _accept_in_gap(source: str, question: Question, accepted: AcceptedText) -> str:
    answer = question.answer
    assert isinstance(answer, ClozeAnswer)  # noqa: S101 - only for the type checker
    keys = [blank.key for blank in answer.blanks]
    if accepted.gap not in keys:
        raise _moved(question)
    if re.search(r"[\[\]|?~]", accepted.text):
        raise InvalidInputError(
            f"“{accepted.text}” has a character that a gap cannot have.", "answer"
        )
    lines = source.splitlines(keepends=True)
    own = list(_own_lines(lines, question))
    body = "".join(lines[at] for at in own)
    blanks = list(_BLANK.finditer(body))
    if len(blanks) != len(keys):
        raise _moved(question)
    found = blanks[keys.index(accepted.gap)]
    inside = re.match(r"(?P<answers>[^?~]*?)(?P<rest>\s*[?~].*)?$", found[1], re.DOTALL)
    if inside is None:
        raise _moved(question)
    blank = f"[[{inside['answers']}|{accepted.text}{inside['rest'] or ''}]]"
    body = body[: found.start()] + blank + body[found.end() :]
    return "".join(lines[: own[0]]) + body + "".join(lines[own[-1] + 1 :])


def _own_lines(lines: Sequence[str], question: Question) -> Iterator[int]:
    """Yield the indices of the lines below the question's heading, up to the next heading."""
    fenced = False
    for at in range(question.place.line, len(lines)):
        if _FENCE.match(lines[at]):
            fenced = not fenced
        elif not fenced and _HEADING.match(lines[at]):
            return
        yield at


def _end_of_option(lines: Sequence[str], at: int) -> int:
    """Return the index behind an option and its indented reason."""
    after = at + 1
    while after < len(lines) and re.match(r"\s+\S", lines[after]):
        after += 1
    return after


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _moved(question: Question) -> ConflictError:
    place = f"{question.place.path}:{question.place.line}"
    return ConflictError(
        "The key of this question was not found in its file.",
        f"Add the answer by hand at {place}.",
    )
