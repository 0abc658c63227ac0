"""The design exercises of the course: feasible, infeasible, and the planner's own."""

import pytest

from app.content.library import Library, load
from app.content.model import Design, Question
from app.content.variants import draw
from app.quiz.grading import Verdict, grade
from app.quiz.grading.planning import judgements, problem_of
from tests.browser.server import ROOT

SERVING = "batching-design-serve-200"
TRAINING = "parallelism-design-train-8b"
CHEAP = {
    SERVING: {"weights": "fp8", "tensor_parallel": "4", "replicas": "2"},
    TRAINING: {
        "gpus": "256",
        "tensor_parallel": "1",
        "micro_batch": "1",
        "recompute": "none",
        "zero": "3",
    },
}
IMPOSSIBLE = {
    SERVING: {"weights": "bf16", "tensor_parallel": "1", "replicas": "1"},
    TRAINING: {
        "gpus": "8",
        "tensor_parallel": "1",
        "micro_batch": "1",
        "recompute": "full",
        "zero": "0",
    },
}


@pytest.fixture(scope="module")
def course() -> Library:
    return load(ROOT / "content")


def judged(question: Question, plan: dict[str, str]) -> Verdict:
    raw = {f"choose.{name}": [value] for name, value in plan.items()}
    verdict = grade(draw(question, 1), raw)
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.mark.parametrize("item", [SERVING, TRAINING])
def test_a_plan_that_does_not_run_is_told_which_condition_failed(
    course: Library, item: str
) -> None:
    verdict = judged(course.questions[item], IMPOSSIBLE[item])

    assert verdict.score < 1
    assert any(not mark.good for mark in verdict.marks)
    assert all(mark.given.plain for mark in verdict.marks)


@pytest.mark.parametrize("item", [SERVING, TRAINING])
def test_a_good_plan_passes(course: Library, item: str) -> None:
    question = course.questions[item]
    verdict = judged(question, CHEAP[item])

    assert [mark.given.plain for mark in verdict.marks if not mark.good] == []
    assert verdict.score == 1
    assert isinstance(question.answer, Design)
    found = judgements(problem_of(question.answer), CHEAP[item])
    assert all(one.met for one in found)
