"""How sure one says to be of an answer, and which share of right answers that means."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class ConfidenceLevel:
    """A level of certainty: right in `least` to `most` (0..1) of such answers."""

    word: str
    means: str
    least: float
    most: float


# Where certainty is marked, “think so” begins to pay at 67% right and “sure” at 80%;
# below lies a guess, down to one choice in four.
LEVELS = (
    ConfidenceLevel("Guess", "under 67%", 0.25, 0.67),
    ConfidenceLevel("Think so", "67 to 79%", 0.67, 0.80),
    ConfidenceLevel("Sure", "80% or more", 0.80, 1.0),
)
"""From the least sure to the surest; an answer keeps the place, counted from 1."""
