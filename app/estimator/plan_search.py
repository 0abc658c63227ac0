"""Search over layouts of a training job: what fits, ranked by what it costs in time."""

import dataclasses
import functools
from collections.abc import Iterator

from app.estimator.architecture import Architecture
from app.estimator.hardware import Accelerator
from app.estimator.network import Fabric, fabric_of
from app.estimator.sharding import tensor_parallel_problem
from app.estimator.training_load import Load
from app.estimator.training_memory_fit import load_of
from app.estimator.training_plan import FREE_PLACES, SOFTWARE, Plan, Recompute
from app.estimator.training_step import StepTime, step_time

_RECOMPUTES: tuple[Recompute, ...] = ("none", "selective", "full")
_MICRO_BATCHES = (1, 2, 4, 8, 16)
# Sequences are divided over GPUs only from this length on: below it, other ways of
# dividing are always better.
_LONG = 16384


@dataclasses.dataclass(frozen=True, slots=True)
class Job:
    """What is to be laid out: the cluster, the batch and what may be used.

    `usable` is the share of memory that a plan may fill; `global_batch` counts
    sequences per step.
    """

    gpus: int
    sequence: int
    global_batch: int
    number_format: str = "bf16"
    software: str = "tuned"
    usable: float = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that fits: its plan, its step and what fills a GPU."""

    plan: Plan
    step: StepTime
    load: Load

    @property
    def memory(self) -> float:
        """Bytes on a GPU of the fullest stage [B]."""
        return self.load.total

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second of the whole cluster [token/s]."""
        return self.plan.tokens / self.step.total


def search(
    model: Architecture,
    gpu: Accelerator,
    job: Job,
    fabric: Fabric | None = None,
    most: int = 10,
) -> tuple[Candidate, ...]:
    """The fastest layouts that fit, the best first.

    Every combination of tensor, pipeline, context and expert parallelism that
    divides the cluster and the model, with micro-batch, interleaving, recomputation
    and ZeRO stage. Of layouts that differ in recomputation alone the lightest
    that fits is kept.

    Where:
        model: what is trained.
        gpu: the accelerator.
        job: cluster and batch.
        fabric: the links; those usual for the card where none are given.
        most: how many layouts to return [1].

    >>> from app.estimator.architecture import find_model
    >>> from app.estimator.hardware import find_accelerator
    >>> job = Job(gpus=64, sequence=4096, global_batch=512)
    >>> best(find_model("llama-3.1-8b"), find_accelerator("H100"), job).plan.tensor
    1
    """
    links = fabric or fabric_of(gpu)
    limit = (gpu.memory or 0.0) * job.usable
    found: list[Candidate] = []
    for plan in layouts(model, links, job):
        fitting = _fitting(model, plan, limit)
        if fitting is not None:
            step = step_time(model, gpu, links, fitting[0])
            found.append(Candidate(fitting[0], step, fitting[1]))
    found.sort(key=lambda c: (-c.tokens_per_second, c.memory))
    return tuple(found[:most])


def best(
    model: Architecture, gpu: Accelerator, job: Job, fabric: Fabric | None = None
) -> Candidate | None:
    """The fastest layout that fits; None when none does."""
    found = search(model, gpu, job, fabric, 1)
    return found[0] if found else None


def _fitting(model: Architecture, plan: Plan, limit: float) -> tuple[Plan, Load] | None:
    """The plan with the least recomputation that fits, and what fills a GPU."""
    for recompute in _RECOMPUTES:
        candidate = dataclasses.replace(plan, recompute=recompute)
        load = load_of(model, candidate)
        if load.total <= limit:
            return candidate, load
    return None


def layouts(model: Architecture, fabric: Fabric, job: Job) -> Iterator[Plan]:
    """Every legal layout of a job, recomputation left open."""
    for tensor in _tensors(model, fabric, job.gpus):
        for pipeline in _pipelines(model, job.gpus // tensor):
            for context in _contexts(job, job.gpus // (tensor * pipeline)):
                yield from _batched(model, job, (tensor, pipeline, context))


def _tensors(model: Architecture, fabric: Fabric, gpus: int) -> tuple[int, ...]:
    """Tensor parallelism within the inner links."""
    most = min(fabric.domain, 16, gpus)
    return tuple(
        n
        for n in (1, 2, 4, 8, 16)
        if n <= most and gpus % n == 0 and tensor_parallel_problem(model, n) is None
    )


def _pipelines(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Stages: powers of two and numbers that divide the layers."""
    most = min(model.layers, gpus, 64)
    useful = {n for n in range(1, most + 1) if model.layers % n == 0}
    useful |= {2**k for k in range(7) if 2**k <= most}
    return tuple(n for n in sorted(useful) if gpus % n == 0)


def _contexts(job: Job, gpus: int) -> tuple[int, ...]:
    if job.sequence < _LONG:
        return (1,)
    most = min(gpus, job.sequence // 2048)
    return tuple(2**k for k in range(8) if 2**k <= most and gpus % 2**k == 0)


def _batched(
    model: Architecture, job: Job, degrees: tuple[int, int, int]
) -> Iterator[Plan]:
    """Data and expert parallelism, micro-batches, interleaving and ZeRO."""
    tensor, pipeline, context = degrees
    data = job.gpus // (tensor * pipeline * context)
    if data > job.global_batch or job.global_batch % data:
        return
    each = job.global_batch // data
    for expert in _experts(model, data * context * tensor):
        for micro_batch in _MICRO_BATCHES:
            batches = each // micro_batch
            if each % micro_batch or batches < pipeline:
                continue
            for pieces, zero in _variants(model.layers, pipeline, data, batches):
                yield Plan(
                    tensor=tensor,
                    pipeline=pipeline,
                    data=data,
                    context=context,
                    expert=expert,
                    pieces=pieces,
                    sequence=job.sequence,
                    micro_batch=micro_batch,
                    micro_batches=batches,
                    number_format=job.number_format,
                    zero=zero,
                    software=SOFTWARE[job.software],
                )


def _experts(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Expert parallelism that divides the experts and the GPUs of a stage."""
    if not model.is_routed:
        return (1,)
    return tuple(
        2**k
        for k in range(9)
        if 2**k <= gpus and model.experts % 2**k == 0 and gpus % 2**k == 0
    )


@functools.lru_cache(maxsize=4096)
def _variants(
    layers: int, pipeline: int, data: int, batches: int
) -> tuple[tuple[int, int], ...]:
    """Pieces per stage, and ZeRO stage: sharded weights only without a pipeline."""
    if pipeline == 1:
        return ((1, 1), (1, 3)) if data > 1 else ((1, 1),)
    chunks = [1]
    if batches % pipeline == 0:
        most = layers // pipeline
        chunks += [v for v in (2, 3, 4, 5, 6, 7, 8, 10) if v <= most]
        even = [v for v in chunks if -layers % (pipeline * v) <= FREE_PLACES]
        chunks = even or [chunks[0]]
    return tuple((v, 1) for v in chunks)


def smallest(
    model: Architecture, gpu: Accelerator, job: Job, fabric: Fabric | None = None
) -> Candidate | None:
    """The fewest GPUs on which some layout fits, by powers of two up to the job's."""
    gpus = 1
    while gpus <= job.gpus:
        batch = max(1, job.global_batch // gpus) * gpus
        smaller = dataclasses.replace(job, gpus=gpus, global_batch=batch)
        found = best(model, gpu, smaller, fabric)
        if found is not None:
            return found
        gpus *= 2
    return None
