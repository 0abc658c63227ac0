"""SVG elements, verdict icons, progress meters, standalone SVG files."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple, Protocol

from markupsafe import Markup

from app.estimator.result import ResultTable

# Half the width of a character of 13px text, and the narrowest drawing that
# shows text inside its bars (narrower ones hide it), in px.
CHARACTER = 6.6
NARROWEST = 500.0

_SILENT = 'aria-hidden="true"'
Point = tuple[float, float]


class Box(NamedTuple):
    """A rectangle: x and width in percent, y and height in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclasses.dataclass(frozen=True, slots=True)
class SvgChart:
    """A finished chart. `key` is its legend, as (class, text).

    `says` is the text alternative: one sentence.
    """

    label: str
    svg: Markup
    says: str
    table: ResultTable
    key: tuple[tuple[str, str], ...] = ()


def svg_root(
    content: Iterable[str], height: float, says: str, classes: str = "g", width: float = 0.0
) -> Markup:
    """Return the `<svg>` element: no viewBox, so text keeps its size at any width.

    An empty `says` hides it from screen readers: the text next to it says the same.
    `width` is in pixels, 0 for the full width.
    """
    role = f'role="img" aria-label="{escape(str(says))}"' if says else _SILENT
    wide = f' width="{svg_number(width)}"' if width else ""
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<svg class="{classes}" {role}{wide} height="{svg_number(height)}">{"".join(content)}</svg>'
    )


def draw_rect(classes: str, x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle: x and width in percent of the drawing, y and height in pixels."""
    return (
        f'<rect class="{classes}" x="{svg_number(x)}%" y="{svg_number(y)}"'
        f' width="{svg_number(width)}%" height="{svg_number(height)}"/>'
    )


def draw_square(classes: str, x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle with all sizes in pixels, for a drawing of fixed width."""
    return (
        f'<rect class="{classes}" x="{svg_number(x)}" y="{svg_number(y)}"'
        f' width="{svg_number(width)}" height="{svg_number(height)}"/>'
    )


def draw_tile(classes: str, x: float, y: float, side: float) -> str:
    """Return a square of `side` pixels centered at x percent and y pixels."""
    half = svg_number(side / 2)
    return (
        f'<svg x="{svg_number(x)}%" y="{svg_number(y)}" width="1" height="1"'
        f' overflow="visible"><rect class="{classes}" x="-{half}" y="-{half}"'
        f' width="{svg_number(side)}" height="{svg_number(side)}"/></svg>'
    )


def draw_label(words: str, x: float, y: float) -> str:
    """Return text at a position in pixels."""
    return f'<text x="{svg_number(x)}" y="{svg_number(y)}">{escape(words)}</text>'


def draw_tag(letter: str, x: float, y: float) -> str:
    """Return a letter in a circle around a point, in pixels."""
    return (
        f'<circle class="tag" cx="{svg_number(x)}" cy="{svg_number(y)}" r="10"/>'
        f'<text class="on-tag" x="{svg_number(x)}" y="{svg_number(y + 4.5)}"'
        f' text-anchor="middle" fill="currentColor" stroke="none">'
        f"{escape(letter)}</text>"
    )


def draw_line(classes: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a straight line, x in percent, y in pixels."""
    return (
        f'<line class="{classes}" x1="{svg_number(x1)}%" x2="{svg_number(x2)}%"'
        f' y1="{svg_number(y1)}" y2="{svg_number(y2)}"/>'
    )


def draw_text(
    words: str, x: float, y: float, classes: str = "", *, bold: str = "", dx: int = 0
) -> str:
    """Return text at x percent and y pixels; `bold` is written in front of it."""
    strong = f'<tspan class="b">{escape(bold)}</tspan>' if bold else ""
    gap = " " if bold and words else ""
    kind = f' class="{classes}"' if classes else ""
    shift = f' dx="{dx}"' if dx else ""
    return f'<text{kind} x="{svg_number(x)}%" y="{svg_number(y)}"{shift}>{strong}{gap}{escape(words)}</text>'


def draw_dot(classes: str, x: float, y: float, radius: float) -> str:
    """Return a circle at x percent and y pixels."""
    return f'<circle class="{classes}" cx="{svg_number(x)}%" cy="{svg_number(y)}" r="{svg_number(radius)}"/>'


def draw_polyline(classes: str, points: Iterable[Point]) -> str:
    """Return a line through points of a nested drawing, 0 to 100 both ways."""
    return f'<polyline class="{classes}" points="{_points_text(points)}"/>'


def draw_band(points: Iterable[Point]) -> str:
    """Return a filled area between points of a nested drawing."""
    return f'<polygon class="band" points="{_points_text(points)}"/>'


def draw_nested(shapes: Iterable[str], box: Box) -> str:
    """Return a drawing of 100 by 100, stretched over a box; lines keep their width."""
    return (
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" overflow="visible"'
        f' x="{svg_number(box.x)}%" y="{svg_number(box.y)}" width="{svg_number(box.width)}%"'
        f' height="{svg_number(box.height)}">{"".join(shapes)}</svg>'
    )


def cross_line(classes: str, x: float, y: float, reach: float = 5.0) -> str:
    """Return a short vertical line at x percent, `reach` pixels up and down."""
    return (
        f'<svg x="{svg_number(x)}%" y="{svg_number(y)}" width="1" height="1"'
        f' overflow="visible"><line class="{classes}" x1="-{svg_number(reach)}"'
        f' x2="{svg_number(reach)}" y1="0" y2="0"/></svg>'
    )


def _points_text(points: Iterable[Point]) -> str:
    return " ".join(f"{svg_number(x)},{svg_number(y)}" for x, y in points)


def svg_number(value: float) -> str:
    """Format a coordinate with at most two decimals.

    >>> svg_number(8.75), svg_number(40.0), svg_number(1 / 3)
    ('8.75', '40', '0.33')
    """
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def text_fits(words: str, width_percent: float) -> bool:
    """Return whether text fits into a box of this width in percent of a drawing."""
    return len(words) * CHARACTER + 10 <= width_percent / 100 * NARROWEST


class VerdictIcon(NamedTuple):
    """The CSS class and the icon of a verdict; both may be empty.

    `word` names the result of a graded answer; an estimate has a sentence instead.
    """

    look: str
    icon: str
    word: str = ""


SIGNS = {
    # Verdicts of an estimate.
    "fits": VerdictIcon("good", "i-check"),
    "tight": VerdictIcon("warn", "i-tight"),
    "no": VerdictIcon("bad", "i-cross"),
    "info": VerdictIcon("", ""),
    # Verdicts of an answer.
    "right": VerdictIcon("good", "i-check", "right"),
    "partly": VerdictIcon("warn", "i-tight", "partly right"),
    "wrong": VerdictIcon("bad", "i-cross", "not right"),
    "near": VerdictIcon("warn", "i-tight"),
    "refused": VerdictIcon("warn", "i-alert"),
}

_WIDTH, _LEFT, _RIGHT, _ABOVE = 820, 60, 24, 10
_TOKEN = re.compile(r"--([\w-]+):\s*(?:light-dark\()?\s*(#[0-9a-f]+)")
_USE = re.compile(r"var\(--([\w-]+)\)")
_RULE = re.compile(r"^\.(?:g[ .]|defs)[^{]*\{[^}]*\}.*$", re.MULTILINE)
_HEIGHT = re.compile(r' height="([\d.]+)"')
_PATTERNS = (
    '<defs class="defs"><pattern id="fill-free" width="6" height="6"'
    ' patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0v6" stroke-width="1"/></pattern>'
    '<pattern id="fill-over" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(-45)"><path class="pap" d="M0 0v7"/></pattern></defs>'
)


def standalone_svg(drawing: SvgChart, tokens: str, rules: str) -> str:
    """Return the drawing with its styles inlined; `tokens` and `rules` are the style sheets."""
    height = float((_HEIGHT.search(drawing.svg) or ["", "200"])[1])
    inner = drawing.svg.replace(
        Markup("<svg "),
        Markup(  # noqa: S704 - numbers only, no user text
            f'<svg x="{_LEFT}" y="{_ABOVE}" width="{_WIDTH - _LEFT - _RIGHT}" '
        ),
        1,
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}"'
        f' height="{svg_number(height + 2 * _ABOVE)}" class="g">'
        f"<style>{chart_style(tokens, rules)}</style>{_PATTERNS}"
        f'<rect width="100%" height="100%" fill="#fff"/>{inner}</svg>\n'
    )


def chart_style(tokens: str, rules: str) -> str:
    """Return the chart rules with every color written out, in the light theme.

    >>> chart_style("--ink: light-dark(#111, #eee)", ".g .e { fill: var(--ink) }")
    '.g .e { fill: #111 } .g { font: 400 13px "Source Sans 3", sans-serif }'
    """
    colors = dict(_TOKEN.findall(tokens))
    rules_text = " ".join(rule[0] for rule in _RULE.finditer(rules))
    written = _USE.sub(lambda use: colors.get(use[1], "sans-serif"), rules_text)
    return f'{written} .g {{ font: 400 13px "Source Sans 3", sans-serif }}'


def draw_meter(share: float, says: str = "", height: float = 6) -> Markup:
    """Draw a bar filled from the left; `says` is its text alternative, or empty."""
    filled = draw_rect("fill" if height > 6 else "ink", 0, 0, _clamp_share(share), height)
    return svg_root([draw_rect("bg", 0, 0, 100, height), filled], height, says)


def draw_meters(meters: Sequence[tuple[str, float]], says: str) -> Markup:
    """Draw bars one below the other, each with its name before it."""
    marks: list[str] = []
    for row, (name, share) in enumerate(meters):
        top = row * _ROW
        marks.append(draw_text(name, 0, top + 10))
        marks.append(draw_rect("bg", _METERS_LEFT, top, 100 - _METERS_LEFT, 12))
        marks.append(
            draw_rect("fill", _METERS_LEFT, top, _clamp_share(share) * (1 - _METERS_LEFT / 100), 12)
        )
    return svg_root(marks, len(meters) * _ROW - 6, says)


class OptionBar(Protocol):
    """An option of a question, and the share (0..1) of learners that chose it."""

    @property
    def letter(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def share(self) -> float: ...


def draw_shares(options: Sequence[OptionBar], says: str) -> Markup:
    """Draw the share of each option side by side, the right one in ink."""
    wide = 100 / max(1, len(options))
    marks: list[str] = []
    for place, option in enumerate(options):
        x, look = place * wide, "ink" if option.right else "soft"
        marks.append(draw_rect(look, x, 0, option.share * wide * 0.88, 12))
        text = f"{option.letter} {option.share * 100:.0f}"
        marks.append(draw_text(text, x, 27, "b" if option.right else ""))
    return svg_root(marks, 32, says)


_ROW = 20
_METERS_LEFT = 22


def _clamp_share(share: float) -> float:
    return 100 * min(max(share, 0.0), 1.0)
