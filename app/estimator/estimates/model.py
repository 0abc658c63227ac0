"""The estimate `model`: inputs, result, verdict, charts, and formula steps."""

import dataclasses

from app.estimator.common_inputs import LOAD, MODEL, impossible_input_error, model_input
from app.estimator.formula_steps import StepBuilder, format_term, training_flops_per_token_formula
from app.estimator.memory.kv_cache import cache_elements_per_token_ignoring_windows
from app.estimator.models.architecture import Architecture
from app.estimator.models.hf_config import UnreadableConfigError
from app.estimator.models.lookup import (
    build_model_from_pasted_config,
    describe_how_weights_are_counted,
    find_model,
)
from app.estimator.models.vision_tower import VisionTower
from app.estimator.models.weight_formats import PUBLISHED, weight_bytes_by_split
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    OutputSpec,
    ResultTable,
    Verdict,
    read_figures,
)
from app.estimator.training.flops import (
    prediction_module_training_flops_per_token,
    training_flops_per_token,
)
from app.estimator.units import format_count, format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class ModelInputs:
    model: str = model_input()
    config: str = MODEL.declare_input_field(
        "",
        "config.json",
        kind="text",
        maximum=200_000,
        help="Paste a configuration of the Hugging Face Hub to read that model.",
    )
    sequence: int = LOAD.declare_input_field(
        4096,
        "Sequence",
        unit="token",
        limits=(1, 100_000_000),
        help="Length over which attention is counted in the operations.",
        topic="training-versus-inference",
    )


def requested_model(inputs: ModelInputs) -> Architecture:
    """Return the chosen model; raises InvalidInputsError for an invalid configuration."""
    pasted = inputs.config.strip()
    if not pasted:
        return find_model(inputs.model)
    try:
        return build_model_from_pasted_config(pasted)
    except UnreadableConfigError as error:
        raise impossible_input_error("config", pasted[:40], str(error)) from error


@dataclasses.dataclass(frozen=True, slots=True)
class ModelResult:
    model: Architecture
    training_flops: float


def _model_output(
    name: str, label: str, unit: str = "", field: str = "", *, primary: bool = False
) -> OutputSpec[ModelResult]:
    def read(result: ModelResult) -> int:
        value: int = getattr(result.model, field or name)
        return value

    return OutputSpec(name, label, unit, read=read, primary=primary)


OUTPUTS: tuple[OutputSpec[ModelResult], ...] = (
    _model_output("parameters", "Parameters", "parameter", primary=True),
    _model_output("active_parameters", "Active for each token", "parameter"),
    OutputSpec(
        "active_without_table",
        "Active without the input table",
        "parameter",
        read=lambda r: r.model.active_parameters - r.model.embedding_parameters,
    ),
    _model_output(
        "predicting_parameters",
        "In multi-token prediction",
        "parameter",
        "prediction_module_parameters",
    ),
    _model_output("tower_parameters", "In the vision tower", "parameter"),
    _model_output("layers", "Layers", "layer"),
    _model_output("hidden", "Width"),
    _model_output("heads", "Query heads"),
    _model_output("kv_heads", "KV heads"),
    _model_output("head_dim", "Width of a head"),
    _model_output("mlp_width", "Width of the MLP"),
    _model_output("vocabulary", "Vocabulary"),
    _model_output("experts", "Experts of a layer"),
    _model_output("experts_per_token", "Experts for each token"),
    OutputSpec("forward_flops", "Forward, per token", "FLOP", read=lambda r: r.training_flops / 3),
    OutputSpec("training_flops", "Training, per token", "FLOP"),
    OutputSpec(
        "weights", "Weights in BF16", "B", "less", lambda r: 2.0 * r.model.loaded_parameters
    ),
    OutputSpec(
        "kv_per_token",
        "KV cache per token in BF16",
        "B",
        "less",
        lambda r: 2.0 * cache_elements_per_token_ignoring_windows(r.model, 1, 2.0),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "training-versus-inference")


def build_verdict(model: Architecture) -> Verdict:
    total = _format_count_in_words(model.parameters)
    shape_text = f"{format_count(model.layers, 'layer')} of width {format_number(model.hidden)}"
    if model.is_routed:
        active = _format_count_in_words(model.active_parameters)
        text = f"{model.name}: {active} of them work on each token; {shape_text}."
    else:
        text = f"{model.name}: all of them work on each token; {shape_text}."
    if published := describe_how_weights_are_counted(model, PUBLISHED, ""):
        size = format_value(weight_bytes_by_split(model, PUBLISHED).total_bytes, "B")
        text = f"{text} {published.removesuffix('.')}, {size}."
    return Verdict("info", f"{total} parameters.", text)


def _format_count_in_words(count: float) -> str:
    """Write a count as `70.6 billion`.

    >>> _format_count_in_words(70553706496)
    '70.6 billion'
    """
    for factor, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= factor:
            return f"{format_number(round(count / factor, 1))} {word}"
    return format_number(count)


def build_steps(model: Architecture, flops_per_token: float) -> tuple[FormulaStep, ...]:
    parts = model.parameters_by_part()
    sum_of_counts = " + ".join(format_term(count) for count in parts.values())
    sum_of_parts = " + ".join(parts)
    formula = "6 × weights that multiply a token + causal attention"
    numbers = training_flops_per_token_formula(model, flops_per_token)
    return (
        _STEPS.build_step("parameters", sum_of_parts, sum_of_counts, model.parameters, "shape"),
        *((_active_parameters_step(model),) if model.is_routed else ()),
        *((_vision_tower_step(model.tower),) if model.tower else ()),
        *((_weights_step(model),) if model.tower else ()),
        _STEPS.build_step("training_flops", formula, numbers, flops_per_token, "megatron-2021"),
    )


def _active_parameters_step(model: Architecture) -> FormulaStep:
    numbers = (
        f"{format_term(model.parameters)} − "
        f"{format_term(model.routed_parameters)} × "
        f"(1 − {format_term(model.experts_per_token)} ÷ {model.experts})"
    )
    formula = "all − those of experts × (1 − experts per token ÷ experts)"
    return _STEPS.build_step(
        "active_parameters",
        formula,
        numbers,
        model.active_parameters,
        "deepseek-v2",
        label="Active parameters",
        topic="parallelism",
    )


def _vision_tower_step(tower: VisionTower) -> FormulaStep:
    numbers = f"{format_term(tower.encoder_parameters)} + {format_term(tower.projector_parameters)}"
    formula = "tower + projector"
    return _STEPS.build_step(
        "tower_parameters", formula, numbers, tower.parameters, "shape", label="Vision tower"
    )


def _weights_step(model: Architecture) -> FormulaStep:
    parameter_counts = (model.parameters, model.tower_parameters)
    numbers = f"({' + '.join(format_term(count) for count in parameter_counts)}) × 2 B"
    formula, value = "(parameters + vision tower) × 2 B", 2.0 * sum(parameter_counts)
    return _STEPS.build_step("weights", formula, numbers, value, "shape", topic="number-formats")


def build_parameters_by_part_table(model: Architecture) -> ResultTable:
    rows = tuple(
        (
            "MLP" if part == "mlp" else part[:1].upper() + part[1:],
            (float(count), "parameter"),
            format_value(count / model.parameters, "%"),
        )
        for part, count in model.parameters_by_part().items()
    )
    return ResultTable("Parameters by part", ("Part", "Parameters", "Share"), rows)


def build_layer_kinds_table(model: Architecture) -> ResultTable:
    kinds: dict[str, int] = {}
    for layer, number in model.layer_counts:
        kind = layer.mixer.kind
        if layer.mixer.window_tokens:
            kind = f"{kind}, window {format_number(layer.mixer.window_tokens)}"
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
    if model.prediction_module_count:
        prediction_flops = format_value(
            prediction_module_training_flops_per_token(model, sequence), "FLOP"
        )
        notes.append(
            "Multi-token prediction is counted beside the model; training with it "
            f"takes {prediction_flops} more for each token."
        )
    if model.encoder_layers:
        notes.append("Layers and heads are those of the decoder.")
    return tuple(notes)


def estimate(inputs: ModelInputs) -> Estimate:
    model = requested_model(inputs)
    training = training_flops_per_token(model, inputs.sequence)
    return Estimate(
        name="model",
        verdict=build_verdict(model),
        figures=read_figures(OUTPUTS, ModelResult(model, training)),
        steps=build_steps(model, training),
        tables=(build_parameters_by_part_table(model), build_layer_kinds_table(model)),
        notes=build_notes(model, inputs.sequence),
    )


ENTRY = EstimateSpec(
    name="model",
    title="Model",
    summary="Parameters by part, operations and cache per token, from a name or file.",
    group="Models",
    inputs_type=ModelInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("parameters", "active_parameters", "weights"),
    topic="training-versus-inference",
)
