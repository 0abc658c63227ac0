"""`quantization`: verdict, figures, charts and formula steps of a result."""

from app.estimator.estimates.quantization import (
    FormatResult,
    QuantizationInputs,
    QuantizationResult,
    compute_format,
    math_format_used,
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
    FormulaStep,
    Output,
    ResultTable,
    Value,
    Verdict,
    ranged_value,
    read_figures,
)
from app.estimator.units import format_value


def _ratio(above: float | None, below: float | None) -> Value:
    if above and below:
        return Value(above / below)
    return Value(None, note="The catalog has no rate for this.")


OUTPUTS: tuple[Output[QuantizationResult], ...] = (
    Output("total", "Weights after", "B", "less", lambda r: r.new.total, primary=True),
    Output("before", "Weights before", "B", read=lambda r: r.old.total),
    Output("saved", "Saved", "B", "more", lambda r: r.old.total - r.new.total),
    Output("per_gpu", "On one GPU", "B", "less", lambda r: r.new.per_gpu),
    Output("fits", "Weights fit", "", "more", lambda r: r.new.per_gpu <= r.gpu.capacity),
    Output(
        "decode_floor",
        "Fastest token",
        "s",
        "less",
        lambda r: r.new.floor and ranged_value(r.new.floor, (0.85, 1.5)),
        modeled=True,
    ),
    Output(
        "decode_speedup",
        "Faster decoding at most",
        "×",
        "more",
        lambda r: _ratio(r.old.floor, r.new.floor),
    ),
    Output("peak", "Peak rate of matrix products", "FLOP/s", "more", lambda r: r.new.peak),
    Output(
        "peak_ratio",
        "Faster prefill at most",
        "×",
        "more",
        lambda r: _ratio(r.new.peak, r.old.peak),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "number-formats")


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


def build_steps(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, new: FormatResult
) -> tuple[FormulaStep, ...]:
    """Return the steps from bits to bytes and to the time of a token."""
    whole = new.form.covers == "all"
    table = weight_table(model, inputs.weights)
    covered = model.parameters if whole else table.quantized
    weights = _STEPS.line(
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
    floor = _STEPS.fill(
        "decode_floor",
        "[bytes that one GPU reads] ÷ ([bandwidth] × [share of it that is reached])",
        ((active, "B"), (gpu.memory_bandwidth or 0.0, "B/s"), (inputs.bandwidth_share, "%")),
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
    math = math_format_used(gpu, new.form)
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
        figures=read_figures(OUTPUTS, QuantizationResult(gpu, old, new)),
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
    main=("model", "weights", "gpu"),
    topic="number-formats",
)
