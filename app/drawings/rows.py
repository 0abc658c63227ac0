"""Sums one below the other against a common limit, in a unit that is given."""

import dataclasses

from markupsafe import Markup

from app.drawings.axes import Axis, scale_below, unit_axis
from app.drawings.components import BARE, LOOKS, SegmentStyle
from app.drawings.stacks import StackSegment, stack
from app.drawings.svg import line, rect, svg_root, text
from app.estimator.units import NBSP, format_number, with_unit

_ROW, _BAR, _FOOT = 72, 34, 34
_ROOM = 1.04
_NAMES = {"kv": "KV cache"}
_KNOWN: dict[str, SegmentStyle] = {str(name): look for name, look in LOOKS.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class LabeledSum:
    """One sum: what it is, and its parts by name.

    A part that is named like a component of memory gets its color.
    """

    label: str
    parts: tuple[tuple[str, float], ...]

    @property
    def total(self) -> float:
        """The length of the row."""
        return sum(value for _, value in self.parts)


@dataclasses.dataclass(frozen=True, slots=True)
class RowChart:
    """All that is drawn, in one unit; `alt` takes the place of the words for it."""

    title: str
    alt: str
    unit: str
    rows: tuple[LabeledSum, ...]
    limit: float | None = None
    limit_label: str = "limit"

    @property
    def axis(self) -> Axis:
        """The axis that all of them share."""
        most = max([row.total for row in self.rows] + [self.limit or 0.0])
        return unit_axis(most, self.unit, _ROOM)

    def written(self, value: float) -> str:
        """A number with the unit."""
        return with_unit(format_number(float(f"{value:.6g}")), self.unit)


def draw_rows(rows: RowChart) -> Markup:
    """Draw each row with its name and sum above it, and the limit across them."""
    axis = rows.axis
    bottom = len(rows.rows) * _ROW
    marks: list[str] = []
    for place, row in enumerate(rows.rows):
        marks += _row(row, rows, axis, place * _ROW)
    marks += scale_below(axis, bottom - 6)
    if rows.limit is not None:
        at = axis.place(rows.limit)
        words = f"{rows.written(rows.limit)}, {rows.limit_label}"
        marks.append(text(words, at, bottom + 31, "e" if at > 50 else ""))
    return svg_root(marks, bottom + _FOOT, rows.alt or sentence(rows))


def key_of(rows: RowChart) -> tuple[tuple[str, str], ...]:
    """The components drawn, as (class, words)."""
    names = dict.fromkeys(name for row in rows.rows for name, _ in row.parts)
    return tuple((_KNOWN[n].key, label_of(n)) for n in names if n in _KNOWN)


def label_of(name: str) -> str:
    """A component in words.

    >>> label_of("kv"), label_of("weights")
    ('KV cache', 'Weights')
    """
    return _NAMES.get(name, name.capitalize())


def _inside(label: str) -> str:
    """A label within a sentence.

    >>> _inside("Weights"), _inside("KV cache")
    ('weights', 'KV cache')
    """
    return label if label[1:2].isupper() else label.lower()


def sentence(rows: RowChart) -> str:
    """The whole drawing in words, for those who do not see it."""
    said = []
    for row in rows.rows:
        parts = ", ".join(
            f"{_inside(label_of(name))} {rows.written(value)}" for name, value in row.parts
        )
        alone = len(row.parts) == 1 and row.parts[0][0] == row.label
        words = f"{row.label}: {rows.written(row.total)}"
        said.append(words if alone else f"{words}, of which {parts}")
    if rows.limit is not None:
        said.append(f"the limit is {rows.written(rows.limit)}")
    told = "; ".join(said).replace(NBSP, " ")
    return f"{rows.title}. {told}." if rows.title else f"{told}."


def _row(row: LabeledSum, rows: RowChart, axis: Axis, top: float) -> list[str]:
    limit = rows.limit
    over = row.total - limit if limit is not None else 0.0
    words = f"{row.label}: {rows.written(row.total)}"
    if over > 0:
        words += f", {rows.written(over)} over"
    cap = 100.0 if limit is None else axis.place(limit)
    marks = [text(words, 0, top + 18, "b")]
    marks += stack(map(_part, row.parts), axis, top + 26, _BAR, cap)
    if over > 0:
        marks.append(rect("over", cap, top + 26, axis.place(row.total) - cap, _BAR))
    if limit is not None:
        marks.append(line("cap", cap, top + 22, cap, top + 66))
    return marks


def _part(part: tuple[str, float]) -> StackSegment:
    name, value = part
    words = format_number(float(f"{value:.3g}"))
    return StackSegment(label_of(name), value, _KNOWN.get(name, BARE), words)
