"""The estimate `training-memory`: what training takes on each GPU and stage."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.training_memory.asked import TrainingMemoryInputs
from app.estimator.estimates.training_memory.compute import (
    TrainingMemoryResult,
    check,
    fewest_gpus,
    layout_of,
    overhead_of,
    remedies,
    step_of,
    tuning_asked,
)
from app.estimator.estimates.training_memory.words import OUTPUTS, answer
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.memory.states import recipe
from app.estimator.memory.training import fullest_stage, stage_loads
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: TrainingMemoryInputs) -> Estimate:
    """Weigh states, activations, logits and overhead against one GPU's memory."""
    model = find_model(asked.model)
    gpu = find_accelerator(asked.gpu)
    layout = layout_of(asked)
    check(model, asked, layout, gpu)
    each = recipe(asked.optimizer, asked.precision)
    tuning = tuning_asked(model, asked)
    loads = stage_loads(model, layout, step_of(asked), each, overhead_of(asked), tuning=tuning)
    limit = gpu.capacity
    case = TrainingMemoryResult(
        model=model,
        asked=asked,
        gpu=gpu,
        layout=layout,
        recipe=each,
        tuning=tuning,
        loads=loads,
        fewest=fewest_gpus(layout, loads, limit),
        remedies=remedies(model, asked) if fullest_stage(loads).total > limit else (),
    )
    return answer(case)


ENTRY = EstimateSpec(
    name="training-memory",
    title="Training memory",
    summary="Whether training fits, part by part and stage by stage.",
    group="Memory",
    inputs=TrainingMemoryInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("per_gpu", "states", "fewest_gpus"),
    topic="training-memory",
)
