"""How many minutes more a day would hold the pages that do not fit."""

import bisect
import dataclasses
import datetime as dt

from app.progress.study_plan import (
    CardsOfDay,
    PlannedDay,
    RemainingWork,
    StudyPlan,
    TimeBudget,
    plan_days,
)

_MORE = (1, 2, 3, 4, *range(5, 245, 5))
"""What is advised: minutes, the more the coarser, and not without end."""


def add_time_advice(
    plan: StudyPlan,
    today: dt.date,
    work: RemainingWork,
    student: TimeBudget,
    proposed: PlannedDay | None = None,
) -> StudyPlan:
    """The plan with the fewest minutes more a day with which every page fits.

    Cards take half of them, as of all minutes. The plan made with them shows whether
    they do; today stays as it was `proposed`. 0 where not even the most would do.
    """
    if not plan.left:
        return plan

    def fits(more: int) -> bool:
        longer = dataclasses.replace(student, minutes=student.minutes + more)
        given = _with_cards(work, len(plan.days), more / 2), longer, ""
        return not plan_days(today, plan.exam, *given, proposed=proposed).left

    place = bisect.bisect_left(_MORE, True, key=fits)
    return dataclasses.replace(plan, more=_MORE[place] if place < len(_MORE) else 0)


def _with_cards(work: RemainingWork, days: int, minutes: float) -> RemainingWork:
    """The work with so many minutes of cards more on each of the days."""
    none = [CardsOfDay()] * (days - len(work.cards))
    longer = [
        dataclasses.replace(cards, minutes=cards.minutes + minutes)
        for cards in (*work.cards, *none)
    ]
    return dataclasses.replace(work, cards=longer)
