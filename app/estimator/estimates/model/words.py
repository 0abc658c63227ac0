"""The words, figures and working of `model`."""

from app.estimator.estimate import Figure, Step, Table, Verdict
from app.estimator.estimates.model.asked import Model
from app.estimator.models.architecture import Architecture
from app.estimator.models.families import is_known
from app.estimator.units import format_number, format_value


def verdict(model: Architecture) -> Verdict:
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


def figures(model: Architecture, training: float) -> tuple[Figure, ...]:
    cache = 2.0 * model.cache_elements
    return (
        Figure("parameters", "Parameters", model.parameters, "parameter", primary=True),
        Figure(
            "active_parameters",
            "Active for each token",
            model.active_parameters,
            "parameter",
        ),
        Figure(
            "active_without_table",
            "Active without the input table",
            model.active_parameters - model.embedding_parameters,
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


def steps(model: Architecture, asked: Model, training: float) -> tuple[Step, ...]:
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


def parts(model: Architecture) -> Table:
    rows = tuple(
        (
            part[:1].upper() + part[1:],
            (float(count), "parameter"),
            format_value(count / model.parameters, "%"),
        )
        for part, count in model.parts().items()
    )
    return Table("Parameters by part", ("Part", "Parameters", "Share"), rows)


def shape(model: Architecture) -> Table:
    kinds: dict[str, int] = {}
    for layer, number in model.runs:
        kind = layer.mixer.kind
        if layer.mixer.window:
            kind = f"{kind}, window {format_number(layer.mixer.window)}"
        kind += ", experts" if layer.mlp.is_routed else ""
        kinds[kind] = kinds.get(kind, 0) + number
    rows = tuple((kind, (float(n), "layer")) for kind, n in kinds.items())
    return Table("Layers by kind", ("Kind", "Layers"), rows)


def notes(model: Architecture) -> tuple[str, ...]:
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
