"""The time of a training step against published runs, and what must hold."""

import dataclasses
import doctest
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimator.hardware import throughput as rates
from app.estimator.hardware.catalog import find_accelerator, list_accelerators
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.training import step_time as step
from app.estimator.training import training_plan
from app.estimator.training.flops import narayanan_training_flops_per_token
from app.estimator.training.step_time import optimizer_step_time
from app.estimator.training.training_plan import SOFTWARE, TrainingPlan

H100 = find_accelerator("H100")
A100 = find_accelerator("a100-sxm4-80")
FABRIC = build_gpu_interconnect(H100)
LLAMA = find_model("llama-3-8b")
powers = st.sampled_from([1, 2, 4, 8])


@pytest.mark.parametrize("module", [rates, training_plan, step], ids=lambda m: m.__name__)
def test_examples_in_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_llama_3_405b_trains_near_its_published_rate() -> None:
    # Megatron-Bridge 26.06, 1,024 H100 in FP8: 326 tokens/s per GPU.
    plan = TrainingPlan(
        tensor=8,
        pipeline=8,
        context=2,
        data=8,
        chunks_per_stage=8,
        sequence=8192,
        micro_batches=192,
        number_format="fp8",
    )
    step = optimizer_step_time(find_model("llama-3.1-405b"), H100, FABRIC, plan)
    assert plan.tokens_per_step / step.total / plan.gpus == pytest.approx(326, rel=0.15)


def test_deepseek_v3_keeps_its_published_pace_on_gb200() -> None:
    # Megatron-Bridge 26.06.01, 256 GB200 in MXFP8: 4,928 tokens/s per GPU.
    gpu = find_accelerator("gb200-gpu")
    plan = TrainingPlan(
        pipeline=4,
        data=64,
        expert=64,
        chunks_per_stage=4,
        micro_batches=64,
        number_format="mxfp8",
    )
    step = optimizer_step_time(find_model("deepseek-v3"), gpu, build_gpu_interconnect(gpu), plan)
    assert plan.tokens_per_step / step.total / plan.gpus == pytest.approx(4928, rel=0.3)


def gpt(layers: int, heads: int, hidden: int) -> Architecture:
    config = {"model_type": "gpt2", "n_layer": layers, "n_head": heads}
    sizes = {"n_embd": hidden, "vocab_size": 51200, "n_positions": 2048}
    return find_model(json.dumps(config | sizes))


OLDEST = SOFTWARE["megatron-2022"]


@pytest.mark.parametrize(
    ("shape", "tensor", "published"),
    [((24, 24, 2304), 1, 137), ((30, 32, 3072), 2, 138), ((36, 32, 4096), 4, 142)],
)
def test_small_models_lose_time_to_written_scores(
    shape: tuple[int, int, int], tensor: int, published: float
) -> None:
    # Narayanan et al. 2021, table 1: TFLOP/s of one of 32 to 128 A100, with
    # recomputation and the whole square of scores counted. One of 1.7B was said a
    # third too quick while attention counted as a fused kernel.
    layers, _, hidden = shape
    plan = TrainingPlan(
        tensor=tensor,
        data=32,
        sequence=2048,
        micro_batch=4,
        micro_batches=4,
        recompute="full",
        zero=0,
        sequence_parallel=False,
        software=OLDEST,
    )
    step = optimizer_step_time(gpt(*shape), A100, build_gpu_interconnect(A100, 25e9), plan)
    again = layers * (24 * hidden**2 + 4 * hidden * 2048)
    flops = narayanan_training_flops_per_token(layers, hidden, 51200, 2048) + again
    reached = plan.tokens_per_step / step.total / plan.gpus * flops / 1e12
    assert reached == pytest.approx(published, rel=0.15)


@given(st.sampled_from([1024, 2048, 8192]), st.sampled_from([16, 32, 64]))
def test_written_scores_cost_by_their_number(sequence: int, heads: int) -> None:
    now = SOFTWARE["megatron"]
    plan = TrainingPlan(sequence=sequence, software=OLDEST)
    fused = dataclasses.replace(plan, software=now)

    def attention(heads: int, plan: TrainingPlan) -> float:
        return optimizer_step_time(
            gpt(4, heads, 4096), A100, build_gpu_interconnect(A100), plan
        ).attention

    assert attention(heads, plan) > attention(heads, fused)
    assert attention(2 * heads, plan) > 1.3 * attention(heads, plan)
    assert attention(2 * heads, fused) == pytest.approx(attention(heads, fused))


def test_the_parts_of_a_step_sum_to_the_whole() -> None:
    plan = TrainingPlan(tensor=2, pipeline=2, data=4, micro_batches=8, zero=1)
    step = optimizer_step_time(LLAMA, H100, FABRIC, plan)
    parts = (getattr(step, name) for name in step._fields)
    assert sum(parts) == pytest.approx(step.total)


@given(powers, powers, powers, st.integers(1, 64))
def test_no_step_beats_its_peak(tensor: int, pipeline: int, data: int, batches: int) -> None:
    plan = TrainingPlan(tensor=tensor, pipeline=pipeline, data=data, micro_batches=batches)
    step = optimizer_step_time(LLAMA, H100, FABRIC, plan)
    needed = 6 * (LLAMA.parameters - LLAMA.embedding_parameters) * plan.tokens_per_step
    assert step.total > needed / plan.gpus / 989.4e12


@given(powers, st.integers(1, 32))
def test_more_microbatches_take_longer_and_idle_less(pipeline: int, batches: int) -> None:
    few = TrainingPlan(pipeline=pipeline, micro_batches=batches)
    many = dataclasses.replace(few, micro_batches=2 * batches)
    one = optimizer_step_time(LLAMA, H100, FABRIC, few)
    two = optimizer_step_time(LLAMA, H100, FABRIC, many)
    assert one.total < two.total
    assert two.bubble / two.total <= one.bubble / one.total


@given(st.sampled_from(sorted(SOFTWARE)))
def test_recomputation_costs_time(software: str) -> None:
    plan = TrainingPlan(micro_batches=4, software=SOFTWARE[software])
    full = dataclasses.replace(plan, recompute="full")
    kept = optimizer_step_time(LLAMA, H100, FABRIC, plan)
    assert kept.total < optimizer_step_time(LLAMA, H100, FABRIC, full).total


def test_fp8_beats_bf16_where_the_card_has_it() -> None:
    plan = TrainingPlan(micro_batches=4)
    fp8 = dataclasses.replace(plan, number_format="fp8")
    slow = optimizer_step_time(LLAMA, H100, FABRIC, plan).total
    assert optimizer_step_time(LLAMA, H100, FABRIC, fp8).total < slow
    with pytest.raises(ValueError, match="does not compute in fp8"):
        optimizer_step_time(LLAMA, A100, build_gpu_interconnect(A100), fp8)


def test_a_capped_card_is_slower() -> None:
    capped = dataclasses.replace(H100, tdp=400.0)
    plan = TrainingPlan(micro_batches=4)
    now = optimizer_step_time(LLAMA, H100, FABRIC, plan).total
    assert optimizer_step_time(LLAMA, capped, FABRIC, plan).total > now


@given(st.floats(1, 1e6))
def test_the_roofline_has_two_sides(flops_per_byte: float) -> None:
    reached = rates.roofline_rate(flops_per_byte, 989e12, 3.35e12)
    assert reached <= 989e12
    assert reached <= 3.35e12 * flops_per_byte


def test_the_crossover_of_the_h100_is_295_tokens() -> None:
    assert rates.critical_batch(989.4e12, 3.35e12, 2) == pytest.approx(295.3, rel=1e-3)


def _hybrid(**changes: int) -> Architecture:
    config = {
        "model_type": "nemotron_h",
        "hidden_size": 4096,
        "hybrid_override_pattern": "MEME*E",
        "mamba_head_dim": 64,
        "mamba_num_heads": 128,
        "n_groups": 8,
        "ssm_state_size": 128,
        "head_dim": 128,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "moe_intermediate_size": 2688,
        "n_routed_experts": 512,
        "num_experts_per_tok": 22,
        "vocab_size": 131072,
    }
    return find_model(json.dumps(config | changes))


def test_a_recurrent_layer_costs_the_traffic_of_its_state_and_its_scan() -> None:
    plan = TrainingPlan(data=8, expert=8, sequence=4096)
    small, large = (
        optimizer_step_time(_hybrid(ssm_state_size=n), H100, FABRIC, plan) for n in (128, 1024)
    )
    assert large.traffic > 1.3 * small.traffic
    assert large.attention > 3 * small.attention


def test_experts_of_a_latent_width_are_sent_that_width() -> None:
    plan = TrainingPlan(data=64, expert=64, sequence=4096)
    wide, narrow = (
        optimizer_step_time(_hybrid(moe_latent_size=n), H100, FABRIC, plan) for n in (4096, 1024)
    )
    assert 3 < wide.expert / narrow.expert <= 4


@pytest.mark.parametrize(
    "gpu", [gpu.id for gpu in list_accelerators() if gpu.dense_peak_rate("bf16")]
)
def test_no_chip_multiplies_faster_than_its_peak(gpu: str) -> None:
    sustained = rates.compute_sustained_rates(find_accelerator(gpu))

    assert max(sustained.matmul, sustained.attention) < sustained.peak
