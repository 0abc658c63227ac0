"""A file while it is read: its lines, and what was found wrong or mentioned in it."""

import dataclasses
from typing import Literal

from app.content.problems import Problem, problem


@dataclasses.dataclass(frozen=True, slots=True)
class Mention:
    """A word that another file must know: an objective, a source, a page, a term."""

    kind: Literal["objective", "source", "topic", "page", "file"]
    value: str
    line: int
    column: int
    item: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """A replacement that `--fix` may make: `old` at (line, column) becomes `new`."""

    line: int
    column: int
    old: str
    new: str


@dataclasses.dataclass(slots=True)
class Manuscript:
    """The text of one file, and the notes taken while reading it."""

    path: str
    text: str
    problems: list[Problem] = dataclasses.field(default_factory=list)
    mentions: list[Mention] = dataclasses.field(default_factory=list)
    edits: list[Edit] = dataclasses.field(default_factory=list)
    item: str = ""
    lines: list[str] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")

    def report(
        self, code: str, line: int, column: int, message: str, hint: str = ""
    ) -> None:
        """Note a problem at (line, column), for the item being read."""
        place = (self.path, line, column)
        self.problems.append(problem(place, code, message, hint, self.item))

    def mention(
        self,
        kind: Literal["objective", "source", "topic", "page", "file"],
        value: str,
        line: int,
        column: int,
    ) -> None:
        """Note a word to be checked against the other files."""
        self.mentions.append(Mention(kind, value, line, column, self.item))

    def find(self, needle: str, first: int, last: int) -> tuple[int, int]:
        """Where `needle` stands in lines first..last (from 1); else the first line."""
        for number in range(first, min(last, len(self.lines)) + 1):
            at = self.lines[number - 1].find(needle)
            if at >= 0:
                return number, at + 1
        return first, 1
