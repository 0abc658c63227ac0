"""How far searches and simulations go: a count of work ends them, never a clock."""

import dataclasses
import sys
from collections.abc import Callable

import pytest

from app.estimator import registry
from app.estimator.estimates import layout_search as search
from app.estimator.estimates.layout_search import (
    MAX_WORK,
    LayoutCostCache,
    LayoutMemoryChecker,
    TrainingJob,
    list_model_splits,
    search_layouts,
)
from app.estimator.estimates.parallelism_plan import ParallelismPlanInputs
from app.estimator.hardware.catalog import find_accelerator
from app.estimator.hardware.collectives import build_gpu_interconnect
from app.estimator.models.lookup import find_model
from app.estimator.training.step_time import optimizer_step_time
from app.estimator.training.training_plan import fullest_stage_memory
from tests.amounts import each_of_sample

# Counts with many divisors, long sequences and many experts: all that makes layouts.
AWKWARD = [
    {"model": "deepseek-v2", "gpus": 92160, "sequence": 131072, "domain": 72},
    {"model": "mimo-v2-flash", "gpus": 46080, "sequence": 131072, "domain": 72},
    {"model": "qwen3-next-80b-a3b", "gpus": 983040, "sequence": 10_000_000},
    {"model": "405B", "gpus": 983040, "sequence": 10_000_000, "objective": "cost"},
    {"model": "gpt-oss-120b", "gpus": 720720, "sequence": 131072, "objective": "cost"},
]


@each_of_sample("typed", AWKWARD, 1)
def test_no_inputs_make_a_search_go_beyond_its_steps(typed: dict[str, object]) -> None:
    asked = dataclasses.replace(
        ParallelismPlanInputs(global_batch=4 * int(str(typed["gpus"]))), **typed
    )
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    links = build_gpu_interconnect(gpu, gpus_per_domain=asked.domain or 0)
    job = TrainingJob(asked.gpus, asked.sequence, asked.global_batch or 1)

    steps = search_layouts(model, gpu, job, links).work_units_done

    # The family that was begun is finished: a handful of layouts.
    assert steps <= MAX_WORK * 1.05


def test_a_search_that_ended_early_says_how_far_it_came() -> None:
    typed = {**AWKWARD[0], "global_batch": 368640, "usable_memory": 0.9}

    answer = registry.run_estimate("parallelism-plan", typed)

    assert "The search looked at" in answer.verdict.text
    assert "layouts; a better one may exist." in answer.verdict.text
    assert answer == registry.run_estimate("parallelism-plan", typed)


def test_a_search_that_saw_everything_says_nothing_of_it() -> None:
    for typed in (
        {},
        {"model": "llama-3.1-405b", "gpus": 16384, "global_batch": 2048},
        {"model": "deepseek-v3", "gpu": "h800-sxm-80", "gpus": 2048},
        {"model": "kimi-k2", "gpus": 1024, "objective": "cost", "sequence": 4096},
    ):
        answer = registry.run_estimate("parallelism-plan", typed)
        assert "looked at" not in answer.verdict.text


def test_nothing_found_early_is_not_called_impossible() -> None:
    model, gpu = find_model("deepseek-v2"), find_accelerator("H100")
    job = TrainingJob(gpus=10080, sequence=131072, global_batch=40320)

    early = search_layouts(model, gpu, job, build_gpu_interconnect(gpu), max_work_units=1)

    assert early.tried_count < early.legal_count


def test_the_best_layouts_are_those_of_trying_each_alone() -> None:
    model, gpu = find_model("mixtral-8x7b"), find_accelerator("H100")
    job = TrainingJob(gpus=48, sequence=16384, global_batch=96)
    links = build_gpu_interconnect(gpu)
    slow = []
    every = [
        family.build_plan(job, size)
        for split in list_model_splits(model, links, job)
        for family in split.list_families()
        for size in family.micro_batches
    ]
    for plan in every:
        for recompute in ("none", "selective", "full"):
            tried = dataclasses.replace(plan, recompute=recompute)
            load = fullest_stage_memory(model, tried)
            if load.total <= gpu.engine_visible_memory * job.usable_memory_share:
                slow.append((optimizer_step_time(model, gpu, links, tried).total, load.total))
                break

    found = search_layouts(model, gpu, job, links)

    assert found.tried_count == found.legal_count == len(every)
    assert found.fitting_count == len(slow)
    assert [(c.step_time.total, c.memory_per_gpu) for c in found.candidates_best_first] == sorted(
        slow
    )[:10]


def test_the_best_layout_alone_is_the_first_of_all(subtests: pytest.Subtests) -> None:
    for name, gpu_id, gpus, batch in (
        ("llama-3.1-8b", "h100-sxm5-80", 96, 1920),
        ("llama-3.1-70b", "l40s", 2048, 2048),
        ("llama-3.1-405b", "h100-sxm5-80", 512, 1024),
        ("mixtral-8x7b", "mi300x", 288, 2016),
        ("deepseek-v3", "b200-sxm", 512, 2048),
    ):
        with subtests.test(model=name, gpu=gpu_id):
            model, gpu = find_model(name), find_accelerator(gpu_id)
            for software in ("tuned", "compiled", "eager"):
                job = TrainingJob(gpus, 4096, batch, software=software)
                links = build_gpu_interconnect(gpu)
                every = search_layouts(model, gpu, job, links).candidates_best_first
                assert every
                # What is known from another number of GPUs changes nothing, not even the work.
                costs, alone = LayoutCostCache(), search_layouts(model, gpu, job, links, 1)
                twice = dataclasses.replace(job, gpus=2 * gpus, global_batch=2 * batch)
                search_layouts(model, gpu, twice, links, 1, cost_cache=costs)
                assert alone.candidates_best_first == every[:1]
                assert search_layouts(model, gpu, job, links, 1, cost_cache=costs) == alone


def test_the_fewest_gpus_are_those_of_the_smallest_cluster_with_a_layout() -> None:
    model, gpu = find_model("llama-3.1-70b"), find_accelerator("H100")
    job = TrainingJob(gpus=256, sequence=8192, global_batch=1024)

    fewest = search.find_fewest_power_of_two_gpus(
        model, gpu, job, build_gpu_interconnect(gpu), MAX_WORK
    )

    assert fewest.gpus is not None
    by_trying = next(
        n
        for n in (2**k for k in range(9))
        if search.search_layouts(
            model, gpu, dataclasses.replace(job, gpus=n), build_gpu_interconnect(gpu)
        ).candidates_best_first
    )
    assert fewest.gpus == by_trying


def test_a_count_of_gpus_that_was_not_found_in_time_is_left_open() -> None:
    model, gpu = find_model("deepseek-v3"), find_accelerator("H100")
    job = TrainingJob(gpus=4096, sequence=131072, global_batch=4096, usable_memory_share=0.3)

    fewest = search.find_fewest_power_of_two_gpus(
        model, gpu, job, build_gpu_interconnect(gpu), max_work_units=1
    )

    assert fewest.gpus is None
    assert not fewest.is_exact


def test_states_are_worked_out_once_for_all_ways_to_divide_sequences() -> None:
    model, gpu = find_model("deepseek-v2"), find_accelerator("H100")
    fits = LayoutMemoryChecker(
        model, job := TrainingJob(1024, 131072, 4096), gpu.engine_visible_memory * 0.95
    )
    layouts = 0
    for split in list_model_splits(model, build_gpu_interconnect(gpu), job):
        for family in split.list_families():
            list(fits.find_fitting_micro_batches(family, lambda *_: False))
            layouts += len(family.micro_batches)

    assert fits.work_done < 3 * layouts


def test_a_simulation_is_as_much_work_for_long_answers_as_for_short_ones() -> None:
    asked = {"simulate": True, "ttft_target": "", "tpot_target": "", "concurrent": 50}

    short = calls_of(lambda: simulated({**asked, "output_tokens": 100}))
    long = calls_of(lambda: simulated({**asked, "output_tokens": 20_000}))

    assert long < 2 * short


def simulated(typed: dict[str, object]) -> None:
    answer = registry.run_estimate("serving-capacity", typed)
    assert any("simulated replica served" in note for note in answer.notes)


def calls_of(work: Callable[[], None]) -> int:
    """How many functions are called, which no other program on the machine changes."""
    calls = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
