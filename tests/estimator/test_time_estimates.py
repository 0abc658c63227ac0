"""Estimates of time and capacity: published runs, and what every answer must keep."""

import dataclasses
import itertools
import json

import pytest

from app.estimator import registry
from app.estimator.estimates import parallelism_plan
from app.estimator.estimates.layout_search import TrainingJob, list_model_splits, search_layouts
from app.estimator.estimates.parallelism_plan import ParallelismPlanInputs
from app.estimator.hardware import collectives
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.inputs import InvalidInputsError, input_specs
from app.estimator.models.lookup import find_model
from tests.amounts import each_of_sample

NAMES = [
    "collectives",
    "training-time",
    "latency",
    "serving-capacity",
    "parallelism-plan",
]

# A setting in which each input has something to say, where the first one has not.
_SETTINGS = {
    "collectives": ({"gpus": 64},),
    "training-time": (
        {"gpus": 64},
        {"method": "lora"},
        {
            "model": "qwen3-30b-a3b",
            "gpus": 64,
            "pipeline_parallel": 2,
            "sequence": 32768,
        },
        {"gpus": 64, "tensor_parallel": 8},
    ),
    "latency": (
        {"tensor_parallel": 16, "cache": "fp8"},
        {"draft_tokens": 4, "acceptance": 0.4},
        {"batch": 16},
        {"engine": "llama.cpp", "gpu_layers": 20, "tensor_parallel": 1},
        {"model": "qwen3.5-27b", "tensor_parallel": 1, "max_sequences": 1024},
    ),
    "serving-capacity": (
        {"tensor_parallel": 16, "weights": "bf16"},
        {"concurrent": 100, "replicas": 1, "ttft_target": 0.2},
        {"simulate": True},
        {"draft_tokens": 4, "acceptance": 0.4},
        {"model": "mixtral-8x7b"},
        {"prefill_gpus": 4, "decode_gpus": 4},
    ),
    "parallelism-plan": ({"gpus": 64}, {"gpus": 64, "objective": "cost"}),
}
# Another value for an input, where the half or the double of it is not allowed.
_OTHERS = {
    "weights": "int8",
    "cache": "bf16",
    "number_format": "fp8",
    "recompute": "full",
    "zero": "3",
    "gradients": "fp32",
    "software": "eager",
    "engine": "sglang",
    "network": "efa",
    "operation": "all_gather",
    "percentile": "p50",
    "objective": "cost",
    "model": "llama-2-13b",
    "gpu": "h200-sxm5-141",
    "expert_parallel": 4,
    "context_parallel": 2,
    "domain": 4,
    "deadline": 86400.0,
    "watts_per_gpu": 900.0,
    "global_batch": 128,
    "chunk": 128,
    "cached_share": 0.5,
    "draft_tokens": 3,
    "requests_per_second": 3.0,
    "replicas": 7,
    "usable_memory": 0.5,
    "memory_utilization": 0.6,
    "message": 1e6,
    "sequence": 2048,
    "spare": 0,
    "other_time": 0.2,
    "method": "lora",
    "targets": "qv",
    "pue": 1.1,
}


def said(estimate: object) -> object:
    return dataclasses.replace(estimate, pictures=())  # type: ignore[type-var]


@each_of_sample("name", NAMES, 2)
def test_no_input_is_without_effect(name: str) -> None:
    entry = registry.find_estimate(name)
    assert entry is not None
    silent = set(input_specs(entry.inputs_type))
    for setting in ({}, *_SETTINGS[name]):
        try:
            first = registry.run_estimate(name, setting)
        except InvalidInputsError:
            continue
        for field in sorted(silent):
            other = changed(entry.inputs_type(**setting), field)
            try:
                second = registry.run_estimate(name, {**setting, field: other})
            except InvalidInputsError:
                continue
            if said(second) != said(first):
                silent.discard(field)
    assert silent == set()


def changed(inputs: object, field: str) -> object:
    now = getattr(inputs, field)
    other = _OTHERS.get(field)
    if other is not None and other != now:
        return other
    return (not now) if isinstance(now, bool) else 2 * (now or 1)


def test_granite_8b_in_its_own_layout_took_its_hours() -> None:
    # Granite 3.0 (2024): 768 H100, 4-way tensor and pipeline parallel, 832,102 hours.
    granite = {
        "model_type": "granite",
        "vocab_size": 49155,
        "hidden_size": 4096,
        "intermediate_size": 12800,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    }
    run = registry.run_estimate(
        "training-time",
        {
            "model": json.dumps(granite),
            "gpu": "H100",
            "gpus": 768,
            "tensor_parallel": 4,
            "pipeline_parallel": 4,
            "sequence": 4096,
            "micro_batch": 2,
            "global_batch": 1024,
            "recompute": "none",
            "software": "compiled",
            "tokens": "12T",
        },
    )
    assert run["gpu_hours"].value == pytest.approx(832_102, rel=0.15)


def test_llama_3_405b_took_thirty_million_hours() -> None:
    # Llama 3.1 model card: 30.84 million H100 hours; paper: 38 to 43 % MFU.
    run = registry.run_estimate(
        "training-time",
        {
            "model": "llama-3.1-405b",
            "gpu": "16384x H100",
            "tokens": "15.6T",
            "tensor_parallel": 8,
            "pipeline_parallel": 16,
            "interleave": 8,
            "sequence": 8192,
            "global_batch": 2048,
            "recompute": "none",
            "other_time": 0,
            # As its paper says: 419 failures in 54 days, and quick saves.
            "mtbf_per_gpu": 50_700 * 3600.0,
            "checkpoint_time": 10.0,
        },
    )
    # More than 90 % of the time was effective.
    assert 0.9 < float(run["goodput"].value or 0) < 0.95
    assert run["gpu_hours"].value == pytest.approx(30.84e6, rel=0.05)
    assert 0.36 < float(run["mfu"].value or 0) < 0.46


def test_a_chat_service_for_500_people_fits_on_a_few_servers() -> None:
    service = registry.run_estimate("serving-capacity", {"concurrent": 500})
    assert service["fits"].value is True
    assert 8 <= int(service["gpus"].value or 0) <= 64


def test_simulation_and_formula_agree_at_half_load() -> None:
    asked = {"requests_per_second": 3, "simulate": True, "replicas": 1}
    service = registry.run_estimate("serving-capacity", asked)
    table = next(t for t in service.tables if t.label == "Formula and simulation")
    median = table.rows[0]
    assert isinstance(median[3], tuple)
    assert isinstance(median[4], tuple)
    assert median[3][0] == pytest.approx(median[4][0], rel=0.2)


def test_the_value_that_is_said_to_change_the_verdict_does(
    subtests: pytest.Subtests,
) -> None:
    for name, setting in [
        ("serving-capacity", {"replicas": 1, "concurrent": 400, "tpot_target": 0.049}),
        ("serving-capacity", {"tensor_parallel": 1, "weights": "bf16"}),
        (
            "training-time",
            {"model": "70B", "gpus": 64, "tensor_parallel": 4, "zero": "1", "recompute": "none"},
        ),
        ("training-time", {"gpus": 64, "deadline": 10 * 86400.0}),
        (
            "training-time",
            {"model": "70B", "gpus": 64, "zero": "1", "recompute": "selective"},
        ),
    ]:
        with subtests.test(name=name, setting=setting):
            before = registry.run_estimate(name, setting)
            assert before.verdict.status == "no"
            field = "replicas" if "replicas" in setting else before.changes[0].field
            change = next(c for c in before.changes if c.field == field)
            after = registry.run_estimate(name, {**setting, change.field: change.new_value})
            assert after.verdict.status != "no"


@pytest.mark.parametrize(
    "setting",
    [
        {"prompt": 64, "answer": 16},
        {"model": "llama-3.1-70b", "tensor_parallel": 8, "prompt": 128, "batch": 32},
        # On one H100 the memory is full before.
        {"model": "qwen3-30b-a3b", "tensor_parallel": 2, "prompt": 64, "batch": 64},
    ],
)
def test_decoding_leaves_memory_at_the_very_batch_that_is_said(
    setting: dict[str, object],
) -> None:
    before = registry.run_estimate("latency", setting)
    assert before["bound"].value == "memory"
    said_at = int(before.changes[0].new_value.replace(",", ""))
    below = registry.run_estimate("latency", {**setting, "batch": said_at - 1})
    after = registry.run_estimate("latency", {**setting, "batch": said_at})
    assert below["bound"].value == "memory"
    assert after["bound"].value != "memory"


def test_gpus_can_share_the_batch_that_nobody_typed(subtests: pytest.Subtests) -> None:
    # 16,384 GPUs and 8,192 tokens: a million tokens too few for 1,024 replicas of 16 GPUs.
    counts = (8, 24, 72, 96, 512, 1000, 1536, 4096, 6144, 10008, 16384, 20000, 24576, 65536)
    for model, gpus in itertools.product(("8B", "llama-3.1-405b", "deepseek-v3"), counts):
        with subtests.test(model=model, gpus=gpus):
            for sequence, tokens in itertools.product(
                (2048, 4096, 8192, 32768, 131072), (1e9, 1e12)
            ):
                inputs = ParallelismPlanInputs(
                    model=model, gpus=gpus, sequence=sequence, tokens=tokens
                )
                shape, gpu = find_model(model), find_accelerator(inputs.gpu)
                job = parallelism_plan.build_requested_job(inputs, shape)
                assert any(
                    list_model_splits(shape, collectives.build_gpu_interconnect(gpu), job)
                ), job
                # Two thirds are left where it is rounded, as a short run has one for each GPU.
                assert (
                    job.global_batch
                    >= parallelism_plan.choose_default_batch_before_rounding(inputs) * 2 / 3
                )


def test_a_large_cluster_has_as_many_tokens_for_each_gpu_as_published_runs() -> None:
    run = {"model": "llama-3.1-405b", "tokens": "15.6T", "gpus": "16384"}
    for sequence, batch in (("4096", 4096), ("8192", 2048)):
        whole = registry.run_estimate("training-run", {**run, "sequence": sequence})
        plan = next(s.estimate for s in whole.sections if s.estimate_name == "parallelism-plan")
        assert plan["global_batch"].value == batch
        note = f"{batch:,} sequences with 16,777,216 tokens per step, by default: about 17,000,000"
        assert any(n.replace("\u00a0", " ").startswith(note) for n in plan.notes)
        assert any(n.replace("\u00a0", " ").startswith(note) for n in whole.notes)
        time = {**run, "sequence": sequence, "tensor_parallel": "8", "pipeline_parallel": "16"}
        typed = {**time, "global_batch": str(batch)}
        assert (
            registry.run_estimate("training-time", time)["step_time"]
            == registry.run_estimate("training-time", typed)["step_time"]
        )
        typed = {**run, "sequence": sequence, "global_batch": str(batch)}
        typed_run = registry.run_estimate("training-run", typed)
        assert typed_run["gpu_hours"].value == whole["gpu_hours"].value
        assert not any("by default" in note for note in typed_run.notes)
    # The card of Llama 3.1 says 30.84 million.
    hours = registry.run_estimate("training-run", run)["gpu_hours"]
    assert hours.low < 30.84e6 < hours.high


def test_a_faster_network_never_slows_a_plan() -> None:
    model, gpu = find_model("llama-3.1-70b"), find_accelerator("H100")
    job = TrainingJob(gpus=64, sequence=8192, global_batch=512)
    slow = collectives.build_gpu_interconnect(gpu, nic_rate=6e9)
    links = collectives.build_gpu_interconnect(gpu)
    fast = search_layouts(model, gpu, job, links).candidates_best_first[0]
    worse = search_layouts(model, gpu, job, slow).candidates_best_first[0]
    assert fast.tokens_per_second >= worse.tokens_per_second


def test_every_plan_of_a_ranking_fits_and_fills_the_cluster() -> None:
    model, gpu = find_model("deepseek-v3"), find_accelerator("H100")
    job = TrainingJob(gpus=2048, sequence=4096, global_batch=15360, number_format="fp8")
    links = collectives.build_gpu_interconnect(gpu)
    ranked = search_layouts(model, gpu, job, links, max_ranked=50).candidates_best_first
    assert ranked
    rates = [c.tokens_per_second for c in ranked]
    assert rates == sorted(rates, reverse=True)
    for candidate in ranked:
        assert candidate.plan.gpus == 2048
        assert candidate.plan.global_batch == 15360
        assert candidate.memory_per_gpu <= gpu.engine_visible_memory


@pytest.mark.parametrize("gpus", [64, 1024, 16384])
def test_a_larger_cluster_is_not_a_longer_search(gpus: int) -> None:
    model, gpu = find_model("llama-3.1-405b"), find_accelerator("H100")
    job = TrainingJob(gpus=gpus, sequence=8192, global_batch=2048)

    every = [
        family.build_plan(job, size)
        for split in list_model_splits(model, collectives.build_gpu_interconnect(gpu), job)
        for family in split.list_families()
        for size in family.micro_batches
    ]

    assert 1 <= len(every) <= 500


def test_impossible_combinations_say_what_is_impossible(
    subtests: pytest.Subtests,
) -> None:
    for name, setting, field in [
        ("training-time", {"tensor_parallel": 3}, "tensor_parallel"),
        ("training-time", {"gpus": 6, "pipeline_parallel": 4}, "gpus"),
        ("training-time", {"gpu": "A100", "number_format": "fp8"}, "number_format"),
        ("training-time", {"expert_parallel": 2}, "expert_parallel"),
        ("latency", {"gpu": "T4", "weights": "fp8"}, "weights"),
        ("latency", {"tensor_parallel": 3}, "tensor_parallel"),
        ("parallelism-plan", {"gpu": "A100", "number_format": "fp8"}, "number_format"),
    ]:
        with subtests.test(name=name, setting=setting, field=field):
            with pytest.raises(InvalidInputsError) as refused:
                registry.run_estimate(name, setting)
            assert [p.field for p in refused.value.problems] == [field]


def test_a_service_says_its_spare_where_it_says_its_replicas() -> None:
    found = registry.run_estimate("serving-capacity", {"weights": "fp8"})
    assert "2 replicas of 2 H100 SXM5 80GB and 1 spare, 6\u00a0GPUs in all" in (found.verdict.text)
    assert found["gpus"].value == 6
    alone = registry.run_estimate("serving-capacity", {"weights": "fp8", "spare": "0"})
    assert "2 replicas of 2 H100 SXM5 80GB. 95 of 100 requests" in alone.verdict.text
    assert alone["gpus"].value == 4


NVLINK = "Of the 450\u00a0GB/s of NVLink 4 with NVSwitch."


@pytest.mark.parametrize(
    ("setting", "link"),
    [
        ({"gpus": 1}, ""),
        (
            {"gpus": 64, "message": "16 GB"},
            "35.8\u00a0GB/s between nodes, of the network adapter's 50\u00a0GB/s.",
        ),
        (
            {"gpus": 8, "message": "16 GB"},
            f"{NVLINK} The switch adds up, so a GPU sends less than is counted.",
        ),
        ({"gpus": 8, "message": "16 GB", "operation": "all-gather"}, NVLINK),
    ],
)
def test_the_share_of_a_link_says_of_which(setting: dict[str, object], link: str) -> None:
    share = next(
        f for f in registry.run_estimate("collectives", setting).figures if f.name == "link_share"
    )
    assert share.note == link


def test_what_crosses_the_network_explains_a_bus_bandwidth_above_its_rate() -> None:
    crossing = " ".join(registry.run_estimate("collectives", {"gpus": 64}).notes)
    inside = " ".join(registry.run_estimate("collectives", {"gpus": 8}).notes)
    assert "cross the network" in crossing
    assert "cross the network" not in inside
    assert "Bus bandwidth, as NCCL's tests print it" in inside


def test_adapters_take_two_thirds_of_the_products_and_start_on_one_gpu() -> None:
    run = {"model": "llama-3.1-8b", "tokens": "100M", "gpu": "H100"}
    whole = registry.run_estimate("training-time", {**run, "gpus": 1})
    lora = registry.run_estimate("training-time", {**run, "method": "lora"})
    qlora = registry.run_estimate("training-time", {**run, "method": "qlora"})

    assert lora["fits"].value
    assert not whole["fits"].value
    assert 0.6 < lora["flops_per_token"].value / whole["flops_per_token"].value < 0.72
    assert lora["gpu_hours"].value == pytest.approx(lora["time"].value / 3600)
    assert 0.55 < lora["time"].value / whole["time"].value < 0.85
    assert qlora["time"].value > lora["time"].value
    assert qlora["memory"].value < lora["memory"].value


def test_memory_and_time_of_adapters_are_those_of_one_run() -> None:
    run = {"model": "llama-3.1-8b", "gpu": "H100", "method": "lora", "recompute": "none"}
    time, memory = (registry.run_estimate(n, run) for n in ("training-time", "training-memory"))

    assert time["memory"].value == memory["per_gpu"].value


def test_a_service_without_targets_is_answered() -> None:
    long = {"model": "llama-3.1-70b", "prompt_tokens": 30000}
    free = registry.run_estimate("serving-capacity", {**long, "ttft_target": "", "tpot_target": ""})

    assert free.verdict.lead == "Keeps up; no targets are set."
    assert free["replicas"].value


def test_the_plan_and_the_time_of_one_run_agree_to_the_digit() -> None:
    run = {"model": "8B", "gpu": "128x H100", "tokens": "2T"}
    plan = registry.run_estimate("parallelism-plan", run)
    layout = (
        *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel"),
        *("interleave", "micro_batch", "global_batch", "recompute", "zero"),
    )
    same = {name: plan[name].value for name in layout}
    time = registry.run_estimate("training-time", {**run, **same})

    for figure in ("gpu_hours", "time", "cost", "mfu", "step_time"):
        assert time[figure].value == plan[figure].value, figure


def test_ranking_planning_and_timing_a_run_rest_on_the_same_software_and_losses() -> None:
    run = {"model": "llama-3.1-8b", "tokens": "2T"}
    ranking = {**run, "job": "training", "only": "h100"}
    choice = registry.run_estimate("accelerator-choice", ranking)
    plan = registry.run_estimate("parallelism-plan", {**run, "gpu": "128x H100"})
    time = registry.run_estimate("training-time", {**run, "gpu": "128x H100"})

    # What is left is the number of GPUs, and the layout of training-time.
    hours = [float(e["gpu_hours"].value or 0) for e in (choice, plan, time)]
    assert max(hours) < 1.35 * min(hours)


@pytest.mark.parametrize(
    ("setup", "intensity"),
    # Two operations per weight that a token uses: a weight takes two bytes in BF16, one in FP8.
    [
        ({"model": "mixtral-8x7b", "gpu": "a100-sxm4-80", "tensor_parallel": 2}, 1.0),
        ({"model": "deepseek-v3", "gpu": "h200-sxm5-141", "tensor_parallel": 8}, 2.0),
    ],
)
def test_the_roofline_divides_by_the_experts_that_a_step_reads(setup, intensity):
    weights = {"weights": "bf16" if intensity == 1.0 else "published"}
    chart = registry.run_estimate("latency", setup | weights).pictures[0]
    marks = {line.label: line.points[0][0] for line in chart.lines if line.style == "mark"}
    assert marks["Answer"] == pytest.approx(intensity, rel=0.2)
    assert marks["Prompt"] > 50 * marks["Answer"]


def test_the_time_for_weights_is_said_to_be_what_computing_does_not_hide():
    setup = {"model": "mixtral-8x7b", "gpu": "a100-sxm4-80", "tensor_parallel": 2}
    result = registry.run_estimate("latency", setup)
    line = next(step for step in result.steps if step.output_name == "memory_time")
    assert line.label == "Waiting for weights and cache"
    assert "without what is hidden behind computing" in line.formula
    sentence = "Their bytes divided by this time are not a bandwidth."
    assert any(sentence in note for note in result.notes)


def test_the_target_per_token_is_said_to_hold_for_the_mean_of_an_answer():
    for name in ("serving-capacity", "deployment"):
        field = input_specs(registry.require_estimate(name).inputs_type)["tpot_target"]
        assert "averaged over an answer" in field.help


@pytest.mark.parametrize("name", ["training-time", "parallelism-plan", "training-run"])
def test_ranges_are_wider_on_cards_without_measured_training(name):
    measured, unmeasured = (
        registry.run_estimate(name, {"model": "llama-3.1-8b", "gpu": gpu, "gpus": 64})
        for gpu in ("h100", "mi300x")
    )
    for figure in ("time", "gpu_hours", "mfu"):
        known, unknown = measured[figure], unmeasured[figure]
        assert unknown.low / unknown.value < known.low / known.value
        assert unknown.high / unknown.value > known.high / known.value
    # What fails besides makes a run less certain than its steps.
    time = registry.run_estimate("training-time", {"gpu": "mi300x", "gpus": 64})
    step, run = time["step_time"], time["time"]
    assert run.low / run.value < step.low / step.value
    assert run.high / run.value > step.high / step.value
    notes = {n for e in (unmeasured, *(s.estimate for s in unmeasured.sections)) for n in e.notes}
    assert any("No measurements of training on the Instinct MI300X" in note for note in notes)


def test_no_training_is_said_to_be_faster_than_the_peak(subtests: pytest.Subtests) -> None:
    run = {"model": "llama-3.2-1b", "gpu": "rtx-4090", "tokens": "100M", "gpus": 1}
    adapters = run | {"model": "llama-3.1-8b", "method": "qlora"}
    peak = 165.2e12  # NVIDIA, Ada architecture: dense BF16 with FP32 accumulation.
    for typed in (run, adapters, run | {"usd_per_gpu_hour": 0.4}):
        with subtests.test(typed=typed):
            time = registry.run_estimate("training-time", typed)
            hfu = time["hfu"]
            assert hfu.high == pytest.approx(1.0)
            assert time["mfu"].high == pytest.approx(time["mfu"].value / hfu.value)
            least = time["total_flops"].value / peak / time["goodput"].value
            assert time["time"].low >= least
            for name in ("step_time", "time", "gpu_hours", "energy", "cost"):
                if time[name].value is not None:
                    assert time[name].low == pytest.approx(time[name].value * hfu.value)
            for name in ("tokens_per_second", "tokens_per_second_per_gpu"):
                assert time[name].high == pytest.approx(time[name].value / hfu.value)
            whole = registry.run_estimate("training-run", typed)
            for name in ("time", "gpu_hours", "mfu"):
                assert (whole[name].low, whole[name].high) == (time[name].low, time[name].high)
    # Measured GPUs are far from their peak, so that their ranges are those of the measurements.
    measured = registry.run_estimate("training-time", {"model": "llama-3.1-8b", "gpus": 64})
    assert measured["hfu"].high == pytest.approx(measured["hfu"].value / 0.84)
    job = {"model": "llama-3.2-1b", "tokens": "10B"}
    choice = registry.run_estimate(
        "accelerator-choice", job | {"job": "training", "only": "rtx-4090"}
    )
    gpus = choice["gpus"].value
    plan = registry.run_estimate("parallelism-plan", job | {"gpu": "rtx-4090", "gpus": gpus})
    assert choice["gpu_hours"].low == pytest.approx(plan["gpu_hours"].low)
    assert plan["gpu_hours"].low > 0.6 * plan["gpu_hours"].value  # Not 0.52, as it is unmeasured.


def test_every_second_matrix_product_is_recomputed_in_pytorch_alone():
    tight = {"model": "llama-3.1-70b", "gpus": 512}
    for software, recompute in (
        ("compiled", "every second matrix product"),
        ("eager", "every second matrix product"),
        ("tuned", "full"),
    ):
        time = registry.run_estimate("training-time", tight | {"software": software, "zero": "3"})
        assert f"Recomputation: {recompute}," in time.notes[0]
    small = {"model": "llama-3.1-8b", "gpus": 16, "gpu": "a100-sxm4-40", "sequence": 8192}
    offered = registry.run_estimate("parallelism-plan", small | {"software": "eager"})
    assert "every second" in offered.verdict.text + str(offered.tables)
    offered = registry.run_estimate("parallelism-plan", small | {"software": "tuned"})
    assert "every second" not in offered.verdict.text + str(offered.tables)
    too_large = {"model": "llama-3.1-70b", "gpus": 8, "recompute": "none", "zero": "3"}
    for framework in ("transformers", "megatron"):
        answer = registry.run_estimate("training-memory", too_large | {"framework": framework})
        assert "Every second matrix product" not in {change.new_value for change in answer.changes}


def test_a_value_is_written_alike_in_the_sentence_the_figures_and_the_working():
    plan = registry.run_estimate("parallelism-plan", {"model": "llama-3.1-8b", "gpus": 64})
    assert plan["tokens_per_second_per_gpu"].formatted_value in plan.verdict.text
    time = registry.run_estimate("training-time", {"gpus": 64})
    mtbf = next(step for step in time.steps if "MTBF" in step.label)
    assert mtbf.formula.startswith("hours ")
    assert mtbf.substituted == "30,000 h ÷ 64"


def test_no_range_begins_below_what_the_hardware_takes(subtests: pytest.Subtests) -> None:
    mixtral = {"model": "mixtral-8x7b", "weights": "bf16", "gpu": "a100-sxm4-80"}
    slow = registry.run_estimate(
        "latency", mixtral | {"tensor_parallel": 2, "prompt": 7936, "batch": 16}
    )
    # 93.4 GB of weights and 16 sequences of 8,064 tokens, 131 kB each, over two A100s; a few of
    # the experts are not chosen.
    cache = 16 * (7936 + 128) * 32 * 2 * 8 * 128 * 2
    reading = (93.4e9 + cache) / 2 / 2.039e12
    assert 0.9 * reading < slow["tpot"].low < reading
    assert slow["decode_time"].low == slow["tpot"].low
    assert slow["tokens_per_second"].high == pytest.approx(1 / slow["tpot"].low)
    assert slow["throughput"].high == pytest.approx(16 / slow["tpot"].low)
    # The 8.03 billion weights of a dense model without its input table, all of which are read.
    dense = {"model": "llama-3.1-8b", "weights": "bf16", "gpu": "l40s", "tensor_parallel": 1}
    one = registry.run_estimate("latency", dense | {"engine": "compiled", "prompt": 1, "answer": 2})
    assert one["tpot"].low == pytest.approx(2 * (8.03e9 - 0.525e9) / 864e9, rel=0.001)
    # With drafts a step gives up to four tokens, so a token may take less than a step.
    drafted = registry.run_estimate(
        "latency", mixtral | {"tensor_parallel": 2, "prompt": 7936, "draft_tokens": 3}
    )
    assert drafted["tpot"].low < drafted["decode_time"].low
    prompt = {"model": "llama-3.1-8b", "weights": "bf16", "prompt": 8192}
    for gpu, peak in (("h100", 989e12), ("l40s", 362e12)):
        with subtests.test(gpu=gpu):
            first = registry.run_estimate("latency", prompt | {"gpu": gpu, "tensor_parallel": 1})
            assert first["prefill_time"].low >= 2 * 6.97e9 * 8192 / peak
    llama_cpp = registry.run_estimate("latency", prompt | {"engine": "llama.cpp", "gpu": "l40s"})
    assert llama_cpp["prefill_time"].low == pytest.approx(0.5 * llama_cpp["prefill_time"].value)


def test_a_link_is_used_for_no_more_than_its_rate_unless_its_switch_adds_up(
    subtests: pytest.Subtests,
) -> None:
    adds = "The switch adds up, so a GPU sends less than is counted."
    crossing = {"message": "16 GB", "gpus": 512}
    for setting, sends_less in (
        (crossing | {"in_network": True}, True),
        ({"message": "16 GB", "gpus": 8}, True),
        (crossing, False),
        (crossing | {"operation": "alltoall"}, False),
        ({"message": "16 GB", "gpus": 8, "gpu": "a100-sxm4-80"}, False),
        ({"message": "16 GB", "gpus": 8, "operation": "all-gather"}, False),
    ):
        with subtests.test(setting=setting):
            share = registry.run_estimate("collectives", setting)["link_share"]
            assert (share.high > 1) is sends_less
            assert (adds in share.note) is sends_less
