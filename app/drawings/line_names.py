"""Where the names of lines stand: beside them, clear of other lines and names."""

import dataclasses
from collections.abc import Iterator, Sequence

from app.drawings.svg import CHARACTER, Point

# A plot on a telephone is this wide in pixels; what is clear there is so everywhere.
_WIDTH = 250.0
_CLEAR = 8.0  # pixels between the middle of a name and a line
_HIGH = 15.0  # of a name, in pixels
_HALF = 4.0  # from the foot of a name to its middle
_MARK = 6.0  # half of a mark
_STEPS, _PARTS = 24, 20
_NEAR, _FAR = 4, 6  # places beside a line, and how many covered parts beat one farther
_ABOVE, _BELOW = -6.0, 16.0
_ABOVE_MARK, _BELOW_MARK = -12.0, 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class LabeledLine:
    """A line with its name: its places in percent across and pixels down.

    `mark` is a point that stands for itself; `apart` are points without a line.
    """

    words: str
    places: Sequence[Point]
    mark: bool = False
    apart: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class LineLabel:
    """A name at its place; it ends there where `before`, else it begins there."""

    of: LabeledLine
    across: float
    down: float
    before: bool

    @property
    def extent(self) -> tuple[float, float]:
        """From where to where it reaches across, in percent of a narrow plot."""
        wide = (len(self.of.words) * CHARACTER + 8) / _WIDTH * 100
        if self.before:
            return self.across - wide, self.across
        return self.across, self.across + wide


def place_names(lines: Sequence[LabeledLine], top: float, bottom: float) -> list[LineLabel]:
    """Each name where least is under it; those that would still touch are moved up.

    Marks choose first, then lines from the lowest to the highest. `lines` without
    words get no name, but are kept clear. `top` and `bottom` bound the plot, in pixels.
    """
    placed: list[LineLabel] = []
    wanted = [one for one in lines if one.words and one.places]
    wanted.sort(key=lambda one: (not one.mark, -one.places[-1][1]))
    for one in wanted:
        found = [
            (_covered(name, lines) + _FAR * (place >= _NEAR), name)
            for place, name in enumerate(_choices(one))
            if _inside(name, top, bottom) and not any(_touch(name, other) for other in placed)
        ]
        _, best = min(found, key=lambda cost: cost[0], default=(0, None))
        placed.append(best or _above_all(next(_choices(one)), placed))
    return placed


def _choices(one: LabeledLine) -> Iterator[LineLabel]:
    """Above and below the end of a line, its beginning, its end again; or a mark."""
    across, down = one.places[-1]
    late = across > 50
    if one.mark:
        for before in (late, not late):
            yield LineLabel(one, across, down + _ABOVE_MARK, before)
            yield LineLabel(one, across, down + _BELOW_MARK, before)
        return
    yield LineLabel(one, across, down + _ABOVE, late)
    yield LineLabel(one, across, down + _BELOW, late)
    first, height = one.places[0]
    yield LineLabel(one, first, height + _ABOVE, first > 50)
    yield LineLabel(one, first, height + _BELOW, first > 50)
    yield LineLabel(one, across, down + _ABOVE - _HIGH, late)
    yield LineLabel(one, across, down + _BELOW + _HIGH, late)


def _inside(name: LineLabel, top: float, bottom: float) -> bool:
    start, end = name.extent
    wide = start >= -2 and end <= 102
    return wide and top - 2 <= name.down - _HIGH + _HALF and name.down <= bottom - 2


def _touch(one: LineLabel, other: LineLabel) -> bool:
    (start, end), (other_start, other_end) = one.extent, other.extent
    beside = start >= other_end or other_start >= end
    return not beside and abs(one.down - other.down) < _HIGH


def _covered(name: LineLabel, lines: Sequence[LabeledLine]) -> int:
    """How many of the parts of a name lie on a line; a mark counts as all of them."""
    start, end = name.extent
    middle = name.down - _HALF
    parts = {
        int((x - start) / (end - start) * _PARTS)
        for line in lines
        for x, y in _passing(line, (start, end), middle)
        if abs(y - middle) < _CLEAR
    }
    marks = (place for line in lines if line.mark for place in line.places)
    hit = (start - 2 <= x <= end + 2 and abs(y - middle) < _CLEAR + _MARK for x, y in marks)
    return len(parts) + _PARTS * sum(hit)


def _passing(line: LabeledLine, extent: Point, middle: float) -> Iterator[Point]:
    """Points of a line where it passes between two places across.

    Of pieces that stay above or below what is near `middle` there are none.
    """
    start, end = extent
    high, low = middle - _CLEAR, middle + _CLEAR
    if line.apart:
        yield from ((x, y) for x, y in line.places if start <= x <= end)
        return
    for (x, y), (next_x, next_y) in zip(line.places, line.places[1:], strict=False):
        if next_x < start or x > end:
            continue
        if max(y, next_y) <= high or min(y, next_y) >= low:
            continue
        for step in range(_STEPS + 1):
            across = x + step / _STEPS * (next_x - x)
            if start <= across <= end:
                yield across, y + step / _STEPS * (next_y - y)


def _above_all(name: LineLabel, placed: Sequence[LineLabel]) -> LineLabel:
    """The name moved up until it touches no other."""
    for other in sorted(placed, key=lambda n: -n.down):
        if _touch(name, other):
            name = dataclasses.replace(name, down=other.down - _HIGH)
    return name
