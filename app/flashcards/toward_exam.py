"""Toward an exam: what the desk plans for, and what it says of the plan."""

import dataclasses
import datetime as dt

from app.flashcards.store import ExamGoal, TodaysCardPlan
from app.learners.current import LearnerProfile
from app.scheduling import card_seconds


@dataclasses.dataclass(frozen=True, slots=True)
class ExamPlanNotice:
    """What is said of the plan when its cards of today are done.

    `exam` is the exam day; `final` says that the last days have begun, `short` that
    they do not hold a look at every card, and `stopped` that no new card is begun any
    more, of which `unbegun` are left. `on` is the next day with cards, `tomorrow`
    says that it is the next one.
    """

    exam: dt.date
    final: bool
    short: bool
    stopped: bool
    unbegun: int
    on: dt.date | None
    tomorrow: bool


def aim_of(learner: LearnerProfile, day: dt.date) -> ExamGoal | None:
    """What a study day is planned for; None without an exam day ahead."""
    if not learner.id or learner.exam_day is None or learner.exam_day < day:
        return None
    seconds = card_seconds(learner.minutes_a_day)
    return ExamGoal(learner.exam_day, seconds, learner.habits, learner.acts)


def toward_of(
    aim: ExamGoal, plan: TodaysCardPlan, day: dt.date, later: dt.date | None, begun: int
) -> ExamPlanNotice:
    """What to say; `later` is when a card falls due next, `begun` counts today's."""
    tomorrow = day + dt.timedelta(days=1)
    following = _next_study_day(aim, tomorrow)
    more = plan.over or plan.final or (plan.unbegun > plan.fresh and not plan.stopped)
    eve = aim.exam - dt.timedelta(days=1)
    on = following if more else max(following, min(later or eve, eve))
    return ExamPlanNotice(
        exam=aim.exam,
        final=plan.final,
        short=plan.short,
        stopped=plan.stopped,
        unbegun=plan.unbegun - begun,
        on=on if on < aim.exam else None,
        tomorrow=on == tomorrow,
    )


def _next_study_day(aim: ExamGoal, day: dt.date) -> dt.date:
    """That day, or the first after it that is none of the days off."""
    while day < aim.exam and aim.habits.is_off(day.toordinal()):
        day += dt.timedelta(days=1)
    return day


def new_under(plan: TodaysCardPlan, begun: int, more: int) -> int:
    """How many new cards may still be begun today; `more` are asked for on top."""
    return max(0, plan.fresh + more - begun)
