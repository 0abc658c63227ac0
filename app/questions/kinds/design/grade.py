"""Grading of design exercises: the learner plans, the estimator judges."""

from app.content.numbers import estimates
from app.content.numbers.estimates import FigureError
from app.content.numbers.expressions import ExpressionError, Value
from app.content.numbers.quantities import Quantity
from app.estimator.inputs import InvalidInputsError, input_specs, parse_inputs
from app.estimator.units import format_value
from app.questions.kinds.design.conditions import ConditionResult
from app.questions.kinds.design.model import DesignAnswer
from app.questions.kinds.design.solver import judgments, problem_of
from app.questions.kinds.design.wording import described
from app.questions.verdict import (
    LONGEST,
    GradeResult,
    PartResult,
    Raw,
    UnreadableResponse,
    fraction,
    single_value,
    written,
)


def grade_design(answer: DesignAnswer, raw: Raw, partial: str) -> GradeResult | UnreadableResponse:
    """Judge a plan; `choose.INPUT` in the response holds each chosen input.

    Each condition counts the same, unless the item wants all or nothing. An input
    that the estimate cannot take is refused with its range.
    """
    plan = {name: single_value(raw, f"choose.{name}") for name in answer.choose}
    plan = {name: words for name, words in plan.items() if words}
    if not plan:
        return UnreadableResponse("Nothing is chosen.", "Choose a value for each input.")
    if any(len(words) > LONGEST for words in plan.values()):
        return UnreadableResponse(f"A value is longer than {LONGEST} characters.")
    refused = _refused(answer, plan)
    if refused is not None:
        return refused
    try:
        found = judgments(problem_of(answer), plan)
    except (FigureError, ExpressionError) as error:
        return UnreadableResponse(f"The plan cannot be judged: {error}", error.hint)
    why = _verdict(answer, plan)
    marks = tuple(
        _mark(f"c{number}", judgment, what, why)
        for number, (judgment, what) in enumerate(zip(found, described(answer), strict=True))
    )
    met = sum(mark.good for mark in marks)
    score = float(met == len(marks)) if partial == "off" else fraction(met, len(marks))
    return GradeResult(
        score=score,
        parsed={"plan": plan, "met": [mark.good for mark in marks]},
        marks=marks,
        said=f"{met} of {len(marks)} conditions met",
    )


def _refused(answer: DesignAnswer, plan: dict[str, str]) -> UnreadableResponse | None:
    try:
        entry = estimates.require_estimate(answer.estimate)
        parse_inputs(entry.inputs, {**answer.given, **plan})
    except FigureError as error:
        return UnreadableResponse(error.message, error.hint)
    except InvalidInputsError as error:
        first = error.problems[0]
        field = input_specs(entry.inputs).get(first.field)
        label = f"{field.label}: " if field else ""
        return UnreadableResponse(f"{label}{first.message}", "Change it and check again.")
    return None


def _verdict(answer: DesignAnswer, plan: dict[str, str]) -> str:
    """What the estimator itself says of the plan, with its figures."""
    verdict = estimates.compute(answer.estimate, {**answer.given, **plan}).verdict
    return f"{verdict.lead} {verdict.text}".strip()


def _mark(key: str, judgment: ConditionResult, words: tuple[str, str], why: str) -> PartResult:
    subject, wanted = words
    if judgment.limit is not None and judgment.condition.bests:
        wanted = f"{wanted}: {_words(judgment.limit)}"
    return PartResult(
        key=key,
        label=subject,
        text=written(subject),
        chosen=True,
        wanted_chosen=True,
        good=judgment.met,
        given=written(_words(judgment.value)),
        wanted=written(wanted),
        feedback=written(_gap(judgment, why)),
    )


def _gap(judgment: ConditionResult, why: str) -> str:
    """By how much a condition was missed, e.g. “4.2 GB short of it”.

    A yes or no has no distance: there the estimator's own sentence says what lacks.
    """
    value, limit = judgment.value, judgment.limit
    if value is False:
        return why
    if judgment.met or limit is None or not isinstance(value, Quantity):
        return ""
    gap = format_value(abs(value.value - limit.value), value.unit or "")
    above = judgment.condition.operator.startswith("<")
    return f"{gap} over the limit." if above else f"{gap} short of it."


def _words(value: Value) -> str:
    if isinstance(value, Quantity):
        return format_value(value.value, value.unit or "")
    return format_value(value)
