"""Inference steps and served load against published runs, and what must hold."""

import dataclasses
import doctest
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator import data_files, registry
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.inputs import InvalidInputsError
from app.estimator.memory.parallel_layout import ReplicaPool, ServingSetup, count_nodes
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import FORMATS
from app.estimator.serving import engine_speed, replica_memory
from app.estimator.serving import replica as profile
from app.estimator.serving import step_time as step
from app.estimator.serving.replica import (
    BatchTiming,
    ReplicaProfile,
    RequestLengths,
    RequestPattern,
    compute_mixed_steps,
    mean_step_time,
    median_ttft_on_idle_replica,
    median_ttft_under_load,
    profile_replica_by_batch,
    saturated_request_rate,
)
from app.estimator.serving.replica_memory import (
    max_sequences_in_memory,
    sequence_cache_bytes_per_gpu,
)
from app.estimator.serving.step_time import (
    PlacedModel,
    decode_step_time,
    find_measurement_coverage,
    place_model,
    prefill_step_time,
)
from app.estimator.units import parse_quantity
from tests.amounts import each_of_sample


def placed(model: str, gpu: str, **serving: object) -> PlacedModel:
    card = find_accelerator(gpu)
    return place_model(
        find_model(model),
        card,
        build_gpu_interconnect(card),
        ServingSetup(**serving),  # type: ignore[arg-type]
    )


def profiled(one: PlacedModel, prompt: int, answer: int, usable: float = 0.9) -> ReplicaProfile:
    return profile_replica_by_batch(one, RequestPattern(RequestLengths(prompt, answer)), usable)


CHAT = placed("llama-3.1-70b", "H100", weight_format="fp8", cache_format="fp8", tensor_parallel=2)
MIXTURE = placed("qwen3-235b-a22b", "h200-sxm5-141", weight_format="fp8-block", tensor_parallel=8)


@pytest.mark.parametrize(
    "module",
    [step, engine_speed, profile, replica_memory],
    ids=lambda m: m.__name__,
)
def test_examples_in_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(("gpus", "rate"), [(1, 104.9), (2, 168.84), (4, 254.02), (8, 328.43)])
def test_llama_2_7b_decodes_at_its_published_rate(gpus: int, rate: float) -> None:
    # gpt-fast README: batch 1, A100 80 GB.
    one = placed("llama-2-7b", "a100-sxm4-80", tensor_parallel=gpus, engine_id="compiled")
    seconds = decode_step_time(one, 1, 200).total
    assert 1 / seconds == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize(("concurrent", "milliseconds"), [(4, 17.41), (16, 19.74), (64, 28.77)])
def test_tokens_under_load_come_at_their_published_pace(
    concurrent: int, milliseconds: float
) -> None:
    # InferenceX: Llama 70B in FP8 on two H100, vLLM, 1,024 in and out.
    tpot = profiled(CHAT, 1024, 1024).tpot_at_batch(concurrent)
    assert tpot * 1e3 == pytest.approx(milliseconds, rel=0.15)


@pytest.mark.parametrize(
    ("model", "gpu", "tensor", "prompt", "answer", "rate"),
    # TensorRT-LLM performance overview 1.0, FP8.
    [
        ("llama-3.1-8b", "H100", 1, 1000, 1000, 15220),
        ("llama-3.1-70b", "h200-sxm5-141", 1, 2048, 2048, 2003),
        ("llama-3.1-405b", "H100", 8, 1000, 1000, 2919),
    ],
)
def test_a_full_server_reaches_its_published_throughput(
    model: str, gpu: str, tensor: int, prompt: int, answer: int, rate: float
) -> None:
    one = placed(
        model,
        gpu,
        tensor_parallel=tensor,
        weight_format="fp8",
        cache_format="fp8",
        engine_id="trtllm",
    )
    profile = profiled(one, prompt, answer, 0.95)
    assert saturated_request_rate(profile) * answer == pytest.approx(rate, rel=0.25)


@given(st.integers(1, 512), st.integers(1, 32768))
def test_a_larger_batch_takes_longer_and_serves_more(batch: int, context: int) -> None:
    small = decode_step_time(CHAT, batch, context).total
    large = decode_step_time(CHAT, 2 * batch, context).total
    assert small <= large <= 2.2 * small


@given(st.integers(1, 512), st.integers(1, 65536))
def test_a_longer_context_never_speeds_up_decoding(batch: int, context: int) -> None:
    now = decode_step_time(MIXTURE, batch, context).total
    assert now <= decode_step_time(MIXTURE, batch, context + 1024).total


@given(st.integers(1, 65536))
def test_decoding_never_beats_reading_the_weights(context: int) -> None:
    step = decode_step_time(CHAT, 1, context)
    assert step.total > 70e9 / 2 / 3.35e12
    parts = (step.weights, step.compute, step.attention)
    others = (step.communication, step.launch, step.host)
    assert sum(parts + others) == pytest.approx(step.total)


@given(st.integers(1, 16384))
def test_twice_the_prompt_takes_at_least_as_long(prompt: int) -> None:
    once = prefill_step_time(CHAT, prompt).total
    assert prefill_step_time(CHAT, 2 * prompt).total >= once


@given(st.floats(1, 1e5), st.sampled_from([(8, 2), (128, 8), (512, 10)]))
def test_touched_experts_lie_between_those_of_one_token_and_all(
    tokens: float, experts: tuple[int, int]
) -> None:
    hit = engine_speed.expected_distinct_experts(*experts, tokens)
    assert experts[1] - 1e-9 <= hit <= experts[0]


@given(st.integers(1, 256), st.integers(1, 4096), st.integers(1, 2048))
def test_the_settled_load_keeps_littles_law(concurrent: int, prompt: int, answer: int) -> None:
    profile = profiled(CHAT, prompt, answer)
    life = profile.median_ttft_at_batch(concurrent) + answer * profile.tpot_at_batch(concurrent)
    assert profile.request_rate_at_batch(concurrent) * life == pytest.approx(concurrent)


def test_groups_of_attention_divide_the_requests_of_a_replica() -> None:
    split = {"attention_replicas": 4, "expert_parallel": 4, "gpus_per_expert": 1}
    groups = placed("qwen3-235b-a22b", "b200-sxm", weight_format="fp8-block", **split)
    profile = profiled(groups, 1024, 128)
    assert profile.timing_at_batch(64).batch_per_group == 16
    assert profile.timing_at_batch(64).step_seconds == decode_step_time(groups, 16, 1024 + 64).total
    assert profile.max_batch <= max_sequences_in_memory(groups, 1024 + 64)


def test_a_smaller_cache_holds_more_sequences() -> None:
    wide = placed("llama-3.1-70b", "H100", weight_format="fp8", tensor_parallel=2)
    assert max_sequences_in_memory(CHAT, 8192) == pytest.approx(
        2 * max_sequences_in_memory(wide, 8192)
    )


def test_a_card_without_fp8_unpacks_it() -> None:
    card = find_accelerator("a100-sxm4-80")
    fp8 = engine_speed.find_kernel_rates(card, FORMATS["fp8"])
    assert fp8.matmul == engine_speed.find_kernel_rates(card, FORMATS["bf16"]).matmul


def test_integer_products_have_the_rate_of_integers() -> None:
    card = find_accelerator("b300-sxm")
    whole = engine_speed.find_kernel_rates(card, FORMATS["int8"]).matmul
    assert whole < 0.1 * engine_speed.find_kernel_rates(card, FORMATS["fp8"]).matmul


def _first(one: PlacedModel, cost: float, batch: float, traffic: RequestPattern) -> float:
    timing = BatchTiming(0.01, cost, batch, 0.01, 0.0)
    return median_ttft_under_load(one, timing, traffic, median_ttft_on_idle_replica(one, traffic))


ALIKE = RequestPattern(RequestLengths(1000, 300))


def test_a_first_token_waits_for_steps_its_prompt_and_other_prompts() -> None:
    common = CHAT.shared_constants
    assert _first(CHAT, 0.0, 1, ALIKE) == pytest.approx(
        median_ttft_on_idle_replica(CHAT, ALIKE) + 0.01 * common.extra_steps_before_first_token
    )
    more = _first(CHAT, 0.1, 9, ALIKE) - _first(CHAT, 0.1, 8, ALIKE)
    assert more == pytest.approx(0.1 * common.other_prompts_factor)


@pytest.mark.parametrize("load", [1.0, 16.0, 256.0])
@pytest.mark.parametrize("variation", [0.0, 0.5])
def test_a_loaded_replica_is_never_faster_than_an_idle_one(load: float, variation: float) -> None:
    traffic = RequestPattern(
        RequestLengths(4096, 300), variation, variation, has_open_arrivals=True
    )
    median = round(4096 / (1 + variation) ** 0.5)
    alone = CHAT.seconds_before_prompt + prefill_step_time(CHAT, median).total
    assert profile_replica_by_batch(CHAT, traffic).median_ttft_at_batch(load) > 0.999 * alone


def test_requests_wait_for_others_only_as_far_as_they_start_together() -> None:
    def wait(**traffic: Any) -> float:
        one = RequestPattern(RequestLengths(1000, 300), **traffic)
        return _first(CHAT, 0.1, 64, one) - _first(CHAT, 0.1, 1, one)

    alike = wait()
    nearly = wait(prompt_cv_squared=0.004, answer_cv_squared=0.004)
    spread = wait(prompt_cv_squared=0.33, answer_cv_squared=0.33)
    assert alike > 1.5 * nearly > 10 * spread
    assert wait(has_open_arrivals=True) == 0.0


def test_the_median_of_prompts_that_vary_is_below_their_mean() -> None:
    varied = RequestPattern(
        RequestLengths(1000, 300), prompt_cv_squared=3.0, has_open_arrivals=True
    )
    half = CHAT.seconds_before_prompt + prefill_step_time(CHAT, 500).total
    assert median_ttft_on_idle_replica(CHAT, varied) == pytest.approx(half)


def test_an_engine_that_reads_prompts_in_separate_steps_lets_answers_wait() -> None:
    mixed = dataclasses.replace(CHAT, engine=engine_speed.find_engine_speed("vllm"))
    apart = dataclasses.replace(
        CHAT, engine=dataclasses.replace(mixed.engine, has_separate_prefill_steps=True)
    )
    for batch in (8, 64):
        both, alone = (
            profile_replica_by_batch(one, ALIKE).timing_at_batch(batch) for one in (mixed, apart)
        )
        assert alone.added_prompt_seconds > both.added_prompt_seconds
        assert alone.min_mixed_step_seconds == pytest.approx(
            both.min_mixed_step_seconds + both.step_seconds
        )


def test_block_scaled_weights_take_longer_where_their_kernels_are_slow() -> None:
    def decode(gpu: str, weights: str) -> float:
        one = placed("qwen3-235b-a22b", gpu, weight_format=weights, tensor_parallel=8)
        return decode_step_time(one, 1, 1000).total

    assert decode("mi300x", "fp8-block") > 1.3 * decode("mi300x", "fp8")
    assert decode("H200", "fp8-block") < 1.1 * decode("H200", "fp8")


def test_an_engine_that_looks_seldom_lets_requests_wait_for_half_of_that() -> None:
    seldom = dataclasses.replace(
        CHAT, setup=dataclasses.replace(CHAT.setup, polling_interval_steps=31)
    )
    later = _first(seldom, 0.1, 8, ALIKE) - _first(CHAT, 0.1, 8, ALIKE)
    assert later == pytest.approx(15 * 0.01)


def test_a_prompt_of_more_layers_takes_longer_to_launch() -> None:
    assert CHAT.seconds_before_prompt > CHAT.engine.seconds_before_queue
    small = placed("llama-3-8b", "H100", weight_format="fp8", tensor_parallel=2)
    assert CHAT.seconds_before_prompt - CHAT.engine.seconds_before_queue == pytest.approx(
        80 / 32 * (small.seconds_before_prompt - small.engine.seconds_before_queue)
    )


def test_divided_experts_wait_for_the_gpu_with_most_of_them() -> None:
    assert engine_speed.expected_experts_on_fullest_gpu(5.0, 8.0, 1) == 5.0
    assert (
        5.0
        < engine_speed.expected_experts_on_fullest_gpu(5.0, 8.0, 4)
        < engine_speed.expected_experts_on_fullest_gpu(5.0, 8.0, 16)
        <= 8.0
    )
    assert (
        engine_speed.expected_experts_on_fullest_gpu(8.0, 8.0, 16) == 8.0
    )  # all of them are chosen everywhere


def test_a_run_ends_with_a_round_that_is_not_full() -> None:
    profile = profile_replica_by_batch(CHAT, RequestPattern(RequestLengths(1000, 1000)))
    steady = saturated_request_rate(profile)
    assert saturated_request_rate(profile, 3 * profile.max_reserved_batch) == pytest.approx(steady)
    assert saturated_request_rate(profile, 1.1 * profile.max_reserved_batch) < 0.9 * steady
    few = profile.max_reserved_batch / 10
    assert saturated_request_rate(profile, few) == pytest.approx(profile.request_rate_at_batch(few))


def test_an_engine_may_keep_all_tokens_of_layers_that_look_back_over_a_window() -> None:
    kept, dropped = (
        sequence_cache_bytes_per_gpu(placed("gpt-oss-120b", "H100", engine_id=name), 8192)
        for name in ("trtllm", "vllm")
    )
    assert kept == pytest.approx(2 * dropped, rel=0.02), "half of the layers have 128"


def test_a_step_is_filled_up_to_a_recorded_batch() -> None:
    full = profiled(placed("llama-3-8b", "H100", engine_id="trtllm"), 1024, 1024)
    there = full.timing_at_batch(155)
    assert (
        there.step_seconds < there.cuda_graph_step_seconds < full.timing_at_batch(256).step_seconds
    )
    assert (
        full.timing_at_batch(256).cuda_graph_step_seconds == full.timing_at_batch(256).step_seconds
    )
    assert profiled(CHAT, 1024, 1024).timing_at_batch(155).cuda_graph_step_seconds == pytest.approx(
        profiled(CHAT, 1024, 1024).timing_at_batch(155).step_seconds
    )


def test_a_step_with_prompts_takes_at_least_its_launches() -> None:
    slow = BatchTiming(
        step_seconds=0.01,
        added_prompt_seconds=0.02,
        batch_per_group=11,
        cuda_graph_step_seconds=0.01,
        min_mixed_step_seconds=0.05,
    )
    share, mixed = compute_mixed_steps(slow, 0.1)
    assert (share, mixed) == (pytest.approx(1 - math.exp(-0.1)), 0.05)
    assert mean_step_time(slow, 0.1) == pytest.approx(0.01 + share * 0.04)
    quick = slow._replace(min_mixed_step_seconds=0.0)
    assert mean_step_time(quick, 0.1) == pytest.approx(0.01 + 0.1 * 0.02)


def test_an_arm_host_takes_longer_to_launch() -> None:
    beside, arm = (
        placed("qwen3-30b-a3b", card, weight_format="nvfp4") for card in ("B200", "GB200")
    )
    assert arm.prompt_launch_seconds == pytest.approx(2.75 * beside.prompt_launch_seconds)


def test_divided_experts_are_sent_all_tokens_however_few_they_choose() -> None:
    def sent(weights: str, parts: int) -> float:
        split = {"attention_replicas": parts, "expert_parallel": parts, "gpus_per_expert": 1}
        one = placed("llama-4-maverick", "B200", weight_format=weights, **split)
        return decode_step_time(one, 4096, 2048).communication

    # Each token chooses one expert, and goes to all GPUs all the same.
    assert sent("fp8", 8) > 1.8 * sent("fp8", 4)
    assert 0.5 * sent("fp8", 8) < sent("nvfp4", 8) < 0.8 * sent("fp8", 8)


def _served(**asked: Any) -> Any:
    words = {"model": "llama-3.1-70b", "gpu": "h100-sxm5-80", "replicas": "1", "spare": "0"}
    words |= {name: str(value) for name, value in asked.items()}
    return registry.run_estimate("serving-capacity", words)


def test_requests_beyond_the_cache_wait_instead_of_having_no_answer() -> None:
    most = int(_served(concurrent=1, tensor_parallel=4)["max_concurrent"].value)
    full, twice = (_served(concurrent=n * most, tensor_parallel=4) for n in (1, 2))
    assert twice["throughput"].value == pytest.approx(full["throughput"].value, rel=0.02)
    # While others wait, those that are answered are as fast as so many users by themselves.
    alone = _served(concurrent=int(twice["concurrent"].value), tensor_parallel=4)
    assert twice["tpot_p50"].value == pytest.approx(alone["tpot_p50"].value, rel=0.005)
    assert twice["concurrent"].value <= full["concurrent"].value
    each = full["tpot_p50"].value * 300
    assert twice["ttft_p50"].value - full["ttft_p50"].value == pytest.approx(each, rel=0.2)
    assert any("wait until others leave the memory" in note for note in twice.notes)
    assert not any("wait until others" in note for note in full.notes)


def _asked_of_235b(**asked: Any) -> Any:
    """Qwen3-235B in FP8 on four H100 with prompts of 30,000 tokens, as many as are there."""
    return _served(
        model="qwen3-235b-a22b",
        weights="fp8",
        tensor_parallel=4,
        prompt_tokens=30_000,
        output_tokens=500,
        **({"concurrent": 20, "ttft_target": "", "tpot_target": ""} | asked),
    )


def test_a_fixed_number_of_users_waits_as_long_as_little_says() -> None:
    # All 20 are somewhere: as many as fit are answered, and the others wait.
    crowd = _asked_of_235b(cache="bf16")
    rate, first = crowd["requests_per_second"].value, crowd["ttft_p50"].value
    assert first + 500 * crowd["tpot_p50"].value == pytest.approx(20 / rate, rel=0.1)
    assert crowd["ttft_p95"].value < 2 * first
    assert "holds 8 of 20 requests with a cache in BF16; the others wait" in crowd.verdict.text
    assert crowd.verdict.lead == "Too little memory: most requests wait."
    assert crowd["fits"].value is False
    changes = [(c.field, c.new_value, c.verdict_after) for c in crowd.changes]
    assert changes[0] == ("cache", "FP8", "17 of 20 requests are answered at a time.")
    assert changes[1] == ("concurrent", "8", "Nobody waits for memory; 7 of 8 surely fit.")
    assert "7 surely fit." in crowd["max_concurrent"].note
    assert _asked_of_235b(cache="bf16", concurrent=8)["fits"].value is True
    assert crowd["concurrent"].value <= crowd["max_concurrent"].value


GPT_OSS = {"model": "gpt-oss-120b", "tensor_parallel": 1, "prompt_tokens": 7000}


def test_users_who_wait_for_memory_get_the_saturated_rate_and_that_reason() -> None:
    for users in (30, 50):
        crowd = _served(**GPT_OSS, output_tokens=1000, concurrent=users)
        assert crowd["throughput"].value == pytest.approx(crowd["saturated_throughput"].value)
        assert crowd["fits"].value is False
        for figure in ("fits", "max_rate", "utilisation"):
            assert "for memory." in crowd[figure].note
        assert crowd["utilisation"].value == 1
        assert "missed" not in crowd["max_rate"].note


def test_a_named_change_of_a_crowd_says_what_its_page_says(subtests: pytest.Subtests) -> None:
    asked = {"replicas": "1", "spare": "0", "output_tokens": "1000"}
    moe = {"model": "qwen3-235b-a22b", "weights": "fp8", "tensor_parallel": "4"}
    said = set()
    for typed in (
        asked | {k: str(v) for k, v in GPT_OSS.items()} | {"concurrent": "50"},
        asked | {k: str(v) for k, v in GPT_OSS.items()} | {"concurrent": "30", "tpot_target": ""},
        asked | moe | {"prompt_tokens": "31000", "concurrent": "20"},
    ):
        for change in registry.run_estimate("serving-capacity", typed).changes:
            with subtests.test(field=change.field, becomes=change.verdict_after):
                page = registry.run_estimate(
                    "serving-capacity", typed | dict(change.typed_values_by_field)
                )
                for held in re.findall(r"\d+ of \d+", change.verdict_after):
                    said.add("held")
                    assert f"holds {held} requests" in page.verdict.text
                is_unsure = "surely fit" in change.verdict_after
                assert is_unsure == ("may not fit" in page.verdict.lead)
                if slow := re.search("too slow: (.*), not", change.verdict_after):
                    said.add("slow")
                    assert page.verdict.lead.startswith("Slower than the preset target")
                    assert slow[1] in page.verdict.lead
                elif "at a time" in change.verdict_after:
                    assert page.verdict.lead.startswith("Too little memory")
                else:
                    assert page.verdict.lead.startswith(("Meets the targets", "Keeps up"))
    assert said == {"held", "slow"}


def test_a_peak_beyond_one_user_names_replicas_only() -> None:
    typed = {"model": "llama-3.3-70b", "weights": "fp8", "tensor_parallel": "2", "replicas": "1"}
    typed |= {"peak": "90", "concurrent": "20", "spare": "0"}
    (change,) = (
        change
        for change in registry.run_estimate("serving-capacity", typed).changes
        if change.field in ("concurrent", "replicas")
    )
    met = registry.run_estimate("serving-capacity", typed | dict(change.typed_values_by_field))
    assert (change.field, met["fits"].value) == ("replicas", True)


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ({"gpu": "h200-sxm5-141", "spare": "1"}, "4 in use and 2 spare."),
        ({"gpu": "mi300x", "spare": "1"}, "4 in use and 4 spare."),
        ({"gpu": "mi300x", "spare": "0"}, ""),
    ],
)
def test_spare_gpus_are_told_from_those_in_use(typed: dict[str, str], note: str) -> None:
    chat = {"model": "llama-3.3-70b", "concurrent": "50"}
    for name in ("serving-capacity", "deployment"):
        answer = registry.run_estimate(name, chat | typed)
        assert answer["gpus"].note == note
        assert not answer["replicas"].output.better  # Those of one are larger than of the other.
    in_use = registry.run_estimate("serving-capacity", chat | typed)["gpus_in_use"]
    assert (in_use.value, in_use.note) == (4, "")


def test_the_high_end_of_gpus_in_use_is_without_the_spare_of_its_own_layout() -> None:
    slow = {"model": "llama-3.3-70b", "concurrent": "94", "gpu": "h200-sxm5-141"}
    answer = registry.run_estimate("serving-capacity", slow)
    assert (answer["gpus"].high, answer["gpus_in_use"].high) == (12, 8)


def test_a_rack_whose_gpus_read_and_answer_is_named_full_too() -> None:
    rack = {"model": "deepseek-v3", "gpu": "gb200", "prompt_tokens": "2000", "spare": "0"}
    answer = registry.run_estimate("serving-capacity", rack)
    change = next(c for c in answer.changes if "GPUs of one rack" in c.verdict_after)
    assert change.field == "concurrent"
    full = registry.run_estimate("serving-capacity", rack | dict(change.typed_values_by_field))
    assert (full["gpus"].value, full["fits"].value) == (72, True)


def test_requests_of_equal_lengths_may_not_start_together_at_the_low_end() -> None:
    # NVIDIA NIM 1.8.0 measured 0.69 and 0.83 s with 25 and 50 requests at once (docs.nvidia.com,
    # NIM for LLMs Benchmarking 1.0.0, Performance).
    typed = {"model": "llama-3.3-70b", "weights": "fp8", "cache": "fp8", "engine": "trtllm"}
    typed |= {"gpu": "h100", "tensor_parallel": "2", "replicas": "1", "spare": "0"}
    typed |= {"prompt_tokens": "5000", "output_tokens": "500", "prompt_variation": "0"}
    lows = {}
    for users, measured in (("1", 0.0), ("25", 0.69), ("50", 0.83)):
        load = typed | {"answer_variation": "0", "concurrent": users}
        ttft = registry.run_estimate("serving-capacity", load)["ttft_p50"]
        lows[users] = ttft.low or 0.0
        assert not measured or lows[users] < measured < (ttft.high or 0.0)
    # It grows with the steps that others take, not with their prompts.
    assert lows["25"] < lows["50"] < 1.2 * lows["25"]


def test_a_typed_split_names_the_gpus_of_a_better_one_beside_its_range() -> None:
    typed = {"model": "llama-3.3-70b", "weights": "fp8", "concurrent": "50", "gpu": "mi300x"}
    gpus = registry.run_estimate("serving-capacity", typed | {"tensor_parallel": "1"})["gpus"]
    (in_use, spare, fewer, of) = map(int, re.findall(r"\d+", gpus.note))
    assert (in_use + spare, spare) == (gpus.value, 1)
    again = registry.run_estimate("serving-capacity", typed | {"tensor_parallel": str(of)})["gpus"]
    assert again.high == fewer < gpus.high


@each_of_sample("users", [6, 16, 32, 64], 2)  # Where 8 are held.
def test_formula_and_simulation_of_a_crowd_are_near_each_other(users: int) -> None:
    crowd = _asked_of_235b(concurrent=users, simulate="true")
    rows = {row[0]: row[1:3] for row in crowd.tables[1].rows}
    for share, most in (("p50", 1.35), ("p95", 1.6)):
        formula, simulated = (value for value, _ in rows[share])
        assert 1 / most < formula / simulated < most, share


def test_one_user_alone_waits_for_no_prompt_but_his() -> None:
    strict = _asked_of_235b(ttft_target="2 s", replicas="")
    (change,) = strict.changes
    alone = _asked_of_235b(concurrent=1)["ttft_p95"].value
    assert alone == pytest.approx(float(change.new_value.split()[0]), rel=0.01)
    assert "whose prompts vary in length" in strict.verdict.text
    alike = {"prompt_variation": 0, "answer_variation": 0}
    same = _asked_of_235b(concurrent=1, **alike)
    assert same["ttft_p95"].value == same["ttft_p50"].value
    assert any("keep the requests in step" in note for note in same.notes)


def test_a_whole_answer_is_drawn_above_its_first_token() -> None:
    first, whole = _asked_of_235b().pictures[0].lines[:2]
    assert all(below[1] < above[1] for below, above in zip(first.points, whole.points, strict=True))


def test_a_result_says_on_how_many_measurements_its_ranges_rest() -> None:
    known, unknown = _served(), _served(model="gemma-2-27b", gpu="gaudi3", cache="bf16")
    assert "measurements of vLLM with dense models on several GPUs of Hopper" in known.notes[0]
    assert "No measurements of vLLM with dense models" in unknown.notes[0]
    for name in ("ttft_p50", "tpot_p50", "throughput"):
        near, wide = known[name], unknown[name]
        assert wide.high / wide.low > 1.05 * near.high / near.low


def test_drafts_shorten_the_pause_until_the_batch_fills_the_gpu() -> None:
    def gain(users: int) -> float:
        plain, drafted = (
            _served(concurrent=users, draft_tokens=n, tensor_parallel=4)["tpot_p50"].value
            for n in (0, 3)
        )
        return float(plain / drafted)

    assert 1.5 < gain(1) < 3.0
    assert gain(200) < gain(1)


def test_drafts_that_are_never_kept_only_cost_time() -> None:
    four = {"concurrent": 8, "tensor_parallel": 4, "acceptance": "0%"}
    plain, drafted = (_served(draft_tokens=n, **four)["tpot_p50"].value for n in (0, 3))
    assert drafted > plain


def test_a_cached_prompt_is_not_read_again() -> None:
    cold, warm = (_served(concurrent=32, cached_share=share) for share in ("0%", "90%"))
    for name in ("ttft_p50", "tpot_p50"):
        assert warm[name].value < cold[name].value
    assert warm["max_concurrent"].value == cold["max_concurrent"].value


def test_answers_of_many_lengths_leave_longer_sequences_in_memory() -> None:
    alike = RequestPattern(RequestLengths(1000, 1000))
    varied = RequestPattern(RequestLengths(1000, 1000), answer_cv_squared=0.5)
    # Drawn at random in time, an answer is longer than the mean by its squared variation.
    assert (alike.mean_context_of_running_sequence, varied.mean_context_of_running_sequence) == (
        1500,
        1750,
    )
    fewer, more = (profile_replica_by_batch(CHAT, t) for t in (varied, alike))
    assert fewer.max_batch < more.max_batch
    assert fewer.tpot_at_batch(64) > more.tpot_at_batch(64)


def test_a_rack_of_72_is_named_like_a_card_and_counts_as_one_node() -> None:
    typed = {"model": "deepseek-v3", "tensor_parallel": 8, "replicas": 17, "spare": 1}
    answers = {
        gpu: {
            f.name: f.value
            for f in registry.run_estimate("serving-capacity", typed | {"gpu": gpu}).figures
        }
        for gpu in ("GB200 NVL72", "gb200-gpu", "b200-sxm")
    }
    assert answers["GB200 NVL72"] == answers["gb200-gpu"]
    assert [answer["nodes"] for answer in answers.values()] == [2, 2, 18]


def test_pipeline_stages_add_sends_and_divide_the_batch() -> None:
    plain = placed("llama-3.1-70b", "L40S", tensor_parallel=8, weight_format="fp8")
    stages = placed(
        "llama-3.1-70b", "L40S", tensor_parallel=1, pipeline_stages=8, weight_format="fp8"
    )
    # Without NVLink, vLLM recommends stages: they send two tensors at each of seven
    # boundaries, where each of 80 layers has two all-reduces.
    assert (
        decode_step_time(stages, 8, 1000).communication
        < decode_step_time(plain, 8, 1000).communication
    )
    divided = profiled(stages, 1000, 300)
    assert divided.concurrent_batches == 8
    assert divided.timing_at_batch(64).batch_per_group == 8
    assert not find_measurement_coverage(stages).is_enough
    assert "pipeline stages" in find_measurement_coverage(stages).setup_description


def test_the_fullest_stage_decides_how_many_sequences_fit() -> None:
    one = placed("llama-3.1-405b", "H100", tensor_parallel=8, weight_format="fp8")
    two = placed(
        "llama-3.1-405b", "H100", tensor_parallel=8, pipeline_stages=2, weight_format="fp8"
    )
    # Weights and each cache halve on a GPU, so that the room for the cache more than doubles.
    assert max_sequences_in_memory(two, 4096) > 4 * max_sequences_in_memory(one, 4096)


def test_impossible_pipelines_are_refused_in_serving(subtests: pytest.Subtests) -> None:
    for name, typed, reason in (
        ("serving-capacity", {"pipeline_parallel": 33}, "too few for 33 stages"),
        ("latency", {"pipeline_parallel": 33}, "too few for 33 stages"),
        ("latency", {"pipeline_parallel": 2, "engine": "llama.cpp"}, "those of vLLM"),
        ("serving-capacity", {"pipeline_parallel": 2, "attention_parallel": 2}, "data-parallel"),
    ):
        with subtests.test(name, reason=reason):
            with pytest.raises(InvalidInputsError) as refused:
                registry.run_estimate(name, {"model": "llama-3-8b", "tensor_parallel": 1} | typed)
            (problem,) = refused.value.problems
            assert problem.field == "pipeline_parallel"
            assert reason in problem.message


@pytest.mark.parametrize(
    ("gpu", "weights", "cache", "gpus", "batch", "published"),
    # DeepSeek V3 in SGLang with prefill and decode apart, prompts of 2,000 tokens: tokens per
    # second and GPU. Nothing here is fitted to them. lmsys.org/blog/2025-05-05-large-scale-ep
    # (52.3k in and 22.3k out for each node of 8) and 2025-09-25-gb200-part-2.
    [
        ("h100-sxm5-80", "fp8-block", "bf16", 72, 256, 2_788),
        ("gb200-gpu", "fp8-block", "bf16", 48, 768, 9_087),
        ("gb200-gpu", "nvfp4", "fp8", 48, 1408, 13_386),
        ("h100-sxm5-80", "fp8-block", "bf16", 32, 0, 6_538),
        ("gb200-gpu", "fp8-block", "bf16", 8, 0, 18_471),
        ("gb200-gpu", "nvfp4", "fp8", 8, 0, 26_156),
    ],
)
def test_prefill_and_decode_apart_are_near_published_rates(
    gpu: str, weights: str, cache: str, gpus: int, batch: int, published: float
) -> None:
    split = {
        "attention_replicas": gpus,
        "expert_parallel": gpus,
        "engine_id": "sglang",
        "dispatches_tokens": True,
    }
    one = placed("deepseek-v3", gpu, weight_format=weights, cache_format=cache, **split)
    if batch:
        said = batch / decode_step_time(one, batch, 2100).total
    else:
        traffic = RequestPattern(RequestLengths(2000, 100))
        said = (
            profile.build_prefill_replica(one, traffic, gpus).max_prompts_per_second * 2000 / gpus
        )
    low, high = data_files.error_bounds_around("saturated-unmeasured", said)
    assert low <= published <= high


def test_a_rack_serves_a_mixture_with_prefill_and_decode_apart() -> None:
    first = registry.run_estimate(
        "serving-capacity", {"model": "deepseek-v3", "gpu": "GB200 NVL72"}
    )
    assert any("on 8 and on 48 GPUs" in note for note in first.notes)
    typed = {"prefill_gpus": 8, "decode_gpus": 48, "concurrent": 5_000, "spare": 0}
    typed |= {"prompt_tokens": 2000, "output_tokens": 2000}
    answer = registry.run_estimate(
        "serving-capacity", {"model": "deepseek-v3", "gpu": "GB200 NVL72", **typed}
    )
    assert answer["nodes"].value == 1
    assert answer["gpus"].value == 48 + 8 * answer["prefill_replicas"].value
    # 2,000 tokens of the latent cache of 61 layers in FP8 go from each GPU over its NVLink.
    cache = 2000 * 61 * 576
    assert answer["transfer"].value >= cache / 900e9
    assert "prefill apart" in answer.notes[0]
    together = registry.run_estimate("serving-capacity", {"model": "llama-3-8b"})
    assert not together["prefill_replicas"].applies


def test_a_prompt_read_apart_waits_for_what_arrives_and_not_for_a_full_step() -> None:
    apart = {"gpu": "gb200-gpu", "prefill_gpus": 8, "decode_gpus": 32, "replicas": 1, "spare": 0}
    apart |= {"model": "deepseek-v3", "ttft_target": "", "tpot_target": ""}
    together = {"gpu": "gb200-gpu", "concurrent": 1, "model": "deepseek-v3"}

    def first_token(share: str, **typed: object) -> float:
        answer = registry.run_estimate("serving-capacity", {**apart, **typed})
        return float(answer[f"ttft_{share}"].value)

    # A lone request finds no step under way, and its own step has no other prompt.
    beside = registry.run_estimate("serving-capacity", together)["ttft_p50"].value
    alone = first_token("p50", concurrent=1)
    assert beside < alone < 1.4 * beside
    # With more users, more wait for a step, and steps are longer, up to a full one.
    full = 0.347
    waits = [first_token("p95", concurrent=n) for n in (1, 30, 1000, 4000)]
    assert waits == sorted(waits)
    assert waits[0] < waits[-1] < 2 * full
    crowd = {"prompt_tokens": 1000, "requests_per_second": 100}
    assert alone < first_token("p50", **crowd) < first_token("p99", **crowd)


@pytest.mark.parametrize("gpus", [1, 8])
def test_steps_of_prefill_agree_with_what_arrives_in_them(gpus: int) -> None:
    traffic = RequestPattern(RequestLengths(1000, 100))
    model, split = ("llama-3-8b", {}) if gpus == 1 else ("deepseek-v3", {"expert_parallel": gpus})
    split |= {"attention_replicas": gpus, "dispatches_tokens": gpus > 1, "engine_id": "sglang"}
    one = profile.build_prefill_replica(placed(model, "h200-sxm5-141", **split), traffic, gpus)
    assert one.prompts_per_full_step == pytest.approx(gpus * 8.192)
    assert one.step_seconds(one.prompts_per_full_step) == pytest.approx(one.full_step_seconds)
    assert one.mean_step_seconds(0.0) == one.step_seconds(1.0) == one.single_prompt_step_seconds
    assert one.prefill_wait_quantile(0.99, 0.0) == (0.0, one.single_prompt_step_seconds)
    steps = [
        one.mean_step_seconds(load * one.max_prompts_per_second) for load in (0.1, 0.4, 0.7, 3.0)
    ]
    assert steps == sorted(steps)
    assert steps[-1] == pytest.approx(one.full_step_seconds)
    for load in (0.2, 0.5, 0.7):
        arrivals = load * one.max_prompts_per_second
        step = one.mean_step_seconds(arrivals)
        # As many are read in a step as arrive in one; a step without arrivals waits for the next.
        read = arrivals * step + math.exp(-arrivals * step)
        assert one.step_seconds(read) == pytest.approx(step, rel=0.01)
        waits = [
            sum(one.prefill_wait_quantile(share, arrivals)) for share in (0.01, 0.3, 0.6, 0.95)
        ]
        assert waits == sorted(waits)
        assert waits[-1] <= 2 * one.full_step_seconds


def test_a_cache_that_leaves_the_rack_goes_over_the_network(subtests: pytest.Subtests) -> None:
    """Eight GPUs that read for 48 fit beside them in a rack of 72; seven times as many do not."""
    cache = 1000 * 61 * 576 * 2
    rack = {"model": "deepseek-v3", "gpu": "GB200 NVL72", "prefill_gpus": 8, "spare": 0}
    for typed, prefill, racks, low, high in (
        ({"decode_gpus": 48, "concurrent": 500}, 1, 1, cache / 900e9, cache / 50e9),
        ({"decode_gpus": 48, "concurrent": 5000}, 7, 2, cache / 50e9, 1),
        ({"decode_gpus": 80, "concurrent": 5000}, 4, 2, cache / 50e9, 1),
        ({"decode_gpus": 80, "concurrent": 1000}, 2, 2, cache / 50e9, 1),
    ):
        with subtests.test(typed=typed):
            answer = registry.run_estimate("serving-capacity", rack | typed)
            service = registry.run_estimate("deployment", rack | typed)
            assert answer["prefill_replicas"].value == prefill
            assert answer["nodes"].value == service["nodes"].value == racks
            assert low < answer["transfer"].value < high


@pytest.mark.parametrize(
    ("pools", "gpus_per_node", "nodes"),
    [
        ([(1, 80), (4, 8)], 72, 2),
        ([(1, 48), (3, 8)], 72, 1),
        ([(1, 48), (4, 8)], 72, 2),
        ([(1, 8), (2, 4)], 72, 1),
        ([(5, 2)], 8, 2),
        ([(3, 6), (3, 2)], 8, 3),
        ([(2, 16)], 8, 4),
    ],
)
def test_replicas_share_servers_and_fill_what_larger_ones_leave(pools, gpus_per_node, nodes):
    assert count_nodes([ReplicaPool(*pool) for pool in pools], gpus_per_node) == nodes


def test_the_split_that_comes_closest_is_reported_where_none_keeps_the_targets(
    subtests: pytest.Subtests,
) -> None:
    """Over PCIe, more GPUs read a prompt later: eight L40S take 4 s where two take 0.6 s."""
    for typed in (
        {"model": "qwen3-32b", "gpu": "l40s", "ttft_target": "300 ms"},
        {"model": "llama-3.3-70b", "gpu": "l40s", "tpot_target": "5 ms"},
        {"model": "llama-3.3-70b", "gpu": "h100", "tpot_target": "4 ms"},
    ):
        with subtests.test(typed=typed):
            chosen = registry.run_estimate("serving-capacity", typed)
            (said,) = (note for note in chosen.notes if "come closest" in note)
            closest = int(re.search(r"(\d+) GPUs come closest", said)[1])
            late = {gpus: _worst_lateness(typed | {"tensor_parallel": gpus}) for gpus in (2, 4, 8)}
            assert closest == min(late, key=late.get)
            service = registry.run_estimate("deployment", typed)
            assert said in service.notes
    kept = registry.run_estimate("serving-capacity", {})
    assert not any("closest" in note for note in kept.notes)


def _worst_lateness(typed: dict[str, Any]) -> float:
    """Return what one request alone takes, over its target."""
    answer = registry.run_estimate("serving-capacity", typed)
    changes = [change for change in answer.changes if change.field.endswith("_target")]
    times = [
        [
            parse_quantity(text.replace("\N{NO-BREAK SPACE}", " "), "s")
            for text in (f.new_value, f.current_value)
        ]
        for f in changes
    ]
    return max((needed / target for needed, target in times), default=math.inf)


def test_half_of_a_split_and_other_splits_beside_it_are_refused(
    subtests: pytest.Subtests,
) -> None:
    both = {"prefill_gpus": 8, "decode_gpus": 16}
    for typed, field in (
        ({"prefill_gpus": 8}, "decode_gpus"),
        ({"decode_gpus": 8}, "prefill_gpus"),
        (both | {"decode_gpus": 512}, "decode_gpus"),
        (both | {"expert_parallel": 8}, "expert_parallel"),
        (both | {"pipeline_parallel": 2}, "pipeline_parallel"),
        (both | {"prefill_gpus": 1}, "prefill_gpus"),
        (both | {"model": "llama-3.1-70b", "prefill_gpus": 7}, "prefill_gpus"),
        (both | {"engine": "vllm-2024", "decode_gpus": 48}, "decode_gpus"),
    ):
        with subtests.test(typed=typed):
            with pytest.raises(InvalidInputsError) as refused:
                registry.run_estimate("serving-capacity", {"model": "deepseek-v3"} | typed)
            assert refused.value.problems[0].field == field


@pytest.mark.parametrize(
    ("engine", "setting"),
    [
        ("vllm", "--eplb-config '{\"num_redundant_experts\": 32}'"),
        ("sglang", "--ep-num-redundant-experts 32"),
        ("trtllm", "num_slots: 288"),
    ],
)
def test_experts_that_do_not_divide_evenly_are_copied(engine: str, setting: str) -> None:
    typed = {"model": "deepseek-v3", "gpu": "gb200", "prefill_gpus": 8, "engine": engine}
    even, uneven = (
        registry.run_estimate("serving-capacity", typed | {"decode_gpus": gpus})
        for gpus in (64, 48)
    )
    assert not any("redundant" in note for note in even.notes)
    assert [setting in note for note in uneven.notes if "redundant" in note] == [True]
    split = {"weight_format": "fp8", "attention_replicas": 48, "expert_parallel": 48}
    one = placed("deepseek-v3", "h200-sxm5-141", **split)
    expert = 58 * 3 * 7168 * 2048
    copied = replica_memory.weight_bytes_per_gpu(one) - 6 * expert
    split |= {"attention_replicas": 64, "expert_parallel": 64}
    other = placed("deepseek-v3", "h200-sxm5-141", **split)
    assert copied == pytest.approx(replica_memory.weight_bytes_per_gpu(other) - 4 * expert)


def test_few_rows_of_experts_are_multiplied_as_vectors_without_padding() -> None:
    one = placed("gpt-oss-20b", "RTX 5080", weight_format="gguf-mxfp4-moe", engine_id="llama.cpp")
    step = decode_step_time(one, 1, 128)
    work = 2 * find_model("gpt-oss-20b").active_parameters
    assert step.compute < 4 * work / one.kernel_rates.matmul_16bit
    assert step.weights > 10 * step.compute
