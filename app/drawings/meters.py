"""Thin bars: how much of something is done."""

from collections.abc import Sequence
from typing import Protocol

from markupsafe import Markup

from app.drawings.svg import rect, svg_root, text


def draw_meter(share: float, says: str = "", height: float = 6) -> Markup:
    """One bar that is filled from the left; without words where they stand beside."""
    filled = rect("fill" if height > 6 else "ink", 0, 0, _held(share), height)
    return svg_root([rect("bg", 0, 0, 100, height), filled], height, says)


def draw_meters(meters: Sequence[tuple[str, float]], says: str) -> Markup:
    """Bars one below the other, each with its name before it."""
    marks: list[str] = []
    for row, (name, share) in enumerate(meters):
        top = row * _ROW
        marks.append(text(name, 0, top + 10))
        marks.append(rect("bg", _LEFT, top, 100 - _LEFT, 12))
        marks.append(rect("fill", _LEFT, top, _held(share) * (1 - _LEFT / 100), 12))
    return svg_root(marks, len(meters) * _ROW - 6, says)


def draw_steps(looks: Sequence[str], here: int, says: str) -> Markup:
    """A box for each step of a run; the one at `here`, from 0 on, stands out."""
    wide = 100 / max(1, len(looks))
    gap = 0.5 if wide > 2 else 0.1
    marks = [
        rect("mark", place * wide, 0, wide - gap, 10)
        if place == here
        else rect(look, place * wide, 2, wide - gap, 6)
        for place, look in enumerate(looks)
    ]
    return svg_root(marks, 10, says)


class OptionBar(Protocol):
    """An option of a question, and the share (0..1) that chose it."""

    @property
    def letter(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def share(self) -> float: ...


def draw_shares(options: Sequence[OptionBar], says: str) -> Markup:
    """The share of each option side by side, the right one in ink."""
    wide = 100 / max(1, len(options))
    marks: list[str] = []
    for place, option in enumerate(options):
        x, look = place * wide, "ink" if option.right else "soft"
        marks.append(rect(look, x, 0, option.share * wide * 0.88, 12))
        words = f"{option.letter} {option.share * 100:.0f}"
        marks.append(text(words, x, 27, "b" if option.right else ""))
    return svg_root(marks, 32, says)


_ROW = 20
_LEFT = 22


def _held(share: float) -> float:
    return 100 * min(max(share, 0.0), 1.0)
