"""Neutral form of a question or card, between two formats.

The annotations are the format of our JSON and CSV files.
"""

import dataclasses
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

Kind = Literal[
    "single",
    "multiple",
    "true-false",
    "numeric",
    "short",
    "order",
    "match",
    "cloze",
    "card",
]


@dataclasses.dataclass(frozen=True, slots=True)
class NumberRange:
    """The numbers low..high around `center`, all in `unit` ("" for none)."""

    center: Annotated[float, Field(alias="centre")]  # its name in JSON and CSV files
    low: float
    high: float
    unit: str = ""

    @property
    def tolerance(self) -> float:
        """Half of the width; 0 if only the center itself is meant."""
        half = (self.high - self.low) / 2
        return 0.0 if half <= abs(self.center) * 1.5e-9 else half


@dataclasses.dataclass(frozen=True, slots=True)
class ItemOption:
    """A choice, an accepted answer, a number or a step, with its feedback.

    `text` is Markdown in choices and steps, plain text in short answers and empty in numeric ones,
    which have a `span`. `credit` is the partial credit (0..1) of an option that is not right.
    """

    text: str
    right: bool
    feedback: str = ""
    span: NumberRange | None = None
    credit: Annotated[float, Field(ge=0, le=1)] = 0.0

    @property
    def weight(self) -> float:
        """Its worth in percent if only one answer is given."""
        return 100.0 if self.right else round(100 * self.credit, 5)


def credit_of_score(score: float, best: float) -> tuple[bool, float]:
    """Return whether an answer worth `score` of `best` is right, and its credit.

    >>> credit_of_score(100, 100), credit_of_score(50, 100), credit_of_score(-10, 100), credit_of_score(0, 0)
    ((True, 0.0), (False, 0.5), (False, 0.0), (False, 0.0))
    """
    if score <= 0 or best <= 0:
        return False, 0.0
    return score >= best, 0.0 if score >= best else round(score / best, 7)


@dataclasses.dataclass(frozen=True, slots=True)
class ItemPair:
    """A left and a right side; an empty `left` marks a distractor."""

    left: str
    right: str
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ItemBlank:
    """A gap: its answers, a hint, and `wrong` words to choose from."""

    answers: tuple[str, ...]
    hint: str = ""
    wrong: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ItemImage:
    """A picture that texts show by its `name`; `data` is Base64."""

    name: str
    data: str


@dataclasses.dataclass(frozen=True, slots=True)
class Item:
    """One question or card.

    `stem` is Markdown (the front of a card). `options` are choices, accepted and foreseen answers,
    or the distractors of an ordering question, whose `steps` are in the right order. `text` is the
    Markdown of a cloze with a `BLANK` for each of its `blanks`, or the back of a card. `topic` is
    its source topic, `path` its file in a course, `line` its line in the file, from 1. `use` is “exam” for questions reserved
    for mock exams, `level` “deeper” for content beyond the exam. `lost` says what was lost in
    conversion, one sentence each.
    """

    name: str
    kind: Kind
    stem: str
    options: tuple[ItemOption, ...] = ()
    steps: tuple[ItemOption, ...] = ()
    pairs: tuple[ItemPair, ...] = ()
    titles: tuple[str, str] = ("", "")
    text: str = ""
    blanks: tuple[ItemBlank, ...] = ()
    hints: tuple[str, ...] = ()
    explanation: str = ""
    mistake: str = ""
    partial: str = ""
    shuffle: bool = True
    case: bool = False
    reverse: bool = False
    difficulty: int = 3
    level: str = ""
    use: str = ""
    objectives: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    pictures: tuple[ItemImage, ...] = ()
    topic: str = ""
    line: int = 0
    lost: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    path: str = dataclasses.field(default="", compare=False)


BLANK = "\ue0ff"  # private-use character that marks a gap in the text of a cloze


@dataclasses.dataclass(frozen=True, slots=True)
class ItemRemark:
    """A remark on a converted item: its name, its line, and a sentence.

    `path` is its file, empty if only one file was read.
    """

    name: str
    line: int
    reason: str
    path: str = ""

    @property
    def place(self) -> str:
        """Its file and line; empty without a line."""
        if not self.line:
            return ""
        return f"{self.path}:{self.line}" if self.path else f"line {self.line}"

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.name}: {self.reason}"


@dataclasses.dataclass(frozen=True, slots=True)
class ImportResult:
    """The content of a file: items, refusals, what is not live, and remarks.

    Only course files have items that are `waiting`, as draft or for review.
    """

    items: tuple[Item, ...]
    refused: tuple[ItemRemark, ...] = ()
    waiting: tuple[Item, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[ItemRemark, ...]:
        """What the items lost in conversion."""
        return tuple(remark for item in self.items for remark in list_losses(item))


@dataclasses.dataclass(frozen=True, slots=True)
class CourseInfo:
    """The course that a file's items are from; the language is a language tag."""

    title: str
    language: str


@dataclasses.dataclass(frozen=True, slots=True)
class ExportResult:
    """Items in another format, which were refused, and what was lost."""

    content: bytes
    carried: int
    refused: tuple[ItemRemark, ...] = ()
    lost: tuple[ItemRemark, ...] = ()


class UnusableFileError(ValueError):
    """The whole file cannot be read; the message says why."""


class ItemSkippedError(ValueError):
    """One item cannot be converted; the message says why."""


def format_digits(number: float) -> str:
    """Return a number with as many digits as needed, up to twelve.

    >>> format_digits(1822.0), format_digits(0.1 + 0.2), format_digits(-3e15)
    ('1822', '0.3', '-3e+15')
    """
    text = f"{number:.12g}"
    return "0" if text == "-0" else text


def is_true_or_false(options: Iterable[ItemOption]) -> bool:
    """Return whether the choices are “true” and “false”, in any case and with a period."""
    return {option.text.strip(" .").lower() for option in options} == {"true", "false"}


def item_label(item: Item) -> str:
    """Return the name of an item in reports."""
    text = item.stem.replace("\\\n", " ").split()
    return item.name or " ".join(text)[:50] or "(nameless)"


def list_losses(item: Item) -> tuple[ItemRemark, ...]:
    """Return what an item lost in conversion, each with the item's name."""
    return tuple(ItemRemark(item_label(item), item.line, what, item.path) for what in item.lost)
