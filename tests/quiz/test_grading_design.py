"""Design exercises: the learner plans, the estimator judges."""

import dataclasses
import re

from app.estimator.hardware import catalog as accelerators
from app.questions.grading import grade_response
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.design import find_best_value
from tests.quiz.bank import DESIGN, drawn, question, with_rule

SHARINGS = ("1", "2", "4", "8", "16", "32", "64")
"""All by which 64 attention heads can be divided."""


def planned(gpu: str, sharing: str, asked=DESIGN) -> GradeResult | UnreadableResponse:
    raw = {"choose.gpu": [gpu], "choose.tensor_parallel": [sharing]}
    return grade_response(drawn(asked), raw)


def test_a_plan_that_meets_every_condition_is_right() -> None:
    verdict = planned("h100-sxm5-80", "4")

    assert isinstance(verdict, GradeResult)
    assert verdict.result == "right", [m for m in verdict.part_results if not m.is_right]
    assert verdict.given_answer == "3 of 3 conditions met"


def test_a_plan_that_does_not_is_told_which_condition_and_by_how_much() -> None:
    verdict = planned("h100-sxm5-80", "2")

    assert isinstance(verdict, GradeResult)
    assert verdict.result != "right"
    missed = {m.label: m for m in verdict.part_results if not m.is_right}
    free = missed["Free on each GPU"]
    assert free.right_answer.plain == "at least 10 GB"
    assert free.given_answer.plain == "−17.7\u00a0GB"
    assert free.feedback.plain == "27.7\u00a0GB short of it."


def test_a_plan_that_spends_too_much_is_told_the_best_that_is_possible() -> None:
    verdict = planned("h200-sxm5-141", "16")

    assert isinstance(verdict, GradeResult)
    dear = verdict.part_results[2]
    assert not dear.is_right
    assert re.fullmatch(r"at most [\d,.]+\sGB \(3 × the best possible\)", dear.right_answer.plain)
    assert dear.feedback.plain.endswith("GB over the limit.")


def test_the_best_plan_that_the_planner_finds_passes() -> None:
    best = find_best_value(DESIGN.answer, "free")
    assert best is not None
    assert best.value >= 10e9, "the other conditions hold for it"

    strict = dataclasses.replace(
        DESIGN.answer, accept=(*DESIGN.answer.accept[:2], "free <= 1 * best(free)")
    )
    cards = [card.id for card in accelerators.list_accelerators()]
    plans = [(card, sharing) for card in cards for sharing in SHARINGS]
    verdicts = [planned(*plan, question(strict, "design")) for plan in plans]

    right = [v for v in verdicts if isinstance(v, GradeResult) and v.result == "right"]
    assert len(right) >= 1


def test_an_impossible_input_is_refused_with_its_name() -> None:
    refused = planned("h100-sxm5-80", "0")

    assert isinstance(refused, UnreadableResponse)
    assert refused.hint == "Change it and check again."
    assert isinstance(planned("no-such-card", "1"), UnreadableResponse)


def test_nothing_chosen_is_refused() -> None:
    assert isinstance(grade_response(drawn(DESIGN), {}), UnreadableResponse)


def test_all_or_nothing_can_be_asked_for() -> None:
    some = planned("h100-sxm5-80", "2")
    none = planned("h100-sxm5-80", "2", with_rule(DESIGN, "off"))

    assert isinstance(some, GradeResult)
    assert isinstance(none, GradeResult)
    assert 0 < some.score < 1
    assert none.score == 0
