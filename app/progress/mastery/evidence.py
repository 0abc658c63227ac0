"""How much is known about one thing: right answers, their count, and the range."""

import dataclasses
import math

ENOUGH = 5  # fewer first answers than this say next to nothing about an objective
_Z = 1.645  # nine ranges in ten hold the truth


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """First answers to different questions: how many, and the sum of their scores."""

    answers: int = 0
    score: float = 0.0

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(self.answers + other.answers, self.score + other.score)

    @property
    def enough(self) -> bool:
        """Whether a share may be named at all."""
        return self.answers >= ENOUGH

    @property
    def share(self) -> float:
        """The mean score of first answers, 0..1; 0 without answers."""
        return self.score / self.answers if self.answers else 0.0

    def range(self) -> tuple[float, float]:
        """Where the share lies in nine cases out of ten (Wilson's interval), 0..1.

        >>> tuple(round(x, 2) for x in Evidence(10, 7.0).range())
        (0.44, 0.87)
        """
        n = self.answers
        if not n:
            return 0.0, 1.0
        spread = _Z**2 / n
        middle = (self.share + spread / 2) / (1 + spread)
        noise = self.share * (1 - self.share) / n + spread / (4 * n)
        half = _Z * math.sqrt(noise) / (1 + spread)
        return max(0.0, middle - half), min(1.0, middle + half)
