"""The estimate `weights`: inputs, result, verdict, charts, and formula steps."""

import dataclasses

from app.estimator.common_inputs import (
    HARDWARE,
    MODEL,
    model_input,
    reject_impossible_tensor_parallel,
    tensor_parallel_input,
)
from app.estimator.formula_steps import (
    StepBuilder,
    format_term,
    format_terms_of_exact_sum,
    multiply_or_divide_formula,
    share_per_gpu_formula,
)
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.weight_formats import (
    FORMATS,
    GGUF_CHOICES,
    GGUF_FORMATS,
    PUBLISHED,
    PUBLISHED_CHOICES,
    WeightFormat,
    find_weight_format,
    mxfp4_expert_padding_bytes,
    weight_bytes_by_split,
)
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    FormulaStep,
    OutputSpec,
    ResultTable,
    StackedBar,
    Verdict,
    read_figures,
)
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsInputs:
    model: str = model_input()
    weights: str = MODEL.declare_input_field(
        PUBLISHED,
        "Format",
        choices=(*PUBLISHED_CHOICES, *GGUF_CHOICES),
        help="As published: as the checkpoint is quantized, BF16 where it is not. "
        "Quantized formats leave some tensors in 16 bit; GGUF mixes formats.",
        term="quantisation",
        topic="number-formats",
    )
    tensor_parallel: int = tensor_parallel_input()
    pipeline_parallel: int = HARDWARE.declare_advanced_input_field(
        1,
        "Pipeline parallel",
        limits=(1, 1024),
        help="Stages that the layers are divided into evenly.",
        term="pipeline-parallelism",
    )
    repacked: bool = MODEL.declare_advanced_input_field(
        False,
        "Repacked 4-bit weights",
        help="As kernels that keep only the weights narrow hold MXFP4 experts on "
        "Hopper and older cards: widths are padded to multiples of 256 and 128.",
        topic="number-formats",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class WeightsResult:
    """Bytes in total, in the format, in wider formats, of a vision tower, and on one GPU.

    `loaded_parameters` are all that are loaded; padding is what repacking adds.
    """

    total: float
    bytes_in_format: float
    rest: float
    tower_bytes: float
    per_gpu: float
    parameters_in_format: int
    language_parameters: int
    loaded_parameters: int
    padding_bytes: float

    @property
    def bits_per_parameter(self) -> float:
        return 8 * self.total / self.loaded_parameters

    @property
    def bits_per_weight(self) -> float | None:
        """Return the bits of a weight in the format, with scales [1]; None if no weight has it."""
        return (
            8 * self.bytes_in_format / self.parameters_in_format
            if self.parameters_in_format
            else None
        )

    @property
    def saved_share(self) -> float:
        return 1 - self.total / (2.0 * self.loaded_parameters)


def compute_weights(model: Architecture, inputs: WeightsInputs) -> WeightsResult:
    gpus, stages = inputs.tensor_parallel, inputs.pipeline_parallel
    table = weight_bytes_by_split(model, inputs.weights)
    form = find_weight_format(model, inputs.weights)
    padding = mxfp4_expert_padding_bytes(model, form, gpus) if inputs.repacked else 0.0
    covered = model.parameters if form.covers == "all" else table.quantized_weight_count
    total, quantized = table.total_bytes + padding, covered * form.bits_with_scales / 8 + padding
    bytes_per_gpu = table.bytes_per_gpu(gpus) + padding / gpus
    has_rest = covered < model.parameters  # Else a difference is of rounding only.
    return WeightsResult(
        total=total,
        bytes_in_format=quantized,
        rest=total - quantized - table.tower_bytes if has_rest else 0.0,
        tower_bytes=table.tower_bytes,
        per_gpu=bytes_per_gpu / stages,
        parameters_in_format=covered,
        language_parameters=model.parameters,
        loaded_parameters=model.loaded_parameters if table.tower_bytes else model.parameters,
        padding_bytes=padding,
    )


OUTPUTS: tuple[OutputSpec[WeightsResult], ...] = (
    OutputSpec("total", "All weights", "B", "less", primary=True),
    OutputSpec("quantised", "In the format", "B", read=lambda r: r.bytes_in_format),
    OutputSpec("rest", "Kept wider", "B"),
    OutputSpec("per_gpu", "On one GPU", "B", "less"),
    OutputSpec("bits_per_parameter", "Bits per parameter"),
    OutputSpec("bits_per_weight", "Bits per weight in the format"),
    OutputSpec("saved", "Saved against BF16", "%", "more", lambda r: r.saved_share),
)
_STEPS = StepBuilder(OUTPUTS, "number-formats")


def build_steps(
    model: Architecture, inputs: WeightsInputs, result: WeightsResult
) -> tuple[FormulaStep, ...]:
    form = _find_weight_format_unless_gguf(model, inputs)
    count, size = format_term(result.loaded_parameters), format_term(result.total, "B")
    bits_numbers = f"8 × {size} ÷ {count}"
    gpus, stages = inputs.tensor_parallel, inputs.pipeline_parallel
    per_gpu_formula = (
        "((all − what each GPU copies) ÷ tensor parallel + the copy) ÷ pipeline parallel"
    )
    total_text = size if gpus * stages > 1 else format_terms_of_exact_sum((result.total,), "B")
    numbers = share_per_gpu_formula(total_text, result.total, result.per_gpu * stages, gpus)
    if stages > 1:
        numbers = multiply_or_divide_formula(numbers, stages, sign="÷")
    bits_formula = "8 × bytes ÷ parameters"
    return (
        *(
            _build_steps_of_weight_format(result, form)
            if form
            else (_gguf_file_step(count, result),)
        ),
        _STEPS.build_step(
            "bits_per_parameter", bits_formula, bits_numbers, result.bits_per_parameter, "shape"
        ),
        _STEPS.build_step(
            "per_gpu", per_gpu_formula, numbers, result.per_gpu, "shape", topic="parallelism"
        ),
    )


def _find_weight_format_unless_gguf(
    model: Architecture, inputs: WeightsInputs
) -> WeightFormat | None:
    """Return the chosen format; None for a GGUF mixture."""
    return None if inputs.weights in GGUF_FORMATS else find_weight_format(model, inputs.weights)


def _gguf_file_step(count: str, result: WeightsResult) -> FormulaStep:
    formula = "weights × bits of their block formats on average ÷ 8"
    numbers = f"{count} × {format_term(result.bits_per_parameter)} ÷ 8"
    return _STEPS.build_step("total", formula, numbers, result.total, "gguf", label="File")


_SOURCE_BY_FORMAT = {
    "gptq-int4": "gptq",
    "gptq-int8": "gptq",
    "gptq-int4-g32": "gptq",
    "awq-int4": "awq",
    "nf4": "qlora",
    "nf4-double": "qlora",
    "mxfp4": "ocp-mx",
    "mxfp4-experts": "ocp-mx",
    "mxfp8": "ocp-mx",
    "nvfp4": "nvfp4",
}


def _build_steps_of_weight_format(
    result: WeightsResult, form: WeightFormat
) -> tuple[FormulaStep, ...]:
    source = _SOURCE_BY_FORMAT.get(form.id, "shape")
    covered = (
        f"{format_term(result.parameters_in_format)} × {format_term(form.bits_with_scales)} ÷ 8"
    )
    covered_formula = "parameters in the format × bits ÷ 8"
    if result.padding_bytes:
        covered_formula += " + padding"
        covered += f" + {format_term(result.padding_bytes, 'B')}"
    other_parameters = format_term(result.language_parameters - result.parameters_in_format)
    rest = f"{other_parameters} × {format_term(form.rest / 8)} B"
    total_formula = "weights in the format + weights in wider formats"
    total_formula += " + tower" if result.tower_bytes else ""
    total = format_terms_of_exact_sum(
        (result.bytes_in_format, result.rest, result.tower_bytes), "B"
    )
    return (
        _STEPS.build_step("quantised", covered_formula, covered, result.bytes_in_format, source),
        _STEPS.build_step("rest", _unquantized_weights_formula(form), rest, result.rest, source),
        *((_vision_tower_step(result, form, source),) if result.tower_bytes else ()),
        _STEPS.build_step("total", total_formula, total, result.total, source),
    )


def _unquantized_weights_formula(form: WeightFormat) -> str:
    if form.checkpoint_bit_widths is not None:
        return "what the checkpoint does not quantize × bytes"
    return "embeddings, head, norms and routers × bytes"


def _vision_tower_step(result: WeightsResult, form: WeightFormat, source: str) -> FormulaStep:
    count = format_number(result.loaded_parameters - result.language_parameters)
    numbers = f"{count} × {format_number(form.rest / 8)} B"
    label, formula = "Vision tower", "parameters of tower and projector × bytes"
    return FormulaStep(label, formula, numbers, result.tower_bytes, "B", source, "number-formats")


def build_weights_bar(result: WeightsResult) -> StackedBar:
    segments = (
        BarSegment("weights", "In the format", result.bytes_in_format),
        BarSegment("other", "Kept wider", result.rest),
        *(
            (BarSegment("overhead", "Vision tower", result.tower_bytes),)
            if result.tower_bytes
            else ()
        ),
    )
    return StackedBar("Weights", segments, None, "")


_SHOWN_FORMATS = ("fp32", "bf16", "fp8", "int8", "gptq-int4", "awq-int4", "nf4", "mxfp4", "nvfp4")


def build_size_by_format_table(model: Architecture) -> ResultTable:
    """Return the model's size in the usual formats [B]."""
    rows = tuple(
        (
            FORMATS[name].label,
            (weight_bytes_by_split(model, name).total_bytes, "B"),
            format_number(
                8 * weight_bytes_by_split(model, name).total_bytes / model.loaded_parameters
            ),
        )
        for name in _SHOWN_FORMATS
    )
    return ResultTable("By format", ("Format", "Weights", "Bits per parameter"), rows)


def build_notes(model: Architecture, inputs: WeightsInputs) -> tuple[str, ...]:
    """Return which tensors stay wider, and what a weight includes."""
    form = _find_weight_format_unless_gguf(model, inputs)
    prediction_notes = _multi_token_prediction_notes(model, inputs)
    if form is None:
        note = (
            "Counted as llama.cpp quantizes without an importance matrix; the file "
            "adds a few megabytes of vocabulary."
        )
        return (note,)
    if form.covers == "all":
        return prediction_notes
    notes = ["Embeddings, output head, norms and routers stay in 16 bit."]
    if form.covers == "calibrated" and "linear attention" in model.parameters_by_part():
        notes = ["Embeddings, head, norms, routers and linear attention stay in 16 bit."]
    if form.checkpoint_bit_widths is not None:
        notes = ["Norms, and modules that the checkpoint leaves out, stay in 16 bit."]
    if form.covers == "experts":
        notes = ["Only routed experts are quantized; all else stays in 16 bit."]
    if form.scale_description:
        notes.append(f"Each weight carries its part of the metadata: {form.scale_description}.")
    notes.append("Engines may pad or repack tensors when they load them.")
    return (*notes, *prediction_notes)


def _multi_token_prediction_notes(model: Architecture, inputs: WeightsInputs) -> tuple[str, ...]:
    """Return what multi-token prediction adds to the files, at the mean bits of the model."""
    if not model.prediction_module_parameters:
        return ()
    language = weight_bytes_by_split(model, inputs.weights)
    share = model.prediction_module_parameters / model.parameters
    added_text = format_value((language.total_bytes - language.tower_bytes) * share, "B")
    return (
        (
            f"Modules for multi-token prediction add about {added_text} to the files; engines load "
            "them only to speculate."
        ),
    )


def estimate(inputs: WeightsInputs) -> Estimate:
    model = find_model(inputs.model)
    reject_impossible_tensor_parallel(model, inputs.tensor_parallel)
    result = compute_weights(model, inputs)
    return Estimate(
        name="weights",
        verdict=Verdict(
            "info",
            f"{format_value(result.total, 'B')}.",
            f"{model.name} in {find_weight_format(model, inputs.weights).label}: "
            f"{format_number(result.bits_per_parameter)} bits for each parameter.",
        ),
        figures=read_figures(OUTPUTS, result),
        steps=build_steps(model, inputs, result),
        pictures=(build_weights_bar(result),),
        tables=(build_size_by_format_table(model),),
        notes=build_notes(model, inputs),
    )


ENTRY = EstimateSpec(
    name="weights",
    title="Weights",
    summary="Bytes of a model by number format, with the overhead of its scales.",
    group="Models",
    inputs_type=WeightsInputs,
    compute_estimate=estimate,
    outputs=OUTPUTS,
    most_important_outputs=("total", "per_gpu", "saved"),
    topic="number-formats",
)
