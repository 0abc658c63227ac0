"""Elements of a drawing: geometry in attributes, color and type in the style sheet."""

import dataclasses
import functools
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from app.estimator.estimate import ResultTable

# Half of what a character of 13px text takes, and the narrowest drawing that
# shows words inside its bars (narrower ones hide them), in px.
CHARACTER = 6.6
NARROWEST = 500.0


_SILENT = 'aria-hidden="true"'
Point = tuple[float, float]


class Box(NamedTuple):
    """Where something stands: x and width in percent, y and height in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclasses.dataclass(frozen=True, slots=True)
class SvgChart:
    """A finished picture. `key` names the fillings drawn, as (class, words).

    `says` is the whole reading as one sentence: what a listener hears.
    """

    label: str
    svg: Markup
    says: str
    table: ResultTable
    key: tuple[tuple[str, str], ...] = ()


def svg_root(
    content: Iterable[str],
    height: float,
    says: str,
    classes: str = "g",
    width: float = 0.0,
) -> Markup:
    """The drawing itself: no viewBox, so text keeps its size at any width.

    One that says nothing repeats what stands beside it. `width` is in pixels, 0 for
    all that there is.
    """
    told = f'role="img" aria-label="{escape(str(says))}"' if says else _SILENT
    wide = f' width="{number(width)}"' if width else ""
    return Markup(  # noqa: S704 - every text in it went through `escape`
        f'<svg class="{classes}" {told}{wide} height="{number(height)}">{"".join(content)}</svg>'
    )


def rect(classes: str, x: float, y: float, width: float, height: float) -> str:
    """A box: x and width in percent of the drawing, y and height in pixels."""
    return (
        f'<rect class="{classes}" x="{number(x)}%" y="{number(y)}"'
        f' width="{number(width)}%" height="{number(height)}"/>'
    )


def square(classes: str, x: float, y: float, width: float, height: float) -> str:
    """A box in pixels both ways, in a drawing of a width of its own."""
    return (
        f'<rect class="{classes}" x="{number(x)}" y="{number(y)}"'
        f' width="{number(width)}" height="{number(height)}"/>'
    )


def tile(classes: str, x: float, y: float, side: float) -> str:
    """A square mark of `side` pixels around x percent and y pixels."""
    half = number(side / 2)
    return (
        f'<svg x="{number(x)}%" y="{number(y)}" width="1" height="1"'
        f' overflow="visible"><rect class="{classes}" x="-{half}" y="-{half}"'
        f' width="{number(side)}" height="{number(side)}"/></svg>'
    )


def label(words: str, x: float, y: float) -> str:
    """Words in pixels both ways."""
    return f'<text x="{number(x)}" y="{number(y)}">{escaped(words)}</text>'


def tag(letter: str, x: float, y: float) -> str:
    """A letter in a circle around a point, in pixels both ways."""
    return (
        f'<circle class="tag" cx="{number(x)}" cy="{number(y)}" r="10"/>'
        f'<text class="on-tag" x="{number(x)}" y="{number(y + 4.5)}"'
        f' text-anchor="middle" fill="currentColor" stroke="none">'
        f"{escaped(letter)}</text>"
    )


def line(classes: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line, x in percent, y in pixels."""
    return (
        f'<line class="{classes}" x1="{number(x1)}%" x2="{number(x2)}%"'
        f' y1="{number(y1)}" y2="{number(y2)}"/>'
    )


def text(words: str, x: float, y: float, classes: str = "", *, bold: str = "", dx: int = 0) -> str:
    """Words at x percent and y pixels; `bold` stands in front of them."""
    strong = f'<tspan class="b">{escaped(bold)}</tspan>' if bold else ""
    gap = " " if bold and words else ""
    kind = f' class="{classes}"' if classes else ""
    shift = f' dx="{dx}"' if dx else ""
    return (
        f'<text{kind} x="{number(x)}%" y="{number(y)}"{shift}>{strong}{gap}{escaped(words)}</text>'
    )


escaped = functools.lru_cache(maxsize=4096)(escape)  # labels and ticks come again


def dot(classes: str, x: float, y: float, radius: float) -> str:
    """A round mark at x percent and y pixels."""
    return f'<circle class="{classes}" cx="{number(x)}%" cy="{number(y)}" r="{number(radius)}"/>'


def polyline(classes: str, points: Iterable[Point]) -> str:
    """A line through points of a nested drawing, 0 to 100 both ways."""
    return f'<polyline class="{classes}" points="{_points(points)}"/>'


def band(points: Iterable[Point]) -> str:
    """An area within points of a nested drawing."""
    return f'<polygon class="band" points="{_points(points)}"/>'


def nested(shapes: Iterable[str], box: Box) -> str:
    """A drawing of 100 by 100, stretched over a box; lines keep their width."""
    return (
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible"'
        f' x="{number(box.x)}%" y="{number(box.y)}" width="{number(box.width)}%"'
        f' height="{number(box.height)}">{"".join(shapes)}</svg>'
    )


def cross_line(classes: str, x: float, y: float, reach: float = 5.0) -> str:
    """A short line across x percent, `reach` pixels to both sides."""
    return (
        f'<svg x="{number(x)}%" y="{number(y)}" width="1" height="1"'
        f' overflow="visible"><line class="{classes}" x1="-{number(reach)}"'
        f' x2="{number(reach)}" y1="0" y2="0"/></svg>'
    )


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


@functools.lru_cache(maxsize=4096)  # a picture has few places and names them often
def number(value: float) -> str:
    """A coordinate with two decimals at most.

    >>> number(8.75), number(40.0), number(1 / 3)
    ('8.75', '40', '0.33')
    """
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def fits(words: str, width_percent: float) -> bool:
    """Whether words find room in a box of so many percent of a drawing."""
    return len(words) * CHARACTER + 10 <= width_percent / 100 * NARROWEST
