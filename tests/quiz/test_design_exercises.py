"""The design exercises of the course: feasible, infeasible, and the planner's own."""

import itertools
from collections.abc import Iterator, Mapping

import pytest

from app.content.course import Course
from app.estimator.inputs import InputSpec, input_specs
from app.markup.expressions import ExpressionError, FigureError, require_estimate_spec
from app.markup.quantities import Quantity
from app.questions import types as kinds
from app.questions.grading import grade_response
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult
from app.questions.types.design import (
    DesignSpec,
    estimate_plan_outputs,
    evaluate_condition,
    find_best_value,
    find_unsolved_starting_plan,
    parse_condition,
)
from tests.amounts import FACTOR, each_of_sample

SERVING = "batching-design-serve-200"
TRAINING = "parallelism-design-train-8b"
GOOD = {
    SERVING: {"weights": "fp8", "tensor_parallel": "2", "replicas": "3"},
    TRAINING: {
        "gpus": "64",
        "tensor_parallel": "1",
        "micro_batch": "1",
        "recompute": "none",
        "zero": "1",
    },
}
COUNTS = (
    ("1", "2", "3", "4", "8", "16", "32", "48", "64") if FACTOR > 1 else (*("1", "2", "3", "64"),)
)
PRICE = {SERVING: "cost_per_month", TRAINING: "cost"}
# What is changed in the good plan, which condition fails, and what is said of it.
MISSED = [
    (SERVING, {"replicas": "1"}, "Keeps up", "88.1 ms per token, not 50 ms"),
    (SERVING, {"replicas": "1"}, "Keeps up", "88.1 ms"),
    (SERVING, {"weights": "bf16", "tensor_parallel": "1"}, "Keeps up", "Does not fit."),
    (
        SERVING,
        {"replicas": "30"},
        "Cost per month",
        "153,896 USD/month over the limit.",
    ),
    (TRAINING, {"zero": "0"}, "Fits in memory", "Each GPU would need 174.5 GB"),
    (TRAINING, {"zero": "0"}, "Fits in memory", "has 84.9 GB (80 GB on the label)"),
    (TRAINING, {"gpus": "8"}, "Whole run", "172 days over the limit."),
    (TRAINING, {"tensor_parallel": "8"}, "Cost", "56,850 USD over the limit."),
]
NO_PLAN = {
    SERVING: {"weights": "bf16", "tensor_parallel": "1", "replicas": "1"},
    TRAINING: {**GOOD[TRAINING], "gpus": "8", "recompute": "full", "zero": "0"},
}


def judged(question: Question, plan: Mapping[str, str]) -> GradeResult:
    raw = {f"choose.{name}": [value] for name, value in plan.items()}
    verdict = grade_response(draw_variant(question, 1), raw)
    assert isinstance(verdict, GradeResult)
    return verdict


def test_the_course_has_these_exercises_and_no_other(shipped: Course) -> None:
    found = {q.id for q in shipped.questions.values() if isinstance(q.answer, DesignSpec)}

    assert found == {SERVING, TRAINING}


@pytest.mark.parametrize(("item", "changed", "label", "said"), MISSED)
def test_an_infeasible_plan_is_told_what_failed_and_by_how_much(
    shipped: Course, item: str, changed: dict[str, str], label: str, said: str
) -> None:
    verdict = judged(shipped.questions[item], {**GOOD[item], **changed})

    assert verdict.score < 1
    missed = {mark.label: mark for mark in verdict.part_results if not mark.is_right}
    assert said in missed[label].feedback.plain.replace("\u00a0", " ")
    assert missed[label].right_answer.plain


@pytest.mark.parametrize("item", [SERVING, TRAINING])
def test_a_plan_that_does_not_run_is_judged_by_what_is_known_of_it(
    shipped: Course, item: str
) -> None:
    verdict = judged(shipped.questions[item], NO_PLAN[item])

    assert verdict.score < 1
    assert verdict.part_results[0].feedback.plain.startswith("Does not fit.")
    assert all(mark.given_answer.plain for mark in verdict.part_results)


@pytest.mark.parametrize("item", [SERVING, TRAINING])
def test_a_feasible_plan_passes(shipped: Course, item: str) -> None:
    verdict = judged(shipped.questions[item], GOOD[item])

    assert [mark.given_answer.plain for mark in verdict.part_results if not mark.is_right] == []
    assert verdict.score == 1


@each_of_sample("item", [SERVING, TRAINING], 1)
def test_no_plan_is_cheaper_than_what_the_planner_found_and_the_cheapest_passes(
    shipped: Course, item: str
) -> None:
    """Every plan of these counts is priced: up to 1,377 and 6,561 of them."""
    question = shipped.questions[item]
    assert isinstance(question.answer, DesignSpec)
    problem = question.answer

    price, plan = min(feasible(problem, PRICE[item]), key=lambda found: found[0])

    best = find_best_value(problem, PRICE[item])
    assert best is not None
    assert best.value <= price
    assert price <= 1.2 * best.value, "else the best would be out of reach"
    assert judged(question, plan).score == 1


def feasible(problem: DesignSpec, output: str) -> Iterator[tuple[float, dict[str, str]]]:
    """The price and the choices of each plan that meets the other conditions."""
    fields = input_specs(require_estimate_spec(problem.estimate).inputs_type)
    others = [
        c for c in map(parse_condition, problem.accept) if not c.outputs_compared_with_best_value
    ]
    values = [list(options_of(fields[name])) for name in problem.choose]
    for chosen in itertools.product(*values):
        plan = dict(zip(problem.choose, chosen, strict=True))
        try:
            outputs = estimate_plan_outputs(problem.estimate, {**dict(problem.given), **plan})
            met = all(evaluate_condition(condition, outputs, {}).is_met for condition in others)
        except (FigureError, ExpressionError):  # it does not run
            continue
        price = outputs[output]
        assert isinstance(price, Quantity)
        if met:
            yield price.value, plan


def options_of(field: InputSpec) -> Iterator[str]:
    if field.kind == "choice":
        yield from (value for value, _ in field.choices)
    else:
        yield from COUNTS


@pytest.mark.parametrize("item", [SERVING, TRAINING])
def test_pressing_the_button_at_once_solves_nothing(shipped: Course, item: str) -> None:
    question = shipped.questions[item]
    assert isinstance(question.answer, DesignSpec)

    shown = kinds.question_type_of(question).build_template_data(question.answer, {})

    begun = find_unsolved_starting_plan(question.answer)
    assert set(begun) == set(question.answer.choose)
    raw = {f"choose.{name}": [shown.current_values[name]] for name in question.answer.choose}
    verdict = grade_response(draw_variant(question, 1), raw)
    assert isinstance(verdict, GradeResult)
    assert verdict.score < 1


def test_what_is_given_is_shown(shipped: Course) -> None:
    answer = shipped.questions[TRAINING].answer
    assert isinstance(answer, DesignSpec)

    plan = kinds.question_type_of(shipped.questions[TRAINING]).build_template_data(answer, {})

    assert set(plan.form_field_by_given_input) == {
        "model",
        "tokens",
        "gpu",
        "sequence",
        "pipeline_parallel",
    }
    assert plan.current_values["tokens"] == "1T"
