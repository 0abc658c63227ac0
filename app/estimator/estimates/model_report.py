"""`model`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.model import ModelInputs, requested_model
from app.estimator.formula_steps import StepBuilder, format_term, format_training_flops
from app.estimator.memory.kv_cache import elements_per_token
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import weights_words
from app.estimator.models.number_formats import PUBLISHED, weight_table
from app.estimator.models.vision_tower import VisionTower
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    Verdict,
    outputs_by_name,
)
from app.estimator.training.flops import flops_per_token, predicting_flops
from app.estimator.units import format_number, format_value

OUTPUTS = (
    Output("parameters", "Parameters", "parameter"),
    Output("active_parameters", "Active for each token", "parameter"),
    Output("active_without_table", "Active without the input table", "parameter"),
    Output("predicting_parameters", "In multi-token prediction", "parameter"),
    Output("tower_parameters", "In the vision tower", "parameter"),
    Output("layers", "Layers", "layer"),
    Output("hidden", "Width"),
    Output("heads", "Query heads"),
    Output("kv_heads", "KV heads"),
    Output("head_dim", "Width of a head"),
    Output("mlp_width", "Width of the MLP"),
    Output("vocabulary", "Vocabulary"),
    Output("experts", "Experts of a layer"),
    Output("experts_per_token", "Experts for each token"),
    Output("forward_flops", "Forward, per token", "FLOP"),
    Output("training_flops", "Training, per token", "FLOP"),
    Output("weights", "Weights in BF16", "B", better="less"),
    Output("kv_per_token", "KV cache per token in BF16", "B", better="less"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "training-versus-inference")


def build_verdict(model: Architecture) -> Verdict:
    """Return the number of parameters, and of active parameters per token."""
    total = _short_count(model.parameters)
    kind = f"{model.layers} layers of width {format_number(model.hidden)}"
    if model.is_routed:
        active = _short_count(model.active_parameters)
        text = f"{active} of them work on each token; {kind}."
    else:
        text = f"All of them work on each token; {kind}."
    if published := weights_words(model, PUBLISHED, ""):
        size = format_value(weight_table(model, PUBLISHED).total, "B")
        text = f"{text} {published.removesuffix('.')}, {size}."
    return Verdict("info", f"{total} parameters.", text)


def _short_count(count: float) -> str:
    """Write a count as `70.6 billion`.

    >>> _short_count(70553706496)
    '70.6 billion'
    """
    for factor, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= factor:
            return f"{format_number(round(count / factor, 1))} {word}"
    return format_number(count)


def build_figures(model: Architecture, training: float) -> tuple[Figure, ...]:
    """Return counts of the architecture; FLOPs are per token [FLOP]."""
    cache = 2.0 * elements_per_token(model, 1, 2.0)
    return (
        Figure(_OUT["parameters"], model.parameters, primary=True),
        Figure(_OUT["active_parameters"], model.active_parameters),
        Figure(
            _OUT["active_without_table"],
            model.active_parameters - model.embedding_parameters,
        ),
        Figure(_OUT["predicting_parameters"], model.predicting_parameters),
        Figure(_OUT["tower_parameters"], model.tower_parameters),
        Figure(_OUT["layers"], model.layers),
        Figure(_OUT["hidden"], model.hidden),
        Figure(_OUT["heads"], model.heads),
        Figure(_OUT["kv_heads"], model.kv_heads),
        Figure(_OUT["head_dim"], model.head_dim),
        Figure(_OUT["mlp_width"], model.mlp_width),
        Figure(_OUT["vocabulary"], model.vocabulary),
        Figure(_OUT["experts"], model.experts),
        Figure(_OUT["experts_per_token"], model.experts_per_token),
        Figure(_OUT["forward_flops"], training / 3),
        Figure(_OUT["training_flops"], training),
        Figure(_OUT["weights"], 2.0 * model.loaded_parameters),
        Figure(_OUT["kv_per_token"], cache),
    )


def build_steps(model: Architecture, training: float) -> tuple[FormulaStep, ...]:
    """Return the steps: parameters by part, active parameters, FLOPs."""
    parts = model.parts()
    summed = " + ".join(format_term(count) for count in parts.values())
    added = " + ".join(parts)
    formula = "6 × weights that multiply a token + causal attention"
    numbers = format_training_flops(model, training)
    return (
        _WORKING.line("parameters", added, summed, model.parameters, "shape"),
        *((_active_step(model),) if model.is_routed else ()),
        *((_tower_step(model.tower),) if model.tower else ()),
        *((_weights_step(model),) if model.tower else ()),
        _WORKING.line("training_flops", formula, numbers, training, "megatron-2021"),
    )


def _active_step(model: Architecture) -> FormulaStep:
    numbers = (
        f"{format_term(model.parameters)} − "
        f"{format_term(model.routed_parameters)} × "
        f"(1 − {format_term(model.experts_per_token)} ÷ {model.experts})"
    )
    formula = "all − those of experts × (1 − experts per token ÷ experts)"
    return _WORKING.line(
        "active_parameters",
        formula,
        numbers,
        model.active_parameters,
        "deepseek-v2",
        label="Active parameters",
        topic="parallelism",
    )


def _tower_step(tower: VisionTower) -> FormulaStep:
    numbers = f"{format_term(tower.encoder)} + {format_term(tower.projector)}"
    formula = "tower + projector"
    return _WORKING.line(
        "tower_parameters",
        formula,
        numbers,
        tower.parameters,
        "shape",
        label="Vision tower",
    )


def _weights_step(model: Architecture) -> FormulaStep:
    every = (model.parameters, model.tower_parameters)
    numbers = f"({' + '.join(format_term(count) for count in every)}) × 2 B"
    formula, value = "(parameters + vision tower) × 2 B", 2.0 * sum(every)
    return _WORKING.line("weights", formula, numbers, value, "shape", topic="number-formats")


def build_parts_table(model: Architecture) -> ResultTable:
    """Return the parameters by part of the model."""
    rows = tuple(
        (
            "MLP" if part == "mlp" else part[:1].upper() + part[1:],
            (float(count), "parameter"),
            format_value(count / model.parameters, "%"),
        )
        for part, count in model.parts().items()
    )
    return ResultTable("Parameters by part", ("Part", "Parameters", "Share"), rows)


def build_shape_table(model: Architecture) -> ResultTable:
    """Return the layers by kind."""
    kinds: dict[str, int] = {}
    for layer, number in model.runs:
        kind = layer.mixer.kind
        if layer.mixer.window:
            kind = f"{kind}, window {format_number(layer.mixer.window)}"
        kind += ", experts" if layer.mlp.is_routed else ""
        kinds[kind] = kinds.get(kind, 0) + number
    rows = tuple((kind, (float(n), "layer")) for kind, n in kinds.items())
    return ResultTable("Layers by kind", ("Kind", "Layers"), rows)


def build_notes(model: Architecture, sequence: int) -> tuple[str, ...]:
    """Return the conventions in which published counts may differ."""
    notes = []
    if model.tied:
        notes.append("The output head is the input table, counted once.")
    if model.is_routed:
        notes.append(
            "Active counts embeddings, router and shared experts; some model cards "
            "leave the input table out."
        )
    if model.predictors:
        ahead = format_value(predicting_flops(model, sequence), "FLOP")
        notes.append(
            "Multi-token prediction is counted beside the model; training with it "
            f"takes {ahead} more for each token."
        )
    if model.encoder:
        notes.append("Layers and heads are those of the decoder.")
    return tuple(notes)


def estimate(inputs: ModelInputs) -> Estimate:
    """Count parameters by part, FLOPs per token and cache per token."""
    model = requested_model(inputs)
    training = flops_per_token(model, inputs.sequence)
    return Estimate(
        name="model",
        verdict=build_verdict(model),
        figures=build_figures(model, training),
        steps=build_steps(model, training),
        tables=(build_parts_table(model), build_shape_table(model)),
        notes=build_notes(model, inputs.sequence),
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
