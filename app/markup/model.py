"""Course values: RichText, Topic, Flashcard, GlossaryTerm, CitedSource, Syllabus, ExamBlueprint."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class RichText:
    """Authored text in its two forms: safe HTML for pages, plain for search.

    Short texts (options, stems of one line, feedback of one paragraph) are inline
    HTML without a `<p>`; longer ones are blocks.
    """

    html: str
    plain: str


NO_TEXT = RichText("", "")
Level = Literal["", "deeper"]  # deeper: beyond the exam
Status = Literal["live", "review", "draft"]  # only what is live reaches learners


@dataclasses.dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where something was written, for messages and for “mend this” links."""

    path: str
    line: int


# --- drawings ---


@dataclasses.dataclass(frozen=True, slots=True)
class RegionBox:
    """A named region of a drawing, and the box in which it can be pointed at."""

    region: str
    x: float
    y: float
    width: float
    height: float


@dataclasses.dataclass(frozen=True, slots=True)
class SvgFigure:
    """A drawing that is safe on a page: `markup` is what stands inside of its `<svg>`.

    Its regions are groups with `data-region`; `title` and `desc` say it in words.
    `areas` are the regions that can be pointed at, `blurred` says why others cannot;
    `text` is the size of its smallest text, `meant` whether it speaks the language of
    drawings, so that a page may show it in its own colors.
    """

    markup: str
    width: float
    height: float
    title: str
    desc: str
    areas: tuple[RegionBox, ...]
    blurred: Mapping[str, str] = dataclasses.field(default_factory=dict)
    text: float = 13
    meant: bool = False
    line: int = 1

    @property
    def regions(self) -> frozenset[str]:
        """The names of all its regions."""
        return frozenset(area.region for area in self.areas) | frozenset(self.blurred)


@dataclasses.dataclass(frozen=True, slots=True)
class SvgProblem:
    """What keeps a drawing off a page: the line of its file, and why.

    `meant` is whether it was to speak the language of drawings; else it is a picture.
    `remedy` is what mends it, where that can be told.
    """

    line: int
    why: str
    meant: bool = False
    remedy: str = ""


# --- items -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class ComputedParameters:
    """Numbers drawn for each attempt: parameters and expressions over them.

    `params` maps a name to all of its possible values; `lets` keeps the authored
    expressions in order. Templates in stem, options and explanation use {name}.
    """

    params: Mapping[str, tuple[str | int | float, ...]]
    lets: tuple[tuple[str, str], ...]


REVERSE = "~r"
"""The end of the id of a card that asks the other way round."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flashcard:
    """A flashcard; a `reverse: yes` card appears twice, the second as id + REVERSE."""

    id: str
    topic: str
    front: RichText
    back: RichText
    objectives: tuple[str, ...]
    place: SourceLocation
    revision: str
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    sibling: str = ""
    level: Level = ""
    status: Status = "live"

    @property
    def is_reverse(self) -> bool:
        """Whether it asks with what its sibling answers."""
        return self.id.endswith(REVERSE)


# --- pages ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class HtmlBlock:
    """Finished HTML of a page."""

    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorBlock:
    """A live calculator in the text: an estimate and its starting inputs as typed."""

    estimate: str
    inputs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionBlock:
    """A question asked in the text, by id."""

    question: str


@dataclasses.dataclass(frozen=True, slots=True)
class ImageBlock:
    """An SVG file on a line of its own, until it is known whether it is a drawing.

    `html` shows it as a picture; a page that is assembled has no picture left in it.
    """

    file: str
    caption: str
    html: str


Piece = HtmlBlock | CalculatorBlock | QuestionBlock | ImageBlock


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
    place: SourceLocation
    revision: str
    terms: tuple[str, ...] = ()
    notes: Mapping[str, RichText] = dataclasses.field(default_factory=dict)
    level: Level = ""
    status: Status = "live"


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A glossary term; `anchor` is its slug, `see` other anchors or addresses."""

    anchor: str
    name: str
    meaning: RichText
    see: tuple[str, ...]
    place: SourceLocation


@dataclasses.dataclass(frozen=True, slots=True)
class CitedSource:
    """An entry of the bibliography, and the file that it stands in.

    A book may have an `isbn` and no `address`.
    """

    key: str
    title: str
    publisher: str
    address: str
    read: dt.date | None
    year: str = ""
    note: str = ""
    path: str = "sources.toml"
    isbn: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Objective:
    """What the exam says a candidate can do; `number` is “2.7”.

    `title` is the whole sentence, `short` a name of a few words for lists and maps.
    """

    number: str
    title: str
    domain: str
    short: str = ""

    @property
    def name(self) -> str:
        """What a list calls it: its short name, or the sentence where it has none."""
        return self.short or self.title


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A domain of the blueprint; `weight` is its share of the exam, 0..1."""

    number: str
    title: str
    weight: float
    objectives: tuple[Objective, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Syllabus:
    """The exam a course prepares for; `topics` are slugs in reading order.

    `license` is that of the content; empty where the syllabus names none.
    `calculators` says whether the course offers those of the app, and its hardware;
    `language` is that of all that its authors wrote, as BCP 47 names it.
    """

    exam: str
    title: str
    domains: tuple[Domain, ...]
    topics: tuple[str, ...]
    notes: tuple[str, ...] = ()
    license: str = ""
    calculators: bool = True
    language: str = "en"


@dataclasses.dataclass(frozen=True, slots=True)
class ExamBlueprint:
    """A mock exam: questions per domain, minutes, scale."""

    slug: str
    title: str
    questions: int
    minutes: int
    domains: Mapping[str, int]
    place: SourceLocation
    notes: tuple[str, ...] = ()
