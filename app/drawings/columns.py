"""Columns side by side, one for each day or week, with their scale at the right."""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from app.drawings.axes import Axis
from app.drawings.planes import PlotArea
from app.drawings.svg import Box, line, rect, svg_root, text

TOP, HEIGHT = 4.0, 120.0
_FOOT = 24.0
_GAP = 0.28


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnLabel:
    """Words below the columns at `place` percent; `anchor` is a class of text."""

    place: float
    words: str
    anchor: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnChart:
    """What is drawn; a column is its parts from the foot up, as (class, value).

    `width` is the part of the drawing that they take in percent; the words of the
    scale stand behind it. `limit` is drawn across them.
    """

    columns: Sequence[Sequence[tuple[str, float]]]
    axis: Axis
    names: Sequence[ColumnLabel]
    width: float
    limit: float | None = None

    @property
    def slot(self) -> float:
        """The room of one column in percent."""
        return self.width / len(self.columns)


def draw_columns(drawn: ColumnChart, says: str) -> Markup:
    """Draw the columns; `says` is the whole of it as a sentence."""
    plane = PlotArea(Box(0, TOP, drawn.width, HEIGHT), drawn.axis)
    marks = plane.scale(drawn.axis.named)
    for number, parts in enumerate(drawn.columns):
        marks += _column(parts, plane, drawn.slot, number)
    if drawn.limit is not None:
        at = plane.down(drawn.limit)
        marks.append(line("cap", 0, at, drawn.width, at))
    foot = TOP + HEIGHT + _FOOT
    marks += [text(n.words, n.place, foot - 6, n.anchor) for n in drawn.names]
    return svg_root(marks, foot, says)


def _column(
    parts: Sequence[tuple[str, float]], plane: PlotArea, slot: float, number: int
) -> list[str]:
    left, wide = slot * (number + _GAP / 2), slot * (1 - _GAP)
    marks, base = [], 0.0
    for look, value in parts:
        if value > 0:
            top, foot = plane.down(base + value), plane.down(base)
            marks.append(rect(look, left, top, wide, foot - top))
            base += value
    return marks
