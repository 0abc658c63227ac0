"""A plane of percent and pixels: values by their height, and the scale of them."""

import dataclasses
from collections.abc import Callable
from typing import Literal

from app.drawings.axes import Axis
from app.drawings.svg import Box, line, text

SHARES = Axis(0.0, 1.0, (0.0, 0.5, 1.0), "%", 0.01)
"""From none to all."""


def in_percent(share: float) -> str:
    """A share as a scale names it.

    >>> in_percent(0.5)
    '50%'
    """
    return f"{share:.0%}"


@dataclasses.dataclass(frozen=True, slots=True)
class PlotArea:
    """Where values stand: `axis` goes up the height of `box`."""

    box: Box
    axis: Axis

    def down(self, value: float) -> float:
        """How far from the top of the drawing a value stands, in pixels."""
        share = self.axis.place(value) / 100
        return self.box.y + self.box.height * (1 - share)

    def scale(
        self,
        words: Callable[[float], str],
        side: Literal["left", "right"] = "right",
    ) -> list[str]:
        """A line for each tick, its words behind it, or upon it at the left.

        What grows from the left begins at the lowest tick, which is named below.
        """
        right = self.box.x + self.box.width
        marks = []
        for tick in self.axis.ticks:
            at = self.down(tick)
            marks.append(line("ax", 0, at, right, at))
            if side == "right":
                marks.append(text(words(tick), 100, at + 4, "e"))
            else:
                low = tick == self.axis.low
                marks.append(text(words(tick), 0, at + 18 if low else at - 4))
        return marks
