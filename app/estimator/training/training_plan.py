"""Parallelism plan of a training run, and its memory."""

import dataclasses
import math
from typing import Literal

from app.estimator import data_files
from app.estimator.memory.model_states import (
    FRAMEWORKS,
    BytesPerParameter,
    TrainedWeights,
    state_bytes_per_parameter,
)
from app.estimator.memory.parallel_layout import ParallelLayout
from app.estimator.memory.training_memory import (
    StageMemory,
    TrainingStep,
    default_overhead_bytes_per_gpu,
    memory_of_fullest_stage,
    peak_memory_by_distinct_stage,
)
from app.estimator.models.architecture import Architecture

Recompute = Literal["none", "selective", "operators", "full"]
RECOMPUTE_TEXTS = {
    "none": "no recomputation",
    "selective": "selective recomputation",
    "operators": "every second matrix product recomputed",
    "full": "full recomputation",
}


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingSoftware:
    """Properties of training software.

    `framework_id`: id of its memory behavior. The many small kernels of routed experts are launched
    ahead if they do not wait for the host. Attention kernels may be of the previous generation, or
    from before FlashAttention and write scores to memory.
    """

    id: str
    label: str
    framework_id: str = "megatron"
    fuses_norms_and_activations: bool = True
    fuses_loss: bool = True
    launches_experts_ahead_of_host: bool = False
    has_previous_attention_kernels: bool = False
    writes_attention_scores: bool = False


SOFTWARE: dict[str, TrainingSoftware] = {
    row["id"]: TrainingSoftware(**row)
    for row in data_files.load_toml("training_software.toml")["software"]
}


USUAL_SOFTWARE = "usual"
"""Stands for the software that models of this kind are usually trained in."""


def find_training_software(name: str, model: Architecture) -> TrainingSoftware:
    """Return the software with this id, or the usual one of the model.

    Dense models run as in compiled PyTorch, mixtures of experts as in the specialized
    software that they are trained with.
    """
    if name == USUAL_SOFTWARE:
        name = "tuned" if model.is_routed else "compiled"
    return SOFTWARE[name]


ALL_WEIGHTS = TrainedWeights()


@dataclasses.dataclass(frozen=True, slots=True)
class TrainingPlan:
    """One layout of a training step.

    Degrees of parallelism; `chunks_per_stage` of the model per pipeline stage; `micro_batch` sequences of
    `sequence` tokens at once, and `micro_batches` of them per step and replica.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    chunks_per_stage: int = 1
    sequence: int = 4096
    micro_batch: int = 1
    micro_batches: int = 1
    number_format: str = "bf16"
    recompute: Recompute = "none"
    zero: int = 1
    sequence_parallel: bool = True
    software: TrainingSoftware = SOFTWARE["tuned"]
    gradient_bytes: int = 2
    trained_weights: TrainedWeights = ALL_WEIGHTS

    @property
    def gpus(self) -> int:
        """Return the GPUs of the job: t·p·d·c."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def global_batch(self) -> int:
        """Return the sequences per optimizer step."""
        return self.data * self.micro_batch * self.micro_batches

    @property
    def tokens_per_step(self) -> int:
        return self.global_batch * self.sequence


def count_parameters_per_gpu_before_zero(model: Architecture, plan: TrainingPlan) -> float:
    """Parameters on one GPU before ZeRO sharding [parameter].

    (N − N_routed) / (t·p) + N_routed / (e·p), experts not split further.
    """
    shared = (model.parameters - model.routed_parameters) / plan.tensor
    routed = model.routed_parameters / max(plan.expert, plan.tensor)
    return (shared + routed) / plan.pipeline


def has_free_layer_places_for_head(
    model: Architecture, pipeline: int, chunks_per_stage: int
) -> bool:
    """Return whether the stages have free places for embedding and head.

    For example, 126 layers on 16 stages leave 2 of 128 places free. Then the stage with the
    head has fewer layers, and no stage waits for it.
    """
    return 1 <= -model.layers % (pipeline * chunks_per_stage) <= FREE_PLACES


# Embedding, head, and a layer for multi-token prediction.
FREE_PLACES = 3


def count_layers_of_fullest_stage(
    model: Architecture, pipeline: int, chunks_per_stage: int
) -> float:
    """Return the layers of the fullest pipeline stage, whose chunks are of equal length."""
    if has_free_layer_places_for_head(model, pipeline, chunks_per_stage):
        return model.layers / pipeline
    return float(math.ceil(model.layers / (pipeline * chunks_per_stage)) * chunks_per_stage)


def fullest_stage_memory(
    model: Architecture, plan: TrainingPlan, state_bytes: BytesPerParameter | None = None
) -> StageMemory:
    """Return the memory use of a GPU of the fullest pipeline stage.

    `state_bytes` are bytes per parameter; those of mixed precision with Adam by default.
    """
    loads = peak_memory_by_distinct_stage(
        model,
        parallel_layout_of_plan(plan),
        training_step_of_plan(plan),
        state_bytes or state_bytes_per_parameter(),
        default_overhead_bytes_per_gpu(plan.gpus),
        trained_weights=plan.trained_weights,
    )
    return memory_of_fullest_stage(loads)


def parallel_layout_of_plan(plan: TrainingPlan) -> ParallelLayout:
    return ParallelLayout(
        gpus=plan.gpus,
        tensor=plan.tensor,
        pipeline=plan.pipeline,
        context=plan.context,
        expert=plan.expert,
        chunks_per_stage=plan.chunks_per_stage,
        zero=plan.zero,
        sequence_parallel=plan.sequence_parallel,
    )


def training_step_of_plan(plan: TrainingPlan) -> TrainingStep:
    return TrainingStep(
        sequence=plan.sequence,
        micro_batch=plan.micro_batch,
        micro_batches=plan.micro_batches,
        recompute=plan.recompute,
        framework=FRAMEWORKS[
            "torchtune" if plan.trained_weights.are_adapters else plan.software.framework_id
        ],
        fused_loss=plan.software.fuses_loss,
    )
