"""The estimate `quantization`: inputs, result, verdict, charts, and formula steps."""

import dataclasses

from app.estimator.common_inputs import (
    HARDWARE,
    counted_gpu_input,
    impossible_input_error,
    model_input,
    reject_impossible_tensor_parallel,
    tensor_parallel_input,
)
from app.estimator.formula_steps import StepBuilder, format_term
from app.estimator.hardware.catalog import Accelerator, find_accelerator
from app.estimator.inputs import InputGroup
from app.estimator.memory_verdict import real_capacity_note
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    FORMATS,
    WEIGHT_CHOICES,
    WeightFormat,
    weight_bytes_by_split,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    Estimate,
    FormulaStep,
    ModeledOutput,
    OutputSpec,
    OutputValue,
    ResultTable,
    Verdict,
    read_figures,
    value_with_range_factors,
)
from app.estimator.serving.engine_speed import (
    find_fp8_problem,
    fp8_weight_only_notes,
    is_fp8_weight_only,
)
from app.estimator.units import format_value

_FORMATS = InputGroup("Formats", "number-formats")


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationInputs:
    model: str = model_input()
    weights: str = _FORMATS.declare_input_field(
        "awq-int4",
        "To",
        choices=WEIGHT_CHOICES,
        help="The format to change to.",
        term="quantisation",
    )
    before: str = _FORMATS.declare_input_field(
        "bf16", "From", choices=WEIGHT_CHOICES, help="The format to compare with."
    )
    gpu: str = counted_gpu_input(count_field="tensor_parallel")
    tensor_parallel: int = tensor_parallel_input(default=2)
    bandwidth_share: float = HARDWARE.declare_advanced_input_field(
        0.65,
        "Reached bandwidth",
        unit="%",
        limits=(0.05, 1.0),
        help="Share of the memory bandwidth that decoding reaches.",
        topic="batching-and-latency",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class FormatResult:
    """One of the two formats on this hardware.

    Bytes in total, on one GPU, and of the language model there; the time to read its active
    weights once [s] and the rate of matrix products [FLOP/s] are None if the catalog has none.
    """

    weight_format: WeightFormat
    total_bytes: float
    bytes_per_gpu: float
    language_bytes_per_gpu: float
    weight_read_time: float | None
    peak_rate: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationResult:
    """Both formats on a GPU: `baseline` is the one to compare with."""

    gpu: Accelerator
    baseline: FormatResult
    compared: FormatResult


def validate_inputs(model: Architecture, inputs: QuantizationInputs, gpu: Accelerator) -> None:
    """Reject an impossible split and a format that the GPU lacks."""
    reject_impossible_tensor_parallel(model, inputs.tensor_parallel)
    form = FORMATS[inputs.weights]
    if reason := find_fp8_problem(gpu, form, "vllm", has_experts=model.is_routed):
        message = f"The {gpu.name} cannot compute in FP8. {reason}"
        raise impossible_input_error("weights", inputs.weights, message)


def compute_format_result(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, format_name: str
) -> FormatResult:
    table, form = weight_bytes_by_split(model, format_name), FORMATS[format_name]
    per_gpu = table.bytes_per_gpu(inputs.tensor_parallel)
    language = per_gpu - table.tower_bytes / inputs.tensor_parallel
    return FormatResult(
        weight_format=form,
        total_bytes=table.total_bytes,
        bytes_per_gpu=per_gpu,
        language_bytes_per_gpu=language,
        weight_read_time=_compute_weight_read_time(model, inputs, gpu, language),
        peak_rate=gpu.dense_peak_rate(math_format_used(gpu, form)),
    )


def math_format_used(gpu: Accelerator, form: WeightFormat) -> str:
    """Return the format used for the math; 4 bit is unpacked on GPUs without it."""
    number_format = {"mxfp4": "fp4", "nvfp4": "fp4"}.get(form.math, form.math)
    if gpu.dense_peak_rate(number_format) is None and number_format in {"fp4", "fp8"}:
        return "bf16"
    return number_format


def _compute_weight_read_time(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, language_bytes: float
) -> float | None:
    """Return the time to read the active weights once: the decode floor of one sequence [s]."""
    if gpu.memory_bandwidth is None:
        return None
    active = model.active_parameters / model.parameters
    return language_bytes * active / (gpu.memory_bandwidth * inputs.bandwidth_share)


def _ratio_value(numerator: float | None, denominator: float | None) -> OutputValue:
    if numerator and denominator:
        return OutputValue(numerator / denominator)
    return OutputValue(None, note="The catalog has no rate for this.")


OUTPUTS: tuple[OutputSpec[QuantizationResult], ...] = (
    OutputSpec(
        "total", "Weights after", "B", "less", lambda r: r.compared.total_bytes, primary=True
    ),
    OutputSpec("before", "Weights before", "B", read=lambda r: r.baseline.total_bytes),
    OutputSpec(
        "saved", "Saved", "B", "more", lambda r: r.baseline.total_bytes - r.compared.total_bytes
    ),
    OutputSpec("per_gpu", "On one GPU", "B", "less", lambda r: r.compared.bytes_per_gpu),
    OutputSpec(
        "fits",
        "Weights fit",
        "",
        "more",
        lambda r: r.compared.bytes_per_gpu <= r.gpu.engine_visible_memory,
    ),
    ModeledOutput(
        "decode_floor",
        "Fastest token",
        "s",
        "less",
        lambda r: (
            r.compared.weight_read_time
            and value_with_range_factors(r.compared.weight_read_time, (0.85, 1.5))
        ),
    ),
    OutputSpec(
        "decode_speedup",
        "Faster decoding at most",
        "×",
        "more",
        lambda r: _ratio_value(r.baseline.weight_read_time, r.compared.weight_read_time),
    ),
    OutputSpec(
        "peak", "Peak rate of matrix products", "FLOP/s", "more", lambda r: r.compared.peak_rate
    ),
    OutputSpec(
        "peak_ratio",
        "Faster prefill at most",
        "×",
        "more",
        lambda r: _ratio_value(r.compared.peak_rate, r.baseline.peak_rate),
    ),
)
_STEPS = StepBuilder(OUTPUTS, "number-formats")


def build_verdict(gpu: Accelerator, baseline: FormatResult, compared: FormatResult) -> Verdict:
    saved = baseline.total_bytes - compared.total_bytes
    lead = f"{format_value(abs(saved), 'B')} {'less' if saved >= 0 else 'more'}."
    fits = compared.bytes_per_gpu <= gpu.engine_visible_memory
    text = (
        f"{compared.weight_format.label} takes {format_value(compared.total_bytes, 'B')} instead of "
        f"{format_value(baseline.total_bytes, 'B')}; the weights alone "
        f"{'fit' if fits else 'do not fit'} on the GPUs."
    )
    return Verdict("fits" if fits else "no", lead, text)


def build_steps(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, compared: FormatResult
) -> tuple[FormulaStep, ...]:
    covers_all = compared.weight_format.covers == "all"
    table = weight_bytes_by_split(model, inputs.weights)
    covered = model.parameters if covers_all else table.quantized_weight_count
    weights = _STEPS.build_step(
        "total",
        "parameters in the format × bits ÷ 8 + the others × their bytes",
        f"{format_term(covered)} × {format_term(compared.weight_format.bits_with_scales)} ÷ 8 + "
        f"{format_term(model.loaded_parameters - covered)} × "
        f"{format_term(compared.weight_format.rest / 8)} B",
        compared.total_bytes,
        "shape",
    )
    if compared.weight_read_time is None:
        return (weights,)
    active_bytes = compared.language_bytes_per_gpu * model.active_parameters / model.parameters
    floor = _STEPS.build_step_from_template(
        "decode_floor",
        "[bytes that one GPU reads] ÷ ([bandwidth] × [share of it that is reached])",
        ((active_bytes, "B"), (gpu.memory_bandwidth or 0.0, "B/s"), (inputs.bandwidth_share, "%")),
        compared.weight_read_time,
        "pope-2022",
        topic="batching-and-latency",
    )
    return (weights, floor)


def build_format_comparison_table(
    gpu: Accelerator, baseline: FormatResult, compared: FormatResult
) -> ResultTable:

    def row(side: FormatResult) -> tuple[str | tuple[float, str], ...]:
        return (
            side.weight_format.label,
            (side.total_bytes, "B"),
            (side.bytes_per_gpu, "B"),
            (side.weight_read_time, "s") if side.weight_read_time is not None else "unknown",
            (side.peak_rate, "FLOP/s") if side.peak_rate is not None else "unknown",
        )

    columns = ("Format", "Weights", "On one GPU", "Fastest token", "Peak rate")
    return ResultTable(f"On the {gpu.name}", columns, (row(baseline), row(compared)))


def build_notes(gpu: Accelerator, compared: FormatResult) -> tuple[str, ...]:
    notes = [
        *fp8_weight_only_notes(gpu, compared.weight_format),
        real_capacity_note(gpu),
        "Nothing here says how well the model answers in this format: measure it.",
        "The KV cache keeps its own format and does not shrink with the weights.",
    ]
    math = math_format_used(gpu, compared.weight_format)
    is_said = is_fp8_weight_only(gpu, compared.weight_format)
    if compared.weight_format.bits_with_scales < 16 and math in {"bf16", "fp16"} and not is_said:
        notes.append(
            "Weights are unpacked to 16 bit before they are multiplied: decoding gains "
            "from fewer bytes, prefill does not."
        )
    if compared.weight_format.scale_description:
        notes.append(f"Metadata: {compared.weight_format.scale_description}.")
    return tuple(notes)


def estimate(inputs: QuantizationInputs) -> Estimate:
    model, gpu = find_model(inputs.model), find_accelerator(inputs.gpu)
    validate_inputs(model, inputs, gpu)
    old = compute_format_result(model, inputs, gpu, inputs.before)
    new = compute_format_result(model, inputs, gpu, inputs.weights)
    return Estimate(
        name="quantization",
        verdict=build_verdict(gpu, old, new),
        figures=read_figures(OUTPUTS, QuantizationResult(gpu, old, new)),
        steps=build_steps(model, inputs, gpu, new),
        tables=(build_format_comparison_table(gpu, old, new),),
        notes=build_notes(gpu, new),
    )


ENTRY = EstimateSpec(
    name="quantization",
    title="Quantization",
    summary="What a narrower format saves and speeds up, and what it does not promise.",
    group="Models",
    inputs_type=QuantizationInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("total", "decode_speedup", "peak_ratio"),
    main_inputs=("model", "weights", "gpu"),
    topic="number-formats",
)
