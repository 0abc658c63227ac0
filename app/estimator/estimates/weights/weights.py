"""The estimate `weights`: what a model takes in each number format."""

import dataclasses

from app.estimator.estimate import (
    Estimate,
    Figure,
    Segment,
    StackedBar,
    Step,
    Table,
    Verdict,
)
from app.estimator.inputs import ask
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models import gguf
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import FORMATS, WEIGHT_CHOICES, Format, weight_table
from app.estimator.registry import Entry, Output
from app.estimator.shared_inputs import ask_model, ask_tensor_parallel, refuse
from app.estimator.units import format_number, format_value

_GGUF = tuple(
    (f"gguf-{name.lower().replace('_', '-')}", f"GGUF {name}")
    for name in gguf.MIXTURES
    if name not in {"F32", "F16", "BF16"}
)
_MIXTURE = {f"gguf-{name.lower().replace('_', '-')}": name for name in gguf.MIXTURES}


@dataclasses.dataclass(frozen=True, slots=True)
class Weights:
    """Which model in which format, over how many GPUs."""

    model: str = ask_model()
    weights: str = ask(
        "bf16",
        "Format",
        kind="choice",
        choices=(*WEIGHT_CHOICES, *_GGUF),
        help="Quantised formats leave some tensors in 16 bit; GGUF mixes formats.",
        term="quantization",
        group="Model",
        topic="number-formats",
    )
    tensor_parallel: int = ask_tensor_parallel()


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    total: float
    quantised: float
    rest: float
    per_gpu: float
    covered: int


def compute(asked: Weights) -> Estimate:
    """Bytes of all tensors: those in the format, and those that are not."""
    model = find_model(asked.model)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    found = _find(model, asked)
    effective = 8 * found.total / model.parameters
    return Estimate(
        name="weights",
        verdict=Verdict(
            "info",
            f"{format_value(found.total, 'B')}.",
            f"{model.name} in {_label(asked.weights)}: "
            f"{format_number(effective)} bits for each parameter.",
        ),
        figures=(
            Figure("total", "All weights", found.total, "B", primary=True),
            Figure("quantised", "In the format", found.quantised, "B"),
            Figure("rest", "Kept wider", found.rest, "B"),
            Figure("per_gpu", "On one GPU", found.per_gpu, "B"),
            Figure("bits_per_parameter", "Bits per parameter", effective),
            Figure("saved", "Saved against BF16", 1 - found.total / _bf16(model), "%"),
        ),
        steps=_steps(model, asked, found, effective),
        pictures=(_bar(found),),
        tables=(_table(model),),
        notes=_notes(asked),
    )


def _find(model: Architecture, asked: Weights) -> _Found:
    mixture = _MIXTURE.get(asked.weights)
    gpus = asked.tensor_parallel
    if mixture:
        total = gguf.file_bytes(model, mixture)
        return _Found(total, total, 0.0, total / gpus, model.parameters)
    table = weight_table(model, asked.weights)
    form = FORMATS[asked.weights]
    covered = model.parameters if form.covers == "all" else table.quantised
    quantised = covered * form.bits / 8
    return _Found(
        table.total, quantised, table.total - quantised, table.per_gpu(gpus), covered
    )


def _bf16(model: Architecture) -> float:
    return 2.0 * model.parameters


def _label(name: str) -> str:
    return FORMATS[name].label if name in FORMATS else f"GGUF {_MIXTURE[name]}"


def _steps(
    model: Architecture, asked: Weights, found: _Found, effective: float
) -> tuple[Step, ...]:
    form = FORMATS.get(asked.weights)
    count, size = format_number(model.parameters), format_value(found.total, "B")
    per = f"8 × {size} ÷ {count}"
    split, gpus = "what is divided ÷ t + what is copied", asked.tensor_parallel
    each = ("Bits per parameter", "8 × bytes ÷ N", per, effective, "")
    share = ("On one GPU", split, f"over {gpus}", found.per_gpu, "B")
    formats = "number-formats"
    return (
        *(_in_format(found, form) if form else (_file_step(count, found),)),
        Step(*each, "shape", formats, "bits_per_parameter"),
        Step(*share, "shape", "parallelism", "per_gpu"),
    )


def _file_step(count: str, found: _Found) -> Step:
    formula = "Σ tensors: weights × bits of their block format ÷ 8"
    numbers = f"{count} weights, formats by role and layer"
    line = ("File", formula, numbers, found.total, "B")
    return Step(*line, "gguf", "number-formats", "total")


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


def _in_format(found: _Found, form: Format) -> tuple[Step, ...]:
    source = _SOURCE.get(form.id, "shape")
    inside, wider = format_value(found.quantised, "B"), format_value(found.rest, "B")
    covered = f"{format_number(found.covered)} × {format_number(form.bits, 5)} ÷ 8"
    rest = f"{wider} of embeddings, head, norms and routers"
    lines = (
        ("In the format", "N_q × bits ÷ 8", covered, found.quantised, "quantised"),
        ("Kept wider", "N_rest × 2 B", rest, found.rest, "rest"),
        ("All weights", "sum", f"{inside} + {wider}", found.total, "total"),
    )
    return tuple(
        Step(label, formula, numbers, value, "B", source, "number-formats", figure)
        for label, formula, numbers, value, figure in lines
    )


def _bar(found: _Found) -> StackedBar:
    segments = (
        Segment("weights", "In the format", found.quantised),
        Segment("other", "Kept wider", found.rest),
    )
    return StackedBar("Weights", segments, None, "")


_SHOWN = (
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


def _table(model: Architecture) -> Table:
    rows = tuple(
        (
            FORMATS[name].label,
            (weight_table(model, name).total, "B"),
            format_number(8 * weight_table(model, name).total / model.parameters),
        )
        for name in _SHOWN
    )
    return Table("By format", ("Format", "Weights", "Bits per parameter"), rows)


def _notes(asked: Weights) -> tuple[str, ...]:
    form = FORMATS.get(asked.weights)
    if form is None:
        note = (
            "Counted as llama.cpp quantises without an importance matrix; the file "
            "adds a few megabytes of vocabulary."
        )
        return (note,)
    if form.covers == "all":
        return ()
    notes = ["Embeddings, output head, norms and routers stay in 16 bit."]
    if form.covers == "experts":
        notes = ["Only routed experts are quantised; all else stays in 16 bit."]
    if form.scale:
        notes.append(f"Each weight carries its part of the metadata: {form.scale}.")
    notes.append("Engines may pad or repack tensors when they load them.")
    return tuple(notes)


ENTRY = Entry(
    name="weights",
    title="Weights",
    summary="Bytes of a model by number format, with the overhead of its scales.",
    group="Models",
    inputs=Weights,
    compute=compute,
    outputs=(
        Output("total", "All weights", "B"),
        Output("quantised", "In the format", "B"),
        Output("rest", "Kept wider", "B"),
        Output("per_gpu", "On one GPU", "B"),
        Output("bits_per_parameter", "Bits per parameter", ""),
        Output("saved", "Saved against BF16", "%"),
    ),
    topic="number-formats",
)
