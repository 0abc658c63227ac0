"""How a training run is laid out: parallelism, batch, precision, software."""

import dataclasses
import math
from typing import Literal

from app.estimator import catalogue
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
    for row in catalogue.load_toml("training_software.toml")["software"]
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
