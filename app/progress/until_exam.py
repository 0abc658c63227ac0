"""The plan until the exam in a sentence, from counts alone: Today must stay cheap."""

from app.flashcards.review_table import TodaysQueue, plan_of
from app.learners.desk import RequestContext
from app.progress.ahead import in_short
from app.scheduling import card_seconds
from app.scheduling.exam_plan import CardPlanInputs


def until_exam(desk: RequestContext, stack: TodaysQueue) -> str:
    """What the days until the exam hold; empty without one ahead."""
    exam, plan = desk.learner.exam_day, plan_of(desk)
    if exam is None or plan is None or exam <= desk.day:
        return ""
    seconds = card_seconds(desk.learner.minutes_a_day)
    asked = CardPlanInputs(
        desk.day.toordinal(), exam.toordinal(), seconds, habits=desk.learner.habits
    )
    return in_short(plan.outline, asked, stack.left)
