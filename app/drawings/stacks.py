"""Parts side by side along an axis, each with its name where there is room for it."""

import dataclasses
from collections.abc import Iterable

from app.drawings.axes import Axis
from app.drawings.components import SegmentStyle
from app.drawings.svg import fits, rect, text


@dataclasses.dataclass(frozen=True, slots=True)
class StackSegment:
    """One part of a sum in the base unit of its axis; `words` are its number."""

    label: str
    value: float
    look: SegmentStyle
    words: str


def stack(
    parts: Iterable[StackSegment], axis: Axis, top: float, height: float, cap: float
) -> list[str]:
    """The parts from zero on; `cap` is the place of the limit in percent."""
    marks: list[str] = []
    reached, end = 0.0, axis.place(0.0)
    for part in parts:
        reached += part.value
        at, end = end, axis.place(reached)
        wide = end - at
        if wide <= 0:
            continue
        marks.append(rect(f"{part.look.fill} gap", at, top, wide, height))
        # Stripes lie over what is beyond the limit; words would not be read there.
        seen = min(at + wide, cap) - at
        words = _inside(part, seen)
        if words:
            classes = " ".join(c for c in ("in-bar", part.look.words, "m") if c)
            marks.append(text(words, at + seen / 2, top + height / 2 + 4.5, classes))
    return marks


def _inside(part: StackSegment, wide: float) -> str:
    """The name and number of a part where they fit, else its letter, else nothing."""
    if part.look.words == "none":
        return ""
    long = f"{part.label} {part.words}"
    words = long if fits(long, wide) else part.look.letter or part.label
    return words if fits(words, wide) else ""
