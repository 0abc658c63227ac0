"""The estimate `model`: what a model consists of, counted from its shape."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.model.asked import ModelInputs
from app.estimator.estimates.model.compute import model_of
from app.estimator.estimates.model.words import (
    OUTPUTS,
    figures,
    notes,
    parts,
    shape,
    steps,
    verdict,
)
from app.estimator.registry import EstimateSpec
from app.estimator.timing.flops import flops_per_token


def estimate(asked: ModelInputs) -> Estimate:
    """Count parameters by part, operations per token and cache per token."""
    model = model_of(asked)
    training = flops_per_token(model, asked.sequence)
    return Estimate(
        name="model",
        verdict=verdict(model),
        figures=figures(model, training),
        steps=steps(model, training),
        tables=(parts(model), shape(model)),
        notes=notes(model, asked.sequence),
    )


ENTRY = EstimateSpec(
    name="model",
    title="Model",
    summary="Parameters by part, operations and cache per token, from a name or file.",
    group="Models",
    inputs=ModelInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("parameters", "active_parameters", "weights"),
    topic="training-versus-inference",
)
