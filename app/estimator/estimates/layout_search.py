"""Search for the fastest layouts of a training job on a cluster."""

import bisect
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from app.estimator.estimates.training_time import list_divisors
from app.estimator.hardware.catalog import Accelerator
from app.estimator.hardware.collectives import Interconnect
from app.estimator.hardware.throughput import compute_sustained_rates
from app.estimator.memory.model_states import FRAMEWORKS, state_bytes_per_parameter
from app.estimator.memory.parallel_layout import (
    ParallelLayout,
    find_tensor_parallel_problem,
    micro_batches_in_flight,
)
from app.estimator.memory.training_memory import (
    StageMemory,
    TransientBytesPerToken,
    default_overhead_bytes_per_gpu,
    most_bytes_that_surely_fit,
    resident_memory_by_distinct_stage,
    transient_bytes_per_token_by_distinct_stage,
)
from app.estimator.models.architecture import Architecture
from app.estimator.training.step_time import (
    AllLayersMicroBatchTime,
    OptimizerStepTime,
    compute_all_layers_micro_batch_time,
    compute_step_time_from_layers,
)
from app.estimator.training.training_plan import (
    FREE_PLACES,
    SOFTWARE,
    Recompute,
    TrainingPlan,
    count_layers_of_fullest_stage,
    fullest_stage_memory,
    parallel_layout_of_plan,
    training_step_of_plan,
)

FILLED_SHARE = 0.95
"""The largest share of a GPU's memory that a plan fills unless another one is typed."""


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingJob:
    """The training job to lay out; `global_batch` counts sequences per step.

    `usable_memory_share` of a GPU may be filled; None: as much of it as surely fits.
    """

    gpus: int
    sequence: int
    global_batch: int
    number_format: str = "bf16"
    software: str = "tuned"
    usable_memory_share: float | None = FILLED_SHARE

    def find_memory_limit(self, gpu: Accelerator) -> float:
        """Return what a layout may need on each GPU [B]."""
        visible = gpu.engine_visible_memory
        if self.usable_memory_share is not None:
            return visible * self.usable_memory_share
        overhead, framework = (
            default_overhead_bytes_per_gpu(self.gpus),
            SOFTWARE[self.software].framework_id,
        )
        return min(visible * FILLED_SHARE, most_bytes_that_surely_fit(visible, overhead, framework))


class MicroBatch(NamedTuple):
    """The sequences of a micro-batch, and how many micro-batches a step has."""

    sequences: int
    count_per_step: int


@dataclasses.dataclass(frozen=True, slots=True)
class MicroBatchFamily:
    """Layouts with equal parallelism degrees; they differ only in the micro-batch.

    The micro-batches are ascending.
    """

    tensor: int
    pipeline: int
    context: int
    data: int
    expert: int
    chunks_per_stage: int
    zero_stage: int
    micro_batches: tuple[MicroBatch, ...]

    def build_plan(
        self, job: TrainingJob, micro_batch: MicroBatch, recompute: Recompute = "none"
    ) -> TrainingPlan:
        return TrainingPlan(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            context=self.context,
            expert=self.expert,
            chunks_per_stage=self.chunks_per_stage,
            sequence=job.sequence,
            micro_batch=micro_batch.sequences,
            micro_batches=micro_batch.count_per_step,
            number_format=job.number_format,
            recompute=recompute,
            zero=self.zero_stage,
            software=SOFTWARE[job.software],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSplit:
    """A way to divide one copy of the model, and the layout families with that division."""

    tensor: int
    pipeline: int
    context: int
    data: int
    expert_degrees: tuple[int, ...]
    micro_batches_by_chunks_and_zero_stage: Mapping[tuple[int, int], tuple[MicroBatch, ...]]

    @property
    def layout_count(self) -> int:
        """Return the number of layouts, not counting recomputation."""
        return len(self.expert_degrees) * sum(
            map(len, self.micro_batches_by_chunks_and_zero_stage.values())
        )

    def list_families(self) -> Iterator[MicroBatchFamily]:
        """Yield its layouts, grouped by everything but the micro-batch."""
        degrees = (self.tensor, self.pipeline, self.context, self.data)
        for expert in self.expert_degrees:
            for (
                chunks_and_zero,
                micro_batches,
            ) in self.micro_batches_by_chunks_and_zero_stage.items():
                yield MicroBatchFamily(*degrees, expert, *chunks_and_zero, micro_batches)


_MICRO_BATCHES = (1, 2, 4, 8, 16)

# Context parallelism is tried only from this sequence length: for shorter sequences
# other divisions are always better.
_MIN_CONTEXT_PARALLEL_SEQUENCE = 16384


def list_model_splits(
    model: Architecture, fabric: Interconnect, job: TrainingJob
) -> Iterator[ModelSplit]:
    for tensor in _list_tensor_degrees(model, fabric, job.gpus):
        for pipeline in _list_pipeline_degrees(model, job.gpus // tensor):
            for context in _list_context_degrees(job, job.gpus // (tensor * pipeline)):
                data = job.gpus // (tensor * pipeline * context)
                if job.global_batch % data:  # Also true if there are more replicas than sequences.
                    continue
                sequences_per_replica = job.global_batch // data
                micro_batches = _map_micro_batches_by_chunks_and_zero_stage(
                    model.layers, pipeline, data, sequences_per_replica
                )
                experts = _list_expert_degrees(model, data * context * tensor)
                if micro_batches:
                    yield ModelSplit(tensor, pipeline, context, data, experts, micro_batches)


def list_gpu_counts_that_divide_batch(
    model: Architecture, fabric: Interconnect, job: TrainingJob, max_gpu_count: int
) -> tuple[int, ...]:
    """Return the numbers of GPUs over which a job's batch can be divided, ascending.

    They are multiples of eight, or of the divisor of eight that the job's own number is one of,
    as machines hold so many.
    """
    machine = math.gcd(job.gpus, 8)
    batch = job.global_batch
    replicas = list_divisors(batch)
    found = set()
    for tensor in _list_tensor_degrees(model, fabric, _ANY_GPUS):
        for pipeline in _list_pipeline_degrees(model, _ANY_GPUS):
            for context in _list_context_degrees(job, _ANY_GPUS):
                copy = tensor * pipeline * context
                # Each stage of a pipeline needs a sequence to work on.
                found |= {copy * data for data in replicas if batch // data >= pipeline}
    return tuple(sorted(gpus for gpus in found if gpus <= max_gpu_count and gpus % machine == 0))


# A number that every degree divides, so that none is left out.
_ANY_GPUS = math.lcm(128, *range(1, 65))


def _list_tensor_degrees(model: Architecture, fabric: Interconnect, gpus: int) -> tuple[int, ...]:
    """Return tensor-parallel degrees within the inner links."""
    max_degree = min(fabric.gpus_per_domain, 16, gpus)
    return tuple(
        n
        for n in (1, 2, 4, 8, 16)
        if n <= max_degree and gpus % n == 0 and find_tensor_parallel_problem(model, n) is None
    )


def _list_pipeline_degrees(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Return pipeline degrees: powers of two and divisors of the layer count."""
    max_degree = min(model.layers, gpus, 64)
    degrees = {n for n in range(1, max_degree + 1) if model.layers % n == 0}
    degrees |= {2**k for k in range(7) if 2**k <= max_degree}
    return tuple(n for n in sorted(degrees) if gpus % n == 0)


def _list_context_degrees(job: TrainingJob, gpus: int) -> tuple[int, ...]:
    if job.sequence < _MIN_CONTEXT_PARALLEL_SEQUENCE:
        return (1,)
    max_degree = min(gpus, job.sequence // 2048)
    return tuple(2**k for k in range(8) if 2**k <= max_degree and gpus % 2**k == 0)


def _list_expert_degrees(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Return expert-parallel degrees that divide the experts and the GPUs of a stage."""
    if not model.is_routed:
        return (1,)
    return tuple(
        2**k for k in range(9) if 2**k <= gpus and model.experts % 2**k == 0 and gpus % 2**k == 0
    )


def _map_micro_batches_by_chunks_and_zero_stage(
    layers: int, pipeline: int, data: int, sequences_per_replica: int
) -> Mapping[tuple[int, int], tuple[MicroBatch, ...]]:
    """Return the micro-batches that divide a replica's sequences, by what they are tried with."""
    found: dict[tuple[int, int], tuple[MicroBatch, ...]] = {}
    for sequences in _MICRO_BATCHES:
        micro_batch = MicroBatch(sequences, sequences_per_replica // sequences)
        if sequences_per_replica % sequences or micro_batch.count_per_step < pipeline:
            continue
        for tried in _list_chunks_and_zero_stages_to_try(
            layers, pipeline, data, micro_batch.count_per_step
        ):
            found[tried] = (*found.get(tried, ()), micro_batch)
    return found


def _list_chunks_and_zero_stages_to_try(
    layers: int, pipeline: int, data: int, micro_batch_count: int
) -> tuple[tuple[int, int], ...]:
    """Return what to try; weights are sharded only without a pipeline."""
    if pipeline == 1:
        return tuple((1, zero) for zero in ((1, 3) if data > 1 else (1,)))
    chunks = [1]
    if micro_batch_count % pipeline == 0:
        max_chunks = layers // pipeline
        chunks += [v for v in (2, 3, 4, 5, 6, 7, 8, 10) if v <= max_chunks]
        even_chunks = [v for v in chunks if -layers % (pipeline * v) <= FREE_PLACES]
        chunks = even_chunks or [chunks[0]]
    return tuple((v, 1) for v in chunks)


_BytesByStage = tuple[float, ...]

_WORK_OF_STAGE = 3  # To compute one stage of a layout; see `MAX_WORK`.

_RECOMPUTE_CHOICES: tuple[Recompute, ...] = ("none", "selective", "operators", "full")


_Key = tuple[object, ...]


def _is_never_needless(*_: object) -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCostCache:
    """What searches for one job share on any number of the same GPUs, by what it depends on.

    The times of all layers, and what each stage needs for each token.
    """

    layer_times_by_key: dict[_Key, AllLayersMicroBatchTime] = dataclasses.field(
        default_factory=dict
    )
    stage_bytes_per_token_by_key: dict[
        _Key, tuple[ParallelLayout, tuple[TransientBytesPerToken, ...]]
    ] = dataclasses.field(default_factory=dict)


class LayoutMemoryChecker:
    """Memory checks for the layouts of one job.

    Model states depend on how experts and parameters are divided, activations on how
    sequences are. Each is computed once and added up for every layout that has both.
    Activation bytes per token are computed once for all micro-batches.
    """

    def __init__(
        self,
        model: Architecture,
        job: TrainingJob,
        memory_limit: float,
        cost_cache: LayoutCostCache | None = None,
    ) -> None:
        self.work_done = 0
        self._model, self._job, self._limit = model, job, memory_limit
        self._per_token = (cost_cache or LayoutCostCache()).stage_bytes_per_token_by_key
        self._recomputes = _RECOMPUTE_CHOICES
        if not FRAMEWORKS[SOFTWARE[job.software].framework_id].can_recompute_every_second_product:
            self._recomputes = tuple(kind for kind in _RECOMPUTE_CHOICES if kind != "operators")
        self._resident: dict[tuple[int, ...], _BytesByStage] = {}
        self._transient: dict[tuple[object, ...], _BytesByStage] = {}

    @property
    def do_fully_sharded_states_fit(self) -> bool:
        unsharded = resident_memory_by_distinct_stage(
            self._model, ParallelLayout(), FRAMEWORKS["torch"], state_bytes_per_parameter()
        )[0]
        states = unsharded.weights + unsharded.gradients + unsharded.optimizer
        return states / self._job.gpus <= self._limit

    def find_fitting_micro_batches(
        self, family: MicroBatchFamily, is_needless: Callable[[MicroBatch, Recompute], bool]
    ) -> Iterator[tuple[MicroBatch, Recompute, float]]:
        """Yield what fits, with the least recomputation, and the memory of a GPU [B].

        One is left out if that and all that recomputes more is needless.
        """
        self.work_done += 1
        resident = self._resident_bytes(family)
        if max(resident) > self._limit:
            return
        start = 0
        for micro_batch in family.micro_batches:
            self.work_done += 1
            for index in range(start, len(self._recomputes)):
                if all(is_needless(micro_batch, kind) for kind in self._recomputes[index:]):
                    break
                transient = self._transient_bytes(family, micro_batch, self._recomputes[index])
                memory = max(map(float.__add__, resident, transient))
                if memory <= self._limit:
                    yield micro_batch, self._recomputes[index], memory
                    break
            else:
                return  # A larger micro-batch needs even more memory.
            start = index

    def has_fitting_layout(self, family: MicroBatchFamily) -> bool:
        """Return whether any layout of a family fits; the smallest micro-batch needs least."""
        return next(self.find_fitting_micro_batches(family, _is_never_needless), None) is not None

    def _resident_bytes(self, family: MicroBatchFamily) -> _BytesByStage:
        split_key = (family.tensor, family.pipeline, family.chunks_per_stage)
        key = (*split_key, family.expert, family.zero_stage)
        resident = self._resident.get(key)
        if resident is None:
            plan = family.build_plan(self._job, family.micro_batches[0])
            framework = training_step_of_plan(plan).framework
            stages = resident_memory_by_distinct_stage(
                self._model, parallel_layout_of_plan(plan), framework, state_bytes_per_parameter()
            )
            overhead = default_overhead_bytes_per_gpu(plan.gpus)
            resident = tuple(stage.total + overhead for stage in stages)
            self._resident[key] = resident
            self.work_done += _WORK_OF_STAGE * len(resident)
        return resident

    def _transient_bytes(
        self, family: MicroBatchFamily, micro_batch: MicroBatch, recompute: Recompute
    ) -> _BytesByStage:
        split_key = (family.tensor, family.pipeline, family.chunks_per_stage, family.context)
        key = (*split_key, micro_batch, recompute)
        transient = self._transient.get(key)
        if transient is None:
            per_token_key = (*split_key, recompute)
            per_token = self._per_token.get(per_token_key)
            if per_token is None:
                per_token = self._layout_and_transient_bytes_by_stage(family, recompute)
                self._per_token[per_token_key] = per_token
            layout, stages = per_token
            tokens = self._job.sequence * micro_batch.sequences / family.context
            transient = tuple(
                sum(
                    stage.compute_transient_memory(
                        tokens,
                        micro_batches_in_flight(
                            stage.stage_index, layout, micro_batch.count_per_step
                        ),
                    )
                )
                for stage in stages
            )
            self._transient[key] = transient
            self.work_done += _WORK_OF_STAGE * len(transient)
        return transient

    def _layout_and_transient_bytes_by_stage(
        self, family: MicroBatchFamily, recompute: Recompute
    ) -> tuple[ParallelLayout, tuple[TransientBytesPerToken, ...]]:
        """Return the layout, and what each stage needs for a token besides the model states."""
        plan = family.build_plan(self._job, family.micro_batches[0], recompute)
        layout, step = parallel_layout_of_plan(plan), training_step_of_plan(plan)
        stages = transient_bytes_per_token_by_distinct_stage(self._model, layout, step)
        return layout, stages


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCandidate:
    plan: TrainingPlan
    step_time: OptimizerStepTime
    stage_memory: StageMemory

    @property
    def memory_per_gpu(self) -> float:
        """Return the bytes on a GPU of the fullest stage [B]."""
        return self.stage_memory.total

    @property
    def tokens_per_second(self) -> float:
        return self.plan.tokens_per_step / self.step_time.total


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutSearchResult:
    candidates_best_first: tuple[LayoutCandidate, ...]
    fitting_count: int
    tried_count: int
    legal_count: int
    work_units_done: int


@dataclasses.dataclass(frozen=True, slots=True)
class FewestGpusSearchResult:
    """The fewest GPUs on which a layout fits; `is_exact` is False if the search reached its limit."""

    gpus: int | None
    is_exact: bool = True


# Units of work, to time a step and a kind of layer; see `MAX_WORK`.
_WORK_OF_STEP, _WORK_OF_LAYER = 5, 12


class RankedLayout(NamedTuple):
    """A layout that fits, sorted by its step time, its memory, and the order of the search."""

    step_seconds: float
    memory_per_gpu: float
    search_order: int
    plan: TrainingPlan
    step_time: OptimizerStepTime


class _LayoutSearch:
    """State of a search: the best layouts so far, and the work done."""

    def __init__(
        self,
        model: Architecture,
        gpu: Accelerator,
        job: TrainingJob,
        fabric: Interconnect,
        max_ranked: int,
        cost_cache: LayoutCostCache,
    ) -> None:
        older_kernels = SOFTWARE[job.software].has_previous_attention_kernels
        self.fitting_count = 0
        self._timing_work = 0
        self._model, self._job, self._fabric = model, job, fabric
        self._max_ranked = max_ranked
        self._rates = compute_sustained_rates(gpu, job.number_format, older_kernels=older_kernels)
        self._memory = LayoutMemoryChecker(model, job, job.find_memory_limit(gpu), cost_cache)
        self._times: dict[_Key, AllLayersMicroBatchTime] = {}
        self._known_times = cost_cache.layer_times_by_key
        self._ranked: list[RankedLayout] = []

    @property
    def work_done(self) -> int:
        return self._memory.work_done + self._timing_work

    def ranked_candidates(self) -> tuple[LayoutCandidate, ...]:
        return tuple(
            LayoutCandidate(each.plan, each.step_time, fullest_stage_memory(self._model, each.plan))
            for each in self._ranked
        )

    def rank_family(self, family: MicroBatchFamily) -> None:
        """Rank the layouts of a family that fit, each with the least recomputation."""
        bubble_micro_batches = (family.pipeline - 1) / family.chunks_per_stage
        fullest_stage_layers = count_layers_of_fullest_stage(
            self._model, family.pipeline, family.chunks_per_stage
        )
        fullest_stage_share = fullest_stage_layers / self._model.layers

        def is_too_slow(micro_batch: MicroBatch, recompute: Recompute) -> bool:
            if len(self._ranked) < self._max_ranked:
                return False
            times = self._layer_times(family, micro_batch, recompute)
            stage_slots = micro_batch.count_per_step + bubble_micro_batches
            min_seconds = stage_slots * times.total_without_weight_gather * fullest_stage_share
            return min_seconds > self._ranked[-1].step_seconds

        if self._max_ranked == 1:  # Memory is checked only of what may be the fastest.
            kept = tuple(m for m in family.micro_batches if not is_too_slow(m, "none"))
            if not kept:
                return
            family = dataclasses.replace(family, micro_batches=kept)
        # Those that fit are counted unless only the best is asked for.
        is_needless = is_too_slow if self._max_ranked == 1 else _is_never_needless
        for micro_batch, recompute, memory_per_gpu in self._memory.find_fitting_micro_batches(
            family, is_needless
        ):
            self.fitting_count += 1
            if is_too_slow(micro_batch, recompute):
                continue
            times = self._layer_times(family, micro_batch, recompute)
            plan = family.build_plan(self._job, micro_batch, recompute)
            self._timing_work += _WORK_OF_STEP
            step = compute_step_time_from_layers(
                self._model, self._rates, self._fabric, plan, times
            )
            ranked = RankedLayout(step.total, memory_per_gpu, self.fitting_count, plan, step)
            bisect.insort(self._ranked, ranked)
            del self._ranked[self._max_ranked :]

    def _layer_times(
        self, family: MicroBatchFamily, micro_batch: MicroBatch, recompute: Recompute
    ) -> AllLayersMicroBatchTime:
        key = (family.tensor, family.context, family.expert, micro_batch.sequences, recompute)
        times = self._times.get(key)
        if times is None:
            times = self._known_times.get(key)
            if times is None:
                plan = family.build_plan(self._job, micro_batch, recompute)
                times = compute_all_layers_micro_batch_time(
                    self._model, self._rates, self._fabric, plan
                )
                self._known_times[key] = times
            self._times[key] = times
            self._timing_work += _WORK_OF_LAYER * len(self._model.layer_counts)
        return times


# One unit of work takes about three microseconds, so a limit of work limits the time.
# Work is counted and not timed, so that every machine finds the same result.
MAX_WORK = 45_000


def search_layouts(
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
    max_ranked: int = 10,
    max_work_units: int = MAX_WORK,
    cost_cache: LayoutCostCache | None = None,
) -> LayoutSearchResult:
    """Return the best of all layouts that fit, or of those tried within the work limit.

    Every combination of tensor, pipeline, context and expert parallelism that
    divides the cluster and the model is tried, with micro-batch, interleaving, recomputation
    and ZeRO stage. Of layouts that differ only in recomputation, the one with the least
    that fits is ranked. If only the best is asked for, slower ones aren't checked for memory, so
    that those that fit are not counted. `cost_cache` are known from searches for the same job on other
    numbers of these GPUs, and added to; that they are known changes no result.
    """
    splits = tuple(list_model_splits(model, fabric, job))
    search = _LayoutSearch(model, gpu, job, fabric, max_ranked, cost_cache or LayoutCostCache())
    tried_count = 0
    for split in splits:
        for family in split.list_families():
            if search.work_done >= max_work_units:
                break
            search.rank_family(family)
            tried_count += len(family.micro_batches)
    legal = sum(split.layout_count for split in splits)
    return LayoutSearchResult(
        search.ranked_candidates(), search.fitting_count, tried_count, legal, search.work_done
    )


def find_fewest_power_of_two_gpus(
    model: Architecture,
    gpu: Accelerator,
    job: TrainingJob,
    fabric: Interconnect,
    max_work_units: int,
) -> FewestGpusSearchResult:
    """Return the fewest GPUs that fit a layout, by powers of two up to the job's number."""
    gpus, work_done = 1, 0
    while gpus <= job.gpus:
        batch = max(1, job.global_batch // gpus) * gpus
        smaller_job = dataclasses.replace(job, gpus=gpus, global_batch=batch)
        memory_checker = LayoutMemoryChecker(model, smaller_job, smaller_job.find_memory_limit(gpu))
        if memory_checker.do_fully_sharded_states_fit:
            for split in list_model_splits(model, fabric, smaller_job):
                if any(map(memory_checker.has_fitting_layout, split.list_families())):
                    return FewestGpusSearchResult(gpus)
                if work_done + memory_checker.work_done >= max_work_units:
                    return FewestGpusSearchResult(None, is_exact=False)
        work_done += memory_checker.work_done
        gpus *= 2
    return FewestGpusSearchResult(None)
