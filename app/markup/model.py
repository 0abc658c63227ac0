"""Values of a parsed course: text, topics, cards, terms, sources, syllabus, blueprint."""

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
Level = Literal["", "deeper"]  # “deeper” is beyond the exam.
Status = Literal["live", "review", "draft"]  # Only items with status “live” are shown to learners.


@dataclasses.dataclass(frozen=True, slots=True)
class SourceLocation:
    """File and line of authored content, for messages and edit links."""

    path: str
    line: int


# --- figures ---


@dataclasses.dataclass(frozen=True, slots=True)
class RegionBox:
    """A named region of an SVG figure, and the box in which it can be clicked."""

    region: str
    x: float
    y: float
    width: float
    height: float


@dataclasses.dataclass(frozen=True, slots=True)
class SvgFigure:
    """A sanitized SVG figure: `inner_markup` is the content of its `<svg>` element.

    Its regions are groups with `data-region`; `title` and `desc` are its text
    alternative. `clickable_regions` are the regions that can be clicked, `why_unclickable_by_region` says why others
    cannot; `smallest_font_size` is the size of its smallest text; `uses_diagram_classes` whether it uses the classes
    of Headroom's figures, so that a page may show it in its own colors.
    """

    inner_markup: str
    width: float
    height: float
    title: str
    desc: str
    clickable_regions: tuple[RegionBox, ...]
    why_unclickable_by_region: Mapping[str, str] = dataclasses.field(default_factory=dict)
    smallest_font_size: float = 13
    uses_diagram_classes: bool = False
    last_line: int = 1

    @property
    def region_names(self) -> frozenset[str]:
        return frozenset(area.region for area in self.clickable_regions) | frozenset(
            self.why_unclickable_by_region
        )


@dataclasses.dataclass(frozen=True, slots=True)
class SvgProblem:
    """Why an SVG file cannot be shown as a figure: its line and the reason.

    `uses_diagram_classes` is whether it was to use the classes of Headroom's figures; otherwise it is
    shown as an image. `remedy` says how to fix it, where that is known.
    """

    line: int
    reason: str
    uses_diagram_classes: bool = False
    remedy: str = ""


# --- items -------------------------------------------------------------------


NamedExpression = tuple[str, str]
"""A name and its expression. Hashes are made from it, so it stays a plain tuple."""


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionParameters:
    """Numbers drawn for each attempt: parameters and expressions over them.

    `possible_values_by_name` maps a name to all of its possible values; `named_expressions` keeps the authored
    expressions in order. Templates in stem, options and explanation use {name}.
    """

    possible_values_by_name: Mapping[str, tuple[str | int | float, ...]]
    named_expressions: tuple[NamedExpression, ...]


REVERSE = "~r"
"""Suffix of the id of a card's reverse side."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flashcard:
    """A flashcard; one with `reverse: yes` exists twice, the second with id + REVERSE."""

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
        """Return whether it shows the back of its sibling as the front."""
        return self.id.endswith(REVERSE)


# --- pages ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class HtmlBlock:
    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class CalculatorBlock:
    """A calculator within a page: an estimate and its starting inputs as typed."""

    estimate: str
    starting_inputs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class QuestionBlock:
    """A question embedded in a page, by id."""

    question: str


@dataclasses.dataclass(frozen=True, slots=True)
class ImageBlock:
    """An SVG file on a line of its own, before it is known to be a valid figure.

    `html` shows it as an image. Assembled pages contain no ImageBlock.
    """

    file: str
    caption: str
    html: str


Piece = HtmlBlock | CalculatorBlock | QuestionBlock | ImageBlock


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under one second-level heading (or none, before the first).

    `pieces` do not contain that heading: the page writes it as
    `<h2 id="anchor"><span class="quiet">number</span>title</h2>`. The part before the
    first heading has number 0, no anchor and no title. `essential` is whether the short
    route contains it.
    """

    anchor: str
    title: str
    pieces: tuple[Piece, ...]
    plain: str
    minutes: float
    number: int = 0
    essential: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Topic:
    """One topic: its page and its front matter.

    `questions` and `cards` are ids in authored order, embedded ones included.
    `sources` are keys of sources.toml in order of first mention; `minutes` is
    reading time. `terms` are the glossary anchors linked from the page.

    A footnote in the text is `<a class="cite" href="#src-KEY">[2]</a>`, where 2 is the
    position of KEY in `sources`: the page ends with the list of its sources, each with
    `id="src-KEY"`. `note_by_source_key` says for some keys which part of the source is meant.
    `aliases` are the slugs that the topic had before.
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
    note_by_source_key: Mapping[str, RichText] = dataclasses.field(default_factory=dict)
    level: Level = ""
    status: Status = "live"
    aliases: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class GlossaryTerm:
    """A glossary term; `anchor` is its slug, `see_also_anchors_or_urls` has other anchors or URLs."""

    anchor: str
    name: str
    meaning: RichText
    see_also_anchors_or_urls: tuple[str, ...]
    place: SourceLocation


@dataclasses.dataclass(frozen=True, slots=True)
class CitedSource:
    """A cited source, and the file that defines it. A book may have an `isbn` and no `url`."""

    key: str
    title: str
    publisher: str
    url: str
    read_on: dt.date | None
    year: str = ""
    note: str = ""
    path: str = "sources.toml"
    isbn: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Objective:
    """An exam objective; `number` is “2.7”.

    `title` is the whole sentence, `name` a few words for lists, or the same if it has none.
    """

    number: str
    title: str
    domain: str
    name: str


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

    `license` is the content license; empty if the syllabus names none.
    `offers_calculators` is whether the course offers the app's calculators and hardware catalog;
    `language` is the BCP 47 tag of the course's language.
    """

    exam: str
    title: str
    domains: tuple[Domain, ...]
    topics: tuple[str, ...]
    notes: tuple[str, ...] = ()
    license: str = ""
    offers_calculators: bool = True
    language: str = "en"


@dataclasses.dataclass(frozen=True, slots=True)
class ExamBlueprint:
    """A mock exam: questions per domain, minutes, scale."""

    slug: str
    title: str
    question_count: int
    minutes: int
    question_count_by_domain: Mapping[str, int]
    place: SourceLocation
    notes: tuple[str, ...] = ()
