"""The course as values: topics, questions, cards, terms, sources, the syllabus."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """Authored text in its two forms: safe HTML for pages, plain for search.

    Short texts (options, stems of one line, feedback of one paragraph) are inline
    HTML without a `<p>`; longer ones are blocks.
    """

    html: str
    plain: str


NO_TEXT = Text("", "")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where something was written, for messages and for “mend this” links."""

    path: str
    line: int


# --- questions -----------------------------------------------------------------


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
class Computed:
    """Numbers drawn for each attempt: parameters and expressions over them.

    `params` maps a name to all of its possible values; `lets` keeps the authored
    expressions in order. Templates in stem, options and explanation use {name}.
    """

    params: Mapping[str, tuple[str | int | float, ...]]
    lets: tuple[tuple[str, str], ...]


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


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """A flashcard; a `reverse: yes` card appears twice, the second as id + "~r"."""

    id: str
    topic: str
    front: Text
    back: Text
    objectives: tuple[str, ...]
    place: Place
    revision: str
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sibling: str = ""


# --- pages ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Html:
    """Finished HTML of a page."""

    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class Calculator:
    """A live calculator in the text: an estimate and its starting inputs as typed."""

    estimate: str
    inputs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Embedded:
    """A question asked in the text, by id."""

    question: str


Piece = Html | Calculator | Embedded


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under one second-level heading (or none, before the first).

    `pieces` do not hold that heading: the page writes it as
    `<h2 id="anchor"><span class="quiet">number</span>title</h2>`. The part before the
    first heading has number 0, no anchor and no title.
    """

    anchor: str
    title: str
    pieces: tuple[Piece, ...]
    plain: str
    minutes: float
    number: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Topic:
    """One topic: its page and what stands in its front matter.

    `questions` and `cards` are ids in authored order, embedded ones included.
    `sources` are keys of sources.toml in order of first mention; `minutes` is
    reading time. `terms` are the glossary anchors linked from the page.

    A footnote in the text is `<a class="cite" href="#src-KEY">[2]</a>`, where 2 is the
    place of KEY in `sources`: the page ends with the list of its sources, each with
    `id="src-KEY"`. `notes` says for some keys which part of the source is meant.
    """

    slug: str
    title: str
    summary: str
    objectives: tuple[str, ...]
    sections: tuple[Section, ...]
    sources: tuple[str, ...]
    requires: tuple[str, ...]
    reviewed: dt.date | None
    minutes: float
    questions: tuple[str, ...]
    cards: tuple[str, ...]
    place: Place
    revision: str
    terms: tuple[str, ...] = ()
    notes: Mapping[str, Text] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """A glossary term; `anchor` is its slug, `see` other anchors or addresses."""

    anchor: str
    name: str
    meaning: Text
    see: tuple[str, ...]
    place: Place


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """An entry of the bibliography."""

    key: str
    title: str
    publisher: str
    address: str
    read: dt.date | None
    year: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Objective:
    """What the exam says a candidate can do; `number` is “2.7”."""

    number: str
    title: str
    domain: str


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A domain of the blueprint; `weight` is its share of the exam, 0..1."""

    number: str
    title: str
    weight: float
    objectives: tuple[Objective, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Syllabus:
    """The exam a course prepares for; `topics` are slugs in reading order."""

    exam: str
    title: str
    domains: tuple[Domain, ...]
    topics: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ExamBlueprint:
    """A mock exam: questions per domain, minutes, scale."""

    slug: str
    title: str
    questions: int
    minutes: int
    domains: Mapping[str, int]
    place: Place
    notes: tuple[str, ...] = ()
