"""What a study day still holds: one count for the desk, for Today and for the plan."""

import dataclasses

from app.scheduling.exam import NEW_SECONDS
from app.scheduling.exam_plan import FINAL_SECONDS


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """The cards that the desk still holds for a study day.

    `due` are asked now, `waiting` come back later in the day, `fresh` are new and will
    be begun. `over` are due as well and wait, for the plan has better use of the
    minutes: they are none of the others. `final` says that those due are seen once
    more before an exam, whether their day has come or not.
    """

    due: int = 0
    waiting: int = 0
    fresh: int = 0
    over: int = 0
    final: bool = False

    @property
    def cards(self) -> int:
        """All of them, as the desk counts them: “Card 6 of 26” leaves 21."""
        return self.due + self.waiting + self.fresh

    @property
    def seconds(self) -> float:
        """How long they take, as the plan reckons: a look 11.25 s, a new card 60 s.

        >>> Left(due=16, waiting=0, fresh=2).seconds
        300.0
        """
        return (self.due + self.waiting) * FINAL_SECONDS + self.fresh * NEW_SECONDS
