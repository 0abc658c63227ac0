"""Whether a design exercise asks for something: its plans, tried by the estimator."""

from app.content.limits import AN_ESTIMATE, price_of
from app.content.numbers import estimates
from app.content.numbers.estimates import FigureError
from app.content.numbers.expressions import ExpressionError
from app.content.source_file import SourceFile
from app.content.strict_yaml import YamlMapping
from app.estimator.inputs import InvalidInputsError, input_specs, parse_inputs
from app.questions.kinds.design.model import DesignAnswer
from app.questions.kinds.design.solver import (
    MOST_PLANS,
    DesignTask,
    can_be_met,
    judgments,
    problem_of,
    start_of,
)
from app.questions.written import ItemComment


def check_plans(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> None:
    """E80, E84, W92, W93: what is given can be used, and a plan can be right or wrong.

    Called where every name is known.
    """
    if _check_given(made, comment, sheet) or price_of(made.estimate) > AN_ESTIMATE:
        return
    problem = problem_of(made)
    sheet.spend(MOST_PLANS * AN_ESTIMATE, repr(problem))
    place = comment.place("accept")
    if not can_be_met(problem):
        message = f"No plan was found that meets {', '.join(made.accept)[:120]}."
        hint = "Relax a condition, change what is given, or let more be chosen."
        sheet.report("W92", *place, message, hint)
    elif not start_of(problem) and _holds(problem):
        message = "The exercise is solved before anything is chosen."
        hint = "Tighten a condition, so that what the form begins with misses it."
        sheet.report("W93", *place, message, hint)


def _check_given(made: DesignAnswer, comment: ItemComment, sheet: SourceFile) -> bool:
    """Whether a given value cannot be used; each is reported where it stands."""
    inputs = estimates.require_estimate(made.estimate).inputs
    try:
        parse_inputs(inputs, made.given)
    except InvalidInputsError as error:
        fields, node = input_specs(inputs), comment.fields.values.get("given")
        for wrong in error.problems:
            field = fields.get(wrong.field)
            named = field is not None and field.kind in estimates.CATALOGUED
            place = comment.place("given")
            if isinstance(node, YamlMapping) and wrong.field in node.keys:
                at = node.values[wrong.field]
                place = at.line, at.column
            hint = "Everybody who answers would be refused: write a value that fits."
            sheet.report("E80" if named else "E84", *place, wrong.message, hint)
        return True
    return False


def _holds(problem: DesignTask) -> bool:
    """Whether what the calculator begins with meets every condition."""
    try:
        return all(judgment.met for judgment in judgments(problem, {}))
    except (FigureError, ExpressionError):
        return False
