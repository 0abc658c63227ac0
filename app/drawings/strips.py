"""Errors of many predictions: one strip for each kind, a dot for each case."""

import dataclasses

from markupsafe import Markup

from app.drawings.svg import dot, line, rect, svg_root, text

_STRIP = 40
_MOST = 0.5
_TICKS = (-0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5)
_TOP = 26


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorStrip:
    """One kind of case: its name, and (error, fitted) for each case.

    An error is predicted ÷ measured − 1; fitted cases are no evidence.
    """

    name: str
    errors: tuple[tuple[float, bool], ...]


def draw_strips(strips: tuple[ErrorStrip, ...]) -> Markup:
    """Draw every error from −50% to +50%; what is beyond sits at its end."""
    bottom = _TOP + len(strips) * _STRIP
    marks = [_band(bottom), *_axis(bottom)]
    for row, strip in enumerate(strips):
        top = _TOP + row * _STRIP
        marks.append(line("ax", 0, top, 100, top))
        marks.append(text(strip.name, 0, top + 14))
        marks += [_case(error, top + 27, fitted=f) for error, f in strip.errors]
    marks.append(line("edge", 50, _TOP, 50, bottom))
    return svg_root(marks, bottom + 8, _says(strips))


def place(error: float) -> float:
    """Where an error stands along the axis, in percent of its width.

    >>> place(0.0), place(0.5), place(-3.0)
    (50.0, 99.0, 1.0)
    """
    held = min(max(error, -_MOST), _MOST)
    return 50 + held / _MOST * 49


def _case(error: float, down: float, *, fitted: bool) -> str:
    if abs(error) > _MOST:
        return dot("bad-f", place(error), down, 4)
    return dot("hole" if fitted else "seen", place(error), down, 4)


def _band(bottom: float) -> str:
    """The stretch within ten percent."""
    start = place(-0.1)
    return rect("bg", start, _TOP, place(0.1) - start, bottom - _TOP)


def _axis(bottom: float) -> list[str]:
    marks = []
    for tick in _TICKS:
        words = "0" if not tick else f"{'+' if tick > 0 else '−'}{abs(tick):.0%}"
        marks.append(text(words, place(tick), 14, _anchor(tick)))
        marks.append(line("ax", place(tick), _TOP - 6, place(tick), bottom))
    return marks


def _anchor(tick: float) -> str:
    return "e" if tick == _MOST else "" if tick == -_MOST else "m"


def _says(strips: tuple[ErrorStrip, ...]) -> str:
    told = "; ".join(
        f"{s.name}, {len(s.errors)} cases, {sum(abs(e) <= 0.1 for e, _ in s.errors)} within 10%"
        for s in strips
    )
    return f"Error of each prediction by kind: {told or 'no cases'}."
