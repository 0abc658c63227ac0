"""Bars one below the other, each with what is there only under a condition."""

import dataclasses
from collections.abc import Sequence

from markupsafe import Markup

from app.drawings.svg import rect, svg_root, text

_ROW, _BAR = 48, 16
# The words of the longest bar stand beside it, in the narrowest drawing as well.
_WIDEST = 74.0  # percent
_NARROWEST, _LETTER, _APART = 288.0, 6.5, 8  # pixels


@dataclasses.dataclass(frozen=True, slots=True)
class DoubleBar:
    """A bar of length `value`; `beyond` is how far it reaches under a condition.

    `words` stand behind it; `look` is the class of its filling.
    """

    label: str
    value: float
    words: str
    beyond: float = 0.0
    look: str = "fill"


def draw_pairs(pairs: Sequence[DoubleBar], says: str) -> Markup:
    """All bars on one scale from zero; `says` is the whole as a sentence."""
    most = max((max(p.value, p.beyond) for p in pairs), default=0.0) or 1.0
    letters = max((len(p.words) for p in pairs), default=0)
    room = 1 - (_APART + _LETTER * letters) / _NARROWEST
    widest = min(_WIDEST, 100 * room)
    marks: list[str] = []
    for place, pair in enumerate(pairs):
        top = place * _ROW
        long, far = (widest * v / most for v in (pair.value, pair.beyond))
        marks.append(text(pair.label, 0, top + 13, "b"))
        if far > long:
            marks.append(rect("none", 0, top + 20, far, _BAR))
        marks.append(rect(pair.look, 0, top + 20, long, _BAR))
        marks.append(text(pair.words, max(long, far), top + 33, dx=_APART))
    return svg_root(marks, len(pairs) * _ROW, says)
