"""The estimate `quantization`: what a narrower format changes, and what it does not."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.quantization.asked import QuantizationInputs
from app.estimator.estimates.quantization.compute import check, side
from app.estimator.estimates.quantization.words import (
    OUTPUTS,
    figures,
    notes,
    steps,
    table,
    verdict,
)
from app.estimator.hardware.accelerators import find_accelerator
from app.estimator.models.lookup import find_model
from app.estimator.registry import EstimateSpec


def estimate(asked: QuantizationInputs) -> Estimate:
    """Compare memory, decode floor and peak rate of two formats."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    check(model, asked, gpu)
    old = side(model, asked, gpu, asked.before)
    new = side(model, asked, gpu, asked.weights)
    return Estimate(
        name="quantization",
        verdict=verdict(gpu, old, new),
        figures=figures(gpu, old, new),
        steps=steps(model, asked, gpu, new),
        tables=(table(gpu, old, new),),
        notes=notes(gpu, new),
    )


ENTRY = EstimateSpec(
    name="quantization",
    title="Quantization",
    summary="What a narrower format saves and speeds up, and what it does not promise.",
    group="Models",
    inputs=QuantizationInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("total", "decode_speedup", "peak_ratio"),
    topic="number-formats",
)
