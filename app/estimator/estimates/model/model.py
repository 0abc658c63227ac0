"""The estimate `model`: what a model consists of, counted from its shape."""

import dataclasses
import functools
import json

from app.estimator.estimate import Estimate, Figure, Step, Table, Verdict
from app.estimator.inputs import ask
from app.estimator.models.architecture import (
    Architecture,
    UnreadableConfig,
    find_model,
    from_config,
)
from app.estimator.models.families import is_known
from app.estimator.registry import Entry, Output
from app.estimator.shared_inputs import ask_model, refuse
from app.estimator.timing.flops import flops_per_token
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """Which model is asked about."""

    model: str = ask_model()
    config: str = ask(
        "",
        "config.json",
        kind="text",
        maximum=200_000,
        help="Paste a configuration of the Hugging Face Hub to read that model.",
        group="Model",
        topic="training-versus-inference",
    )
    sequence: int = ask(
        4096,
        "Sequence",
        kind="count",
        unit="token",
        minimum=1,
        maximum=100_000_000,
        help="Length over which attention is counted in the operations.",
        group="Load",
        topic="training-versus-inference",
    )


def compute(asked: Model) -> Estimate:
    """Count parameters by part, operations per token and cache per token."""
    pasted = asked.config.strip()
    model = read_config(pasted) if pasted else find_model(asked.model)
    training = flops_per_token(model, asked.sequence)
    return Estimate(
        name="model",
        verdict=_verdict(model),
        figures=_figures(model, training),
        steps=_steps(model, asked, training),
        tables=(_parts(model), _shape(model)),
        notes=_notes(model),
    )


# What arithmetic on sizes of the wrong kind can raise.
_CONTRADICTIONS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


# A text of 200,000 characters makes a model of 3 MB.
@functools.lru_cache(maxsize=8)
def read_config(text: str) -> Architecture:
    """Read a pasted `config.json`; BadInputs says what is wrong with it."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = "The text of config.json is not JSON; paste the whole file."
        raise refuse("config", text[:40], message) from None
    if not isinstance(config, dict):
        message = "config.json holds a list or a word; paste the whole file."
        raise refuse("config", text[:40], message)
    try:
        return from_config(config)
    except UnreadableConfig as error:
        raise refuse("config", text[:40], str(error)) from error
    except _CONTRADICTIONS as error:
        message = f"This config.json contradicts itself: {error}."
        raise refuse("config", text[:40], message) from error


def _verdict(model: Architecture) -> Verdict:
    total = _short(model.parameters)
    kind = f"{model.layers} layers of width {format_number(model.hidden)}"
    if model.is_routed:
        active = _short(model.active_parameters)
        text = f"{active} of them work on each token; {kind}."
    else:
        text = f"All of them work on each token; {kind}."
    return Verdict("info", f"{total} parameters.", text)


def _short(count: float) -> str:
    """Write a count as `70.6 billion`.

    >>> _short(70553706496)
    '70.6 billion'
    """
    for factor, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= factor:
            return f"{format_number(round(count / factor, 1))} {word}"
    return format_number(count)


def _figures(model: Architecture, training: float) -> tuple[Figure, ...]:
    cache = 2.0 * model.cache_elements
    return (
        Figure("parameters", "Parameters", model.parameters, "parameter", primary=True),
        Figure(
            "active_parameters",
            "Active for each token",
            model.active_parameters,
            "parameter",
        ),
        Figure("layers", "Layers", model.layers, "layer"),
        Figure("hidden", "Width", model.hidden),
        Figure("heads", "Query heads", model.heads),
        Figure("kv_heads", "KV heads", model.kv_heads),
        Figure("head_dim", "Width of a head", model.head_dim),
        Figure("mlp_width", "Width of the MLP", model.mlp_width),
        Figure("vocabulary", "Vocabulary", model.vocabulary),
        Figure("experts", "Experts of a layer", model.experts),
        Figure("experts_per_token", "Experts for each token", model.experts_per_token),
        Figure("forward_flops", "Forward, per token", training / 3, "FLOP"),
        Figure("training_flops", "Training, per token", training, "FLOP"),
        Figure("weights", "Weights in BF16", 2.0 * model.parameters, "B"),
        Figure("kv_per_token", "KV cache per token in BF16", cache, "B"),
    )


_TOPIC = "training-versus-inference"


def _steps(model: Architecture, asked: Model, training: float) -> tuple[Step, ...]:
    parts = model.parts()
    summed = " + ".join(format_number(count) for count in parts.values())
    whole = ("Parameters", " + ".join(parts), summed, model.parameters, "parameter")
    formula = "6 × (active − input table) + attention, causal"
    numbers = (
        f"{format_number(model.active_parameters)} active, sequence of "
        f"{format_number(asked.sequence)}"
    )
    operations = ("Training, per token", formula, numbers, training, "FLOP")
    return (
        Step(*whole, "shape", _TOPIC, "parameters"),
        *((_active_step(model),) if model.is_routed else ()),
        Step(*operations, "megatron-2021", _TOPIC, "training_flops"),
    )


def _active_step(model: Architecture) -> Step:
    numbers = (
        f"{format_number(model.parameters)} − "
        f"{format_number(model.routed_parameters)} × "
        f"(1 − {format_number(model.experts_per_token)}/{model.experts})"
    )
    formula, value = "N − N_routed × (1 − k/E)", model.active_parameters
    line = ("Active parameters", formula, numbers, value, "parameter")
    return Step(*line, "deepseek-v2", "parallelism", "active_parameters")


def _parts(model: Architecture) -> Table:
    rows = tuple(
        (
            part[:1].upper() + part[1:],
            (float(count), "parameter"),
            format_value(count / model.parameters, "%"),
        )
        for part, count in model.parts().items()
    )
    return Table("Parameters by part", ("Part", "Parameters", "Share"), rows)


def _shape(model: Architecture) -> Table:
    kinds: dict[str, int] = {}
    for layer, number in model.runs:
        kind = layer.mixer.kind
        if layer.mixer.window:
            kind = f"{kind}, window {format_number(layer.mixer.window)}"
        kind += ", experts" if layer.mlp.is_routed else ""
        kinds[kind] = kinds.get(kind, 0) + number
    rows = tuple((kind, (float(n), "layer")) for kind, n in kinds.items())
    return Table("Layers by kind", ("Kind", "Layers"), rows)


def _notes(model: Architecture) -> tuple[str, ...]:
    notes = []
    if model.tied:
        notes.append("The output head is the input table, counted once.")
    if model.is_routed:
        notes.append(
            "Active counts embeddings, router and shared experts; some model cards "
            "leave the input table out."
        )
    if model.encoder:
        notes.append("Layers and heads are those of the decoder.")
    if model.family and not is_known(model.family):
        notes.append(
            f"The family “{model.family}” is not known; it was read as Llama-shaped."
        )
    return tuple(notes)


ENTRY = Entry(
    name="model",
    title="Model",
    summary="Parameters by part, operations and cache per token, from a name or file.",
    group="Models",
    inputs=Model,
    compute=compute,
    outputs=(
        Output("parameters", "Parameters", "parameter"),
        Output("active_parameters", "Active for each token", "parameter"),
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
