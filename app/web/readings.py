"""An estimate as a reader sees it: words and pictures instead of base units."""

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from app.estimator import inputs as given_inputs
from app.estimator import sources
from app.estimator.estimate import (
    Change,
    Estimate,
    Figure,
    StackedBar,
    Status,
    Step,
    Table,
)
from app.estimator.registry import Entry
from app.estimator.units import NBSP
from app.estimator.units import format_value as _format_value
from app.web.drawings import Drawing, draw, draw_bar
from app.web.drawings.bars import looks_of

LONGEST_LINK = 2000

# Many numbers of one answer stand in the next; 1, 1.0 and True are not one value.
format_value = functools.lru_cache(maxsize=8192, typed=True)(_format_value)

# Class of the verdict's word and icon before it; the word itself is the estimate's.
SIGNS: dict[Status, tuple[str, str]] = {
    "fits": ("good", "i-check"),
    "tight": ("warn", "i-tight"),
    "no": ("bad", "i-cross"),
    "info": ("", ""),
}
_PLAIN_NUMBER = re.compile(rf"[−\d][\d,.]*(?:[ {NBSP}]?%)?")
_NUMBER = re.compile(
    rf"(?<![\w.])[−\d][\d,.]*(?:×10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)?(?:{NBSP}[^\s,;.)]+)?"
)


@dataclasses.dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure in words; `span` is its interval, or “exact” for an exact number."""

    name: str
    label: str
    value: str
    span: str
    note: str
    primary: bool
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ShownStep:
    """A line of the working; `source` and `address` say where it is from."""

    label: str
    formula: str
    substituted: str
    value: str
    source: str
    address: str
    topic: str


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; `key` is the colour of its component."""

    words: str
    number: bool
    key: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ShownTable:
    """A table in words; `numeric` says which columns hold numbers."""

    label: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sums: tuple[bool, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ShownPicture:
    """A drawing with its key and its table; the table is None where it is shown."""

    drawing: Drawing
    table: ShownTable | None


@dataclasses.dataclass(frozen=True, slots=True)
class ShownChange:
    """An input that turns the verdict, with the address where it has done so."""

    label: str
    now: str
    flips_at: str
    becomes: str
    address: str


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """Everything that `calculators/_result.html` shows.

    `link` leads to the calculator with these inputs; empty where they are too long
    for an address. `query` is its part behind the question mark.
    """

    name: str
    title: str
    sign: str
    icon: str
    lead: Markup
    text: Markup
    figures: tuple[ShownFigure, ...]
    pictures: tuple[ShownPicture, ...]
    tables: tuple[ShownTable, ...]
    changes: tuple[ShownChange, ...]
    steps: tuple[ShownStep, ...]
    notes: tuple[str, ...]
    link: str
    query: str


def read_estimate(
    entry: Entry,
    inputs: Any,
    estimate: Estimate,
    *,
    topics: Collection[str] = (),
    bar_height: int = 44,
) -> Reading:
    """Put an estimate into words. `topics` are the concept pages that can be linked."""
    words = given_inputs.write(inputs)
    query = urlencode(words)
    short = len(query) <= LONGEST_LINK
    sign, icon = SIGNS[estimate.verdict.status]
    keys = _component_keys(estimate)
    return Reading(
        name=entry.name,
        title=entry.title,
        sign=sign,
        icon=icon,
        lead=_marked(estimate.verdict.lead, estimate.figures),
        text=_marked(estimate.verdict.text, estimate.figures),
        figures=tuple(show_figure(f, keys) for f in estimate.figures),
        pictures=_pictures(estimate, keys, bar_height),
        tables=tuple(show_table(t, keys) for t in estimate.tables),
        changes=tuple(_change(entry.name, c, words) for c in estimate.changes),
        steps=tuple(_step(s, topics) for s in estimate.steps),
        notes=estimate.notes,
        link=address(entry.name, query) if short else "",
        query=query if short else "",
    )


def address(name: str, query: str = "", *, part: str = "") -> str:
    """The address of a calculator, or of a `part` of it such as `result`."""
    path = f"/calculators/{name}{'/' if part else ''}{part}"
    return f"{path}?{query}" if query else path


def show_figure(figure: Figure, keys: Mapping[str, str] | None = None) -> ShownFigure:
    """A figure in words, with its interval where it is modelled.

    One named like a component of a drawing gets its colour from `keys`.
    """
    return ShownFigure(
        name=figure.name,
        label=figure.label,
        value=format_value(figure.value, figure.unit),
        span=interval(figure),
        note=figure.note,
        primary=figure.primary,
        key=(keys or {}).get(figure.label, ""),
    )


def interval(figure: Figure) -> str:
    """The interval of a modelled figure: `72.1 to 86.4 GB`; “exact” for a number."""
    if isinstance(figure.value, bool | str | None):
        return ""
    if figure.low is None or figure.high is None:
        return "exact"
    low, high = (format_value(v, figure.unit) for v in (figure.low, figure.high))
    number, _, unit = low.partition(NBSP)
    return f"{number if high.endswith(NBSP + unit) else low} to {high}"


def show_table(table: Table, keys: Mapping[str, str] | None = None) -> ShownTable:
    """A table in words; rows named like a component get its colour."""
    keys = keys or {}
    rows = tuple(
        tuple(_cell(c, keys if i == 0 else {}) for i, c in enumerate(row))
        for row in table.rows
    )
    numeric = tuple(
        any(row[i].number for row in rows if i < len(row))
        for i in range(len(table.columns))
    )
    sums = tuple(
        isinstance(row[0], str) and row[0] in _SUMS for row in table.rows if row
    )
    return ShownTable(table.label, table.columns, numeric, rows, sums)


_SUMS = frozenset({"Needed", "Total", "Sum", "All"})


def _cell(cell: str | tuple[float, str], keys: Mapping[str, str]) -> Cell:
    if isinstance(cell, str):
        number = _PLAIN_NUMBER.fullmatch(cell) is not None
        return Cell(cell, number=number, key=keys.get(cell, ""))
    return Cell(format_value(cell[0], cell[1]), number=True)


def _marked(sentence: str, figures: tuple[Figure, ...]) -> Markup:
    """A sentence of the verdict with the numbers that are its figures marked."""
    known = {
        format_value(f.value, f.unit)
        for f in figures
        if isinstance(f.value, int | float) and not isinstance(f.value, bool)
    }

    marked = []
    end = 0
    for match in _NUMBER.finditer(sentence):
        if match[0] in known and len(match[0]) > 2:  # a small number is any number
            marked.append(escape(sentence[end : match.start()]))
            marked.append(f'<span class="num">{match[0]}</span>')
            end = match.end()
    marked.append(escape(sentence[end:]))
    return Markup("".join(marked))  # noqa: S704 - every piece is escaped or digits


def _component_keys(estimate: Estimate) -> dict[str, str]:
    """The colour of every part that is drawn, by its name."""
    return {
        segment.label: look.key
        for picture in estimate.pictures
        if isinstance(picture, StackedBar)
        for segment, look in zip(picture.segments, looks_of(picture), strict=True)
    }


def _pictures(
    estimate: Estimate, keys: Mapping[str, str], bar_height: int
) -> tuple[ShownPicture, ...]:
    told = {row[0] for table in estimate.tables for row in table.rows if row}
    told |= {f.label for f in estimate.figures}
    shown = []
    for picture in estimate.pictures:
        if isinstance(picture, StackedBar):
            drawing = draw_bar(picture, height=bar_height)
            repeated = all(s.label in told for s in picture.segments)
        else:
            drawing, repeated = draw(picture), False
        table = None if repeated else show_table(drawing.table, keys)
        shown.append(ShownPicture(drawing, table))
    return tuple(shown)


def _change(name: str, change: Change, words: Mapping[str, str]) -> ShownChange:
    query = urlencode({**words, change.field: change.flips_at})
    return ShownChange(
        label=change.label,
        now=change.now,
        flips_at=change.flips_at,
        becomes=within(change.becomes),
        address=address(name, query) if len(query) <= LONGEST_LINK else "",
    )


def within(sentence: str) -> str:
    """A verdict as part of a longer sentence.

    >>> within("Does not fit.")
    'does not fit'
    """
    return f"{sentence[:1].lower()}{sentence[1:]}".rstrip(".")


def _step(step: Step, topics: Collection[str]) -> ShownStep:
    source = sources.SOURCES.get(step.source)
    return ShownStep(
        label=step.label,
        formula=step.formula,
        substituted=step.substituted,
        value=format_value(step.value, step.unit),
        source=f"{source.publisher}, {source.title}" if source else "",
        address=source.url if source else "",
        topic=step.topic if step.topic in topics else "",
    )
