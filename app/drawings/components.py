"""How parts are drawn: the colors of what memory holds, and of the parts of any sum."""

import dataclasses

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
    """The look of each part, in the order of the parts."""
    if bar.unit == "B":
        return tuple(LOOKS[s.component] for s in bar.segments)
    return tuple(
        dataclasses.replace(PLAIN[i % len(PLAIN)], letter=s.label[:1])
        for i, s in enumerate(bar.segments)
    )
