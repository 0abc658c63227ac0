"""Where the names of lines stand: beside them, clear of other lines and names."""

import dataclasses
from collections.abc import Iterator, Sequence

from app.drawings.svg import CHARACTER, Point

# A plot on a telephone is this wide in pixels; what is clear there is so everywhere.
_WIDTH = 250.0
_CLEAR = 8.0  # pixels between the middle of a name and a line
_HIGH = 15.0  # of a name, in pixels
_HALF = 4.0  # from the foot of a name to its middle
_STEPS = 12
_ABOVE, _BELOW = -6.0, 16.0
_ABOVE_MARK, _BELOW_MARK = -12.0, 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """A line with its name: its places in percent across and pixels down.

    `mark` is a point that stands for itself; `apart` are points without a line.
    """

    words: str
    places: Sequence[Point]
    mark: bool = False
    apart: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Name:
    """A name at its place; it ends there where `before`, else it begins there."""

    of: Named
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


def place_names(lines: Sequence[Named], top: float, bottom: float) -> list[Name]:
    """Each name where most is free; those that would still touch are moved up.

    Marks choose first, then lines from the lowest to the highest. `lines` without
    words get no name, but are kept clear. `top` and `bottom` bound the plot, in pixels.
    """
    placed: list[Name] = []
    wanted = [one for one in lines if one.words and one.places]
    wanted.sort(key=lambda one: (not one.mark, -one.places[-1][1]))
    for one in wanted:
        found = [name for name in _choices(one) if _inside(name, top, bottom)]
        free = [n for n in found if not any(_touch(n, other) for other in placed)]
        clear = next((n for n in free if _room(n, lines) >= _CLEAR), None)
        if clear is None:
            clear = max(free, key=lambda n: _room(n, lines), default=None)
        placed.append(clear or _above_all(next(_choices(one)), placed))
    return placed


def _choices(one: Named) -> Iterator[Name]:
    """Above and below the end of a line, then its beginning; around a mark."""
    across, down = one.places[-1]
    late = across > 50
    if one.mark:
        for before in (late, not late):
            yield Name(one, across, down + _ABOVE_MARK, before)
            yield Name(one, across, down + _BELOW_MARK, before)
        return
    yield Name(one, across, down + _ABOVE, late)
    yield Name(one, across, down + _BELOW, late)
    across, down = one.places[0]
    yield Name(one, across, down + _ABOVE, across > 50)
    yield Name(one, across, down + _BELOW, across > 50)


def _inside(name: Name, top: float, bottom: float) -> bool:
    start, end = name.extent
    wide = start >= -2 and end <= 102
    return wide and top - 2 <= name.down - _HIGH + _HALF and name.down <= bottom - 2


def _touch(one: Name, other: Name) -> bool:
    (start, end), (other_start, other_end) = one.extent, other.extent
    beside = start >= other_end or other_start >= end
    return not beside and abs(one.down - other.down) < _HIGH


def _room(name: Name, lines: Sequence[Named]) -> float:
    """The pixels between the middle of a name and what is drawn nearest to it."""
    start, end = name.extent
    middle = name.down - _HALF
    passing = (down for line in lines for down in _passing(line, start, end))
    return min((abs(down - middle) for down in passing), default=_WIDTH)


def _passing(line: Named, start: float, end: float) -> Iterator[float]:
    """How far down a line is where it passes between two places across."""
    for (x, y), (next_x, next_y) in zip(line.places, line.places[1:], strict=False):
        if line.apart or next_x < start or x > end:
            continue
        for step in range(_STEPS + 1):
            part = step / _STEPS
            if start <= x + part * (next_x - x) <= end:
                yield y + part * (next_y - y)
    if line.apart or line.mark:
        yield from (y for x, y in line.places if start <= x <= end)


def _above_all(name: Name, placed: Sequence[Name]) -> Name:
    """The name moved up until it touches no other."""
    for other in sorted(placed, key=lambda n: -n.down):
        if _touch(name, other):
            name = dataclasses.replace(name, down=other.down - _HIGH)
    return name
