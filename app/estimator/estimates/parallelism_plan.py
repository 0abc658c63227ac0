"""`parallelism-plan`: inputs, result, and the input values where the verdict changes."""

import bisect
import dataclasses
import functools
import itertools
import math
from typing import Any

from app.estimator import common_inputs
from app.estimator.common_inputs import BATCH, HARDWARE, RECIPE
from app.estimator.estimates.layout_search import (
    FILLED_SHARE,
    MAX_WORK,
    FewestGpusSearchResult,
    LayoutCandidate,
    LayoutCostCache,
    LayoutSearchResult,
    TrainingJob,
    find_fewest_power_of_two_gpus,
    list_gpu_counts_that_divide_batch,
    list_model_splits,
    search_layouts,
)
from app.estimator.estimates.training_time import (
    MAX_GPUS,
    TrainingTimeInputs,
    TrainingTimeResult,
    compute_training_time_result,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import Interconnect, build_gpu_interconnect
from app.estimator.inputs import input_specs
from app.estimator.memory.parallel_layout import default_batch_tokens
from app.estimator.memory.training_memory import plausible_bytes_range
from app.estimator.memory_verdict import UNSURE_LEAD, MemoryLimit, build_memory_verdict
from app.estimator.models.architecture import Architecture
from app.estimator.result import Verdict, VerdictChange
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
    global_batch: int | None = BATCH.declare_input_field(
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
    objective: str = RECIPE.declare_input_field(
        "time",
        "Rank by",
        choices=(("time", "time of the run"), ("cost", "cost of the run")),
        help="By cost, half, a quarter and fewer of the GPUs are tried as well.",
        topic="parallelism",
    )
    usable_memory: float | None = HARDWARE.declare_advanced_input_field(
        None,
        "Usable share of memory",
        unit="%",
        limits=(0.1, 1.0),
        help="A plan may fill this share of each GPU; left empty: as much as surely fits by the "
        "upper end of the estimate, or 95% if nothing surely fits.",
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

    Fewer than the legal layouts were tried if the search reached its work limit. The share of
    memory in `job` is None if all of the layouts surely fit because no share was typed.
    """

    inputs: ParallelismPlanInputs
    model: Architecture
    gpu: Accelerator
    job: TrainingJob
    fabric: Interconnect
    candidates_best_first: tuple[LayoutCandidate, ...]
    fewest_gpus: FewestGpusSearchResult
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
    def faster_unsure_layout(self) -> LayoutCandidate | None:
        """Return the fastest layout that may not fit, if it is faster than the best that does."""
        if self.best_layout is None or self.job.usable_memory_share is not None:
            return None
        job = dataclasses.replace(
            self.job, gpus=self.best_layout.plan.gpus, usable_memory_share=FILLED_SHARE
        )
        fastest = _find_best_layout(self.model, self.gpu, job, self.fabric)
        is_faster = fastest and fastest.step_time.total < self.best_layout.step_time.total
        return fastest if is_faster else None

    @functools.cached_property
    def run_in_best_layout(self) -> TrainingTimeResult | None:
        if self.best_layout is None:
            return None
        inputs = training_time_inputs(self.inputs, self.best_layout.plan)
        return compute_training_time_result(
            self.model, self.gpu, inputs, self.best_layout.plan, self.best_layout.step_time
        )


def list_gpu_counts_for_typed_batch(
    inputs: ParallelismPlanInputs, model: Architecture
) -> tuple[int, ...]:
    """Return the numbers of GPUs that divide the batch that was typed; none if it was left empty.

    The batch of an empty field is rounded for any number of GPUs.
    """
    if inputs.global_batch is None:
        return ()
    fabric = _build_requested_interconnect(inputs, find_accelerator(inputs.gpu))
    return list_gpu_counts_that_divide_batch(
        model, fabric, build_requested_job(inputs, model), MAX_GPUS
    )


def _build_requested_interconnect(inputs: ParallelismPlanInputs, gpu: Accelerator) -> Interconnect:
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
_TRIED_CLUSTER_HALVINGS = 4

_MAX_RANKED, _MAX_RANKED_OF_HALVED = 10, 3

_MAX_WORK_OF_FEWEST_GPUS = 10_000  # See `MAX_WORK`.


def build_requested_job(inputs: ParallelismPlanInputs, model: Architecture) -> TrainingJob:
    job = TrainingJob(
        gpus=inputs.gpus,
        sequence=inputs.sequence,
        global_batch=inputs.global_batch
        or _round_batch(choose_default_batch_before_rounding(inputs), inputs.gpus),
        number_format=inputs.number_format,
        software=find_training_software(inputs.software, model).id,
        usable_memory_share=inputs.usable_memory,
    )
    if inputs.global_batch:
        return job
    fabric = _build_requested_interconnect(inputs, find_accelerator(inputs.gpu))
    return dataclasses.replace(
        job, global_batch=_find_batch_that_gpus_can_share(model, fabric, job)
    )


def choose_default_batch_before_rounding(inputs: ParallelismPlanInputs) -> int:
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
    fabric = _build_requested_interconnect(inputs, gpu)
    job = build_requested_job(inputs, model)
    searches = _search_full_and_halved_clusters(inputs, model, gpu, job, fabric)
    if job.usable_memory_share is None and not any(s.candidates_best_first for s in searches):
        job = dataclasses.replace(job, usable_memory_share=FILLED_SHARE)
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
        fewest_gpus=find_fewest_power_of_two_gpus(
            model, gpu, job, fabric, _MAX_WORK_OF_FEWEST_GPUS
        ),
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
    halvings = _TRIED_CLUSTER_HALVINGS if inputs.objective == "cost" else 0
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


def compute_run_in_planned_layout(
    inputs: ParallelismPlanInputs,
    model: Architecture,
    gpu: Accelerator,
    cost_cache: LayoutCostCache,
) -> TrainingTimeResult | None:
    """Return the whole run in the layout that parallelism-plan names first; None if none fits.

    For `cost_cache` see `search_layouts`.
    """
    fabric, job = _build_requested_interconnect(inputs, gpu), build_requested_job(inputs, model)
    best = _find_best_layout(model, gpu, job, fabric, cost_cache)
    if best is None and job.usable_memory_share is None:
        job = dataclasses.replace(job, usable_memory_share=FILLED_SHARE)
        best = _find_best_layout(model, gpu, job, fabric, cost_cache)
    if best is None:
        return None
    return compute_training_time_result(
        model, gpu, training_time_inputs(inputs, best.plan), best.plan, best.step_time
    )


def _find_best_layout(
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
    cost_cache: LayoutCostCache | None = None,
) -> LayoutCandidate | None:
    found = search_layouts(model, gpu, job, fabric, max_ranked=1, cost_cache=cost_cache)
    return found.candidates_best_first[0] if found.candidates_best_first else None


def build_layout_memory_verdict(candidate: LayoutCandidate, gpu: Accelerator) -> Verdict:
    """Return the verdict on the memory of a layout, as `training-memory` gives it."""
    limit, plan = gpu.engine_visible_memory, candidate.plan
    framework = training_step_of_plan(plan).framework.id
    bounds = plausible_bytes_range(candidate.stage_memory, framework)
    memory = MemoryLimit(limit, limit, gpu.memory)
    return build_memory_verdict(candidate.memory_per_gpu, memory, plan.gpus, *bounds)


def find_verdict_changes(result: ParallelismPlanResult) -> tuple[VerdictChange, ...]:
    return (*_usable_memory_changes(result), *_too_few_gpus_changes(result))


def _usable_memory_changes(result: ParallelismPlanResult) -> tuple[VerdictChange, ...]:
    """Return the usable share of memory with a faster layout, or with one that surely fits."""
    best, unsure = result.best_layout, result.faster_unsure_layout
    if best is None:
        return ()
    if unsure is not None:
        shorter = format_value(1 - unsure.step_time.total / best.step_time.total, "%")
        becomes = (
            f"Another layout has {shorter} shorter steps, but needs "
            f"{format_value(unsure.memory_per_gpu, 'B')} on each GPU and may run out of memory."
        )
        return _build_usable_memory_change(result, FILLED_SHARE, becomes)
    is_unsure = build_layout_memory_verdict(best, result.gpu).lead == UNSURE_LEAD
    if result.inputs.usable_memory is None or not is_unsure:
        return ()
    job = dataclasses.replace(result.job, gpus=best.plan.gpus, usable_memory_share=None)
    share = job.find_memory_limit(result.gpu) / result.gpu.engine_visible_memory
    share = math.floor(1000 * share) / 1000
    job = dataclasses.replace(job, usable_memory_share=share)
    sure = _find_best_layout(result.model, result.gpu, job, result.fabric)
    if sure is None:
        return ()
    slower = format_value(sure.step_time.total / best.step_time.total - 1, "%")
    becomes = (
        f"A layout with micro-batch {sure.plan.micro_batch} surely fits: "
        f"{format_value(sure.memory_per_gpu, 'B')}, and each step takes {slower} longer."
    )
    return _build_usable_memory_change(result, share, becomes)


def _build_usable_memory_change(
    result: ParallelismPlanResult, share: float, verdict_after: str
) -> tuple[VerdictChange, ...]:
    label = input_specs(ParallelismPlanInputs)["usable_memory"].label
    typed = result.inputs.usable_memory
    now = "what surely fits" if typed is None else f"{100 * typed:g}%"
    return (VerdictChange("usable_memory", label, now, f"{100 * share:g}%", verdict_after),)


def _too_few_gpus_changes(result: ParallelismPlanResult) -> tuple[VerdictChange, ...]:
    fewest = result.fewest_gpus.gpus
    # Of a plan that fits two or three GPUs, nobody asks whether it does one.
    if result.best_layout is None or fewest is None or not 4 <= fewest < result.inputs.gpus:
        return ()
    now, then = format_number(result.inputs.gpus), format_number(fewest // 2)
    surely = "surely " if result.job.usable_memory_share is None else ""
    return (VerdictChange("gpus", "GPUs", now, then, f"No layout {surely}fits any more."),)
