"""Layouts of a training run that cannot be, and what is impossible about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.shared_inputs import refuse

if TYPE_CHECKING:  # the estimate imports this module
    from app.estimator.estimates.training_time.training_time import TrainingTime
    from app.estimator.hardware.accelerators import Accelerator
    from app.estimator.models.architecture import Architecture


def check(model: Architecture, asked: TrainingTime, gpu: Accelerator) -> None:
    """Refuse layouts that cannot be, with what is impossible about them."""
    if gpu.peak("bf16") is None or gpu.memory_bandwidth is None or not gpu.memory:
        message = f"Rates and memory of the {gpu.name} are not all known."
        raise refuse("gpu", asked.gpu, message)
    if gpu.peak(asked.number_format) is None:
        message = f"The {gpu.name} does not compute in {asked.number_format.upper()}."
        raise refuse("number_format", asked.number_format, message)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    stages = asked.pipeline_parallel * asked.interleave
    if stages > model.layers:
        message = f"{model.layers} layers cannot fill {stages} chunks."
        raise refuse("pipeline_parallel", asked.pipeline_parallel, message)
    _check_groups(model, asked)


def _check_groups(model: Architecture, asked: TrainingTime) -> None:
    group = asked.tensor_parallel * asked.pipeline_parallel * asked.context_parallel
    if group > asked.gpus or asked.gpus % group:
        message = (
            f"{asked.gpus} GPUs cannot be divided into groups of {group} "
            "(tensor × pipeline × context)."
        )
        raise refuse("gpus", asked.gpus, message)
    experts = asked.expert_parallel
    if experts > 1 and (not model.is_routed or model.experts % experts):
        count = model.experts if model.is_routed else "no"
        message = f"{model.name} has {count} experts to divide over {experts} GPUs."
        raise refuse("expert_parallel", experts, message)
    if experts > asked.gpus // asked.pipeline_parallel:
        message = f"Only {asked.gpus // asked.pipeline_parallel} GPUs share a stage."
        raise refuse("expert_parallel", experts, message)
