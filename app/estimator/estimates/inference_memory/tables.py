"""The picture, table and notes of the estimate `inference-memory`."""

from collections.abc import Iterator

from app.estimator.estimate import BarSegment, ResultTable, StackedBar
from app.estimator.estimates.inference_memory.asked import (
    TRANSFORMERS,
    InferenceMemoryInputs,
)
from app.estimator.estimates.inference_memory.compute import GpuMemoryUse
from app.estimator.hardware.accelerators import Accelerator
from app.estimator.models.architecture import Architecture
from app.estimator.models.formats import format_of
from app.estimator.units import format_number, format_value


def bar(gpu: Accelerator, load: GpuMemoryUse, limit: float) -> StackedBar:
    return StackedBar(
        "Memory of each GPU",
        (
            BarSegment("weights", "Weights", load.weights),
            BarSegment("kv", "KV cache", load.cache),
            BarSegment("activations", "Activations", load.activations),
            BarSegment("overhead", "Overhead", load.overhead),
            *((BarSegment("other", "Padding", load.padding),) if load.padding else ()),
        ),
        limit,
        f"{format_value(limit, 'B')} usable of {gpu.name}",
    )


def table(asked: InferenceMemoryInputs, load: GpuMemoryUse) -> ResultTable:
    gpus = asked.tensor_parallel
    parts = (
        ("Weights", load.weights),
        ("KV cache", load.cache),
        ("Activations", load.activations),
        ("Overhead", load.overhead),
        *((("Padding", load.padding),) if load.padding else ()),
        ("Sum", load.total),
    )
    rows = tuple((label, (b, "B"), (b * gpus, "B")) for label, b in parts)
    return ResultTable("Parts", ("Part", "Each GPU", "All GPUs"), rows)


def notes(model: Architecture, asked: InferenceMemoryInputs, load: GpuMemoryUse) -> tuple[str, ...]:
    found = list(_about_weights(model, asked, load))
    if asked.overhead is None:
        found.append(
            f"Overhead is taken as {format_value(load.overhead, 'B')} per GPU; "
            "start-up logs show 0.3 to 4 GB."
        )
    if load.started > load.activations + load.overhead:
        kept = format_value(load.started, "B")
        found.append(
            f"vLLM 0.9 keeps {kept} beside weights and cache at its start, for "
            "sampling many sequences; the upper end counts that."
        )
    if asked.engine == TRANSFORMERS and asked.tensor_parallel > 1:
        found.append("Whole layers are dealt to the GPUs; none of them is divided.")
    if any(a.mixer.latent for a, _ in model.runs) and asked.tensor_parallel > 1:
        found.append("A latent cache is divided by data-parallel attention alone.")
    if model.is_routed:
        found.append("All experts are in memory, although few work on one token.")
    if model.window:
        found.append(
            f"Sliding layers keep at most {format_number(model.window)} tokens; an "
            "engine without support for it keeps all."
        )
    if model.max_context and asked.context > model.max_context:
        found.append(f"The model is configured for {format_number(model.max_context)} tokens.")
    return tuple(found)


def _about_weights(
    model: Architecture, asked: InferenceMemoryInputs, load: GpuMemoryUse
) -> Iterator[str]:
    """Which weights stay wider, and what repacking adds."""
    form = format_of(model, asked.weights)
    if form.widths is not None:
        kept = "norms, and modules that the checkpoint leaves out,"
        yield f"{form.label}: {kept} stay in 16 bit."
    elif form.covers != "all":
        kept = "embeddings, output head, norms and routers"
        yield f"{form.label}: {kept} stay in 16 bit."
    if load.padding:
        more = format_value(load.padding, "B")
        yield (
            "Without 4-bit math the engine repacks the experts and pads their widths: "
            f"{more} more on each GPU than the file has."
        )
