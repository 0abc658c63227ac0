"""The estimate `weights`: what a model takes in each number format."""

from app.estimator.estimate import Estimate, Figure, Verdict
from app.estimator.estimates.weights.asked import Weights
from app.estimator.estimates.weights.compute import Found
from app.estimator.estimates.weights.words import bar, notes, steps, table
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models import gguf
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import FORMATS, weight_table
from app.estimator.registry import Entry, Output
from app.estimator.shared_inputs import refuse
from app.estimator.units import format_number, format_value

_MIXTURE = {f"gguf-{name.lower().replace('_', '-')}": name for name in gguf.MIXTURES}


def estimate(asked: Weights) -> Estimate:
    """Bytes of all tensors: those in the format, and those that are not."""
    model = find_model(asked.model)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    found = _find(model, asked)
    effective = 8 * found.total / model.parameters
    return Estimate(
        name="weights",
        verdict=Verdict(
            "info",
            f"{format_value(found.total, 'B')}.",
            f"{model.name} in {_label(asked.weights)}: "
            f"{format_number(effective)} bits for each parameter.",
        ),
        figures=(
            Figure("total", "All weights", found.total, "B", primary=True),
            Figure("quantised", "In the format", found.quantised, "B"),
            Figure("rest", "Kept wider", found.rest, "B"),
            Figure("per_gpu", "On one GPU", found.per_gpu, "B"),
            Figure("bits_per_parameter", "Bits per parameter", effective),
            Figure("saved", "Saved against BF16", 1 - found.total / _bf16(model), "%"),
        ),
        steps=steps(model, asked, found, effective),
        pictures=(bar(found),),
        tables=(table(model),),
        notes=notes(asked),
    )


def _find(model: Architecture, asked: Weights) -> Found:
    mixture = _MIXTURE.get(asked.weights)
    gpus = asked.tensor_parallel
    if mixture:
        total = gguf.file_bytes(model, mixture)
        return Found(total, total, 0.0, total / gpus, model.parameters)
    table = weight_table(model, asked.weights)
    form = FORMATS[asked.weights]
    covered = model.parameters if form.covers == "all" else table.quantised
    quantised = covered * form.bits / 8
    return Found(
        table.total, quantised, table.total - quantised, table.per_gpu(gpus), covered
    )


def _bf16(model: Architecture) -> float:
    return 2.0 * model.parameters


def _label(name: str) -> str:
    return FORMATS[name].label if name in FORMATS else f"GGUF {_MIXTURE[name]}"


ENTRY = Entry(
    name="weights",
    title="Weights",
    summary="Bytes of a model by number format, with the overhead of its scales.",
    group="Models",
    inputs=Weights,
    compute=estimate,
    outputs=(
        Output("total", "All weights", "B"),
        Output("quantised", "In the format", "B"),
        Output("rest", "Kept wider", "B"),
        Output("per_gpu", "On one GPU", "B"),
        Output("bits_per_parameter", "Bits per parameter", ""),
        Output("saved", "Saved against BF16", "%"),
    ),
    topic="number-formats",
)
