"""The plan until the exam in a sentence, from counts alone: Today must stay cheap."""

from app.flashcards.review_table import TodaysQueue, todays_plan
from app.learners.desk import RequestContext
from app.progress.ahead import plan_summary
from app.scheduling import card_seconds
from app.scheduling.exam_plan import CardPlanInputs


def until_exam(desk: RequestContext, stack: TodaysQueue) -> str:
    """What the days until the exam hold; empty without one ahead."""
    exam, plan = desk.learner.exam_day, todays_plan(desk)
    if exam is None or plan is None or exam <= desk.day:
        return ""
    seconds = card_seconds(desk.learner.minutes_a_day)
    asked = CardPlanInputs(
        desk.day.toordinal(), exam.toordinal(), seconds, habits=desk.learner.habits
    )
    return plan_summary(plan.outline, asked, stack.left)
