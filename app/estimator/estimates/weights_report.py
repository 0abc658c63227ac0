"""`weights`: verdict, figures, charts and formula steps of a result."""

from app.estimator.common_inputs import input_error
from app.estimator.estimates.weights import MIXTURE, WeightsInputs, WeightsResult, compute_weights
from app.estimator.formula_steps import (
    StepBuilder,
    format_product,
    format_split,
    format_sum,
    format_term,
)
from app.estimator.memory.parallel_layout import tensor_parallel_problem
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import find_model
from app.estimator.models.number_formats import FORMATS, WeightFormat, find_format, weight_table
from app.estimator.registry import EstimateSpec
from app.estimator.result import (
    BarSegment,
    Estimate,
    Figure,
    FormulaStep,
    Output,
    ResultTable,
    StackedBar,
    Verdict,
    outputs_by_name,
)
from app.estimator.units import format_number, format_value

OUTPUTS = (
    Output("total", "All weights", "B", better="less"),
    Output("quantised", "In the format", "B"),
    Output("rest", "Kept wider", "B"),
    Output("per_gpu", "On one GPU", "B", better="less"),
    Output("bits_per_parameter", "Bits per parameter"),
    Output("bits_per_weight", "Bits per weight in the format"),
    Output("saved", "Saved against BF16", "%", better="more"),
)
_OUT = outputs_by_name(OUTPUTS)
_WORKING = StepBuilder(_OUT, "number-formats")


def build_figures(found: WeightsResult) -> tuple[Figure, ...]:
    """Return bytes and bits of a model in its format."""
    return (
        Figure(_OUT["total"], found.total, primary=True),
        Figure(_OUT["quantised"], found.quantized),
        Figure(_OUT["rest"], found.rest),
        Figure(_OUT["per_gpu"], found.per_gpu),
        Figure(_OUT["bits_per_parameter"], found.bits),
        Figure(_OUT["bits_per_weight"], found.narrow),
        Figure(_OUT["saved"], found.saved),
    )


def build_steps(
    model: Architecture, asked: WeightsInputs, found: WeightsResult
) -> tuple[FormulaStep, ...]:
    """Return the steps from bits of a weight to bytes of a GPU."""
    form = _chosen_format(model, asked)
    count, size = format_term(found.parameters), format_term(found.total, "B")
    per = f"8 × {size} ÷ {count}"
    gpus, stages = asked.tensor_parallel, asked.pipeline_parallel
    rule = "(all − copied) ÷ tensor parallel + copied, ÷ pipeline parallel"
    whole = size if gpus * stages > 1 else format_sum((found.total,), "B")
    numbers = format_split(whole, found.total, found.per_gpu * stages, gpus)
    if stages > 1:
        numbers = format_product(numbers, stages, sign="÷")
    bits = "8 × bytes ÷ parameters"
    return (
        *(_in_format(found, form) if form else (_file_step(count, found),)),
        _WORKING.line("bits_per_parameter", bits, per, found.bits, "shape"),
        _WORKING.line("per_gpu", rule, numbers, found.per_gpu, "shape", topic="parallelism"),
    )


def _chosen_format(model: Architecture, asked: WeightsInputs) -> WeightFormat | None:
    """Return the chosen format; None for a GGUF mixture."""
    return None if asked.weights in MIXTURE else find_format(model, asked.weights)


def _file_step(count: str, found: WeightsResult) -> FormulaStep:
    formula = "weights × bits of their block formats on average ÷ 8"
    numbers = f"{count} × {format_term(found.bits)} ÷ 8"
    return _WORKING.line("total", formula, numbers, found.total, "gguf", label="File")


_SOURCE = {
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


def _in_format(found: WeightsResult, form: WeightFormat) -> tuple[FormulaStep, ...]:
    source = _SOURCE.get(form.id, "shape")
    parts = format_sum((found.quantized, found.rest, found.tower), "B")
    packed = f" + {format_term(found.padding, 'B')}" if found.padding else ""
    covered = f"{format_term(found.covered)} × {format_term(form.bits)} ÷ 8"
    others = format_term(found.language - found.covered)
    rest = f"{others} × {format_term(form.rest / 8)} B"
    rule = " + padding" if found.padding else ""
    lines = (
        (
            "In the format",
            f"parameters in the format × bits ÷ 8{rule}",
            covered + packed,
            found.quantized,
            "quantised",
        ),
        (
            "Kept wider",
            _kept_wider(form),
            rest,
            found.rest,
            "rest",
        ),
        *_tower_line(found, form),
        (
            "All weights",
            "weights in the format + weights in wider formats"
            + (" + tower" if found.tower else ""),
            parts,
            found.total,
            "total",
        ),
    )
    return tuple(
        FormulaStep(label, formula, numbers, value, "B", source, "number-formats", figure)
        for label, formula, numbers, value, figure in lines
    )


def _kept_wider(form: WeightFormat) -> str:
    if form.widths is not None:
        return "what the checkpoint does not quantize × bytes"
    return "embeddings, head, norms and routers × bytes"


def _tower_line(
    found: WeightsResult, form: WeightFormat
) -> tuple[tuple[str, str, str, float, str], ...]:
    """Return the line of the vision tower, if there is one."""
    if not found.tower:
        return ()
    count = format_number(found.parameters - found.language)
    numbers = f"{count} × {format_number(form.rest / 8)} B"
    label, formula = "Vision tower", "parameters of tower and projector × bytes"
    return ((label, formula, numbers, found.tower, ""),)


def build_bar(found: WeightsResult) -> StackedBar:
    """Return bytes in the format, in wider formats, and of a vision tower as a bar."""
    segments = (
        BarSegment("weights", "In the format", found.quantized),
        BarSegment("other", "Kept wider", found.rest),
        *((BarSegment("overhead", "Vision tower", found.tower),) if found.tower else ()),
    )
    return StackedBar("Weights", segments, None, "")


_SHOWN_FORMATS = (
    "fp32",
    "bf16",
    "fp8",
    "int8",
    "gptq-int4",
    "awq-int4",
    "nf4",
    "mxfp4",
    "nvfp4",
)


def build_table(model: Architecture) -> ResultTable:
    """Return the model's size in the usual formats [B]."""
    rows = tuple(
        (
            FORMATS[name].label,
            (weight_table(model, name).total, "B"),
            format_number(8 * weight_table(model, name).total / model.loaded_parameters),
        )
        for name in _SHOWN_FORMATS
    )
    return ResultTable("By format", ("Format", "Weights", "Bits per parameter"), rows)


def build_notes(model: Architecture, asked: WeightsInputs) -> tuple[str, ...]:
    """Return which tensors stay wider, and what a weight includes."""
    form = _chosen_format(model, asked)
    if form is None:
        note = (
            "Counted as llama.cpp quantizes without an importance matrix; the file "
            "adds a few megabytes of vocabulary."
        )
        return (note,)
    if form.covers == "all":
        return ()
    notes = ["Embeddings, output head, norms and routers stay in 16 bit."]
    if form.widths is not None:
        notes = ["Norms, and modules that the checkpoint leaves out, stay in 16 bit."]
    if form.covers == "experts":
        notes = ["Only routed experts are quantized; all else stays in 16 bit."]
    if form.scale:
        notes.append(f"Each weight carries its part of the metadata: {form.scale}.")
    notes.append("Engines may pad or repack tensors when they load them.")
    return tuple(notes)


def estimate(asked: WeightsInputs) -> Estimate:
    """Compute the bytes of all tensors, in the format and in wider ones."""
    model = find_model(asked.model)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise input_error("tensor_parallel", asked.tensor_parallel, problem)
    found = compute_weights(model, asked)
    return Estimate(
        name="weights",
        verdict=Verdict(
            "info",
            f"{format_value(found.total, 'B')}.",
            f"{model.name} in {_format_label(model, asked.weights)}: "
            f"{format_number(found.bits)} bits for each parameter.",
        ),
        figures=build_figures(found),
        steps=build_steps(model, asked, found),
        pictures=(build_bar(found),),
        tables=(build_table(model),),
        notes=build_notes(model, asked),
    )


def _format_label(model: Architecture, name: str) -> str:
    return f"GGUF {MIXTURE[name]}" if name in MIXTURE else find_format(model, name).label


ENTRY = EstimateSpec(
    name="weights",
    title="Weights",
    summary="Bytes of a model by number format, with the overhead of its scales.",
    group="Models",
    inputs=WeightsInputs,
    answer=estimate,
    outputs=OUTPUTS,
    first=("total", "per_gpu", "saved"),
    topic="number-formats",
)
