"""Who chooses what: the share of each option, fifth by fifth of the learners."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from app.drawings.planes import SHARES, PlotArea, in_percent
from app.drawings.svg import Box, Point, nested, polyline, svg_root, text

_TOP, _HEIGHT, _APART = 16.0, 150.0, 15.0
_LEFT, _WIDE = 12.0, 80.0
_BOX = Box(_LEFT, _TOP, _WIDE, _HEIGHT)
_PLANE = PlotArea(Box(0, _TOP, 100, _HEIGHT), SHARES)
Fifths = Sequence[tuple[int, Mapping[str, float]]]


@dataclasses.dataclass(frozen=True, slots=True)
class OptionCurve:
    """One option: its letter, whether it is right, its share in each fifth."""

    letter: str
    right: bool
    shares: tuple[float, ...]


def curves_of(options: Sequence[tuple[str, str, bool]], found: Fifths) -> list[OptionCurve]:
    """The curves of options given as (key, letter, right); none without fifths."""
    if not found:
        return []
    return [
        OptionCurve(letter, right, tuple(shares.get(key, 0.0) for _, shares in found))
        for key, letter, right in options
    ]


def draw_curves(curves: Sequence[OptionCurve]) -> Markup:
    """A good question has its key rising and the rest falling."""
    marks = _PLANE.scale(in_percent, "left")
    marks += [_lines(curves), *_names(curves)]
    bottom = _TOP + _HEIGHT + 19
    marks.append(text("weakest fifth", _LEFT, bottom))
    marks.append(text("strongest fifth", _LEFT + _WIDE, bottom, "e"))
    return svg_root(marks, bottom + 6, says(curves))


def says(curves: Sequence[OptionCurve]) -> str:
    """The drawing as a sentence."""
    told = "; ".join(
        f"{c.letter}{', the key,' if c.right else ''} from {c.shares[0]:.0%} to {c.shares[-1]:.0%}"
        for c in curves
    )
    return f"Share choosing each option, weakest to strongest fifth: {told}."


def _lines(curves: Sequence[OptionCurve]) -> str:
    return nested((polyline("ln" if c.right else "ln ln2", _points(c)) for c in curves), _BOX)


def _points(curve: OptionCurve) -> Iterator[Point]:
    step = 100 / (len(curve.shares) - 1)
    return ((n * step, 100 - 100 * share) for n, share in enumerate(curve.shares))


def _names(curves: Sequence[OptionCurve]) -> list[str]:
    """The letters at the ends of their lines, moved apart where they would touch."""
    made = []
    free = _TOP + _HEIGHT + 4
    for curve in sorted(curves, key=lambda c: c.shares[-1]):
        down = min(_PLANE.down(curve.shares[-1]) + 4, free)
        free = down - _APART
        words = f"{curve.letter} key" if curve.right else curve.letter
        made.append(text(words, 94, down, "b" if curve.right else ""))
    return made
