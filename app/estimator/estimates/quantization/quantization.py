"""The estimate `quantization`: what a narrower format changes, and what it does not."""

import dataclasses

from app.estimator.estimate import Estimate, Figure, Step, Table, Verdict
from app.estimator.hardware.accelerators import Accelerator, find_accelerator
from app.estimator.inputs import ask
from app.estimator.memory.sharding import tensor_parallel_problem
from app.estimator.models.architecture import Architecture, find_model
from app.estimator.models.formats import FORMATS, WEIGHT_CHOICES, Format, weight_table
from app.estimator.registry import Entry, Output
from app.estimator.shared_inputs import ask_gpu, ask_model, ask_tensor_parallel, refuse
from app.estimator.units import format_number, format_value


@dataclasses.dataclass(frozen=True, slots=True)
class Quantization:
    """Which two formats are compared, and on what."""

    model: str = ask_model()
    weights: str = ask(
        "awq-int4",
        "To",
        kind="choice",
        choices=WEIGHT_CHOICES,
        help="The format to change to.",
        term="quantization",
        group="Formats",
        topic="number-formats",
    )
    before: str = ask(
        "bf16",
        "From",
        kind="choice",
        choices=WEIGHT_CHOICES,
        help="The format to compare with.",
        group="Formats",
        topic="number-formats",
    )
    gpu: str = ask_gpu(count_field="tensor_parallel")
    tensor_parallel: int = ask_tensor_parallel(2)
    bandwidth_share: float = ask(
        0.65,
        "Reached bandwidth",
        typed_unit="%",
        minimum=0.05,
        maximum=1.0,
        help="Share of the memory bandwidth that decoding reaches.",
        group="Hardware",
        topic="batching-and-latency",
        advanced=True,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Side:
    """One of the two formats on this hardware."""

    form: Format
    total: float
    per_gpu: float
    floor: float | None
    peak: float | None


def compute(asked: Quantization) -> Estimate:
    """Compare memory, decode floor and peak rate of two formats."""
    model, gpu = find_model(asked.model), find_accelerator(asked.gpu)
    problem = tensor_parallel_problem(model, asked.tensor_parallel)
    if problem:
        raise refuse("tensor_parallel", asked.tensor_parallel, problem)
    if gpu.lacks(FORMATS[asked.weights].math) and FORMATS[asked.weights].math == "fp8":
        raise refuse("weights", asked.weights, f"The {gpu.name} cannot compute in FP8.")
    old = _side(model, asked, gpu, asked.before)
    new = _side(model, asked, gpu, asked.weights)
    return Estimate(
        name="quantization",
        verdict=_verdict(gpu, old, new),
        figures=_figures(gpu, old, new),
        steps=_steps(model, asked, gpu, new),
        tables=(_table(gpu, old, new),),
        notes=_notes(gpu, new),
    )


def _side(
    model: Architecture, asked: Quantization, gpu: Accelerator, name: str
) -> _Side:
    table = weight_table(model, name)
    form = FORMATS[name]
    per_gpu = table.per_gpu(asked.tensor_parallel)
    return _Side(
        form=form,
        total=table.total,
        per_gpu=per_gpu,
        floor=_floor(model, asked, gpu, per_gpu),
        peak=gpu.peak(_math(gpu, form)),
    )


def _math(gpu: Accelerator, form: Format) -> str:
    """The format that products are computed in; 4 bit is unpacked where it must."""
    narrow = {"mxfp4": "fp4", "nvfp4": "fp4"}.get(form.math, form.math)
    if gpu.peak(narrow) is None and narrow in {"fp4", "fp8"}:
        return "bf16"
    return narrow


def _floor(
    model: Architecture, asked: Quantization, gpu: Accelerator, per_gpu: float
) -> float | None:
    """Time to read the active weights once: a token of one sequence at best [s]."""
    if gpu.memory_bandwidth is None:
        return None
    active = model.active_parameters / model.parameters
    return per_gpu * active / (gpu.memory_bandwidth * asked.bandwidth_share)


def _verdict(gpu: Accelerator, old: _Side, new: _Side) -> Verdict:
    saved = old.total - new.total
    lead = f"{format_value(abs(saved), 'B')} {'less' if saved >= 0 else 'more'}."
    fit = new.per_gpu <= (gpu.memory or 0.0)
    text = (
        f"{new.form.label} takes {format_value(new.total, 'B')} instead of "
        f"{format_value(old.total, 'B')}; the weights alone "
        f"{'fit' if fit else 'do not fit'} on the GPUs."
    )
    return Verdict("fits" if fit else "no", lead, text)


def _figures(gpu: Accelerator, old: _Side, new: _Side) -> tuple[Figure, ...]:
    faster = old.floor / new.floor if old.floor and new.floor else None
    rate = new.peak / old.peak if old.peak and new.peak else None
    low = None if new.floor is None else new.floor * 0.85
    high = None if new.floor is None else new.floor * 1.5
    unknown = "The catalogue has no rate for this."
    return (
        Figure("total", "Weights after", new.total, "B", primary=True),
        Figure("before", "Weights before", old.total, "B"),
        Figure("saved", "Saved", old.total - new.total, "B"),
        Figure("per_gpu", "On one GPU", new.per_gpu, "B"),
        Figure("fits", "Weights fit", new.per_gpu <= (gpu.memory or 0.0)),
        Figure("decode_floor", "Fastest token", new.floor, "s", low, high),
        Figure(
            "decode_speedup",
            "Faster decoding at most",
            faster,
            note="" if faster else unknown,
        ),
        Figure("peak", "Peak rate of products", new.peak, "FLOP/s"),
        Figure(
            "peak_ratio", "Faster prefill at most", rate, note="" if rate else unknown
        ),
    )


def _steps(
    model: Architecture, asked: Quantization, gpu: Accelerator, new: _Side
) -> tuple[Step, ...]:
    weights = Step(
        "Weights after",
        "N_q × bits ÷ 8 + N_rest × 2 B",
        f"{format_number(weight_table(model, asked.weights).quantised)} × "
        f"{format_number(new.form.bits, 5)} ÷ 8, and the rest in 16 bit",
        new.total,
        "B",
        "shape",
        "number-formats",
        "total",
    )
    if new.floor is None:
        return (weights,)
    floor = Step(
        "Fastest token",
        "active bytes on one GPU ÷ (bandwidth × reached share)",
        f"{format_value(new.per_gpu * model.active_parameters / model.parameters, 'B')}"
        f" ÷ ({format_value(gpu.memory_bandwidth, 'B/s')} × "
        f"{format_value(asked.bandwidth_share, '%')})",
        new.floor,
        "s",
        "pope-2022",
        "batching-and-latency",
        "decode_floor",
    )
    return (weights, floor)


def _table(gpu: Accelerator, old: _Side, new: _Side) -> Table:
    def row(side: _Side) -> tuple[str | tuple[float, str], ...]:
        return (
            side.form.label,
            (side.total, "B"),
            (side.per_gpu, "B"),
            (side.floor, "s") if side.floor is not None else "unknown",
            (side.peak, "FLOP/s") if side.peak is not None else "unknown",
        )

    columns = ("Format", "Weights", "On one GPU", "Fastest token", "Peak rate")
    return Table(f"On the {gpu.name}", columns, (row(old), row(new)))


def _notes(gpu: Accelerator, new: _Side) -> tuple[str, ...]:
    notes = [
        "Nothing here says how well the model answers in this format: measure it.",
        "The KV cache keeps its own format and does not shrink with the weights.",
    ]
    math = _math(gpu, new.form)
    if new.form.bits < 16 and math in {"bf16", "fp16"}:
        notes.append(
            "Weights are unpacked to 16 bit before they are multiplied: decoding gains "
            "from fewer bytes, prefill does not."
        )
    if new.form.scale:
        notes.append(f"Metadata: {new.form.scale}.")
    return tuple(notes)


ENTRY = Entry(
    name="quantization",
    title="Quantization",
    summary="What a narrower format saves and speeds up, and what it does not promise.",
    group="Models",
    inputs=Quantization,
    compute=compute,
    outputs=(
        Output("total", "Weights after", "B"),
        Output("before", "Weights before", "B"),
        Output("saved", "Saved", "B"),
        Output("per_gpu", "On one GPU", "B"),
        Output("fits", "Weights fit", ""),
        Output("decode_floor", "Fastest token", "s"),
        Output("decode_speedup", "Faster decoding at most", ""),
        Output("peak", "Peak rate of products", "FLOP/s"),
        Output("peak_ratio", "Faster prefill at most", ""),
    ),
    topic="number-formats",
)
