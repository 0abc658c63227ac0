"""`quantization`: inputs, result, and the input values where the verdict changes."""

import dataclasses

from app.estimator.common_inputs import (
    HARDWARE,
    ask_counted_gpu,
    ask_model,
    ask_tensor_parallel,
    input_error,
)
from app.estimator.hardware.catalog import Accelerator
from app.estimator.inputs import InputGroup
from app.estimator.memory.parallel_layout import tensor_parallel_problem
from app.estimator.models.architecture import Architecture
from app.estimator.models.number_formats import FORMATS, WEIGHT_CHOICES, WeightFormat, weight_table

_FORMATS = InputGroup("Formats", "number-formats")


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationInputs:
    """The two formats to compare, the model and the GPUs."""

    model: str = ask_model()
    weights: str = _FORMATS.ask(
        "awq-int4",
        "To",
        choices=WEIGHT_CHOICES,
        help="The format to change to.",
        term="quantisation",
    )
    before: str = _FORMATS.ask(
        "bf16", "From", choices=WEIGHT_CHOICES, help="The format to compare with."
    )
    gpu: str = ask_counted_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel(default=2)
    bandwidth_share: float = HARDWARE.ask_more(
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

    Bytes in total, on one GPU, and of the language model there; `floor` is the time to
    read its active weights once [s] and `peak` the matmul rate [FLOP/s], None if the
    catalog has none.
    """

    form: WeightFormat
    total: float
    per_gpu: float
    language: float
    floor: float | None
    peak: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class QuantizationResult:
    """Both formats on a GPU: `old` is the one to compare with."""

    gpu: Accelerator
    old: FormatResult
    new: FormatResult


def validate_inputs(model: Architecture, inputs: QuantizationInputs, gpu: Accelerator) -> None:
    """Reject an impossible split and a format that the GPU lacks."""
    problem = tensor_parallel_problem(model, inputs.tensor_parallel)
    if problem:
        raise input_error("tensor_parallel", inputs.tensor_parallel, problem)
    if FORMATS[inputs.weights].math == "fp8" and gpu.lacks_format("fp8"):
        raise input_error("weights", inputs.weights, f"The {gpu.name} cannot compute in FP8.")


def compute_format(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, name: str
) -> FormatResult:
    """Compute the sizes and rates of the format called `name`."""
    table, form = weight_table(model, name), FORMATS[name]
    per_gpu = table.per_gpu(inputs.tensor_parallel)
    language = per_gpu - table.tower / inputs.tensor_parallel
    return FormatResult(
        form=form,
        total=table.total,
        per_gpu=per_gpu,
        language=language,
        floor=_decode_floor(model, inputs, gpu, language),
        peak=gpu.peak(math_format_used(gpu, form)),
    )


def math_format_used(gpu: Accelerator, form: WeightFormat) -> str:
    """Return the format used for the math; 4 bit is unpacked on GPUs without it."""
    narrow = {"mxfp4": "fp4", "nvfp4": "fp4"}.get(form.math, form.math)
    if gpu.peak(narrow) is None and narrow in {"fp4", "fp8"}:
        return "bf16"
    return narrow


def _decode_floor(
    model: Architecture, inputs: QuantizationInputs, gpu: Accelerator, language: float
) -> float | None:
    """Return the time to read the active weights once: the decode floor of one sequence [s]."""
    if gpu.memory_bandwidth is None:
        return None
    active = model.active_parameters / model.parameters
    return language * active / (gpu.memory_bandwidth * inputs.bandwidth_share)
