"""The fit of the inference engines: its cases, its code and what it wrote."""

import dataclasses
import functools
import math
import statistics

import pytest

from app.estimator.data_files import load_table_entries_by_id
from evidence.accuracy.cases import read_cases
from evidence.accuracy.held_out import load_refit_errors
from evidence.fit_serving import (
    CASES,
    ENGINES,
    PRIORS,
    FitCase,
    fit_constants,
    insert_constants,
    predict,
    prepare_fit_case,
    round_constants,
    solve_linear_system,
)

_CONFIGURATION = ("model", "system", "backend", "input_tokens", "output_tokens")
_SERVED = ("serving_tpot", "serving_ttft", "offline_throughput")


@functools.cache
def _rows() -> tuple[FitCase, ...]:
    file = read_cases(CASES)
    return tuple(prepare_fit_case(case, file) for case in file.cases)


@functools.cache
def _written() -> dict[str, float]:
    """The constants that the file has."""
    rows = {
        "all": load_table_entries_by_id("engines.toml", "steps")["all"],
        **load_table_entries_by_id("engines.toml", "engine"),
    }
    return {name: rows[name.split(".")[0]][name.split(".")[1]] for name in PRIORS}


def test_the_measurements_are_many_and_of_many_kinds() -> None:
    rows = _rows()
    assert len(rows) >= 400
    assert len({row.groups[0] for row in rows}) >= 12
    assert len({row.inputs.engine for row in rows}) >= 3
    assert len({row.gpu.id for row in rows}) >= 6


def test_attention_and_experts_are_on_the_same_gpus() -> None:
    for case in read_cases(CASES).cases:
        words = case.inputs
        experts = words.get("moe_tp", 1) * words.get("moe_ep", 1)
        if experts > 1:
            assert experts == words["tp"] * words.get("attention_dp", 1), case.id


def test_no_measurement_stands_twice() -> None:
    runs = [
        (case.kind, case.expected, *(case.inputs.get(k) for k in _CONFIGURATION))
        for case in read_cases(CASES).cases
        if case.kind != "offline_throughput"
    ]
    assert len(runs) == len(set(runs))


def test_lengths_that_are_drawn_are_read_as_their_mean() -> None:
    rows = {row.inputs.prompt_tokens for row in _rows() if row.kind == "serving_tpot"}
    assert {922, 7373} <= rows
    assert 8192 not in rows


def test_half_of_the_measurements_are_kept_from_the_fit() -> None:
    for kind in _SERVED:
        fitted = [row.fitted for row in _rows() if row.kind == kind]
        assert 0.45 <= sum(fitted) / len(fitted) <= 0.55


def test_constants_that_the_cases_determine_are_found_again() -> None:
    true = PRIORS | {"vllm.kernel_us": 7.0, "vllm.prefill": 1.5}
    rows = [row for row in _rows() if row.inputs.engine == "vllm" and row.fitted][:60]
    made = [dataclasses.replace(row, expected=predict(row, true)) for row in rows]
    found = fit_constants(made)
    off = [abs(math.log(predict(row, found) / row.expected)) for row in made]
    assert statistics.median(off) < 0.02
    assert found["vllm.kernel_us"] == pytest.approx(7.0, rel=0.1)
    assert found["vllm.prefill"] == pytest.approx(1.5, rel=0.1)
    # No case is of these engines, so that their constants keep their priors.
    for name in ("sglang.kernel_us", "trtllm.prefill"):
        assert found[name] == pytest.approx(PRIORS[name], rel=1e-6)


def test_elimination_solves_a_system() -> None:
    assert solve_linear_system([[4.0, 1.0], [1.0, 3.0]], [6.0, 7.0]) == pytest.approx([1.0, 2.0])


def test_constants_are_written_where_they_are_read() -> None:
    text = ENGINES.read_text("utf-8")
    assert insert_constants(text, _written()) == text
    other = insert_constants(text, _written() | {"sglang.eager_us": 123.0, "all.waits": 1.25})
    assert "eager_us = 123\n" in other
    assert "waits = 1.25\n" in other


def test_what_was_recorded_is_what_the_constants_say() -> None:
    """The record was made with these cases and these constants."""
    constants = round_constants(_written())
    for kind in _SERVED:
        ratios = [
            abs(predict(row, constants) / row.expected - 1) for row in _rows() if row.kind == kind
        ]
        (left,) = (r for r in load_refit_errors() if (r.kind, r.group) == (kind, "model"))
        assert left.fitted == pytest.approx(statistics.median(ratios), rel=1e-3)
        assert left.refitted


def test_every_model_and_accelerator_was_left_out() -> None:
    seen = {(left.kind, left.group) for left in load_refit_errors()}
    assert {(k, g) for k in _SERVED for g in ("model", "accelerator")} <= seen
