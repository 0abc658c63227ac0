"""`parallelism-plan`: inputs, result, and the input values where the verdict changes."""

import bisect
import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import BATCH, HARDWARE, RECIPE
from app.estimator.estimates.layout_search import (
    MAX_WORK,
    FewestGpus,
    LayoutCandidate,
    LayoutCostCache,
    LayoutSearchResult,
    TrainingJob,
    find_fewest_gpus_with_layout,
    list_gpu_counts_that_divide_batch,
    list_model_splits,
    search_layouts,
)
from app.estimator.estimates.training_time import (
    MAX_GPUS,
    TrainingTimeInputs,
    TrainingTimeResult,
    compute_run,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import Interconnect, build_gpu_interconnect
from app.estimator.inputs import input_specs
from app.estimator.memory.parallel_layout import default_batch_tokens
from app.estimator.memory.training_memory import plausible_bytes_range
from app.estimator.memory_verdict import UNSURE_LEAD, MemoryLimit, build_memory_verdict
from app.estimator.models.architecture import Architecture
from app.estimator.result import Verdict, VerdictFlip
from app.estimator.training.training_plan import (
    TrainingPlan,
    find_training_software,
    training_step_of_plan,
)
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class ParallelismPlanInputs:
    model: str = common_inputs.model_input(default="llama-3.1-70b")
    gpu: str = common_inputs.counted_gpu_input(count_field="gpus")
    gpus: int = common_inputs.gpus_input(default=256)
    sequence: int = common_inputs.sequence_input(limits=(16, 10_000_000))
    global_batch: int | None = BATCH.add_input(
        None,
        "Global batch",
        kind="count",
        unit="sequence",
        limits=(1, 10**7),
        help="Sequences per optimizer step; left empty: about eight million tokens, or 1,024 for "
        "each GPU if that is more, less in a run shorter than a thousand such steps, in as many "
        "sequences as the GPUs can share.",
        term="batch-size",
        topic="parallelism",
    )
    tokens: float = common_inputs.training_tokens_input(
        help="Tokens of the whole run, for time and cost."
    )
    number_format: str = common_inputs.number_format_input()
    objective: str = RECIPE.add_input(
        "time",
        "Rank by",
        choices=(("time", "time of the run"), ("cost", "cost of the run")),
        help="By cost, half, a quarter and fewer of the GPUs are tried as well.",
        topic="parallelism",
    )
    usable_memory: float = HARDWARE.add_folded_input(
        common_inputs.FILLED_SHARE,
        "Usable share of memory",
        unit="%",
        limits=(0.1, 1.0),
        help="A plan may fill this share of each GPU.",
        topic="training-memory",
    )
    software: str = common_inputs.training_software_input()
    network_rate: float = common_inputs.network_rate_input()
    network: str = common_inputs.network_input()
    domain: int | None = common_inputs.domain_input()
    usd_per_gpu_hour: float | None = common_inputs.price_input()


@dataclasses.dataclass(frozen=True)
class ParallelismPlanResult:
    """The layouts that were found, best first, and the smallest cluster.

    Fewer than the legal layouts were tried if the search reached its work limit.
    """

    inputs: ParallelismPlanInputs
    model: Architecture
    gpu: Accelerator
    job: TrainingJob
    fabric: Interconnect
    candidates_best_first: tuple[LayoutCandidate, ...]
    fewest_gpus: FewestGpus
    fitting_count: int
    tried_count: int
    legal_count: int

    @functools.cached_property
    def nearest_gpu_counts_that_divide_batch(self) -> tuple[int, ...]:
        """Return the next fewer and the next more GPUs that divide the batch, where there are."""
        counts = list_gpu_counts_that_divide_batch(self.model, self.fabric, self.job, MAX_GPUS)
        index = bisect.bisect_left(counts, self.job.gpus)
        return (*counts[max(0, index - 1) : index], *counts[index : index + 1])

    @property
    def best_layout(self) -> LayoutCandidate | None:
        return self.candidates_best_first[0] if self.candidates_best_first else None

    @functools.cached_property
    def run_in_best_layout(self) -> TrainingTimeResult | None:
        """Return the whole run in the best layout, as `training-time` computes it."""
        if self.best_layout is None:
            return None
        inputs = training_time_inputs(self.inputs, self.best_layout.plan)
        return compute_run(
            self.model, self.gpu, inputs, self.best_layout.plan, self.best_layout.step
        )


def list_gpu_counts_for_typed_batch(
    inputs: ParallelismPlanInputs, model: Architecture
) -> tuple[int, ...]:
    """Return the numbers of GPUs that divide the batch that was typed; none if it was left empty.

    The batch of an empty field is rounded for any number of GPUs.
    """
    if inputs.global_batch is None:
        return ()
    fabric = _plan_fabric(inputs, find_accelerator(inputs.gpu))
    return list_gpu_counts_that_divide_batch(
        model, fabric, build_requested_job(inputs, model), MAX_GPUS
    )


def _plan_fabric(inputs: ParallelismPlanInputs, gpu: Accelerator) -> Interconnect:
    return build_gpu_interconnect(gpu, inputs.network_rate, inputs.network, inputs.domain or 0)


def training_time_inputs(inputs: ParallelismPlanInputs, plan: TrainingPlan) -> TrainingTimeInputs:
    names = {field.name for field in dataclasses.fields(TrainingTimeInputs)}
    shared = {name: value for name, value in dataclasses.asdict(inputs).items() if name in names}
    of_plan = dict[str, Any](
        gpus=plan.gpus,
        tensor_parallel=plan.tensor,
        pipeline_parallel=plan.pipeline,
        context_parallel=plan.context,
        expert_parallel=plan.expert,
        interleave=plan.chunks_per_stage,
        micro_batch=plan.micro_batch,
        global_batch=plan.global_batch,
        recompute=plan.recompute,
        zero=str(plan.zero),
    )
    return TrainingTimeInputs(**shared | of_plan)


# Smaller clusters that are tried as well if cost decides: half, a quarter.
_HALVINGS = 4

_MAX_RANKED, _MAX_RANKED_OF_HALVED = 10, 3

_MAX_WORK_OF_FEWEST_GPUS = 10_000  # See `MAX_WORK`.


def build_requested_job(inputs: ParallelismPlanInputs, model: Architecture) -> TrainingJob:
    job = TrainingJob(
        gpus=inputs.gpus,
        sequence=inputs.sequence,
        global_batch=inputs.global_batch or _round_batch(choose_default_batch(inputs), inputs.gpus),
        number_format=inputs.number_format,
        software=find_training_software(inputs.software, model).id,
        usable_memory_share=inputs.usable_memory,
    )
    if inputs.global_batch:
        return job
    fabric = _plan_fabric(inputs, find_accelerator(inputs.gpu))
    return dataclasses.replace(
        job, global_batch=_find_batch_that_gpus_can_share(model, fabric, job)
    )


def choose_default_batch(inputs: ParallelismPlanInputs) -> int:
    """Return the default sequences of a step, before they are rounded for the GPUs."""
    gpus = inputs.gpus
    longest, own = default_batch_tokens(gpus), default_batch_tokens(gpus, inputs.tokens)
    return max(1, min(round(longest / inputs.sequence), gpus), round(own / inputs.sequence))


def _find_batch_that_gpus_can_share(
    model: Architecture, fabric: Interconnect, job: TrainingJob
) -> int:
    """Return a job's batch, or a larger one that its GPUs can share in some layout."""

    def can_be_shared(batch: int) -> bool:
        splits = list_model_splits(model, fabric, dataclasses.replace(job, global_batch=batch))
        return next(splits, None) is not None

    rounded, odd_factor = job.global_batch, _odd_factor(job.gpus)
    doubled = (odd_factor << exponent for exponent in itertools.count())
    larger = (batch for batch in doubled if 2 * batch > rounded)
    return next(filter(can_be_shared, itertools.chain((rounded,), larger)))


def _odd_factor(number: int) -> int:
    """Return what is left of a number without its factors of two."""
    return number // (number & -number)


def _round_batch(batch: int, gpus: int) -> int:
    """Round a batch to a multiple of the GPUs, or a smaller one to many common divisors.

    That is a power of two times the odd part of the GPUs, so that replicas can divide both.

    >>> _round_batch(1953, 4096), _round_batch(1953, 4608), _round_batch(1300, 4096)
    (2048, 2304, 1024)
    """
    if batch >= gpus:
        return round(batch / gpus) * gpus
    odd_factor = _odd_factor(gpus)
    rounded = odd_factor if odd_factor <= batch else 1
    while 2 * rounded - batch < batch - rounded:
        rounded *= 2
    return rounded


def compute_parallelism_plan(
    inputs: ParallelismPlanInputs, model: Architecture, gpu: Accelerator
) -> ParallelismPlanResult:
    fabric = _plan_fabric(inputs, gpu)
    job = build_requested_job(inputs, model)
    searches = _search_full_and_halved_clusters(inputs, model, gpu, job, fabric)
    ranked = [c for search in searches for c in search.candidates_best_first]
    if inputs.objective == "cost":
        ranked.sort(key=lambda c: c.plan.gpus / c.tokens_per_second)
    return ParallelismPlanResult(
        inputs=inputs,
        model=model,
        gpu=gpu,
        job=job,
        fabric=fabric,
        candidates_best_first=tuple(ranked[:_MAX_RANKED]),
        fewest_gpus=find_fewest_gpus_with_layout(model, gpu, job, fabric, _MAX_WORK_OF_FEWEST_GPUS),
        fitting_count=searches[0].fitting_count,
        tried_count=sum(search.tried_count for search in searches),
        legal_count=sum(search.legal_count for search in searches),
    )


def _search_full_and_halved_clusters(
    inputs: ParallelismPlanInputs,
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
) -> list[LayoutSearchResult]:
    """Search the whole cluster, then smaller ones.

    The smallest is searched first; its unused work is available to the others.
    """
    halvings = _HALVINGS if inputs.objective == "cost" else 0
    remaining_halvings = [n for n in range(halvings + 1) if job.gpus >> n]
    searches: list[LayoutSearchResult] = []
    remaining_work = MAX_WORK
    while remaining_halvings:
        max_work = remaining_work // len(remaining_halvings)
        halving = remaining_halvings.pop()
        smaller_job = dataclasses.replace(job, gpus=job.gpus >> halving)
        max_ranked = _MAX_RANKED_OF_HALVED if halving else _MAX_RANKED
        searches.insert(0, search_layouts(model, gpu, smaller_job, fabric, max_ranked, max_work))
        remaining_work -= searches[0].work_units_done
    return searches


def compute_run_in_sure_layout(
    inputs: ParallelismPlanInputs,
    model: Architecture,
    gpu: Accelerator,
    cost_cache: LayoutCostCache,
) -> TrainingTimeResult | None:
    """Return the whole run in the best layout that surely fits, as training-run plans it.

    None if no layout fits; if none surely fits, the best stays. For `cost_cache` see `search_layouts`.
    """
    fabric, job = _plan_fabric(inputs, gpu), build_requested_job(inputs, model)
    ranked = search_layouts(
        model, gpu, job, fabric, max_ranked=1, cost_cache=cost_cache
    ).candidates_best_first
    while ranked and judge_layout_memory(ranked[0], gpu).lead == UNSURE_LEAD:
        ranked = search_layouts(
            model, gpu, job, fabric, _MAX_RANKED, cost_cache=cost_cache
        ).candidates_best_first
        sure = find_best_sure_layout(ranked, gpu, job.usable_memory_share)
        if sure is None:
            break
        job = dataclasses.replace(job, usable_memory_share=sure.usable_memory_percent / 100)
        ranked = search_layouts(
            model, gpu, job, fabric, max_ranked=1, cost_cache=cost_cache
        ).candidates_best_first
    if not ranked:
        return None
    plan, step = ranked[0].plan, ranked[0].step
    return compute_run(model, gpu, training_time_inputs(inputs, plan), plan, step)


def judge_layout_memory(candidate: LayoutCandidate, gpu: Accelerator) -> Verdict:
    """Return the verdict on the memory of a layout, as `training-memory` gives it."""
    limit, plan = gpu.engine_visible_memory, candidate.plan
    framework = training_step_of_plan(plan).framework.id
    bounds = plausible_bytes_range(candidate.stage_memory, framework)
    memory = MemoryLimit(limit, limit, gpu.memory)
    return build_memory_verdict(candidate.memory, memory, plan.gpus, *bounds)


def find_flips(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    return (*_usable_memory_flips(result), *_too_few_gpus_flips(result))


class SureLayout(NamedTuple):
    """A layout that surely fits, and the usable percentage of memory that leaves it the best."""

    candidate: LayoutCandidate
    usable_memory_percent: int


def find_best_sure_layout(
    candidates_best_first: tuple[LayoutCandidate, ...], gpu: Accelerator, usable_memory_share: float
) -> SureLayout | None:
    """Return the best of the layouts that surely fit; None if the first does, or none."""
    if (
        not candidates_best_first
        or judge_layout_memory(candidates_best_first[0], gpu).lead != UNSURE_LEAD
    ):
        return None
    for candidate in candidates_best_first[1:]:
        percent = math.ceil(100 * candidate.memory / gpu.engine_visible_memory)
        if (
            candidate.plan.gpus == candidates_best_first[0].plan.gpus
            and percent < 100 * usable_memory_share
            and judge_layout_memory(candidate, gpu).lead != UNSURE_LEAD
        ):
            return SureLayout(candidate, percent)
    return None


def _usable_memory_flips(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    """Return the usable share of memory that leaves the best of the layouts that surely fit."""
    usable_memory = result.inputs.usable_memory
    sure = find_best_sure_layout(result.candidates_best_first, result.gpu, usable_memory)
    if sure is None:
        return ()
    slower = sure.candidate.step.total / result.candidates_best_first[0].step.total - 1
    becomes = (
        f"A layout with micro-batch {sure.candidate.plan.micro_batch} fits for sure: "
        f"{format_value(sure.candidate.memory, 'B')}, and each step takes "
        f"{format_value(slower, '%')} longer."
    )
    label = input_specs(ParallelismPlanInputs)["usable_memory"].label
    now, then = (f"{percent:g}%" for percent in (100 * usable_memory, sure.usable_memory_percent))
    return (VerdictFlip("usable_memory", label, now, then, becomes),)


def _too_few_gpus_flips(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    fewest = result.fewest_gpus.gpus
    if result.best_layout is None or fewest is None or not 2 <= fewest < result.inputs.gpus:
        return ()
    now, then = format_number(result.inputs.gpus), format_number(fewest // 2)
    return (VerdictFlip("gpus", "GPUs", now, then, "No layout fits any more."),)
