"""How a learner spreads their minutes over the days before an exam."""

import dataclasses

LAST_WEEK = 7
"""Days before the exam whose minutes may be doubled."""
_WEEK = 7


@dataclasses.dataclass(frozen=True, slots=True)
class StudyHabits:
    """What a learner chose.

    With `fill` no minute of a plan is left unused; with `double` the days of the last
    week have twice the minutes; `off` are the weekdays without any (Monday is 0).
    """

    fill: bool = False
    double: bool = False
    off: frozenset[int] = frozenset()

    def is_off(self, day: int) -> bool:
        """Whether a study day, an ordinal, is without minutes."""
        return (day - 1) % _WEEK in self.off

    def share_on(self, day: int, exam: int) -> int:
        """The minutes of a study day as a multiple of the usual ones: 0, 1 or 2.

        The day of the exam is none of the days off.
        """
        if self.is_off(day) and day < exam:
            return 0
        return 2 if self.double and 0 <= exam - day <= LAST_WEEK else 1


USUAL = StudyHabits()
