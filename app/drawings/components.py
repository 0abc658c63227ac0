"""How parts are drawn: the colors of what memory holds, and of the parts of any sum."""

import dataclasses
import string
from collections.abc import Iterator, Sequence

from app.estimator.estimate import Component, StackedBar


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """How a part is drawn: its filling, words upon it, its letter, its key."""

    fill: str
    words: str
    letter: str
    key: str


LOOKS: dict[Component, Look] = {
    "weights": Look("w", "", "W", "k-w"),
    "gradients": Look("gr", "on-gr", "G", "k-g"),
    "optimizer": Look("o", "", "O", "k-o"),
    "activations": Look("a", "on-a", "A", "k-a"),
    "kv": Look("k", "", "K", "k-k"),
    "overhead": Look("r", "", "R", "k-r"),
    "other": Look("soft", "on-soft", "", "k-x"),
}
BARE = Look("fill", "none", "", "k-s")
"""A part without a color of its own, and without words upon it."""
# The colors of memory mean parts of memory; other sums are drawn in ink and paper.
PLAIN = (
    Look("n1", "on-n1", "", "k-n1"),
    Look("soft", "on-soft", "", "k-x"),
    Look("ink", "on-n1", "", "k-n3"),
    Look("bg line", "on-soft", "", "k-n4"),
    BARE,
)
LETTERS = {look.letter: look for look in LOOKS.values() if look.letter}
"""The parts of memory by the letter that stands for them in a text."""


def looks_of(bar: StackedBar) -> tuple[Look, ...]:
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


def _numbered(bar: StackedBar) -> Iterator[Look]:
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


def _paler(look: Look) -> Look:
    """The second of two parts of one color."""
    return dataclasses.replace(
        look, fill=f"{look.fill} pale", words="on-pale", key=f"{look.key} k-pale"
    )


def _lettered(looks: Sequence[Look], labels: Sequence[str]) -> Iterator[Look]:
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
