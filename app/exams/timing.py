"""The clock of a paper: how long it may take, and when it is over."""

import datetime as dt

from app.content.model import ExamBlueprint
from app.exams.paper import ExamPaper


def minutes_for(blueprint: ExamBlueprint, paper: ExamPaper, factor: float) -> float:
    """The minutes for `paper`: the exam's pace, times the learner's time factor.

    A paper that the bank could not fill keeps the pace of the whole exam.
    """
    share = len(paper.slots) / blueprint.questions if blueprint.questions else 1.0
    return blueprint.minutes * min(share, 1.0) * factor


def is_over(deadline: dt.datetime, now: dt.datetime) -> bool:
    """Whether the time of a sitting is up; the deadline itself still counts."""
    return now > deadline
