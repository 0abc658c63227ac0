"""The numbers of `training-memory`."""

import dataclasses
import math
from typing import Any

from app.estimator.estimates.training_memory.asked import TrainingMemoryInputs
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.memory.frameworks import framework_of
from app.estimator.memory.layouts import ParallelLayout, usual_micro_batches
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.memory.states import BytesPerParameter, recipe
from app.estimator.memory.training import (
    StageMemory,
    TrainingStep,
    fullest_stage,
    stage_loads,
    usual_overhead,
)
from app.estimator.memory.tuning import FineTuning, full_training, tuning_of
from app.estimator.models.architecture import Architecture
from app.estimator.shared_inputs import input_error
from app.estimator.timing.training_plan import FREE_PLACES


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingMemoryResult:
    """One question with what was found."""

    model: Architecture
    asked: TrainingMemoryInputs
    gpu: Accelerator
    layout: ParallelLayout
    recipe: BytesPerParameter
    tuning: FineTuning
    loads: tuple[StageMemory, ...]
    fewest: int | None
    remedies: tuple[tuple[str, str], ...] = ()


# What makes room, in the order in which it costs more time.
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("zero", "3"),
    ("recompute", "full"),
    ("offload", "optimizer"),
    ("method", "lora"),
)


def remedies(model: Architecture, asked: TrainingMemoryInputs) -> tuple[tuple[str, str], ...]:
    """The single changes of the recipe with which a job that is too large fits."""
    limit = find_accelerator(asked.gpu).capacity
    found = []
    for field, value in _REMEDIES:
        if getattr(asked, field) == value:
            continue
        change: dict[str, Any] = {field: value}
        changed = dataclasses.replace(asked, **change)
        loads = stage_loads(
            model,
            layout_of(changed),
            step_of(changed),
            recipe(changed.optimizer, changed.precision),
            overhead_of(changed),
            tuning=tuning_asked(model, changed),
        )
        if fullest_stage(loads).total <= limit:
            found.append((field, value))
    return tuple(found)


def tuning_asked(model: Architecture, asked: TrainingMemoryInputs) -> FineTuning:
    """Which part of the model is trained, and what waits on the host."""
    if asked.method == "full":
        return full_training(asked.offload)
    return tuning_of(model, asked.method, asked.rank, asked.targets, asked.offload)


def layout_of(asked: TrainingMemoryInputs) -> ParallelLayout:
    """The degrees of parallelism that were asked for."""
    return ParallelLayout(
        gpus=asked.gpus,
        tensor=asked.tensor_parallel,
        pipeline=asked.pipeline_parallel,
        context=asked.context_parallel,
        expert=asked.expert_parallel,
        virtual=asked.interleave,
        zero=int(asked.zero),
        sequence_parallel=asked.sequence_parallel,
    )


def overhead_of(asked: TrainingMemoryInputs) -> float:
    """What was given for everything beside the model, or the usual [B]."""
    return usual_overhead(asked.gpus) if asked.overhead is None else asked.overhead


def step_of(asked: TrainingMemoryInputs) -> TrainingStep:
    """The step that was asked for, with the usual micro-batches unless said."""
    usual = usual_micro_batches(layout_of(asked), asked.sequence, asked.micro_batch)
    return TrainingStep(
        sequence=asked.sequence,
        micro_batch=asked.micro_batch,
        micro_batches=asked.micro_batches or usual,
        recompute=asked.recompute,
        flash=asked.flash_attention,
        framework=framework_of(asked.framework, asked.method),
        fused_loss=asked.fused_loss,
        overlapped=asked.overlapped,
    )


def check(
    model: Architecture, asked: TrainingMemoryInputs, layout: ParallelLayout, gpu: Accelerator
) -> None:
    """Refuse layouts that cannot be, with what is possible."""
    ranks = layout.tensor * layout.pipeline * layout.context
    if asked.gpus % ranks:
        raise input_error(
            "gpus",
            asked.gpus,
            f"{asked.gpus} GPUs cannot be divided into groups of {ranks} (tensor × "
            f"pipeline × context parallel); use a multiple of {ranks}.",
        )
    problem = tensor_parallel_problem(model, layout.tensor)
    if problem:
        raise input_error("tensor_parallel", layout.tensor, problem)
    _check_pipeline(model, layout)
    _check_experts(model, layout)
    _check_card(asked, gpu)


def _check_pipeline(model: Architecture, layout: ParallelLayout) -> None:
    chunks = layout.pipeline * layout.virtual
    most = model.layers + FREE_PLACES
    if chunks > most:
        field = "interleave" if layout.virtual > 1 else "pipeline_parallel"
        value = layout.virtual if layout.virtual > 1 else layout.pipeline
        raise input_error(
            field,
            value,
            f"{model.layers} layers cannot fill {chunks} parts of a pipeline; at most {most}.",
        )
    if layout.virtual > 1 and layout.pipeline == 1:
        raise input_error(
            "interleave",
            layout.virtual,
            f"Interleaving {layout.virtual} chunks needs a pipeline of at least 2.",
        )


def _check_experts(model: Architecture, layout: ParallelLayout) -> None:
    expert = layout.expert
    if expert == 1:
        return
    if not model.experts:
        raise input_error(
            "expert_parallel", expert, f"{model.name} has no experts to divide; use 1."
        )
    if model.experts % expert:
        raise input_error(
            "expert_parallel",
            expert,
            f"{model.experts} experts cannot be divided over {expert} GPUs; use a "
            f"divisor of {model.experts}.",
        )
    group = layout.gpus // layout.pipeline
    if group % expert:
        raise input_error(
            "expert_parallel",
            expert,
            f"Expert parallel {expert} does not divide the {group} GPUs of a stage.",
        )


def _check_card(asked: TrainingMemoryInputs, gpu: Accelerator) -> None:
    if not gpu.capacity:
        raise input_error("gpu", asked.gpu, f"The memory of the {gpu.name} is not known.")
    if asked.precision.startswith("bf16") and gpu.lacks("bf16"):
        raise input_error("precision", asked.precision, f"The {gpu.name} cannot compute in BF16.")


def fewest_gpus(layout: ParallelLayout, loads: tuple[StageMemory, ...], limit: float) -> int | None:
    """The fewest GPUs of this layout, by changing the number of its copies.

    Only what ZeRO divides shrinks with more copies; the rest must fit by itself.
    """
    ranks = layout.tensor * layout.pipeline * layout.context
    copies = 1
    for load in loads:
        divided = sum(
            value
            for stage, value in (
                (3, load.weights),
                (2, load.gradients),
                (1, load.optimizer),
            )
            if layout.zero >= stage
        )
        room = limit - (load.total - divided)
        if room <= 0:
            return None
        copies = max(copies, math.ceil(divided * layout.data / room - 1e-9))
    each = layout.tensor * layout.context
    step = layout.expert // math.gcd(layout.expert, each)
    copies = -(-copies // step) * step
    return ranks * copies if ranks * copies <= _MOST_GPUS else None


_MOST_GPUS = 1_000_000
