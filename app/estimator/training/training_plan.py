"""Parallelism plan of a run, and whether it fits in memory."""

import dataclasses
import functools
import math
from typing import Literal

from app.estimator import data_files
from app.estimator.memory.model_states import FRAMEWORKS, BytesPerParameter, recipe
from app.estimator.memory.parallel_layout import ParallelLayout
from app.estimator.memory.training_memory import (
    StageMemory,
    TrainingStep,
    fullest_stage,
    stage_loads,
    usual_overhead,
)
from app.estimator.models.architecture import Architecture

Recompute = Literal["none", "selective", "operators", "full"]


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingSoftware:
    """What the training software does well.

    `framework`: what it is to the memory, by its id. `fused`: norms and activations
    run as fused kernels; `fused_loss`: the loss does. `graphs`: the many small kernels
    of routed experts are launched without waiting for the host.
    `older_attention`: attention kernels of the generation before. `written_scores`:
    attention of before FlashAttention, whose scores go through the memory.
    """

    id: str
    label: str
    framework: str = "megatron"
    fused: bool = True
    fused_loss: bool = True
    graphs: bool = False
    older_attention: bool = False
    written_scores: bool = False


SOFTWARE: dict[str, TrainingSoftware] = {
    row["id"]: TrainingSoftware(**row)
    for row in data_files.load_toml("training_software.toml")["software"]
}


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingPlan:
    """One layout of a training step.

    Degrees of tensor, pipeline, data, context and expert parallelism; `pieces` of
    the model per pipeline stage; `sequence` length [token]; `micro_batch`
    sequences at once and `micro_batches` of them per step and replica.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    pieces: int = 1
    sequence: int = 4096
    micro_batch: int = 1
    micro_batches: int = 1
    number_format: str = "bf16"
    recompute: Recompute = "none"
    zero: int = 1
    sequence_parallel: bool = True
    software: TrainingSoftware = SOFTWARE["tuned"]
    gradient_bytes: int = 2

    @property
    def gpus(self) -> int:
        """Accelerators of the job: t·p·d·c."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def global_batch(self) -> int:
        """Sequences per optimizer step."""
        return self.data * self.micro_batch * self.micro_batches

    @property
    def tokens(self) -> int:
        """Tokens per optimizer step."""
        return self.global_batch * self.sequence


def local_parameters(model: Architecture, plan: TrainingPlan) -> float:
    """Parameters one GPU works on, before ZeRO shards them [parameter].

    (N − N_routed) / (t·p) + N_routed / (e·p), experts not split further.
    """
    shared = (model.parameters - model.routed_parameters) / plan.tensor
    routed = model.routed_parameters / max(plan.expert, plan.tensor)
    return (shared + routed) / plan.pipeline


def balanced(model: Architecture, plan: TrainingPlan) -> bool:
    """Whether room for embedding and head is left among the stages.

    126 layers on 16 stages leave two places of 128 free: then the stage with the
    head holds fewer layers, and none waits for it.
    """
    chunks = plan.pipeline * plan.pieces
    return 1 <= -model.layers % chunks <= FREE_PLACES


# Embedding, head and a layer that predicts a further token.
FREE_PLACES = 3


def layers_per_stage(model: Architecture, plan: TrainingPlan) -> float:
    """Layers of the fullest pipeline stage, whose chunks are of equal length."""
    if balanced(model, plan):
        return model.layers / plan.pipeline
    chunks = plan.pipeline * plan.pieces
    return float(math.ceil(model.layers / chunks) * plan.pieces)


@functools.cache
def usual_states() -> BytesPerParameter:
    """Mixed precision with Adam."""
    return recipe("adamw", "bf16-mixed")


def memory_per_gpu(
    model: Architecture, plan: TrainingPlan, states: BytesPerParameter | None = None
) -> float:
    """Bytes on a GPU of the fullest pipeline stage [B]; see `load_of`."""
    return load_of(model, plan, states).total


def load_of(
    model: Architecture, plan: TrainingPlan, states: BytesPerParameter | None = None
) -> StageMemory:
    """What fills a GPU of the fullest pipeline stage.

    Weights, gradients and optimizer as ZeRO divides them, activations in flight,
    logits and overhead.

    Where:
        model: what is trained.
        plan: the layout.
        states: bytes per parameter; mixed precision with Adam where none is given.
    """
    loads = stage_loads(
        model,
        layout_of(plan),
        step_of(plan),
        states or usual_states(),
        usual_overhead(plan.gpus),
    )
    return fullest_stage(loads)


def layout_of(plan: TrainingPlan) -> ParallelLayout:
    """The degrees of a plan as the memory sees them."""
    return ParallelLayout(
        gpus=plan.gpus,
        tensor=plan.tensor,
        pipeline=plan.pipeline,
        context=plan.context,
        expert=plan.expert,
        virtual=plan.pieces,
        zero=plan.zero,
        sequence_parallel=plan.sequence_parallel,
    )


def step_of(plan: TrainingPlan) -> TrainingStep:
    """The step of a plan as the memory sees it."""
    return TrainingStep(
        sequence=plan.sequence,
        micro_batch=plan.micro_batch,
        micro_batches=plan.micro_batches,
        recompute=plan.recompute,
        framework=FRAMEWORKS[plan.software.framework],
        fused_loss=plan.software.fused_loss,
    )
