"""Questions as values: the item of the bank, and what one attempt shows of it."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from app.content.model import NO_TEXT, Computed, Place, Text


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One option. `key` is its stable letter-like name kept in ids.lock."""

    key: str
    text: Text
    right: bool
    feedback: Text = NO_TEXT
    pinned: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
    """Single, multiple or true/false: options of which `right` ones are ticked."""

    kind: Literal["single", "multiple", "true-false"]
    options: tuple[Choice, ...]
    shuffle: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """An accepted or foreseen number: low <= x <= high in base units of `unit`.

    `centre` is the authored value; `unit` the unit it is shown in ("GB" or "").
    `significant` > 0 asks for that many significant digits instead of a range.
    """

    centre: float
    low: float
    high: float
    unit: str = ""
    significant: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class NumericOption:
    """A range with what it means to answer inside it; templates until drawn."""

    key: str
    template: str
    range: Range | None
    right: bool
    feedback: Text = NO_TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class Numeric:
    """A number to be typed, with tolerance and unit."""

    options: tuple[NumericOption, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ShortOption:
    """A word accepted or foreseen in a short answer."""

    key: str
    answer: str
    right: bool
    feedback: Text = NO_TEXT


@dataclasses.dataclass(frozen=True, slots=True)
class Short:
    """A word or short phrase to be typed."""

    options: tuple[ShortOption, ...]
    case_sensitive: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """Steps to be put in order; distractors belong nowhere.

    `steps` are in the right order, also in a variant; `shown` has the keys of steps
    and distractors in the order displayed (empty before drawing).
    """

    steps: tuple[Choice, ...]
    distractors: tuple[Choice, ...] = ()
    shown: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A row of a match table; an empty `left` is a decoy on the right.

    `key` names the left cell, `answer` the right one. Equal right cells share one
    `answer`, so either row takes it. Neither key tells which belongs to which.
    """

    key: str
    left: Text
    right: Text
    why: Text = NO_TEXT
    answer: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """Left things to be matched with right things.

    `shown_left` has keys and `shown_right` answers, each once, in the order displayed
    (empty before drawing).
    """

    left_title: str
    right_title: str
    pairs: tuple[Pair, ...]
    shown_left: tuple[str, ...] = ()
    shown_right: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Blank:
    """A gap in a cloze text with all answers that count, and a hint."""

    key: str
    answers: tuple[str, ...]
    hint: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Cloze:
    """Text with gaps: `pieces` has one more element than `blanks`."""

    pieces: tuple[Text, ...]
    blanks: tuple[Blank, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Design:
    """A plan that the learner chooses and the estimator judges.

    `accept` keeps the conditions as written; `conditions.judge` answers them.
    """

    estimate: str
    given: Mapping[str, str]
    choose: tuple[str, ...]
    accept: tuple[str, ...]


Answer = Choices | Numeric | Short | Order | Match | Cloze | Design


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """One item of the bank as authored; `revision` is the hash of its content.

    `stem`, option texts and `explanation` hold {name} templates while `computed`
    is set; `variants.draw` fills them. `section` is the anchor of the page section
    it stands in (empty in quiz.md).
    """

    id: str
    topic: str
    type: str
    stem: Text
    answer: Answer
    objectives: tuple[str, ...]
    place: Place
    revision: str
    difficulty: int = 3
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    hints: tuple[Text, ...] = ()
    explanation: Text = NO_TEXT
    mistake: Text = NO_TEXT
    partial: Literal["", "off", "net", "coverage", "each", "lcs"] = ""
    computed: Computed | None = None
    section: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """A question as one attempt shows and grades it: numbers drawn, order fixed.

    `question` is the authored item; `answer` has ranges and texts filled in and
    options in the order displayed. The same (question, seed) gives the same variant.
    `values` are the drawn parameters, e.g. {"batch": 8}; `calculator` is the address
    of the calculator with these numbers ("/calculators/kv-cache?..."), or empty.
    """

    question: Question
    seed: int
    stem: Text
    answer: Answer
    hints: tuple[Text, ...]
    explanation: Text
    mistake: Text
    values: Mapping[str, str | int | float]
    calculator: str = ""
