"""`quantization`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.quantization import (
    FormatResult,
    QuantizationInputs,
    compute_format,
    rate_used,
    validate_inputs,
)
from app.estimator.fits import capacity_note
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.number_formats import weight_table
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
from app.estimator.units import format_value

OUTPUTS = (
    Output("total", "Weights after", "B", better="less"),
    Output("before", "Weights before", "B"),
    Output("saved", "Saved", "B", better="more"),
    Output("per_gpu", "On one GPU", "B", better="less"),
    Output("fits", "Weights fit", better="more"),
    Output("decode_floor", "Fastest token", "s", better="less", modeled=True),
    Output("decode_speedup", "Faster decoding at most", "×", better="more"),
    Output("peak", "Peak rate of matrix products", "FLOP/s", better="more"),
    Output("peak_ratio", "Faster prefill at most", "×", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "number-formats")


def build_verdict(gpu: Accelerator, old: FormatResult, new: FormatResult) -> Verdict:
    """Return what the narrower format saves, and whether its weights fit."""
    saved = old.total - new.total
    lead = f"{format_value(abs(saved), 'B')} {'less' if saved >= 0 else 'more'}."
    fit = new.per_gpu <= gpu.capacity
    text = (
        f"{new.form.label} takes {format_value(new.total, 'B')} instead of "
        f"{format_value(old.total, 'B')}; the weights alone "
        f"{'fit' if fit else 'do not fit'} on the GPUs."
    )
    return Verdict("fits" if fit else "no", lead, text)


def build_figures(gpu: Accelerator, old: FormatResult, new: FormatResult) -> tuple[Figure, ...]:
    """Return bytes, times and rates of the new format, compared with the old one."""
    faster = old.floor / new.floor if old.floor and new.floor else None
    rate = new.peak / old.peak if old.peak and new.peak else None
    low = None if new.floor is None else new.floor * 0.85
    high = None if new.floor is None else new.floor * 1.5
    unknown = "The catalog has no rate for this."
    return (
        Figure(_OUT["total"], new.total, primary=True),
        Figure(_OUT["before"], old.total),
        Figure(_OUT["saved"], old.total - new.total),
        Figure(_OUT["per_gpu"], new.per_gpu),
        Figure(_OUT["fits"], new.per_gpu <= gpu.capacity),
        Figure(_OUT["decode_floor"], new.floor, low, high),
        Figure(_OUT["decode_speedup"], faster, note="" if faster else unknown),
        Figure(_OUT["peak"], new.peak),
        Figure(_OUT["peak_ratio"], rate, note="" if rate else unknown),
    )


def build_steps(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, new: FormatResult
) -> tuple[FormulaStep, ...]:
    """Return the steps from bits to bytes and to the time of a token."""
    whole = new.form.covers == "all"
    table = weight_table(model, inputs.weights)
    covered = model.parameters if whole else table.quantized
    weights = _WORKING.line(
        "total",
        "parameters in the format × bits ÷ 8 + the others × their bytes",
        f"{format_term(covered)} × {format_term(new.form.bits)} ÷ 8 + "
        f"{format_term(model.loaded_parameters - covered)} × "
        f"{format_term(new.form.rest / 8)} B",
        new.total,
        "shape",
    )
    if new.floor is None:
        return (weights,)
    active = new.language * model.active_parameters / model.parameters
    floor = _WORKING.line(
        "decode_floor",
        "bytes that one GPU reads ÷ (bandwidth × share of it that is reached)",
        f"{format_term(active, 'B')} ÷ ({format_term(gpu.memory_bandwidth or 0.0, 'B/s')} × "
        f"{format_term(inputs.bandwidth_share, '%')})",
        new.floor,
        "pope-2022",
        topic="batching-and-latency",
    )
    return (weights, floor)


def build_table(gpu: Accelerator, old: FormatResult, new: FormatResult) -> ResultTable:
    """Return both formats side by side."""

    def row(side: FormatResult) -> tuple[str | tuple[float, str], ...]:
        return (
            side.form.label,
            (side.total, "B"),
            (side.per_gpu, "B"),
            (side.floor, "s") if side.floor is not None else "unknown",
            (side.peak, "FLOP/s") if side.peak is not None else "unknown",
        )

    columns = ("Format", "Weights", "On one GPU", "Fastest token", "Peak rate")
    return ResultTable(f"On the {gpu.name}", columns, (row(old), row(new)))


def build_notes(gpu: Accelerator, new: FormatResult) -> tuple[str, ...]:
    """Return what a narrower format does not guarantee."""
    notes = [
        capacity_note(gpu),
        "Nothing here says how well the model answers in this format: measure it.",
        "The KV cache keeps its own format and does not shrink with the weights.",
    ]
    math = rate_used(gpu, new.form)
    if new.form.bits < 16 and math in {"bf16", "fp16"}:
        notes.append(
            "Weights are unpacked to 16 bit before they are multiplied: decoding gains "
            "from fewer bytes, prefill does not."
        )
    if new.form.scale:
        notes.append(f"Metadata: {new.form.scale}.")
    return tuple(notes)


def estimate(inputs: QuantizationInputs) -> Estimate:
    """Compare memory, decode floor and peak rate of two formats."""
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    validate_inputs(model, inputs, gpu)
    old = compute_format(model, inputs, gpu, inputs.before)
    new = compute_format(model, inputs, gpu, inputs.weights)
    return Estimate(
        name="quantization",
        verdict=build_verdict(gpu, old, new),
        figures=build_figures(gpu, old, new),
        steps=build_steps(model, inputs, gpu, new),
        tables=(build_table(gpu, old, new),),
        notes=build_notes(gpu, new),
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
