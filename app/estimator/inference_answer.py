"""The words, figures and picture of the estimate `inference-memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.estimator.estimate import (
    Change,
    Estimate,
    Figure,
    Segment,
    StackedBar,
    Step,
    Table,
)
from app.estimator.fitting import memory_verdict
from app.estimator.formats import CACHE_BITS, FORMATS, weight_table
from app.estimator.registry import Output
from app.estimator.units import format_number, format_value

if TYPE_CHECKING:  # the estimate imports this module
    from app.estimator.architecture import Architecture
    from app.estimator.hardware import Accelerator
    from app.estimator.inference_memory import InferenceMemory, Limits, Load

OUTPUTS = (
    Output("weights", "Weights", "B"),
    Output("kv_cache", "KV cache", "B"),
    Output("activations", "Activations", "B"),
    Output("overhead", "Overhead", "B"),
    Output("total", "In all", "B"),
    Output("per_gpu", "On each GPU", "B"),
    Output("free", "Free on each GPU", "B"),
    Output("fits", "Fits", ""),
    Output("max_context", "Longest context", "token"),
    Output("max_concurrent", "Most sequences", "sequence"),
    Output("fewest_gpus", "Fewest GPUs", "GPU"),
)


def answer(
    model: Architecture,
    asked: InferenceMemory,
    gpu: Accelerator,
    load: Load,
    limits: Limits,
) -> Estimate:
    """Put the load of one GPU into words, figures, a picture and its working."""
    whole = gpu.memory or 0.0
    limit = whole * asked.memory_utilization
    return Estimate(
        name="inference-memory",
        verdict=memory_verdict(load.total, limit, whole, asked.tensor_parallel),
        figures=_figures(asked, load, limits, limit),
        steps=_steps(model, asked, gpu, load),
        pictures=(_bar(gpu, load, limit),),
        tables=(_table(asked, load),),
        notes=_notes(model, asked, load),
        changes=_changes(asked, limits, load.total <= limit),
    )


# Start-up logs put memory outside of the model between these shares of the default.
_OVERHEAD_LOW, _OVERHEAD_HIGH = 0.4, 2.0
_ACTIVATIONS_LOW, _ACTIVATIONS_HIGH = 0.6, 1.6


def _figures(
    asked: InferenceMemory, load: Load, limits: Limits, limit: float
) -> tuple[Figure, ...]:
    gpus = asked.tensor_parallel
    low, high = _bounds(asked, load)
    fixed = load.weights + load.cache
    return (
        Figure("weights", "Weights", load.weights * gpus, "B"),
        Figure("kv_cache", "KV cache", load.cache * gpus, "B"),
        _modelled("activations", "Activations", load.activations * gpus, (0.6, 1.6)),
        _modelled(
            "overhead",
            "Overhead",
            load.overhead * gpus,
            (_OVERHEAD_LOW, _OVERHEAD_HIGH) if asked.overhead is None else (1.0, 1.0),
        ),
        Figure("total", "In all", load.total * gpus, "B", low * gpus, high * gpus),
        Figure(
            "per_gpu",
            "On each GPU",
            load.total,
            "B",
            max(fixed, low),
            high,
            primary=True,
        ),
        Figure(
            "free",
            "Free on each GPU",
            limit - load.total,
            "B",
            limit - high,
            limit - low,
        ),
        Figure("fits", "Fits", load.total <= limit),
        _limit("max_context", "Longest context", limits.context, "token"),
        _limit("max_concurrent", "Most sequences", limits.concurrent, "sequence"),
        Figure(
            "fewest_gpus",
            "Fewest GPUs",
            limits.gpus,
            "GPU",
            note="" if limits.gpus else "More than 64 GPUs, or not at all.",
        ),
    )


def _bounds(asked: InferenceMemory, load: Load) -> tuple[float, float]:
    fixed = load.weights + load.cache
    given = asked.overhead is not None
    low = load.overhead * (1.0 if given else _OVERHEAD_LOW)
    high = load.overhead * (1.0 if given else _OVERHEAD_HIGH)
    return (
        fixed + low + load.activations * _ACTIVATIONS_LOW,
        fixed + high + load.activations * _ACTIVATIONS_HIGH,
    )


def _modelled(
    name: str, label: str, value: float, share: tuple[float, float]
) -> Figure:
    if share == (1.0, 1.0):
        return Figure(name, label, value, "B")
    return Figure(name, label, value, "B", value * share[0], value * share[1])


def _limit(name: str, label: str, value: int | None, unit: str) -> Figure:
    note = "" if value is not None else "The cache does not grow with it."
    return Figure(name, label, value, unit, note=note)


def _steps(
    model: Architecture, asked: InferenceMemory, gpu: Accelerator, load: Load
) -> tuple[Step, ...]:
    gpus = asked.tensor_parallel
    per_token = model.cache_elements * CACHE_BITS[asked.cache] / 8
    return (
        _weights_step(model, asked, load),
        Step(
            "KV cache",
            "bytes per token × context × sequences ÷ t",
            f"{format_value(per_token, 'B')} × {format_number(asked.context)} × "
            f"{format_number(asked.concurrent)} ÷ {gpus}",
            load.cache,
            "B",
            "shazeer-2019",
            "inference-memory",
            "kv_cache",
        ),
        Step(
            "Activations",
            "T × 2 B × (3f ÷ t + 4h)",
            f"{format_number(min(asked.step_tokens, asked.context * asked.concurrent))}"
            f" × 2 B × (3 × {format_number(model.mlp_width)} ÷ {gpus} + "
            f"4 × {format_number(model.hidden)})",
            load.activations,
            "B",
            "vllm-memory",
            "inference-memory",
            "activations",
        ),
        Step(
            "Overhead",
            "CUDA context + communication buffers",
            "given" if asked.overhead is not None else "1 GB + 1 GB from two GPUs on",
            load.overhead,
            "B",
            "vllm-memory",
            "inference-memory",
            "overhead",
        ),
        Step(
            "On each GPU",
            "weights + KV cache + activations + overhead",
            f"{format_value(load.weights, 'B')} + {format_value(load.cache, 'B')} + "
            f"{format_value(load.activations, 'B')} + "
            f"{format_value(load.overhead, 'B')}",
            load.total,
            "B",
            "vllm-memory",
            "inference-memory",
            "per_gpu",
        ),
        Step(
            "Usable",
            "memory × usable share",
            f"{format_value(gpu.memory, 'B')} × "
            f"{format_value(asked.memory_utilization, '%')}",
            (gpu.memory or 0.0) * asked.memory_utilization,
            "B",
            "catalogue",
            "cluster-components",
        ),
    )


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
    return Step(
        "Weights",
        formula,
        f"{numbers} ÷ {asked.tensor_parallel}",
        load.weights,
        "B",
        "shape",
        "number-formats",
        "weights",
    )


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


def _changes(asked: InferenceMemory, limits: Limits, fits: bool) -> tuple[Change, ...]:
    becomes = "Does not fit." if fits else "Fits."
    step = 1 if fits else 0
    changes = []
    if limits.context:
        flips = format_value(limits.context + step, "token")
        now = format_value(asked.context, "token")
        changes.append(Change("context", "Context", now, flips, becomes))
    if limits.concurrent:
        flips = format_number(limits.concurrent + step)
        now = format_number(asked.concurrent)
        changes.append(
            Change("concurrent", "Concurrent sequences", now, flips, becomes)
        )
    if limits.gpus and limits.gpus != asked.tensor_parallel:
        now, flips = str(asked.tensor_parallel), str(limits.gpus)
        word = "Fits with fewer GPUs." if fits else "Fits."
        changes.append(Change("tensor_parallel", "GPUs", now, flips, word))
    if limits.weights:
        now, flips = FORMATS[asked.weights].label, FORMATS[limits.weights].label
        changes.append(Change("weights", "Weights", now, flips, "Fits."))
    return tuple(changes)
