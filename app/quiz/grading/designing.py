"""Grading of design exercises: the learner plans, the estimator judges."""

from app.content.model import Design
from app.quiz.grading.verdict import Raw, Unreadable, Verdict


def grade_design(_answer: Design, _raw: Raw, _partial: str) -> Verdict | Unreadable:
    """Judge a plan; `choose.INPUT` in the response holds each chosen input."""
    return Unreadable(
        "This exercise cannot be judged yet.", "Try the plan in the calculator."
    )
