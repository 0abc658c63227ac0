"""What a study day still holds: one count for the desk, for Today and for the plan."""

import dataclasses

from app.scheduling.card_pace import USUAL, CardPace
from app.scheduling.exam_plan import FINAL_SECONDS


@dataclasses.dataclass(frozen=True, slots=True)
class CardsLeft:
    """The cards that the desk still holds for a study day.

    `due` are asked now, of which `learning` are in their steps; `waiting` are in steps
    too and come back later in the day; `fresh` are new and will be begun, of which
    `added` are none of the course. `over` are due as well and wait, for the plan has
    better use of the minutes: they are none of the others. Of these the plan asks
    about `passed` on no day before the exam. `final` says that those due are seen once
    more before an exam, whether their day has come or not.
    """

    due: int = 0
    waiting: int = 0
    fresh: int = 0
    over: int = 0
    passed: int = 0
    final: bool = False
    learning: int = 0
    added: int = 0
    pace: CardPace = USUAL

    @property
    def reviews(self) -> int:
        """Cards that left their steps, or are seen once more before an exam."""
        return self.due - self.learning

    @property
    def steps(self) -> int:
        """Cards that are still being learned, whether their step is over or not."""
        return self.learning + self.waiting

    @property
    def returning(self) -> int:
        """All that come back today: those left without the new ones."""
        return self.due + self.waiting

    @property
    def cards(self) -> int:
        """All of them, as every page counts them."""
        return self.returning + self.fresh

    @property
    def seconds(self) -> float:
        """How long they take: a look 11.25 s and a new card 60 s, at the usual pace.

        >>> CardsLeft(due=16, waiting=0, fresh=2).seconds
        300.0
        """
        return self.returning * FINAL_SECONDS * self.pace.scale + self.fresh * self.pace.first
