"""`parallelism-plan`: inputs, result, and the input values where the verdict changes."""

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from app.estimator import common_inputs
from app.estimator.common_inputs import BATCH, HARDWARE, RECIPE
from app.estimator.estimates.training_time import (
    MAX_GPUS,
    TrainingTimeInputs,
    TrainingTimeResult,
    compute_run,
    list_divisors,
)
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.hardware.collectives import Interconnect, gpu_interconnect
from app.estimator.hardware.throughput import compute_sustained_rates
from app.estimator.inputs import input_specs
from app.estimator.memory.model_states import FRAMEWORKS, bytes_per_parameter
from app.estimator.memory.parallel_layout import (
    ParallelLayout,
    default_batch_tokens,
    micro_batches_in_flight,
    tensor_parallel_problem,
)
from app.estimator.memory.training_memory import (
    StageMemory,
    TransientBytesPerToken,
    default_overhead_bytes,
    plausible_bytes_range,
    resident_memory_of_distinct_stages,
    transient_bytes_per_token_of_distinct_stages,
)
from app.estimator.memory_verdict import UNSURE_LEAD, MemoryLimit, memory_verdict
from app.estimator.models.architecture import Architecture
from app.estimator.result import Verdict, VerdictFlip
from app.estimator.training.step_time import (
    AllLayersTime,
    StepTime,
    all_layers_time,
    build_step_time,
)
from app.estimator.training.training_plan import (
    FREE_PLACES,
    SOFTWARE,
    Recompute,
    TrainingPlan,
    find_software,
    fullest_stage_memory,
    layers_of_fullest_stage,
    plan_to_parallel_layout,
    plan_to_training_step,
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


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingJob:
    """The training job to lay out; `global_batch` counts sequences per step."""

    gpus: int
    sequence: int
    global_batch: int
    number_format: str = "bf16"
    software: str = "tuned"
    usable_memory_share: float = 0.95


class MicroBatch(NamedTuple):
    """The sequences of a micro-batch, and how many micro-batches a step has."""

    sequences: int
    per_step: int


class PipelineVariant(NamedTuple):
    chunks_per_stage: int
    zero: int


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
    zero: int
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
            chunks=self.chunks_per_stage,
            sequence=job.sequence,
            micro_batch=micro_batch.sequences,
            micro_batches=micro_batch.per_step,
            number_format=job.number_format,
            recompute=recompute,
            zero=self.zero,
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
    variants: Mapping[PipelineVariant, tuple[MicroBatch, ...]]

    @property
    def layout_count(self) -> int:
        """Return the number of layouts, not counting recomputation."""
        return len(self.expert_degrees) * sum(map(len, self.variants.values()))

    def families(self) -> Iterator[MicroBatchFamily]:
        """Yield its layouts, grouped by everything but the micro-batch."""
        degrees = (self.tensor, self.pipeline, self.context, self.data)
        for expert in self.expert_degrees:
            for variant, micro_batches in self.variants.items():
                yield MicroBatchFamily(*degrees, expert, *variant, micro_batches)


_MICRO_BATCHES = (1, 2, 4, 8, 16)

# Context parallelism is tried only from this sequence length: for shorter sequences
# other divisions are always better.
_LONG = 16384


def list_splits(
    model: Architecture, fabric: Interconnect, job: TrainingJob
) -> Iterator[ModelSplit]:
    for tensor in _tensor_degrees(model, fabric, job.gpus):
        for pipeline in _pipeline_degrees(model, job.gpus // tensor):
            for context in _context_degrees(job, job.gpus // (tensor * pipeline)):
                data = job.gpus // (tensor * pipeline * context)
                if job.global_batch % data:  # Also true if there are more replicas than sequences.
                    continue
                sequences_per_replica = job.global_batch // data
                variants = _list_variants(model.layers, pipeline, data, sequences_per_replica)
                experts = _expert_degrees(model, data * context * tensor)
                if variants:
                    yield ModelSplit(tensor, pipeline, context, data, experts, variants)


def list_dividing_gpus(
    model: Architecture, fabric: Interconnect, job: TrainingJob, max_gpus: int
) -> tuple[int, ...]:
    """Return the numbers of GPUs over which a job's batch can be divided, ascending.

    They are multiples of eight, or of the divisor of eight that the job's own number is one of,
    as machines hold so many.
    """
    machine = math.gcd(job.gpus, 8)
    batch = job.global_batch
    replicas = list_divisors(batch)
    found = set()
    for tensor in _tensor_degrees(model, fabric, _ANY_GPUS):
        for pipeline in _pipeline_degrees(model, _ANY_GPUS):
            for context in _context_degrees(job, _ANY_GPUS):
                copy = tensor * pipeline * context
                # Each stage of a pipeline needs a sequence to work on.
                found |= {copy * data for data in replicas if batch // data >= pipeline}
    return tuple(sorted(gpus for gpus in found if gpus <= max_gpus and gpus % machine == 0))


# A number that every degree divides, so that none is left out.
_ANY_GPUS = math.lcm(128, *range(1, 65))


def _tensor_degrees(model: Architecture, fabric: Interconnect, gpus: int) -> tuple[int, ...]:
    """Return tensor-parallel degrees within the inner links."""
    max_degree = min(fabric.domain, 16, gpus)
    return tuple(
        n
        for n in (1, 2, 4, 8, 16)
        if n <= max_degree and gpus % n == 0 and tensor_parallel_problem(model, n) is None
    )


def _pipeline_degrees(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Return pipeline degrees: powers of two and divisors of the layer count."""
    max_degree = min(model.layers, gpus, 64)
    degrees = {n for n in range(1, max_degree + 1) if model.layers % n == 0}
    degrees |= {2**k for k in range(7) if 2**k <= max_degree}
    return tuple(n for n in sorted(degrees) if gpus % n == 0)


def _context_degrees(job: TrainingJob, gpus: int) -> tuple[int, ...]:
    if job.sequence < _LONG:
        return (1,)
    max_degree = min(gpus, job.sequence // 2048)
    return tuple(2**k for k in range(8) if 2**k <= max_degree and gpus % 2**k == 0)


def _expert_degrees(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Return expert-parallel degrees that divide the experts and the GPUs of a stage."""
    if not model.is_routed:
        return (1,)
    return tuple(
        2**k for k in range(9) if 2**k <= gpus and model.experts % 2**k == 0 and gpus % 2**k == 0
    )


@functools.lru_cache(maxsize=4096)
def _list_variants(
    layers: int, pipeline: int, data: int, sequences_per_replica: int
) -> Mapping[PipelineVariant, tuple[MicroBatch, ...]]:
    """Return the variants of a pipeline, with the micro-batches that divide a replica's sequences."""
    found: dict[PipelineVariant, tuple[MicroBatch, ...]] = {}
    for sequences in _MICRO_BATCHES:
        micro_batch = MicroBatch(sequences, sequences_per_replica // sequences)
        if sequences_per_replica % sequences or micro_batch.per_step < pipeline:
            continue
        for variant in _variants_for_micro_batches(layers, pipeline, data, micro_batch.per_step):
            found[variant] = (*found.get(variant, ()), micro_batch)
    return found


def _variants_for_micro_batches(
    layers: int, pipeline: int, data: int, micro_batch_count: int
) -> tuple[PipelineVariant, ...]:
    """Return the variants to try: sharded weights only without a pipeline."""
    if pipeline == 1:
        return tuple(PipelineVariant(1, zero) for zero in ((1, 3) if data > 1 else (1,)))
    chunks = [1]
    if micro_batch_count % pipeline == 0:
        max_chunks = layers // pipeline
        chunks += [v for v in (2, 3, 4, 5, 6, 7, 8, 10) if v <= max_chunks]
        even_chunks = [v for v in chunks if -layers % (pipeline * v) <= FREE_PLACES]
        chunks = even_chunks or [chunks[0]]
    return tuple(PipelineVariant(v, zero=1) for v in chunks)


_BytesByStage = tuple[float, ...]

_WORK_OF_STAGE = 3  # To compute one stage of a layout; see `MAX_WORK`.

_RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "operators", "full")


class FittingMicroBatch(NamedTuple):
    """A micro-batch that fits, with the least recomputation, and the memory of a GPU [B]."""

    micro_batch: MicroBatch
    recompute: Recompute
    memory: float


class TransientsByStage(NamedTuple):
    """A layout, and what each of its stages needs for each token besides the model states."""

    layout: ParallelLayout
    stages: tuple[TransientBytesPerToken, ...]


_Key = tuple[object, ...]


def _never(*_: object) -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCosts:
    """What searches for one job share on any number of the same GPUs, by what it depends on.

    The times of all layers, and what each stage needs for each token.
    """

    layer_times: dict[_Key, AllLayersTime] = dataclasses.field(default_factory=dict)
    bytes_per_token: dict[_Key, TransientsByStage] = dataclasses.field(default_factory=dict)


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
        limit: float,
        costs: LayoutCosts | None = None,
    ) -> None:
        self.work_done = 0
        self._model, self._job, self._limit = model, job, limit
        self._per_token = (costs or LayoutCosts()).bytes_per_token
        self._recomputes = _RECOMPUTES
        if not FRAMEWORKS[SOFTWARE[job.software].framework].recomputes_products:
            self._recomputes = tuple(kind for kind in _RECOMPUTES if kind != "operators")
        self._resident: dict[tuple[int, ...], _BytesByStage] = {}
        self._transient: dict[tuple[object, ...], _BytesByStage] = {}

    @property
    def fits_sharded_states(self) -> bool:
        """Return whether the model states fit if they are fully sharded."""
        unsharded = resident_memory_of_distinct_stages(
            self._model, ParallelLayout(), FRAMEWORKS["torch"], bytes_per_parameter()
        )[0]
        states = unsharded.weights + unsharded.gradients + unsharded.optimizer
        return states / self._job.gpus <= self._limit

    def fitting_micro_batches(
        self, family: MicroBatchFamily, is_needless: Callable[[MicroBatch, Recompute], bool]
    ) -> Iterator[FittingMicroBatch]:
        """Yield the micro-batches that fit, each with the least recomputation.

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
                    yield FittingMicroBatch(micro_batch, self._recomputes[index], memory)
                    break
            else:
                return  # A larger micro-batch needs even more memory.
            start = index

    def has_fit(self, family: MicroBatchFamily) -> bool:
        """Return whether any layout of a family fits; the smallest micro-batch needs least."""
        return next(self.fitting_micro_batches(family, _never), None) is not None

    def _resident_bytes(self, family: MicroBatchFamily) -> _BytesByStage:
        split_key = (family.tensor, family.pipeline, family.chunks_per_stage)
        key = (*split_key, family.expert, family.zero)
        resident = self._resident.get(key)
        if resident is None:
            plan = family.build_plan(self._job, family.micro_batches[0])
            framework = plan_to_training_step(plan).framework
            stages = resident_memory_of_distinct_stages(
                self._model, plan_to_parallel_layout(plan), framework, bytes_per_parameter()
            )
            overhead = default_overhead_bytes(plan.gpus)
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
                per_token = self._transient_bytes_per_token(family, recompute)
                self._per_token[per_token_key] = per_token
            tokens = self._job.sequence * micro_batch.sequences / family.context
            transient = tuple(
                sum(
                    stage.bytes_of_micro_batches(
                        tokens,
                        micro_batches_in_flight(
                            stage.stage_index, per_token.layout, micro_batch.per_step
                        ),
                    )
                )
                for stage in per_token.stages
            )
            self._transient[key] = transient
            self.work_done += _WORK_OF_STAGE * len(transient)
        return transient

    def _transient_bytes_per_token(
        self, family: MicroBatchFamily, recompute: Recompute
    ) -> TransientsByStage:
        plan = family.build_plan(self._job, family.micro_batches[0], recompute)
        layout, step = plan_to_parallel_layout(plan), plan_to_training_step(plan)
        stages = transient_bytes_per_token_of_distinct_stages(self._model, layout, step)
        return TransientsByStage(layout, stages)


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCandidate:
    plan: TrainingPlan
    step: StepTime
    stage_memory: StageMemory

    @property
    def memory(self) -> float:
        """Return the bytes on a GPU of the fullest stage [B]."""
        return self.stage_memory.total

    @property
    def tokens_per_second(self) -> float:
        return self.plan.tokens / self.step.total


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutSearchResult:
    ranked: tuple[LayoutCandidate, ...]
    fitting_count: int
    tried_count: int
    legal_count: int
    work_done: int


@dataclasses.dataclass(frozen=True, slots=True)
class FewestGpus:
    """The fewest GPUs on which a layout fits; not `sure` if the search reached its limit."""

    gpus: int | None
    sure: bool = True


# Units of work, to time a step and a kind of layer; see `MAX_WORK`.
_WORK_OF_STEP, _WORK_OF_LAYER = 5, 12


class RankedLayout(NamedTuple):
    """A layout that fits, sorted by its step time, its memory, and the order of the search."""

    seconds: float
    memory: float
    order: int
    plan: TrainingPlan
    step: StepTime


class _LayoutSearch:
    """State of a search: the best layouts so far, and the work done."""

    def __init__(
        self,
        model: Architecture,
        gpu: Accelerator,
        job: TrainingJob,
        fabric: Interconnect,
        max_ranked: int,
        costs: LayoutCosts,
    ) -> None:
        older_kernels = SOFTWARE[job.software].older_attention
        self.fitting_count = 0
        self._timing_work = 0
        self._model, self._job, self._fabric = model, job, fabric
        self._max_ranked = max_ranked
        self._rates = compute_sustained_rates(gpu, job.number_format, older_kernels=older_kernels)
        self._memory = LayoutMemoryChecker(
            model, job, gpu.engine_visible_memory * job.usable_memory_share, costs
        )
        self._times: dict[_Key, AllLayersTime] = {}
        self._known_times = costs.layer_times
        self._ranked: list[RankedLayout] = []

    @property
    def work_done(self) -> int:
        return self._memory.work_done + self._timing_work

    def ranked_candidates(self) -> tuple[LayoutCandidate, ...]:
        return tuple(
            LayoutCandidate(each.plan, each.step, fullest_stage_memory(self._model, each.plan))
            for each in self._ranked
        )

    def rank_family(self, family: MicroBatchFamily) -> None:
        """Rank the layouts of a family that fit, each with the least recomputation."""
        bubble_micro_batches = (family.pipeline - 1) / family.chunks_per_stage
        fullest_stage_layers = layers_of_fullest_stage(
            self._model, family.pipeline, family.chunks_per_stage
        )
        fullest_stage_share = fullest_stage_layers / self._model.layers

        def is_too_slow(micro_batch: MicroBatch, recompute: Recompute) -> bool:
            if len(self._ranked) < self._max_ranked:
                return False
            times = self._layer_times(family, micro_batch, recompute)
            stage_slots = micro_batch.per_step + bubble_micro_batches
            min_seconds = stage_slots * times.time_without_gather * fullest_stage_share
            return min_seconds > self._ranked[-1].seconds

        if self._max_ranked == 1:  # Memory is checked only of what may be the fastest.
            kept = tuple(m for m in family.micro_batches if not is_too_slow(m, "none"))
            if not kept:
                return
            family = dataclasses.replace(family, micro_batches=kept)
        # Those that fit are counted unless only the best is asked for.
        is_needless = is_too_slow if self._max_ranked == 1 else _never
        for fitting in self._memory.fitting_micro_batches(family, is_needless):
            self.fitting_count += 1
            if is_too_slow(fitting.micro_batch, fitting.recompute):
                continue
            times = self._layer_times(family, fitting.micro_batch, fitting.recompute)
            plan = family.build_plan(self._job, fitting.micro_batch, fitting.recompute)
            self._timing_work += _WORK_OF_STEP
            step = build_step_time(self._model, self._rates, self._fabric, plan, times)
            ranked = RankedLayout(step.total, fitting.memory, self.fitting_count, plan, step)
            bisect.insort(self._ranked, ranked)
            del self._ranked[self._max_ranked :]

    def _layer_times(
        self, family: MicroBatchFamily, micro_batch: MicroBatch, recompute: Recompute
    ) -> AllLayersTime:
        key = (family.tensor, family.context, family.expert, micro_batch.sequences, recompute)
        times = self._times.get(key)
        if times is None:
            times = self._known_times.get(key)
            if times is None:
                plan = family.build_plan(self._job, micro_batch, recompute)
                times = all_layers_time(self._model, self._rates, self._fabric, plan)
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
    max_work: int = MAX_WORK,
    costs: LayoutCosts | None = None,
) -> LayoutSearchResult:
    """Return the best of all layouts that fit, or of those tried within the work limit.

    Every combination of tensor, pipeline, context and expert parallelism that
    divides the cluster and the model is tried, with micro-batch, interleaving, recomputation
    and ZeRO stage. Of layouts that differ only in recomputation, the one with the least
    that fits is ranked. If only the best is asked for, slower ones aren't checked for memory, so
    that those that fit are not counted. `costs` are known from searches for the same job on other
    numbers of these GPUs, and added to; that they are known changes no result.
    """
    splits = tuple(list_splits(model, fabric, job))
    search = _LayoutSearch(model, gpu, job, fabric, max_ranked, costs or LayoutCosts())
    tried_count = 0
    for split in splits:
        for family in split.families():
            if search.work_done >= max_work:
                break
            search.rank_family(family)
            tried_count += len(family.micro_batches)
    legal = sum(split.layout_count for split in splits)
    return LayoutSearchResult(
        search.ranked_candidates(), search.fitting_count, tried_count, legal, search.work_done
    )


def find_fewest_gpus(
    model: Architecture, gpu: Accelerator, job: TrainingJob, fabric: Interconnect, max_work: int
) -> FewestGpus:
    """Return the fewest GPUs that fit a layout, by powers of two up to the job's number."""
    limit = gpu.engine_visible_memory * job.usable_memory_share
    gpus, work_done = 1, 0
    while gpus <= job.gpus:
        batch = max(1, job.global_batch // gpus) * gpus
        smaller_job = dataclasses.replace(job, gpus=gpus, global_batch=batch)
        memory_checker = LayoutMemoryChecker(model, smaller_job, limit)
        if memory_checker.fits_sharded_states:
            for split in list_splits(model, fabric, smaller_job):
                if any(map(memory_checker.has_fit, split.families())):
                    return FewestGpus(gpus)
                if work_done + memory_checker.work_done >= max_work:
                    return FewestGpus(None, sure=False)
        work_done += memory_checker.work_done
        gpus *= 2
    return FewestGpus(None)


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
    ranked: tuple[LayoutCandidate, ...]
    fewest_gpus: FewestGpus
    fitting_count: int
    tried_count: int
    legal_count: int

    @functools.cached_property
    def nearest_dividing_gpus(self) -> tuple[int, ...]:
        """Return the next fewer and the next more GPUs that divide the batch, where there are."""
        counts = list_dividing_gpus(self.model, self.fabric, self.job, MAX_GPUS)
        index = bisect.bisect_left(counts, self.job.gpus)
        return (*counts[max(0, index - 1) : index], *counts[index : index + 1])

    @property
    def best_layout(self) -> LayoutCandidate | None:
        return self.ranked[0] if self.ranked else None

    @functools.cached_property
    def full_run(self) -> TrainingTimeResult | None:
        """Return the whole run in the best layout, as `training-time` computes it."""
        if self.best_layout is None:
            return None
        inputs = training_time_inputs(self.inputs, self.best_layout.plan)
        return compute_run(
            self.model, self.gpu, inputs, self.best_layout.plan, self.best_layout.step
        )


def list_gpus_for_batch(inputs: ParallelismPlanInputs, model: Architecture) -> tuple[int, ...]:
    """Return the numbers of GPUs that divide the batch that was typed; none if it was left empty.

    The batch of an empty field is rounded for any number of GPUs.
    """
    if inputs.global_batch is None:
        return ()
    fabric = _plan_fabric(inputs, find_accelerator(inputs.gpu))
    return list_dividing_gpus(model, fabric, requested_job(inputs, model), MAX_GPUS)


def _plan_fabric(inputs: ParallelismPlanInputs, gpu: Accelerator) -> Interconnect:
    return gpu_interconnect(gpu, inputs.network_rate, inputs.network, inputs.domain or 0)


def training_time_inputs(inputs: ParallelismPlanInputs, plan: TrainingPlan) -> TrainingTimeInputs:
    names = {field.name for field in dataclasses.fields(TrainingTimeInputs)}
    shared = {name: value for name, value in dataclasses.asdict(inputs).items() if name in names}
    of_plan = dict[str, Any](
        gpus=plan.gpus,
        tensor_parallel=plan.tensor,
        pipeline_parallel=plan.pipeline,
        context_parallel=plan.context,
        expert_parallel=plan.expert,
        interleave=plan.chunks,
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


def requested_job(inputs: ParallelismPlanInputs, model: Architecture) -> TrainingJob:
    job = TrainingJob(
        gpus=inputs.gpus,
        sequence=inputs.sequence,
        global_batch=inputs.global_batch or _round_batch(default_batch(inputs), inputs.gpus),
        number_format=inputs.number_format,
        software=find_software(inputs.software, model).id,
        usable_memory_share=inputs.usable_memory,
    )
    if inputs.global_batch:
        return job
    fabric = _plan_fabric(inputs, find_accelerator(inputs.gpu))
    return dataclasses.replace(job, global_batch=_find_batch_to_share(model, fabric, job))


def default_batch(inputs: ParallelismPlanInputs) -> int:
    """Return the default sequences of a step, before they are rounded for the GPUs."""
    gpus = inputs.gpus
    longest, own = default_batch_tokens(gpus), default_batch_tokens(gpus, inputs.tokens)
    return max(1, min(round(longest / inputs.sequence), gpus), round(own / inputs.sequence))


def _find_batch_to_share(model: Architecture, fabric: Interconnect, job: TrainingJob) -> int:
    """Return a job's batch, or a larger one that its GPUs can share in some layout."""

    def can_be_shared(batch: int) -> bool:
        splits = list_splits(model, fabric, dataclasses.replace(job, global_batch=batch))
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
    job = requested_job(inputs, model)
    searches = _search_full_and_halved_clusters(inputs, model, gpu, job, fabric)
    ranked = [c for search in searches for c in search.ranked]
    if inputs.objective == "cost":
        ranked.sort(key=lambda c: c.plan.gpus / c.tokens_per_second)
    return ParallelismPlanResult(
        inputs=inputs,
        model=model,
        gpu=gpu,
        job=job,
        fabric=fabric,
        ranked=tuple(ranked[:_MAX_RANKED]),
        fewest_gpus=find_fewest_gpus(model, gpu, job, fabric, _MAX_WORK_OF_FEWEST_GPUS),
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
        remaining_work -= searches[0].work_done
    return searches


def compute_sure_run(
    inputs: ParallelismPlanInputs, model: Architecture, gpu: Accelerator, costs: LayoutCosts
) -> TrainingTimeResult | None:
    """Return the whole run in the best layout that surely fits, as training-run plans it.

    None if no layout fits; if none surely fits, the best stays. For `costs` see `search_layouts`.
    """
    fabric, job = _plan_fabric(inputs, gpu), requested_job(inputs, model)
    ranked = search_layouts(model, gpu, job, fabric, max_ranked=1, costs=costs).ranked
    while ranked and judge_layout_memory(ranked[0], gpu).lead == UNSURE_LEAD:
        ranked = search_layouts(model, gpu, job, fabric, _MAX_RANKED, costs=costs).ranked
        sure = find_sure_layout(ranked, gpu, job.usable_memory_share)
        if sure is None:
            break
        job = dataclasses.replace(job, usable_memory_share=sure.percent / 100)
        ranked = search_layouts(model, gpu, job, fabric, max_ranked=1, costs=costs).ranked
    if not ranked:
        return None
    plan, step = ranked[0].plan, ranked[0].step
    return compute_run(model, gpu, training_time_inputs(inputs, plan), plan, step)


def judge_layout_memory(candidate: LayoutCandidate, gpu: Accelerator) -> Verdict:
    """Return the verdict on the memory of a layout, as `training-memory` gives it."""
    limit, plan = gpu.engine_visible_memory, candidate.plan
    framework = plan_to_training_step(plan).framework.id
    bounds = plausible_bytes_range(candidate.stage_memory, framework)
    memory = MemoryLimit(limit, limit, gpu.memory)
    return memory_verdict(candidate.memory, memory, plan.gpus, *bounds)


def find_flips(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    return (*_find_less_usable_memory(result), *_find_too_few_gpus(result))


class SureLayout(NamedTuple):
    """A layout that surely fits, and the usable percentage of memory that leaves it the best."""

    candidate: LayoutCandidate
    percent: int


def find_sure_layout(
    ranked: tuple[LayoutCandidate, ...], gpu: Accelerator, usable_memory: float
) -> SureLayout | None:
    """Return the best of the layouts that surely fit; None if the first does, or none."""
    if not ranked or judge_layout_memory(ranked[0], gpu).lead != UNSURE_LEAD:
        return None
    for candidate in ranked[1:]:
        percent = math.ceil(100 * candidate.memory / gpu.engine_visible_memory)
        if (
            candidate.plan.gpus == ranked[0].plan.gpus
            and percent < 100 * usable_memory
            and judge_layout_memory(candidate, gpu).lead != UNSURE_LEAD
        ):
            return SureLayout(candidate, percent)
    return None


def _find_less_usable_memory(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    """Return the usable share of memory that leaves the best of the layouts that surely fit."""
    usable_memory = result.inputs.usable_memory
    sure = find_sure_layout(result.ranked, result.gpu, usable_memory)
    if sure is None:
        return ()
    slower = sure.candidate.step.total / result.ranked[0].step.total - 1
    becomes = (
        f"A layout with micro-batch {sure.candidate.plan.micro_batch} fits for sure: "
        f"{format_value(sure.candidate.memory, 'B')}, and each step takes "
        f"{format_value(slower, '%')} longer."
    )
    label = input_specs(ParallelismPlanInputs)["usable_memory"].label
    now, then = (f"{percent:g}%" for percent in (100 * usable_memory, sure.percent))
    return (VerdictFlip("usable_memory", label, now, then, becomes),)


def _find_too_few_gpus(result: ParallelismPlanResult) -> tuple[VerdictFlip, ...]:
    fewest = result.fewest_gpus.gpus
    if result.best_layout is None or fewest is None or not 2 <= fewest < result.inputs.gpus:
        return ()
    now, then = format_number(result.inputs.gpus), format_number(fewest // 2)
    return (VerdictFlip("gpus", "GPUs", now, then, "No layout fits any more."),)
