"""Where things stand on an axis: round numbers, per cent across, pixels down."""

import dataclasses
import itertools
import math

TOP = 4.0
HEIGHT = 120.0
_UNITS = (1, 2, 5)


@dataclasses.dataclass(frozen=True, slots=True)
class Tick:
    """A line of the axis at `y` pixels, and its number in words."""

    y: str
    words: str


def round_steps(most: float, lines: int = 3) -> tuple[int, ...]:
    """Round numbers from 0 until `most` is covered, in about `lines` steps.

    >>> round_steps(27), round_steps(4), round_steps(0), round_steps(130)
    ((0, 10, 20, 30), (0, 2, 4), (0, 1), (0, 50, 100, 150))
    """
    sizes = (unit * 10**power for power in itertools.count() for unit in _UNITS)
    step = next(size for size in sizes if size * lines >= most)
    return tuple(step * n for n in range(max(1, math.ceil(most / step)) + 1))


def down(value: float, low: float, high: float) -> str:
    """How far from the top a value stands, in pixels; `high` is at the top."""
    share = (value - low) / (high - low)
    return pixels(TOP + HEIGHT * (1 - min(1.0, max(0.0, share))))


def across(place: float, count: int, width: float = 100.0) -> float:
    """The place of the item `place` of `count` on a line of `width` per cent."""
    return width * place / max(1, count - 1)


def percent(value: float) -> str:
    """A length across, e.g. “12.5%”."""
    return f"{value:.4g}%"


def pixels(value: float) -> str:
    """A length down, without needless digits."""
    return f"{value:.4g}"
