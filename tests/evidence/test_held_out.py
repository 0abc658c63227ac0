"""Errors on what was left out, and the ranges that follow from them."""

import dataclasses

import pytest

from app.estimator.data_files import error_bounds_around
from evidence.accuracy.held_out import CaseGroups, HeldOutErrors, cross_validate
from evidence.accuracy.report import (
    compute_project_report,
    format_report,
    list_errors_of_evidence,
    report_as_json,
)

# Kinds of cases, the interval that their answers get, and whether they are rates.
_KINDS = {
    "train_step_time": ("training", False),
    "train_throughput": ("training", True),
    "train_gpu_hours": ("gpu-hours", False),
    "decode_tpot": ("decode", False),
    "collective_time": ("collective", False),
    "offline_throughput": ("saturated", True),
    "serving_tpot": ("tpot", False),
    "serving_ttft": ("ttft", False),
}
_ROUNDED = 0.006  # the ranges are written with two digits


@dataclasses.dataclass(frozen=True)
class _Case:
    expected: float
    predicted: float | None
    groups: CaseGroups
    calibration: bool = False


def _left() -> tuple[HeldOutErrors, ...]:
    return compute_project_report().held_out


def test_a_factor_is_tried_on_the_group_that_it_has_not_seen() -> None:
    cases = [
        _Case(2.0, 1.0, CaseGroups("a", "x", "s")),
        _Case(2.0, 1.0, CaseGroups("a", "x", "s")),
        _Case(1.0, 1.0, CaseGroups("b", "x", "s")),
    ]
    (left,) = cross_validate(
        "kind", list_errors_of_evidence(cases)
    )  # one accelerator and one source: none to leave
    assert (left.group, left.groups) == ("model", 2)
    assert left.fitted == 0.0
    assert left.worst == 1.0  # twice too much for the model that was left out
    assert left.low == pytest.approx(0.5)
    assert left.high == pytest.approx(2.0)


def test_what_was_fitted_on_and_what_was_not_answered_is_no_evidence() -> None:
    cases = [
        _Case(2.0, 1.0, CaseGroups("a", "x", "s"), calibration=True),
        _Case(2.0, None, CaseGroups("b", "x", "s")),
        _Case(1.0, 1.0, CaseGroups("c", "x", "s")),
    ]
    assert cross_validate("kind", list_errors_of_evidence(cases)) == ()


def test_serving_is_left_out_by_model_and_by_accelerator() -> None:
    seen = {(left.kind, left.group) for left in _left()}
    for kind in ("serving_tpot", "serving_ttft", "offline_throughput"):
        assert {(kind, "model"), (kind, "accelerator")} <= seen


def test_the_range_of_an_answer_covers_what_was_left_out(
    subtests: pytest.Subtests,
) -> None:
    for kind, (name, rate) in _KINDS.items():
        with subtests.test(kind=kind):
            low, high = error_bounds_around(name, 1.0)
            if rate:
                low, high = 1 / high, 1 / low
            for left in _left():
                if left.kind == kind:
                    assert low <= left.low + _ROUNDED, left
                    assert high >= left.high - _ROUNDED, left


@pytest.mark.parametrize("name", ["run", "gpu-hours"])
def test_nine_in_ten_published_runs_are_in_the_range(name: str) -> None:
    low, high = error_bounds_around(name, 1.0)
    hours = [c for c in compute_project_report().results if c.kind == "train_gpu_hours"]
    inside = [low <= case.expected / (case.predicted or 0.0) <= high for case in hours]
    if name == "run":
        assert [case.inside_interval for case in hours] == inside
    assert sum(inside) >= 0.9 * len(inside)


def test_the_report_shows_both_errors() -> None:
    found = compute_project_report()
    assert "held out" in format_report(found)
    assert len(report_as_json(found)["held_out"]) == len(found.held_out) > 0
