"""How parts are drawn: the colors of what memory holds, and of the parts of any sum."""

import dataclasses
import string
from collections.abc import Iterator, Sequence

from app.estimator.estimate import Component, StackedBar


@dataclasses.dataclass(frozen=True, slots=True)
class SegmentStyle:
    """How a part is drawn: its filling, words upon it, its letter, its key."""

    fill: str
    words: str
    letter: str
    key: str


LOOKS: dict[Component, SegmentStyle] = {
    "weights": SegmentStyle("w", "", "W", "k-w"),
    "gradients": SegmentStyle("gr", "on-gr", "G", "k-g"),
    "optimizer": SegmentStyle("o", "", "O", "k-o"),
    "activations": SegmentStyle("a", "on-a", "A", "k-a"),
    "kv": SegmentStyle("k", "", "K", "k-k"),
    "overhead": SegmentStyle("r", "", "R", "k-r"),
    "other": SegmentStyle("soft", "on-soft", "", "k-x"),
}
BARE = SegmentStyle("fill", "none", "", "k-s")
"""A part without a color of its own, and without words upon it."""
# The colors of memory mean parts of memory; other sums are drawn in ink and paper.
PLAIN = (
    SegmentStyle("n1", "on-n1", "", "k-n1"),
    SegmentStyle("soft", "on-soft", "", "k-x"),
    SegmentStyle("ink", "on-n1", "", "k-n3"),
    SegmentStyle("bg line", "on-soft", "", "k-n4"),
    BARE,
)
LETTERS = {look.letter: look for look in LOOKS.values() if look.letter}
"""The parts of memory by the letter that stands for them in a text."""


def looks_of(bar: StackedBar) -> tuple[SegmentStyle, ...]:
    """The look of each part, in the order of the parts; no two neighbors share one.

    Nor do any two parts share a letter, so that nobody needs to see the colors.
    """
    if bar.unit in {"B", "slice"}:
        looks = list(_numbered(bar))
    else:
        looks = [
            dataclasses.replace(PLAIN[i % len(PLAIN)], letter=s.label[:1])
            for i, s in enumerate(bar.segments)
        ]
    for place in range(1, len(looks)):
        if looks[place].fill == looks[place - 1].fill:
            looks[place] = _paler(looks[place])
    return tuple(_lettered(looks, [s.label for s in bar.segments]))


def _numbered(bar: StackedBar) -> Iterator[SegmentStyle]:
    """The looks of memory; of what has no letter, several count a, b, c.

    One alone has the first letter of its name.
    """
    several = sum(s.component == "other" for s in bar.segments) > 1
    names = iter(string.ascii_lowercase)
    for segment in bar.segments:
        look = LOOKS[segment.component]
        if segment.component == "other":
            letter = next(names, "") if several else segment.label[:1]
            look = dataclasses.replace(look, letter=letter)
        yield look


def _paler(look: SegmentStyle) -> SegmentStyle:
    """The second of two parts of one color."""
    return dataclasses.replace(
        look, fill=f"{look.fill} pale", words="on-pale", key=f"{look.key} k-pale"
    )


def _lettered(looks: Sequence[SegmentStyle], labels: Sequence[str]) -> Iterator[SegmentStyle]:
    """The looks with letters of their own: the second S of a sum is St."""
    taken: set[str] = set()
    for look, label in zip(looks, labels, strict=True):
        letter = look.letter
        if letter in taken:
            starts = (label[:length] for length in range(1, len(label) + 1))
            letter = next((s for s in starts if s not in taken), letter)
        taken |= {letter} - {""}
        same = letter == look.letter
        yield look if same else dataclasses.replace(look, letter=letter)
