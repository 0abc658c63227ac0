"""The estimate `weights`: what a model takes in each number format."""

from app.estimator.estimate import Estimate, Verdict
from app.estimator.estimates.weights.asked import WeightsInputs
from app.estimator.estimates.weights.compute import MIXTURE, find
from app.estimator.estimates.weights.words import (
    OUTPUTS,
    bar,
    figures,
    notes,
    steps,
    table,
)
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import format_of
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec
from app.estimator.shared_inputs import input_error
from app.estimator.units import format_number, format_value


def estimate(asked: WeightsInputs) -> Estimate:
    """Bytes of all tensors: those in the format, and those that are not."""
    model = find_model(asked.model)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise input_error("tensor_parallel", asked.tensor_parallel, problem)
    found = find(model, asked)
    return Estimate(
        name="weights",
        verdict=Verdict(
            "info",
            f"{format_value(found.total, 'B')}.",
            f"{model.name} in {_label(model, asked.weights)}: "
            f"{format_number(found.bits)} bits for each parameter.",
        ),
        figures=figures(found),
        steps=steps(model, asked, found),
        pictures=(bar(found),),
        tables=(table(model),),
        notes=notes(model, asked),
    )


def _label(model: Architecture, name: str) -> str:
    return f"GGUF {MIXTURE[name]}" if name in MIXTURE else format_of(model, name).label


ENTRY = EstimateSpec(
    name="weights",
    title="Weights",
    summary="Bytes of a model by number format, with the overhead of its scales.",
    group="Models",
    inputs=WeightsInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("total", "per_gpu", "saved"),
    topic="number-formats",
)
