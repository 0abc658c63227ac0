"""The estimate `model`: what a model consists of, counted from its shape."""

from app.estimator.estimate import Estimate
from app.estimator.estimates.model.asked import Model
from app.estimator.estimates.model.compute import model_of
from app.estimator.estimates.model.words import (
    figures,
    notes,
    parts,
    shape,
    steps,
    verdict,
)
from app.estimator.registry import Entry, Output
from app.estimator.timing.flops import flops_per_token


def estimate(asked: Model) -> Estimate:
    """Count parameters by part, operations per token and cache per token."""
    model = model_of(asked)
    training = flops_per_token(model, asked.sequence)
    return Estimate(
        name="model",
        verdict=verdict(model),
        figures=figures(model, training),
        steps=steps(model, asked, training),
        tables=(parts(model), shape(model)),
        notes=notes(model),
    )


ENTRY = Entry(
    name="model",
    title="Model",
    summary="Parameters by part, operations and cache per token, from a name or file.",
    group="Models",
    inputs=Model,
    compute=estimate,
    outputs=(
        Output("parameters", "Parameters", "parameter"),
        Output("active_parameters", "Active for each token", "parameter"),
        Output("active_without_table", "Active without the input table", "parameter"),
        Output("layers", "Layers", "layer"),
        Output("hidden", "Width", ""),
        Output("heads", "Query heads", ""),
        Output("kv_heads", "KV heads", ""),
        Output("head_dim", "Width of a head", ""),
        Output("mlp_width", "Width of the MLP", ""),
        Output("vocabulary", "Vocabulary", ""),
        Output("experts", "Experts of a layer", ""),
        Output("experts_per_token", "Experts for each token", ""),
        Output("forward_flops", "Forward, per token", "FLOP"),
        Output("training_flops", "Training, per token", "FLOP"),
        Output("weights", "Weights in BF16", "B"),
        Output("kv_per_token", "KV cache per token in BF16", "B"),
    ),
    topic="training-versus-inference",
)
