"""The words, figures and picture of the estimate `inference-memory`."""

import dataclasses

from app.estimator.estimate import (
    Estimate,
    Figure,
    Output,
    Segment,
    StackedBar,
    Step,
    Table,
    by_name,
)
from app.estimator.estimates.inference_memory.asked import (
    GENERAL,
    TRANSFORMERS,
    InferenceMemory,
)
from app.estimator.estimates.inference_memory.changes import changes
from app.estimator.estimates.inference_memory.compute import Limits, Load, memory_of
from app.estimator.fitting import capacity_note, memory_verdict
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.memory.engines import ENGINES
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import CACHE_BITS, FORMATS, weight_table
from app.estimator.units import format_number, format_value

OUTPUTS = (
    Output("weights", "Weights", "B", better="less"),
    Output("kv_cache", "KV cache", "B", better="less"),
    Output("activations", "Activations", "B", better="less", modeled=True),
    Output("overhead", "Overhead", "B", better="less", modeled=True),
    Output("total", "In all", "B", better="less", modeled=True),
    Output("per_gpu", "On each GPU", "B", better="less", modeled=True),
    Output("free", "Free on each GPU", "B", better="more", modeled=True),
    Output("fits", "Fits", better="more"),
    Output("max_context", "Longest context", "token", better="more"),
    Output("max_concurrent", "Most sequences", "sequence", better="more"),
    Output("fewest_gpus", "Fewest GPUs", "GPU", better="less"),
    Output("cache_room", "Room for the cache on each GPU", "B", better="more"),
    Output(
        "cache_tokens",
        "Tokens that the cache holds",
        "token",
        better="more",
        modeled=True,
    ),
    Output("cache_blocks", "Blocks of the cache", modeled=True),
)
_OUT = by_name(OUTPUTS)


def answer(
    model: Architecture,
    asked: InferenceMemory,
    gpu: Accelerator,
    load: Load,
    limits: Limits,
) -> Estimate:
    """Put the load of one GPU into words, figures, a picture and its working."""
    whole, limit = memory_of(asked, gpu), limits.usable
    return Estimate(
        name="inference-memory",
        verdict=memory_verdict(
            load.total, limit, whole, asked.tensor_parallel, gpu.memory
        ),
        figures=_figures(asked, load, limits),
        steps=_steps(model, asked, gpu, load, limit),
        pictures=(_bar(gpu, load, limit),),
        tables=(_table(asked, load),),
        notes=(*_notes(model, asked, load), capacity_note(gpu)),
        changes=changes(asked, limits, load.total <= limit),
    )


# Start-up logs put memory outside of the model between these shares of the default,
# and the engine's own measurement of a step between those of the formula.
_OVERHEAD = (0.4, 2.0)


_ACTIVE = (0.6, 1.6)


# Measured over counted memory of plain generation, and tokens that start-up logs
# print over those that are counted with an engine's own constants.
_GENERATED = (0.965, 1.04)
_LOGGED = (0.9, 1.1)


def _figures(asked: InferenceMemory, load: Load, limits: Limits) -> tuple[Figure, ...]:
    gpus, limit = asked.tensor_parallel, limits.usable
    low, high = _bounds(asked, load)
    free = (limit - load.total, limit - high, limit - low)
    return (
        Figure(_OUT["weights"], load.weights * gpus),
        Figure(_OUT["kv_cache"], load.cache * gpus),
        _modelled("activations", load.activations * gpus, _ACTIVE),
        _modelled("overhead", load.overhead * gpus, _spread(asked)),
        Figure(_OUT["total"], load.total * gpus, low * gpus, high * gpus),
        Figure(_OUT["per_gpu"], load.total, low, high, primary=True),
        Figure(_OUT["free"], free[0], free[1], free[2]),
        Figure(_OUT["fits"], load.total <= limit),
        _limit("max_context", limits.context),
        _limit("max_concurrent", limits.concurrent),
        _fewest(limits.gpus),
        Figure(_OUT["cache_room"], limits.room),
        *_held(asked, limits.tokens),
    )


def _held(asked: InferenceMemory, tokens: int | None) -> tuple[Figure, Figure]:
    """Tokens and blocks of the cache, in a range where an engine's logs gave it."""
    blocks = None if tokens is None else tokens // asked.block
    found = (
        _limit("cache_tokens", tokens),
        _limit("cache_blocks", blocks),
    )
    if asked.engine not in ENGINES or asked.cache_memory is not None:
        return found
    first, second = (_between(figure, _LOGGED) for figure in found)
    return first, second


def _between(figure: Figure, share: tuple[float, float]) -> Figure:
    value = figure.value
    if not isinstance(value, int):
        return figure
    return dataclasses.replace(figure, low=value * share[0], high=value * share[1])


def _spread(asked: InferenceMemory) -> tuple[float, float]:
    """How far overhead may lie from what is taken; not at all where it is given."""
    return _OVERHEAD if asked.overhead is None else (1.0, 1.0)


def _fewest(gpus: int | None) -> Figure:
    note = "" if gpus else "More than 64 GPUs, or not at all."
    return Figure(_OUT["fewest_gpus"], gpus, note=note)


def _bounds(asked: InferenceMemory, load: Load) -> tuple[float, float]:
    if asked.engine == TRANSFORMERS:
        return load.total * _GENERATED[0], load.total * _GENERATED[1]
    fixed = load.weights + load.cache
    below, above = (
        fixed + load.overhead * spread + load.activations * active
        for spread, active in zip(_spread(asked), _ACTIVE, strict=True)
    )
    return below, above


def _modelled(name: str, value: float, share: tuple[float, float]) -> Figure:
    if share == (1.0, 1.0):
        return Figure(_OUT[name], value)
    return Figure(_OUT[name], value, value * share[0], value * share[1])


def _limit(
    name: str,
    value: int | None,
) -> Figure:
    note = "" if value is not None else "The cache does not grow with it."
    return Figure(_OUT[name], value, note=note)


def _steps(
    model: Architecture,
    asked: InferenceMemory,
    gpu: Accelerator,
    load: Load,
    limit: float,
) -> tuple[Step, ...]:
    return (
        _weights_step(model, asked, load),
        _cache_step(model, asked, load),
        _activations_step(model, asked, load),
        _overhead_step(asked, load),
        _sum_step(load),
        _usable_step(asked, gpu, limit),
    )


def _cache_step(model: Architecture, asked: InferenceMemory, load: Load) -> Step:
    per_token = model.cache_elements * CACHE_BITS[asked.cache] / 8
    numbers = (
        f"{format_value(per_token, 'B')} × {format_number(asked.context)} × "
        f"{format_number(asked.concurrent)} ÷ {asked.tensor_parallel}"
    )
    formula = "bytes per token × context × sequences ÷ t"
    return _step("KV cache", formula, numbers, load.cache, "kv_cache")


def _activations_step(model: Architecture, asked: InferenceMemory, load: Load) -> Step:
    if asked.engine != GENERAL:
        return _measured_step(model, asked, load)
    tokens = min(asked.step_tokens, asked.context * asked.concurrent)
    numbers = (
        f"{format_number(tokens)} × 2 B × (3 × {format_number(model.mlp_width)} ÷ "
        f"{asked.tensor_parallel} + 4 × {format_number(model.hidden)})"
    )
    formula = "T × 2 B × (3f ÷ t + 4h)"
    return _step("Activations", formula, numbers, load.activations, "activations")


def _measured_step(model: Architecture, asked: InferenceMemory, load: Load) -> Step:
    """Temporary tensors as an engine measures them, or a prompt makes them."""
    shape = f"h = {format_number(model.hidden)}, f = {format_number(model.mlp_width)}"
    if asked.engine == TRANSFORMERS:
        tokens = asked.concurrent * (asked.prompt or asked.context)
        formula = "T × (6f + 8h), or a copy of the table while loading"
        numbers = f"T = {format_number(tokens)}, {shape}"
        return _step("Activations", formula, numbers, load.activations, "activations")
    engine = ENGINES[asked.engine]
    formula = "most of T × 2 B × (3f ÷ t + 4h) and n × V × bytes of the sampler"
    numbers = (
        f"T = {format_number(engine.step_tokens)}, {shape}, "
        f"n = {format_number(engine.sequences)}, "
        f"V = {format_number(model.vocabulary)} × {format_number(engine.sampler)} B"
    )
    return _step("Activations", formula, numbers, load.activations, "activations")


_OVERHEADS = {
    GENERAL: "1 GB + 1 GB from two GPUs on",
    TRANSFORMERS: "workspaces of the libraries",
}


def _overhead_step(asked: InferenceMemory, load: Load) -> Step:
    numbers = "given"
    if asked.overhead is None:
        numbers = _OVERHEADS.get(asked.engine, "as its start-up logs say")
    formula = "CUDA context + communication buffers"
    return _step("Overhead", formula, numbers, load.overhead, "overhead")


def _sum_step(load: Load) -> Step:
    parts = (load.weights, load.cache, load.activations, load.overhead)
    numbers = " + ".join(format_value(part, "B") for part in parts)
    formula = "weights + KV cache + activations + overhead"
    return _step("On each GPU", formula, numbers, load.total, "per_gpu")


def _usable_step(asked: InferenceMemory, gpu: Accelerator, limit: float) -> Step:
    share = asked.memory_utilization
    numbers = f"{format_value(memory_of(asked, gpu), 'B')} × {format_value(share, '%')}"
    formula = "memory × usable share"
    if asked.engine in ENGINES and ENGINES[asked.engine].static:
        formula = "(memory − overhead) × usable share + overhead"
    if asked.cache_memory is not None:
        formula += ", with the given memory for the cache"
    return _step("Usable", formula, numbers, limit, "")


# The figure of a line of the working: its source and the page that teaches it.
_TAUGHT = {
    "weights": ("shape", "number-formats"),
    "kv_cache": ("shazeer-2019", "inference-memory"),
    "activations": ("vllm-memory", "inference-memory"),
    "overhead": ("vllm-memory", "inference-memory"),
    "per_gpu": ("vllm-memory", "inference-memory"),
    "": ("catalogue", "cluster-components"),
}


def _step(label: str, formula: str, numbers: str, value: float, figure: str) -> Step:
    source, topic = _TAUGHT[figure]
    return Step(label, formula, numbers, value, "B", source, topic, figure)


def _weights_step(model: Architecture, asked: InferenceMemory, load: Load) -> Step:
    form = FORMATS[asked.weights]
    formula = "N × b ÷ 8 ÷ t"
    numbers = f"{format_number(model.parameters)} × {format_number(form.bits, 5)} ÷ 8"
    if form.covers != "all":
        covered = weight_table(model, asked.weights).quantised
        formula = "(N_q × b ÷ 8 + N_16 × 2 B) ÷ t"
        numbers = (
            f"({format_number(covered)} × {format_number(form.bits, 5)} ÷ 8 + "
            f"{format_number(model.parameters - covered)} × 2 B)"
        )
    numbers = f"{numbers} ÷ {asked.tensor_parallel}"
    return _step("Weights", formula, numbers, load.weights, "weights")


def _bar(gpu: Accelerator, load: Load, limit: float) -> StackedBar:
    return StackedBar(
        "Memory of each GPU",
        (
            Segment("weights", "Weights", load.weights),
            Segment("kv", "KV cache", load.cache),
            Segment("activations", "Activations", load.activations),
            Segment("overhead", "Overhead", load.overhead),
        ),
        limit,
        f"{format_value(limit, 'B')} usable of {gpu.name}",
    )


def _table(asked: InferenceMemory, load: Load) -> Table:
    gpus = asked.tensor_parallel
    parts = (
        ("Weights", load.weights),
        ("KV cache", load.cache),
        ("Activations", load.activations),
        ("Overhead", load.overhead),
        ("Sum", load.total),
    )
    rows = tuple((label, (b, "B"), (b * gpus, "B")) for label, b in parts)
    return Table("Parts", ("Part", "Each GPU", "All GPUs"), rows)


def _notes(model: Architecture, asked: InferenceMemory, load: Load) -> tuple[str, ...]:
    form = FORMATS[asked.weights]
    notes = []
    if form.covers != "all":
        notes.append(
            f"{form.label}: embeddings, output head, norms and routers stay in 16 bit."
        )
    if asked.overhead is None:
        notes.append(
            f"Overhead is taken as {format_value(load.overhead, 'B')} per GPU; "
            "start-up logs show 0.3 to 4 GB."
        )
    if asked.engine == TRANSFORMERS and asked.tensor_parallel > 1:
        notes.append("Whole layers are dealt to the GPUs; none of them is divided.")
    if model.is_routed:
        notes.append("All experts are in memory, although few work on one token.")
    if model.window:
        notes.append(
            f"Sliding layers keep at most {format_number(model.window)} tokens; an "
            "engine without support for it keeps all."
        )
    if model.max_context and asked.context > model.max_context:
        notes.append(
            f"The model is configured for {format_number(model.max_context)} tokens."
        )
    return tuple(notes)
