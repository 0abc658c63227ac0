"""Conditions of a design exercise: met or missed, and by how much."""

import pytest

from app.content.file_reader import parse_file
from app.markup.expressions import ExpressionError, Value
from app.markup.quantities import Quantity
from app.questions.types.design import evaluate_condition, parse_condition

PLAN: dict[str, Value] = {
    "fits": True,
    "ttft_p95": Quantity(1.25, "s"),
    "cost_per_month": Quantity(12_000, "USD/month"),
    "gpus": Quantity(8, "GPU"),
}
BEST = {"cost_per_month": Quantity(10_000, "USD/month")}


def test_a_condition_is_met_or_missed_by_a_share(subtests: pytest.Subtests) -> None:
    for text, met, excess in [
        ("fits", True, 0),
        ("ttft_p95 <= 1 s", False, 0.25),
        ("ttft_p95 <= 1250 ms", True, 0),
        ("ttft_p95 < 1250 ms", False, 0),
        ("gpus >= 16", False, 0.5),
        ("gpus == 8", True, 0),
        ("cost_per_month <= 1.2 * best(cost_per_month)", True, 0),
        ("cost_per_month <= 1.1 * best(cost_per_month)", False, 1 / 11),
    ]:
        with subtests.test(text=text, met=met, excess=excess):
            judgment = evaluate_condition(parse_condition(text), PLAN, BEST)

            assert judgment.is_met is met
            assert judgment.relative_excess == pytest.approx(excess)


def test_what_cannot_be_compared_is_refused(subtests: pytest.Subtests) -> None:
    for text, code in [
        ("ttft_p95 <= 1", "E42"),
        ("ttft_p95 <= 1 GB", "E42"),
        ("nothing <= 1", "E44"),
        ("ttft_p95 <= ", "E45"),
        ("a.b <= 1", "E45"),
    ]:
        with subtests.test(text=text, code=code):
            with pytest.raises(ExpressionError) as refused:
                evaluate_condition(parse_condition(text), PLAN, BEST)

            assert refused.value.code == code


def test_a_condition_names_the_best_values_it_needs() -> None:
    condition = parse_condition("cost_per_month <= 1.2 * best(cost_per_month)")

    assert condition.outputs_compared_with_best_value == {"cost_per_month"}
    assert condition.output_names == {"cost_per_month"}


DESIGN = """\
---
title: Case
objective: 1.1
source: herd
---

### Serve this model on as few cards as fit
<!-- q: serve-small
type: design
estimate: inference-memory
given: {model: llama-3.1-70b, context: 8192}
choose: [gpu, weights, tensor_parallel]
accept: [%s]
-->
"""


@pytest.mark.parametrize(
    ("accept", "codes"),
    [
        ("fits, per_gpu <= 30 GB", []),
        ("fits, per_gpu <= 80", ["E42"]),
        ("fitting", ["E81"]),
        ("per_gpu <= lambda", ["E45"]),
    ],
)
def test_conditions_are_checked_when_they_are_written(accept: str, codes: list[str]) -> None:
    reading = parse_file(DESIGN % accept, "topics/case/quiz.md")

    assert [p.code for p in reading.problems] == codes
    assert len(reading.questions) == (not codes)


def test_an_unknown_input_of_a_design_is_named() -> None:
    text = (DESIGN % "fits").replace("choose: [gpu", "choose: [gpus, gpu")

    (problem,) = parse_file(text, "topics/case/quiz.md").problems

    assert (problem.code, problem.line) == ("E81", 12)
    assert problem.message == "“gpus” is not an input of inference-memory."
