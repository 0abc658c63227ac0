"""The estimate `quantization`: what a narrower format changes, and what it does not."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.quantization.asked import Quantization
from app.estimator.estimates.quantization.compute import Side
from app.estimator.estimates.quantization.words import (
    OUTPUTS,
    figures,
    notes,
    rate_used,
    steps,
    table,
    verdict,
)
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import FORMATS, weight_table
from app.estimator.registry import Entry
from app.estimator.shared_inputs import refuse


def estimate(asked: Quantization) -> Estimate:
    """Compare memory, decode floor and peak rate of two formats."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    if gpu.lacks(FORMATS[asked.weights].math) and FORMATS[asked.weights].math == "fp8":
        raise refuse("weights", asked.weights, f"The {gpu.name} cannot compute in FP8.")
    old = _side(model, asked, gpu, asked.before)
    new = _side(model, asked, gpu, asked.weights)
    return Estimate(
        name="quantization",
        verdict=verdict(gpu, old, new),
        figures=figures(gpu, old, new),
        steps=steps(model, asked, gpu, new),
        tables=(table(gpu, old, new),),
        notes=notes(gpu, new),
    )


def _side(
    model: Architecture, asked: Quantization, gpu: Accelerator, name: str
) -> Side:
    table = weight_table(model, name)
    form = FORMATS[name]
    per_gpu = table.per_gpu(asked.tensor_parallel)
    return Side(
        form=form,
        total=table.total,
        per_gpu=per_gpu,
        floor=_floor(model, asked, gpu, per_gpu),
        peak=gpu.peak(rate_used(gpu, form)),
    )


def _floor(
    model: Architecture, asked: Quantization, gpu: Accelerator, per_gpu: float
) -> float | None:
    """Time to read the active weights once: a token of one sequence at best [s]."""
    if gpu.memory_bandwidth is None:
        return None
    active = model.active_parameters / model.parameters
    return per_gpu * active / (gpu.memory_bandwidth * asked.bandwidth_share)


ENTRY = Entry(
    name="quantization",
    title="Quantization",
    summary="What a narrower format saves and speeds up, and what it does not promise.",
    group="Models",
    inputs=Quantization,
    compute=estimate,
    outputs=OUTPUTS,
    topic="number-formats",
)
