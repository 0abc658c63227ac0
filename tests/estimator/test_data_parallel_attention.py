"""Attention that each GPU does for its own sequences, as latent caches are served."""

import math
import re
from typing import Any

import pytest

from app.estimator.registry import run_estimate

_DEEPSEEK: dict[str, Any] = {
    "model": "deepseek-v3",
    "weights": "fp8",
    "gpu": "h200",
    "tensor_parallel": 8,
    "context": 32768,
    "concurrent": 64,
}


def _found(**changed: Any) -> dict[str, Any]:
    typed = {key: str(value) for key, value in (_DEEPSEEK | changed).items()}
    return {f.name: f.value for f in run_estimate("inference-memory", typed).figures}


def test_a_latent_cache_is_kept_once_where_attention_is_data_parallel() -> None:
    divided, parallel = _found(), _found(attention="data-parallel")
    assert divided["kv_cache"] == pytest.approx(8 * parallel["kv_cache"])
    # 8 of 64 sequences on each GPU; 61 layers of 512 + 64 elements in 16 bit
    assert parallel["kv_cache"] / 8 == 8 * 32768 * 61 * (512 + 64) * 2


def test_eight_copies_of_attention_leave_most_of_the_room() -> None:
    # vLLM issue 51454 reads 7.7 times the tokens of tensor parallelism 8 from its
    # logs with data parallelism 8; here weights of attention are copied as well.
    divided, parallel = _found(), _found(attention="data-parallel")
    ratio = 8 * parallel["cache_tokens"] / divided["cache_tokens"]
    assert 4.5 < ratio < 8
    assert parallel["max_concurrent"] > 4 * divided["max_concurrent"]


def test_the_fewest_gpus_for_a_latent_cache_are_known() -> None:
    assert _found()["fewest_gpus"] is None
    assert _found(attention="data-parallel")["fewest_gpus"] == 8


def test_whole_experts_have_whole_blocks_on_any_number_of_gpus() -> None:
    # 18,432 columns of an MLP in blocks of 128 do not divide over 18 or 24 GPUs; copies need not.
    rack: dict[str, Any] = {"gpu": "h100", "context": 4000, "concurrent": 1000}
    typed = rack | {"attention": "data-parallel", "weights": "published"}
    found = _found(**typed | {"tensor_parallel": 16})
    assert not found["fits"]
    fewest = found["fewest_gpus"]
    assert fewest == _found(**typed | {"weights": "fp8"})["fewest_gpus"]
    assert _found(**typed | {"tensor_parallel": fewest})["fits"]


def test_a_number_of_gpus_that_nobody_has_is_followed_by_one_that_people_have() -> None:
    typed = _DEEPSEEK | {"gpu": "h100", "tensor_parallel": 16, "concurrent": 1000, "context": 4000}
    typed = {key: str(value) for key, value in typed.items()} | {"attention": "data-parallel"}
    answer = run_estimate("inference-memory", typed)
    assert 16 < answer["fewest_gpus"].value < 24
    assert "24" in answer["fewest_gpus"].note
    assert [c.new_value for c in answer.changes if c.field == "tensor_parallel"] == ["24"]


def test_a_service_and_its_memory_name_the_same_requests() -> None:
    typed = {"model": "deepseek-v3", "gpu": "h200", "tensor_parallel": "1", "engine": "vllm"}
    typed |= {"attention_parallel": "32", "expert_parallel": "32", "spare": "0"}
    typed |= {"ttft_target": "", "tpot_target": "", "concurrent": "23980"}
    typed |= {"prompt_tokens": "1000", "output_tokens": "1000"}
    service = run_estimate("deployment", typed)
    memory = next(s.estimate for s in service.sections if s.estimate.name == "inference-memory")
    capacity = run_estimate("serving-capacity", typed)
    assert capacity["max_concurrent"].value == memory["max_concurrent"].value
    (sure,) = re.findall(r"([\d,]+) surely fit", memory["max_concurrent"].note)
    assert f"{sure} surely fit" in capacity["max_concurrent"].note
    assert f"holds {sure} of 23,980 requests" in capacity.verdict.text
    # It keeps up, which is said beside that its requests may not fit.
    assert capacity["fits"].value
    assert "if the requests fit" in capacity["fits"].note


def test_attention_for_own_sequences_is_advised_where_it_makes_a_job_fit() -> None:
    # DeepSeek-V3 (2024), section 3.4.2: decoding keeps attention data-parallel.
    typed = {key: str(value) for key, value in _DEEPSEEK.items()}
    advised = [c.field for c in run_estimate("inference-memory", typed).changes]
    assert "attention" in advised
    assert _found(attention="data-parallel")["fits"]
    for other in ({"attention": "data-parallel"}, {"concurrent": "1"}):
        again = run_estimate("inference-memory", typed | other).changes
        assert "attention" not in [c.field for c in again]


def test_tokens_of_the_cache_say_that_they_are_those_of_one_gpu() -> None:
    # vLLM logs them for each data-parallel rank (its issue 51454).
    typed = {key: str(value) for key, value in _DEEPSEEK.items()}
    parallel = run_estimate("inference-memory", typed | {"attention": "data-parallel"})
    assert parallel["cache_tokens"].note == "On each GPU."
    assert not run_estimate("inference-memory", typed)["cache_tokens"].note


@pytest.mark.parametrize("concurrent", [1, 7, 64, 65])
def test_as_many_sequences_as_are_said_to_fit_do_fit(concurrent: int) -> None:
    asked = {"attention": "data-parallel", "concurrent": concurrent}
    most = _found(**asked)["max_concurrent"]
    assert most % 8 == 0
    assert _found(**asked | {"concurrent": most})["fits"]
    assert not _found(**asked | {"concurrent": most + 1})["fits"]


def test_heads_need_not_divide_over_gpus_that_hold_all_of_them() -> None:
    found = _found(attention="data-parallel", tensor_parallel=9)
    assert math.isfinite(found["per_gpu"])


def test_one_size_of_a_token_is_said_in_the_units_of_the_link() -> None:
    typed = {"model": "llama-3.1-70b", "cache": "fp16"}
    said = run_estimate("kv-cache", typed).verdict.text.replace("\u00a0", " ")
    assert "327.7 kB (320 KiB) for each token" in said


@pytest.mark.parametrize(("gpus", "experts", "copies"), [(32, 8, 0), (37, 7, 3), (48, 6, 32)])
def test_gpus_have_whole_experts_and_the_copies_are_named(
    gpus: int, experts: int, copies: int
) -> None:
    # DeepEP asserts num_experts % num_ranks == 0; SGLang runs 288 on 48 or 72 GPUs.
    typed = {key: str(value) for key, value in _DEEPSEEK.items()} | {"attention": "data-parallel"}
    typed |= {"tensor_parallel": str(gpus), "concurrent": "480", "engine": "sglang"}
    answer = run_estimate("inference-memory", typed)
    expert = 58 * 3 * 7168 * 2048  # Of all layers, in FP8.
    rest = (answer["weights"].value or 0) / gpus - experts * expert
    assert rest == pytest.approx(19.08e9, rel=0.01)
    said = [note for note in answer.notes if "redundant" in note]
    assert len(said) == bool(copies)
    assert all(f"(--ep-num-redundant-experts {copies} in SGLang)" in note for note in said)
