"""Whether a training plan fits in memory, in the words of the step it times."""

import functools

from app.estimator.memory.frameworks import FRAMEWORKS
from app.estimator.memory.layouts import ParallelLayout
from app.estimator.memory.states import BytesPerParameter, recipe
from app.estimator.memory.training import (
    StageMemory,
    TrainingStep,
    fullest_stage,
    stage_loads,
    usual_overhead,
)
from app.estimator.models.architecture import Architecture
from app.estimator.timing.training_plan import TrainingPlan


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
