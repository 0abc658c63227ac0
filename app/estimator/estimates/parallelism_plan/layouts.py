"""The legal layouts of a training job, in families that differ in micro-batch alone."""

import dataclasses
import functools
from collections.abc import Iterator

from app.estimator.hardware.networks import Interconnect
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture
from app.estimator.timing.training_plan import (
    FREE_PLACES,
    SOFTWARE,
    Recompute,
    TrainingPlan,
)


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingJob:
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
class LayoutFamily:
    """Layouts that differ in micro-batch alone, by their degrees.

    `sizes` are the micro-batches, ascending: sequences of one, and how many of them a
    step has.
    """

    tensor: int
    pipeline: int
    context: int
    data: int
    expert: int
    pieces: int
    zero: int
    sizes: tuple[tuple[int, int], ...]

    def plan(
        self, job: TrainingJob, size: tuple[int, int], recompute: Recompute = "none"
    ) -> TrainingPlan:
        """The layout with one of the sizes."""
        return TrainingPlan(
            tensor=self.tensor,
            pipeline=self.pipeline,
            data=self.data,
            context=self.context,
            expert=self.expert,
            pieces=self.pieces,
            sequence=job.sequence,
            micro_batch=size[0],
            micro_batches=size[1],
            number_format=job.number_format,
            recompute=recompute,
            zero=self.zero,
            software=SOFTWARE[job.software],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ModelSplit:
    """How one copy of a model is divided, and the families that divide it so.

    `cuts` are pieces per stage and ZeRO stage, each with its micro-batches.
    """

    tensor: int
    pipeline: int
    context: int
    data: int
    experts: tuple[int, ...]
    cuts: tuple[tuple[tuple[int, int], tuple[tuple[int, int], ...]], ...]

    @property
    def layouts(self) -> int:
        """How many layouts there are of it, recomputation left open."""
        return len(self.experts) * sum(len(sizes) for _, sizes in self.cuts)

    def families(self) -> Iterator[LayoutFamily]:
        """Its layouts by all that is not the micro-batch."""
        degrees = (self.tensor, self.pipeline, self.context, self.data)
        for expert in self.experts:
            for variant, sizes in self.cuts:
                yield LayoutFamily(*degrees, expert, *variant, sizes)


_MICRO_BATCHES = (1, 2, 4, 8, 16)


# Sequences are divided over GPUs only from this length on: below it, other ways of
# dividing are always better.
_LONG = 16384


def splits(model: Architecture, fabric: Interconnect, job: TrainingJob) -> Iterator[ModelSplit]:
    """Every way to divide a copy of the model for which there is a legal layout."""
    for tensor in _tensors(model, fabric, job.gpus):
        for pipeline in _pipelines(model, job.gpus // tensor):
            for context in _contexts(job, job.gpus // (tensor * pipeline)):
                data = job.gpus // (tensor * pipeline * context)
                if job.global_batch % data:  # also where there are more replicas
                    continue
                each = job.global_batch // data
                cuts = _cuts(model.layers, pipeline, data, each)
                experts = _experts(model, data * context * tensor)
                if cuts:
                    yield ModelSplit(tensor, pipeline, context, data, experts, cuts)


def _tensors(model: Architecture, fabric: Interconnect, gpus: int) -> tuple[int, ...]:
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


def _contexts(job: TrainingJob, gpus: int) -> tuple[int, ...]:
    if job.sequence < _LONG:
        return (1,)
    most = min(gpus, job.sequence // 2048)
    return tuple(2**k for k in range(8) if 2**k <= most and gpus % 2**k == 0)


def _experts(model: Architecture, gpus: int) -> tuple[int, ...]:
    """Expert parallelism that divides the experts and the GPUs of a stage."""
    if not model.is_routed:
        return (1,)
    return tuple(
        2**k for k in range(9) if 2**k <= gpus and model.experts % 2**k == 0 and gpus % 2**k == 0
    )


@functools.lru_cache(maxsize=4096)
def _cuts(
    layers: int, pipeline: int, data: int, each: int
) -> tuple[tuple[tuple[int, int], tuple[tuple[int, int], ...]], ...]:
    """Pieces and ZeRO stage, with the micro-batches that `each` replica can take."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for micro_batch in _MICRO_BATCHES:
        batches = each // micro_batch
        if each % micro_batch or batches < pipeline:
            continue
        for variant in _variants(layers, pipeline, data, batches):
            found.setdefault(variant, []).append((micro_batch, batches))
    return tuple((variant, tuple(sizes)) for variant, sizes in found.items())


def _variants(layers: int, pipeline: int, data: int, batches: int) -> tuple[tuple[int, int], ...]:
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
