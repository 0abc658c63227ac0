"""A result is not “unknown” where there is nothing to know, and says why."""

from typing import Any

import pytest

from app.estimator.registry import run_estimate
from app.estimator.result import Estimate


def ask(name: str, **given: Any) -> Estimate:
    return run_estimate(name, {key: str(value) for key, value in given.items()})


def test_what_a_job_without_a_solution_has_not_does_not_apply(
    subtests: pytest.Subtests,
) -> None:
    for name, given in [
        ("parallelism-plan", {"gpus": 8}),
        ("serving-capacity", {"model": "llama-3.1-405b", "tensor_parallel": 1}),
        ("serving-capacity", {"ttft_target": 1}),
        ("accelerator-choice", {"model": "deepseek-v3", "concurrent": 100_000}),
        ("power-cooling", {"rack_limit": 5}),
        ("storage", {"gpus": 100_000}),
        ("cost", {"utilisation": 5}),
    ]:
        with subtests.test(name=name, given=given):
            figures = ask(name, **given).figures
            known = {"Fewest GPUs"}  # a search that ended early does not know it
            assert [f.label for f in figures if f.formatted_value == "unknown"] in (
                [],
                list(known),
            )
            assert all(f.note for f in figures if not f.applies)


def test_air_alone_needs_no_coolant() -> None:
    assert ask("power-cooling")["coolant"].formatted_value == "does not apply"
    liquid = ask("power-cooling", system="gb200-nvl72")["coolant"]
    assert liquid.formatted_value.endswith("m³/s")


def test_a_site_that_is_nearly_full_is_told_what_it_has() -> None:
    answer = ask("power-cooling", site_limit=470)
    assert answer.verdict.status == "tight"
    assert "the site 466.8 kW of the 470 kW that it has." in answer.verdict.text.replace(
        "\u00a0", " "
    )


def test_a_model_too_large_is_told_what_memory_would_bring() -> None:
    text = ask("latency", model="llama-3.1-405b", tensor_parallel=1).verdict.text
    assert text.startswith("Too large for 1 H100 SXM5 80GB. With enough memory: first ")


def test_a_model_without_attention_keeps_something_for_each_sequence() -> None:
    text = ask("kv-cache", model="mamba-2.8b").verdict.text.replace("\u00a0", " ")
    assert "keeps 23.6 MB (23,040 KiB) for each sequence, whatever its length; 1 sequence" in text


def test_one_stage_of_a_pipeline_is_no_table() -> None:
    assert not ask("training-memory").tables
    assert ask("training-memory", pipeline_parallel=4, gpus=64).tables


def test_a_ratio_is_written_as_one() -> None:
    answer = ask("quantization")
    assert [answer[n].formatted_value for n in ("decode_speedup", "peak_ratio")] == [
        "3.55×",
        "1×",
    ]


def test_no_rate_is_told_of_replicas_that_do_not_exist() -> None:
    answer = ask("serving-capacity", ttft_target=1)
    assert answer["throughput"].formatted_value == "does not apply"


def test_one_switch_joins_alone() -> None:
    text = ask("fabric", nodes=1).verdict.text.replace("\u00a0", " ")
    assert text.startswith("It joins 1 DGX H100 with 8 GPUs")
