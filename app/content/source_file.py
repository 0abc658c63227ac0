"""A file while it is read: its lines, and what was found wrong or mentioned in it."""

import bisect
import dataclasses
import itertools
import re
from typing import Literal

from app.content.identity import LONGEST_ID
from app.content.limits import A_PROBLEM, MOST_EFFORT, LimitExceededError
from app.content.problems import ContentProblem, internal_error_problem, make_problem

_MOST_SOUGHT = 500_000_000  # characters looked through for the places of problems
# An id as it stands in a comment of which a part may be missing or misspelled.
_CLAIMED = re.compile(
    r"(?:^|[\s<!-])(?:q\w?|id|question)(?:\s*[:;=\uff1a]\s*|[ \t]+)[\"']?"
    r"([a-z0-9]+(?:-[a-z0-9]+)*)",
    re.IGNORECASE,
)

Reference = Literal[
    "objective",
    "source",
    "topic",
    "page",
    "term",
    "file",
    "drawing",
    "picture",
    "day",
    "calculator",
]


@dataclasses.dataclass(frozen=True, slots=True)
class CrossReference:
    """A word that another file must know: an objective, a source, a page, a term.

    That of a drawing may go on with “#” and one of its regions.
    """

    kind: Reference
    value: str
    line: int
    column: int
    item: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement that `--fix` may make: `old` at (line, column) becomes `new`."""

    line: int
    column: int
    old: str
    new: str


@dataclasses.dataclass(frozen=True, slots=True)
class Unidentified:
    """An item without an id: its words, and how `--fix` writes an id into it.

    `old` at (line, column) becomes `before`, the id and `after`. `named` are words in
    its comments that may be meant as its id; `heading` and `body` hashes of its words.
    """

    line: int
    column: int
    old: str
    before: str
    after: str
    title: str
    named: tuple[str, ...]
    sketch: tuple[int, ...]
    heading: str
    body: str

    @property
    def full_sketch(self) -> tuple[int, ...]:
        """Its sketch with its comment, which says nothing."""
        return self.sketch

    def edit(self, name: str) -> TextEdit:
        """The edit that gives it an id."""
        new = f"{self.before}{name}{self.after}"
        return TextEdit(self.line, self.column, self.old, new)


@dataclasses.dataclass(slots=True)
class SourceFile:
    """The text of one file, and the notes taken while reading it.

    `line` is where the reader stands, as far as it says so; `mark` how many problems
    there were before the item at hand; `effort` what reading has cost so far.
    """

    path: str
    text: str
    problems: list[ContentProblem] = dataclasses.field(default_factory=list)
    mentions: list[CrossReference] = dataclasses.field(default_factory=list)
    edits: list[TextEdit] = dataclasses.field(default_factory=list)
    claims: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    unidentified: list[Unidentified] = dataclasses.field(default_factory=list)
    item: str = ""
    line: int = 1
    mark: int = 0
    effort: int = 0
    lines: list[str] = dataclasses.field(init=False)
    _starts: list[int] = dataclasses.field(init=False, default_factory=list)
    _sought: int = 0
    _paid: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")

    def report(self, code: str, line: int, column: int, message: str, hint: str = "") -> None:
        """Note a problem at (line, column), for the item being read."""
        self.spend(A_PROBLEM)
        place = (self.path, max(line, 1), max(column, 1))
        self.problems.append(make_problem(place, code, message, hint, self.item))

    def give_up(self, error: Exception, what: str, line: int = 0) -> None:
        """Note that something could not be read, whatever the reason; never raises."""
        place = (self.path, max(line or self.line, 1), 1)
        if isinstance(error, LimitExceededError):
            place = (self.path, error.line or place[1], 1)
            found = make_problem(place, "E88", error.message, error.hint, self.item)
        else:
            found = internal_error_problem(place, what, error, self.item)
        self.problems.append(found)

    def mention(
        self,
        kind: Reference,
        value: str,
        line: int,
        column: int,
    ) -> None:
        """Note a word to be checked against the other files."""
        self.mentions.append(CrossReference(kind, value, line, column, self.item))

    def claim(self, comment: str, line: int) -> None:
        """Note the id in a broken comment: its item may be the one that has it."""
        found = _CLAIMED.search(comment)
        if found and len(found[1]) <= LONGEST_ID:
            self.claims.append((found[1].lower(), line))

    def spend(self, effort: float, once_for: str = "") -> None:
        """Count what reading costs; raises TooMuch where a file asks too much.

        Work that is kept after the first time is paid once for its name.
        """
        if once_for:
            if once_for in self._paid:
                return
            self._paid.add(once_for)
        self.effort += int(effort)
        if self.effort > MOST_EFFORT:
            message = "This file has too many problems, formulas and figures to be read."
            raise LimitExceededError(message, "Split it into several topics.", self.line)

    def find(self, needle: str, first: int, last: int) -> tuple[int, int]:
        """Where `needle` stands in lines first..last (from 1); else the first line."""
        if not self._starts:
            lengths = (len(line) + 1 for line in self.lines)
            self._starts = [0, *itertools.accumulate(lengths)]
        start, end = self._start(first), self._start(last + 1)
        if start >= end or self._sought > _MOST_SOUGHT:
            return first, 1
        at = self.text.find(needle, start, end)
        self._sought += (end if at < 0 else at) - start
        if at < 0:
            return first, 1
        line = bisect.bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def _start(self, line: int) -> int:
        return self._starts[min(max(line, 1), len(self._starts)) - 1]


def place_of(key: str, sheet: SourceFile, first: int = 1) -> tuple[int, int]:
    """Where the value of a key of a TOML file is set, from a line on.

    A comment that speaks of the key is not meant; a key inside a table in one line is.
    """
    setting = re.compile(rf"^\s*{re.escape(key)}\s*=\s*")
    for line, text in enumerate(sheet.lines[first - 1 :], first):
        if match := setting.match(text):
            return line, match.end() + 1
    return sheet.find(key, first, len(sheet.lines))
